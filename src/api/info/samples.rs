//! Infos like those of the real providers, for the tests of this room.

use super::caps::SECONDARY;
use super::model::*;
use super::query::{Query, fi_version};
use crate::abi::types::*;

pub const TX_MSG: u64 = FI_MSG | FI_SEND;
pub const RX_MSG: u64 = FI_MSG | FI_RECV;
pub const TX_RMA: u64 = FI_RMA | FI_READ | FI_WRITE;
pub const RX_RMA: u64 = FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE;
pub const BOTH_COMM: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
pub const ALL_TAGS: u64 = 0xaaaa_aaaa_aaaa_aaaa;

pub const PROV_VERSION: u32 = fi_version(206, 0);

/// A query of hints only.
pub fn query_of(hints: &Info, major: u32, minor: u32) -> Query<'_> {
    Query {
        version: fi_version(major, minor),
        node: None,
        service: None,
        flags: 0,
        hints: Some(hints),
        found: None,
        raw: None,
    }
}

/// A query that asks for nothing at all.
pub fn empty_query() -> Query<'static> {
    Query {
        version: fi_version(2, 6),
        node: None,
        service: None,
        flags: 0,
        hints: None,
        found: None,
        raw: None,
    }
}

struct Shape {
    name: &'static str,
    ep_type: u32,
    protocol: u32,
    addr_format: u32,
    tx_caps: u64,
    rx_caps: u64,
    domain_caps: u64,
}

fn info(shape: Shape) -> Info {
    Info {
        caps: shape.tx_caps | shape.rx_caps | shape.domain_caps,
        addr_format: shape.addr_format,
        tx: Some(TxAttr {
            caps: shape.tx_caps,
            op_flags: FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_INJECT,
            msg_order: FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW,
            inject_size: 128,
            size: 1024,
            iov_limit: 8,
            rma_iov_limit: 8,
            ..TxAttr::default()
        }),
        rx: Some(RxAttr {
            caps: shape.rx_caps,
            op_flags: FI_COMPLETION | FI_MULTI_RECV,
            msg_order: FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW,
            size: 1024,
            iov_limit: 8,
            ..RxAttr::default()
        }),
        ep: Some(EpAttr {
            ep_type: shape.ep_type,
            protocol: shape.protocol,
            protocol_version: 1,
            max_msg_size: usize::MAX,
            max_order_raw_size: usize::MAX,
            max_order_waw_size: usize::MAX,
            mem_tag_format: ALL_TAGS,
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }),
        domain: Some(domain(&shape)),
        fabric: Some(FabricAttr {
            name: Some(shape.name.into()),
            prov_version: PROV_VERSION,
            ..FabricAttr::default()
        }),
        ..Info::default()
    }
}

fn domain(shape: &Shape) -> DomainAttr {
    DomainAttr {
        name: Some(shape.name.into()),
        threading: FI_THREAD_SAFE,
        control_progress: FI_PROGRESS_AUTO,
        progress: FI_PROGRESS_AUTO,
        resource_mgmt: FI_RM_ENABLED,
        mr_mode: FI_MR_BASIC | FI_MR_SCALABLE,
        mr_key_size: 8,
        cq_data_size: 8,
        cq_cnt: 256,
        ep_cnt: 256,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        mr_iov_limit: 1,
        caps: shape.domain_caps,
        ..DomainAttr::default()
    }
}

pub fn tcp_msg() -> Info {
    let mut info = info(Shape {
        name: "tcp",
        ep_type: FI_EP_MSG,
        protocol: FI_PROTO_SOCK_TCP,
        addr_format: FI_SOCKADDR_IP,
        tx_caps: TX_MSG | TX_RMA,
        rx_caps: RX_MSG | RX_RMA | FI_RMA_EVENT,
        domain_caps: BOTH_COMM,
    });
    info.domain.as_mut().unwrap().max_ep_srx_ctx = 8192;
    info
}

/// A MSG endpoint that must be given a shared receive context.
pub fn tcp_srx() -> Info {
    let mut info = tcp_msg();
    info.caps |= FI_TAGGED;
    info.tx.as_mut().unwrap().caps |= FI_TAGGED;
    info.rx.as_mut().unwrap().caps |= FI_TAGGED;
    info.ep.as_mut().unwrap().rx_ctx_cnt = FI_SHARED_CONTEXT;
    info
}

pub fn tcp_rdm() -> Info {
    info(Shape {
        name: "tcp",
        ep_type: FI_EP_RDM,
        protocol: FI_PROTO_XNET,
        addr_format: FI_SOCKADDR_IP,
        tx_caps: TX_MSG | TX_RMA | FI_TAGGED,
        rx_caps: RX_MSG | RX_RMA | FI_TAGGED | FI_RMA_EVENT | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV,
        domain_caps: BOTH_COMM,
    })
}

pub fn shm() -> Info {
    let mut info = info(Shape {
        name: "shm",
        ep_type: FI_EP_RDM,
        protocol: FI_PROTO_SHM,
        addr_format: FI_ADDR_STR,
        tx_caps: TX_MSG | TX_RMA | FI_TAGGED | FI_ATOMIC,
        rx_caps: RX_MSG | RX_RMA | FI_TAGGED | FI_ATOMIC | FI_RMA_EVENT | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV,
        domain_caps: FI_LOCAL_COMM | FI_PEER | FI_AV_USER_ID,
    });
    info.domain.as_mut().unwrap().progress = FI_PROGRESS_MANUAL;
    info
}

pub fn verbs_msg() -> Info {
    let mut info = info(Shape {
        name: "verbs",
        ep_type: FI_EP_MSG,
        protocol: FI_PROTO_RDMA_CM_IB_RC,
        addr_format: FI_SOCKADDR_IB,
        tx_caps: TX_MSG | TX_RMA | FI_ATOMIC,
        rx_caps: RX_MSG | RX_RMA | FI_ATOMIC,
        domain_caps: BOTH_COMM,
    });
    info.rx.as_mut().unwrap().mode = FI_RX_CQ_DATA;
    let domain = info.domain.as_mut().unwrap();
    domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL | FI_MR_BASIC;
    domain.cq_data_size = 4;
    info
}

pub fn udp() -> Info {
    let mut info = info(Shape {
        name: "UDP-IP",
        ep_type: FI_EP_DGRAM,
        protocol: FI_PROTO_UDP,
        addr_format: FI_SOCKADDR_IP,
        tx_caps: TX_MSG | FI_MULTICAST,
        rx_caps: RX_MSG | FI_SOURCE,
        domain_caps: BOTH_COMM,
    });
    info.domain.as_mut().unwrap().name = Some("udp".into());
    info.ep.as_mut().unwrap().max_msg_size = 1472;
    info
}

/// What a layer over a MSG provider offers by itself, before it has looked at that one.
pub fn rxm() -> Info {
    info(Shape {
        name: "rxm",
        ep_type: FI_EP_RDM,
        protocol: FI_PROTO_RXM,
        addr_format: FI_FORMAT_UNSPEC,
        tx_caps: TX_MSG | TX_RMA | FI_TAGGED | FI_ATOMIC,
        rx_caps: RX_MSG | RX_RMA | FI_TAGGED | FI_ATOMIC | (SECONDARY & (FI_MULTI_RECV | FI_SOURCE)),
        domain_caps: BOTH_COMM | FI_AV_USER_ID | FI_PEER,
    })
}
