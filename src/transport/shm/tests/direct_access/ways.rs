//! Which way reads and writes of private memory go: by the ring, by turns or by the kernel.

use super::recall::{recall, write_header};
use super::recalled_turns::{out, pair_with_room};
use super::*;
use crate::transport::shm::config::{MAX_IN_RING, MAX_READ, MAX_WRITE, MAX_WRITTEN};
use crate::transport::shm::copy_speed::SpeedClass;
use crate::transport::shm::dialogue::LONGEST_TURN;
use crate::transport::shm::inbound::Inbound;
use crate::transport::shm::ring_or_kernel::SPARED;

#[test]
fn private_memory_goes_in_packets_where_the_ring_is_quicker() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    p.end.config.stream = true;
    let bulk = p.end.config.bulk;
    let rows = [
        (SpeedClass::Unknown, MAX_WRITTEN),
        (SpeedClass::Slow, bulk - 1),
        (SpeedClass::BeatsFetchOf16K, MAX_WRITE),
        (SpeedClass::BeatsFetchOf32K, MAX_IN_RING),
        (SpeedClass::BeatsDualCopy, MAX_WRITTEN),
    ];
    for (copies, most) in rows {
        slow_writes(&mut p);
        let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
        out.lane.ring_speed().store(copies as u64, Ordering::Relaxed);
        out.choice.seen_polling = 100;
        for len in [
            8,
            bulk - 1,
            bulk,
            MAX_BODY + 1,
            MAX_WRITE,
            MAX_WRITE + 1,
            MAX_IN_RING,
            MAX_IN_RING + 1,
            MAX_READ,
            MAX_READ + 1,
            MAX_WRITTEN,
            MAX_WRITTEN + 1,
        ] {
            let sent = p.end.is_better_sent(p.to, Access::Write, len);
            assert_eq!(sent, len <= most, "{copies:?} {len}");
            // Nothing that is read has come from there yet.
            p.end.polls += 1;
            assert_eq!(p.end.is_better_sent(p.to, Access::Read, len), len <= MAX_READ);
        }
    }
}

/// The kernel has taken half as long again as usual for our writes.
fn slow_writes(p: &mut Pair) {
    let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
    (0..2).for_each(|_| out.choice.kernel_writes.took(MAX_WRITE, Duration::from_nanos(3228)));
}

/// Until it is known how long the kernel takes, and where it keeps its usual pace, longer writes go by it than reads.
#[test]
fn long_writes_go_in_packets_where_the_kernel_takes_longer() {
    let memory = Memory::private();
    let (mut p, _) = pair_with_room(&memory);
    p.end.config.stream = true;
    let sent = |p: &mut Pair, len| {
        let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
        out.lane
            .ring_speed()
            .store(SpeedClass::BeatsFetchOf32K as u64, Ordering::Relaxed);
        out.choice.seen_polling = 100;
        p.end.is_better_sent(p.to, Access::Write, len)
    };
    assert!(sent(&mut p, MAX_WRITE) && !sent(&mut p, MAX_WRITE + 1));
    slow_writes(&mut p);
    assert!(sent(&mut p, MAX_WRITE + 1) && sent(&mut p, MAX_IN_RING));
    let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
    (0..2).for_each(|_| out.choice.kernel_writes.took(MAX_WRITE, Duration::from_nanos(2200)));
    assert!(!sent(&mut p, MAX_WRITE + 1));
}

/// What the kernel takes for reads is learnt from reads: a message costs it more.
#[test]
fn reads_go_in_packets_where_the_kernel_takes_longer() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    p.end.config.stream = true;
    let back = p.target.peer(b"end").unwrap();
    push(&mut p.target, back, &header(1), b"");
    poll_until(&mut p.end, &mut Kept::default(), |kept| !kept.packets.is_empty());
    p.end
        .peers
        .get_mut(p.to)
        .unwrap()
        .out
        .as_mut()
        .unwrap()
        .choice
        .seen_polling = 100;
    let lane = p.end.peers.get(p.to).unwrap().lane.unwrap();
    let inbound = |end: &mut ShmTransport, say: &dyn Fn(&mut Inbound)| say(end.inbox.get_mut(lane).unwrap());
    // Between what is quick at the kernel's usual pace, and what is at half of that.
    let slowly = Duration::from_nanos(8192 * 255 / 1000);
    inbound(&mut p.end, &|from| {
        from.lane.filling().store(1, Ordering::Relaxed);
        (0..2).for_each(|_| from.speeds.copied(&from.lane, 8192, slowly));
        (0..2).for_each(|_| from.speeds.fetched(&from.lane, MAX_WRITE, Duration::from_nanos(3228)));
    });
    assert!(!p.end.is_better_sent(p.to, Access::Read, MAX_WRITE));
    inbound(&mut p.end, &|from| {
        (0..2).for_each(|_| from.speeds.read_by_kernel(MAX_WRITE, Duration::from_nanos(3228)))
    });
    assert!(p.end.is_better_sent(p.to, Access::Read, MAX_WRITE));
    assert!(!p.end.is_better_sent(p.to, Access::Read, MAX_IN_RING));
}

/// Until what the initiator pushes next may be an answer, and is a turn.
fn answer_each_other(p: &mut Pair, back: PeerId) {
    let (mut at_end, mut at_target) = (Kept::default(), Kept::default());
    while !(out(p).may_answer(p.end.polls) && out(p).may_say(MAX_WRITE)) {
        push(&mut p.end, p.to, &header(1), &[]);
        p.target.poll(&mut at_target, 64);
        push(&mut p.target, back, &header(1), &[]);
        p.end.poll(&mut at_end, 64);
    }
}

/// Whether or not the ring is known to be slow; the longer the quicker they must be, as the kernel takes less for a
/// byte.
#[test]
fn long_reads_are_asked_for_by_turns_where_those_are_quick() {
    let memory = Memory::private();
    let (mut p, back) = pair_with_room(&memory);
    p.end.config.stream = true;
    let lane = p.end.peers.get(p.to).unwrap().lane.unwrap();
    answer_each_other(&mut p, back);
    let polling = |p: &mut Pair| {
        let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
        out.choice.seen_polling = 100;
    };
    let lens = [
        MAX_BODY + 1,
        MAX_WRITE,
        MAX_WRITE + 1,
        MAX_IN_RING,
        MAX_IN_RING + 1,
        MAX_READ,
    ];
    let rows = [(1000, 0), (120, MAX_WRITE), (100, MAX_IN_RING), (30, MAX_READ)];
    for (is_ring_known, (each, most)) in [false, true].into_iter().flat_map(|known| rows.map(|row| (known, row))) {
        let from = p.end.inbox.get_mut(lane).unwrap();
        from.lane.saying().store(1, Ordering::Relaxed);
        let took = |each: u64| Duration::from_nanos(8192 * each / 1000);
        (0..2).for_each(|_| from.speeds.copied_of_turn(&from.lane, 8192, took(each), true));
        if is_ring_known {
            (0..2).for_each(|_| from.speeds.copied(&from.lane, 8192, took(1000)));
        }
        polling(&mut p);
        for len in lens {
            p.end.polls += 1;
            assert_eq!(
                p.end.is_better_sent(p.to, Access::Read, len),
                len <= most,
                "{each} {len}"
            );
        }
        // What is slow is tried now and then.
        polling(&mut p);
        let tried = (0..70).filter(|_| {
            p.end.polls += 1;
            p.end.is_better_sent(p.to, Access::Read, MAX_READ)
        });
        let tried = tried.count();
        assert!(tried > 0 && (tried == 70) == (most == MAX_READ), "{each} {tried}");
    }
    // The next is not asked for alone.
    push(&mut p.end, p.to, &header(1), &[]);
    assert!(!p.end.is_better_sent(p.to, Access::Read, MAX_WRITE));
}

/// However quick the ring is, its room is for so many answers as nobody takes before the next poll.
#[test]
fn between_two_polls_the_kernel_reads_what_the_answers_have_no_room_for() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    assert!(!write(&mut p.end, p.to, &part(0, 8), &mut [1; 8]));
    p.end.config.stream = true;
    for _ in 0..2 {
        p.end.polls += 1;
        let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
        out.choice.seen_polling = 100;
        let sent = (0..20).filter(|_| p.end.is_better_sent(p.to, Access::Read, MAX_WRITE));
        assert_eq!(sent.count(), 16);
        assert!(!p.end.is_better_sent(p.to, Access::Read, MAX_BODY));
        assert!(p.end.is_better_sent(p.to, Access::Write, MAX_WRITE));
    }
}

/// However quick the ring is, where they may be turns; of several parts only where those are very quick, unless the kernel
/// is slow.
#[test]
fn long_writes_are_turns_where_those_are_quick() {
    let memory = Memory::private();
    let (mut p, back) = pair_with_room(&memory);
    p.end.config.stream = true;
    answer_each_other(&mut p, back);
    let lens = [MAX_BODY + 1, MAX_WRITE, MAX_WRITE + 1, LONGEST_TURN, LONGEST_TURN + 1];
    for (copies, most) in [
        (SpeedClass::BeatsFetchOf16K, 0),
        (SpeedClass::BeatsFetchOf32K, MAX_WRITE),
        (SpeedClass::BeatsDualCopy, LONGEST_TURN),
    ] {
        for ring in [SpeedClass::Slow, SpeedClass::Unknown, SpeedClass::BeatsDualCopy] {
            let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
            out.lane.ring_speed().store(ring as u64, Ordering::Relaxed);
            out.lane.dialogue_speed().store(copies as u64, Ordering::Relaxed);
            out.choice.seen_polling = 100;
            for len in lens {
                let sent = p.end.is_better_sent(p.to, Access::Write, len);
                let in_ring = len > LONGEST_TURN && ring != SpeedClass::Slow;
                assert_eq!(sent, len <= most || in_ring, "{copies:?} {ring:?} {len}");
            }
        }
    }
    // Not where both turns are the target's.
    out(&p)
        .lane
        .ring_speed()
        .store(SpeedClass::Slow as u64, Ordering::Relaxed);
    while out(&p).may_say(0) {
        push(&mut p.end, p.to, &header(1), &[]);
        p.target.poll(&mut Kept::default(), 64);
        p.end.poll(&mut Kept::default(), 64);
    }
    assert!(!p.end.is_better_sent(p.to, Access::Write, MAX_WRITE));
}

/// Each until two have told how long the kernel takes.
#[test]
fn copies_by_the_kernel_are_timed() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let back = p.target.peer(b"end").unwrap();
    push(&mut p.target, back, &header(1), b"");
    poll_until(&mut p.end, &mut Kept::default(), |kept| !kept.packets.is_empty());
    let lane = p.end.peers.get(p.to).unwrap().lane.unwrap();
    let mut bytes = vec![0; MAX_IN_RING];
    for timed in [true, true, false] {
        let started = p.end.inbox.get_mut(lane).unwrap().speeds.start_read(MAX_IN_RING);
        assert_eq!(started.is_some(), timed);
        // No packet is so long where there are no streams.
        let (part, into) = (part(0, MAX_IN_RING), own(&mut bytes));
        assert!(copy(&mut p.end, p.to, &part, &into, Access::Read));
    }
    for timed in [true, true, false] {
        let out = p.end.peers.get_mut(p.to).unwrap().out.as_mut().unwrap();
        assert_eq!(out.choice.kernel_writes.start(MAX_IN_RING).is_some(), timed);
        let (part, from) = (part(0, MAX_IN_RING), own(&mut bytes));
        assert!(copy(&mut p.end, p.to, &part, &from, Access::Write));
    }
}

#[test]
fn long_operations_are_not_sent_to_a_target_that_is_not_seen_to_poll() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    p.end.config.stream = true;
    let long = MAX_BODY + 1;
    assert!(!p.end.is_better_sent(p.to, Access::Write, long));
    assert!(p.end.is_better_sent(p.to, Access::Write, MAX_BODY));
    let stop = AtomicBool::new(false);
    let (mut end, mut target, to) = (p.end, p.target, p.to);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                target.poll(&mut Kept::default(), 64);
            }
        });
        // It is not looked again at once, so as not to look in vain where it goes on like that.
        let (start, mut asked) = (Instant::now(), 1);
        while !end.is_better_sent(to, Access::Write, long) {
            asked += 1;
            assert!(start.elapsed() < PATIENCE, "never seen");
        }
        assert!(asked > 64, "{asked}");
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn whoever_had_to_take_writes_back_has_the_kernel_do_those_that_follow() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let by_kernel = |p: &mut Pair, len| {
        let kernel = |_: &usize| !p.end.is_better_sent(p.to, Access::Write, len);
        (0..2 * usize::from(SPARED)).take_while(kernel).count()
    };
    assert_eq!(by_kernel(&mut p, MAX_BODY), 0);
    push(&mut p.end, p.to, &write_header(0), &[1; 8]);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    let bulk = p.end.config.bulk;
    assert_eq!(by_kernel(&mut p, bulk - 1), 0, "short ones go as packets");
    assert_eq!(by_kernel(&mut p, bulk), usize::from(SPARED));
}

/// Both copy at once: neither is asked to help, and each sees that the other is at it.
#[test]
fn a_copy_that_crosses_the_targets_asks_nobody() {
    let memory = Memory::private();
    let mut p = pair(memory.region(Rights::BOTH));
    let (back, mut sink) = (p.target.peer(b"end").unwrap(), Kept::default());
    push(&mut p.target, back, &Header::new(Packet::Credit, 0), &[]);
    poll_until(&mut p.end, &mut sink, |sink| sink.packets.len() == 1);
    let asked = |p: &mut Pair| {
        let before = p.end.peers.get(p.to).unwrap().last_dual_copy;
        assert!(copy(
            &mut p.end,
            p.to,
            &part(0, 100_000),
            &own(&mut vec![5; 100_000]),
            Access::Write
        ));
        p.target.poll(&mut Kept::default(), 64);
        p.end.peers.get(p.to).unwrap().last_dual_copy != before
    };
    assert!(asked(&mut p));
    for (left, crosses) in [(7 << 32 | 1 << 16 | 2, true), (7 << 32 | 2 << 16 | 2, false), (1, true)] {
        out(&p).lane.pieces().store(left, Ordering::Relaxed);
        assert_eq!(asked(&mut p), !crosses, "{left:#x}");
        out(&p).lane.pieces().store(0, Ordering::Relaxed);
        let alone = core::iter::repeat_with(|| asked(&mut p)).take_while(|asked| !asked);
        assert_eq!(alone.count(), if crosses { 7 } else { 0 }, "{left:#x}");
    }
    let to = p.to;
    let shown = |end: &ShmTransport| {
        let lane = end.peers.get(to).and_then(|peer| end.inbox.lane(peer.lane?)).unwrap();
        lane.pieces().load(Ordering::Relaxed)
    };
    let mut seen = 0;
    let got = p.end.copy_seen_by(to, |end| {
        seen = shown(end);
        port::Get::Done
    });
    assert_eq!((got, seen, shown(&p.end)), (port::Get::Done, 1, 0));
}
