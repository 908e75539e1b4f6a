//! Plain data of `rdma/fi_ext.h`.

use super::*;
use core::ffi::{c_char, c_int, c_void};
use libc::size_t;

c_text!(
    top,
    r#"
#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/providers/fi_log.h>
"#
);

pub const FI_PROV_SPECIFIC_EFA: c_int = 0xefa << 16;
pub const FI_PROV_SPECIFIC_TCP: c_int = 0x7cb << 16;

c_enum! {
    pub enum anon_fi_opt_efa_rnr_retry: c_int {
        FI_OPT_EFA_RNR_RETRY = -251265024,
        FI_OPT_EFA_EMULATED_READ = -251265023,
        FI_OPT_EFA_EMULATED_WRITE = -251265022,
        FI_OPT_EFA_EMULATED_ATOMICS = -251265021,
        FI_OPT_EFA_USE_DEVICE_RDMA = -251265020,
        FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES = -251265019,
        FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES = -251265018,
        FI_OPT_EFA_HOMOGENEOUS_PEERS = -251265017,
        FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV = -251265016,
    }
}

/// Argument of FI_EXPORT_FID.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_fid_export {
    pub fid: *mut *mut fid,
    pub flags: u64,
    pub context: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_mem_monitor {
    pub size: size_t,
    pub start: Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor) -> c_int>,
    pub stop: Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor)>,
    pub subscribe:
        Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor, addr: *const c_void, len: size_t) -> c_int>,
    pub unsubscribe: Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor, addr: *const c_void, len: size_t)>,
    pub valid: Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor, addr: *const c_void, len: size_t) -> bool>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_mem_notify {
    pub size: size_t,
    pub notify: Option<unsafe extern "C" fn(monitor: *mut fid_mem_monitor, addr: *const c_void, len: size_t)>,
}

/// An application's own watch over memory that is freed or remapped; imported into "mr_cache".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_mem_monitor {
    pub fid: fid,
    pub export_ops: *mut fi_ops_mem_monitor,
    pub import_ops: *mut fi_ops_mem_notify,
}
pub const FI_LOG_PROV_FILTERED: u64 = 1u64 << 0;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ops_log {
    pub size: size_t,
    pub enabled: Option<
        unsafe extern "C" fn(prov: *const fi_provider, level: fi_log_level, subsys: fi_log_subsys, flags: u64) -> c_int,
    >,
    pub ready: Option<
        unsafe extern "C" fn(
            prov: *const fi_provider,
            level: fi_log_level,
            subsys: fi_log_subsys,
            flags: u64,
            showtime: *mut u64,
        ) -> c_int,
    >,
    pub log: Option<
        unsafe extern "C" fn(
            prov: *const fi_provider,
            level: fi_log_level,
            subsys: fi_log_subsys,
            func: *const c_char,
            line: c_int,
            msg: *const c_char,
        ),
    >,
}

/// An application's own log; imported into "logging".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fid_logging {
    pub fid: fid,
    pub ops: *mut fi_ops_log,
}
