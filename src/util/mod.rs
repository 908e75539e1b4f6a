//! Small containers that the engine and the transports stand on. Knows nobody.
//!
//! `unsafe` only where memory is opened: `user`, and rings and locks.

pub mod few;
pub mod fold;
pub mod lock;
pub mod regions;
pub mod slab;
pub mod user;
