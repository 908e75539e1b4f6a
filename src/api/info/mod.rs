//! fi_getinfo: what a program may ask for (`model`), and how candidates are held against it.
//!
//! Knows `abi::types` for constants. Provider-independent: a provider hands in templates (`check`) and gets back either
//! a finished info or the reason it was refused (`refusal`). Which providers are asked is `provider::getinfo`'s.
//!
//! - `check`: one candidate; it calls `caps`, `mr_mode`, `ranks`, `addr_format`, `domain`, `endpoint`, `contexts`;
//! - `reply`: what is handed out; `address`: its addresses;
//! - `query`: a call and its answers; `describe`: values as text, for `refusal`;
//! - `samples`: infos of the real providers, for tests.

pub mod addr_format;
pub mod address;
pub mod caps;
pub mod check;
mod contexts;
pub mod describe;
mod domain;
mod endpoint;
pub mod model;
pub mod mr_mode;
pub mod query;
mod ranks;
pub mod refusal;
mod reply;

use crate::abi::types::{FI_ORDER_RAR, FI_ORDER_RMA_RAR};

/// The orders between reads. Without them an endpoint's reads of memory may pass each other.
pub const READS_IN_ORDER: u64 = FI_ORDER_RAR | FI_ORDER_RMA_RAR;

#[cfg(test)]
pub mod samples;
