//! The meaning of operations on values: the new value from the old one, the operand and the compare operand. No memory.
//!
//! It is that of the C expressions in fi_atomic(3): comparisons with NaN are false, NaN is true as a truth value, both
//! zeros are equal, integers wrap, and the old value stays where a condition is false.

use super::kinds::Op;
use super::word::Word;

/// A type of element: conversion from and to a raw word, and the meaning of operations.
pub(super) trait Element: Copy {
    type Word: Word;
    /// Equal values have equal bits and sums are those of the raw word, so atomic instructions on the word can be used.
    const INT: bool = false;

    fn from_word(word: Self::Word) -> Self;
    fn word(self) -> Self::Word;

    /// The value to store. None if the old one stays, also for an operation that the type does not have.
    fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self>;
}

/// Arithmetic that all types have.
pub(super) trait Number: Copy + PartialEq {
    fn sum(self, other: Self) -> Self;
    fn diff(self, other: Self) -> Self;
    fn prod(self, other: Self) -> Self;
    /// 1 or 0.
    fn of(truth: bool) -> Self;
    fn is_true(self) -> bool;
}

/// The operations that every type has.
#[inline(always)]
pub(super) fn plain<N: Number>(op: Op, old: N, operand: N, compare: N) -> Option<N> {
    match op {
        Op::Sum => Some(old.sum(operand)),
        Op::Diff => Some(old.diff(operand)),
        Op::Prod => Some(old.prod(operand)),
        Op::Lor => Some(N::of(old.is_true() || operand.is_true())),
        Op::Land => Some(N::of(old.is_true() && operand.is_true())),
        Op::Lxor => Some(N::of(old.is_true() != operand.is_true())),
        Op::Write => Some(operand),
        Op::Cswap => (compare == old).then_some(operand),
        Op::CswapNe => (compare != old).then_some(operand),
        _ => None,
    }
}

/// The operations of types with an order.
#[inline(always)]
pub(super) fn ordered<N: Number + PartialOrd>(op: Op, old: N, operand: N, compare: N) -> Option<N> {
    let stored = match op {
        Op::Min => operand < old,
        Op::Max => operand > old,
        Op::CswapLe => compare <= old,
        Op::CswapLt => compare < old,
        Op::CswapGe => compare >= old,
        Op::CswapGt => compare > old,
        _ => return plain(op, old, operand, compare),
    };
    stored.then_some(operand)
}

macro_rules! integers {
    ($($int:ty as $word:ty),*) => {$(
        impl Number for $int {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn diff(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn of(truth: bool) -> Self {
                truth.into()
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0
            }
        }

        impl Element for $int {
            type Word = $word;
            const INT: bool = true;

            #[inline(always)]
            fn from_word(word: $word) -> Self {
                word as $int
            }
            #[inline(always)]
            fn word(self) -> $word {
                self as $word
            }
            #[inline(always)]
            fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
                match op {
                    Op::Bor => Some(old | operand),
                    Op::Band => Some(old & operand),
                    Op::Bxor => Some(old ^ operand),
                    Op::Mswap => Some((operand & compare) | (old & !compare)),
                    _ => ordered(op, old, operand, compare),
                }
            }
        }
    )*};
}

integers!(
    i8 as u8, u8 as u8, i16 as u16, u16 as u16, i32 as u32, u32 as u32, i64 as u64, u64 as u64
);
integers!(i128 as u128, u128 as u128);

macro_rules! floats {
    ($($float:ty as $word:ty),*) => {$(
        impl Number for $float {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn diff(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn of(truth: bool) -> Self {
                truth.into()
            }
            #[inline(always)]
            fn is_true(self) -> bool {
                self != 0.0
            }
        }

        impl Element for $float {
            type Word = $word;

            #[inline(always)]
            fn from_word(word: $word) -> Self {
                <$float>::from_bits(word)
            }
            #[inline(always)]
            fn word(self) -> $word {
                self.to_bits()
            }
            #[inline(always)]
            fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
                ordered(op, old, operand, compare)
            }
        }
    )*};
}

floats!(f32 as u32, f64 as u64);
