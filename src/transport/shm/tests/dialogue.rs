//! Two that answer each other, by turns.

use super::super::lane::DIALOGUE_AT;
use super::*;

/// Two endpoints that each have a ring of the other's.
struct Pair {
    ends: [ShmTransport; 2],
    sinks: [Kept; 2],
    /// The number that each has for the other.
    to: [PeerId; 2],
    /// The next packet of each.
    next: [u32; 2],
    _dir: Dir,
}

impl Pair {
    fn meet() -> Pair {
        let dir = Dir::new();
        let mut ends = [dir.open("a"), dir.open("b")];
        let to = [ends[0].peer(b"b").unwrap(), ends[1].peer(b"a").unwrap()];
        let mut pair = Pair {
            ends,
            sinks: Default::default(),
            to,
            next: [0; 2],
            _dir: dir,
        };
        for who in 0..2 {
            let hello = Header::new(Packet::Credit, 0);
            assert_eq!(pair.ends[who].push(pair.to[who], &hello, Body::Empty, None), Push::Done);
            poll_until(&mut pair.ends[1 - who], &mut pair.sinks[1 - who], |sink| {
                !sink.packets.is_empty()
            });
        }
        // Both have polled since they pushed.
        (0..2).for_each(|who| pair.poll(who, 1));
        pair.sinks.iter_mut().for_each(|sink| sink.packets.clear());
        pair
    }

    /// A pair in which `a` has the first turn, or `b`.
    fn meet_with_first(first: usize) -> Pair {
        loop {
            let pair = Pair::meet();
            if pair.out(first).dialogue.as_ref().unwrap().may_say(0) {
                return pair;
            }
        }
    }

    fn out(&self, who: usize) -> &Outbound {
        self.ends[who].peers.get(self.to[who]).unwrap().out.as_ref().unwrap()
    }

    /// How many turns there were, as this side knows.
    fn turns(&self, who: usize) -> u64 {
        self.out(who).dialogue.as_ref().unwrap().turn()
    }

    fn push(&mut self, who: usize) -> Push {
        let id = self.next[who];
        let sent = self.ends[who].push(self.to[who], &header(id), Body::Bytes(&body(id)), None);
        self.next[who] += u32::from(sent == Push::Done);
        sent
    }

    fn poll(&mut self, who: usize, budget: usize) {
        self.ends[who].poll(&mut self.sinks[who], budget);
    }

    /// One reads all that the other has sent: each once, whole, in order.
    fn read_all(&mut self, who: usize) {
        let all = self.next[1 - who] as usize;
        poll_until(&mut self.ends[who], &mut self.sinks[who], |sink| {
            sink.packets.len() == all
        });
        (0..)
            .zip(&self.sinks[who].packets)
            .for_each(|(id, packet)| assert_whole(packet, id));
    }
}

#[test]
fn whoever_answers_uses_the_same_lines() {
    for first in 0..2 {
        let mut pair = Pair::meet_with_first(first);
        // A large ring, which long bodies need.
        for _ in 0..8 {
            assert_eq!(pair.push(first), Push::Done);
        }
        pair.read_all(1 - first);
        let begun = pair.turns(first);
        let before = [0, 1].map(|who| pair.out(who).producer.position());
        let mut who = if pair.out(first).dialogue.as_ref().unwrap().may_say(0) {
            first
        } else {
            1 - first
        };
        // A packet of each length from each side.
        pair.next = [pair.next[0].next_multiple_of(8), pair.next[1].next_multiple_of(8)];
        pair.sinks.iter_mut().for_each(|sink| sink.packets.clear());
        for turn in 1..=32 {
            pair.poll(who, 64);
            let id = pair.next[who];
            assert_eq!(pair.push(who), Push::Done);
            who = 1 - who;
            poll_until(&mut pair.ends[who], &mut pair.sinks[who], |sink| {
                !sink.packets.is_empty()
            });
            assert_whole(&pair.sinks[who].packets[0], id);
            pair.sinks[who].packets.clear();
            assert_eq!(pair.turns(who), begun + turn);
        }
        assert_eq!([0, 1].map(|who| pair.out(who).producer.position()), before);
    }
}

/// Both push and poll at random, some polls take little and some packets are refused at first.
#[test]
fn turns_and_records_keep_one_order() {
    let mut turns = 0;
    for seed in 1..=40u64 {
        let mut pair = Pair::meet();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..2000 {
            let who = draw(2) as usize;
            match draw(3) {
                0 => {
                    pair.sinks[who].refuse = draw(8) == 0;
                    pair.poll(who, draw(5) as usize);
                    pair.sinks[who].refuse = false;
                }
                1 => {
                    let _ = pair.push(who);
                }
                // An answer as soon as something has come.
                _ => {
                    pair.poll(who, 1);
                    let _ = pair.push(who);
                }
            }
        }
        (0..2).for_each(|who| pair.read_all(who));
        turns += pair.turns(0);
    }
    assert!(turns > 40 * 20, "{turns} turns");
}

#[test]
fn what_was_said_is_heard_after_the_end() {
    for (first, last) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut pair = Pair::meet_with_first(first);
        if last != first {
            assert_eq!(pair.push(first), Push::Done);
            pair.read_all(last);
        }
        let turns = pair.turns(last);
        assert_eq!(pair.push(last), Push::Done);
        assert_eq!(pair.turns(last), turns + 1);
        let Pair {
            ends,
            mut sinks,
            next,
            _dir,
            ..
        } = pair;
        let [a, b] = ends;
        let (closing, mut left) = if last == 0 { (a, b) } else { (b, a) };
        drop(closing);
        let sink = &mut sinks[1 - last];
        poll_until(&mut left, sink, |sink| !sink.gone.is_empty());
        assert_eq!(sink.packets.len(), next[last] as usize);
        assert_whole(&sink.packets[0], 0);
    }
}

#[test]
fn a_turn_keeps_awake_and_wakes() {
    for first in 0..2 {
        let mut pair = Pair::meet_with_first(first);
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
    let mut pair = Pair::meet_with_first(0);
    let position = pair.out(0).producer.position();
    for len in [u64::from(u16::MAX), super::super::dialogue::LONGEST as u64 + 1, 4096] {
        // The last would have room behind a large ring, which there is none of.
        let ring = pair.ends[1].peers.get(pair.to[1]).unwrap().ring.unwrap();
        let ring = pair.ends[1].inbox.ring(ring).unwrap();
        ring.set_word(DIALOGUE_AT / 8, 1 << 40 | position << 16 | len);
        poll_until(&mut pair.ends[1], &mut pair.sinks[1], |sink| !sink.gone.is_empty());
        assert!(pair.sinks[1].packets.is_empty());
        pair = Pair::meet_with_first(0);
    }
}
