//! What carries packets: implementations of `engine::port::Transport`.
//!
//! - `shm`: between processes of one machine, through shared memory.
//! - `tcp`: between machines, through TCP.
//! - `verbs`: RDMA devices. Its connected endpoints and datagrams do themselves what the engine does for others, so
//!   they are no `Transport`; `verbs::reliable` is one.
//! - `connecting`: what `tcp` and the reliable endpoints of `verbs` have in common, as both connect with peers on first
//!   use.
//! - `join`: two transports as one, by where each peer is.
//! - `tests`: the suite that every transport must pass, and three small transports that are compiled for tests only.
//!
//! A new transport begins as a copy of `tests::loopback` and is done when `tests::suite` passes on it. Knows
//! `engine::port`, `util` and `sys`, and nothing of messages, tags or completions; opened by `provider`.

pub mod connecting;
pub mod join;
pub mod shm;
pub mod tcp;
#[cfg(test)]
pub mod tests;
pub mod verbs;
