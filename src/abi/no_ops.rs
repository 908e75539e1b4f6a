//! The operations of a fid that has none: a slot that a type lacks answers -FI_ENOSYS and is never a null pointer.
//!
//! Types start from `NO_OPS` and put their own slots over it.

use super::types::*;
use core::ffi::{c_char, c_int, c_void};

pub const NO_OPS: fi_ops = fi_ops {
    size: size_of::<fi_ops>(),
    close: Some(close),
    bind: Some(bind),
    control: Some(control),
    ops_open: Some(ops_open),
    tostr: Some(tostr),
    ops_set: Some(ops_set),
};

unsafe extern "C" fn close(_: *mut fid) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn bind(_: *mut fid, _: *mut fid, _: u64) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn control(_: *mut fid, _: c_int, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn ops_open(_: *mut fid, _: *const c_char, _: u64, _: *mut *mut c_void, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn tostr(_: *const fid, _: *mut c_char, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn ops_set(_: *mut fid, _: *const c_char, _: u64, _: *mut c_void, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}
