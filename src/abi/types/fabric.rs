//! Plain data of `rdma/fabric.h`.

use super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::size_t;

c_text!(
    top,
    r#"
#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>

#if defined(__GNUC__)
#define FI_DEPRECATED_FUNC __attribute__((deprecated))
#define FI_DEPRECATED_FIELD __attribute__((deprecated))
#define FI_FORMAT_PRINTF(string, first) \
	__attribute__((__format__(__printf__, (string), (first))))
#else
#define FI_DEPRECATED_FUNC
#define FI_DEPRECATED_FIELD
#define FI_FORMAT_PRINTF(string, first)
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define EXTERNALLY_VISIBLE externally_visible
#else
#define EXTERNALLY_VISIBLE
#endif
"#
);

pub const FI_MAJOR_VERSION: c_int = 2;
pub const FI_MINOR_VERSION: c_int = 6;
pub const FI_REVISION_VERSION: c_int = 0;

c_text!(
    here,
    r#"
#define FI_VERSION(major, minor) (((major) << 16) | (minor))
#define FI_MAJOR(version) ((version) >> 16)
#define FI_MINOR(version) ((version) & 0xFFFF)
#define FI_VERSION_GE(v1, v2) ((v1) >= (v2))
#define FI_VERSION_LT(v1, v2) ((v1) < (v2))
"#
);

c_decl! {
    fn fi_version() -> u32;
}

c_enum! {
    pub enum anon_fi_name_max: c_uint {
        FI_NAME_MAX = 64,
        FI_ATOMIC_OP_LAST = 19,
        FI_DATATYPE_LAST = 14,
    }
}

pub type fid_t = *mut fid;
pub const FI_MSG: u64 = 1u64 << 1;
pub const FI_RMA: u64 = 1u64 << 2;
pub const FI_TAGGED: u64 = 1u64 << 3;
pub const FI_ATOMIC: u64 = 1u64 << 4;
pub const FI_ATOMICS: u64 = FI_ATOMIC;
pub const FI_MULTICAST: u64 = 1u64 << 5;
pub const FI_COLLECTIVE: u64 = 1u64 << 6;
pub const FI_READ: u64 = 1u64 << 8;
pub const FI_WRITE: u64 = 1u64 << 9;
pub const FI_RECV: u64 = 1u64 << 10;
pub const FI_SEND: u64 = 1u64 << 11;
pub const FI_TRANSMIT: u64 = FI_SEND;
pub const FI_REMOTE_READ: u64 = 1u64 << 12;
pub const FI_REMOTE_WRITE: u64 = 1u64 << 13;
pub const FI_MULTI_RECV: u64 = 1u64 << 16;
pub const FI_REMOTE_CQ_DATA: u64 = 1u64 << 17;
pub const FI_MORE: u64 = 1u64 << 18;
pub const FI_PEEK: u64 = 1u64 << 19;
pub const FI_TRIGGER: u64 = 1u64 << 20;
pub const FI_FENCE: u64 = 1u64 << 21;
pub const FI_COMPLETION: u64 = 1u64 << 24;
pub const FI_EVENT: u64 = FI_COMPLETION;
pub const FI_INJECT: u64 = 1u64 << 25;
pub const FI_INJECT_COMPLETE: u64 = 1u64 << 26;
pub const FI_TRANSMIT_COMPLETE: u64 = 1u64 << 27;
pub const FI_DELIVERY_COMPLETE: u64 = 1u64 << 28;
pub const FI_AFFINITY: u64 = 1u64 << 29;
pub const FI_COMMIT_COMPLETE: u64 = 1u64 << 30;
pub const FI_MATCH_COMPLETE: u64 = 1u64 << 31;
pub const FI_RESCAN: u64 = 1u64 << 35;
pub const FI_PEER_TRANSFER: u64 = 1u64 << 36;
pub const FI_AV_USER_ID: u64 = 1u64 << 41;
pub const FI_FIREWALL_ADDR: u64 = 1u64 << 42;
pub const FI_PEER: u64 = 1u64 << 43;
pub const FI_TAGGED_DIRECTED_RECV: u64 = 1u64 << 45;
pub const FI_TAGGED_MULTI_RECV: u64 = 1u64 << 46;
pub const FI_HMEM: u64 = 1u64 << 47;
pub const FI_EXACT_DIRECTED_RECV: u64 = 1u64 << 48;
pub const FI_RMA_PMEM: u64 = 1u64 << 49;
pub const FI_SOURCE_ERR: u64 = 1u64 << 50;
pub const FI_LOCAL_COMM: u64 = 1u64 << 51;
pub const FI_REMOTE_COMM: u64 = 1u64 << 52;
pub const FI_SHARED_AV: u64 = 1u64 << 53;
pub const FI_PROV_ATTR_ONLY: u64 = 1u64 << 54;
pub const FI_NUMERICHOST: u64 = 1u64 << 55;
pub const FI_RMA_EVENT: u64 = 1u64 << 56;
pub const FI_SOURCE: u64 = 1u64 << 57;
pub const FI_NAMED_RX_CTX: u64 = 1u64 << 58;
pub const FI_DIRECTED_RECV: u64 = 1u64 << 59;
pub const FI_CLAIM: u64 = 1u64 << 59;
pub const FI_DISCARD: u64 = 1u64 << 58;
pub const FI_AUTH_KEY: u64 = 1u64 << 57;

/// One buffer of an atomic call: `count` elements, not bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ioc {
    pub addr: *mut c_void,
    pub count: size_t,
}

c_enum! {
    pub enum anon_fi_format_unspec: c_uint {
        FI_FORMAT_UNSPEC = 0,
        FI_SOCKADDR = 1,
        FI_SOCKADDR_IN = 2,
        FI_SOCKADDR_IN6 = 3,
        FI_SOCKADDR_IB = 4,
        FI_ADDR_PSMX = 5,
        FI_ADDR_GNI = 6,
        FI_ADDR_BGQ = 7,
        FI_ADDR_MLX = 8,
        FI_ADDR_STR = 9,
        FI_ADDR_PSMX2 = 10,
        FI_ADDR_IB_UD = 11,
        FI_ADDR_EFA = 12,
        FI_ADDR_PSMX3 = 13,
        FI_ADDR_OPX = 14,
        FI_ADDR_CXI = 15,
        FI_ADDR_UCX = 16,
        FI_SOCKADDR_IP = 17,
    }
}
pub const FI_ADDR_UNSPEC: u64 = u64::MAX;
pub const FI_ADDR_NOTAVAIL: u64 = u64::MAX;
pub const FI_KEY_NOTAVAIL: u64 = u64::MAX;
pub const FI_SHARED_CONTEXT: usize = SIZE_MAX;
pub const FI_AV_AUTH_KEY: usize = SIZE_MAX;

pub type fi_addr_t = u64;

c_enum! {
    pub enum fi_av_type: c_uint {
        FI_AV_UNSPEC = 0,
        FI_AV_MAP = 1,
        FI_AV_TABLE = 2,
    }
}
/// @deprecated
pub const FI_MR_UNSPEC: c_int = 0;
/// @deprecated
pub const FI_MR_BASIC: c_int = 1 << 0;
/// @deprecated
pub const FI_MR_SCALABLE: c_int = 1 << 1;
pub const FI_MR_LOCAL: c_int = 1 << 2;
pub const FI_MR_RAW: c_int = 1 << 3;
pub const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub const FI_MR_ALLOCATED: c_int = 1 << 5;
pub const FI_MR_PROV_KEY: c_int = 1 << 6;
pub const FI_MR_MMU_NOTIFY: c_int = 1 << 7;
pub const FI_MR_RMA_EVENT: c_int = 1 << 8;
pub const FI_MR_ENDPOINT: c_int = 1 << 9;
pub const FI_MR_HMEM: c_int = 1 << 10;
pub const FI_MR_COLLECTIVE: c_int = 1 << 11;

c_enum! {
    pub enum fi_progress: c_uint {
        FI_PROGRESS_UNSPEC = 0,
        FI_PROGRESS_AUTO = 1,
        FI_PROGRESS_MANUAL = 2,
        FI_PROGRESS_CONTROL_UNIFIED = 3,
    }
}

c_enum! {
    pub enum fi_threading: c_uint {
        FI_THREAD_UNSPEC = 0,
        FI_THREAD_SAFE = 1,
        FI_THREAD_FID = 2,
        FI_THREAD_DOMAIN = 3,
        FI_THREAD_COMPLETION = 4,
        FI_THREAD_ENDPOINT = 5,
    }
}

c_enum! {
    pub enum fi_resource_mgmt: c_uint {
        FI_RM_UNSPEC = 0,
        FI_RM_DISABLED = 1,
        FI_RM_ENABLED = 2,
    }
}
/// @deprecated
pub const FI_ORDER_NONE: u64 = 0u64;
pub const FI_ORDER_RAR: u64 = 1u64 << 0;
pub const FI_ORDER_RAW: u64 = 1u64 << 1;
pub const FI_ORDER_RAS: u64 = 1u64 << 2;
pub const FI_ORDER_WAR: u64 = 1u64 << 3;
pub const FI_ORDER_WAW: u64 = 1u64 << 4;
pub const FI_ORDER_WAS: u64 = 1u64 << 5;
pub const FI_ORDER_SAR: u64 = 1u64 << 6;
pub const FI_ORDER_SAW: u64 = 1u64 << 7;
pub const FI_ORDER_SAS: u64 = 1u64 << 8;
/// @deprecated
pub const FI_ORDER_STRICT: c_int = 0x1FF;
pub const FI_ORDER_RMA_RAR: u64 = 1u64 << 32;
pub const FI_ORDER_RMA_RAW: u64 = 1u64 << 33;
pub const FI_ORDER_RMA_WAR: u64 = 1u64 << 34;
pub const FI_ORDER_RMA_WAW: u64 = 1u64 << 35;
pub const FI_ORDER_ATOMIC_RAR: u64 = 1u64 << 36;
pub const FI_ORDER_ATOMIC_RAW: u64 = 1u64 << 37;
pub const FI_ORDER_ATOMIC_WAR: u64 = 1u64 << 38;
pub const FI_ORDER_ATOMIC_WAW: u64 = 1u64 << 39;
/// @deprecated
pub const FI_ORDER_DATA: u64 = 1u64 << 16;

c_enum! {
    pub enum fi_ep_type: c_uint {
        FI_EP_UNSPEC = 0,
        FI_EP_MSG = 1,
        FI_EP_DGRAM = 2,
        FI_EP_RDM = 3,
    }
}

c_enum! {
    pub enum anon_fi_proto_unspec: c_uint {
        FI_PROTO_UNSPEC = 0,
        FI_PROTO_RDMA_CM_IB_RC = 1,
        FI_PROTO_IWARP = 2,
        FI_PROTO_IB_UD = 3,
        FI_PROTO_PSMX = 4,
        FI_PROTO_UDP = 5,
        FI_PROTO_SOCK_TCP = 6,
        FI_PROTO_MXM = 7,
        FI_PROTO_IWARP_RDM = 8,
        FI_PROTO_IB_RDM = 9,
        FI_PROTO_GNI = 10,
        FI_PROTO_RXM = 11,
        FI_PROTO_RXD = 12,
        FI_PROTO_MLX = 13,
        FI_PROTO_NETWORKDIRECT = 14,
        FI_PROTO_PSMX2 = 15,
        FI_PROTO_SHM = 16,
        FI_PROTO_MRAIL = 17,
        FI_PROTO_RSTREAM = 18,
        FI_PROTO_RDMA_CM_IB_XRC = 19,
        FI_PROTO_EFA = 20,
        FI_PROTO_PSMX3 = 21,
        FI_PROTO_RXM_TCP = 22,
        FI_PROTO_OPX = 23,
        FI_PROTO_CXI = 24,
        FI_PROTO_XNET = 25,
        FI_PROTO_COLL = 26,
        FI_PROTO_UCX = 27,
        FI_PROTO_SM2 = 28,
        FI_PROTO_CXI_RNR = 29,
        FI_PROTO_LPP = 30,
        FI_PROTO_LNX = 31,
    }
}

c_enum! {
    pub enum anon_fi_tag_bits: c_uint {
        FI_TAG_BITS = 0,
        FI_TAG_MPI = 1,
        FI_TAG_CCL = 2,
        FI_TAG_MAX_FORMAT = 65536,
    }
}

c_enum! {
    pub enum anon_fi_tc_unspec: c_uint {
        FI_TC_UNSPEC = 0,
        FI_TC_DSCP = 256,
        FI_TC_LABEL = 512,
        FI_TC_BEST_EFFORT = 512,
        FI_TC_LOW_LATENCY = 513,
        FI_TC_DEDICATED_ACCESS = 514,
        FI_TC_BULK_DATA = 515,
        FI_TC_SCAVENGER = 516,
        FI_TC_NETWORK_CTRL = 517,
    }
}
pub const FI_CONTEXT: u64 = 1u64 << 59;
pub const FI_MSG_PREFIX: u64 = 1u64 << 58;
pub const FI_ASYNC_IOV: u64 = 1u64 << 57;
pub const FI_RX_CQ_DATA: u64 = 1u64 << 56;
/// @deprecated
pub const FI_LOCAL_MR: u64 = 1u64 << 55;
pub const FI_CONTEXT2: u64 = 1u64 << 52;

/// What the transmit side of an endpoint can or shall do.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_tx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
    pub rma_iov_limit: size_t,
    pub tclass: u32,
}

/// What the receive side of an endpoint can or shall do.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_rx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
}

/// Endpoint kind, wire protocol and its limits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ep_attr {
    pub r#type: fi_ep_type,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: size_t,
    pub msg_prefix_size: size_t,
    pub max_order_raw_size: size_t,
    pub max_order_war_size: size_t,
    pub max_order_waw_size: size_t,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub auth_key_size: size_t,
    pub auth_key: *mut u8,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_domain_attr_anonymous {
    pub data_progress: fi_progress,
    pub progress: fi_progress,
}

/// What holds for everything opened on one domain: threading, progress, memory registration, limits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_domain_attr {
    pub domain: *mut fid_domain,
    pub name: *mut c_char,
    pub threading: fi_threading,
    pub control_progress: fi_progress,
    pub anonymous: fi_domain_attr_anonymous,
    pub resource_mgmt: fi_resource_mgmt,
    pub av_type: fi_av_type,
    pub mr_mode: c_int,
    pub mr_key_size: size_t,
    pub cq_data_size: size_t,
    pub cq_cnt: size_t,
    pub ep_cnt: size_t,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub max_ep_tx_ctx: size_t,
    pub max_ep_rx_ctx: size_t,
    pub max_ep_stx_ctx: size_t,
    pub max_ep_srx_ctx: size_t,
    pub cntr_cnt: size_t,
    pub mr_iov_limit: size_t,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: size_t,
    pub max_err_data: size_t,
    pub mr_cnt: size_t,
    pub tclass: u32,
    pub max_ep_auth_key: size_t,
    pub max_group_id: u32,
    pub max_cntr_value: u64,
    pub max_err_cntr_value: u64,
}

/// Which fabric, by which provider. `api_version` is what the caller asked fi_getinfo for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_fabric_attr {
    pub fabric: *mut fid_fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

/// One way to communicate, as fi_getinfo offers it, or what a caller wants, as a hint.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_info {
    pub next: *mut fi_info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: size_t,
    pub dest_addrlen: size_t,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: fid_t,
    pub tx_attr: *mut fi_tx_attr,
    pub rx_attr: *mut fi_rx_attr,
    pub ep_attr: *mut fi_ep_attr,
    pub domain_attr: *mut fi_domain_attr,
    pub fabric_attr: *mut fi_fabric_attr,
    pub nic: *mut fid_nic,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_device_attr {
    pub name: *mut c_char,
    pub device_id: *mut c_char,
    pub device_version: *mut c_char,
    pub vendor_id: *mut c_char,
    pub driver: *mut c_char,
    pub firmware: *mut c_char,
}

c_enum! {
    pub enum fi_bus_type: c_uint {
        FI_BUS_UNSPEC = 0,
        FI_BUS_UNKNOWN = 0,
        FI_BUS_PCI = 1,
    }
}

/// Place of a device on the PCI bus.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_pci_attr {
    pub domain_id: u16,
    pub bus_id: u8,
    pub device_id: u8,
    pub function_id: u8,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_bus_attr_attr {
    pub pci: fi_pci_attr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_bus_attr {
    pub bus_type: fi_bus_type,
    pub attr: fi_bus_attr_attr,
}

c_enum! {
    pub enum fi_link_state: c_uint {
        FI_LINK_UNKNOWN = 0,
        FI_LINK_DOWN = 1,
        FI_LINK_UP = 2,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_link_attr {
    pub address: *mut c_char,
    pub mtu: size_t,
    pub speed: size_t,
    pub state: fi_link_state,
    pub network_type: *mut c_char,
}

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
