//! Complex numbers: pairs of a real type, with the product that C defines.

use super::element::{Element, Number, plain};
use super::kinds::Op;
use super::long_double::LongDouble;
use super::word::Wide;

/// Real and imaginary part.
#[derive(Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(super) struct Complex<R>(pub [R; 2]);

/// The product of complex numbers over a real type.
pub(super) trait Real: Number {
    fn complex_prod(a: [Self; 2], b: [Self; 2]) -> [Self; 2];
}

impl<R: Real> Number for Complex<R> {
    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        Complex([self.0[0].sum(other.0[0]), self.0[1].sum(other.0[1])])
    }
    #[inline(always)]
    fn diff(self, other: Self) -> Self {
        Complex([self.0[0].diff(other.0[0]), self.0[1].diff(other.0[1])])
    }
    #[inline(always)]
    fn prod(self, other: Self) -> Self {
        Complex(R::complex_prod(self.0, other.0))
    }
    #[inline(always)]
    fn of(truth: bool) -> Self {
        Complex([R::of(truth), R::of(false)])
    }
    #[inline(always)]
    fn is_true(self) -> bool {
        self.0[0].is_true() || self.0[1].is_true()
    }
}

macro_rules! pairs {
    ($($float:ident)*) => {$(
        impl Real for $float {
            #[inline(always)]
            fn complex_prod([a, b]: [Self; 2], [c, d]: [Self; 2]) -> [Self; 2] {
                let [x, y] = [a * c - b * d, a * d + b * c];
                if x.is_nan() && y.is_nan() { $float::recovered([a, b], [c, d]) } else { [x, y] }
            }
        }
    )*};
}

pairs!(f32 f64);

/// The product of numbers for which the plain formula gives NaN twice.
trait Recovered: Sized {
    fn recovered(a: [Self; 2], b: [Self; 2]) -> [Self; 2];
}

macro_rules! recovered {
    ($($float:ident)*) => {$(
        impl Recovered for $float {
            /// By C's Annex G a number with an infinite part is infinite even if the other part is NaN, and infinite
            /// times non-zero is infinite. Everything else stays NaN.
            #[cold]
            fn recovered(mut left: [Self; 2], mut right: [Self; 2]) -> [Self; 2] {
                let infinite = |pair: [Self; 2]| pair[0].is_infinite() || pair[1].is_infinite();
                let boxed = |pair: [Self; 2]| pair.map(|x| <$float>::from(u8::from(x.is_infinite())).copysign(x));
                let numbers = |pair: [Self; 2]| pair.map(|x| if x.is_nan() { (0.0 as $float).copysign(x) } else { x });
                let products = [left[0] * right[0], left[1] * right[1], left[0] * right[1], left[1] * right[0]];
                let mut again = false;
                if infinite(left) {
                    (left, right, again) = (boxed(left), numbers(right), true);
                }
                if infinite(right) {
                    (left, right, again) = (numbers(left), boxed(right), true);
                }
                if !again && products.iter().any(|x| x.is_infinite()) {
                    (left, right, again) = (numbers(left), numbers(right), true);
                }
                if !again {
                    return [$float::NAN; 2];
                }
                let ([a, b], [c, d]) = (left, right);
                [$float::INFINITY * (a * c - b * d), $float::INFINITY * (a * d + b * c)]
            }
        }
    )*};
}

recovered!(f32 f64);

/// Conversion of pairs from and to raw words: real part first, as in C.
macro_rules! elements {
    ($($real:ty, [$half:ty; 2] as $word:ty;)*) => {$(
        impl Element for Complex<$real> {
            type Word = $word;

            #[inline(always)]
            fn from_word(word: $word) -> Self {
                // SAFETY: both are plain bits of the same size.
                let halves = unsafe { core::mem::transmute::<$word, [$half; 2]>(word) };
                Complex(halves.map(<$real>::from_word))
            }
            #[inline(always)]
            fn word(self) -> $word {
                let halves = self.0.map(Element::word);
                // SAFETY: both are plain bits of the same size.
                unsafe { core::mem::transmute::<[$half; 2], $word>(halves) }
            }
            #[inline(always)]
            fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
                plain(op, old, operand, compare)
            }
        }
    )*};
}

elements! {
    f32, [u32; 2] as u64;
    f64, [u64; 2] as u128;
    LongDouble, [u128; 2] as Wide;
}
