//! Small containers that the engine and the transports stand on. Knows nobody.
//!
//! `unsafe` only where memory is opened: `user`, and rings and locks.

pub mod closable;
pub mod hash;
pub mod lock;
pub mod patience;
mod raw_lock;
pub mod regions;
pub mod slab;
pub mod small_array;
pub mod user;

/// For a way that is seldom taken, of what it was given by value: it might be written to here. So who calls hands over a
/// copy, made then and there, and what that is a copy of need not be in memory.
#[inline(always)]
pub fn keep_in_registers<T>(given: &mut T) -> &mut T {
    core::hint::black_box(given)
}
