//! Operations from several threads at once on the same bytes, with totals that must come out exact.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::values::{Value, encode, is};
use super::{Place, execute};
use crate::mem::atomic::*;
use crate::util::user::UserBuf;

const THREADS: usize = 4;
const ROUNDS: usize = 501;

/// Runs `work` in threads that begin together, and gathers what they give.
fn together<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (start, work) = (&Barrier::new(THREADS), &work);
    thread::scope(|scope| {
        let begun: Vec<_> = (0..THREADS)
            .map(|index| {
                scope.spawn(move || {
                    start.wait();
                    work(index)
                })
            })
            .collect();
        begun.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn fetch(op: Op, datatype: Datatype, target: UserBuf, operand: &[u8]) -> Vec<u8> {
    let mut answer = vec![0; operand.len()];
    execute(op, datatype, Form::Fetch, target, operand, &[], &mut answer).unwrap();
    answer
}

/// A switch that each thread turns: half of the turns must see it off, and it ends off. One lost or doubled turn shows.
#[test]
fn no_turn_of_a_switch_is_lost() {
    for datatype in Datatype::ALL {
        let [off, on] = [0, 1].map(|value| encode(datatype, Value::Int(value)));
        // At a line's start; across the end of a line; unaligned within it.
        for offset in [0, 64 - datatype.size() / 2, 1] {
            let mut place = Place::new(offset, &off);
            let buf = place.buf();
            let seen = together(|_| {
                let turns = (0..ROUNDS).map(|_| fetch(Op::Lxor, datatype, buf, &on));
                turns.fold((0, 0), |(offs, ons), old| {
                    (
                        offs + usize::from(is(datatype, &old, &off)),
                        ons + usize::from(is(datatype, &old, &on)),
                    )
                })
            });
            let total = seen.iter().fold((0, 0), |sum, seen| (sum.0 + seen.0, sum.1 + seen.1));
            assert_eq!(
                total,
                (THREADS * ROUNDS / 2, THREADS * ROUNDS / 2),
                "{datatype:?} at {offset}"
            );
            assert!(is(datatype, place.bytes(), &off));
        }
    }
}

/// Arrays whose sums stay exact in the type.
#[test]
fn sums_are_exact() {
    use Datatype::*;
    let wide = [
        Int16,
        Uint16,
        Int32,
        Uint32,
        Int64,
        Uint64,
        Int128,
        Uint128,
        Float,
        Double,
        LongDouble,
        FloatComplex,
        DoubleComplex,
        LongDoubleComplex,
    ];
    for datatype in wide {
        let values = |number: i128| [0, 1, 2].map(|at| encode(datatype, Value::Int(number * at))).concat();
        for offset in [0, 1] {
            let mut place = Place::new(offset, &values(0));
            let (buf, operand) = (place.buf(), values(1));
            together(|index| {
                for _ in 0..ROUNDS {
                    if index % 2 == 0 {
                        execute(Op::Sum, datatype, Form::Base, buf, &operand, &[], &mut []).unwrap();
                    } else {
                        fetch(Op::Sum, datatype, buf, &operand);
                    }
                }
            });
            let total = values((THREADS * ROUNDS) as i128);
            let same = |(got, value): (&[u8], &[u8])| is(datatype, got, value);
            let size = datatype.size();
            assert!(
                place.bytes().chunks(size).zip(total.chunks(size)).all(same),
                "{datatype:?} at {offset}"
            );
        }
    }
}

/// Three types of one size, and the program's own atomics, on one word: each has its own bits of it.
#[test]
fn types_of_one_size_and_the_programs_own_atomics_mix() {
    let mut place = Place::new(0, &[0; 8]);
    let buf = place.buf();
    // SAFETY: the eight aligned bytes live as long as the place.
    let own = unsafe { AtomicU64::from_ptr(buf.addr() as *mut u64) };
    together(|index| {
        for _ in 0..ROUNDS {
            match index {
                0 => drop(own.fetch_add(1, Ordering::Relaxed)),
                1 => drop(fetch(Op::Sum, Datatype::Int64, buf, &(1u64 << 20).to_ne_bytes())),
                2 => drop(fetch(Op::Bxor, Datatype::Uint64, buf, &(1u64 << 60).to_ne_bytes())),
                _ => add_by_mask(buf),
            }
        }
    });
    let rounds = ROUNDS as u64;
    let expected = rounds | rounds << 20 | rounds << 40 | (rounds % 2) << 60;
    assert_eq!(own.load(Ordering::Relaxed), expected);
}

/// Counts in bits 40 to 60 with FI_CSWAP in the whole word.
fn add_by_mask(buf: UserBuf) {
    let mut seen = [0; 8];
    execute(Op::Read, Datatype::Double, Form::Fetch, buf, &[], &[], &mut seen).unwrap();
    loop {
        let new = (u64::from_ne_bytes(seen) + (1 << 40)).to_ne_bytes();
        let mut old = [0; 8];
        execute(Op::Cswap, Datatype::Uint64, Form::Compare, buf, &new, &seen, &mut old).unwrap();
        if old == seen {
            return;
        }
        seen = old;
    }
}

/// The largest and the smallest of what all threads offered stand at the end.
#[test]
fn the_extremes_win() {
    for datatype in [
        Datatype::Int32,
        Datatype::Uint64,
        Datatype::Int128,
        Datatype::Float,
        Datatype::Double,
        Datatype::Float16,
    ] {
        for offset in [0, 1] {
            let start = encode(datatype, Value::Int(60));
            let (mut low, mut high) = (Place::new(offset, &start), Place::new(offset, &start));
            let (least, most) = (low.buf(), high.buf());
            together(|index| {
                for round in 0..25 {
                    let offer = encode(datatype, Value::Int((10 + round * THREADS + index) as i128));
                    fetch(Op::Min, datatype, least, &offer);
                    fetch(Op::Max, datatype, most, &offer);
                }
            });
            assert!(
                is(datatype, low.bytes(), &encode(datatype, Value::Int(10))),
                "{datatype:?} at {offset}"
            );
            assert!(
                is(datatype, high.bytes(), &encode(datatype, Value::Int(109))),
                "{datatype:?} at {offset}"
            );
        }
    }
}

/// Unaligned elements of two types that share some of their bytes only: each adds to bytes the other has not.
#[test]
fn elements_that_overlap_in_part_keep_each_others_bytes() {
    let mut place = Place::new(63, &[0; 12]);
    let (low, high) = (place.buf().part(0, 8), place.buf().part(4, 8));
    together(|index| {
        for _ in 0..ROUNDS * 20 {
            match index % 2 {
                0 => drop(fetch(Op::Sum, Datatype::Uint64, low, &1u64.to_ne_bytes())),
                _ => drop(fetch(Op::Sum, Datatype::Int64, high, &(1u64 << 32).to_ne_bytes())),
            }
        }
    });
    let count = (ROUNDS * 20 * THREADS / 2) as u32;
    let expected = [count.to_ne_bytes(), [0; 4], count.to_ne_bytes()].concat();
    assert_eq!(place.bytes(), expected);
}
