//! Atomic operations on regions.

use super::read_write::Hearer;
use super::*;

use crate::mem::atomic::{Datatype, Op};

pub(super) const SUM: Op = Op::Sum;
const READ: Op = Op::Read;
const STORE: Op = Op::Write;
const CSWAP: Op = Op::Cswap;

/// An operation on FI_UINT64.
pub(super) fn on_u64(form: Form, op: Op) -> AtomicOp {
    AtomicOp::new(form, op, Datatype::Uint64).unwrap()
}

pub(super) fn words(words: &[u64]) -> Lent {
    let lent = Lent::new(&[words.len() * 8], 0);
    lent.set(&bytes(words));
    lent
}

pub(super) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(super) fn operation(form: Form, op: Op, target: AtomicTarget, operand: &Lent) -> Atomic {
    Atomic {
        op: on_u64(form, op),
        to: 1,
        target,
        len: operand.iov().len(),
        operand: operand.iov(),
        compare: UserIov::default(),
        result: UserIov::default(),
        data: None,
        inject: false,
        fence: false,
        context: 77,
        tell: Tell::Queue,
    }
}

fn three() -> AtomicTarget {
    AtomicTarget::Memory(remote(&[(8, 24, 1)]))
}

/// The same three words in pieces.
fn split() -> AtomicTarget {
    AtomicTarget::Memory(remote(&[(8, 8, 1), (0, 0, 1), (16, 16, 1)]))
}

#[test]
fn every_form_works_and_gives_what_was_there() {
    for manner in manners() {
        for target in [three(), split()] {
            for queued in [false, true] {
                all_forms(manner, target, queued);
            }
        }
    }
}

fn all_forms(manner: Manner, target: AtomicTarget, queued: bool) {
    let mut bed = Bed::new(2, 3, manner, small());
    let memory = words(&[100, 1, 2, 3, 100]);
    register(&bed, 1, 1, &memory, Rights::BOTH);
    let operand = words(&[10, 20, 30]);
    // A fence alone makes it wait in the queue.
    let make = |form, op| Atomic {
        fence: queued,
        ..operation(form, op, target, &operand)
    };
    let check = |bed: &mut Bed, form, expected: &[u64]| {
        bed.settle();
        assert_eq!(bed.done(0), [end(CompletedOp::Atomic(form), 1, 24, None)], "{manner:?}");
        assert_eq!(memory.bytes(), bytes(&[&[100], expected, &[100]].concat()));
    };
    bed.atomic(0, &make(Form::Base, SUM)).unwrap();
    check(&mut bed, Form::Base, &[11, 22, 33]);
    let result = words(&[0; 3]);
    let fetch = Atomic {
        result: result.iov(),
        ..make(Form::Fetch, SUM)
    };
    bed.atomic(0, &fetch).unwrap();
    check(&mut bed, Form::Fetch, &[21, 42, 63]);
    assert_eq!(result.bytes(), bytes(&[11, 22, 33]));
    let compare = words(&[21, 0, 63]);
    let swap = Atomic {
        compare: compare.iov(),
        result: result.iov(),
        ..make(Form::Compare, CSWAP)
    };
    bed.atomic(0, &swap).unwrap();
    check(&mut bed, Form::Compare, &[10, 42, 30]);
    assert_eq!(result.bytes(), bytes(&[21, 42, 63]));
    let read = Atomic {
        operand: UserIov::default(),
        ..fetch
    };
    bed.atomic(
        0,
        &Atomic {
            op: on_u64(Form::Fetch, READ),
            ..read
        },
    )
    .unwrap();
    check(&mut bed, Form::Fetch, &[10, 42, 30]);
    assert_eq!(result.bytes(), bytes(&[10, 42, 30]));
    let data = Some(5);
    let store = make(Form::Base, STORE);
    bed.atomic(0, &Atomic { data, ..store }).unwrap();
    check(&mut bed, Form::Base, &[10, 20, 30]);
    let ended = CompletedOp::Target {
        access: Access::Write,
        key: 1,
        atomic: true,
    };
    let told = end(ended, 0, 24, None);
    let told = Completion {
        context: 0,
        data,
        ..told
    };
    assert_eq!(bed.told(1), [told]);
    bed.check_nothing_left();
}

#[test]
fn what_is_not_allowed_is_not_done() {
    for manner in manners() {
        let mut bed = Bed::new(2, 3, manner, small());
        let [good, only_read, only_write] = [0; 3].map(|_| words(&[5; 4]));
        register(&bed, 1, 1, &good, Rights::BOTH);
        register(&bed, 1, 2, &only_read, Rights::READ);
        register(&bed, 1, 3, &only_write, Rights::WRITE);
        let part = |addr, key| AtomicTarget::Memory(remote(&[(addr, 16, key)]));
        let two = |first, second| AtomicTarget::Memory(remote(&[(0, 8, first), (0, 8, second)]));
        let cut = AtomicTarget::Memory(remote(&[(0, 4, 1), (4, 12, 1)]));
        let rows = [
            (Form::Base, SUM, part(0, 9), Error::NoKey),
            (Form::Base, SUM, part(0, 2), Error::NoRights),
            (Form::Fetch, SUM, part(0, 2), Error::NoRights),
            (Form::Fetch, SUM, part(0, 3), Error::NoRights),
            (Form::Fetch, READ, part(0, 3), Error::NoRights),
            (Form::Compare, CSWAP, part(0, 3), Error::NoRights),
            (Form::Base, SUM, part(24, 1), Error::OutOfRange),
            (Form::Fetch, SUM, part(u64::MAX, 1), Error::OutOfRange),
            (Form::Base, SUM, two(1, 2), Error::NoRights),
            (Form::Fetch, SUM, two(1, 9), Error::NoKey),
            (Form::Fetch, SUM, cut, Error::OutOfRange),
        ];
        // What only a peer that breaks the rules sends: the number that the packet has instead, an fi_op and FI_UINT64.
        let forged = [
            (Form::Base, SUM, 7 << 8 | 200),
            (Form::Base, SUM, 7 << 8 | CSWAP as u16),
            (Form::Compare, CSWAP, 7 << 8 | SUM as u16),
        ];
        let forged = forged.map(|(form, op, code)| (form, op, part(0, 1), Error::NoSuchAtomic, Some(code)));
        let rows = rows.map(|(form, op, target, error)| (form, op, target, error, None));
        for (form, op, target, error, code) in rows.into_iter().chain(forged) {
            bed.world.borrow_mut().forged_code = code;
            let (operand, result) = (words(&[1, 2]), words(&[8, 8]));
            let atomic = Atomic {
                compare: operand.iov(),
                result: result.iov(),
                ..operation(form, op, target, &operand)
            };
            bed.atomic(0, &atomic).unwrap();
            bed.settle();
            let ended = CompletedOp::Atomic(form);
            assert_eq!(
                bed.done(0),
                [end(ended, 1, 16, Some(error))],
                "{form:?} {op:?} {code:?} {target:?}"
            );
            assert_eq!(result.bytes(), bytes(&[8, 8]));
        }
        for memory in [good, only_read, only_write] {
            assert_eq!(memory.bytes(), bytes(&[5; 4]));
        }
        bed.check_nothing_left();
    }
}

/// How much does not depend on which messages are sent unasked, which a user may set.
#[test]
fn too_much_is_not_taken() {
    let usual = manners()[0];
    let limits = Limits {
        eager: 0,
        eager_if_fetched: 0,
        ..usual.limits
    };
    for manner in [usual, Manner { limits, ..usual }] {
        let mut bed = Bed::new(2, 3, manner, small());
        for form in [Form::Base, Form::Fetch, Form::Compare] {
            the_most_is_taken_and_no_more(&mut bed, form);
        }
    }
}

fn the_most_is_taken_and_no_more(bed: &mut Bed, form: Form) {
    let op = if form == Form::Compare { CSWAP } else { SUM };
    let most = bed.nodes[0].engine.atomic_limit(form);
    assert!(most >= 8);
    let memory = Lent::new(&[most + 1], 0);
    register(bed, 1, form as u64, &memory, Rights::BOTH);
    for (len, fits) in [(most, Ok(())), (most + 1, Err(Refused::TooLong))] {
        let local = Lent::new(&[len], 0);
        let target = AtomicTarget::Memory(remote(&[(0, len, form as u64)]));
        let atomic = Atomic {
            op: AtomicOp::new(form, op, Datatype::Uint8).unwrap(),
            compare: local.iov(),
            result: local.iov(),
            ..operation(form, op, target, &local)
        };
        assert_eq!(bed.atomic(0, &atomic), fits);
    }
    bed.settle();
    assert_eq!(bed.done(0), [end(CompletedOp::Atomic(form), 1, most, None)]);
}

/// More than are pushed to a peer at a time: the target may not look again for long. If its program has something to
/// read, it looks again for what one poll does not take.
#[test]
fn all_that_have_come_are_answered_in_one_turn() {
    for (hears, all) in [(false, 100), (true, 60)] {
        all_are_answered_in_one_turn(hears, all);
    }
}

fn all_are_answered_in_one_turn(hears: bool, all: usize) {
    let mut bed = Bed::new(2, 1, manners()[0], Config::default());
    let memory = words(&[0]);
    register(&bed, 1, 1, &memory, Rights::BOTH);
    let (one, before) = (words(&[1]), words(&[0]));
    let target = AtomicTarget::Memory(remote(&[(0, 8, 1)]));
    for _ in 0..all {
        let fetch = Atomic {
            result: before.iov(),
            ..operation(Form::Fetch, SUM, target, &one)
        };
        bed.atomic(0, &fetch).unwrap();
    }
    bed.world.borrow_mut().now += 1;
    bed.nodes[1].engine.progress(&mut Hearer(hears));
    assert_eq!(bed.world.borrow().count(Packet::Reply), all);
    bed.settle();
    assert_eq!((bed.ends(0).len(), memory.bytes()), (all, bytes(&[all as u64])));
}
