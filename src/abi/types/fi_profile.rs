//! Plain data of `rdma/fi_profile.h`.

use super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{size_t, ssize_t};

c_text!(
    top,
    r#"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <rdma/fi_domain.h>
"#
);

c_enum! {
    pub enum anon_fi_var_unexp_msg_cnt: c_uint {
        FI_VAR_UNEXP_MSG_CNT = 0,
        FI_VAR_UNEXP_MSG_QUEUE = 1,
        FI_VAR_MSG_QUEUE_CNT = 2,
        FI_VAR_CONNECTION_CNT = 3,
        FI_VAR_CONN_REQUEST = 4,
        FI_VAR_CONN_ACCEPT = 5,
        FI_VAR_CONN_REJECT = 6,
        FI_VAR_OFI_MEM = 7,
    }
}

c_enum! {
    pub enum anon_fi_event_unexp_msg_recvd: c_uint {
        FI_EVENT_UNEXP_MSG_RECVD = 0,
        FI_EVENT_UNEXP_MSG_MATCHED = 1,
    }
}

c_enum! {
    pub enum fi_profile_type: c_uint {
        fi_primitive_type = 0,
        fi_defined_type = 1,
    }
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_profile_desc_datatype {
    pub primitive: fi_datatype,
    pub defined: fi_type,
}

/// A counter variable or an event that a provider can tell.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_profile_desc {
    pub id: u32,
    pub datatype_sel: fi_profile_type,
    pub datatype: fi_profile_desc_datatype,
    pub flags: u64,
    pub size: size_t,
    pub name: *const c_char,
    pub desc: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_profile_ops {
    pub size: size_t,
    pub reset: Option<unsafe extern "C" fn(prof_fid: *mut fid_profile, flags: u64)>,
    pub query_vars: Option<
        unsafe extern "C" fn(prof_fid: *mut fid_profile, varlist: *mut fi_profile_desc, count: *mut size_t) -> ssize_t,
    >,
    pub query_events: Option<
        unsafe extern "C" fn(
            prof_fid: *mut fid_profile,
            eventlist: *mut fi_profile_desc,
            count: *mut size_t,
        ) -> ssize_t,
    >,
    pub read_var: Option<
        unsafe extern "C" fn(prof_fid: *mut fid_profile, var_id: u32, data: *mut c_void, size: *mut size_t) -> ssize_t,
    >,
    pub reg_callback: Option<
        unsafe extern "C" fn(
            prof_fid: *mut fid_profile,
            event_id: u32,
            callback: Option<
                unsafe extern "C" fn(
                    prof_fid: *mut fid_profile,
                    event: *mut fi_profile_desc,
                    param: *mut c_void,
                    size: size_t,
                    context: *mut c_void,
                ) -> c_int,
            >,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub start_reads: Option<unsafe extern "C" fn(prof_fid: *mut fid_profile, flags: u64)>,
    pub end_reads: Option<unsafe extern "C" fn(prof_fid: *mut fid_profile, flags: u64)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_profile {
    pub fid: fid,
    pub ops: *mut fi_profile_ops,
}
