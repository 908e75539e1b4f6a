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

/// What a call through an empty slot answers: the C inline would jump to address 0.
trait Missing {
    const MISSING: Self;
}
impl Missing for c_int {
    const MISSING: Self = -FI_ENOSYS;
}
impl Missing for ssize_t {
    const MISSING: Self = -FI_ENOSYS as ssize_t;
}
impl Missing for u64 {
    const MISSING: Self = 0;
}
impl Missing for () {
    const MISSING: Self = ();
}
impl<T> Missing for *const T {
    const MISSING: Self = null();
}

/// Calls a slot of an op table that every provider has had from the first release.
macro_rules! unguarded {
    ($table:expr, $slot:ident, ($($arg:expr),*)) => {
        match (*$table).$slot {
            Some(call) => call($($arg),*),
            None => Missing::MISSING,
        }
    };
}

/// Calls a slot that older providers' tables may be too short to have.
macro_rules! guarded {
    ($table:expr, $slot:ident, ($($arg:expr),*)) => {{
        let table = $table;
        if !table.is_null() && (*table).size > &raw const (*table).$slot as usize - table as usize {
            unguarded!(table, $slot, ($($arg),*))
        } else {
            Missing::MISSING
        }
    }};
}

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
        /// # Safety
        /// As for the C inline of the same name: every pointer must be what the manual page asks for.
        #[allow(unused_unsafe, clippy::too_many_arguments)]
        #[inline(always)]
        pub unsafe fn $name($($p: $t),*) -> $r {
            // SAFETY: the caller vouches for its pointers, as it would to the C inline.
            unsafe { $($rust)* }
        }
        const _: () = {
            #[allow(clippy::too_many_arguments)]
            #[unsafe(export_name = stringify!($name))]
            unsafe extern "C" fn exported($($p: $t),*) -> $r {
                // SAFETY: forwarded as it came.
                unsafe { $name($($p),*) }
            }
        };
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
use {fabric::*, fi_cm::*, fi_collective::*, fi_domain::*, fi_endpoint::*};
