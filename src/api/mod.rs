//! The calls of libfabric on safe values: what they answer, never how C passes it.
//!
//! Knows `abi::types` for its constants and plain structs. Called by `abi`.

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
pub mod poll;
pub mod progress;
pub mod refs;
pub mod tostr;
pub mod wait;
