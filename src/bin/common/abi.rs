//! The public C types, the same files the library is built from, without any of its code: the programs stay ordinary
//! clients of `libfabric.so.1`. Used by `ffi`, and by others for constants.

// Only a part is used here; the library is where these files are linted.
#![allow(dead_code, unused_imports, unused_macros, clippy::all)]

#[path = "../../abi/types/mod.rs"]
pub mod types;
