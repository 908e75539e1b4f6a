//! What all objects have, the calls that open fabrics, and the arguments of fi_control.

use super::super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::size_t;

c_enum! {
    pub enum anon_fi_class_unspec: c_uint {
        FI_CLASS_UNSPEC = 0,
        FI_CLASS_FABRIC = 1,
        FI_CLASS_DOMAIN = 2,
        FI_CLASS_EP = 3,
        FI_CLASS_SEP = 4,
        FI_CLASS_RX_CTX = 5,
        FI_CLASS_SRX_CTX = 6,
        FI_CLASS_TX_CTX = 7,
        FI_CLASS_STX_CTX = 8,
        FI_CLASS_PEP = 9,
        FI_CLASS_INTERFACE = 10,
        FI_CLASS_AV = 11,
        FI_CLASS_MR = 12,
        FI_CLASS_EQ = 13,
        FI_CLASS_CQ = 14,
        FI_CLASS_CNTR = 15,
        FI_CLASS_WAIT = 16,
        FI_CLASS_POLL = 17,
        FI_CLASS_CONNREQ = 18,
        FI_CLASS_MC = 19,
        FI_CLASS_NIC = 20,
        FI_CLASS_AV_SET = 21,
        FI_CLASS_MR_CACHE = 22,
        FI_CLASS_MEM_MONITOR = 23,
        FI_CLASS_PEER_CQ = 24,
        FI_CLASS_PEER_SRX = 25,
        FI_CLASS_LOG = 26,
        FI_CLASS_PEER_AV = 27,
        FI_CLASS_PEER_AV_SET = 28,
        FI_CLASS_PEER_CNTR = 29,
        FI_CLASS_PROFILE = 30,
    }
}
pub const FI_SELECTIVE_COMPLETION: u64 = 1u64 << 59;

/// Calls that every object has. The table grew at its end: `size` says how much of it is there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops {
    pub size: size_t,
    pub close: Option<unsafe extern "C" fn(fid: *mut fid) -> c_int>,
    pub bind: Option<unsafe extern "C" fn(fid: *mut fid, bfid: *mut fid, flags: u64) -> c_int>,
    pub control: Option<unsafe extern "C" fn(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int>,
    pub ops_open: Option<
        unsafe extern "C" fn(
            fid: *mut fid,
            name: *const c_char,
            flags: u64,
            ops: *mut *mut c_void,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub tostr: Option<unsafe extern "C" fn(fid: *const fid, buf: *mut c_char, len: size_t) -> c_int>,
    pub ops_set: Option<
        unsafe extern "C" fn(
            fid: *mut fid,
            name: *const c_char,
            flags: u64,
            ops: *mut c_void,
            context: *mut c_void,
        ) -> c_int,
    >,
}

/// The head of every object: its class, the context of the caller, the common calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid {
    pub fclass: size_t,
    pub context: *mut c_void,
    pub ops: *mut fi_ops,
}

c_decl! {
    fn fi_getinfo(version: u32, node: *const c_char, service: *const c_char, flags: u64, hints: *const fi_info, info: *mut *mut fi_info) -> c_int;
    fn fi_freeinfo(info: *mut fi_info);
    fn fi_dupinfo(info: *const fi_info) -> *mut fi_info;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_fabric {
    pub size: size_t,
    pub domain: Option<
        unsafe extern "C" fn(
            fabric: *mut fid_fabric,
            info: *mut fi_info,
            dom: *mut *mut fid_domain,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub passive_ep: Option<
        unsafe extern "C" fn(
            fabric: *mut fid_fabric,
            info: *mut fi_info,
            pep: *mut *mut fid_pep,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub eq_open: Option<
        unsafe extern "C" fn(
            fabric: *mut fid_fabric,
            attr: *mut fi_eq_attr,
            eq: *mut *mut fid_eq,
            context: *mut c_void,
        ) -> c_int,
    >,
    pub wait_open: Option<
        unsafe extern "C" fn(fabric: *mut fid_fabric, attr: *mut fi_wait_attr, waitset: *mut *mut fid_wait) -> c_int,
    >,
    pub trywait: Option<unsafe extern "C" fn(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int>,
    pub domain2: Option<
        unsafe extern "C" fn(
            fabric: *mut fid_fabric,
            info: *mut fi_info,
            dom: *mut *mut fid_domain,
            flags: u64,
            context: *mut c_void,
        ) -> c_int,
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_fabric {
    pub fid: fid,
    pub ops: *mut fi_ops_fabric,
    pub api_version: u32,
}

c_decl! {
    fn fi_fabric(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int;
    fn fi_fabric2(info: *mut fi_info, fabric: *mut *mut fid_fabric, flags: u64, context: *mut c_void) -> c_int;
    fn fi_open(version: u32, name: *const c_char, attr: *mut c_void, attr_len: size_t, flags: u64, fid: *mut *mut fid, context: *mut c_void) -> c_int;
}

/// The network device behind an fi_info, as far as the provider knows it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_nic {
    pub fid: fid,
    pub device_attr: *mut fi_device_attr,
    pub bus_attr: *mut fi_bus_attr,
    pub link_attr: *mut fi_link_attr,
    pub prov_attr: *mut c_void,
}

c_text!(
    here,
    r#"
/* Whether an op table has a slot: older libraries' tables are shorter. */
#define FI_CHECK_OP(ops, opstype, op) \
	((ops) && ((ops)->size > offsetof(opstype, op)) && (ops)->op)
"#
);

/// Argument of FI_ALIAS.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_alias {
    pub fid: *mut *mut fid,
    pub flags: u64,
}

/// Argument of FI_GET_VAL and FI_SET_VAL. Names of a provider's own have the top bit set.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_fid_var {
    pub name: c_int,
    pub val: *mut c_void,
}

/// Argument of FI_GET_RAW_MR.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_raw_attr {
    pub flags: u64,
    pub base_addr: *mut u64,
    pub raw_key: *mut u8,
    pub key_size: *mut size_t,
}

/// Argument of FI_MAP_RAW_MR.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_mr_map_raw {
    pub flags: u64,
    pub base_addr: u64,
    pub raw_key: *mut u8,
    pub key_size: size_t,
    pub key: *mut u64,
}

c_enum! {
    pub enum anon_fi_getfidflag: c_uint {
        FI_GETFIDFLAG = 0,
        FI_SETFIDFLAG = 1,
        FI_GETOPSFLAG = 2,
        FI_SETOPSFLAG = 3,
        FI_ALIAS = 4,
        FI_GETWAIT = 5,
        FI_ENABLE = 6,
        FI_BACKLOG = 7,
        FI_GET_RAW_MR = 8,
        FI_MAP_RAW_MR = 9,
        FI_UNMAP_KEY = 10,
        FI_QUEUE_WORK = 11,
        FI_CANCEL_WORK = 12,
        FI_FLUSH_WORK = 13,
        FI_REFRESH = 14,
        FI_DUP = 15,
        FI_GETWAITOBJ = 16,
        FI_GET_VAL = 17,
        FI_SET_VAL = 18,
        FI_EXPORT_FID = 19,
        FI_GET_FD = 20,
    }
}

c_enum! {
    pub enum fi_type: c_uint {
        FI_TYPE_INFO = 0,
        FI_TYPE_EP_TYPE = 1,
        FI_TYPE_CAPS = 2,
        FI_TYPE_OP_FLAGS = 3,
        FI_TYPE_ADDR_FORMAT = 4,
        FI_TYPE_TX_ATTR = 5,
        FI_TYPE_RX_ATTR = 6,
        FI_TYPE_EP_ATTR = 7,
        FI_TYPE_DOMAIN_ATTR = 8,
        FI_TYPE_FABRIC_ATTR = 9,
        FI_TYPE_THREADING = 10,
        FI_TYPE_PROGRESS = 11,
        FI_TYPE_PROTOCOL = 12,
        FI_TYPE_MSG_ORDER = 13,
        FI_TYPE_MODE = 14,
        FI_TYPE_AV_TYPE = 15,
        FI_TYPE_ATOMIC_TYPE = 16,
        FI_TYPE_ATOMIC_OP = 17,
        FI_TYPE_VERSION = 18,
        FI_TYPE_EQ_EVENT = 19,
        FI_TYPE_CQ_EVENT_FLAGS = 20,
        FI_TYPE_MR_MODE = 21,
        FI_TYPE_OP_TYPE = 22,
        FI_TYPE_FID = 23,
        FI_TYPE_COLLECTIVE_OP = 24,
        FI_TYPE_HMEM_IFACE = 25,
        FI_TYPE_CQ_FORMAT = 26,
        FI_TYPE_LOG_LEVEL = 27,
        FI_TYPE_LOG_SUBSYS = 28,
        FI_TYPE_AV_ATTR = 29,
        FI_TYPE_CQ_ATTR = 30,
        FI_TYPE_MR_ATTR = 31,
        FI_TYPE_CNTR_ATTR = 32,
        FI_TYPE_CQ_ERR_ENTRY = 33,
        FI_TYPE_CQ_WAIT_COND = 34,
        FI_TYPE_WAIT_OBJ = 35,
    }
}

c_decl! {
    fn fi_tostr(data: *const c_void, datatype: fi_type) -> *mut c_char;
    fn fi_tostr_r(buf: *mut c_char, len: size_t, data: *const c_void, datatype: fi_type) -> *mut c_char;
}

c_enum! {
    pub enum fi_param_type: c_uint {
        FI_PARAM_STRING = 0,
        FI_PARAM_INT = 1,
        FI_PARAM_BOOL = 2,
        FI_PARAM_SIZE_T = 3,
    }
}

/// A configuration variable, as fi_getparams lists it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_param {
    pub name: *const c_char,
    pub r#type: fi_param_type,
    pub help_string: *const c_char,
    pub value: *const c_char,
}

c_decl! {
    fn fi_getparams(params: *mut *mut fi_param, count: *mut c_int) -> c_int;
    fn fi_freeparams(params: *mut fi_param);
}

/// Once flags, now nothing: old programs still name them.
pub const FI_VARIABLE_MSG: u64 = 0u64;
pub const FI_NOTIFY_FLAGS_ONLY: u64 = 0u64;
pub const FI_RESTRICTED_COMP: u64 = 0u64;
pub const FI_EP_SOCK_STREAM: c_int = 0;

c_text!(
    here,
    r#"
#ifdef FABRIC_DIRECT
#include <rdma/fi_direct.h>
#endif

#ifndef FABRIC_DIRECT_
"#
);

/// Room of the provider inside an operation's context, where it asks for FI_CONTEXT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_context {
    pub internal: [*mut c_void; 4],
}

/// As fi_context, where the provider asks for FI_CONTEXT2.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_context2 {
    pub internal: [*mut c_void; 8],
}

c_text!(
    here,
    r#"
#endif
"#
);

/// Context of a receive in flight that names its endpoint.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_recv_context {
    pub ep: *mut fid_ep,
    pub context: *mut c_void,
}
