use super::types::*;
use core::ffi::*;
pub unsafe fn fi_dupinfo(_: *const fi_info) -> *mut fi_info {
    todo!()
}
pub unsafe fn fi_open(
    _version: u32,
    _name: *const c_char,
    _attr: *mut c_void,
    _l: usize,
    _flags: u64,
    _fid: *mut *mut fid,
    _ctx: *mut c_void,
) -> c_int {
    todo!()
}
pub unsafe fn fi_param_get(_p: *mut fi_provider, _n: *const c_char, _v: *mut c_void) -> c_int {
    todo!()
}
