//! The C calling shape: the only `extern "C"` of the crate, and the only place that follows an application's pointers.
//!
//! `types` is plain data; `wrappers` the inline API as callable symbols; `entry` the exported functions; `compat` their
//! old versions. Calls `api` and `provider` with safe values and turns their answers into C.

#[macro_use]
mod slots;

mod built_in;
mod compat;
pub mod entry;
#[cfg(test)]
mod example;
mod getinfo;
mod info;
mod info_read;
mod lacking;
mod layout;
pub mod log;
pub mod log_import;
mod memory;
mod mr_cache;
mod nic;

pub mod object;
mod open;
pub mod params;
pub mod plugin;
pub mod process;
mod start;
mod text;
pub mod tostr;
pub mod types;
mod wrappers;
