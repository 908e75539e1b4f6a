//! Asking for cache lines before they are needed, so that they come from the other processor meanwhile.
//!
//! Only where several records follow each other, and of what the other side has done with: else it would have to take
//! the line back. Hints, which touch no memory; the address may be any. Called by `lane`, `dialogue` and `fill`.

/// So many lines are asked for, of those that follow.
pub(super) const LINES: u64 = 2;

/// Asks for a line that will soon be written.
#[inline(always)]
pub(super) fn to_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that touches no memory. It is assembly because the intrinsic prefetches for reading only.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for a line that will soon be read.
#[inline(always)]
pub(super) fn to_read(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as in `to_write`.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
