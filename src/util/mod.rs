//! Small containers that the engine and the transports stand on. Knows nobody.

#![forbid(unsafe_code)]

pub mod slab;
