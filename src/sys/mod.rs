//! Thin safe wrappers over the system, one file for each part of it.
//!
//! - Files: `shared` (made, locked, allocated, mapped), `shared_table` (a file of words), `home` (the directory of a
//!   user's files), `output` (lines to a descriptor).
//! - Processes: `forks` (what a child of fork must not have), `identity` (who is running), `process_vm` (memory of
//!   other processes, copied), `backing` (the file behind such memory, mapped), `barrier` (over the threads of all
//!   processes).
//! - Threads: `thread`, `lock` (a lock that fork leaves whole), `mutex_cond` (for programs in C to wait on), `errno`.
//! - Waiting: `epoll`, `eventfd`, `timerfd`, `datagram` (waking by a path), `clock`.
//! - Memory of this process: `mappings` (what there is), `userfaultfd` (what goes).
//! - Limits: `open_files` (how many descriptors there may be), `locked_memory`.
//! - Networks: `stream` (bytes through sockets), `interfaces`, `card` (what is behind one), `rdma` (RDMA devices and
//!   connections).
//! - Others: `dl` (the dynamic loader), `resolve` (names of hosts), `child` (children of fork, in tests).
//!
//! Knows nothing of libfabric. Called by `abi`, `provider`, `api` and `transport`.

pub mod backing;
pub mod barrier;
pub mod card;
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
pub mod interfaces;
pub mod lock;
pub mod locked_memory;
pub mod mappings;
pub mod mutex_cond;
pub mod open_files;
pub mod output;
pub mod process_vm;
pub mod rdma;
pub mod resolve;
pub mod shared;
pub mod shared_table;
pub mod stream;
pub mod thread;
pub mod timerfd;
pub mod userfaultfd;
