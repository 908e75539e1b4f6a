//! Floating point numbers of 16 and 8 bits: computed as f32, which represents each of them exactly, and rounded back.
//!
//! Rounding is to nearest, ties to even, without saturation: numbers too large become infinite, or NaN in E4M3, which
//! has no infinity (OCP 8-bit floating point). f32 has enough bits that rounding twice gives the same as rounding once.

use core::marker::PhantomData;

use super::element::{Element, Number, ordered};
use super::kinds::Op;
use super::word::Word;

/// A number format: sign, exponent and mantissa, from the highest bit down.
pub(super) trait Format: Copy {
    type Raw: Word;
    const EXPONENT: u32;
    const MANTISSA: u32;
    /// Whether the highest exponent means infinity and NaN, as in IEEE 754; else only all ones mean NaN.
    const INFINITE: bool;

    fn bits(raw: Self::Raw) -> u32;
    /// Keeps the low bits that fit.
    fn raw(bits: u32) -> Self::Raw;
}

/// A number in one of the formats, as bits: a NaN that is only moved keeps its bits.
#[derive(Clone, Copy)]
pub(super) struct Small<F: Format>(F::Raw, PhantomData<F>);

impl<F: Format> Small<F> {
    const BIAS: i32 = (1 << (F::EXPONENT - 1)) - 1;
    /// The bits just above all numbers: infinity, or NaN in a format without it.
    const TOO_LARGE: u32 = match F::INFINITE {
        true => ((1 << F::EXPONENT) - 1) << F::MANTISSA,
        false => (1 << (F::EXPONENT + F::MANTISSA)) - 1,
    };
    const NAN: u32 = match F::INFINITE {
        true => Self::TOO_LARGE | 1 << (F::MANTISSA - 1),
        false => Self::TOO_LARGE,
    };
    /// How much shorter the mantissa is than that of f32.
    const SHIFT: u32 = 23 - F::MANTISSA;
    /// The difference of the exponent biases of f32 and the format.
    const REBIAS: u32 = (127 - Self::BIAS) as u32;

    pub(super) fn new(raw: F::Raw) -> Self {
        Small(raw, PhantomData)
    }

    // Both conversions are written without branches, so that the compiler can vectorize loops over them.

    #[inline(always)]
    pub(super) fn value(self) -> f32 {
        let bits = F::bits(self.0);
        let sign = bits >> (F::EXPONENT + F::MANTISSA) & 1;
        let size = bits & ((1 << (F::EXPONENT + F::MANTISSA)) - 1);
        // Read as an f32 the number is too small by a power of two, also if subnormal; scaling is exact.
        let number = f32::from_bits(size << Self::SHIFT) * f32::from_bits((127 + Self::REBIAS) << 23);
        let beyond = if size >= Self::TOO_LARGE { 0xff << 23 } else { 0 };
        f32::from_bits(number.to_bits() | beyond | sign << 31)
    }

    #[inline(always)]
    pub(super) fn round(value: f32) -> Self {
        let sign = value.to_bits() >> 31 << (F::EXPONENT + F::MANTISSA);
        let bits = value.to_bits() & !(1 << 31);
        // Adds half of the last place, a little less if that place is even, and cuts off the rest. A carry out of the
        // mantissa increments the exponent, as it should.
        let half = (1 << (Self::SHIFT - 1)) - 1 + (bits >> Self::SHIFT & 1);
        let normal = ((bits + half) >> Self::SHIFT).wrapping_sub(Self::REBIAS << F::MANTISSA);
        // Subnormal numbers: adding a number whose last place is theirs makes f32 round to it.
        let ruler = (Self::REBIAS + 1 + Self::SHIFT) << 23;
        let tiny = (f32::from_bits(bits) + f32::from_bits(ruler))
            .to_bits()
            .wrapping_sub(ruler);
        let size = if bits < (Self::REBIAS + 1) << 23 { tiny } else { normal };
        let size = if bits > 0xff << 23 {
            Self::NAN
        } else {
            size.min(Self::TOO_LARGE)
        };
        Self::new(F::raw(sign | size))
    }
}

impl<F: Format> PartialEq for Small<F> {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl<F: Format> PartialOrd for Small<F> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        self.value().partial_cmp(&other.value())
    }
}

impl<F: Format> Number for Small<F> {
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Self::round(self.value() + other.value())
    }
    #[inline(always)]
    fn diff(self, other: Self) -> Self {
        Self::round(self.value() - other.value())
    }
    #[inline(always)]
    fn prod(self, other: Self) -> Self {
        Self::round(self.value() * other.value())
    }
    #[inline(always)]
    fn of(truth: bool) -> Self {
        Self::round(truth.into())
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self.value() != 0.0
    }
}

impl<F: Format> Element for Small<F> {
    type Word = F::Raw;

    #[inline(always)]
    fn from_word(word: F::Raw) -> Self {
        Self::new(word)
    }
    #[inline(always)]
    fn word(self) -> F::Raw {
        self.0
    }
    #[inline(always)]
    fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
        ordered(op, old, operand, compare)
    }
}

macro_rules! formats {
    ($($(#[$text:meta])* $name:ident($raw:ty, $exponent:literal, $mantissa:literal, $infinite:literal);)*) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Format for $name {
            type Raw = $raw;
            const EXPONENT: u32 = $exponent;
            const MANTISSA: u32 = $mantissa;
            const INFINITE: bool = $infinite;

            fn bits(raw: $raw) -> u32 {
                raw.into()
            }
            fn raw(bits: u32) -> $raw {
                bits as $raw
            }
        }
    )*};
}

formats! {
    /// FI_FLOAT16: IEEE 754 half precision.
    Half(u16, 5, 10, true);
    /// FI_BFLOAT16: the upper half of an f32.
    Brain(u16, 8, 7, true);
    /// FI_FLOAT8_E4M3: no infinity, up to 448.
    E4m3(u8, 4, 3, false);
    /// FI_FLOAT8_E5M2: as IEEE 754 would have it, up to 57344.
    E5m2(u8, 5, 2, true);
}
