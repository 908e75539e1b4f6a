//! Calling through op tables, and the one way a function becomes a symbol of the library.
//!
//! Shared by every file of `abi`; knows only libc's types and the error codes.

use super::types::FI_ENOSYS;
use core::ffi::c_int;
use libc::ssize_t;

/// What a call through an empty slot answers; the C inline would jump to address 0.
pub(super) trait Missing {
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
    const MISSING: Self = core::ptr::null();
}

/// Calls a slot of an op table that every provider has had from the first release.
macro_rules! unguarded {
    ($table:expr, $slot:ident, ($($arg:expr),*)) => {
        match (*$table).$slot {
            Some(call) => call($($arg),*),
            None => $crate::abi::slots::Missing::MISSING,
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
            $crate::abi::slots::Missing::MISSING
        }
    }};
}

/// A function of the library, and beside it the exported C symbol, which only forwards: calls from inside stay direct
/// and cannot be interposed.
macro_rules! exported {
    ($($(#[$meta:meta])* pub unsafe fn $name:ident($($p:ident: $t:ty),* $(,)?) -> $r:ty $body:block)*) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, unreachable_pub)]
        pub unsafe fn $name($($p: $t),*) -> $r $body

        const _: () = {
            #[allow(clippy::too_many_arguments)]
            #[unsafe(export_name = stringify!($name))]
            unsafe extern "C" fn symbol($($p: $t),*) -> $r {
                // SAFETY: forwarded as it came; the C caller vouches for its pointers.
                unsafe { $name($($p),*) }
            }
        };
    )*};
}
