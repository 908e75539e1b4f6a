//! Every public C type, once: `#[repr(C)]` plain data, one file per public header (a folder for the longest), no logic.
//!
//! `include/rdma` is written from these files (`make headers`), so what stands here is what C programs compile
//! against. Names and spelling are C's on purpose. Doc comments travel into the headers; some of them are marks for
//! the header writer: `@inline` (a union whose text belongs inside its owner), `@opaque` (a tag without a body),
//! `@deprecated` (warn where a program uses the name), `@printf` (arguments a compiler can check). A field called
//! `anonymous` has no name in C, an enum called `anon_..` has no tag, an array of no elements has no fixed length.
//!
//! Open to `abi`, `api` and `provider`; knows nobody.

#![allow(non_camel_case_types, non_upper_case_globals, clippy::type_complexity)]

/// A C enum: an integer type and its named values. C compilers may hand us any integer, so it is not a Rust `enum`.
macro_rules! c_enum {
    ($(#[$meta:meta])* pub enum $name:ident : $int:ident { $($(#[$vmeta:meta])* $variant:ident = $value:expr,)* }) => {
        $(#[$meta])* pub type $name = $int;
        $($(#[$vmeta])* pub const $variant: $name = $value;)*
    };
}

/// Text of the C header that no Rust item can express, read by the header writer alone. `top` stands before
/// `extern "C"`, `here` where it is written; `inlines` marks where the wrappers of the header go (else: at its end).
macro_rules! c_text {
    ($place:ident, $text:literal) => {};
}

/// Prototypes of exported functions, for the header writer alone: `abi::entry` has the functions themselves.
macro_rules! c_decl {
    ($($prototype:tt)*) => {};
}

/// As in <stdint.h>: the constants that say so in C say so here.
const SIZE_MAX: usize = usize::MAX;

pub mod fabric;
pub mod fi_atomic;
pub mod fi_cm;
pub mod fi_collective;
pub mod fi_domain;
pub mod fi_endpoint;
pub mod fi_eq;
pub mod fi_errno;
pub mod fi_ext;
pub mod fi_profile;
pub mod fi_rma;
pub mod fi_tagged;
pub mod fi_trigger;
pub mod providers;

// `self`: in a program of this package, `fabric` alone would also be the library, and link it in.
pub use self::fabric::*;
pub use fi_atomic::*;
pub use fi_cm::*;
pub use fi_collective::*;
pub use fi_domain::*;
pub use fi_endpoint::*;
pub use fi_eq::*;
pub use fi_errno::*;
pub use fi_ext::*;
pub use fi_profile::*;
pub use fi_rma::*;
pub use fi_tagged::*;
pub use fi_trigger::*;
pub use providers::fi_log::*;
pub use providers::fi_peer::*;
pub use providers::fi_prov::*;
