//! Floating point numbers of 16 and 8 bits: worked on as f32, which holds each of them exactly, and rounded back.
//!
//! Rounding is to nearest, ties to even, and nothing saturates: what is too large becomes infinite, and in E4M3, which has
//! no infinity (OCP 8-bit floating point), NaN. f32 has enough bits that rounding twice gives what rounding once would.

use core::marker::PhantomData;

use super::element::{Element, Number, ordered};
use super::kinds::Op;
use super::word::Word;

/// A layout: sign, exponent, mantissa from the top down.
pub trait Format: Copy {
    type Raw: Word;
    const EXPONENT: u32;
    const MANTISSA: u32;
    /// Whether the highest exponent means infinity and NaN, as IEEE 754 has it; else only all ones mean NaN.
    const INFINITE: bool;

    fn bits(raw: Self::Raw) -> u32;
    /// Takes as many low bits as there are.
    fn raw(bits: u32) -> Self::Raw;
}

/// The bits of a number in one of the layouts. Bits are kept as they came, so a NaN that is only moved stays the same.
#[derive(Clone, Copy)]
pub struct Small<F: Format>(F::Raw, PhantomData<F>);

impl<F: Format> Small<F> {
    const BIAS: i32 = (1 << (F::EXPONENT - 1)) - 1;
    /// Just above all numbers: infinity, or in a layout without it the NaN.
    const TOO_LARGE: u32 = match F::INFINITE {
        true => ((1 << F::EXPONENT) - 1) << F::MANTISSA,
        false => (1 << (F::EXPONENT + F::MANTISSA)) - 1,
    };
    const NAN: u32 = match F::INFINITE {
        true => Self::TOO_LARGE | 1 << (F::MANTISSA - 1),
        false => Self::TOO_LARGE,
    };
    /// What the lowest bit of the smallest numbers is worth, as a power of two.
    const LOWEST: i32 = 1 - Self::BIAS - F::MANTISSA as i32;

    pub fn new(raw: F::Raw) -> Self {
        Small(raw, PhantomData)
    }

    #[inline]
    pub fn value(self) -> f32 {
        let bits = F::bits(self.0);
        let sign = bits >> (F::EXPONENT + F::MANTISSA) & 1;
        let size = bits & ((1 << (F::EXPONENT + F::MANTISSA)) - 1);
        let magnitude = if size >= Self::TOO_LARGE {
            if size == Self::TOO_LARGE && F::INFINITE {
                f32::INFINITY
            } else {
                f32::NAN
            }
        } else if size >> F::MANTISSA == 0 {
            size as f32 * power_of_two(Self::LOWEST)
        } else {
            f32::from_bits((size << (23 - F::MANTISSA)).wrapping_add(((127 - Self::BIAS) as u32) << 23))
        };
        f32::from_bits(magnitude.to_bits() | sign << 31)
    }

    #[inline]
    pub fn round(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = bits >> 31 << (F::EXPONENT + F::MANTISSA);
        let size = if value.is_nan() {
            Self::NAN
        } else {
            Self::rounded(bits & !(1 << 31))
        };
        Self::new(F::raw(sign | size))
    }

    /// The bits of the nearest number for those of an f32 that is not negative and not NaN.
    fn rounded(bits: u32) -> u32 {
        let exponent = (bits >> 23) as i32;
        // The value is `all` times two to the power of `unit`.
        let (all, unit) = match exponent {
            0 => (bits, -149),
            _ => (bits & 0x7f_ffff | 0x80_0000, exponent - 150),
        };
        let lowest = (unit + 23 - F::MANTISSA as i32).max(Self::LOWEST);
        // Beyond 25 places not even half of the lowest bit is left.
        let cut = (lowest - unit).clamp(1, 25) as u32;
        let (kept, rest, half) = (all >> cut, all & ((1 << cut) - 1), 1 << (cut - 1));
        let up = rest > half || rest == half && kept & 1 == 1;
        // A carry out of the mantissa moves into the exponent by itself.
        let size = (((lowest - Self::LOWEST) as u32) << F::MANTISSA) + kept + u32::from(up);
        size.min(Self::TOO_LARGE)
    }
}

const fn power_of_two(exponent: i32) -> f32 {
    match exponent < -126 {
        true => f32::from_bits(1 << (exponent + 149)),
        false => f32::from_bits(((exponent + 127) as u32) << 23),
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
    fn sum(self, other: Self) -> Self {
        Self::round(self.value() + other.value())
    }
    fn diff(self, other: Self) -> Self {
        Self::round(self.value() - other.value())
    }
    fn prod(self, other: Self) -> Self {
        Self::round(self.value() * other.value())
    }
    fn of(truth: bool) -> Self {
        Self::round(truth.into())
    }
    fn is_true(self) -> bool {
        self.value() != 0.0
    }
}

impl<F: Format> Element for Small<F> {
    type Word = F::Raw;

    fn from_word(word: F::Raw) -> Self {
        Self::new(word)
    }
    fn word(self) -> F::Raw {
        self.0
    }
    fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
        ordered(op, old, operand, compare)
    }
}

macro_rules! formats {
    ($($(#[$text:meta])* $name:ident($raw:ty, $exponent:literal, $mantissa:literal, $infinite:literal);)*) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

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
