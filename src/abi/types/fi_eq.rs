//! Plain data of `rdma/fi_eq.h`.

use super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::{pollfd, pthread_cond_t, pthread_mutex_t, size_t, ssize_t};

c_text!(
    top,
    r#"
#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
"#
);

c_enum! {
    pub enum fi_wait_obj: c_uint {
        FI_WAIT_NONE = 0,
        FI_WAIT_UNSPEC = 1,
        FI_WAIT_SET = 2,
        FI_WAIT_FD = 3,
        FI_WAIT_MUTEX_COND = 4,
        FI_WAIT_YIELD = 5,
        FI_WAIT_POLLFD = 6,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_wait_attr {
    pub wait_obj: fi_wait_obj,
    pub flags: u64,
}

/// Deprecated.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_wait {
    pub size: size_t,
    pub wait: Option<unsafe extern "C" fn(waitset: *mut fid_wait, timeout: c_int) -> c_int>,
}

/// Wait set. Deprecated.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_wait {
    pub fid: fid,
    pub ops: *mut fi_ops_wait,
}

/// What FI_GETWAIT answers for FI_WAIT_MUTEX_COND.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mutex_cond {
    pub mutex: *mut pthread_mutex_t,
    pub cond: *mut pthread_cond_t,
}

/// What FI_GETWAIT answers for FI_WAIT_POLLFD. `change_index` moves when the descriptors do.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_wait_pollfd {
    pub change_index: u64,
    pub nfds: size_t,
    pub fd: *mut pollfd,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_poll_attr {
    pub flags: u64,
}

/// Deprecated.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_poll {
    pub size: size_t,
    pub poll: Option<unsafe extern "C" fn(pollset: *mut fid_poll, context: *mut *mut c_void, count: c_int) -> c_int>,
    pub poll_add: Option<unsafe extern "C" fn(pollset: *mut fid_poll, event_fid: *mut fid, flags: u64) -> c_int>,
    pub poll_del: Option<unsafe extern "C" fn(pollset: *mut fid_poll, event_fid: *mut fid, flags: u64) -> c_int>,
}

/// Poll set. Deprecated.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_poll {
    pub fid: fid,
    pub ops: *mut fi_ops_poll,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_eq_attr {
    pub size: size_t,
    pub flags: u64,
    pub wait_obj: fi_wait_obj,
    pub signaling_vector: c_int,
    pub wait_set: *mut fid_wait,
}

c_enum! {
    pub enum anon_fi_notify: c_uint {
        FI_NOTIFY = 0,
        FI_CONNREQ = 1,
        FI_CONNECTED = 2,
        FI_SHUTDOWN = 3,
        FI_MR_COMPLETE = 4,
        FI_AV_COMPLETE = 5,
        FI_JOIN_COMPLETE = 6,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_eq_entry {
    pub fid: fid_t,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_eq_err_entry {
    pub fid: fid_t,
    pub context: *mut c_void,
    pub data: u64,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: size_t,
}

/// Connection event; what the peer sent with it follows in `data`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_eq_cm_entry {
    pub fid: fid_t,
    pub info: *mut fi_info,
    pub data: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_eq {
    pub size: size_t,
    pub read: Option<
        unsafe extern "C" fn(eq: *mut fid_eq, event: *mut u32, buf: *mut c_void, len: size_t, flags: u64) -> ssize_t,
    >,
    pub readerr: Option<unsafe extern "C" fn(eq: *mut fid_eq, buf: *mut fi_eq_err_entry, flags: u64) -> ssize_t>,
    pub write: Option<
        unsafe extern "C" fn(eq: *mut fid_eq, event: u32, buf: *const c_void, len: size_t, flags: u64) -> ssize_t,
    >,
    pub sread: Option<
        unsafe extern "C" fn(
            eq: *mut fid_eq,
            event: *mut u32,
            buf: *mut c_void,
            len: size_t,
            timeout: c_int,
            flags: u64,
        ) -> ssize_t,
    >,
    pub strerror: Option<
        unsafe extern "C" fn(
            eq: *mut fid_eq,
            prov_errno: c_int,
            err_data: *const c_void,
            buf: *mut c_char,
            len: size_t,
        ) -> *const c_char,
    >,
}

/// Event queue: what is not data transfer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_eq {
    pub fid: fid,
    pub ops: *mut fi_ops_eq,
}

c_enum! {
    pub enum fi_cq_format: c_uint {
        FI_CQ_FORMAT_UNSPEC = 0,
        FI_CQ_FORMAT_CONTEXT = 1,
        FI_CQ_FORMAT_MSG = 2,
        FI_CQ_FORMAT_DATA = 3,
        FI_CQ_FORMAT_TAGGED = 4,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_entry {
    pub op_context: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_msg_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_data_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_tagged_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
}

/// An operation that failed. How much of it is written depends on the API version asked of fi_getinfo.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_err_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: size_t,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: size_t,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: size_t,
    pub src_addr: fi_addr_t,
}

c_enum! {
    pub enum fi_cq_wait_cond: c_uint {
        FI_CQ_COND_NONE = 0,
        FI_CQ_COND_THRESHOLD = 1,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_attr {
    pub size: size_t,
    pub flags: u64,
    pub format: fi_cq_format,
    pub wait_obj: fi_wait_obj,
    pub signaling_vector: c_int,
    pub wait_cond: fi_cq_wait_cond,
    pub wait_set: *mut fid_wait,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_cq {
    pub size: size_t,
    pub read: Option<unsafe extern "C" fn(cq: *mut fid_cq, buf: *mut c_void, count: size_t) -> ssize_t>,
    pub readfrom: Option<
        unsafe extern "C" fn(cq: *mut fid_cq, buf: *mut c_void, count: size_t, src_addr: *mut fi_addr_t) -> ssize_t,
    >,
    pub readerr: Option<unsafe extern "C" fn(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, flags: u64) -> ssize_t>,
    pub sread: Option<
        unsafe extern "C" fn(
            cq: *mut fid_cq,
            buf: *mut c_void,
            count: size_t,
            cond: *const c_void,
            timeout: c_int,
        ) -> ssize_t,
    >,
    pub sreadfrom: Option<
        unsafe extern "C" fn(
            cq: *mut fid_cq,
            buf: *mut c_void,
            count: size_t,
            src_addr: *mut fi_addr_t,
            cond: *const c_void,
            timeout: c_int,
        ) -> ssize_t,
    >,
    pub signal: Option<unsafe extern "C" fn(cq: *mut fid_cq) -> c_int>,
    pub strerror: Option<
        unsafe extern "C" fn(
            cq: *mut fid_cq,
            prov_errno: c_int,
            err_data: *const c_void,
            buf: *mut c_char,
            len: size_t,
        ) -> *const c_char,
    >,
}

/// Completion queue: ends of data transfers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_cq {
    pub fid: fid,
    pub ops: *mut fi_ops_cq,
}

c_enum! {
    pub enum fi_cntr_events: c_uint {
        FI_CNTR_EVENTS_COMP = 0,
        FI_CNTR_EVENTS_BYTES = 1,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cntr_attr {
    pub events: fi_cntr_events,
    pub wait_obj: fi_wait_obj,
    pub wait_set: *mut fid_wait,
    pub flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_cntr {
    pub size: size_t,
    pub read: Option<unsafe extern "C" fn(cntr: *mut fid_cntr) -> u64>,
    pub readerr: Option<unsafe extern "C" fn(cntr: *mut fid_cntr) -> u64>,
    pub add: Option<unsafe extern "C" fn(cntr: *mut fid_cntr, value: u64) -> c_int>,
    pub set: Option<unsafe extern "C" fn(cntr: *mut fid_cntr, value: u64) -> c_int>,
    pub wait: Option<unsafe extern "C" fn(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int>,
    pub adderr: Option<unsafe extern "C" fn(cntr: *mut fid_cntr, value: u64) -> c_int>,
    pub seterr: Option<unsafe extern "C" fn(cntr: *mut fid_cntr, value: u64) -> c_int>,
}

/// Counter: how many data transfers ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_cntr {
    pub fid: fid,
    pub ops: *mut fi_ops_cntr,
}

c_text!(
    here,
    r#"
#ifdef FABRIC_DIRECT
#include <rdma/fi_direct_eq.h>
#endif

#ifndef FABRIC_DIRECT_EQ
"#
);
c_text!(inlines, "");
c_text!(
    here,
    r#"
#endif
"#
);
