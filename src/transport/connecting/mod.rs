//! What transports have in common that connect with a peer when something is first sent there.
//!
//! - `address`: the one form of a socket address, by which peers are known.
//! - `peers`: their numbers, what connects us to each, and what is under way to connect.
//! - `history`: what has become of a peer's connections, and the rules of trying to make one.
//! - `self_queue`: packets of an endpoint to itself.
//!
//! What a connection is, and how one is made, are the transport's: its link and its attempts are parameters of `Peers`.
//! Knows `engine::port` and `sys::resolve`, and no socket, device or clock. Called by `tcp` and `verbs::reliable`.

pub mod address;
mod history;
mod peers;
mod self_queue;

pub use history::{Failed, History, LONG_REST_MS, Next, keeps_own};
pub use peers::{Peer, Peers, Way};
pub use self_queue::SelfQueue;
