//! What transports have in common that connect with a peer when something is first sent there.
//!
//! - `address`: the one form of a socket address, by which peers are known.
//! - `own_lane`: packets of an endpoint to itself.
//!
//! Knows `engine::port` and `sys::resolve`, and no socket or device. Called by `tcp` and `verbs::reliable`.

pub mod address;
mod own_lane;

pub use own_lane::OwnLane;
