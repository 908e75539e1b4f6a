//! What is done to an application's memory beyond copying bytes: the operations of fi_atomic(3), in `atomic`.
//!
//! Must not know endpoints, regions, packets or the C types; knows `util` only. Called by `engine`, at the target of an
//! atomic or by an initiator that has the target's memory mapped; by `api` to validate operations and to combine the
//! buffers of collectives.

pub mod atomic;
