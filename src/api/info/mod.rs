//! fi_getinfo: what a program may ask for (`model`), and how candidates are held against it.
//!
//! Knows `abi::types` for constants, and `provider` for whom to ask. Provider-independent: a provider hands in
//! templates (`check`) and gets back either a finished info or the reason it was refused (`refusal`).
//!
//! - one candidate: `check` calls `caps`, `mr_mode`, `ranks`, `addr_format`, `domain`, `endpoint`, `contexts`, and
//!   `reply` builds what is handed out;
//! - its addresses: `address`;
//! - all candidates: `pipeline` asks the providers that `layering` lets through, then `listing` orders what came.

pub mod addr_format;
pub mod address;
pub mod caps;
pub mod check;
mod contexts;
pub mod describe;
mod domain;
mod endpoint;
mod layering;
mod listing;
pub mod model;
pub mod mr_mode;
pub mod pipeline;
pub mod query;
mod ranks;
pub mod refusal;
mod reply;

#[cfg(test)]
pub mod samples;
