//! `long double`, which Rust lacks: values are kept as bytes here, and C does the arithmetic (cbits/long_double.c).
//!
//! On x86 a value has 80 bits in 16 bytes. The other bytes are padding: a result keeps the target's.

use core::cmp::Ordering;
use core::ffi::{c_int, c_void};

use super::complex::Real;
use super::element::{Element, Number, ordered};
use super::kinds::Op;

unsafe extern "C" {
    fn rs_ld_set(out: *mut c_void, value: c_int);
    fn rs_ld_sum(a: *mut c_void, b: *const c_void);
    fn rs_ld_diff(a: *mut c_void, b: *const c_void);
    fn rs_ld_prod(a: *mut c_void, b: *const c_void);
    fn rs_ld_compare(a: *const c_void, b: *const c_void) -> c_int;
    fn rs_ld_complex_prod(a: *mut c_void, b: *const c_void);
}

/// The bytes of one value, as memory has them.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct LongDouble(u128);

impl LongDouble {
    /// Runs one of C's `a = a op b`.
    fn with(mut self, other: Self, apply: unsafe extern "C" fn(*mut c_void, *const c_void)) -> Self {
        // SAFETY: the C functions read 16 bytes at both pointers and write 16 at the first; both are a `u128` of ours.
        unsafe { apply((&raw mut self.0).cast(), (&raw const other.0).cast()) };
        self
    }
}

impl PartialOrd for LongDouble {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        // SAFETY: the function reads 16 bytes at both pointers; both are a `u128`.
        match unsafe { rs_ld_compare((&raw const self.0).cast(), (&raw const other.0).cast()) } {
            -1 => Some(Ordering::Less),
            0 => Some(Ordering::Equal),
            1 => Some(Ordering::Greater),
            _ => None,
        }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl Number for LongDouble {
    fn sum(self, other: Self) -> Self {
        self.with(other, rs_ld_sum)
    }
    fn diff(self, other: Self) -> Self {
        self.with(other, rs_ld_diff)
    }
    fn prod(self, other: Self) -> Self {
        self.with(other, rs_ld_prod)
    }
    fn of(truth: bool) -> Self {
        let mut value = LongDouble(0);
        // SAFETY: the function writes 16 bytes at the pointer, which is a `u128` of ours.
        unsafe { rs_ld_set((&raw mut value.0).cast(), truth.into()) };
        value
    }
    fn is_true(self) -> bool {
        self != LongDouble(0)
    }
}

impl Real for LongDouble {
    fn complex_prod(mut a: [Self; 2], b: [Self; 2]) -> [Self; 2] {
        // SAFETY: the function reads 32 bytes at both pointers and writes 32 at the first; both are pairs of 16 bytes.
        unsafe { rs_ld_complex_prod(a.as_mut_ptr().cast(), b.as_ptr().cast()) };
        a
    }
}

impl Element for LongDouble {
    type Word = u128;

    fn from_word(word: u128) -> Self {
        LongDouble(word)
    }
    fn word(self) -> u128 {
        self.0
    }
    fn step(op: Op, old: Self, operand: Self, compare: Self) -> Option<Self> {
        ordered(op, old, operand, compare)
    }
}
