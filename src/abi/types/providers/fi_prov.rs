//! Plain data of `rdma/providers/fi_prov.h`.

use crate::abi::types::*;
use core::ffi::{c_char, c_int, c_void};

pub const FI_LIB_EXTENSION: &str = "fi";
pub const FI_LIB_SUFFIX: &str = "fi.so";

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: fi_context,
    pub name: *const c_char,
    pub getinfo: Option<
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int,
    >,
    pub fabric: Option<unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int>,
    pub cleanup: Option<unsafe extern "C" fn()>,
}
