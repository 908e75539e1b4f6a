//! What the reply to a query says, once the candidate fits.

use super::templates::*;
use super::*;
use crate::api::info::model::Opaque;
use core::ffi::c_int;

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
    const FREE: u64 = FI_MULTI_RECV | BOTH_COMM;
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
    assert_eq!(info.rx.unwrap().caps, RX_MSG | FI_MULTI_RECV);
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
    let any_size = || {
        let mut offer = tcp_rdm();
        domain(&mut offer).auth_key = AuthKey::OF_ANY_SIZE;
        ep(&mut offer).auth_key = AuthKey::OF_ANY_SIZE;
        offer
    };
    let changes: [(Change, &[u8]); 2] = [
        (|h| domain(h).auth_key = key(&[9]), &[9]),
        (|h| domain(h).auth_key = key(&[9; 77]), &[9; 77]),
    ];
    for (change, bytes) in changes {
        let info = reply_to(&any_size(), NEW, change);
        assert_eq!(info.domain.unwrap().auth_key, key(bytes));
        assert_eq!(info.ep.unwrap().auth_key, AuthKey::default());
    }
    let info = reply_to(&any_size(), NEW, |_| {});
    assert_eq!(info.domain.unwrap().auth_key, AuthKey::default());
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
