//! The inline functions of the public headers, as one table: a row names a call and the op-table slot behind it.
//!
//! From each row come two things that so cannot drift apart: the C inline in `include/rdma` (written by `make headers`)
//! and a real, callable symbol in version node FABRIC_RS_1.0, for languages without C inlines. A row's body is
//!
//! - `slot (table).name(args)`: call the slot, as nearly all do;
//! - `checked (table).name(args)`: the slot came later, so look first whether the table has it;
//! - `rust { .. } c ".."`: anything else, said in both languages.
//!
//! Knows only `abi::types` and the exported entry points. Programs call it; nothing inside the library does.

#![allow(non_snake_case)]

use crate::abi::types::*;
use core::ffi::{c_char, c_int, c_void};
use core::mem::offset_of;
use core::ptr::{null, null_mut};
use libc::{iovec, size_t, ssize_t};

macro_rules! wrappers {
    ($($(#[$meta:meta])* fn $name:ident($($p:ident: $t:ty),*) $(-> $r:ty)? { $($body:tt)* })*) => {
        $(wrapper!($name, ($($p: $t),*), ($($r)?), { $($body)* });)*
    };
}

/// One row: the function itself, and the exported symbol, which only forwards so that inner calls stay direct.
macro_rules! wrapper {
    ($name:ident, $params:tt, (), $body:tt) => { wrapper!($name, $params, (()), $body); };
    ($name:ident, $params:tt, $ret:tt, { slot ($table:expr).$slot:ident($($arg:expr),*) }) => {
        wrapper!($name, $params, $ret, { rust { unguarded!($table, $slot, ($($arg),*)) } c "" });
    };
    ($name:ident, $params:tt, $ret:tt, { checked ($table:expr).$slot:ident($($arg:expr),*) }) => {
        wrapper!($name, $params, $ret, { rust { guarded!($table, $slot, ($($arg),*)) } c "" });
    };
    ($name:ident, ($($p:ident: $t:ty),*), ($r:ty), { rust { $($rust:tt)* } c $c:literal }) => {
        exported! {
            /// # Safety
            /// As for the C inline of the same name: every pointer must be what the manual page asks for.
            #[allow(unused_unsafe)]
            #[inline(always)]
            pub unsafe fn $name($($p: $t),*) -> $r {
                // SAFETY: the caller vouches for its pointers, as it would to the C inline.
                unsafe { $($rust)* }
            }
        }
    };
}

mod fabric;
mod fi_atomic;
mod fi_cm;
mod fi_collective;
mod fi_domain;
mod fi_endpoint;
mod fi_eq;
mod fi_ext;
mod fi_profile;
mod fi_prov;
mod fi_rma;
mod fi_tagged;

#[allow(unused_imports)]
pub(super) use {
    fabric::*, fi_cm::*, fi_collective::*, fi_domain::*, fi_endpoint::*, fi_eq::*, fi_ext::*, fi_tagged::*,
};
#[cfg(test)]
pub(super) use {fi_atomic::*, fi_rma::*};
