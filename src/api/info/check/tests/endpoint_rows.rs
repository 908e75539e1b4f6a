//! Rows of hints held against candidates, for endpoint attributes, the two contexts, and which of several failures is
//! told.

use super::templates::*;
use super::*;

#[test]
fn endpoints_are_checked() {
    check_rows(&[
        // Endpoint.
        row(tcp_rdm, NEW, |h| ep(h).protocol = FI_PROTO_XNET, ""),
        row(tcp_rdm, NEW, |h| ep(h).protocol = FI_PROTO_RXM, "ep_attr.protocol"),
        row(tcp_rdm, NEW, |h| ep(h).protocol_version = 2, "ep_attr.protocol_version"),
        row(udp, NEW, |h| ep(h).max_msg_size = 1472, ""),
        row(udp, NEW, |h| ep(h).max_msg_size = 1473, "ep_attr.max_msg_size"),
        row(udp, NEW, |h| ep(h).max_msg_size = usize::MAX, "ep_attr.max_msg_size"),
        row(tcp_rdm, NEW, |h| ep(h).tx_ctx_cnt = 1, ""),
        row(tcp_rdm, NEW, |h| ep(h).tx_ctx_cnt = 2, "ep_attr.tx_ctx_cnt"),
        row(tcp_rdm, NEW, |h| ep(h).rx_ctx_cnt = 2, "ep_attr.rx_ctx_cnt"),
        row(
            tcp_rdm,
            NEW,
            |h| ep(h).rx_ctx_cnt = FI_SHARED_CONTEXT,
            "ep_attr.rx_ctx_cnt",
        ),
        row(tcp_msg, NEW, |h| ep(h).rx_ctx_cnt = FI_SHARED_CONTEXT, ""),
        row(
            tcp_msg,
            NEW,
            |h| ep(h).tx_ctx_cnt = FI_SHARED_CONTEXT,
            "ep_attr.tx_ctx_cnt",
        ),
        row(tcp_srx, NEW, |h| ep(h).rx_ctx_cnt = FI_SHARED_CONTEXT, ""),
        row(tcp_srx, NEW, |_| {}, "ep_attr.rx_ctx_cnt"),
        row(tcp_srx, NEW, |h| h.ep = None, ""),
        row(
            tcp_rdm,
            NEW,
            |h| {
                h.caps = FI_MSG;
                ep(h).max_order_war_size = 1;
            },
            "",
        ),
        row(
            tcp_rdm,
            NEW,
            |h| ep(h).max_order_war_size = 1,
            "ep_attr.max_order_war_size",
        ),
        row(
            tcp_rdm,
            NEW,
            |h| {
                h.caps = FI_RMA;
                ep(h).max_order_war_size = 1;
            },
            "ep_attr.max_order_war_size",
        ),
        row(
            shm,
            NEW,
            |h| {
                h.caps = FI_ATOMIC;
                ep(h).max_order_raw_size = 1;
                ep(h).max_order_waw_size = 1;
            },
            "",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_ATOMIC;
                ep(h).max_order_raw_size = 1;
            },
            "ep_attr.max_order_raw_size",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_RMA;
                ep(h).max_order_waw_size = 1;
            },
            "ep_attr.max_order_waw_size",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_TAGGED;
                ep(h).mem_tag_format = ALL_TAGS;
            },
            "ep_attr.mem_tag_format (bits)",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_TAGGED;
                ep(h).mem_tag_format = 0xffff_ffff;
            },
            "",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_MSG;
                ep(h).mem_tag_format = ALL_TAGS;
            },
            "",
        ),
        row(
            narrow,
            NEW,
            |h| {
                h.caps = FI_TAGGED;
                ep(h).mem_tag_format = FI_TAG_CCL.into();
            },
            "",
        ),
        // Receive side.
        row(tcp_rdm, NEW, |h| rx(h).caps = FI_MSG | FI_RECV | FI_SEND | FI_READ, ""),
        row(tcp_rdm, NEW, |h| rx(h).caps = FI_ATOMIC, "rx_attr.caps"),
        row(tcp_rdm, NEW, |h| rx(h).op_flags = FI_COMPLETION, ""),
        row(tcp_rdm, NEW, |h| rx(h).op_flags = FI_INJECT, "rx_attr.op_flags"),
        row(tcp_rdm, NEW, |h| rx(h).msg_order = FI_ORDER_SAS, ""),
        row(
            tcp_rdm,
            NEW,
            |h| rx(h).msg_order = FI_ORDER_SAS | FI_ORDER_SAW,
            "rx_attr.msg_order",
        ),
        row(tcp_rdm, NEW, |h| rx(h).comp_order = 1, "rx_attr.comp_order"),
        row(
            tcp_rdm,
            NEW,
            |h| rx(h).total_buffered_recv = 1,
            "rx_attr.total_buffered_recv",
        ),
        row(tcp_rdm, NEW, |h| rx(h).size = 1024, ""),
        row(tcp_rdm, NEW, |h| rx(h).size = 1025, "rx_attr.size"),
        row(tcp_rdm, NEW, |h| rx(h).iov_limit = 9, "rx_attr.iov_limit"),
        // Transmit side.
        row(
            tcp_rdm,
            NEW,
            |h| tx(h).caps = FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_SOURCE,
            "",
        ),
        row(tcp_rdm, NEW, |h| tx(h).caps = FI_FENCE, "tx_attr.caps"),
        row(tcp_rdm, NEW, |h| tx(h).op_flags = FI_INJECT | FI_DELIVERY_COMPLETE, ""),
        row(tcp_rdm, NEW, |h| tx(h).op_flags = FI_MULTICAST, "tx_attr.op_flags"),
        row(
            tcp_rdm,
            NEW,
            |h| tx(h).msg_order = FI_ORDER_ATOMIC_RAR,
            "tx_attr.msg_order",
        ),
        row(tcp_rdm, NEW, |h| tx(h).comp_order = 0x1ff, "tx_attr.comp_order"),
        row(tcp_rdm, NEW, |h| tx(h).inject_size = 128, ""),
        row(tcp_rdm, NEW, |h| tx(h).inject_size = 129, "tx_attr.inject_size"),
        row(tcp_rdm, NEW, |h| tx(h).size = usize::MAX, "tx_attr.size"),
        row(tcp_rdm, NEW, |h| tx(h).iov_limit = 9, "tx_attr.iov_limit"),
        row(tcp_rdm, NEW, |h| tx(h).rma_iov_limit = 9, "tx_attr.rma_iov_limit"),
        // The first failure is the one told.
        row(
            udp,
            NEW,
            |h| {
                h.caps = FI_RMA;
                ep(h).ep_type = FI_EP_RDM;
                tx(h).size = 9999;
            },
            "ep_attr.type",
        ),
        row(
            udp,
            NEW,
            |h| {
                rx(h).size = 9999;
                tx(h).size = 9999;
            },
            "rx_attr.size",
        ),
        // A template that is not whole is no panic.
        row(Info::default, NEW, |_| {}, "fi_info"),
    ]);
}
