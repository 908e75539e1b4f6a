//! The versions, and the numbers that stand in the fields of an fi_info: capabilities, modes, orders, kinds.

use super::super::*;
use core::ffi::{c_int, c_uint, c_void};
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
