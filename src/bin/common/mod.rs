//! What the programs share: the calls of `libfabric.so.1` that more than one makes (`library`), what it opens
//! (`object`), and the command line as getopt reads it (`getopt`). Each program has this folder as a module of its own,
//! and `abi.rs`, the public C types, as the module `abi` of its root, where those files expect it. The library uses
//! none of it.

// No program uses all of it.
#![allow(dead_code)]

pub mod getopt;
pub mod library;
pub mod object;
