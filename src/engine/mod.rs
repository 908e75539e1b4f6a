//! The protocol, written once for every transport: which receive a message belongs to, how it is cut and joined, what
//! is reported when.
//!
//! No `unsafe`, no system call, no clock, no socket, no lock: those are the transport's and the endpoint's. The engine
//! is called with operations (`op`), calls its transport (`port`), and reports ends. Knows `util` only; a test compiles
//! this folder alone to hold that line. Called by `api::endpoint`.

#![forbid(unsafe_code)]

pub mod matching;
pub mod op;
pub mod port;
pub mod wire;
