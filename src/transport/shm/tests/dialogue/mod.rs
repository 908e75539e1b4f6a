//! Two that answer each other, by turns. `crossing`: two that send at the same time; `parts`: turns of several parts.

mod crossing;
mod parts;

use super::super::dialogue::{self, BegunBy, LONGEST, LONGEST_TURN, SECOND_UNIT};
use super::super::lane::DIALOGUE_AT;
use super::*;

/// Two endpoints that each have a ring of the other's.
struct Pair {
    ends: [ShmTransport; 2],
    sinks: [Kept; 2],
    /// The number that each has for the other.
    to: [PeerId; 2],
    /// What each has pushed, until `read_all` has compared it with what came.
    sent: [Vec<(Header, Vec<u8>)>; 2],
    /// The next packet of each.
    next: [u32; 2],
    _dir: Dir,
}

impl Pair {
    /// Of whom neither has sent anything.
    fn begin() -> Pair {
        let dir = Dir::new();
        let mut ends = [dir.open("a"), dir.open("b")];
        let to = [ends[0].peer(b"b").unwrap(), ends[1].peer(b"a").unwrap()];
        Pair {
            ends,
            sinks: Default::default(),
            to,
            sent: Default::default(),
            next: [0; 2],
            _dir: dir,
        }
    }

    fn meet() -> Pair {
        let mut pair = Pair::begin();
        (0..2).for_each(|who| pair.hello(who));
        // Both have polled since they pushed.
        (0..2).for_each(|who| pair.poll(who, 1));
        pair
    }

    /// One pushes something that the other reads.
    fn hello(&mut self, who: usize) {
        let hello = Header::new(Packet::Credit, 0);
        assert_eq!(self.ends[who].push(self.to[who], &hello, Body::Empty, None), Push::Done);
        poll_until(&mut self.ends[1 - who], &mut self.sinks[1 - who], |sink| {
            !sink.packets.is_empty()
        });
        self.sinks[1 - who].packets.clear();
    }

    fn out(&self, who: usize) -> &Outbound {
        self.ends[who].peers.get(self.to[who]).unwrap().out.as_ref().unwrap()
    }

    /// How many turns there were, as this side knows.
    fn turns(&self, who: usize) -> u64 {
        self.out(who).turns()
    }

    fn push(&mut self, who: usize) -> Push {
        let id = self.next[who];
        self.push_packet(who, header(id), body(id))
    }

    fn push_packet(&mut self, who: usize, header: Header, body: Vec<u8>) -> Push {
        let pushed = self.ends[who].push(self.to[who], &header, Body::Bytes(&body), None);
        if pushed == Push::Done {
            self.next[who] += 1;
            self.sent[who].push((header, body));
        }
        pushed
    }

    /// The part of a message of `total` bytes that begins at `at`.
    fn push_part(&mut self, who: usize, at: usize, total: usize) -> Push {
        let id = self.next[who];
        let header = match at {
            0 => Header {
                total: total as u64,
                ..Header::new(Packet::First, id)
            },
            _ => Header {
                total: at as u64,
                ..Header::new(Packet::Segment, id)
            },
        };
        let len = MAX_BODY.min(total - at);
        let body = (0..len).map(|byte| (byte as u32 ^ id.wrapping_mul(31)) as u8);
        self.push_packet(who, header, body.collect())
    }

    /// The same of an answer that is so long.
    fn push_answer_part(&mut self, who: usize, at: usize, total: usize) -> Push {
        let len = MAX_BODY.min(total - at);
        let header = Header {
            data: (total - at - len) as u64,
            total: at as u64,
            ..Header::new(Packet::Reply, self.next[who])
        };
        let body = (at..at + len).map(|byte| ((byte / 3) ^ (byte >> 11)) as u8);
        self.push_packet(who, header, body.collect())
    }

    fn push_answer(&mut self, who: usize, total: usize) {
        for at in (0..total).step_by(MAX_BODY) {
            assert_eq!(self.push_answer_part(who, at, total), Push::Done);
        }
    }

    /// Asks for so many bytes.
    fn push_question(&mut self, who: usize, total: usize) {
        let header = Header {
            total: total as u64,
            ..Header::new(Packet::Read, self.next[who])
        };
        assert_eq!(self.push_packet(who, header, vec![]), Push::Done);
    }

    fn push_message(&mut self, who: usize, total: usize) {
        for at in (0..total).step_by(MAX_BODY) {
            assert_eq!(self.push_part(who, at, total), Push::Done);
        }
    }

    fn poll(&mut self, who: usize, budget: usize) {
        self.ends[who].poll(&mut self.sinks[who], budget);
    }

    /// One reads all that the other has sent: each once, whole, in order.
    fn read_all(&mut self, who: usize) {
        let sent = std::mem::take(&mut self.sent[1 - who]);
        poll_until(&mut self.ends[who], &mut self.sinks[who], |sink| {
            sink.packets.len() == sent.len()
        });
        self.compare(who, &sent);
    }

    /// What one has read is this, and is forgotten.
    fn compare(&mut self, who: usize, sent: &[(Header, Vec<u8>)]) {
        let read = std::mem::take(&mut self.sinks[who].packets);
        assert_eq!(read.len(), sent.len());
        for ((_, header, body), sent) in read.iter().zip(sent) {
            assert_eq!(*header, sent.0);
            assert!(*body == sent.1, "the body of {header:?}");
        }
    }

    /// Someone who has a turn, where nothing is unread.
    fn speaker(&self) -> usize {
        usize::from(!self.out(0).may_say(0))
    }

    fn out_mut(&mut self, who: usize) -> &mut Outbound {
        self.ends[who]
            .peers
            .get_mut(self.to[who])
            .unwrap()
            .out
            .as_mut()
            .unwrap()
    }

    /// As if so many turns had passed in the dialogue that one has spoken in last, and one of them had been said there.
    fn pass_turns(&mut self, who: usize, turns: u64) {
        let by = self.out(who).last_said();
        self.out(who).dialogue(by).pass_turns(turns);
        self.out(1 - who).dialogue(by.other()).pass_turns(turns);
        self.out_mut(who).said.pass_turn();
        let lane = self.ends[1 - who].peers.get(self.to[1 - who]).unwrap().lane.unwrap();
        self.ends[1 - who].inbox.get_mut(lane).unwrap().heard.pass_turn();
    }

    /// Both have a large ring, which long bodies need.
    fn enlarge(&mut self) {
        for who in 0..2 {
            while !self.out(who).lane.is_large() {
                assert_eq!(self.push(who), Push::Done);
            }
            self.read_all(1 - who);
        }
        (0..2).for_each(|who| self.poll(who, 64));
    }

    fn positions(&self) -> [u64; 2] {
        [0, 1].map(|who| self.out(who).producer.position())
    }
}

#[test]
fn whoever_answers_uses_the_same_lines() {
    for first in 0..2 {
        let mut pair = Pair::meet();
        pair.enlarge();
        let (begun, before) = (pair.turns(first), pair.positions());
        let mut who = first;
        // A packet of each length from each side.
        pair.next = [pair.next[0].next_multiple_of(8), pair.next[1].next_multiple_of(8)];
        for turn in 1..=32 {
            assert_eq!(pair.push(who), Push::Done);
            who = 1 - who;
            pair.read_all(who);
            assert_eq!(pair.turns(who), begun + turn);
        }
        assert_eq!(pair.positions(), before);
    }
}

/// Long bodies that are answered briefly are in two places by turns, and those that are answered at length in one.
#[test]
fn a_long_body_is_where_its_writer_has_the_lines() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let who = pair.speaker();
    let mut say = |who: usize, len: usize| {
        let id = pair.next[who];
        let body = (0..len).map(|at| (at as u32 ^ id.wrapping_mul(31)) as u8).collect();
        assert_eq!(pair.push_packet(who, header(id), body), Push::Done);
        let out = pair.out(who);
        let is_second = out.dialogue(out.last_said()).is_in_second_place();
        pair.read_all(1 - who);
        // Takes back what there is.
        (0..20).for_each(|_| pair.poll(who, 64));
        is_second
    };
    for len in [400, 4096, MAX_BODY] {
        // Whatever was before, after two answers that are long the first place is this side's.
        for _ in 0..2 {
            say(who, len);
            assert!(!say(1 - who, len));
        }
        let places = [0; 8].map(|_| {
            let place = say(who, len);
            assert!(!say(1 - who, 8));
            place
        });
        assert_eq!(places, [false, true].repeat(4)[..], "{len}");
    }
}

/// Of long reads and of long writes, in whichever of the two lanes the room is that they need.
#[test]
fn what_one_side_sends_goes_by_turns_when_it_has_lacked_the_room_for_some_time() {
    let long = vec![7; 4096];
    let read = Header {
        total: 4096,
        ..Header::new(Packet::Read, 0)
    };
    let [reply, write, acked] = [Packet::Reply, Packet::Write, Packet::Acked].map(|packet| Header::new(packet, 0));
    let (reads, writes) = (
        [(read, vec![]), (reply, long.clone())],
        [(write, long), (acked, vec![])],
    );
    for initiator in 0..2 {
        for operation in [&reads, &writes] {
            let mut pair = Pair::meet();
            let mut begun = 0;
            for count in 0..60 {
                if count == 40 {
                    begun = pair.turns(initiator);
                }
                for (who, (header, body)) in [initiator, 1 - initiator].into_iter().zip(operation) {
                    assert_eq!(pair.push_packet(who, *header, body.clone()), Push::Done);
                    pair.read_all(1 - who);
                }
            }
            let kind = operation[0].0.packet;
            assert_eq!(pair.turns(initiator), begun + 2 * 20, "{kind:?} {initiator}");
        }
    }
}

#[test]
fn what_is_too_long_for_a_turn_goes_on_in_the_ring() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (begun, before) = (pair.turns(0), pair.positions());
    let who = pair.speaker();
    pair.push_message(who, LONGEST_TURN + 5);
    assert_eq!(pair.turns(who), begun + 1);
    assert!(pair.positions()[who] > before[who]);
    pair.read_all(1 - who);
    // And a turn that its writer breaks off is ended by what it says next.
    let who = 1 - who;
    pair.poll(who, 64);
    assert_eq!(pair.push_part(who, 0, LONGEST_TURN), Push::Done);
    pair.read_all(1 - who);
    pair.poll(who, 64);
    assert_eq!(pair.turns(who), begun + 1);
    assert_eq!(pair.push(who), Push::Done);
    pair.read_all(1 - who);
    assert_eq!([pair.turns(0), pair.turns(1)], [begun + 2; 2]);
}

/// As many turns as the word of a part can tell apart bring back the words of a long message.
#[test]
fn a_word_of_long_ago_is_no_part() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let who = pair.speaker();
    pair.push_message(who, 2 * MAX_BODY);
    pair.read_all(1 - who);
    // The turn is the same one's again.
    pair.pass_turns(who, (1 << 21) - 1);
    pair.poll(who, 64);
    assert_eq!(pair.push_part(who, 0, 2 * MAX_BODY), Push::Done);
    assert!(pair.out(who).is_speaking());
    (0..2).for_each(|_| pair.poll(1 - who, 64));
    let sent = pair.sent[who].clone();
    pair.compare(1 - who, &sent);
}

/// Lines in which no part is are not taken for one of the turn whose number and position are all zeros.
#[test]
fn lines_without_a_part_are_no_part_of_any_turn() {
    // The one that has the second turn has not pushed anything.
    let mut pair = Pair::begin();
    pair.hello(0);
    assert_eq!(pair.ends[1].connect(pair.to[1]), Contact::Made);
    while pair.out(0).dialogues.is_none() {
        pair.poll(0, 1);
    }
    while !pair.out(0).lane.is_large() {
        assert_eq!(pair.push(0), Push::Done);
        pair.read_all(1);
        pair.poll(0, 64);
    }
    let turns = (1 << 21) - 1 - pair.turns(0);
    pair.out(0).dialogue(BegunBy::Us).pass_turns(turns);
    pair.out(1).dialogue(BegunBy::Peer).pass_turns(turns);
    pair.poll(1, 64);
    assert_eq!((pair.speaker(), pair.positions()[1]), (1, 0));
    assert_eq!(pair.push_answer_part(1, 0, 2 * MAX_BODY), Push::Done);
    (0..2).for_each(|_| pair.poll(0, 64));
    assert!(pair.sinks[0].gone.is_empty());
    let first = pair.sent[1].clone();
    pair.compare(0, &first);
    pair.sent[1].clear();
    assert_eq!(pair.push_answer_part(1, MAX_BODY, 2 * MAX_BODY), Push::Done);
    pair.read_all(0);
    assert_eq!([pair.turns(0), pair.turns(1)], [1 << 21; 2]);
}

/// Both push and poll at random, some polls take little and some packets are refused at first.
#[test]
fn turns_and_records_keep_one_order() {
    let mut turns = 0;
    for seed in 1..=60u64 {
        let mut pair = Pair::meet();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..500 {
            let who = draw(2) as usize;
            match draw(4) {
                0 => {
                    pair.sinks[who].refuse = draw(8) == 0;
                    pair.poll(who, draw(5) as usize);
                    pair.sinks[who].refuse = false;
                }
                1 => {
                    let _ = pair.push(who);
                }
                // An answer as soon as something has come.
                2 => {
                    pair.poll(who, 1);
                    let _ = pair.push(who);
                }
                // A message or an answer of several packets, with or without others between them.
                _ => {
                    pair.poll(who, 1);
                    let total = 1 + draw(17 * MAX_BODY as u64) as usize;
                    let part = [Pair::push_part, Pair::push_answer_part][draw(2) as usize];
                    let mut at = 0;
                    while at < total && part(&mut pair, who, at, total) == Push::Done {
                        at += MAX_BODY;
                        match draw(8) {
                            0 => drop(pair.push_packet(who, Header::new(Packet::Credit, 7), Vec::new())),
                            1 => drop(pair.push(who)),
                            2 => pair.poll(who, 2),
                            3 => pair.poll(1 - who, 1),
                            _ => {}
                        }
                    }
                }
            }
        }
        (0..2).for_each(|who| pair.read_all(who));
        turns += pair.turns(0);
    }
    assert!(turns > 60 * 15, "{turns} turns");
}

#[test]
fn what_was_said_is_heard_after_the_end() {
    for (first, last) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut pair = Pair::meet();
        if last != first {
            assert_eq!(pair.push(first), Push::Done);
            pair.read_all(last);
            pair.poll(last, 1);
        }
        let turns = pair.turns(last);
        assert_eq!(pair.push(last), Push::Done);
        assert_eq!(pair.turns(last), turns + 1);
        let Pair {
            ends,
            mut sinks,
            sent,
            _dir,
            ..
        } = pair;
        let [a, b] = ends;
        let (closing, mut left) = if last == 0 { (a, b) } else { (b, a) };
        drop(closing);
        let sink = &mut sinks[1 - last];
        poll_until(&mut left, sink, |sink| !sink.gone.is_empty());
        assert_eq!(sink.packets.len(), 1);
        assert_eq!(
            (sink.packets[0].1, &sink.packets[0].2),
            (sent[last][0].0, &sent[last][0].1)
        );
    }
}

#[test]
fn a_turn_keeps_awake_and_wakes() {
    for first in 0..2 {
        let mut pair = Pair::meet();
        let other = 1 - first;
        assert!(pair.ends[other].arm());
        assert_eq!(pair.push(first), Push::Done);
        assert!(super::plain::is_readable(pair.ends[other].wake_fd(), 5000));
        pair.ends[other].disarm();
        assert!(!pair.ends[other].arm(), "there is something to read");
        pair.read_all(other);
        assert!(pair.ends[first].arm());
        pair.poll(other, 1);
        assert_eq!(pair.push(other), Push::Done);
        assert_eq!(pair.turns(other), 2);
        assert!(super::plain::is_readable(pair.ends[first].wake_fd(), 5000));
    }
}

#[test]
fn a_length_that_cannot_be_ends_the_peer() {
    let mut pair = Pair::meet();
    let position = pair.out(0).producer.position();
    let longest = LONGEST;
    for low in [(1 << 20) - 1, (1 << 15) - 1, longest + 1, 7 << 15 | longest, 4096] {
        // The last would have room behind a large ring, which there is none of.
        let lane = pair.ends[1].peers.get(pair.to[1]).unwrap().lane.unwrap();
        let lane = pair.ends[1].inbox.lane(lane).unwrap();
        lane.set_word(DIALOGUE_AT / 8, dialogue::word(1, position, low));
        poll_until(&mut pair.ends[1], &mut pair.sinks[1], |sink| !sink.gone.is_empty());
        assert!(pair.sinks[1].packets.is_empty());
        pair = Pair::meet();
    }
}

#[test]
fn a_part_that_cannot_be_ends_the_peer() {
    // One longer than a packet, though there is memory behind it; one that does not end there; and a last one that goes
    // on.
    let most = LONGEST_TURN / MAX_BODY;
    for (parts, len) in [(1, LONGEST + 1), (1, LONGEST + (most - 1) * SECOND_UNIT), (most, 8)] {
        let mut pair = Pair::meet();
        pair.enlarge();
        let who = pair.speaker();
        for _ in 0..parts {
            pair.out_mut(who).forge(header(0).words(), len, true);
        }
        let sink = &mut pair.sinks[1 - who];
        poll_until(&mut pair.ends[1 - who], sink, |sink| !sink.gone.is_empty());
        assert_eq!(sink.packets.len(), parts - 1);
    }
}
