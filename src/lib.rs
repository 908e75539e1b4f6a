//! libfabric.so.1, written in Rust. The crate has one room per question:
//!
//! - `abi`: the C calling shape. Types, exported functions, old layouts. The only `extern "C"`.
//! - `api`: the calls themselves, on safe values: fi_getinfo, logging, parameters, texts.
//! - `provider`: which providers there are and in which order they are asked.
//! - `sys`: thin safe wrappers over system calls.
//!
//! Who may use whom: `abi` -> `api` -> `provider` -> `sys`. `abi::types` is plain data, open to all but `sys`.
//! The shared object is linked by the Makefile, never by cargo: see `docs/architecture.md`.

// Only a release build is ever handed out; the lib that `cargo test` builds for a program must unwind.
#[cfg(all(not(panic = "abort"), not(debug_assertions)))]
compile_error!("build with panic=abort: a panic must not unwind into C");

pub mod abi;
pub mod api;
pub mod provider;
pub mod sys;
