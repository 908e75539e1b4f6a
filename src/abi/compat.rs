//! The other versions of fi_getinfo, fi_dupinfo, fi_freeinfo and fi_fabric than the default ones: for programs linked long
//! ago, and for those linked against a C library that is not released yet.
//!
//! An old caller's structs are read only as far as its ABI knew them. What it gets has the newest size, of which it sees a
//! prefix; what it could not free (a nic, before 1.2) it is not given. `cbits/compat.c` binds the names to versions.

use super::layout::{self, Layout, version};
use super::types::*;
use super::{entry, getinfo, info};
use core::ffi::{c_char, c_int, c_void};

/// The three functions of one ABI version.
macro_rules! abi {
    ($layout:expr, $getinfo:ident, $dupinfo:ident, $freeinfo:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $getinfo(
            version: u32,
            node: *const c_char,
            service: *const c_char,
            flags: u64,
            hints: *const fi_info,
            out: *mut *mut fi_info,
        ) -> c_int {
            // SAFETY: the caller was linked against this layout.
            unsafe { getinfo_of($layout, version, node, service, flags, hints, out) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $dupinfo(from: *const fi_info) -> *mut fi_info {
            // SAFETY: the caller was linked against this layout.
            unsafe {
                let new = entry::dupinfo($layout, from);
                hide_nic($layout, new);
                new
            }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $freeinfo(old: *mut fi_info) {
            // SAFETY: the caller was linked against this layout.
            unsafe { info::free(old, $layout) }
        }
    };
}

abi!(
    &layout::ABI_1_0,
    rs_fi_getinfo_1_0,
    rs_fi_dupinfo_1_0,
    rs_fi_freeinfo_1_0
);
abi!(
    &layout::ABI_1_1,
    rs_fi_getinfo_1_1,
    rs_fi_dupinfo_1_1,
    rs_fi_freeinfo_1_1
);
abi!(
    &layout::ABI_1_2,
    rs_fi_getinfo_1_2,
    rs_fi_dupinfo_1_2,
    rs_fi_freeinfo_1_2
);
abi!(
    &layout::ABI_1_3,
    rs_fi_getinfo_1_3,
    rs_fi_dupinfo_1_3,
    rs_fi_freeinfo_1_3
);
abi!(
    &layout::ABI_1_7,
    rs_fi_getinfo_1_7,
    rs_fi_dupinfo_1_7,
    rs_fi_freeinfo_1_7
);
abi!(
    &layout::ABI_1_8,
    rs_fi_getinfo_1_8,
    rs_fi_dupinfo_1_8,
    rs_fi_freeinfo_1_8
);
abi!(
    &layout::ABI_1_10,
    rs_fi_getinfo_1_10,
    rs_fi_dupinfo_1_10,
    rs_fi_freeinfo_1_10
);

/// # Safety
/// As fi_getinfo, with hints of the given layout.
unsafe fn getinfo_of(
    layout: &Layout,
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    out: *mut *mut fi_info,
) -> c_int {
    // SAFETY: the caller passes fi_getinfo's arguments in its layout; on success `out` holds a list of ours.
    unsafe {
        let ret = getinfo::getinfo(layout, version, node, service, flags, hints, out);
        if ret == FI_SUCCESS {
            hide_nic(layout, *out);
        }
        ret
    }
}

/// Takes away the nics that a caller of this ABI would neither see nor free.
///
/// # Safety
/// `list` is NULL or a list of ours.
unsafe fn hide_nic(layout: &Layout, mut list: *mut fi_info) {
    if layout.info >= layout::ABI_1_2.info {
        return;
    }
    // SAFETY: a list of ours, whose entries all have today's full size or more.
    unsafe {
        while let Some(entry) = list.as_mut() {
            super::nic::free(core::mem::replace(&mut entry.nic, core::ptr::null_mut()));
            list = entry.next;
        }
    }
}

/// fi_fabric before api_version took the place of the padding at the end of the attributes.
#[unsafe(no_mangle)]
unsafe extern "C" fn rs_fi_fabric_1_0(
    attr: *mut fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    if attr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller was linked against ABI 1.0 and vouches for that much of the attributes.
    unsafe {
        let mut full = layout::prefix(attr, layout::ABI_1_0.fabric);
        full.api_version = version(1, 0);
        entry::fi_fabric(&mut full, fabric, context)
    }
}
