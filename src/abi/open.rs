//! fi_fabric and fi_open: the first objects a program opens.

use super::layout::version;
use super::plugin::ExternalProvider;
use super::types::*;
use super::{built_in, log_import, mr_cache, object, start, text};
use crate::api::info::query::LIBRARY_VERSION;
use crate::provider::Provider;
use core::ffi::{c_char, c_int, c_void};

/// The first API in which a fabric knows the version it was opened for.
const FABRIC_KNOWS_API: u32 = version(1, 5);

/// # Safety
/// `attr` is NULL or an fi_fabric_attr, `fabric` NULL or a place for a pointer.
pub(super) unsafe fn fabric(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int {
    // SAFETY: fi_fabric's caller passes NULL or an fi_fabric_attr.
    let Some(asked) = (unsafe { attr.as_ref() }) else {
        return -FI_EINVAL;
    };
    // SAFETY: the names in an fi_fabric_attr are NULL or C strings.
    let (prov_name, name) = unsafe { (text::borrow(asked.prov_name), text::borrow(asked.name)) };
    let (Some(prov_name), Some(name), false) = (prov_name, name, fabric.is_null()) else {
        return -FI_EINVAL;
    };
    let Some(core) = start::core() else {
        return -FI_ENODEV;
    };
    let Some(entry) = core.find(&prov_name) else {
        log!(
            Warn,
            Core,
            "fi_fabric: no provider is called {prov_name:?}; fi_info -l lists those there are"
        );
        return -FI_ENODEV;
    };
    let provider = entry.provider();
    let Some(plugin) = provider.as_any().and_then(|any| any.downcast_ref::<ExternalProvider>()) else {
        let Some(built_in) = built_in::find(provider.whole_name()) else {
            return -FI_ENODEV;
        };
        // SAFETY: fi_fabric's caller passes an fi_fabric_attr, and a place for a pointer, as was checked.
        return unsafe { object::fabric::open(built_in.name, attr, fabric, context) };
    };
    // SAFETY: as above; a fabric that the plug-in opened is live.
    unsafe {
        let ret = plugin.fabric(attr, fabric, context);
        if ret == FI_SUCCESS {
            if plugin.fi_version() >= FABRIC_KNOWS_API {
                (**fabric).api_version = asked.api_version;
            }
            log!(Info, Core, "Opened fabric: {name}");
        }
        ret
    }
}

/// Opens one of the objects that belong to no fabric.
///
/// # Safety
/// `name` is NULL or a C string, `attr` holds `attr_len` bytes, `fid` is NULL or a place for a pointer.
pub(super) unsafe fn named(
    version: u32,
    name: *const c_char,
    attr: *mut c_void,
    attr_len: usize,
    flags: u64,
    fid: *mut *mut fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: fi_open's caller passes NULL or a C string.
    let Some(name) = (unsafe { text::borrow(name) }) else {
        return -FI_EINVAL;
    };
    if version > LIBRARY_VERSION {
        log!(Warn, Core, "fi_open: version {version:#x} is newer than this library");
        return -FI_ENOSYS;
    }
    match &*name.to_ascii_lowercase() {
        // SAFETY: fi_open's caller passes `attr_len` bytes of attributes and a place for a fid.
        "logging" => unsafe { log_import::open_log(version, attr, attr_len, flags, fid, context) },
        // SAFETY: as above.
        "mr_cache" => unsafe { mr_cache::open(version, attr_len, flags, fid, context) },
        _ => {
            log!(Info, Core, "fi_open: there is no {name:?}");
            -FI_ENOSYS
        }
    }
}
