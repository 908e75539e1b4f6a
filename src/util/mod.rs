//! Small containers and locks that every other room stands on. Knows no other room.
//!
//! - `closable`: a value behind a lock that can be closed while others still have references to it: endpoints.
//! - `hash`: the hash of tables whose keys are numbers.
//! - `lock`: a lock that is there only when the threading level asks for it. `raw_lock`: who goes first at it.
//! - `mutex`: the standard library's, or loom's where it is modelled.
//! - `patience`: when a thread that polls in vain yields its processor.
//! - `ready`: who has something to do.
//! - `regions`: the registered memory of a domain, by key, and what peers may do with it.
//! - `slab`: values under stable numbers that are never mistaken for their successors.
//! - `small_array`: a few of something, of which one alone stays in registers.
//! - `user`: the application's memory, named but not opened. `user_array`: its array that a call fills.
//!
//! `unsafe` only where memory is opened (`user`, `user_array`) and in the locks.

pub mod closable;
pub mod hash;
pub mod lock;
pub mod mutex;
pub mod patience;
mod raw_lock;
pub mod ready;
pub mod regions;
pub mod slab;
pub mod small_array;
pub mod user;
pub mod user_array;

/// For the cold path of a function that got `given` by value: the compiler must take it for changed here. So the caller
/// passes a copy made on the spot, and its own value can stay in registers.
#[inline(always)]
pub fn keep_in_registers<T>(given: &mut T) -> &mut T {
    core::hint::black_box(given)
}
