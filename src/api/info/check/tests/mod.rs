//! One candidate against hints, by a table: whether it fits, or which attribute is the reason why not.

use super::*;
use crate::api::info::model::{AuthKey, DomainAttr, EpAttr, RxAttr, TxAttr};
use crate::api::info::query::fi_version;
use crate::api::info::samples::*;

mod replies;
mod templates;

use templates::*;

type Change = fn(&mut Info);

/// For the C library's own hints: zero everywhere, every attribute there.
fn outcome(template: &Info, version: u32, change: Change) -> Result<Info, &'static str> {
    let mut hints = Info::blank();
    change(&mut hints);
    let query = Query {
        version,
        ..query_of(&hints, 1, 0)
    };
    check(template, template, &query).map_err(|refusal| refusal.attr)
}

struct Row {
    template: fn() -> Info,
    api: (u32, u32),
    change: Change,
    /// The attribute that is refused, or "" when the candidate fits.
    refused: &'static str,
}

const fn row(template: fn() -> Info, api: (u32, u32), change: Change, refused: &'static str) -> Row {
    Row {
        template,
        api,
        change,
        refused,
    }
}

const NEW: (u32, u32) = (2, 6);

#[test]
fn what_is_refused() {
    let rows = [
        // Nothing asked.
        row(tcp_rdm, NEW, |_| {}, ""),
        row(tcp_msg, NEW, |_| {}, ""),
        row(shm, NEW, |_| {}, ""),
        row(udp, NEW, |_| {}, ""),
        row(rxm, NEW, |_| {}, ""),
        // Endpoint type.
        row(tcp_rdm, NEW, |h| ep(h).ep_type = FI_EP_RDM, ""),
        row(tcp_rdm, NEW, |h| ep(h).ep_type = FI_EP_MSG, "ep_attr.type"),
        row(udp, NEW, |h| ep(h).ep_type = FI_EP_RDM, "ep_attr.type"),
        row(udp, NEW, |h| ep(h).ep_type = 77, "ep_attr.type"),
        // Caps.
        row(tcp_rdm, NEW, |h| h.caps = FI_MSG | FI_TAGGED | FI_RMA, ""),
        row(tcp_rdm, NEW, |h| h.caps = FI_ATOMIC, "caps"),
        row(tcp_rdm, NEW, |h| h.caps = FI_MULTI_RECV | FI_SOURCE, ""),
        row(tcp_msg, NEW, |h| h.caps = FI_TAGGED, "caps"),
        row(tcp_msg, NEW, |h| h.caps = FI_MSG | FI_SOURCE, "caps"),
        row(shm, NEW, |h| h.caps = FI_ATOMIC | FI_LOCAL_COMM, ""),
        row(shm, NEW, |h| h.caps = FI_MSG | FI_REMOTE_COMM, "caps"),
        row(shm, NEW, |h| h.caps = FI_HMEM, "caps"),
        row(udp, NEW, |h| h.caps = FI_MSG | FI_MULTICAST, ""),
        row(udp, NEW, |h| h.caps = FI_RMA, "caps"),
        row(udp, NEW, |h| h.caps = 1 << 62, "caps"),
        // Mode: what the provider needs, not what the application could do besides.
        row(tcp_rdm, NEW, |h| h.mode = FI_CONTEXT | FI_MSG_PREFIX, ""),
        row(demanding, NEW, demanding_hints, ""),
        row(demanding, NEW, |_| {}, "mode"),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_CONTEXT;
            },
            "mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).mode = 0;
            },
            "domain_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_RX_CQ_DATA;
            },
            "rx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                rx(h).mode = FI_CONTEXT;
            },
            "rx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_ASYNC_IOV;
            },
            "tx_attr.mode",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                h.mode &= !FI_ASYNC_IOV;
                tx(h).mode = FI_ASYNC_IOV;
            },
            "",
        ),
        // Address format.
        row(tcp_rdm, NEW, |h| h.addr_format = FI_SOCKADDR_IN, ""),
        row(tcp_rdm, NEW, |h| h.addr_format = FI_SOCKADDR, ""),
        row(tcp_rdm, NEW, |h| h.addr_format = FI_ADDR_STR, "addr_format"),
        row(shm, NEW, |h| h.addr_format = FI_SOCKADDR_IN6, "addr_format"),
        row(rxm, NEW, |h| h.addr_format = FI_ADDR_EFA, ""),
        // Fabric.
        row(tcp_rdm, NEW, |h| fabric(h).prov_version = PROV_VERSION, ""),
        row(
            tcp_rdm,
            NEW,
            |h| fabric(h).prov_version = PROV_VERSION + 1,
            "fabric_attr.prov_version",
        ),
        row(tcp_rdm, NEW, |h| fabric(h).prov_name = Some("verbs".into()), ""),
        row(
            over_tcp,
            NEW,
            |h| fabric(h).prov_name = Some("verbs;ofi_rxm".into()),
            "fabric_attr.prov_name",
        ),
        row(over_tcp, NEW, |h| fabric(h).prov_name = Some("ofi_rxm;TCP".into()), ""),
        row(over_tcp, NEW, |_| {}, ""),
        row(
            over_tcp,
            NEW,
            |h| fabric(h).api_version = fi_version(1, 1),
            "fabric_attr.api_version",
        ),
        row(over_tcp, NEW, |h| fabric(h).api_version = fi_version(1, 9), ""),
        row(tcp_rdm, NEW, |h| fabric(h).name = Some("10.0.0.0/24".into()), ""),
        // Domain.
        row(tcp_rdm, NEW, |h| domain(h).threading = FI_THREAD_ENDPOINT, ""),
        row(tcp_rdm, NEW, |h| domain(h).threading = 17, "domain_attr.threading"),
        row(
            shm,
            NEW,
            |h| domain(h).progress = FI_PROGRESS_AUTO,
            "domain_attr.progress",
        ),
        row(shm, NEW, |h| domain(h).control_progress = FI_PROGRESS_AUTO, ""),
        row(shm, NEW, |h| domain(h).resource_mgmt = FI_RM_ENABLED, ""),
        row(
            lax,
            NEW,
            |h| domain(h).resource_mgmt = FI_RM_ENABLED,
            "domain_attr.resource_mgmt",
        ),
        row(lax, NEW, |h| domain(h).av_type = FI_AV_TABLE, ""),
        row(lax, NEW, |h| domain(h).av_type = FI_AV_MAP, "domain_attr.av_type"),
        row(tcp_rdm, NEW, |h| domain(h).av_type = FI_AV_MAP, ""),
        row(tcp_rdm, NEW, |h| domain(h).cq_data_size = 8, ""),
        row(tcp_rdm, NEW, |h| domain(h).cq_data_size = 9, "domain_attr.cq_data_size"),
        row(
            tcp_rdm,
            NEW,
            |h| domain(h).mr_mode = FI_MR_BASIC | FI_MR_LOCAL,
            "domain_attr.mr_mode",
        ),
        row(verbs_msg, NEW, |h| h.mode = FI_RX_CQ_DATA, "mode"),
        row(verbs_msg, NEW, |h| h.mode = FI_RX_CQ_DATA | FI_LOCAL_MR, ""),
        row(tcp_rdm, NEW, |h| domain(h).max_ep_stx_ctx = 5, ""),
        row(tcp_rdm, NEW, |h| domain(h).cntr_cnt = 1, "domain_attr.cntr_cnt"),
        row(tcp_rdm, (1, 4), |h| domain(h).cntr_cnt = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).mr_iov_limit = 2, "domain_attr.mr_iov_limit"),
        row(tcp_rdm, (1, 4), |h| domain(h).mr_iov_limit = 2, ""),
        row(tcp_rdm, NEW, |h| domain(h).caps = FI_SHARED_AV, "domain_attr.caps"),
        row(tcp_rdm, (1, 4), |h| domain(h).caps = FI_SHARED_AV, ""),
        row(tcp_rdm, NEW, |h| domain(h).caps = FI_LOCAL_COMM, ""),
        row(tcp_rdm, NEW, |h| domain(h).max_err_data = 1, "domain_attr.max_err_data"),
        row(tcp_rdm, (1, 4), |h| domain(h).max_err_data = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).mr_cnt = 1, "domain_attr.mr_cnt"),
        row(tcp_rdm, (1, 4), |h| domain(h).mr_cnt = 1, ""),
        row(tcp_rdm, NEW, |h| domain(h).ep_cnt = usize::MAX, ""),
        // Keys.
        row(
            tcp_rdm,
            NEW,
            |h| domain(h).auth_key = key(&[1]),
            "domain_attr.auth_key_size",
        ),
        row(tcp_rdm, (1, 4), |h| domain(h).auth_key = key(&[1]), ""),
        row(tcp_rdm, NEW, |h| domain(h).auth_key = AV_KEYS, ""),
        row(
            tcp_rdm,
            (1, 19),
            |h| domain(h).auth_key = AV_KEYS,
            "domain_attr.auth_key_size",
        ),
        row(
            tcp_rdm,
            NEW,
            |h| {
                domain(h).auth_key = AuthKey {
                    bytes: Some(vec![1]),
                    ..AV_KEYS
                }
            },
            "domain_attr.auth_key",
        ),
        row(tcp_rdm, NEW, |h| ep(h).auth_key = key(&[1]), "ep_attr.auth_key_size"),
        row(
            tcp_rdm,
            NEW,
            |h| {
                domain(h).auth_key = AV_KEYS;
                ep(h).auth_key = key(&[1]);
            },
            "ep_attr.auth_key",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).auth_key = key(&[9, 9, 9]);
            },
            "domain_attr.auth_key_size",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).auth_key = key(&[9, 9, 9, 9]);
                ep(h).auth_key = key(&[8, 8]);
                domain(h).max_ep_auth_key = 4;
            },
            "",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_ep_auth_key = 5;
            },
            "domain_attr.max_ep_auth_key",
        ),
        row(
            demanding,
            (1, 19),
            |h| {
                demanding_hints(h);
                domain(h).max_ep_auth_key = 5;
            },
            "",
        ),
        // Counter limits.
        row(tcp_rdm, NEW, |h| domain(h).max_cntr_value = u64::MAX, ""),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_cntr_value = 1001;
            },
            "domain_attr.max_cntr_value",
        ),
        row(
            demanding,
            (2, 4),
            |h| {
                demanding_hints(h);
                domain(h).max_cntr_value = 1001;
            },
            "",
        ),
        row(
            demanding,
            NEW,
            |h| {
                demanding_hints(h);
                domain(h).max_err_cntr_value = 1001;
            },
            "",
        ),
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
    ];
    for (number, row) in rows.iter().enumerate() {
        let refused = outcome(&(row.template)(), fi_version(row.api.0, row.api.1), row.change).err();
        assert_eq!(refused.unwrap_or(""), row.refused, "row {number}");
    }
}

/// Names of providers and of layers, and what a layer may stand on for them.
#[test]
fn names_of_layers_alone_leave_open_what_they_stand_on() {
    let yes = ["tcp", "tcp;ofi_rxm", "OFI_RXM;TCP", "ofi_rxm", "tcp;^ofi_rxm"];
    let no = [
        "",
        ";",
        "^tcp",
        "ofi_rxm;^tcp",
        "ofi_rxm;^TCP",
        "verbs;ofi_rxm",
        "^ofi_rxm",
    ];
    for (names, may) in yes
        .map(|names| (names, true))
        .into_iter()
        .chain(no.map(|names| (names, false)))
    {
        assert_eq!(may_stand_on(names, "tcp"), may, "{names}");
    }
}
