//! Writes that go in several packets, each of which is a short operation by itself.

use super::*;

const KEY: u64 = 7;
const WRITE: CompletedOp = CompletedOp::Rma(Access::Write);
const LEN: usize = 800;

/// A write of `LEN` bytes takes three packets, if the region is seen to take it.
fn bed(recalls: [u64; 2]) -> (Bed, Lent) {
    bed_with(Manner {
        recalls,
        ..manners()[0]
    })
}

fn bed_with(mut manner: Manner) -> (Bed, Lent) {
    manner.limits.max_write = 310;
    manner.limits.max_in_writes = 900;
    let bed = Bed::new(2, 4, manner, small());
    let memory = Lent::new(&[1000], 0);
    register(&bed, 1, KEY, &memory, Rights::BOTH);
    (bed, memory)
}

fn numbered(len: usize) -> Lent {
    let lent = Lent::new(&[len / 3, len - len / 3], 0);
    lent.set(&(0..len).map(|at| at as u8).collect::<Vec<_>>());
    lent
}

fn write(local: &Lent) -> Rma {
    access(Access::Write, 1, local, remote(&[(100, LEN, KEY)]))
}

fn packets(bed: &Bed) -> [usize; 2] {
    [Packet::Write, Packet::OfferWrite].map(|kind| bed.world.borrow().count(kind))
}

#[test]
fn it_is_one_operation() {
    let (mut bed, memory) = bed([0; 2]);
    let local = numbered(LEN);
    bed.rma(0, &write(&local)).unwrap();
    assert_eq!((packets(&bed), bed.done(0).len()), ([3, 0], 0));
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, None)]);
    assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
    assert!(
        memory.bytes()[..100]
            .iter()
            .chain(&memory.bytes()[100 + LEN..])
            .all(|byte| *byte == 0)
    );
    bed.check_nothing_left();
}

fn undelivered(local: &Lent) -> Rma {
    Rma {
        level: CompletionLevel::Inject,
        ..write(local)
    }
}

#[test]
fn a_short_one_that_waited_for_room_is_reported_when_it_has_left() {
    let (mut bed, memory) = bed([0; 2]);
    let local = numbered(200);
    let short = Rma {
        level: CompletionLevel::Inject,
        ..access(Access::Write, 1, &local, remote(&[(100, 200, KEY)]))
    };
    bed.rma(0, &access(Access::Read, 1, &numbered(8), remote(&[(0, 8, KEY)])))
        .unwrap();
    bed.settle();
    bed.done(0);
    // The first is acknowledged, by which its memory is known.
    for known in [false, true] {
        bed.world.borrow_mut().manner.full = 16;
        bed.rma(0, &short).unwrap();
        assert_eq!(bed.done(0), []);
        bed.world.borrow_mut().manner.full = 0;
        bed.progress(0);
        assert_eq!(bed.done(0).len(), usize::from(known));
        bed.settle();
        assert_eq!(bed.done(0).len(), usize::from(!known));
    }
    assert_eq!(memory.bytes()[100..300], local.bytes());
    bed.check_nothing_left();
}

#[test]
fn one_that_need_not_be_delivered_is_reported_when_all_of_it_has_left() {
    let (mut bed, memory) = bed([0; 2]);
    let local = numbered(LEN);
    bed.world.borrow_mut().manner.full = 16;
    bed.rma(0, &undelivered(&local)).unwrap();
    assert_eq!(bed.done(0), []);
    bed.world.borrow_mut().manner.full = 0;
    bed.progress(0);
    assert_eq!((packets(&bed), bed.done(0)), ([3, 0], vec![end(WRITE, 1, LEN, None)]));
    let sent = local.bytes();
    local.set(&[0; LEN]);
    bed.settle();
    assert_eq!((bed.done(0), memory.bytes()[100..100 + LEN].to_vec()), (vec![], sent));
    bed.check_nothing_left();
}

#[test]
fn a_refusal_of_one_that_was_reported_is_told_to_the_log_once() {
    let (mut bed, _) = bed([0; 2]);
    bed.rma(0, &undelivered(&numbered(LEN))).unwrap();
    bed.nodes[1].regions.remove(KEY).unwrap();
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, None)]);
    let part = RemotePart {
        addr: 100,
        len: LEN,
        key: KEY,
    };
    assert_eq!(bed.world.borrow().refused_unheard, [(0, part, Error::NoKey)]);
    bed.check_nothing_left();
}

/// The first leaves at once, and finds no room for its third packet.
#[test]
fn one_that_waits_while_packets_wait_for_long_is_offered() {
    for (held_up, expected) in [(0, [6, 0]), (16, [3, 1])] {
        let (mut bed, memory) = bed([0; 2]);
        let local = numbered(LEN);
        bed.world.borrow_mut().manner.depth = 2;
        bed.rma(0, &write(&local)).unwrap();
        bed.rma(0, &write(&local)).unwrap();
        {
            let manner = &mut bed.world.borrow_mut().manner;
            (manner.depth, manner.held_up) = (1000, held_up);
        }
        bed.settle();
        assert_eq!(bed.done(0), [end(WRITE, 1, LEN, None); 2]);
        assert_eq!(packets(&bed), expected);
        assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
        bed.check_nothing_left();
    }
}

#[test]
fn what_the_target_is_told_of_or_does_not_take_is_offered() {
    let (mut bed, memory) = bed([0; 2]);
    let local = numbered(LEN);
    let with_data = Rma {
        data: Some(5),
        ..write(&local)
    };
    bed.rma(0, &with_data).unwrap();
    bed.settle();
    let outside = Rma {
        remote: remote(&[(201, LEN, KEY)]),
        ..write(&local)
    };
    bed.rma(0, &outside).unwrap();
    bed.settle();
    assert_eq!(packets(&bed), [0, 2]);
    let ends = [None, Some(Error::OutOfRange)].map(|error| end(WRITE, 1, LEN, error));
    assert_eq!(bed.done(0), ends);
    assert_eq!(bed.told(1).iter().map(|told| told.len).collect::<Vec<_>>(), [LEN]);
    assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
    bed.check_nothing_left();
}

/// An offer exposes its memory. If it finds no room, and the target is seen to take writes there meanwhile, the write
/// goes in parts, and its memory is not exposed any more.
#[test]
fn an_offer_that_found_no_room_may_go_in_parts() {
    let (mut bed, memory) = bed([0; 2]);
    bed.world.borrow_mut().manner.limits.gets_at_once = 0;
    bed.world.borrow_mut().manner.full = 16;
    bed.nodes[1].regions.remove(KEY).unwrap();
    let local = numbered(LEN);
    bed.rma(0, &write(&local)).unwrap();
    register(&bed, 1, KEY, &memory, Rights::BOTH);
    bed.rma(0, &write(&local)).unwrap();
    assert_eq!(bed.nodes[0].engine.transport().inner.exposed(), 1);
    bed.world.borrow_mut().manner.full = 0;
    bed.settle();
    assert_eq!((packets(&bed), bed.done(0).len()), ([6, 0], 2));
    assert_eq!(bed.nodes[0].engine.transport().inner.exposed(), 0);
    bed.check_nothing_left();
}

/// Its initiator knows the memory from before.
#[test]
fn one_to_memory_that_is_counted_since_is_told_once() {
    for late in [0, 10] {
        let (mut bed, memory) = bed_with(Manner { late, ..manners()[0] });
        bed.rma(0, &write(&numbered(LEN))).unwrap();
        bed.settle();
        assert_eq!((packets(&bed), bed.told(1).len()), ([3, 0], 0));
        bed.nodes[1].regions.change(KEY, |region| region.counted = true);
        let local = numbered(LEN);
        bed.rma(0, &write(&local)).unwrap();
        for _ in 0..2 {
            bed.settle();
            assert_eq!(bed.told(1).iter().map(|told| told.len).collect::<Vec<_>>(), [LEN]);
        }
        assert_eq!((packets(&bed), bed.done(0).len()), ([6, 0], 2));
        assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
        bed.check_nothing_left();
    }
}

/// Its region is closed when a part of it was counted, and another has the key, which is not counted.
#[test]
fn one_that_stops_being_counted_is_added_to_no_other() {
    for late in [0, 10] {
        let (mut bed, memory) = bed_with(Manner { late, ..manners()[0] });
        bed.rma(0, &write(&numbered(LEN))).unwrap();
        bed.settle();
        let count = |bed: &Bed, counted| bed.nodes[1].regions.change(KEY, |region| region.counted = counted);
        count(&bed, true);
        bed.world.borrow_mut().manner.depth = 1;
        bed.rma(0, &write(&numbered(LEN))).unwrap();
        (0..50).for_each(|_| {
            bed.world.borrow_mut().now += 1;
            bed.progress(1);
        });
        assert_eq!(packets(&bed), [4, 0], "the first part alone");
        bed.nodes[1].regions.remove(KEY).unwrap();
        register(&bed, 1, KEY, &memory, Rights::BOTH);
        bed.settle();
        assert_eq!((packets(&bed), bed.told(1).len()), ([6, 0], 0));
        count(&bed, true);
        bed.rma(0, &access(Access::Write, 1, &numbered(8), remote(&[(0, 8, KEY)])))
            .unwrap();
        bed.settle();
        assert_eq!(bed.told(1).iter().map(|told| told.len).collect::<Vec<_>>(), [8]);
        bed.check_nothing_left();
    }
}

#[test]
fn a_region_that_is_closed_meanwhile_is_one_error() {
    let (mut bed, memory) = bed([0; 2]);
    bed.rma(0, &write(&numbered(LEN))).unwrap();
    bed.nodes[1].regions.remove(KEY).unwrap();
    bed.rma(0, &access(Access::Write, 1, &numbered(8), remote(&[(0, 8, KEY)])))
        .unwrap();
    bed.settle();
    let ends = [LEN, 8].map(|len| end(WRITE, 1, len, Some(Error::NoKey)));
    assert_eq!(bed.done(0), ends);
    assert!(memory.bytes().iter().all(|byte| *byte == 0));
    bed.check_nothing_left();
}

#[test]
fn a_target_that_does_not_poll_is_not_waited_for() {
    let (mut bed, memory) = bed([16, 16]);
    let local = numbered(LEN);
    bed.rma(0, &write(&local)).unwrap();
    (0..1000).for_each(|_| assert_eq!(bed.progress(0), 0));
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, None)]);
    assert_eq!(
        (bed.world.borrow().recalled, memory.bytes()[100..100 + LEN].to_vec()),
        (3, local.bytes())
    );
    bed.settle();
    bed.check_nothing_left();
}

#[test]
fn a_target_that_dies_ends_it_once() {
    let (mut bed, _) = bed([0; 2]);
    bed.rma(0, &write(&numbered(LEN))).unwrap();
    bed.kill(1);
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, Some(Error::PeerGone))]);
    assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
}

/// With nothing before it, all of it goes at once.
#[test]
fn a_fence_does_not_wait_for_its_own_parts() {
    let (mut bed, memory) = bed([0; 2]);
    let local = numbered(LEN);
    let fenced = Rma {
        fence: true,
        ..write(&local)
    };
    bed.rma(0, &fenced).unwrap();
    assert_eq!(packets(&bed), [3, 0]);
    bed.rma(0, &fenced).unwrap();
    assert_eq!(packets(&bed), [3, 0]);
    bed.progress(1);
    bed.progress(0);
    assert_eq!(packets(&bed), [6, 0]);
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, None); 2]);
    assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
    bed.check_nothing_left();
}

/// The first parts are refused, and others go when a region has the key again.
fn refused_and_registered_again(bed: &mut Bed, memory: &Lent) {
    bed.nodes[1].regions.remove(KEY).unwrap();
    assert!(bed.progress(1) > 0);
    register(bed, 1, KEY, memory, Rights::BOTH);
}

/// Memory that has become known again makes nothing of a refusal that was heard.
#[test]
fn one_that_was_refused_in_part_is_not_reported_when_the_rest_has_left() {
    let (mut bed, memory) = bed([0; 2]);
    bed.world.borrow_mut().manner.depth = 2;
    bed.rma(0, &undelivered(&numbered(LEN))).unwrap();
    refused_and_registered_again(&mut bed, &memory);
    bed.world.borrow_mut().manner.full = 16;
    assert!(bed.progress(0) > 0);
    let local = numbered(LEN);
    bed.rma(0, &undelivered(&local)).unwrap();
    assert_eq!((packets(&bed), bed.done(0)), ([2, 0], vec![]));
    bed.world.borrow_mut().manner.full = 0;
    bed.settle();
    let ends = [Some(Error::NoKey), None].map(|error| end(WRITE, 1, LEN, error));
    assert_eq!(
        (bed.done(0), bed.world.borrow().refused_unheard.len()),
        (ends.to_vec(), 0)
    );
    assert_eq!(memory.bytes()[100..100 + LEN], local.bytes());
    bed.check_nothing_left();
}

/// What the target has begun, and what it says of it, is of the same write.
#[test]
fn one_of_which_the_rest_is_taken_back_ends_as_the_target_says() {
    for refused in [false, true] {
        let (mut bed, memory) = bed([16, 16]);
        bed.world.borrow_mut().manner.depth = 1;
        bed.rma(0, &write(&numbered(LEN))).unwrap();
        bed.world.borrow_mut().manner.full = 16;
        if refused {
            refused_and_registered_again(&mut bed, &memory);
        } else {
            assert!(bed.progress(1) > 0);
        }
        bed.world.borrow_mut().manner.full = 0;
        bed.world.borrow_mut().manner.depth = 1000;
        let small = access(Access::Write, 1, &numbered(8), remote(&[(0, 8, KEY)]));
        bed.rma(0, &small).unwrap();
        (0..1000).for_each(|_| assert_eq!(bed.progress(0), 0));
        assert_eq!(bed.world.borrow().recalled, 3);
        bed.settle();
        let mut ends = bed.done(0);
        ends.sort_by_key(|end| end.failure.is_none());
        ends.sort_by_key(|end| end.len != 0 && end.len < LEN);
        let first = end(WRITE, 1, LEN, refused.then_some(Error::NoKey));
        assert_eq!(ends, [first, end(WRITE, 1, 8, None)]);
        bed.rma(0, &small).unwrap();
        bed.settle();
        assert_eq!(bed.done(0), [end(WRITE, 1, 8, None)]);
        bed.check_nothing_left();
    }
}

/// A refusal that was heard is that of the write whose other parts the target has yet to answer, not of one behind it
/// that is taken back.
#[test]
fn what_is_taken_back_is_not_refused_with_a_part_of_another() {
    let (mut bed, memory) = bed([16, 16]);
    bed.world.borrow_mut().manner.depth = 2;
    bed.rma(0, &write(&numbered(LEN))).unwrap();
    refused_and_registered_again(&mut bed, &memory);
    assert!(bed.progress(0) > 0);
    assert_eq!((packets(&bed), bed.done(0)), ([3, 0], vec![]));
    bed.world.borrow_mut().manner.full = 16;
    assert!(bed.progress(1) > 0);
    bed.world.borrow_mut().manner.full = 0;
    bed.world.borrow_mut().manner.depth = 1000;
    let small = access(Access::Write, 1, &numbered(8), remote(&[(0, 8, KEY)]));
    bed.rma(0, &small).unwrap();
    (0..1000).for_each(|_| assert_eq!(bed.progress(0), 0));
    assert_eq!(bed.world.borrow().recalled, 1);
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None)]);
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, LEN, Some(Error::NoKey))]);
    bed.check_nothing_left();
}
