//! Builds the reply from a candidate that passed the checks: which values are the provider's, which the application's.
//!
//! Names (prov_name, fabric, domain) and addresses come later, in `provider::getinfo` and `address`.

use super::model::{AuthKey, DomainAttr, EpAttr, Info, KeySize, RxAttr, TxAttr};
use super::query::Query;
use super::{caps, mr_mode};
use crate::abi::types::*;

pub(super) fn build(offer: &Info, query: &Query) -> Info {
    let hints = query.hints;
    let mut info = offer.clone();
    let offered_mr = offer.domain.as_ref().map_or(0, |domain| domain.mr_mode);
    info.mode |= mr_mode::reply_mode(offered_mr, hints, query);
    let unasked = offer.caps & !caps::ON_REQUEST;
    info.caps = unasked;
    if let Some(hints) = hints {
        let asked_for = caps::reply(unasked, hints.caps, offer.caps);
        info.caps = mr_mode::trim_caps(asked_for, offered_mr, hints, query);
        info.handle = hints.handle;
    }

    let domain = info.domain.get_or_insert_default();
    domain.mr_mode = mr_mode::reply(offered_mr, info.caps, hints, query);
    reply_domain(domain, hints.and_then(|hints| hints.domain.as_ref()), info.caps, query);
    reply_ep(
        info.ep.get_or_insert_default(),
        hints.and_then(|hints| hints.ep.as_ref()),
        info.caps,
    );
    reply_rx(
        info.rx.get_or_insert_default(),
        hints.and_then(|hints| hints.rx.as_ref()),
        info.caps,
    );
    reply_tx(
        info.tx.get_or_insert_default(),
        hints.and_then(|hints| hints.tx.as_ref()),
        info.caps,
    );
    info.fabric.get_or_insert_default();
    info
}

fn reply_domain(attr: &mut DomainAttr, hints: Option<&DomainAttr>, info_caps: u64, query: &Query) {
    attr.caps = caps::reply(info_caps, hints.map_or(0, |hints| hints.caps), attr.caps);
    if attr.max_cntr_value == 0 {
        attr.max_cntr_value = u64::MAX;
    }
    if attr.max_err_cntr_value == 0 {
        attr.max_err_cntr_value = u64::MAX;
    }
    no_size_yet(&mut attr.auth_key);
    let Some(hints) = hints else { return };
    take(&mut attr.threading, hints.threading);
    take(&mut attr.progress, hints.progress);
    take(&mut attr.control_progress, hints.progress);
    take(&mut attr.av_type, hints.av_type);
    take(&mut attr.max_ep_auth_key, hints.max_ep_auth_key);
    reply_key(&mut attr.auth_key, &hints.auth_key);
    if super::domain::keys_by_av(Some(hints), query) {
        attr.auth_key.size = KeySize::Is(FI_AV_AUTH_KEY);
    }
}

fn reply_ep(attr: &mut EpAttr, hints: Option<&EpAttr>, info_caps: u64) {
    no_size_yet(&mut attr.auth_key);
    let Some(hints) = hints else { return };
    if info_caps & (FI_RMA | FI_ATOMIC) != 0 {
        take(&mut attr.max_order_raw_size, hints.max_order_raw_size);
        take(&mut attr.max_order_war_size, hints.max_order_war_size);
        take(&mut attr.max_order_waw_size, hints.max_order_waw_size);
    }
    take(&mut attr.tx_ctx_cnt, hints.tx_ctx_cnt);
    take(&mut attr.rx_ctx_cnt, hints.rx_ctx_cnt);
    reply_key(&mut attr.auth_key, &hints.auth_key);
}

fn reply_rx(attr: &mut RxAttr, hints: Option<&RxAttr>, info_caps: u64) {
    attr.caps = caps::reply(info_caps, hints.map_or(0, |hints| hints.caps), attr.caps);
    let Some(hints) = hints else { return };
    // Flags are what each operation will get by default, so nothing is added to what the application chose.
    attr.op_flags = hints.op_flags;
    take(&mut attr.size, hints.size);
    take(&mut attr.iov_limit, hints.iov_limit);
}

fn reply_tx(attr: &mut TxAttr, hints: Option<&TxAttr>, info_caps: u64) {
    attr.caps = caps::reply(info_caps, hints.map_or(0, |hints| hints.caps), attr.caps);
    let Some(hints) = hints else { return };
    attr.op_flags = hints.op_flags;
    take(&mut attr.inject_size, hints.inject_size);
    take(&mut attr.size, hints.size);
    take(&mut attr.iov_limit, hints.iov_limit);
    take(&mut attr.rma_iov_limit, hints.rma_iov_limit);
}

/// Zero in hints is 'whatever you like'.
fn take<T: Copy + Default + PartialEq>(attr: &mut T, hint: T) {
    if hint != T::default() {
        *attr = hint;
    }
}

/// Keys that may have any size have none before there is one.
fn no_size_yet(key: &mut AuthKey) {
    if key.size == KeySize::Any {
        *key = AuthKey::default();
    }
}

fn reply_key(attr: &mut AuthKey, hint: &AuthKey) {
    if hint.bytes.is_some() {
        *attr = hint.clone();
    }
}
