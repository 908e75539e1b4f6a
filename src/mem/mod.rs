//! The memory of applications, opened: what is done to its contents beyond copying bytes.
//!
//! Owns the kernels of fi_atomic(3). Must not know endpoints, regions, packets or the C types; knows `util` only. Called
//! by the engine at the target of an operation, and by a transport that has the target's memory mapped.

pub mod atomic;
