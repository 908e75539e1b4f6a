//! Raw words of an element's size and what the processor does with them at once.
//!
//! Everything atomic is done on the word of the element's size, whatever its type, so operations on one word by types
//! that differ, by several processes, and by a program's own atomics on it are atomic to each other. 16 bytes need
//! cmpxchg16b, and AVX, whose processors load 16 aligned bytes at once: a load by cmpxchg16b would be a write, which
//! memory that may only be read does not take.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use super::kernel::Job;
use super::kinds::Op;
use super::stripes;

/// A word of one element's size.
pub trait Word: Copy + Default + PartialEq {
    /// Whether the processor works on a word at this address at once.
    fn native(addr: usize) -> bool;

    /// Replaces the word by what `change` makes of it, or leaves it when that is None. Gives the old word.
    ///
    /// # Safety
    /// `native(at)` holds; the word is readable, and writable unless `change` gives None.
    unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self;

    /// Runs the operations that are one instruction for a word; false for the others. `int`: sums are the word's.
    ///
    /// # Safety
    /// As `Job::each`, and `native` holds for the target.
    unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool;
}

/// What one instruction does, or a short loop of one.
///
/// # Safety
/// Of each: the word at the address is native there, readable, and for all but `load` writable.
trait Instructions: Word {
    unsafe fn load(at: *mut Self) -> Self;
    unsafe fn swap(at: *mut Self, new: Self) -> Self;
    unsafe fn add(at: *mut Self, value: Self) -> Self;
    unsafe fn sub(at: *mut Self, value: Self) -> Self;
    unsafe fn or(at: *mut Self, value: Self) -> Self;
    unsafe fn and(at: *mut Self, value: Self) -> Self;
    unsafe fn xor(at: *mut Self, value: Self) -> Self;
    /// Gives the old word, which was replaced if it is `old`.
    unsafe fn compare_swap(at: *mut Self, old: Self, new: Self) -> Self;
}

/// # Safety
/// As `Word::instruction`.
#[inline]
unsafe fn run<W: Instructions>(op: Op, int: bool, job: &Job) -> bool {
    // SAFETY: `each` gives addresses of the target's elements, for which the caller has promised what these ask.
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
    // SAFETY: the caller's promise is that of `load` and `compare_swap`.
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
                // SAFETY: the same promise.
                unsafe { update(at, change) }
            }
            unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool {
                // SAFETY: the same promise.
                unsafe { run::<$word>(op, int, job) }
            }
        }

        // SAFETY of each block: the caller says that the word is there; `native` says that it is aligned.
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

/// The two instructions for 16 bytes.
#[cfg(target_arch = "x86_64")]
mod wide {
    use core::arch::{asm, x86_64};

    /// The answer is kept by std.
    pub fn here() -> bool {
        std::is_x86_feature_detected!("cmpxchg16b") && std::is_x86_feature_detected!("avx")
    }

    /// # Safety
    /// `here()` holds; 16 aligned bytes are readable.
    pub unsafe fn load(at: *mut u128) -> u128 {
        let value: x86_64::__m128i;
        // SAFETY: the caller's promise; the instruction reads these bytes and writes the register.
        unsafe { asm!("movdqa {}, [{}]", out(xmm_reg) value, in(reg) at, options(nostack, preserves_flags, readonly)) };
        // SAFETY: both are 16 plain bytes.
        unsafe { core::mem::transmute(value) }
    }

    /// Written out, because core's function for it calls a library that is not there when nothing is inlined.
    ///
    /// # Safety
    /// `here()` holds; 16 aligned bytes are readable and writable.
    #[inline]
    pub unsafe fn compare_swap(at: *mut u128, old: u128, new: u128) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: the caller's promise. The compiler keeps rbx for itself, so it is lent for one instruction.
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

/// Nothing for 16 bytes on other processors: the locks do it.
#[cfg(not(target_arch = "x86_64"))]
mod wide {
    use super::super::stripes::update;

    pub fn here() -> bool {
        false
    }

    /// # Safety
    /// 16 bytes are readable.
    pub unsafe fn load(at: *mut u128) -> u128 {
        // SAFETY: the caller's promise.
        unsafe { update(at, |_| None) }
    }

    /// # Safety
    /// 16 bytes are readable and writable.
    pub unsafe fn compare_swap(at: *mut u128, old: u128, new: u128) -> u128 {
        // SAFETY: the caller's promise.
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
        // SAFETY: the same promise.
        unsafe { update(at, change) }
    }
    unsafe fn instruction(op: Op, int: bool, job: &Job) -> bool {
        // SAFETY: the same promise.
        unsafe { run::<u128>(op, int, job) }
    }
}

// SAFETY of each block: the caller's promise is the one that is asked for.
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

/// 32 bytes: a pair of long doubles. No processor does these at once.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(transparent)]
pub struct Wide([u128; 2]);

impl Word for Wide {
    fn native(_: usize) -> bool {
        false
    }
    unsafe fn update(at: *mut Self, change: impl Fn(Self) -> Option<Self>) -> Self {
        // SAFETY: the same promise.
        unsafe { stripes::update(at, change) }
    }
    unsafe fn instruction(_: Op, _: bool, _: &Job) -> bool {
        false
    }
}
