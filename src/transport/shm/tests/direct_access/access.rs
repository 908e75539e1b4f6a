//! What is read and written in place or copied by the kernel, and what is left to the target.

use super::*;
use crate::transport::shm::copy_speed::SpeedClass;

#[test]
fn shared_memory_is_read_and_written_in_place() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    for (at, len) in [
        (0, 1),
        (5, 8),
        (4095, 2),
        (65535, 9),
        (100, 200_000),
        (LEN - 3, 3),
        (LEN, 0),
    ] {
        let mut bytes: Vec<u8> = (0..len).map(|byte| (byte * 7 + at) as u8 | 1).collect();
        assert!(write(&mut p.end, p.to, &part(at, len), &mut bytes), "{at} {len}");
        assert!(
            (0..len).all(|byte| memory.byte(at + byte).load(Ordering::Relaxed) == bytes[byte]),
            "{at} {len}"
        );
        let mut back = vec![0; len];
        assert!(read(&mut p.end, p.to, &part(at, len), &mut back));
        assert!(back == bytes);
    }
}

#[test]
fn private_memory_is_copied_by_the_kernel_if_that_pays() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut bytes: Vec<u8> = (0..200_000).map(|at| at as u8).collect();
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    let least = p.end.config.bulk;
    assert!(!copy(
        &mut p.end,
        p.to,
        &part(0, least),
        &own(&mut bytes[..least]),
        Access::Write
    ));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 0);
    // What fits a packet just so is, too, where the target copies slowly.
    let lane = &p.end.peers.get(p.to).unwrap().out.as_ref().unwrap().lane;
    lane.ring_speed().store(SpeedClass::Slow as u64, Ordering::Relaxed);
    for len in [least, 200_000] {
        let at = LEN - len;
        assert!(copy(
            &mut p.end,
            p.to,
            &part(at, len),
            &own(&mut bytes[..len]),
            Access::Write
        ));
        assert!((0..len).all(|byte| memory.byte(at + byte).load(Ordering::Relaxed) == byte as u8));
        if len == least {
            continue; // how we copy what is read is not known yet
        }
        // Ours in pieces.
        let mut back = vec![0; len];
        let (first, second) = back.split_at_mut(len / 3);
        let local = UserIov::new([own(first), own(second)].iter().flat_map(|iov| iov.parts()).copied()).unwrap();
        assert!(copy(&mut p.end, p.to, &part(at, len), &local, Access::Read));
        assert!(back == bytes[..len]);
    }
    p.end.config.fetch = false;
    assert!(!copy(
        &mut p.end,
        p.to,
        &part(0, 200_000),
        &own(&mut bytes),
        Access::Write
    ));
}

#[test]
fn the_kernel_waits_for_what_is_being_read() {
    let memory = Memory::private();
    let p = pair(memory.region(Rights::BOTH));
    let (mut end, mut target, to) = (p.end, p.target, p.to);
    assert!(!write(&mut end, to, &part(0, 8), &mut [1; 8]));
    let mut bytes = vec![3; end.config.bulk];
    let whole = part(0, bytes.len());
    push(&mut end, to, &header(1), &[]);
    let lane = &end.peers.get(to).unwrap().out.as_ref().unwrap().lane;
    lane.ring_speed().store(SpeedClass::Slow as u64, Ordering::Relaxed);
    assert!(!copy(&mut end, to, &whole, &own(&mut bytes), Access::Write));
    let out = end.peers.get_mut(to).unwrap().out.as_mut().unwrap();
    assert_eq!(out.choice.not_waited, 64, "it has waited, and nobody has read");
    let is_waiting = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_waiting.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            poll_until(&mut target, &mut Kept::default(), |sink| !sink.packets.is_empty());
        });
        is_waiting.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while !out.wait_until_read(Access::Write) {
            out.choice.not_waited = 0;
            assert!(start.elapsed() < PATIENCE, "never");
        }
    });
    assert!(copy(&mut end, to, &whole, &own(&mut bytes), Access::Write));
    assert_eq!(memory.byte(0).load(Ordering::Relaxed), 3);
}

/// Each of these is for the target to answer.
#[test]
fn what_is_not_allowed_is_not_done() {
    for memory in [Memory::shared(), Memory::private()] {
        let rows = [
            (Rights::READ, part(0, 20_000), Access::Write),
            (Rights::WRITE, part(0, 20_000), Access::Read),
            (Rights::BOTH, part(LEN - 19_999, 20_000), Access::Write),
            (Rights::BOTH, part(LEN + 1, 20_000), Access::Read),
            (
                Rights::BOTH,
                RemotePart {
                    addr: BASE - 1,
                    ..part(0, 20_000)
                },
                Access::Write,
            ),
            (
                Rights::BOTH,
                RemotePart {
                    addr: u64::MAX,
                    ..part(0, 20_000)
                },
                Access::Write,
            ),
            (
                Rights::BOTH,
                RemotePart {
                    key: KEY + 1,
                    ..part(0, 20_000)
                },
                Access::Read,
            ),
        ];
        for (rights, part, access) in rows {
            let mut p = pair(memory.region(rights));
            let mut bytes = vec![9; 20_000];
            let reached = match access {
                Access::Read => read(&mut p.end, p.to, &part, &mut bytes),
                Access::Write => write(&mut p.end, p.to, &part, &mut bytes),
            };
            assert!(
                !reached && !copy(&mut p.end, p.to, &part, &own(&mut bytes), access),
                "{part:?}"
            );
            assert!(bytes.iter().all(|byte| *byte == 9));
            assert!((0..LEN).all(|at| memory.byte(at).load(Ordering::Relaxed) == 0));
        }
    }
}

/// A region that was used before is still held to its bounds and rights.
#[test]
fn what_was_used_allows_no_more() {
    let memory = Memory::shared();
    let kinds = [Rights::READ, Rights::WRITE, Rights::BOTH];
    for rights in kinds {
        let mut p = pair(memory.region(rights));
        for _ in 0..2 {
            for wanted in kinds {
                let mut reach = |part: RemotePart| p.end.reach(p.to, &part, wanted, |memory| memory.len());
                for (at, len) in [(0, 8), (65_530, 12), (LEN - 8, 8), (100, 0), (LEN, 0), (0, LEN)] {
                    let reached = rights.allow(wanted).then_some(len);
                    assert_eq!(reach(part(at, len)), reached, "{rights:?} {wanted:?} {at} {len}");
                }
                let outside = |back: u64, len| RemotePart {
                    addr: BASE.wrapping_sub(back),
                    ..part(0, len)
                };
                for part in [
                    part(LEN - 8, 9),
                    part(LEN + 1, 0),
                    part(8, usize::MAX),
                    outside(1, 1),
                    outside(1, 0),
                    outside(BASE, 0),
                    outside(BASE + 1, 0),
                ] {
                    assert_eq!(reach(part), None, "{rights:?} {wanted:?} {part:?}");
                }
            }
        }
    }
}

#[test]
fn a_file_of_regions_has_room_for_many() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    let keys = 1000..1000 + layout::MAX_ENTRIES as u64;
    for key in keys.clone() {
        assert!(p.regions.add(memory.region(Rights::BOTH), key).is_some());
    }
    let mut write = |key| write(&mut p.end, p.to, &RemotePart { key, ..part(3, 1) }, &mut [1]);
    assert!(write(1000) && write(keys.end - 2) && write(KEY));
    assert!(!write(keys.end - 1), "the table is full");
    p.regions.remove(1000).unwrap();
    assert!(!write(1000));
    p.regions.add(memory.region(Rights::BOTH), 5).unwrap();
    assert!(write(5));
}

/// Direct access does not overtake packets: it is refused until the target has polled.
#[test]
fn nothing_passes_what_was_sent() {
    let memory = Memory::shared();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut kept = Kept::default();
    for round in 0..600 {
        assert!(write(&mut p.end, p.to, &part(0, 1), &mut [1]));
        push_all(&mut p.end, p.to, round..round + 1, &mut Kept::default());
        assert!(!write(&mut p.end, p.to, &part(0, 1), &mut [2]));
        assert!(!copy(
            &mut p.end,
            p.to,
            &part(0, 20_000),
            &own(&mut vec![2; 20_000]),
            Access::Write
        ));
        poll_until(&mut p.target, &mut kept, |kept| kept.packets.len() as u32 > round);
        assert_eq!(memory.byte(0).load(Ordering::Relaxed), 1);
    }
}

/// Much memory is registered for one long operation, which goes another way before it is looked whether the memory can be
/// mapped.
#[test]
fn a_region_is_mapped_for_a_short_use_or_the_second() {
    for (len, mapped) in [(8, true), (MAX_BODY - 1, true), (MAX_BODY, false)] {
        let memory = Memory::shared();
        let mut p = pair(memory.region(Rights::BOTH));
        let mut bytes = vec![7; len];
        assert_eq!(write(&mut p.end, p.to, &part(0, len), &mut bytes), mapped, "{len}");
        assert!(write(&mut p.end, p.to, &part(0, len), &mut bytes), "{len}");
        assert_eq!(memory.byte(len - 1).load(Ordering::Relaxed), 7);
    }
}

/// Reads that the target has not read yet, in its ring or as a turn, are passed by reads, and by nothing else; where reads
/// keep their order, by nothing.
#[test]
fn reads_pass_reads() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let mut bytes = vec![3; 20_000];
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    let mut done = |end: &mut ShmTransport, access| {
        end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap().choice.not_waited = 9;
        copy(end, p.to, &part(0, 20_000), &own(&mut bytes), access)
    };
    let ask = |end: &mut ShmTransport| push(end, p.to, &Header::new(Packet::Read, 1), &[]);
    let lane = &p.end.peers.get(p.to).unwrap().out.as_ref().unwrap().lane;
    lane.ring_speed().store(SpeedClass::Slow as u64, Ordering::Relaxed);
    assert!(done(&mut p.end, Access::Write));
    for read in 0..2 {
        for _ in 0..=read {
            ask(&mut p.end);
            p.end.reads_pass = false;
            assert!(!done(&mut p.end, Access::Read) && !done(&mut p.end, Access::Write));
            p.end.let_reads_pass();
            assert!(done(&mut p.end, Access::Read) && !done(&mut p.end, Access::Write));
        }
        push(&mut p.end, p.to, &header(1), &body(1));
        assert!(!done(&mut p.end, Access::Read), "a message comes first");
        ask(&mut p.end);
        assert!(!done(&mut p.end, Access::Read), "still");
        poll_until(&mut p.target, &mut Kept::default(), |kept| {
            kept.packets.len() == read + 3
        });
        assert!(done(&mut p.end, Access::Write));
    }
}

/// What answers the target's own operations has no order with ours, so that it need not be read before.
#[test]
fn answers_are_passed() {
    for (memory, len) in [(Memory::shared(), 8), (Memory::private(), 100_000)] {
        let mut p = pair(memory.region(Rights::BOTH));
        let mut bytes = vec![3; len];
        let mut done = |end: &mut ShmTransport| match memory.file {
            Some(_) => write(end, p.to, &part(0, len), &mut bytes),
            None => copy(end, p.to, &part(0, len), &own(&mut bytes), Access::Write),
        };
        for answer in [
            Packet::Request,
            Packet::Done,
            Packet::Credit,
            Packet::Got,
            Packet::Acked,
            Packet::Reply,
            Packet::Exposed,
        ] {
            push(&mut p.end, p.to, &Header::new(answer, 1), &[4; 40]);
            assert!(done(&mut p.end), "{answer:?}");
        }
        push(&mut p.end, p.to, &header(1), &body(1));
        push(&mut p.end, p.to, &Header::new(Packet::Done, 1), &[]);
        assert!(!done(&mut p.end), "a message comes first");
        poll_until(&mut p.target, &mut Kept::default(), |kept| kept.packets.len() == 9);
        assert!(done(&mut p.end));
    }
}

/// The target does nothing but wait for a byte, from before the first operation to after the last.
#[test]
fn a_target_that_does_nothing_is_reached() {
    for (memory, len) in [
        (Memory::shared(), 8),
        (Memory::shared(), 100_000),
        (Memory::private(), 100_000),
    ] {
        let dir = Dir::new();
        let (mut from_parent, mut to_child) = std::io::pipe().unwrap();
        let (mut from_child, mut to_parent) = std::io::pipe().unwrap();
        let child = Child::run(|| {
            let regions = Arc::new(Regions::new(false, true));
            regions.add(memory.region(Rights::BOTH), KEY).unwrap();
            let mut target = dir.open("target");
            target.publish_regions(&regions, 1);
            memory.byte(5).store(5, Ordering::Relaxed);
            to_parent.write_all(&[1]).unwrap();
            let mut byte = [0];
            from_parent.read_exact(&mut byte).unwrap();
            assert!((100..100 + len).all(|at| memory.byte(at).load(Ordering::Relaxed) == 7));
            regions.remove(KEY).unwrap();
            to_parent.write_all(&[2]).unwrap();
            from_parent.read_exact(&mut byte).unwrap();
            assert!((100..100 + len).all(|at| memory.byte(at).load(Ordering::Relaxed) == 7));
        });
        let mut end = dir.open("end");
        let to = end.peer(b"target").unwrap();
        let mut byte = [0];
        from_child.read_exact(&mut byte).unwrap();
        let (mut seven, mut back) = (vec![7; len], vec![0; len]);
        let done = |end: &mut ShmTransport, at: usize, bytes: &mut [u8], access| match access {
            _ if memory.file.is_none() => copy(end, to, &part(at, len), &own(bytes), access),
            Access::Read => read(end, to, &part(at, len), bytes),
            Access::Write => write(end, to, &part(at, len), bytes),
        };
        if memory.file.is_some() {
            assert!(read(&mut end, to, &part(0, 8), &mut [0; 8]));
        }
        assert!(done(&mut end, 0, &mut back, Access::Read));
        assert_eq!(back[5], 5);
        assert!(done(&mut end, 100, &mut seven, Access::Write));
        to_child.write_all(&[1]).unwrap();
        from_child.read_exact(&mut byte).unwrap();
        // It is closed now.
        assert!(!done(&mut end, 100, &mut back, Access::Write));
        to_child.write_all(&[1]).unwrap();
        assert_eq!(child.wait(), 0);
    }
}

/// Several pieces, in regions of their own, are all reached or none.
#[test]
fn several_pieces_are_all_reached_or_none() {
    let (memory, other) = (Memory::shared(), Memory::shared());
    let mut p = pair(memory.region(Rights::BOTH));
    let (second, private, read_only) = (KEY + 1, KEY + 2, KEY + 3);
    let alone = Memory::private();
    p.regions.add(other.region(Rights::BOTH), second);
    p.regions.add(alone.region(Rights::BOTH), private);
    p.regions.add(other.region(Rights::READ), read_only);
    let with = |key, at, len| RemotePart { key, ..part(at, len) };
    let reach = |p: &mut Pair, parts: &[RemotePart], bytes: &[u8]| {
        let done = p
            .end
            .reach_all(p.to, parts, Rights::WRITE, |pieces| pieces.write(0, bytes));
        done.is_some_and(|written| written == bytes.len())
    };
    let all = [
        part(7, 3),
        with(second, 0, 2),
        part(70_000, 4),
        with(second, LEN - 1, 1),
    ];
    assert!(reach(&mut p, &all, b"abcdefghij"));
    let seen = |memory: &Memory, at: usize, len: usize| -> Vec<u8> {
        (at..at + len)
            .map(|at| memory.byte(at).load(Ordering::Relaxed))
            .collect()
    };
    let now = || {
        [
            seen(&memory, 7, 3),
            seen(&other, 0, 2),
            seen(&memory, 70_000, 4),
            seen(&other, LEN - 1, 1),
        ]
        .concat()
    };
    assert_eq!(now(), b"abcdefghij");
    for bad in [
        with(private, 0, 1),
        with(read_only, 0, 1),
        with(second, LEN, 1),
        with(99, 0, 1),
    ] {
        for at in 0..3 {
            let mut parts = all;
            parts[at] = bad;
            assert!(!reach(&mut p, &parts, b"0123456789"), "{bad:?}");
            assert_eq!(now(), b"abcdefghij");
        }
    }
    p.regions.remove(second).unwrap();
    assert!(!reach(&mut p, &all, b"0123456789"));
    assert!(reach(&mut p, &[part(7, 3), part(70_000, 4)], b"0123456"));
    assert_eq!(now(), b"012de3456j");
    // The key names another region from here on.
    p.regions.add(other.region(Rights::BOTH), second);
    assert!(reach(&mut p, &all, b"ABCDEFGHIJ"));
    assert_eq!(now(), b"ABCDEFGHIJ");
}
