//! fi_getinfo: what a program may ask for (`model`), and how candidates are held against it.
//!
//! Knows `abi::types` for constants. Provider-independent: a provider hands in templates and gets back either a
//! finished info or the reason it was refused.

pub mod model;
pub mod query;
