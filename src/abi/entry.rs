//! The functions that the C library exports, in their newest versions. Older versions are in `compat`.
//!
//! Each turns pointers into values, calls `api` or `provider`, and turns the answer back. Programs call these; so do
//! plug-ins, which were linked against the C library.

use super::layout::{CURRENT, Layout, version};
use super::types::*;
use super::{getinfo, info, log, open, params, start, tostr};
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
    pub unsafe fn fi_fabric(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { open::fabric(attr, fabric, context) }
    }

    /// # Safety
    /// `info` is NULL or an fi_info, `fabric` a place for a pointer.
    pub unsafe fn fi_fabric2(
        info: *mut fi_info,
        fabric: *mut *mut fid_fabric,
        flags: u64,
        context: *mut c_void,
    ) -> c_int {
        if info.is_null() || flags != 0 {
            return -FI_EINVAL;
        }
        // SAFETY: forwarded under the same contract.
        unsafe { fi_fabric((*info).fabric_attr, fabric, context) }
    }

    /// # Safety
    /// `name` is NULL or a C string, `attr` holds `attr_len` bytes, `fid` is a place for a pointer.
    pub unsafe fn fi_open(
        version: u32,
        name: *const c_char,
        attr: *mut c_void,
        attr_len: usize,
        flags: u64,
        fid: *mut *mut fid,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { open::named(version, name, attr, attr_len, flags, fid, context) }
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
    pub unsafe fn fi_log_enabled(prov: *const fi_provider, level: fi_log_level, subsys: fi_log_subsys) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { log::log_enabled(prov, level, subsys) }
    }

    /// # Safety
    /// `prov` is NULL or a provider; `showtime` is NULL or a number of the caller's.
    pub unsafe fn fi_log_ready(
        prov: *const fi_provider,
        level: fi_log_level,
        subsys: fi_log_subsys,
        showtime: *mut u64,
    ) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { log::log_ready(prov, level, subsys, showtime) }
    }

    /// # Safety
    /// `provider` is NULL or a provider, `name` NULL or a C string, `value` NULL or room for the parameter's type.
    pub unsafe fn fi_param_get(provider: *mut fi_provider, name: *const c_char, value: *mut c_void) -> c_int {
        // SAFETY: forwarded under the same contract.
        unsafe { params::param_get(provider, name, value) }
    }

    /// # Safety
    /// Both are NULL or places to write to.
    pub unsafe fn fi_getparams(list: *mut *mut fi_param, count: *mut c_int) -> c_int {
        // Providers define theirs when they are loaded.
        start::core();
        // SAFETY: forwarded under the same contract.
        unsafe { params::getparams(list, count) }
    }

    /// # Safety
    /// `list` is NULL or came from fi_getparams; it is not used again.
    pub unsafe fn fi_freeparams(list: *mut fi_param) -> () {
        // SAFETY: forwarded under the same contract.
        unsafe { params::freeparams(list) }
    }
}

/// # Safety
/// `from` is NULL or an fi_info of that layout.
pub unsafe fn dupinfo(layout: &Layout, from: *const fi_info) -> *mut fi_info {
    let new = if from.is_null() {
        info::allocate()
    } else {
        // SAFETY: the caller passes an fi_info of that layout.
        unsafe { info::dup(from, layout) }
    };
    new.unwrap_or(null_mut())
}
