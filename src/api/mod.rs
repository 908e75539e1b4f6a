//! The calls of libfabric on safe values: what they answer, never how C passes it. Called by `abi` and `provider`.
//!
//! How a call becomes an engine's operation: a shim of `abi::object` fills a `SendCall`, `RecvCall`, `RmaCall` or
//! `AtomicCall` (`messaging`, `one_sided`) and puts it to the endpoint. `endpoint::host` takes the endpoint's lock,
//! `endpoint::state` checks capabilities, works out the flags and turns fi_addr_t into the transport's peer
//! (`endpoint::peers`, `av`), and the engine gets a `Send`, `Recv`, `Rma` or `Atomic`, with the program's context.
//! Operations with FI_TRIGGER and FI_QUEUE_WORK wait in `deferred` first; collectives are many such operations.
//!
//! How a completion comes back: reading a `cq`, `cntr` or `eq` drives the endpoints attached to it (`progress`), or
//! with FI_PROGRESS_AUTO a thread does (`driver`). The engine reports each completion; `endpoint::bindings` writes it
//! to the queue and steps the counter, at once or when the engine has returned. `wait` and `poll` are the sleeping.
//!
//! - objects: `domain` (and fabrics), `endpoint`, `passive`, `av`, `av_set`, `cq`, `cntr`, `eq`, `mr`, `poll`, `wait`;
//! - `collective`: groups and plans; `refs`: who uses an object; `instances`: the open fabrics and domains;
//! - `info`: one candidate of fi_getinfo; `params`, `config`: variables; `log`, `names`; `tostr`, `errno`: texts.
//!
//! Knows `abi::types` for its constants and plain structs; no provider, no raw pointer.

#![forbid(unsafe_code)]

// First, so that `log!` is known to all that follow.
#[macro_use]
pub mod log;

pub mod av;
pub mod av_set;
pub mod cntr;
pub mod collective;
pub mod config;
pub mod cq;
pub mod deferred;
pub mod domain;
pub mod driver;
pub mod endpoint;
pub mod eq;
pub mod errno;
pub mod info;
pub mod instances;
pub mod messaging;
pub mod mr;
pub mod names;
pub mod one_sided;
pub mod params;
pub mod passive;
pub mod poll;
pub mod progress;
pub mod refs;
pub mod tostr;
pub mod wait;
