//! The C calling shape: the only `extern "C"` of the crate, and the only place that follows an application's pointers.
//!
//! How a C call gets here. An exported function (`entry`, and `cbits` for what is C-variadic) is a thin symbol over a
//! private function. It opens C's structs (`getinfo`, `info`, `info_read`, `nic`, `text`, all by `layout`), asks
//! `provider` or `api`, and writes C's structs (`info`, `nic`, with `memory`, for C frees them). Every other call of
//! the API is a C inline that jumps through the op table of an object: `object` has these tables and what stands behind
//! a fid; `lacking` fills the slots that an object does not have. `wrappers` are the inlines as callable symbols.
//!
//! How the versions of a symbol are told apart. A program asks the linker for a name in a node, fi_getinfo@FABRIC_1.3
//! say. `cbits/compat.c` binds each name but the default one to a function in `compat`, which is that one with another
//! `layout`: structs only grew at their end. `build.rs` writes the map with the nodes.
//!
//! The rest: `open` (fi_fabric and fi_open), `log`, `log_import` and `mr_cache` (what fi_open can open), `params`,
//! `tostr`, `plugin` (providers in files of their own), `start` and `process` (the library's life, and fork), `slots`
//! (calls through op tables that may be short). `types` is plain data, one file per public header, open to `api` and
//! `provider` too. Decides nothing: what a call means is said in `api`. Called by programs and plug-ins.

#[macro_use]
mod slots;

mod built_in;
#[cfg(test)]
mod card;
mod compat;
#[cfg(test)]
mod connected_example;
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
