//! The protocol, written once for every transport: which receive a message belongs to, how it is cut and joined, what
//! is reported when.
//!
//! No `unsafe`, no system call, no clock, no socket, no lock: those are the transport's and the endpoint's. The engine
//! is called with operations (`op`), calls its transport (`port`), and reports ends. Knows `util` and the kernels of
//! `mem`; a test compiles them alone to hold that line. Called by `api::endpoint`.
//!
//! How a message travels, in files:
//!
//! - `endpoint`: the calls, and the short way of a message that fits one packet.
//! - `outgoing`: sends that take more than one push, and the order in which a peer's packets leave.
//! - `deliver`: a packet has come; `eager`, `segment` and `rendezvous` say what it means.
//! - `matching`: which receive it belongs to. `receive`, `multi`, `look`: what the application asked for.
//! - `message`: one that is on its way in, or is held until its receive comes.
//! - `credit`: why a flood neither fills memory nor stops the answers behind it.
//! - `gone`: how everything ends when a peer does.
//!
//! And operations on a peer's memory:
//!
//! - `rma`, `atomic`: the calls, and the short ways. `replies`: what comes back. `side`: what is owed to whom.
//! - `recall`: short ones whose target does not look.
//! - `target`: reads and writes by a peer. `execute`: its atomics; `held`: those on the buffer of a tagged receive.
//! - `pieces`: from addresses and keys to memory. `kernel`: the door to `mem`.

#![forbid(unsafe_code)]

pub mod endpoint;
pub mod matching;
pub mod op;
pub mod port;
pub mod wire;

mod atomic;
mod atomic_target;
mod credit;
mod deliver;
mod direct;
mod eager;
mod kernel;
mod message;
mod multi;
mod outgoing;
mod peek;
mod peer;
mod peer_death;
mod pieces;
mod recall;
mod receive;
mod rendezvous;
mod replies;
mod rma;
mod rma_fast;
mod rma_peer;
mod rma_target;
mod segment;
mod state;
mod tagged_atomic;

#[cfg(test)]
mod tests;

pub use endpoint::Engine;
pub use state::Config;
