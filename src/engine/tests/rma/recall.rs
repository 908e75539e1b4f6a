//! Short operations whose target does not poll: which are done without it, and which wait for it.

use super::atomic::{bytes, words};
use super::*;

const KEY: u64 = 7;

fn bed(recalls: [u64; 2], memory: &Lent) -> Bed {
    let manner = Manner {
        recalls,
        ..manners()[0]
    };
    let config = Config {
        in_flight: 200,
        ..small()
    };
    let bed = Bed::new(2, 4, manner, config);
    register(&bed, 1, KEY, memory, Rights::BOTH);
    bed
}

/// The initiator waits for far longer than a target at work takes.
fn wait(bed: &mut Bed) {
    (0..1000).for_each(|_| assert_eq!(bed.progress(0), 0));
}

#[test]
fn all_before_a_message_are_done_in_order_and_those_behind_it_wait() {
    let memory = words(&[1, 2]);
    let mut bed = bed([16, 16], &memory);
    let (out, back, last) = (words(&[5]), words(&[0, 0]), words(&[9]));
    let write = access(Access::Write, 1, &out, remote(&[(0, 8, KEY)]));
    let injected = Rma {
        inject: true,
        remote: remote(&[(8, 8, KEY)]),
        ..write
    };
    bed.rma(0, &injected).unwrap();
    out.set(&bytes(&[6]));
    bed.rma(0, &write).unwrap();
    let read = access(Access::Read, 1, &back, remote(&[(0, 16, KEY)]));
    bed.rma(0, &read).unwrap();
    bed.send(letter(0, 1, 3, 8)).unwrap();
    bed.rma(0, &access(Access::Write, 1, &last, remote(&[(0, 8, KEY)])))
        .unwrap();
    wait(&mut bed);
    let write_end = end(CompletedOp::Rma(Access::Write), 1, 8, None);
    let read_end = end(CompletedOp::Rma(Access::Read), 1, 16, None);
    assert_eq!(bed.done(0), [write_end, write_end, read_end]);
    assert_eq!(bed.world.borrow().recalled, 3);
    assert_eq!((back.bytes(), memory.bytes()), (bytes(&[6, 5]), bytes(&[6, 5])));
    bed.recv(1, &[8], tagged(3));
    bed.settle();
    assert_eq!(bed.done(0), [write_end]);
    assert_eq!(memory.bytes(), bytes(&[9, 5]));
    bed.check_nothing_left();
}

#[test]
fn what_cannot_be_taken_back_is_done_by_the_target() {
    for recalls in [[0, 0], [16, 0]] {
        let memory = words(&[1]);
        let mut bed = bed(recalls, &memory);
        let out = words(&[5]);
        bed.rma(0, &access(Access::Write, 1, &out, remote(&[(0, 8, KEY)])))
            .unwrap();
        wait(&mut bed);
        assert_eq!(bed.done(0), []);
        bed.settle();
        assert_eq!(bed.done(0), [end(CompletedOp::Rma(Access::Write), 1, 8, None)]);
        assert_eq!(memory.bytes(), bytes(&[5]));
        bed.check_nothing_left();
    }
}

#[test]
fn a_target_that_dies_meanwhile_ends_the_rest_once() {
    let memory = words(&[1]);
    let mut bed = bed([16, 16], &memory);
    let out = words(&[5]);
    let write = access(Access::Write, 1, &out, remote(&[(0, 8, KEY)]));
    bed.rma(0, &write).unwrap();
    bed.send(letter(0, 1, 3, 8)).unwrap();
    bed.rma(0, &write).unwrap();
    wait(&mut bed);
    bed.kill(1);
    bed.settle();
    let ends = [None, Some(Error::PeerGone)].map(|error| end(CompletedOp::Rma(Access::Write), 1, 8, error));
    assert_eq!(bed.done(0), ends);
    assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
}

/// How many of so many writes are taken back from a target that comes after so many polls.
fn taken_back(writes: usize, polls: usize, looks_per_copy: u64) -> usize {
    let memory = words(&[1]);
    let mut bed = bed([16, 16], &memory);
    bed.world.borrow_mut().looks_per_copy = looks_per_copy;
    let out = words(&[5]);
    for _ in 0..writes {
        bed.rma(0, &access(Access::Write, 1, &out, remote(&[(0, 8, KEY)])))
            .unwrap();
    }
    (0..polls).for_each(|_| assert_eq!(bed.progress(0), 0));
    let taken = bed.world.borrow().recalled;
    bed.settle();
    assert_eq!(bed.done(0).len(), writes);
    bed.check_nothing_left();
    taken
}

#[test]
fn the_more_a_target_owes_the_longer_it_is_waited_for() {
    assert_eq!([1, 100].map(|writes| taken_back(writes, 64 * 3, 1)), [1, 0]);
    assert_eq!([100, 128].map(|writes| taken_back(writes, 64 * 99, 1)), [0, 0]);
    assert_eq!([100, 128].map(|writes| taken_back(writes, 64 * 101, 1)), [100, 0]);
}

#[test]
fn who_polls_more_often_waits_as_long() {
    assert_eq!([100, 128].map(|writes| taken_back(writes, 64 * 198, 2)), [0, 0]);
    assert_eq!([100, 128].map(|writes| taken_back(writes, 64 * 200, 2)), [100, 0]);
}

#[test]
fn whoever_goes_to_sleep_takes_back_at_once_however_long_it_has_polled() {
    for polls in [0, 64 * 20] {
        falls_asleep_after(polls);
    }
}

fn falls_asleep_after(polls: usize) {
    let memory = words(&[1]);
    let mut bed = bed([16, 16], &memory);
    let out = words(&[5]);
    for _ in 0..100 {
        bed.rma(0, &access(Access::Write, 1, &out, remote(&[(0, 8, KEY)])))
            .unwrap();
    }
    (0..polls).for_each(|_| assert_eq!(bed.progress(0), 0));
    assert_eq!(bed.world.borrow().recalled, 0);
    let node = &mut bed.nodes[0];
    let checks = (1..10).find(|_| node.engine.may_sleep(&mut node.reporter));
    assert!(checks.is_some());
    assert_eq!(bed.done(0).len(), 100);
    assert_eq!(bed.world.borrow().recalled, 100);
    bed.settle();
    bed.check_nothing_left();
}

#[test]
fn what_waited_for_room_is_done_without_the_target_too() {
    for (copies, done) in [([16, 0, 0], 8), ([0; 3], 4)] {
        let memory = words(&[1, 2]);
        let mut bed = bed([16, 16], &memory);
        {
            let manner = &mut bed.world.borrow_mut().manner;
            (manner.depth, manner.copies) = (4, copies);
        }
        let (back, local): (Vec<Lent>, Vec<Lent>) = (0..4).map(|at| (words(&[0, 0]), words(&[at]))).unzip();
        for (back, local) in back.iter().zip(&local) {
            bed.rma(0, &access(Access::Write, 1, local, remote(&[(8, 8, KEY)])))
                .unwrap();
            bed.rma(0, &access(Access::Read, 1, back, remote(&[(0, 16, KEY)])))
                .unwrap();
        }
        // Four were sent, for which the kernel would take as long as four checks.
        (0..64 * 4).for_each(|_| assert_eq!(bed.progress(0), 0));
        assert_eq!(bed.done(0).len(), done);
        bed.settle();
        assert!(back.iter().zip(0..).all(|(back, at)| back.bytes() == bytes(&[1, at])));
        assert_eq!(memory.bytes(), bytes(&[1, 3]));
        bed.check_nothing_left();
    }
}
