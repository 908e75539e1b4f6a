//! Thin safe wrappers over the system: the dynamic loader, the process, the clock. One file per part of the system.
//!
//! Knows nothing of libfabric. Called by `api`, `provider` and `transport`.

pub mod backing;
pub mod barrier;
#[cfg(test)]
pub mod child;
pub mod clock;
pub mod datagram;
pub mod dl;
pub mod epoll;
pub mod errno;
pub mod eventfd;
pub mod forks;
pub mod home;
pub mod identity;
pub mod lock;
pub mod mutex_cond;
pub mod output;
pub mod process_vm;
pub mod resolve;
pub mod shared;
pub mod shared_table;
pub mod thread;
pub mod timerfd;
