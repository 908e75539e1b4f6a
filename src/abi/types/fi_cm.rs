//! Plain data of `rdma/fi_cm.h`.

use super::*;
use core::ffi::{c_int, c_void};
use libc::size_t;

c_text!(
    top,
    r#"
#include <rdma/fi_endpoint.h>
"#
);

/// A multicast or collective group that an endpoint joined.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_mc {
    pub fid: fid,
    pub fi_addr: fi_addr_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_cm {
    pub size: size_t,
    pub setname: Option<unsafe extern "C" fn(fid: fid_t, addr: *mut c_void, addrlen: size_t) -> c_int>,
    pub getname: Option<unsafe extern "C" fn(fid: fid_t, addr: *mut c_void, addrlen: *mut size_t) -> c_int>,
    pub getpeer: Option<unsafe extern "C" fn(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut size_t) -> c_int>,
    pub connect: Option<
        unsafe extern "C" fn(ep: *mut fid_ep, addr: *const c_void, param: *const c_void, paramlen: size_t) -> c_int,
    >,
    pub listen: Option<unsafe extern "C" fn(pep: *mut fid_pep) -> c_int>,
    pub accept: Option<unsafe extern "C" fn(ep: *mut fid_ep, param: *const c_void, paramlen: size_t) -> c_int>,
    pub reject:
        Option<unsafe extern "C" fn(pep: *mut fid_pep, handle: fid_t, param: *const c_void, paramlen: size_t) -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn(ep: *mut fid_ep, flags: u64) -> c_int>,
    pub join: Option<
        unsafe extern "C" fn(
            ep: *mut fid_ep,
            addr: *const c_void,
            flags: u64,
            mc: *mut *mut fid_mc,
            context: *mut c_void,
        ) -> c_int,
    >,
}

c_text!(
    here,
    r#"
#ifdef FABRIC_DIRECT
#include <rdma/fi_direct_cm.h>
#endif

#ifndef FABRIC_DIRECT_CM
"#
);
c_text!(inlines, "");
c_text!(
    here,
    r#"
#endif
"#
);
