//! The C calling shape: the only `extern "C"` of the crate, and the only place that follows an application's pointers.
//!
//! `types` is plain data; `wrappers` the inline API as callable symbols; `entry` the exported functions and their old
//! versions. Calls `api` and `provider` with safe values and turns their answers into C.

pub mod entry;
pub mod log;
pub mod log_import;
pub mod params;
pub mod process;
pub mod types;
mod wrappers;
