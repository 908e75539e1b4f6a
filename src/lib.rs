//! libfabric.so.1, written in Rust. The crate has one room per question:
//!
//! - `abi`: the C calling shape. Types, exported functions, old layouts. The only `extern "C"`.
//! - `api`: the calls themselves, on safe values: fi_getinfo, logging, parameters, texts.
//! - `provider`: which providers there are and in which order they are asked.
//! - `engine`: the protocol of messages, written once. `transport`: what carries its packets.
//! - `mem`: the memory of applications opened: the atomic operations of fi_atomic.
//! - `sys`: thin safe wrappers over system calls.
//!
//! Who may use whom: `abi` -> `api` -> `provider` -> `sys`. `abi::types` is plain data, open to all but `sys`.
//! `build.rs` says how cargo links libfabric.so with its symbol versions: see `docs/architecture.md`.

// Test programs are always built to unwind, and so is what they link.
#[cfg(all(not(panic = "abort"), not(test), not(debug_assertions)))]
compile_error!("build with panic=abort: a panic must not unwind into C");

// First, so that `log!` is known to all that follow.
#[macro_use]
pub mod api;

pub mod abi;
pub mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod mem;
pub mod provider;
pub mod sys;
pub mod transport;
pub mod util;
