//! Atomics: which there are, what the device is asked for, and what a card cannot do.

use super::*;
use crate::engine::op::{Atomic, AtomicOp, AtomicTarget, Form};
use crate::mem::atomic::{Datatype, Op};

fn iov(bytes: &[u8]) -> UserIov {
    let lent = Lent::new(&[bytes.len()], 0);
    lent.set(bytes);
    lent.iov()
}

fn at(addr: u64, len: usize) -> AtomicTarget {
    AtomicTarget::Memory(RemoteIov::one(RemotePart { addr, len, key: 9 }))
}

fn number(value: u64) -> Lent {
    let lent = Lent::new(&[8], 0);
    lent.set(&value.to_ne_bytes());
    lent
}

impl Bed {
    fn atomic(&self, form: Form, op: Op, datatype: Datatype, numbers: &[Lent; 2]) -> Atomic {
        let iov = |there: bool, of: UserIov| if there { of } else { UserIov::default() };
        Atomic {
            op: AtomicOp::new(form, op, datatype).unwrap(),
            to: 0,
            target: at(0x1000, 8),
            len: 8,
            operand: iov(op != Op::Read, numbers[0].iov()),
            compare: iov(form == Form::Compare, numbers[1].iov()),
            result: iov(form != Form::Base, self.part(8)),
            data: None,
            inject: false,
            fence: false,
            context: 5,
            tell: Tell::Queue,
        }
    }

    fn last(&self) -> (Work, Vec<Piece>) {
        self.device.script().sends.last().unwrap().clone()
    }
}

#[test]
fn atomics_become_requests() {
    let numbers = [number(7), number(3)];
    let rows = [
        (Form::Base, Op::Write, Opcode::Write),
        (Form::Fetch, Op::Read, Opcode::Read),
        (Form::Fetch, Op::Sum, Opcode::FetchAdd(7)),
        (Form::Compare, Op::Cswap, Opcode::CompareSwap { compare: 3, swap: 7 }),
    ];
    for (form, op, opcode) in rows {
        let mut bed = Bed::connected();
        let atomic = bed.atomic(form, op, Datatype::Uint64, &numbers);
        assert_eq!(bed.end.atomic(&atomic, HEARD), Ok(()), "{form:?} {op:?}");
        let (work, pieces) = bed.last();
        assert_eq!((work.opcode, work.remote, work.fence), (opcode, (0x1000, 9), true));
        // What comes back needs a key; what is written travels in the request.
        let written = form == Form::Base;
        assert_eq!((work.inline, pieces.len()), (written, 1));
        assert_eq!((pieces[0].key, pieces[0].len), (u32::from(!written), 8));
        bed.device.completes(work.id, DoneKind::Other, None);
        let told = bed.poll();
        assert_eq!(
            (told[0].op, told[0].context, told[0].len),
            (CompletedOp::Atomic(form), 5, 8)
        );
    }
}

#[test]
fn what_there_is_and_what_not() {
    let numbers = [number(7), number(3)];
    let mut bed = Bed::connected();
    let rows = [
        (Form::Base, Op::Write, Datatype::Double, true),
        (Form::Fetch, Op::Read, Datatype::Int64, true),
        (Form::Fetch, Op::Sum, Datatype::Int64, true),
        (Form::Fetch, Op::Sum, Datatype::Double, false),
        (Form::Compare, Op::Cswap, Datatype::Double, false),
        (Form::Base, Op::Sum, Datatype::Uint64, false),
        (Form::Fetch, Op::Bor, Datatype::Uint64, false),
        (Form::Fetch, Op::Sum, Datatype::Uint32, false),
        (Form::Compare, Op::CswapLe, Datatype::Uint64, false),
    ];
    for (form, op, datatype, there) in rows {
        let atomic = bed.atomic(form, op, datatype, &numbers);
        bed.device.script().sends.clear();
        bed.end.sends.posted().clear();
        let expected = if there { Ok(()) } else { Err(Refused::Unsupported) };
        assert_eq!(bed.end.atomic(&atomic, HEARD), expected, "{form:?} {op:?} {datatype:?}");
        assert_eq!(bed.end.amos().contains(&atomic.op), there);
    }
    bed.end.config.atomics = false;
    let atomic = bed.atomic(Form::Fetch, Op::Sum, Datatype::Int64, &numbers);
    assert_eq!(bed.end.atomic(&atomic, HEARD), Err(Refused::Unsupported));
    assert!(bed.end.amos().is_empty());
}

#[test]
fn a_card_takes_one_aligned_number() {
    let numbers = [number(7), number(3)];
    let mut bed = Bed::connected();
    let good = bed.atomic(Form::Fetch, Op::Sum, Datatype::Uint64, &numbers);
    let part = RemotePart {
        addr: 0x1000,
        len: 4,
        key: 9,
    };
    let pieces = Lent::new(&[4, 4], 0);
    let key = RemotePart {
        key: 1 << 32,
        len: 8,
        ..part
    };
    let strange = Lent::new(&[8], 0);
    let rows = [
        (
            Atomic {
                len: 16,
                target: at(0x1000, 16),
                ..good
            },
            Refused::TooLong,
        ),
        (
            Atomic {
                target: at(0x1004, 8),
                ..good
            },
            Refused::Invalid,
        ),
        (
            Atomic {
                target: AtomicTarget::Memory(RemoteIov::one(key)),
                ..good
            },
            Refused::Invalid,
        ),
        (
            Atomic {
                target: AtomicTarget::Memory(RemoteIov::new([part, part]).unwrap()),
                ..good
            },
            Refused::Unsupported,
        ),
        (
            Atomic {
                target: AtomicTarget::Tagged { tag: 1, at: 0 },
                ..good
            },
            Refused::Unsupported,
        ),
        (
            Atomic {
                result: pieces.iov(),
                ..good
            },
            Refused::Invalid,
        ),
        // Its memory is nobody's.
        (
            Atomic {
                result: strange.iov(),
                ..good
            },
            Refused::Invalid,
        ),
    ];
    for (at, (atomic, expected)) in rows.iter().enumerate() {
        assert_eq!(bed.end.atomic(atomic, HEARD), Err(*expected), "row {at}");
    }
    assert_eq!((bed.end.unfinished(), bed.device.script().sends.len()), ((0, 0), 0));
}

#[test]
fn operands_are_read_before_the_call_returns() {
    let mut bed = Bed::connected();
    let operand = Lent::new(&[4, 4], 0);
    operand.set(&0x0102_0304_0506_0708u64.to_ne_bytes());
    let add = Atomic {
        operand: operand.iov(),
        inject: true,
        ..bed.atomic(Form::Fetch, Op::Sum, Datatype::Uint64, &[number(0), number(0)])
    };
    assert_eq!(
        bed.end.atomic(&add, HEARD),
        Ok(()),
        "the operand may be of several pieces"
    );
    assert_eq!(bed.last().0.opcode, Opcode::FetchAdd(0x0102_0304_0506_0708));
    bed.end.inline = 4;
    let write = Atomic {
        inject: true,
        operand: iov(&[1; 8]),
        ..bed.atomic(Form::Base, Op::Write, Datatype::Uint64, &[number(0), number(0)])
    };
    assert_eq!(bed.end.atomic(&write, HEARD), Err(Refused::TooLong));
}
