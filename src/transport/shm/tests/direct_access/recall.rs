//! Records that a target has not begun to read, taken back and carried out without it.

use super::*;
use proptest::prelude::*;

pub(super) fn write_header(at: usize) -> Header {
    Header {
        tag: BASE + at as u64,
        data: KEY,
        ..Header::new(Packet::Write, 0)
    }
}

/// Judges writes as the engine does, and notes their addresses.
pub(super) fn judge(header: &Header, len: usize, places: &mut Vec<u64>) -> Recall {
    match header.packet {
        Packet::Write => {
            places.push(header.tag.wrapping_sub(BASE));
            Recall::Write(RemotePart {
                addr: header.tag,
                len,
                key: header.data,
            })
        }
        packet if packet.is_answer() => Recall::Leave,
        _ => Recall::Stop,
    }
}

pub(super) fn recall(end: &mut ShmTransport, to: PeerId) -> Option<usize> {
    end.recall(to, |header, len| judge(header, len, &mut Vec::new()))
}

pub(super) fn kinds(sink: &Kept) -> Vec<Packet> {
    sink.packets.iter().map(|(_, header, _)| header.packet).collect()
}

#[test]
fn what_stands_before_a_message_is_done_and_the_rest_stays() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let credit = Header::new(Packet::Credit, 0);
    push(&mut p.end, p.to, &write_header(0), &[1; 100]);
    push(&mut p.end, p.to, &credit, &[]);
    push(&mut p.end, p.to, &write_header(0), &[2; 8]);
    push(&mut p.end, p.to, &header(5), &body(5));
    push(&mut p.end, p.to, &write_header(0), &[3; 8]);
    assert_eq!(recall(&mut p.end, p.to), Some(2));
    let bytes = [0, 7, 8, 99, 100].map(|at| memory.byte(at).load(Ordering::Relaxed));
    assert_eq!(bytes, [2, 2, 1, 1, 0]);
    // Direct access does not overtake the message either.
    assert!(!copy(&mut p.end, p.to, &part(0, 8), &own(&mut [9; 8]), Access::Write));
    assert_eq!(recall(&mut p.end, p.to), None);
    let mut sink = Kept::default();
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 3);
    assert_eq!(kinds(&sink), [Packet::Credit, Packet::Eager, Packet::Write]);
    assert_eq!(sink.packets[1].2, body(5));
    assert_eq!(recall(&mut p.end, p.to), None, "all has been read");
}

#[test]
fn until_a_read_is_answered_nothing_behind_it_is_done() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut sink = Kept {
        is_to_answer: true,
        ..Kept::default()
    };
    push(&mut p.end, p.to, &Header::new(Packet::Read, 1), &[]);
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 1);
    let write = |p: &mut Pair| copy(&mut p.end, p.to, &part(0, 8), &own(&mut [9; 8]), Access::Write);
    assert!(!write(&mut p));
    push(&mut p.end, p.to, &write_header(0), &[2; 8]);
    assert_eq!(recall(&mut p.end, p.to), None);
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 0);
    // Nor is it read, in another look before the answer.
    p.target.poll(&mut sink, 10);
    assert_eq!(sink.packets.len(), 1);
    p.target.flush();
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 2);
    assert!(write(&mut p));
}

/// Wherever in the ring it stands: also at the beginning, with writes before it at the end of the front, and over
/// those.
#[test]
fn what_stays_leaves_its_room_to_others() {
    for before in 80..140 {
        let memory = Memory::private();
        let mut p = pair(memory.region(Rights::BOTH));
        let mut sink = Kept::default();
        push(&mut p.end, p.to, &header(1), &[1; 2000]);
        poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 1);
        for write in 0..before {
            push(&mut p.end, p.to, &write_header(write), &[2; 8]);
        }
        push(&mut p.end, p.to, &Header::new(Packet::Credit, 0), &[3; 40]);
        assert_eq!(recall(&mut p.end, p.to), Some(before));
        for _ in 0..7 {
            push(&mut p.end, p.to, &header(1), &[4; 8000]);
        }
        poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 9);
        assert_eq!(
            (kinds(&sink)[1], &sink.packets[1].2[..]),
            (Packet::Credit, &[3; 40][..])
        );
    }
}

#[test]
fn while_the_peer_does_not_look_what_is_short_is_copied_at_once() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let short = |p: &mut Pair, byte| copy(&mut p.end, p.to, &part(0, 8), &own(&mut [byte; 8]), Access::Write);
    assert!(!short(&mut p, 1), "nobody knows yet that it does not look");
    push(&mut p.end, p.to, &Header::new(Packet::Credit, 0), &[]);
    push(&mut p.end, p.to, &write_header(8), &[4; 8]);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    assert!(short(&mut p, 2));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 2);
    let mut sink = Kept::default();
    poll_until(&mut p.target, &mut sink, |sink| !sink.packets.is_empty());
    for _ in 0..8 {
        p.target.poll(&mut sink, 64);
    }
    assert!(!short(&mut p, 3), "it looks again");
}

#[test]
fn a_region_that_is_closed_or_counted_is_left_to_its_owner() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::READ));
    push(&mut p.end, p.to, &write_header(0), &[1; 8]);
    assert_ne!(recall(&mut p.end, p.to), Some(1), "no right to write");
    p.regions.remove(KEY).unwrap();
    assert_ne!(recall(&mut p.end, p.to), Some(1), "closed");
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 0);
    let mut sink = Kept::default();
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 1);
}

/// While the target reads and the initiator takes back, each write is done exactly once.
#[test]
fn a_record_is_read_or_taken_back_never_both() {
    const WRITES: u64 = 20_000;
    let memory = Memory::private();
    let p = pair(memory.region(Rights::BOTH));
    let (mut target, mut end, to) = (p.target, p.end, p.to);
    let over = AtomicBool::new(false);
    let (mut taken, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut sink = Kept::default();
            while !over.load(Ordering::Acquire) {
                target.poll(&mut sink, 64);
                if sink.packets.len() % 3 == 0 {
                    std::thread::yield_now();
                }
            }
            while target.poll(&mut sink, 64) > 0 {}
            for _ in 0..100 {
                target.poll(&mut sink, 64);
            }
            sink.packets
        });
        let mut taken = Vec::new();
        for write in 0..WRITES {
            let len = [8, 64, 400][write as usize % 3];
            while end.push(to, &write_header(write as usize), Body::Bytes(&[7; 400][..len]), None) == Push::Full {
                std::thread::yield_now();
            }
            if write % 5 == 0 {
                let mut places = Vec::new();
                let done = end.recall(to, |header, len| judge(header, len, &mut places));
                taken.extend(places.into_iter().take(done.unwrap_or(0)));
            }
        }
        over.store(true, Ordering::Release);
        (taken, reader.join().unwrap())
    });
    let read = read.into_iter().map(|(_, header, _)| header.tag - BASE);
    taken.extend(read);
    taken.sort_unstable();
    assert_eq!(taken, (0..WRITES).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whatever is pushed, read and taken back, over many laps: all that stays arrives, in order and whole.
    #[test]
    fn what_stays_arrives_whole(steps in proptest::collection::vec((0..10u8, 0..8u32), 1..600)) {
        let memory = Memory::private();
        let mut p = pair(memory.region(Rights::BOTH));
        let (mut sink, mut sent, mut id) = (Kept::default(), Vec::new(), 0);
        for (step, kind) in steps {
            match step {
                0..5 => {
                    let bytes = body(kind);
                    if p.end.push(p.to, &write_header(0), Body::Bytes(&bytes), None) == Push::Full {
                        prop_assert!(recall(&mut p.end, p.to).is_some() || !sent.is_empty());
                    }
                }
                5 | 6 => {
                    id += 1;
                    if p.end.push(p.to, &header(id), Body::Bytes(&body(id)), None) == Push::Done {
                        sent.push(id);
                    }
                }
                7 => drop(p.end.push(p.to, &Header::new(Packet::Credit, 0), Body::Empty, None)),
                8 => drop(recall(&mut p.end, p.to)),
                _ => {
                    for _ in 0..10 {
                        p.target.poll(&mut sink, 3);
                    }
                }
            }
        }
        recall(&mut p.end, p.to);
        let eager = |sink: &Kept| kinds(sink).iter().filter(|kind| **kind == Packet::Eager).count();
        poll_until(&mut p.target, &mut sink, |sink| eager(sink) == sent.len());
        sink.packets.retain(|(_, header, _)| header.packet == Packet::Eager);
        for (packet, id) in sink.packets.iter().zip(&sent) {
            assert_whole(packet, *id);
        }
    }
}

/// Writes in the small ring and, behind them, in the large one are taken back up to the first message, and then both
/// sides go on in the large ring.
#[test]
fn a_ring_that_moved_is_taken_back_whole() {
    const WRITES: usize = 20;
    for (read, message) in [(0, None), (3, None), (0, Some(2)), (2, Some(15)), (0, Some(19))] {
        let memory = Memory::private();
        let mut p = pair(memory.region(Rights::BOTH));
        let mut sink = Kept::default();
        for write in 0..WRITES {
            push(&mut p.end, p.to, &write_header(write * 100), &[write as u8 + 1; 100]);
            if write == read {
                poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() > write || read == 0);
            }
            if message == Some(write) {
                push(&mut p.end, p.to, &header(5), &body(5));
            }
        }
        let out = p.end.peers.get(p.to).and_then(|peer| peer.out.as_ref()).unwrap();
        let seen = out.lane.seen().load(Ordering::Acquire);
        assert!(
            out.earlier_ring_end
                .is_some_and(|end| seen < end && end < out.producer.position())
        );
        // What the target has read cannot be taken back, and what is behind a message stays.
        let first = sink.packets.len();
        let last = message.map_or(WRITES, |message| message + 1);
        assert_eq!(recall(&mut p.end, p.to), Some(last - first), "{read} {message:?}");
        for write in 0..WRITES {
            let done = (first..last).contains(&write);
            let byte = memory.byte(write * 100 + 99).load(Ordering::Relaxed);
            assert_eq!(byte, if done { write as u8 + 1 } else { 0 }, "{write}");
        }
        sink.packets.clear();
        let left = (last..WRITES).map(|write| write_header(write * 100).tag);
        let mut expected: Vec<u64> = message.map(|_| header(5).tag).into_iter().chain(left).collect();
        // Laps around the large ring.
        for id in 0..600 {
            while p.end.push(p.to, &header(id), Body::Bytes(&body(id)), None) == Push::Full {
                p.target.poll(&mut sink, 64);
            }
            expected.push(header(id).tag);
        }
        poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == expected.len());
        let tags: Vec<u64> = sink.packets.iter().map(|(_, header, _)| header.tag).collect();
        assert_eq!(tags, expected);
        let laps = sink.packets.len() - 600;
        (0..)
            .zip(&sink.packets[laps..])
            .for_each(|(id, packet)| assert_whole(packet, id));
    }
}

/// The same of a large ring, which the target reads too seldom, and the wide one behind it.
#[test]
fn a_ring_that_became_wide_is_taken_back_whole() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let (mut sink, mut pushed) = (Kept::default(), 0);
    let out = |p: &Pair, is: fn(&Outbound) -> bool| p.end.peers.get(p.to).unwrap().out.as_ref().is_some_and(is);
    while !out(&p, |out| out.lane.is_wide()) {
        match p
            .end
            .push(p.to, &write_header(pushed * 100), Body::Bytes(&[7; 100]), None)
        {
            Push::Done => pushed += 1,
            Push::Full => drop(p.target.poll(&mut sink, 3)),
            other => panic!("{other:?}"),
        }
    }
    for _ in 0..100 {
        push(&mut p.end, p.to, &write_header(pushed * 100), &[7; 100]);
        pushed += 1;
    }
    assert!(out(&p, |out| {
        let seen = out.lane.seen().load(Ordering::Acquire);
        out.earlier_ring_end
            .is_some_and(|end| seen < end && end < out.producer.position())
    }));
    let read = sink.packets.len();
    assert!(read > 0);
    assert_eq!(recall(&mut p.end, p.to), Some(pushed - read));
    for write in 0..pushed {
        let byte = memory.byte(write * 100 + 99).load(Ordering::Relaxed);
        assert_eq!(byte, if write < read { 0 } else { 7 }, "{write}");
    }
    // Laps around the wide ring, of which the target reads little at a time.
    sink.packets.clear();
    for id in 0..5000 {
        while p.end.push(p.to, &header(id), Body::Bytes(&body(id)), None) == Push::Full {
            p.target.poll(&mut sink, 64);
        }
    }
    poll_until(&mut p.target, &mut sink, |sink| sink.packets.len() == 5000);
    (0..)
        .zip(&sink.packets)
        .for_each(|(id, packet)| assert_whole(packet, id));
}

/// A short copy is done when the call returns, even if dual copies are set to begin at one byte.
#[test]
fn what_is_short_is_not_copied_together() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    p.end.config.together = 1;
    let (back, mut sink) = (p.target.peer(b"end").unwrap(), Kept::default());
    push(&mut p.target, back, &Header::new(Packet::Credit, 0), &[]);
    poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 1);
    push(&mut p.end, p.to, &write_header(0), &[4; 8]);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    for (len, number) in [(6000, 0), (60_000, 1)] {
        let mut bytes = vec![5; len];
        assert!(copy(&mut p.end, p.to, &part(0, len), &own(&mut bytes), Access::Write));
        assert_eq!(memory.byte(len - 1).load(Ordering::Relaxed), 5);
        assert_eq!(p.end.peers.get(p.to).unwrap().last_dual_copy, number, "{len}");
    }
}
