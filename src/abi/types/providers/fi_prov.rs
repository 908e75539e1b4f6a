//! Plain data of `rdma/providers/fi_prov.h`.

use crate::abi::types::*;
use core::ffi::{c_char, c_int, c_void};

c_text!(
    top,
    r#"
#include <rdma/fabric.h>
"#
);

pub const FI_LIB_EXTENSION: &str = "fi";
pub const FI_LIB_SUFFIX: &str = "fi.so";

c_text!(
    here,
    r#"
/* The entry point of a loadable provider: `FI_EXT_INI { ... }`. */
#define FI_EXT_INI \
	__attribute__((visibility("default"), EXTERNALLY_VISIBLE)) \
	struct fi_provider *fi_prov_ini(void)
"#
);

/// What the entry point of a provider returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: fi_context,
    pub name: *const c_char,
    pub getinfo: Option<
        unsafe extern "C" fn(
            version: u32,
            node: *const c_char,
            service: *const c_char,
            flags: u64,
            hints: *const fi_info,
            info: *mut *mut fi_info,
        ) -> c_int,
    >,
    pub fabric: Option<
        unsafe extern "C" fn(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int,
    >,
    pub cleanup: Option<unsafe extern "C" fn()>,
}

c_decl! {
    fn fi_param_define(provider: *const fi_provider, param_name: *const c_char, r#type: fi_param_type, help_string_fmt: *const c_char, ...) -> c_int;
    fn fi_param_get(provider: *mut fi_provider, param_name: *const c_char, value: *mut c_void) -> c_int;
}
