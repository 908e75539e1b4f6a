//! fi_getinfo between C and `api::info`, for callers of every ABI.

use super::layout::Layout;
use super::types::*;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;

/// # Safety
/// As fi_getinfo, with hints of the given layout.
pub unsafe fn getinfo(
    _layout: &Layout,
    _version: u32,
    _node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    _hints: *const fi_info,
    out: *mut *mut fi_info,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a place for a pointer, by contract.
    unsafe { out.write(null_mut()) };
    -FI_ENODATA
}
