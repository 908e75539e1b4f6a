//! Reads and writes.

use super::*;

const LENGTHS: [usize; 9] = [0, 1, 8, 100, 249, 250, 251, 300, 5000];
const WRITE: CompletedOp = CompletedOp::Rma(Access::Write);
const READ: CompletedOp = CompletedOp::Rma(Access::Read);

/// Cuts of a length into remote pieces, as parts of 16.
const CUTS: [&[usize]; 4] = [&[16], &[3, 13], &[0, 8, 8], &[1, 2, 4, 9]];

fn cut(len: usize, cuts: &[usize]) -> Vec<usize> {
    let mut lens: Vec<usize> = cuts.iter().map(|cut| len * cut / 16).collect();
    let rest = len - lens.iter().sum::<usize>();
    *lens.last_mut().unwrap() += rest;
    lens
}

#[test]
fn every_length_is_written_and_read_in_all_shapes() {
    for manner in manners() {
        for len in LENGTHS {
            for cuts in CUTS {
                for inject in [false, true] {
                    write_and_read(manner, len, cuts, inject);
                }
            }
        }
    }
}

fn write_and_read(manner: Manner, len: usize, cuts: &[usize], inject: bool) {
    let mut bed = Bed::new(2, len as u64, manner, small());
    let (mut parts, mut memories) = (Vec::new(), Vec::new());
    for (key, piece) in cut(len, cuts).into_iter().enumerate() {
        let memory = Lent::new(&[piece / 2 + 10, piece - piece / 2 + 10], 9);
        register(&bed, 1, key as u64, &memory, Rights::BOTH);
        parts.push((10, piece, key as u64));
        memories.push(memory);
    }
    let remote = remote(&parts);
    let bytes = pattern(len, 3);
    let local = Lent::new(&[len / 3, len - len / 3], 0);
    local.set(&bytes);
    let data = Some(len as u64);
    let write = Rma {
        data,
        inject,
        ..access(Access::Write, 1, &local, remote)
    };
    bed.rma(0, &write).unwrap();
    if inject {
        scribble(&local);
    }
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, len, None)], "{manner:?} {len} {cuts:?}");
    let ended = CompletedOp::Target {
        access: Access::Write,
        key: 0,
        atomic: false,
    };
    let told = Completion {
        context: 0,
        data,
        ..end(ended, 0, len, None)
    };
    assert_eq!(bed.told(1), [told]);
    let mut at = 0;
    for (memory, (_, len, _)) in memories.iter().zip(&parts) {
        let found = memory.bytes();
        let (before, rest) = found.split_at(10);
        let (middle, after) = rest.split_at(*len);
        assert_eq!(middle, &bytes[at..at + len], "{manner:?} {cuts:?}");
        assert!(before.iter().chain(after).all(|byte| *byte == 9));
        at += len;
    }
    let into = Lent::new(&[len / 4, len - len / 4], 0);
    bed.rma(0, &access(Access::Read, 1, &into, remote)).unwrap();
    bed.settle();
    assert_eq!(bed.done(0), [end(READ, 1, len, None)]);
    assert_eq!(into.bytes(), bytes, "{manner:?} {len} {cuts:?}");
    bed.check_nothing_left();
}

#[test]
fn a_short_write_is_one_packet_and_many_are_acknowledged_together() {
    let mut bed = Bed::new(2, 1, manners()[0], small());
    let memory = Lent::new(&[64], 0);
    register(&bed, 1, 5, &memory, Rights::WRITE);
    let local = Lent::new(&[8], 3);
    for at in 0..8 {
        let write = access(Access::Write, 1, &local, remote(&[(at * 8, 8, 5)]));
        bed.rma(0, &write).unwrap();
        assert_eq!(bed.done(0), []);
    }
    let ninth = access(Access::Write, 1, &local, remote(&[(0, 8, 5)]));
    assert_eq!(bed.rma(0, &ninth), Err(Refused::Again));
    bed.settle();
    assert_eq!(bed.done(0), [end(WRITE, 1, 8, None); 8]);
    assert_eq!(memory.bytes(), [3; 64]);
    let packets = bed.world.borrow().packets.clone();
    assert_eq!(packets, [(Packet::Write as u8, 8), (Packet::Acked as u8, 1)].into());
}

/// Nothing would wake an endpoint that goes to sleep after this turn.
#[test]
fn a_read_that_is_not_exposed_is_answered_in_the_same_turn() {
    const LEN: usize = 2900;
    let manner = Manner {
        gets: [32, 0, 0], // `expose` always refuses
        ..manners()[0]
    };
    let mut bed = Bed::new(2, 1, manner, small());
    let (memory, into) = (Lent::new(&[LEN], 0), Lent::new(&[LEN], 0));
    memory.set(&pattern(LEN, 3));
    register(&bed, 1, 1, &memory, Rights::BOTH);
    bed.rma(0, &access(Access::Read, 1, &into, remote(&[(0, LEN, 1)])))
        .unwrap();
    bed.progress(1);
    let answers = LEN.div_ceil(manner.limits.max_body);
    assert_eq!(bed.world.borrow().count(Packet::Reply), answers);
    let engine = &bed.node(1).engine;
    assert!(!engine.busy() && !engine.has_work());
    bed.settle();
    assert_eq!(bed.done(0), [end(READ, 1, LEN, None)]);
    assert_eq!(into.bytes(), pattern(LEN, 3));
    bed.check_nothing_left();
}

#[test]
fn an_operation_on_nothing_ends_well() {
    for manner in manners() {
        let mut bed = Bed::new(2, 1, manner, small());
        let nothing = Lent::new(&[], 0);
        for (kind, ended) in [(Access::Write, WRITE), (Access::Read, READ)] {
            bed.rma(0, &access(kind, 1, &nothing, remote(&[]))).unwrap();
            bed.settle();
            assert_eq!(bed.done(0), [end(ended, 1, 0, None)]);
        }
        bed.check_nothing_left();
    }
}

#[test]
fn what_is_not_allowed_touches_nothing_and_says_why() {
    for manner in manners() {
        for len in LENGTHS {
            for kind in [Access::Write, Access::Read] {
                refuse(manner, len, kind);
            }
        }
    }
}

fn refuse(manner: Manner, len: usize, kind: Access) {
    let wrong = match kind {
        Access::Write => Rights::READ,
        Access::Read => Rights::WRITE,
    };
    let mut bed = Bed::new(2, 1, manner, small());
    let (good, closed) = (Lent::new(&[len + 20], 9), Lent::new(&[len + 20], 9));
    register(&bed, 1, 1, &good, Rights::BOTH);
    register(&bed, 1, 2, &closed, wrong);
    let half = len / 2;
    let rows = [
        (remote(&[(0, len, 3)]), Error::NoKey),
        (remote(&[(0, len, 2)]), Error::NoRights),
        (remote(&[(21, len, 1)]), Error::OutOfRange),
        (remote(&[(u64::MAX, len, 1)]), Error::OutOfRange),
        (remote(&[(0, half, 1), (0, len - half, 3)]), Error::NoKey),
        (remote(&[(0, half, 1), (0, len - half, 2)]), Error::NoRights),
        (
            remote(&[(0, half, 1), (half as u64 + 21, len - half, 1)]),
            Error::OutOfRange,
        ),
    ];
    for (remote, error) in rows {
        let local = Lent::new(&[len], 4);
        bed.rma(0, &access(kind, 1, &local, remote)).unwrap();
        bed.settle();
        let done = bed.done(0);
        assert_eq!(
            done,
            [end(CompletedOp::Rma(kind), 1, len, Some(error))],
            "{remote:?} {manner:?}"
        );
        assert_eq!(local.bytes(), vec![4; len]);
        let refused = std::mem::take(&mut bed.world.borrow_mut().refused);
        assert!(matches!(refused[..], [(1, _, why)] if why == error), "{refused:?}");
    }
    for memory in [good, closed] {
        assert_eq!(memory.bytes(), vec![9; len + 20]);
    }
    assert_eq!(bed.told(1), []);
    bed.check_nothing_left();
}

/// A program that has something to read, or has not, whatever it is told.
pub(super) struct Hearer(pub bool);

impl Report for Hearer {
    fn report(&mut self, _: Completion) {}

    fn has_told(&self) -> bool {
        self.0
    }
}

/// A look that found nothing to read may be the last for a while.
#[test]
fn a_target_takes_all_that_has_come_unless_its_program_has_something_to_read() {
    const WRITES: usize = 1100;
    for (hears, taken) in [(true, [64, 128]), (false, [1024, WRITES])] {
        let config = Config {
            in_flight: WRITES,
            ..small()
        };
        let manner = Manner {
            depth: WRITES,
            ..manners()[0]
        };
        let mut bed = Bed::new(2, 4, manner, config);
        let memory = Lent::new(&[WRITES], 0);
        register(&bed, 1, 7, &memory, Rights::BOTH);
        let byte = Lent::new(&[1], 1);
        byte.set(&[1]);
        for at in 0..WRITES {
            bed.rma(0, &access(Access::Write, 1, &byte, remote(&[(at as u64, 1, 7)])))
                .unwrap();
        }
        let found = taken.map(|_| {
            bed.nodes[1].engine.progress(&mut Hearer(hears));
            memory.bytes().iter().filter(|byte| **byte == 1).count()
        });
        assert_eq!(found, taken);
        bed.settle();
        bed.check_nothing_left();
    }
}
