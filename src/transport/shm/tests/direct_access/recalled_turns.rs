//! Turns of the dialogue that a target has not begun to read, taken back and carried out without it.

use super::recall::{judge, kinds, recall, write_header};
use super::*;
use crate::transport::shm::dialogue::{BegunBy, LONGEST_TURN};
use crate::transport::shm::lane::DIALOGUE_AT;
use proptest::prelude::*;

/// A target and an initiator that have met, and the next turn is the initiator's.
pub(super) fn pair_with_turn(memory: &Memory) -> (Pair, PeerId) {
    let mut p = pair(memory.region(Rights::BOTH));
    let (back, mut sink) = (p.target.peer(b"end").unwrap(), Kept::default());
    push(&mut p.end, p.to, &Header::new(Packet::Credit, 0), &[]);
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 1);
    // Whoever has the first turn: the next is this side's.
    push(&mut p.target, back, &header(1), &body(1));
    poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 2);
    (p, back)
}

/// The same, and there is room for long bodies.
pub(super) fn pair_with_room(memory: &Memory) -> (Pair, PeerId) {
    let (mut p, back) = pair_with_turn(memory);
    let mut sink = Kept::default();
    // A large ring has the room, in whichever lane it is.
    for (from, to) in [(&mut p.end, p.to), (&mut p.target, back)] {
        push(from, to, &header(1), &[4; 4000]);
        push(from, to, &header(1), &[4; 4000]);
    }
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 2);
    poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 4);
    if !out(&p).may_say(MAX_BODY) {
        push(&mut p.target, back, &header(1), &[]);
        poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 5);
    }
    (p, back)
}

pub(super) fn out(p: &Pair) -> &Outbound {
    p.end.peers.get(p.to).unwrap().out.as_ref().unwrap()
}

/// Pushes a packet that is to be the next turn, or not.
pub(super) fn push_said(p: &mut Pair, header: &Header, body: &[u8], is_said: bool) {
    let turns = out(p).turns();
    push(&mut p.end, p.to, header, body);
    assert_eq!(out(p).turns(), turns + u64::from(is_said), "{header:?}");
}

pub(super) fn bytes<const N: usize>(memory: &Memory, at: [usize; N]) -> [u8; N] {
    at.map(|at| memory.byte(at).load(Ordering::Relaxed))
}

/// A message that is said stops what comes behind it, as one in the ring does, and what is in the ring stays there.
#[test]
fn what_stands_before_a_message_is_done_and_the_rest_stays() {
    let memory = Memory::private();
    let (mut p, _) = pair_with_turn(&memory);
    let mut sink = Kept::default();
    let credit = Header::new(Packet::Credit, 0);
    push_said(&mut p, &credit, &[], false);
    push_said(&mut p, &write_header(0), &[1; 8], false);
    p.end.poll(&mut sink, 1);
    push_said(&mut p, &header(1), &body(1), true);
    push_said(&mut p, &credit, &[], false);
    push_said(&mut p, &write_header(100), &[2; 8], false);
    // Of all that is unread the engine is asked, in order, as it counts by that what is still to be acknowledged.
    let mut judged = Vec::new();
    let done = p.end.recall(p.to, |header, len| {
        judged.push(header.packet);
        judge(header, len, &mut Vec::new())
    });
    assert_eq!(done, Some(1));
    use Packet::{Credit, Eager, Write};
    assert_eq!(judged, [Credit, Write, Eager, Credit, Write]);
    assert_eq!(bytes(&memory, [0, 100]), [1, 0]);
    assert!(!copy(&mut p.end, p.to, &part(0, 8), &own(&mut [9; 8]), Access::Write));
    assert_eq!(recall(&mut p.end, p.to), None);
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 4);
    assert_eq!(kinds(&sink), [Credit, Eager, Credit, Write]);
    assert_whole(&sink.packets[1], 1);
    assert!(out(&p).may_go_ahead());
}

/// Writes of one line, of several, and of as many as there is room for.
#[test]
fn a_write_that_was_said_is_taken_back_and_the_next_turn_is_still_ours() {
    for len in [8, 200, 300, MAX_BODY, MAX_WRITE] {
        let memory = Memory::private();
        let (mut p, back) = match len {
            ..=320 => pair_with_turn(&memory),
            _ => pair_with_room(&memory),
        };
        let mut sink = Kept::default();
        push_said(&mut p, &write_header(0), &vec![3; len], true);
        let turns = out(&p).turns();
        push_said(&mut p, &write_header(len), &[5; 8], false);
        assert_eq!(recall(&mut p.end, p.to), Some(2), "{len}");
        assert_eq!(bytes(&memory, [0, len - 1, len, len + 8]), [3, 3, 5, 0]);
        assert_eq!(out(&p).turns(), turns - 1);
        assert!(out(&p).may_go_ahead(), "nothing is left to be overtaken");
        p.end.poll(&mut sink, 1);
        push_said(&mut p, &header(2), &body(2), true);
        poll_until(&mut p.target, &mut sink, |sink| !sink.packets.is_empty());
        assert_eq!(kinds(&sink), [Packet::Eager]);
        assert_whole(&sink.packets[0], 2);
        push(&mut p.target, back, &header(3), &body(3));
        poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 2);
        assert_whole(&sink.packets[1], 3);
    }
}

#[test]
fn a_read_that_was_said_is_taken_back() {
    for len in [8, LONGEST_TURN] {
        let memory = Memory::private();
        let (mut p, _) = pair_with_turn(&memory);
        memory.byte(len - 3).store(7, Ordering::Relaxed);
        let ask = Header {
            total: len as u64,
            ..Header::new(Packet::Read, 1)
        };
        push_said(&mut p, &ask, &[], true);
        let mut into = vec![0; len];
        let local = own(&mut into);
        let done = p.end.recall(p.to, |header, _| {
            assert_eq!(header.packet, Packet::Read);
            Recall::Read(part(0, len), local)
        });
        assert_eq!((done, into[len - 3]), (Some(1), 7));
        let mut sink = Kept::default();
        for _ in 0..20 {
            p.target.poll(&mut sink, 64);
        }
        assert_eq!(kinds(&sink), [], "the target does not hear of it");
    }
}

/// The target has passed the turn before a record, and refused the record: what is said in its place comes before what
/// follows.
#[test]
fn what_is_said_where_a_refused_record_was_taken_back_is_heard_in_order() {
    let memory = Memory::private();
    let (mut p, back) = pair_with_turn(&memory);
    let (mut at_target, mut at_end) = (Kept::default(), Kept::default());
    push_said(&mut p, &header(1), &body(1), true);
    push_said(&mut p, &write_header(0), &[1; 8], false);
    assert_eq!(p.target.poll(&mut at_target, 1), 1);
    at_target.refuse = true;
    assert_eq!(p.target.poll(&mut at_target, 64), 0);
    at_target.refuse = false;
    push(&mut p.target, back, &header(2), &body(2));
    poll_until(&mut p.end, &mut at_end, |sink| sink.packets.len() == 1);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    p.end.poll(&mut at_end, 64);
    push_said(&mut p, &header(3), &body(3), true);
    push_said(&mut p, &header(4), &body(4), false);
    poll_until(&mut p.target, &mut at_target, |sink| sink.packets.len() == 3);
    for (packet, id) in at_target.packets.iter().zip([1, 3, 4]) {
        assert_whole(packet, id);
    }
}

/// A write of several parts, each of so many bytes.
pub(super) fn say_parts(p: &mut Pair, parts: usize, len: usize) {
    for part in 0..parts {
        let header = Header {
            total: ((parts - 1 - part) * len) as u64,
            ..write_header(part * len)
        };
        push(&mut p.end, p.to, &header, &vec![part as u8 + 1; len]);
        assert_eq!(out(p).is_speaking(), part + 1 < parts, "{part}");
    }
}

/// Of which the target has read none, some or all but one: the others are done without it, and what is said next goes
/// on there.
#[test]
fn parts_that_were_not_read_are_taken_back() {
    for (parts, len) in [(2, MAX_WRITE), (8, MAX_WRITE), (16, MAX_BODY), (3, 200), (3, 8)] {
        for read in 0..parts {
            let memory = Memory::private();
            let (mut p, back) = pair_with_room(&memory);
            let (mut at_target, mut at_end) = (Kept::default(), Kept::default());
            p.end.poll(&mut at_end, 64);
            say_parts(&mut p, parts, len);
            for _ in 0..read {
                assert_eq!(p.target.poll(&mut at_target, 1), 1);
            }
            assert_eq!(
                recall(&mut p.end, p.to),
                Some(parts - read),
                "{parts} of {len}, {read} read"
            );
            for part in 0..parts {
                let is_done = memory.byte(part * len).load(Ordering::Relaxed) == part as u8 + 1;
                assert_eq!(is_done, part >= read, "{part} of {parts}, {read} read");
            }
            assert!(out(&p).may_go_ahead() && out(&p).may_say(8), "{parts} {read}");
            assert_eq!(out(&p).is_speaking(), read > 0);
            // The turn is still ours, and goes over to the target with what comes next.
            p.end.poll(&mut at_end, 64);
            push_said(&mut p, &header(2), &body(2), true);
            poll_until(&mut p.target, &mut at_target, |sink| sink.packets.len() == read + 1);
            assert_whole(&at_target.packets[read], 2);
            assert!(out(&p).is_heard());
            push(&mut p.target, back, &header(3), &body(3));
            poll_until(&mut p.end, &mut at_end, |sink| !sink.packets.is_empty());
            assert!(out(&p).may_say(8));
        }
    }
}

/// Those before it are done, and the target goes over them.
#[test]
fn a_part_that_cannot_be_carried_out_stays_with_all_behind_it() {
    let memory = Memory::private();
    let (mut p, _) = pair_with_room(&memory);
    p.end.poll(&mut Kept::default(), 64);
    say_parts(&mut p, 4, MAX_WRITE);
    let mut parts = 0;
    let done = p.end.recall(p.to, |header, len| {
        parts += 1;
        match parts {
            3 => Recall::Stop,
            _ => judge(header, len, &mut Vec::new()),
        }
    });
    assert_eq!((done, parts), (Some(2), 4));
    assert_eq!(bytes(&memory, [0, MAX_WRITE, 2 * MAX_WRITE]), [1, 2, 0]);
    assert!(!out(&p).may_go_ahead());
    // Another time those that stay are no hindrance to what may be done now.
    let done = p.end.recall(p.to, |header, len| match header.tag - BASE {
        at if at == 3 * MAX_WRITE as u64 => Recall::Stop,
        _ => judge(header, len, &mut Vec::new()),
    });
    assert_eq!((done, bytes(&memory, [2 * MAX_WRITE])), (Some(1), [3]));
    let mut sink = Kept::default();
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 1);
    assert_eq!(sink.packets[0].1.tag, write_header(3 * MAX_WRITE).tag);
    assert!(out(&p).may_go_ahead());
}

/// Where a turn goes on that was taken back in part, its next part stands behind what went through the ring meanwhile.
#[test]
fn a_part_is_not_done_before_what_was_pushed_before_it() {
    let memory = Memory::private();
    let (mut p, _) = pair_with_room(&memory);
    let mut sink = Kept::default();
    p.end.poll(&mut sink, 64);
    say_parts(&mut p, 2, MAX_WRITE);
    assert_eq!(p.target.poll(&mut sink, 1), 1);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    push(&mut p.end, p.to, &Header::new(Packet::Rendezvous, 1), &[]);
    assert!(out(&p).is_speaking());
    push(&mut p.end, p.to, &write_header(0), &[9; 8]);
    assert!(!out(&p).is_speaking());
    assert_eq!(recall(&mut p.end, p.to), None);
    assert_eq!(bytes(&memory, [0]), [0]);
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 3);
    assert_eq!(kinds(&sink)[1..], [Packet::Rendezvous, Packet::Write]);
}

/// The rest goes through the ring, and the next turn is the target's.
#[test]
fn a_write_that_is_longer_than_the_room_does_not_leave_its_turn_open() {
    for (parts, len, said) in [(10, MAX_WRITE, 8), (18, MAX_BODY, 16)] {
        let memory = Memory::private();
        let (mut p, back) = pair_with_room(&memory);
        p.end.poll(&mut Kept::default(), 64);
        let turns = out(&p).turns();
        for part in 0..parts {
            let header = Header {
                total: ((parts - 1 - part) * len) as u64,
                ..write_header(part * len)
            };
            push(&mut p.end, p.to, &header, &vec![1; len]);
            assert_eq!(out(&p).is_speaking(), part + 1 < said, "{part} of {len}");
        }
        assert_eq!(out(&p).turns(), turns + 1);
        let mut sink = Kept::default();
        poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == parts);
        let at = sink.packets.iter().map(|(_, header, _)| header.tag);
        assert!(at.eq((0..parts).map(|part| write_header(part * len).tag)));
        push(&mut p.target, back, &header(3), &body(3));
        poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == parts + 1);
        assert!(out(&p).may_say(MAX_WRITE));
    }
}

/// One that cannot be done without the target is left to it, and so is all behind it.
#[test]
fn a_turn_that_cannot_be_carried_out_stays() {
    let memory = Memory::private();
    let (mut p, _) = pair_with_turn(&memory);
    push_said(&mut p, &write_header(LEN), &[1; 8], true);
    push_said(&mut p, &write_header(0), &[2; 8], false);
    assert_eq!(recall(&mut p.end, p.to), Some(0));
    assert_eq!(bytes(&memory, [0]), [0]);
    let mut sink = Kept::default();
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 2);
    assert_eq!(
        sink.packets.iter().map(|(_, header, _)| header.tag).collect::<Vec<_>>(),
        [write_header(LEN).tag, write_header(0).tag]
    );
}

/// Its lines are the peer's to write as well: whatever it has put there, what is done is within its region.
#[test]
fn a_turn_that_the_peer_has_written_over_does_no_harm() {
    let words = DIALOGUE_AT / 8..DIALOGUE_AT / 8 + 12;
    for (word, value) in
        words.flat_map(|word| [0, 5, 0x2000, 0x4000, 0xffff, 7 << 15, 1 << 19, 1 << 40, !0].map(|value| (word, value)))
    {
        let memory = Memory::private();
        let (mut p, back) = pair_with_turn(&memory);
        push_said(&mut p, &write_header(100), &[1; 200], true);
        let theirs = p.target.peers.get(back).unwrap().out.as_ref().unwrap();
        let in_lane_of = match out(&p).last_said() {
            BegunBy::Us => out(&p),
            BegunBy::Peer => theirs,
        };
        in_lane_of.lane.set_word(word, value);
        let done = recall(&mut p.end, p.to);
        let written = (0..LEN)
            .filter(|at| memory.byte(*at).load(Ordering::Relaxed) != 0)
            .count();
        assert!(
            written <= if done == Some(1) { 320 } else { 0 },
            "{word} {value:x}: {done:?} {written}"
        );
        let mut sink = Kept::default();
        for _ in 0..20 {
            p.target.poll(&mut sink, 64);
            p.end.poll(&mut sink, 64);
        }
    }
}

/// While the target reads, and passes the turn back now and then, each write is done exactly once.
#[test]
fn a_turn_is_read_or_taken_back_never_both() {
    const WRITES: u64 = 20_000;
    let memory = Memory::private();
    let (p, back) = pair_with_room(&memory);
    let (mut target, mut end, to) = (p.target, p.end, p.to);
    let over = AtomicBool::new(false);
    let (mut taken, said, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut sink = Kept::default();
            while !over.load(Ordering::Acquire) {
                if target.poll(&mut sink, 64) > 0 {
                    let _ = target.push(back, &Header::new(Packet::Acked, 0), Body::Empty, None);
                }
                if sink.packets.len() % 3 == 0 {
                    std::thread::yield_now();
                }
            }
            for _ in 0..100 {
                while target.poll(&mut sink, 64) > 0 {}
            }
            sink.packets
        });
        let (mut taken, mut said, mut sink) = (Vec::new(), 0, Kept::default());
        let turns = |end: &ShmTransport| end.peers.get(to).unwrap().out.as_ref().unwrap().turns();
        for write in 0..WRITES {
            end.poll(&mut sink, 64);
            let before = turns(&end);
            let len = [8, 64, 300][write as usize % 3];
            // Some go on, so that the next may be another part.
            let header = Header {
                total: u64::from(write % 7 < 4),
                ..write_header(write as usize)
            };
            while end.push(to, &header, Body::Bytes(&[7; 300][..len]), None) == Push::Full {
                std::thread::yield_now();
            }
            said += u64::from(turns(&end) != before);
            if write % 5 == 0 {
                let mut places = Vec::new();
                let done = end.recall(to, |header, len| judge(header, len, &mut places));
                taken.extend(places.into_iter().take(done.unwrap_or(0)));
            }
        }
        over.store(true, Ordering::Release);
        (taken, said, reader.join().unwrap())
    });
    assert!(said > 0, "none was said");
    let read = read.into_iter().map(|(_, header, _)| header.tag - BASE);
    taken.extend(read);
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..WRITES));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whatever the two say and push, read and take back: all that stays arrives, in order and whole.
    #[test]
    fn what_stays_arrives_whole(steps in proptest::collection::vec((0..12u8, 0..8u32), 1..600)) {
        let memory = Memory::private();
        let (mut p, back) = pair_with_room(&memory);
        let (mut sinks, mut sent, mut id) = ([Kept::default(), Kept::default()], [vec![], vec![]], 0);
        for (step, kind) in steps {
            id += 1;
            match step {
                0..4 => {
                    let header = Header {
                        total: u64::from(kind % 3),
                        ..write_header(0)
                    };
                    let _ = p.end.push(p.to, &header, Body::Bytes(&body(kind)), None);
                }
                4 => {
                    if p.end.push(p.to, &header(id), Body::Bytes(&body(id)), None) == Push::Done {
                        sent[0].push(id);
                    }
                }
                5 | 6 => {
                    if p.target.push(back, &header(id), Body::Bytes(&body(id)), None) == Push::Done {
                        sent[1].push(id);
                    }
                }
                7 => drop(p.end.push(p.to, &Header::new(Packet::Reply, 0), Body::Empty, None)),
                8 => drop(recall(&mut p.end, p.to)),
                9 => {
                    // Some packets are refused at first.
                    sinks[0].refuse = kind == 0;
                    p.target.poll(&mut sinks[0], 3);
                    sinks[0].refuse = false;
                }
                _ => drop(p.end.poll(&mut sinks[1], 3)),
            }
        }
        recall(&mut p.end, p.to);
        let eager = |sink: &Kept| kinds(sink).iter().filter(|kind| **kind == Packet::Eager).count();
        poll_until(&mut p.target, &mut sinks[0], |sink| eager(sink) == sent[0].len());
        poll_until(&mut p.end, &mut sinks[1], |sink| eager(sink) == sent[1].len());
        for (sink, sent) in sinks.iter_mut().zip(&sent) {
            sink.packets.retain(|(_, header, _)| header.packet == Packet::Eager);
            for (packet, id) in sink.packets.iter().zip(sent) {
                assert_whole(packet, *id);
            }
        }
    }
}
