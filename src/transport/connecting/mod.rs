//! What transports have in common that connect with a peer when something is first sent there.
//!
//! - `address`: the one form of a socket address, by which peers are known.
//! - `peers`: their numbers, and what connects us to each; `history`: the rules of trying to connect.
//! - `own_lane`: packets of an endpoint to itself.
//!
//! Knows `engine::port` and `sys::resolve`, and no socket or device. Called by `tcp` and `verbs::reliable`.

pub mod address;
mod history;
mod own_lane;
mod peers;

pub use history::{Failed, History, LONG_REST_MS, Next, keeps_own};
pub use own_lane::OwnLane;
pub use peers::{Peer, Peers, Way};
