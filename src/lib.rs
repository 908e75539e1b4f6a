//! libfabric.so.1, written in Rust. The crate has one room per question:
//!
//! - `abi`: the C calling shape. Types, exported functions, old layouts. The only `extern "C"`.
//! - `api`: the calls themselves, on safe values: objects, one candidate of fi_getinfo, logging, parameters, texts.
//! - `provider`: which providers there are, the order they are asked in, and fi_getinfo over all of them.
//! - `engine`: the protocol of messages, written once. `transport`: what carries its packets.
//! - `mem`: the memory of applications opened: the atomic operations of fi_atomic.
//! - `sys`: thin safe wrappers over system calls.
//!
//! Who may use whom: a room uses itself and those that stand after it in
//! `abi` -> `provider` -> `api` -> `transport` -> `sys` -> `engine` -> `mem` -> `util`;
//! and `abi::types`, which is plain data, is open to `provider` and `api` too. `rooms` holds this rule.
//! `build.rs` says how cargo links libfabric.so with its symbol versions: see `docs/architecture.md`.

// What only the C calls use: see `abi` below.
#![cfg_attr(fuzzing, allow(dead_code))]

// Test programs are always built to unwind, and so is what they link.
#[cfg(all(not(panic = "abort"), not(test), not(debug_assertions)))]
compile_error!("build with panic=abort: a panic must not unwind into C");

// First, so that `log!` is known to all that follow.
#[macro_use]
pub mod api;

#[cfg(not(fuzzing))]
pub mod abi;
// No fuzz target goes through the C calls, and compiling them for every kind of endpoint takes minutes.
#[cfg(fuzzing)]
pub mod abi {
    pub mod types;
}
pub mod engine;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod mem;
pub mod provider;
#[cfg(test)]
mod rooms;
pub mod sys;
pub mod transport;
pub mod util;
