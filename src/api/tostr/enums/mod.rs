//! Enum values by name. A C enum may hold any integer: what has no name here is "Unknown", also some values that
//! headers do name, because the C library leaves them out.

use crate::abi::types::*;

/// The values of one enum that have names.
pub type EnumNames = &'static [(u32, &'static str)];

macro_rules! names {
    ($($name:ident),+ $(,)?) => { &[$(($name, stringify!($name))),+] };
}

pub fn name(names: EnumNames, value: u32) -> &'static str {
    names
        .iter()
        .find(|(known, _)| *known == value)
        .map_or("Unknown", |(_, name)| name)
}

pub const EP_TYPE: EnumNames = names![FI_EP_UNSPEC, FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM];

pub const ADDR_FORMAT: EnumNames = names![
    FI_FORMAT_UNSPEC,
    FI_SOCKADDR,
    FI_SOCKADDR_IP,
    FI_SOCKADDR_IN,
    FI_SOCKADDR_IN6,
    FI_SOCKADDR_IB,
    FI_ADDR_PSMX2,
    FI_ADDR_MLX,
    FI_ADDR_UCX,
    FI_ADDR_STR,
    FI_ADDR_IB_UD,
    FI_ADDR_EFA,
    FI_ADDR_PSMX3,
    FI_ADDR_OPX,
    FI_ADDR_CXI,
];

pub const PROGRESS: EnumNames = names![
    FI_PROGRESS_UNSPEC,
    FI_PROGRESS_AUTO,
    FI_PROGRESS_MANUAL,
    FI_PROGRESS_CONTROL_UNIFIED
];

pub const THREADING: EnumNames = names![FI_THREAD_UNSPEC, FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION];

pub const PROTOCOL: EnumNames = names![
    FI_PROTO_UNSPEC,
    FI_PROTO_RDMA_CM_IB_RC,
    FI_PROTO_IWARP,
    FI_PROTO_IB_UD,
    FI_PROTO_PSMX2,
    FI_PROTO_UDP,
    FI_PROTO_SOCK_TCP,
    FI_PROTO_IB_RDM,
    FI_PROTO_IWARP_RDM,
    FI_PROTO_RXM,
    FI_PROTO_RXD,
    FI_PROTO_MLX,
    FI_PROTO_UCX,
    FI_PROTO_NETWORKDIRECT,
    FI_PROTO_SHM,
    FI_PROTO_RDMA_CM_IB_XRC,
    FI_PROTO_EFA,
    FI_PROTO_PSMX3,
    FI_PROTO_RXM_TCP,
    FI_PROTO_OPX,
    FI_PROTO_CXI,
    FI_PROTO_XNET,
    FI_PROTO_SM2,
    FI_PROTO_CXI_RNR,
    FI_PROTO_LPP,
    FI_PROTO_LNX,
];

pub const RESOURCE_MGMT: EnumNames = names![FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED];

pub const AV_TYPE: EnumNames = names![FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE];

pub const OP_TYPE: EnumNames = names![
    FI_OP_RECV,
    FI_OP_SEND,
    FI_OP_TRECV,
    FI_OP_TSEND,
    FI_OP_READ,
    FI_OP_WRITE,
    FI_OP_ATOMIC,
    FI_OP_FETCH_ATOMIC,
    FI_OP_COMPARE_ATOMIC,
    FI_OP_CNTR_SET,
    FI_OP_CNTR_ADD,
];

pub const ATOMIC_TYPE: EnumNames = names![
    FI_INT8,
    FI_UINT8,
    FI_INT16,
    FI_UINT16,
    FI_INT32,
    FI_UINT32,
    FI_INT64,
    FI_UINT64,
    FI_INT128,
    FI_UINT128,
    FI_FLOAT,
    FI_DOUBLE,
    FI_FLOAT_COMPLEX,
    FI_DOUBLE_COMPLEX,
    FI_LONG_DOUBLE,
    FI_LONG_DOUBLE_COMPLEX,
];

pub const ATOMIC_OP: EnumNames = names![
    FI_MIN,
    FI_MAX,
    FI_SUM,
    FI_PROD,
    FI_LOR,
    FI_LAND,
    FI_BOR,
    FI_BAND,
    FI_LXOR,
    FI_BXOR,
    FI_ATOMIC_READ,
    FI_ATOMIC_WRITE,
    FI_CSWAP,
    FI_CSWAP_NE,
    FI_CSWAP_LE,
    FI_CSWAP_LT,
    FI_CSWAP_GE,
    FI_CSWAP_GT,
    FI_MSWAP,
];

pub const COLLECTIVE_OP: EnumNames = names![
    FI_BARRIER,
    FI_BROADCAST,
    FI_ALLTOALL,
    FI_ALLREDUCE,
    FI_ALLGATHER,
    FI_REDUCE_SCATTER,
    FI_REDUCE,
    FI_SCATTER,
    FI_GATHER,
];

pub const EQ_EVENT: EnumNames = names![
    FI_NOTIFY,
    FI_CONNREQ,
    FI_CONNECTED,
    FI_SHUTDOWN,
    FI_MR_COMPLETE,
    FI_AV_COMPLETE,
    FI_JOIN_COMPLETE
];

pub const HMEM_IFACE: EnumNames = names![
    FI_HMEM_SYSTEM,
    FI_HMEM_CUDA,
    FI_HMEM_ROCR,
    FI_HMEM_ZE,
    FI_HMEM_NEURON,
    FI_HMEM_SYNAPSEAI
];

pub const CQ_FORMAT: EnumNames = names![
    FI_CQ_FORMAT_UNSPEC,
    FI_CQ_FORMAT_CONTEXT,
    FI_CQ_FORMAT_MSG,
    FI_CQ_FORMAT_DATA,
    FI_CQ_FORMAT_TAGGED
];

pub const CQ_WAIT_COND: EnumNames = names![FI_CQ_COND_NONE, FI_CQ_COND_THRESHOLD];

pub const WAIT_OBJ: EnumNames = names![
    FI_WAIT_NONE,
    FI_WAIT_UNSPEC,
    FI_WAIT_SET,
    FI_WAIT_FD,
    FI_WAIT_MUTEX_COND,
    FI_WAIT_YIELD,
    FI_WAIT_POLLFD,
];

pub const CNTR_EVENTS: EnumNames = names![FI_CNTR_EVENTS_COMP, FI_CNTR_EVENTS_BYTES];

pub const BUS_TYPE: EnumNames = names![FI_BUS_UNKNOWN, FI_BUS_PCI];

pub const LINK_STATE: EnumNames = names![FI_LINK_UNKNOWN, FI_LINK_DOWN, FI_LINK_UP];

/// As FI_LOG_LEVEL spells them.
pub const LOG_LEVEL: EnumNames = &[
    (FI_LOG_WARN, "warn"),
    (FI_LOG_TRACE, "trace"),
    (FI_LOG_INFO, "info"),
    (FI_LOG_DEBUG, "debug"),
];

/// As FI_LOG_SUBSYS spells them.
pub const LOG_SUBSYS: EnumNames = &[
    (FI_LOG_CORE, "core"),
    (FI_LOG_FABRIC, "fabric"),
    (FI_LOG_DOMAIN, "domain"),
    (FI_LOG_EP_CTRL, "ep_ctrl"),
    (FI_LOG_EP_DATA, "ep_data"),
    (FI_LOG_AV, "av"),
    (FI_LOG_CQ, "cq"),
    (FI_LOG_EQ, "eq"),
    (FI_LOG_MR, "mr"),
    (FI_LOG_CNTR, "cntr"),
];

#[cfg(test)]
mod tests;
