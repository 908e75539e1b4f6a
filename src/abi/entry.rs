//! The functions that the C library exports, in their newest versions. Older versions are in `compat`.
//!
//! Each turns pointers into values, calls `api` or `provider`, and turns the answer back. Programs call these; so do
//! plug-ins, which were linked against the C library.

use super::layout::{CURRENT, Layout, version};
use super::memory::NoMemory;
use super::types::*;
use super::{getinfo, info, tostr};
use crate::api::errno;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

exported! {
    /// # Safety
    /// None: takes nothing.
    pub unsafe fn fi_version() -> u32 {
        version(FI_MAJOR_VERSION as u32, FI_MINOR_VERSION as u32)
    }

    /// # Safety
    /// `node` and `service` are NULL or C strings, `hints` NULL or an fi_info, `out` a place for a pointer.
    pub unsafe fn fi_getinfo(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        out: *mut *mut fi_info,
    ) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { getinfo::getinfo(&CURRENT, version, node, service, flags, hints, out) }
    }

    /// # Safety
    /// `info` is NULL or an fi_info.
    pub unsafe fn fi_dupinfo(info: *const fi_info) -> *mut fi_info {
        // SAFETY: forwarded under the same contract.
        unsafe { dupinfo(&CURRENT, info) }
    }

    /// # Safety
    /// `info` is NULL or a list made by this library or in its manner; it is not used again.
    pub unsafe fn fi_freeinfo(info: *mut fi_info) -> () {
        // SAFETY: forwarded under the same contract.
        unsafe { info::free(info, &CURRENT) }
    }

    /// # Safety
    /// None: takes a number.
    pub unsafe fn fi_strerror(errnum: c_int) -> *const c_char {
        errno::text(errnum).as_ptr()
    }

    /// # Safety
    /// `attr` is NULL or an fi_fabric_attr, `fabric` a place for a pointer.
    pub unsafe fn fi_fabric(_attr: *mut fi_fabric_attr, _fabric: *mut *mut fid_fabric, _context: *mut c_void) -> c_int {
        -FI_ENODEV
    }

    /// # Safety
    /// `info` is NULL or an fi_info, `fabric` a place for a pointer.
    pub unsafe fn fi_fabric2(info: *mut fi_info, fabric: *mut *mut fid_fabric, flags: u64, context: *mut c_void) -> c_int {
        if info.is_null() || flags != 0 {
            return -FI_EINVAL;
        }
        // SAFETY: forwarded under the same contract.
        unsafe { fi_fabric((*info).fabric_attr, fabric, context) }
    }

    /// # Safety
    /// `name` is NULL or a C string, `attr` holds `attr_len` bytes, `fid` is a place for a pointer.
    pub unsafe fn fi_open(
        _version: u32,
        _name: *const c_char,
        _attr: *mut c_void,
        _attr_len: usize,
        _flags: u64,
        _fid: *mut *mut fid,
        _context: *mut c_void,
    ) -> c_int {
        -FI_ENOSYS
    }

    /// # Safety
    /// `data` is NULL or what `datatype` says.
    pub unsafe fn fi_tostr(data: *const c_void, datatype: fi_type) -> *mut c_char {
        // SAFETY: forwarded under the same contract.
        unsafe { tostr::tostr(data, datatype) }
    }

    /// # Safety
    /// As fi_tostr; `buf` holds `len` bytes.
    pub unsafe fn fi_tostr_r(buf: *mut c_char, len: usize, data: *const c_void, datatype: fi_type) -> *mut c_char {
        // SAFETY: forwarded under the same contract.
        unsafe { tostr::tostr_r(buf, len, data, datatype) }
    }

    /// # Safety
    /// `prov` is NULL or a provider.
    pub unsafe fn fi_log_enabled(_prov: *const fi_provider, _level: fi_log_level, _subsys: fi_log_subsys) -> c_int {
        0
    }

    /// # Safety
    /// `prov` is NULL or a provider; `showtime` is a number of the caller's.
    pub unsafe fn fi_log_ready(
        _prov: *const fi_provider,
        _level: fi_log_level,
        _subsys: fi_log_subsys,
        _showtime: *mut u64,
    ) -> c_int {
        0
    }

    /// # Safety
    /// `provider` is NULL or a provider, `name` a C string, `value` fits the parameter's type.
    pub unsafe fn fi_param_get(_provider: *mut fi_provider, _name: *const c_char, _value: *mut c_void) -> c_int {
        -FI_ENOENT
    }

    /// # Safety
    /// Both are places to write to.
    pub unsafe fn fi_getparams(_params: *mut *mut fi_param, _count: *mut c_int) -> c_int {
        -FI_ENOSYS
    }

    /// # Safety
    /// `params` is NULL or came from fi_getparams; it is not used again.
    pub unsafe fn fi_freeparams(_params: *mut fi_param) -> () {}
}

/// # Safety
/// `from` is NULL or an fi_info of that layout.
pub unsafe fn dupinfo(layout: &Layout, from: *const fi_info) -> *mut fi_info {
    // SAFETY: by contract.
    let new = if from.is_null() {
        info::allocate()
    } else {
        unsafe { info::dup(from, layout) }
    };
    new.unwrap_or_else(|NoMemory| null_mut())
}
