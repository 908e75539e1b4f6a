//! Raw words of an element's size, and the processor's atomic instructions on them.
//!
//! All atomic accesses use the word of the element's size, whatever the type. So operations on one word by different
//! types, by several processes and by the program's own atomics are atomic to each other. 16 bytes need cmpxchg16b, and
//! AVX, since processors with AVX load 16 aligned bytes atomically: a load by cmpxchg16b would write, which faults on
//! read-only memory.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use super::kernel::Job;
use super::kinds::Op;
use super::stripes;

/// A word of one element's size.
pub(super) trait Word: Copy + Default + PartialEq {
    /// Whether the processor has atomic instructions for a word at this address.
    fn native(addr: usize) -> bool;

    /// Replaces the word by what `change` returns, or leaves it if that is None. Returns the old word.
    ///
    /// # Safety
    /// `native(at)` holds. The word is readable, and writable unless `change` returns None.
    unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self;

    /// Runs an operation that is one instruction on the word. False, and nothing was done, for all others. `int`:
    /// `Element::INT` of the type.
    ///
    /// # Safety
    /// As `Job::each`, and `native` holds for the target.
    unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool;
}

/// Atomic accesses that are one instruction, or a loop around one.
///
/// # Safety
/// Of each: `native` holds for the address, the word is readable, and for all but `load` writable.
trait Instructions: Word {
    unsafe fn load(at: *mut Self) -> Self;
    unsafe fn swap(at: *mut Self, new: Self) -> Self;
    unsafe fn add(at: *mut Self, value: Self) -> Self;
    unsafe fn sub(at: *mut Self, value: Self) -> Self;
    unsafe fn or(at: *mut Self, value: Self) -> Self;
    unsafe fn and(at: *mut Self, value: Self) -> Self;
    unsafe fn xor(at: *mut Self, value: Self) -> Self;
    /// Returns the old word, which was replaced if it equals `old`.
    unsafe fn compare_swap(at: *mut Self, old: Self, new: Self) -> Self;
}

/// # Safety
/// As `Word::instruction`.
#[inline]
unsafe fn run<W: Instructions>(op: Op, int: bool, job: &Job) -> bool {
    // SAFETY: the caller promises what `each` needs, and that the target's elements are native, readable and, unless
    // the operation is `Read`, writable, which is what these accesses need.
    unsafe {
        match op {
            Op::Read => job.each(|at, _, _| W::load(at)),
            Op::Write => job.each(|at, operand, _| W::swap(at, operand)),
            Op::Sum if int => job.each(|at, operand, _| W::add(at, operand)),
            Op::Diff if int => job.each(|at, operand, _| W::sub(at, operand)),
            Op::Bor => job.each(|at, operand, _| W::or(at, operand)),
            Op::Band => job.each(|at, operand, _| W::and(at, operand)),
            Op::Bxor => job.each(|at, operand, _| W::xor(at, operand)),
            Op::Cswap if int => job.each(|at, operand, compare| W::compare_swap(at, compare, operand)),
            _ => return false,
        }
    }
    true
}

/// # Safety
/// As `Word::update`.
#[inline(always)]
unsafe fn update<W: Instructions>(at: *mut W, change: impl Fn(W) -> Option<W>) -> W {
    // SAFETY: the caller promises a native, readable word, and a writable one if `change` returns a value.
    unsafe {
        let mut old = W::load(at);
        while let Some(new) = change(old) {
            let seen = W::compare_swap(at, old, new);
            if seen == old {
                break;
            }
            old = seen;
        }
        old
    }
}

macro_rules! small_words {
    ($($word:ident by $atomic:ident),*) => {$(
        impl Word for $word {
            #[inline(always)]
            fn native(addr: usize) -> bool {
                addr % size_of::<$word>() == 0
            }
            #[inline(always)]
            unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self {
                // SAFETY: the caller's contract is the same.
                unsafe { update(at, change) }
            }
            unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool {
                // SAFETY: the caller's contract is the same.
                unsafe { run::<$word>(op, int, job) }
            }
        }

        // SAFETY of each block: the caller promises a valid word, and that `native` holds, so that it is aligned.
        impl Instructions for $word {
            #[inline(always)]
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.load(SeqCst)
            }
            #[inline(always)]
            unsafe fn swap(at: *mut Self, new: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.swap(new, SeqCst)
            }
            #[inline(always)]
            unsafe fn add(at: *mut Self, value: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.fetch_add(value, SeqCst)
            }
            #[inline(always)]
            unsafe fn sub(at: *mut Self, value: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.fetch_sub(value, SeqCst)
            }
            #[inline(always)]
            unsafe fn or(at: *mut Self, value: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.fetch_or(value, SeqCst)
            }
            #[inline(always)]
            unsafe fn and(at: *mut Self, value: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.fetch_and(value, SeqCst)
            }
            #[inline(always)]
            unsafe fn xor(at: *mut Self, value: Self) -> Self {
                // SAFETY: above.
                unsafe { $atomic::from_ptr(at) }.fetch_xor(value, SeqCst)
            }
            #[inline(always)]
            unsafe fn compare_swap(at: *mut Self, old: Self, new: Self) -> Self {
                // SAFETY: above.
                let done = unsafe { $atomic::from_ptr(at) }.compare_exchange(old, new, SeqCst, SeqCst);
                done.unwrap_or_else(|seen| seen)
            }
        }
    )*};
}

small_words!(u8 by AtomicU8, u16 by AtomicU16, u32 by AtomicU32, u64 by AtomicU64);

/// Atomic load and compare-and-swap of 16 bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use core::arch::{asm, x86_64};

    /// Whether the processor has them. std caches the answer.
    pub(super) fn here() -> bool {
        std::is_x86_feature_detected!("cmpxchg16b") && std::is_x86_feature_detected!("avx")
    }

    /// # Safety
    /// `here()` holds; 16 aligned bytes are readable.
    pub(super) unsafe fn load(at: *mut u128) -> u128 {
        let value: x86_64::__m128i;
        // SAFETY: the caller promises 16 aligned readable bytes and AVX; the instruction reads them into the register.
        unsafe { asm!("movdqa {}, [{}]", out(xmm_reg) value, in(reg) at, options(nostack, preserves_flags, readonly)) };
        // SAFETY: both types are 16 bytes without invalid values.
        unsafe { core::mem::transmute(value) }
    }

    /// In assembly, because core's intrinsic calls a library function, which is not linked, when it is not inlined.
    ///
    /// # Safety
    /// `here()` holds; 16 aligned bytes are readable and writable.
    #[inline]
    pub(super) unsafe fn compare_swap(at: *mut u128, old: u128, new: u128) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: the caller promises 16 aligned writable bytes and cmpxchg16b. The compiler reserves rbx, so it is
        // saved in `new` and restored.
        unsafe {
            asm!(
                "xchg rbx, {new}",
                "lock cmpxchg16b [rdi]",
                "mov rbx, {new}",
                new = inout(reg) new as u64 => _,
                in("rdi") at,
                in("rcx") (new >> 64) as u64,
                inout("rax") old as u64 => low,
                inout("rdx") (old >> 64) as u64 => high,
                options(nostack),
            )
        };
        u128::from(low) | u128::from(high) << 64
    }
}

/// Other processors have none that we use: `here` is false, and the locks are taken instead.
#[cfg(not(target_arch = "x86_64"))]
mod wide {
    use super::super::stripes::update;

    pub fn here() -> bool {
        false
    }

    /// # Safety
    /// 16 bytes are readable.
    pub unsafe fn load(at: *mut u128) -> u128 {
        // SAFETY: the caller promises 16 readable bytes, and nothing is written.
        unsafe { update(at, |_| None) }
    }

    /// # Safety
    /// 16 bytes are readable and writable.
    pub unsafe fn compare_swap(at: *mut u128, old: u128, new: u128) -> u128 {
        // SAFETY: the caller promises 16 readable and writable bytes.
        unsafe { update(at, |seen| (seen == old).then_some(new)) }
    }
}

impl Word for u128 {
    #[inline]
    fn native(addr: usize) -> bool {
        addr % size_of::<u128>() == 0 && wide::here()
    }
    #[inline(always)]
    unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self {
        // SAFETY: the caller's contract is the same.
        unsafe { update(at, change) }
    }
    unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool {
        // SAFETY: the caller's contract is the same.
        unsafe { run::<u128>(op, int, job) }
    }
}

// SAFETY of each block: the caller promises that `native` holds, so `wide::here` does, and an aligned, readable word
// that is writable but for `load`.
impl Instructions for u128 {
    unsafe fn load(at: *mut Self) -> Self {
        // SAFETY: above.
        unsafe { wide::load(at) }
    }
    unsafe fn swap(at: *mut Self, new: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |_| Some(new)) }
    }
    unsafe fn add(at: *mut Self, value: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |old| Some(old.wrapping_add(value))) }
    }
    unsafe fn sub(at: *mut Self, value: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |old| Some(old.wrapping_sub(value))) }
    }
    unsafe fn or(at: *mut Self, value: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |old| Some(old | value)) }
    }
    unsafe fn and(at: *mut Self, value: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |old| Some(old & value)) }
    }
    unsafe fn xor(at: *mut Self, value: Self) -> Self {
        // SAFETY: above.
        unsafe { update(at, |old| Some(old ^ value)) }
    }
    unsafe fn compare_swap(at: *mut Self, old: Self, new: Self) -> Self {
        // SAFETY: above.
        unsafe { wide::compare_swap(at, old, new) }
    }
}

/// 32 bytes: a pair of long doubles. No processor has atomic instructions for these.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(transparent)]
pub(super) struct Wide([u128; 2]);

impl Word for Wide {
    fn native(_: usize) -> bool {
        false
    }
    unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self {
        // SAFETY: the caller's contract is the same.
        unsafe { stripes::update(at, change) }
    }
    unsafe fn instruction(_: Op, _: bool, _: &Job) -> bool {
        false
    }
}
