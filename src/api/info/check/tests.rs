//! One candidate against hints, by tables: whether it fits, and what the reply then says.

use super::*;
use crate::api::info::model::{AuthKey, DomainAttr, EpAttr, Opaque, RxAttr, TxAttr};
use crate::api::info::query::fi_version;
use crate::api::info::samples::*;
use core::ffi::c_int;

type Change = fn(&mut Info);

fn ep(info: &mut Info) -> &mut EpAttr {
    info.ep.as_mut().unwrap()
}

fn domain(info: &mut Info) -> &mut DomainAttr {
    info.domain.as_mut().unwrap()
}

fn tx(info: &mut Info) -> &mut TxAttr {
    info.tx.as_mut().unwrap()
}

fn rx(info: &mut Info) -> &mut RxAttr {
    info.rx.as_mut().unwrap()
}

fn fabric(info: &mut Info) -> &mut FabricAttr {
    info.fabric.as_mut().unwrap()
}

fn key(bytes: &[u8]) -> AuthKey {
    AuthKey {
        size: bytes.len(),
        bytes: Some(bytes.to_vec()),
    }
}

const AV_KEYS: AuthKey = AuthKey {
    size: FI_AV_AUTH_KEY,
    bytes: None,
};

/// A verbs template that demands more of the application than most.
fn demanding() -> Info {
    let mut info = verbs_msg();
    info.mode = FI_CONTEXT;
    domain(&mut info).mode = FI_CONTEXT2;
    tx(&mut info).mode = FI_ASYNC_IOV;
    domain(&mut info).auth_key = key(&[1, 2, 3, 4]);
    ep(&mut info).auth_key = key(&[1, 2]);
    domain(&mut info).max_ep_auth_key = 4;
    domain(&mut info).max_cntr_value = 1000;
    info
}

fn demanding_hints(hints: &mut Info) {
    hints.mode = FI_CONTEXT | FI_RX_CQ_DATA | FI_ASYNC_IOV;
    domain(hints).mode = FI_CONTEXT2;
    domain(hints).mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
}

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
        row(tcp_rdm, NEW, |h| ep(h).max_order_war_size = 1, ""),
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

/// A layer whose template is for tcp alone.
fn over_tcp() -> Info {
    let mut info = rxm();
    fabric(&mut info).prov_name = Some("tcp".into());
    fabric(&mut info).api_version = fi_version(1, 5);
    info
}

fn lax() -> Info {
    let mut info = tcp_rdm();
    domain(&mut info).resource_mgmt = FI_RM_DISABLED;
    domain(&mut info).av_type = FI_AV_TABLE;
    info
}

fn narrow() -> Info {
    let mut info = shm();
    ep(&mut info).max_order_raw_size = 0;
    ep(&mut info).max_order_waw_size = 0;
    ep(&mut info).mem_tag_format = 0xaaaa_aaaa;
    info
}

fn reply_to(template: &Info, api: (u32, u32), change: Change) -> Info {
    outcome(template, fi_version(api.0, api.1), change).expect("fits")
}

#[test]
fn without_hints_everything_is_offered() {
    for template in [
        tcp_msg(),
        tcp_srx(),
        tcp_rdm(),
        shm(),
        verbs_msg(),
        udp(),
        rxm(),
        demanding(),
    ] {
        let info = check(&template, &template, &empty_query()).expect("fits");
        let (domain, offered) = (info.domain.unwrap(), template.domain.unwrap());
        assert_eq!((info.caps, info.mode), (template.caps, template.mode));
        assert_eq!(info.ep, template.ep);
        assert_eq!(info.tx, template.tx);
        assert_eq!(info.rx, template.rx);
        assert_eq!(domain.mr_mode, offered.mr_mode & !(FI_MR_BASIC | FI_MR_SCALABLE));
        assert_ne!(domain.max_cntr_value, 0);
        assert_eq!(domain.max_err_cntr_value, u64::MAX);
    }
}

#[test]
fn reply_caps() {
    const MSG: u64 = FI_MSG | FI_SEND | FI_RECV;
    const FREE: u64 = FI_RMA_EVENT | FI_MULTI_RECV | BOTH_COMM;
    let rows: &[(u64, u64, u64, u64)] = &[
        // (asked, info, tx, rx)
        (
            FI_MSG,
            MSG | FREE,
            TX_MSG,
            RX_MSG | FI_RMA_EVENT | FI_MULTI_RECV | FI_SOURCE,
        ),
        (
            FI_MSG | FI_SEND,
            FI_MSG | FI_SEND | FREE,
            TX_MSG,
            FI_MSG | FI_RECV | FI_RMA_EVENT | FI_MULTI_RECV | FI_SOURCE,
        ),
        (
            FI_TAGGED | FI_SOURCE,
            FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | FREE,
            FI_TAGGED | FI_SEND,
            FI_TAGGED | FI_RECV | FI_RMA_EVENT | FI_MULTI_RECV | FI_SOURCE,
        ),
        (
            FI_RMA,
            TX_RMA | RX_RMA | FREE,
            TX_RMA,
            RX_RMA | FI_RMA_EVENT | FI_MULTI_RECV | FI_SOURCE,
        ),
    ];
    let template = tcp_rdm();
    for &(asked, info_caps, tx_caps, rx_caps) in rows {
        let hints = Info {
            caps: asked,
            ..Info::blank()
        };
        let info = check(&template, &template, &query_of(&hints, 2, 6)).expect("fits");
        assert_eq!(info.caps, info_caps, "{asked:#x}");
        assert_eq!(info.tx.unwrap().caps, tx_caps, "{asked:#x}");
        assert_eq!(info.rx.unwrap().caps, rx_caps, "{asked:#x}");
        assert_eq!(info.domain.unwrap().caps, BOTH_COMM, "{asked:#x}");
    }
    let info = reply_to(&template, NEW, |_| {});
    assert_eq!(info.caps, template.caps);
    let info = reply_to(&template, NEW, |h| rx(h).caps = FI_MSG | FI_SEND);
    assert_eq!(info.rx.unwrap().caps, RX_MSG | FI_RMA_EVENT | FI_MULTI_RECV);
}

#[test]
fn a_hint_that_is_set_comes_back() {
    fn hints(h: &mut Info) {
        h.caps = FI_MSG | FI_RMA;
        h.handle = Opaque(0x1234);
        domain(h).threading = FI_THREAD_FID;
        domain(h).progress = FI_PROGRESS_MANUAL;
        domain(h).av_type = FI_AV_TABLE;
        domain(h).resource_mgmt = FI_RM_DISABLED;
        ep(h).max_order_raw_size = 16;
        ep(h).max_order_waw_size = 32;
        ep(h).max_msg_size = 5;
        rx(h).size = 10;
        rx(h).iov_limit = 2;
        rx(h).op_flags = FI_MULTI_RECV;
        tx(h).size = 20;
        tx(h).inject_size = 30;
        tx(h).iov_limit = 3;
        tx(h).rma_iov_limit = 4;
        tx(h).op_flags = FI_DELIVERY_COMPLETE;
        tx(h).msg_order = FI_ORDER_SAS;
    }
    let template = tcp_rdm();
    let info = reply_to(&template, NEW, hints);
    let offered = template.parts().unwrap();
    let parts = info.parts().unwrap();
    assert_eq!(info.handle, Opaque(0x1234));
    let expected = DomainAttr {
        threading: FI_THREAD_FID,
        progress: FI_PROGRESS_MANUAL,
        control_progress: FI_PROGRESS_MANUAL,
        av_type: FI_AV_TABLE,
        mr_mode: 0,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        ..offered.domain.clone()
    };
    assert_eq!(*parts.domain, expected);
    let expected = EpAttr {
        max_order_raw_size: 16,
        max_order_waw_size: 32,
        ..offered.ep.clone()
    };
    assert_eq!(*parts.ep, expected);
    let caps = parts.rx.caps;
    let expected = RxAttr {
        caps,
        size: 10,
        iov_limit: 2,
        op_flags: FI_MULTI_RECV,
        ..offered.rx.clone()
    };
    assert_eq!(*parts.rx, expected);
    let expected = TxAttr {
        caps: parts.tx.caps,
        size: 20,
        inject_size: 30,
        iov_limit: 3,
        rma_iov_limit: 4,
        op_flags: FI_DELIVERY_COMPLETE,
        ..offered.tx.clone()
    };
    assert_eq!(*parts.tx, expected);
}

#[test]
fn zero_hints_leave_the_defaults_but_for_op_flags() {
    let (template, info) = (shm(), reply_to(&shm(), NEW, |_| {}));
    let parts = info.parts().unwrap();
    let offered = template.parts().unwrap();
    assert_eq!(
        *parts.tx,
        TxAttr {
            op_flags: 0,
            ..offered.tx.clone()
        }
    );
    assert_eq!(
        *parts.rx,
        RxAttr {
            op_flags: 0,
            ..offered.rx.clone()
        }
    );
    assert_eq!(parts.ep, offered.ep);
    assert_eq!(parts.domain.control_progress, FI_PROGRESS_AUTO);
    assert_eq!(parts.domain.progress, FI_PROGRESS_MANUAL);
}

#[test]
fn defaults_and_limits_may_differ() {
    let (mut offer, limits) = (tcp_rdm(), tcp_rdm());
    tx(&mut offer).size = 256;
    let reply = |asked: usize| {
        let mut hints = Info::blank();
        tx(&mut hints).size = asked;
        check(&offer, &limits, &query_of(&hints, 2, 6)).map(|info| info.tx.unwrap().size)
    };
    assert_eq!(reply(0), Ok(256));
    assert_eq!(reply(1000), Ok(1000));
    assert_eq!(reply(1025).unwrap_err().attr, "tx_attr.size");
}

#[test]
fn keys_of_the_application_are_handed_back() {
    let info = reply_to(&demanding(), NEW, |h| {
        demanding_hints(h);
        domain(h).auth_key = key(&[9, 9, 9, 9]);
        ep(h).auth_key = key(&[8, 8]);
        domain(h).max_ep_auth_key = 2;
    });
    assert_eq!(info.domain.as_ref().unwrap().auth_key, key(&[9, 9, 9, 9]));
    assert_eq!(info.domain.as_ref().unwrap().max_ep_auth_key, 2);
    assert_eq!(info.ep.unwrap().auth_key, key(&[8, 8]));
    let info = reply_to(&tcp_rdm(), NEW, |h| domain(h).auth_key = AV_KEYS);
    assert_eq!(info.domain.unwrap().auth_key, AV_KEYS);
}

#[test]
fn mr_mode_of_the_reply_follows_the_api_version() {
    const VERBS: c_int = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    type Row = (fn() -> Info, (u32, u32), Change, c_int, u64);
    let rows: &[Row] = &[
        // (template, api, hints, mr_mode, mode)
        (tcp_rdm, NEW, |_| {}, 0, 0),
        (tcp_rdm, (1, 4), |_| {}, FI_MR_BASIC, 0),
        (
            tcp_rdm,
            (1, 4),
            |h| domain(h).mr_mode = FI_MR_SCALABLE,
            FI_MR_SCALABLE,
            0,
        ),
        (tcp_rdm, (1, 4), |h| h.domain = None, FI_MR_BASIC, 0),
        (verbs_msg, NEW, demanding_hints, VERBS, 0),
        (
            verbs_msg,
            (1, 4),
            |h| h.mode = FI_LOCAL_MR | FI_RX_CQ_DATA,
            FI_MR_BASIC,
            FI_LOCAL_MR,
        ),
    ];
    for (number, (template, api, change, mr_mode, mode)) in rows.iter().enumerate() {
        let info = reply_to(&template(), *api, *change);
        assert_eq!(
            (info.domain.unwrap().mr_mode, info.mode),
            (*mr_mode, *mode),
            "row {number}"
        );
    }
}

#[test]
fn a_program_without_target_modes_is_no_target() {
    let info = reply_to(&verbs_msg(), NEW, |h| {
        h.caps = FI_RMA;
        h.mode = FI_LOCAL_MR | FI_RX_CQ_DATA;
    });
    assert_eq!(info.caps & (TX_RMA | RX_RMA), TX_RMA);
    assert_eq!(info.domain.unwrap().mr_mode, 0);
}

#[test]
fn judge_all_keeps_the_order_of_what_fits() {
    let templates = [tcp_msg(), tcp_srx(), tcp_rdm()];
    let mut hints = Info::blank();
    let protocols = |hints: &Info| -> Vec<u32> {
        judge_all("tcp", &templates, &query_of(hints, 2, 6))
            .iter()
            .map(|info| info.ep.as_ref().unwrap().protocol)
            .collect()
    };
    assert_eq!(protocols(&hints), [FI_PROTO_SOCK_TCP, FI_PROTO_XNET]);
    hints.ep = None;
    assert_eq!(protocols(&hints), [FI_PROTO_SOCK_TCP, FI_PROTO_SOCK_TCP, FI_PROTO_XNET]);
    hints.caps = FI_ATOMIC;
    assert_eq!(protocols(&hints), []);
}
