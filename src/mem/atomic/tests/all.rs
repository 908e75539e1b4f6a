//! Every type, operation and kind, at several counts and alignments.

use super::values::{Value, after, encode, is, signed};
use super::{Place, execute, execute_iov};
use crate::mem::atomic::*;
use crate::util::user::{IOV_LIMIT, Lent, UserIov};

/// Values that show differences: borders, both zeros, NaN, what overflows, and plain ones. Sums and products of complex
/// ones and of long doubles stay exact in f64.
fn interesting(datatype: Datatype) -> Vec<Vec<u8>> {
    let bits = datatype.size() as u32 * 8;
    let values: Vec<Value> = match datatype.class() {
        Class::Int => {
            let top = 1i128 << (bits - 1).min(126);
            let border = if bits == 128 { i128::MIN } else { top };
            let ints = [
                0,
                1,
                -1,
                2,
                3,
                85,
                -7,
                border,
                border.wrapping_sub(1),
                border.wrapping_add(1),
            ];
            ints.map(Value::Int).to_vec()
        }
        Class::Float => {
            let (large, tiny) = match datatype {
                Datatype::Float => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)),
                Datatype::Double => (f64::MAX, f64::MIN_POSITIVE),
                Datatype::LongDouble => (1e100, 2f64.powi(-300)),
                Datatype::Bfloat16 => (3e38, 2f64.powi(-133)),
                Datatype::Float16 => (65504.0, 2f64.powi(-24)),
                Datatype::Float8E4m3 => (448.0, 2f64.powi(-9)),
                _ => (57344.0, 2f64.powi(-16)),
            };
            let tiny = if datatype == Datatype::LongDouble { 0.25 } else { tiny };
            let large = if datatype == Datatype::LongDouble {
                1024.0
            } else {
                large
            };
            let reals = [
                0.0,
                -0.0,
                1.0,
                -1.5,
                1.75,
                3.0,
                large,
                -large,
                tiny,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ];
            reals.map(Value::Real).to_vec()
        }
        Class::Complex => {
            let pairs = [
                (0.0, 0.0),
                (-0.0, 0.0),
                (1.0, 0.0),
                (0.0, 1.0),
                (1.5, -2.0),
                (-3.0, 0.25),
                (f64::NAN, 1.0),
                (2.0, f64::NAN),
            ];
            pairs.map(|(x, y)| Value::Pair(x, y)).to_vec()
        }
    };
    values.into_iter().map(|value| encode(datatype, value)).collect()
}

/// All pairs of old value and operand, with compare operands that meet the old value and others.
struct Input {
    old: Vec<u8>,
    operand: Vec<u8>,
    compare: Vec<u8>,
}

fn input(datatype: Datatype) -> Input {
    let values = interesting(datatype);
    let [mut old, mut operand, mut compare] = [const { Vec::new() }; 3];
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            for c in [a, &values[(i + j) % values.len()]] {
                old.extend_from_slice(a);
                operand.extend_from_slice(b);
                compare.extend_from_slice(c);
            }
        }
    }
    Input { old, operand, compare }
}

fn expected(op: Op, datatype: Datatype, input: &Input) -> Vec<u8> {
    let size = datatype.size();
    let [old, operand, compare] = [&input.old, &input.operand, &input.compare].map(|bytes| bytes.chunks(size));
    old.zip(operand)
        .zip(compare)
        .flat_map(|((a, b), c)| after(op, datatype, a, b, c))
        .collect()
}

fn all_valid() -> impl Iterator<Item = (Datatype, Op, Form)> {
    let ops = |datatype| Op::ALL.into_iter().map(move |op| (datatype, op));
    Datatype::ALL
        .into_iter()
        .flat_map(ops)
        .flat_map(|(datatype, op)| Form::ALL.into_iter().map(move |kind| (datatype, op, kind)))
        .filter(|(datatype, op, kind)| valid(*kind, *op, *datatype))
}

fn assert_elements(datatype: Datatype, input: &Input, got: &[u8], expected: &[u8], what: &str) {
    let size = datatype.size();
    assert_eq!(got.len(), expected.len());
    for (index, (bytes, value)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
        let [a, b, c] = [&input.old, &input.operand, &input.compare].map(|all| &all[index * size..][..size]);
        assert!(
            is(datatype, bytes, value),
            "{what} {a:x?} {b:x?} {c:x?}: {bytes:x?}, not {value:x?}"
        );
    }
}

#[test]
fn every_operation_at_several_alignments_and_counts() {
    for (datatype, op, kind) in all_valid() {
        let (size, input) = (datatype.size(), input(datatype));
        let expected = expected(op, datatype, &input);
        for (offset, other, counts) in [
            (0, 0, [1, 2, 7]),
            (0, 3, [64, 1, 3]),
            (1, 1, [1, 5, 2]),
            (size / 2, 7, [9, 1, 1]),
        ] {
            let what = format!("{datatype:?} {op:?} {kind:?} offset {offset}");
            let mut target = Place::new(offset, &input.old);
            let mut result = Place::new(other, &vec![0; input.old.len()]);
            let (mut at, mut counts) = (0, counts.into_iter().cycle());
            while at < input.old.len() {
                let len = (counts.next().unwrap() * size).min(input.old.len() - at);
                let operand = Place::new(other, &input.operand[at..at + len]);
                let compare = Place::new(other, &input.compare[at..at + len]);
                let mut answer = vec![0; len];
                let part = target.buf().part(at, len);
                execute(op, datatype, kind, part, operand.bytes(), compare.bytes(), &mut answer).unwrap();
                result.buf().part(at, len).write(&answer);
                at += len;
            }
            assert_elements(datatype, &input, target.bytes(), &expected, &what);
            let answer = if kind == Form::Base {
                vec![0; input.old.len()]
            } else {
                input.old.clone()
            };
            assert_eq!(result.bytes(), answer, "{what}");
        }
    }
}

#[test]
fn every_operation_on_memory_in_pieces() {
    for (datatype, op, kind) in all_valid() {
        let (size, input) = (datatype.size(), input(datatype));
        let (len, expected) = (input.old.len(), expected(op, datatype, &input));
        for cuts in [vec![len], vec![size, len - size], vec![size + 1, 2, 0, len - size - 3]] {
            assert!(cuts.len() <= IOV_LIMIT);
            let what = format!("{datatype:?} {op:?} {kind:?} {cuts:?}");
            let target = Lent::new(&cuts, 0);
            let (operand, compare) = (Lent::new(&[len / 2 + 1, len - len / 2 - 1], 0), Lent::new(&[len], 0));
            let result = Lent::new(&[2 * size, len - 2 * size], 0x77);
            target.set(&input.old);
            operand.set(&input.operand);
            compare.set(&input.compare);
            let none = UserIov::default();
            let [operand, compare] = [operand.iov(), compare.iov()];
            let operand = if op == Op::Read { none } else { operand };
            let compare = if kind == Form::Compare { compare } else { none };
            execute_iov(op, datatype, kind, &target.iov(), &operand, &compare, &result.iov()).unwrap();
            assert_elements(datatype, &input, &target.bytes(), &expected, &what);
            let answer = if kind == Form::Base {
                vec![0x77; len]
            } else {
                input.old.clone()
            };
            assert_eq!(result.bytes(), answer, "{what}");
        }
    }
}

/// What others work on too is changed by the processor at once, or not at all.
#[test]
fn shared_memory_is_changed_at_once_or_not_at_all() {
    for (datatype, op, kind) in all_valid() {
        let (size, input) = (datatype.size(), input(datatype));
        let (len, expected) = (input.old.len(), expected(op, datatype, &input));
        let none = UserBuf::default();
        for (offset, cut) in [(0, 0), (1, 0), (0, size), (size / 2, size), (0, size + 1)] {
            let what = format!("{datatype:?} {op:?} {kind:?} offset {offset} cut at {cut}");
            let mut target = Place::new(offset, &input.old);
            let (mut operand, mut compare) = (Place::new(3, &input.operand), Place::new(5, &input.compare));
            let mut result = Place::new(0, &vec![0; len]);
            let operand = if op == Op::Read { none } else { operand.buf() };
            let compare = if kind == Form::Compare { compare.buf() } else { none };
            let (buf, answer) = (target.buf(), result.buf());
            let done = if cut == 0 {
                execute_shared(
                    AtomicOp::new(kind, op, datatype).unwrap(),
                    buf,
                    operand,
                    compare,
                    answer,
                )
            } else {
                let [operand, compare, answer] = [operand, compare, answer].map(UserIov::one);
                let buf = UserIov::new([buf.part(0, cut), buf.part(cut, len)]).unwrap();
                execute_shared_iov(
                    AtomicOp::new(kind, op, datatype).unwrap(),
                    &buf,
                    &operand,
                    &compare,
                    &answer,
                )
            };
            assert_eq!(done, cut % size == 0 && native(datatype, buf.addr()), "{what}");
            if done {
                assert_elements(datatype, &input, target.bytes(), &expected, &what);
            } else {
                assert_eq!(target.bytes(), input.old, "{what}");
            }
            let told = done && kind != Form::Base;
            assert_eq!(
                result.bytes(),
                if told { input.old.clone() } else { vec![0; len] },
                "{what}"
            );
        }
    }
}

#[test]
fn combine_is_the_same_without_atomics() {
    for (datatype, op, _) in all_valid().filter(|(.., kind)| *kind == Form::Base) {
        let input = input(datatype);
        let expected = expected(op, datatype, &input);
        for offset in [0, 1] {
            let operand = Place::new(offset, &input.operand);
            let mut memory = vec![0; offset];
            memory.extend_from_slice(&input.old);
            combine(op, datatype, &mut memory[offset..], operand.bytes()).unwrap();
            assert_elements(
                datatype,
                &input,
                &memory[offset..],
                &expected,
                &format!("{datatype:?} {op:?}"),
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_touched() {
    for datatype in Datatype::ALL {
        let size = datatype.size();
        let operand = encode(datatype, Value::Int(1));
        let bytes = vec![0; size];
        for op in Op::ALL {
            for kind in Form::ALL {
                let mut target = Place::new(0, &bytes);
                let mut answer = vec![0x33; size];
                let buf = target.buf();
                let done = execute(op, datatype, kind, buf, &operand, &operand, &mut answer);
                if !valid(kind, op, datatype) {
                    assert_eq!(done, Err(Invalid::Combination));
                    assert_eq!((target.bytes(), &answer), (&bytes[..], &vec![0x33; size]));
                    continue;
                }
                assert_eq!(done, Ok(()));
                let mut target = Place::new(0, &bytes);
                let mut answer = vec![0x33; size];
                let buf = target.buf();
                let has = arrays(AtomicOp::new(kind, op, datatype).unwrap());
                let [short, long] = [&operand[..size - 1], &[&operand[..], &[1]].concat()];
                let empty: &mut [u8] = &mut [];
                for wrong in [short, long, &[]] {
                    let done = execute(op, datatype, kind, buf, wrong, &operand, &mut answer);
                    assert_eq!(done.is_err(), has.operand, "{op:?} operand");
                }
                for wrong in [short, long, &[]] {
                    let done = execute(op, datatype, kind, buf, &operand, wrong, &mut answer);
                    assert_eq!(done.is_err(), has.compare, "{op:?} compare");
                }
                let done = execute(op, datatype, kind, buf, &operand, &operand, empty);
                assert_eq!(done.is_err(), has.result, "{op:?} result");
                if size > 1 {
                    let done = execute(
                        op,
                        datatype,
                        kind,
                        buf.part(0, size - 1),
                        short,
                        short,
                        &mut answer[1..],
                    );
                    assert_eq!(done, Err(Invalid::Length));
                }
                assert_eq!(execute(op, datatype, kind, buf.part(0, 0), &[], &[], empty), Ok(()));
            }
        }
        assert_eq!(combine(Op::Cswap, datatype, &mut [], &[]), Err(Invalid::Combination));
        assert_eq!(
            combine(Op::Sum, datatype, &mut operand.clone(), &[]),
            Err(Invalid::Length)
        );
    }
}

#[test]
fn aligned_words_are_native() {
    for datatype in Datatype::ALL {
        let size = datatype.size();
        if size <= 8 {
            assert!(native(datatype, 4096 + size));
        }
        #[cfg(target_arch = "x86_64")]
        if size == 16 {
            let here = std::is_x86_feature_detected!("cmpxchg16b") && std::is_x86_feature_detected!("avx");
            assert_eq!(native(datatype, 4096 + 16), here);
        }
        assert!(size < 32 || !native(datatype, 4096));
        assert!(size == 1 || !native(datatype, 4096 + size / 2));
    }
    assert_eq!(
        Datatype::ALL.into_iter().filter(|datatype| signed(*datatype)).count(),
        5
    );
}
