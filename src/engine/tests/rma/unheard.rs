//! Writes that need not be delivered: when they are reported, and what their target says of them.

use super::atomic::{bytes, words};
use super::*;

const KEY: u64 = 7;
const WRITE: CompletedOp = CompletedOp::Rma(Access::Write);

/// Two nodes with four words of memory each. `keeps`: of 16 packets that may be gathered, how many are.
fn bed(keeps: u64) -> (Bed, [Lent; 2]) {
    let manner = Manner { keeps, ..manners()[0] };
    let bed = Bed::new(2, 4, manner, small());
    let memories = [0, 1].map(|_| words(&[0; 4]));
    (0..2).for_each(|node| register(&bed, node, KEY, &memories[node as usize], Rights::BOTH));
    (bed, memories)
}

fn write(to: PeerId, word: u64, local: &Lent) -> Rma {
    Rma {
        level: CompletionLevel::Inject,
        ..access(Access::Write, to, local, remote(&[(word * 8, 8, KEY)]))
    }
}

/// Node 0 has written this word of node 1's, and was told so.
fn make_known(bed: &mut Bed, word: u64) {
    bed.rma(0, &write(1, word, &words(&[9]))).unwrap();
    assert_eq!(bed.done(0).len(), 0);
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None)]);
}

#[test]
fn known_memory_is_written_to_unheard() {
    let (mut bed, [_, memory]) = bed(0);
    make_known(&mut bed, 0);
    make_known(&mut bed, 2);
    let out = words(&[5]);
    bed.rma(0, &write(1, 1, &out)).unwrap();
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None)]);
    out.set(&bytes(&[6]));
    // Beyond it, and for who asks for delivery, nothing has changed.
    bed.rma(0, &write(1, 3, &out)).unwrap();
    let delivered = Rma {
        level: CompletionLevel::Delivery,
        ..write(1, 2, &out)
    };
    bed.rma(0, &delivered).unwrap();
    assert_eq!(bed.done(0), []);
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None); 2]);
    assert_eq!(memory.bytes(), bytes(&[9, 5, 6, 6]));
    bed.check_nothing_left();
}

#[test]
fn what_is_gathered_is_reported_when_it_has_left() {
    let (mut bed, [_, memory]) = bed(16);
    make_known(&mut bed, 0);
    bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
    assert_eq!(bed.done(0), []);
    bed.progress(0);
    assert_eq!((bed.done(0).len(), memory.bytes()), (1, bytes(&[9, 0, 0, 0])));
    bed.settle();
    assert_eq!((bed.done(0).len(), memory.bytes()), (0, bytes(&[5, 0, 0, 0])));
    bed.check_nothing_left();
}

#[test]
fn a_refusal_is_told_to_the_log_and_ends_that() {
    let (mut bed, _) = bed(0);
    make_known(&mut bed, 0);
    bed.nodes[1].regions.remove(KEY).unwrap();
    bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None)]);
    bed.settle();
    assert_eq!(bed.done(0), []);
    let part = RemotePart {
        addr: 0,
        len: 8,
        key: KEY,
    };
    assert_eq!(bed.world.borrow().refused_unheard, [(0, part, Error::NoKey)]);
    bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, 0, Some(Error::NoKey))]);
    assert_eq!(bed.world.borrow().refused_unheard.len(), 1);
    bed.check_nothing_left();
}

/// A write that is reported at once, and a fenced one behind it.
fn report_one_and_fence(bed: &mut Bed) {
    make_known(bed, 0);
    bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
    let fenced = Rma {
        fence: true,
        ..write(1, 0, &words(&[6]))
    };
    bed.rma(0, &fenced).unwrap();
}

#[test]
fn a_fence_waits_for_what_was_reported() {
    let (mut bed, [_, memory]) = bed(0);
    report_one_and_fence(&mut bed);
    bed.progress(0);
    assert_eq!(bed.world.borrow().count(Packet::Write), 2);
    bed.settle();
    assert_eq!((bed.done(0).len(), memory.bytes()), (2, bytes(&[6, 0, 0, 0])));
    bed.check_nothing_left();
}

#[test]
fn a_peer_that_is_lost_ends_only_what_was_not_reported() {
    for (keeps, ends) in [(0, [None, Some(Error::PeerGone)]), (16, [Some(Error::PeerGone); 2])] {
        let (mut bed, _) = bed(keeps);
        make_known(&mut bed, 0);
        bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
        bed.rma(0, &write(1, 1, &words(&[5]))).unwrap();
        bed.kill(1);
        bed.settle();
        let ends = ends.map(|error| end(WRITE, 1, if error.is_none() { 8 } else { 0 }, error));
        assert_eq!(bed.done(0), ends, "{keeps}");
        assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
    }
}

#[test]
fn acknowledgements_that_nobody_waits_for_take_their_time() {
    let (mut bed, _) = bed(0);
    make_known(&mut bed, 0);
    let acks = |bed: &Bed| bed.world.borrow().count(Packet::Acked);
    let before = acks(&bed);
    for _ in 0..3 {
        bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
        assert!(bed.progress(1) > 0);
    }
    assert_eq!(acks(&bed), before);
    while bed.nodes[1].engine.has_work() {
        assert_eq!((acks(&bed), bed.progress(1)), (before, 0));
    }
    assert_eq!(acks(&bed), before + 1);
    bed.settle();
    assert_eq!((acks(&bed), bed.done(0).len()), (before + 1, 3));
    bed.check_nothing_left();
}

/// Its packet may be an answer that the peer waits for.
#[test]
fn acknowledgements_that_nobody_waits_for_do_not_go_before_a_queued_operation() {
    let (mut bed, _) = bed(0);
    make_known(&mut bed, 0);
    bed.rma(0, &write(1, 0, &words(&[5]))).unwrap();
    bed.progress(1);
    let acks = bed.world.borrow().count(Packet::Acked);
    bed.world.borrow_mut().manner.full = 16;
    bed.rma(1, &write(0, 0, &words(&[6]))).unwrap();
    bed.world.borrow_mut().manner.full = 0;
    bed.progress(1);
    assert_eq!(bed.world.borrow().count(Packet::Write), 3);
    assert_eq!(bed.world.borrow().count(Packet::Acked), acks);
    // Those that somebody waits for take them along.
    bed.progress(0);
    bed.rma(0, &access(Access::Write, 1, &words(&[7]), remote(&[(0, 8, KEY)])))
        .unwrap();
    bed.progress(1);
    assert_eq!(bed.world.borrow().count(Packet::Acked), acks + 2);
    bed.settle();
    assert_eq!(bed.world.borrow().count(Packet::Acked), acks + 2);
    bed.check_nothing_left();
}

#[test]
fn a_write_takes_acknowledgements_along() {
    let (mut bed, _) = bed(0);
    make_known(&mut bed, 0);
    bed.rma(1, &write(0, 0, &words(&[9]))).unwrap();
    bed.settle();
    let before = bed.world.borrow().count(Packet::Acked);
    for turn in 0..6 {
        bed.rma(turn % 2, &write(1 - turn % 2, 0, &words(&[5]))).unwrap();
        assert!(bed.progress(1 - turn % 2) > 0);
    }
    assert_eq!(bed.world.borrow().count(Packet::Acked), before);
    bed.settle();
    assert_eq!(bed.world.borrow().count(Packet::Acked), before + 1);
    bed.check_nothing_left();
}

/// A refusal names its operation by how many were acknowledged before, so nothing may be acknowledged past it.
#[test]
fn a_write_takes_none_past_a_refusal_that_waits() {
    let (mut bed, _) = bed(0);
    make_known(&mut bed, 0);
    let none = Rma {
        remote: remote(&[(0, 8, KEY + 1)]),
        ..write(1, 0, &words(&[5]))
    };
    bed.rma(0, &none).unwrap();
    bed.rma(0, &write(1, 3, &words(&[5]))).unwrap();
    bed.world.borrow_mut().manner.full = 16;
    bed.progress(1);
    bed.world.borrow_mut().manner.full = 0;
    bed.rma(1, &write(0, 0, &words(&[5]))).unwrap();
    bed.settle();
    assert_eq!(
        bed.done(0),
        [Some(Error::NoKey), None].map(|error| end(WRITE, 1, 8, error))
    );
    bed.check_nothing_left();
}

/// A peer says with a write that more operations are done than there are.
#[test]
fn acknowledgements_of_nothing_are_a_breach_of_the_protocol() {
    let (bed, memories) = &mut bed(0);
    let header = Header {
        data: KEY,
        ..Header::new(Packet::Write, 1)
    };
    bed.world.borrow_mut().put(0, 1, header, &[1; 8]);
    bed.settle();
    assert_eq!(bed.nodes[1].engine.malformed(), 1);
    assert_eq!(memories[1].bytes(), bytes(&[0; 4]));
}

/// FI_MR_SINGLE_USE: who hears of an access may close the region.
#[test]
fn memory_whose_accesses_are_counted_is_never_known() {
    let (mut bed, _) = bed(0);
    bed.nodes[1].regions.change(KEY, |region| region.counted = true);
    for _ in 0..3 {
        make_known(&mut bed, 0);
    }
    bed.check_nothing_left();
}

/// A fence waits for them, however much comes from others.
#[test]
fn acknowledgements_go_even_if_each_poll_finds_something() {
    let mut bed = Bed::new(3, 4, manners()[0], small());
    let memory = words(&[0; 4]);
    register(&bed, 1, KEY, &memory, Rights::BOTH);
    report_one_and_fence(&mut bed);
    assert_eq!(bed.done(0).len(), 1);
    let mut polls = 0;
    while bed.done(0).is_empty() {
        bed.rma(2, &access(Access::Write, 1, &words(&[7]), remote(&[(24, 8, KEY)])))
            .unwrap();
        assert!(bed.progress(1) > 0);
        bed.progress(0);
        bed.progress(2);
        polls += 1;
        assert!(polls < 5000, "the fence waits for ever");
    }
    bed.settle();
    assert_eq!(memory.bytes(), bytes(&[6, 0, 0, 7]));
    bed.check_nothing_left();
}
