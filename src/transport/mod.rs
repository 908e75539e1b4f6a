//! What carries packets: implementations of `engine::port`. Knows `engine::port` and `sys`; called by `provider`.
//!
//! A new one is done when `suite` passes on it; `loopback` is the example to start from. Two more exist for tests only,
//! to hold the seam wide enough for what differs most: a byte stream, and queue pairs.

pub mod loopback;

#[cfg(test)]
mod queue_pair;
pub mod shm;
#[cfg(test)]
mod stream;
#[cfg(test)]
pub mod suite;
