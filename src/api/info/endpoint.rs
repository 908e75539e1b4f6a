//! Holds a candidate's endpoint attributes against the hints; the type was compared before everything else.

use super::domain::{check_key_size, keys_by_av};
use super::model::{EpAttr, Info, KeySize, Parts};
use super::query::Query;
use super::refusal::{Check, Refusal, at_most, differs, size_at_most};
use crate::abi::types::*;

pub(super) fn check(asked: &EpAttr, most: &Parts, hints: &Info, query: &Query) -> Check {
    if asked.protocol != FI_PROTO_UNSPEC && asked.protocol != most.ep.protocol {
        return Err(differs(
            "ep_attr.protocol",
            FI_TYPE_PROTOCOL,
            asked.protocol,
            most.ep.protocol,
        ));
    }
    at_most(
        "ep_attr.protocol_version",
        asked.protocol_version.into(),
        most.ep.protocol_version.into(),
    )?;
    size_at_most("ep_attr.max_msg_size", asked.max_msg_size, most.ep.max_msg_size)?;
    check_contexts(asked, most)?;
    // Who asks for no capabilities gets these, too.
    if hints.caps == 0 || hints.caps & (FI_RMA | FI_ATOMIC) != 0 {
        check_order_sizes(asked, most.ep)?;
    }
    check_auth_key(asked, most.ep, hints, query)?;
    if hints.caps & FI_TAGGED != 0 {
        check_tag_format(asked.mem_tag_format, most.ep.mem_tag_format)
    } else {
        Ok(())
    }
}

/// How many contexts of one direction: asked for, offered by default, at most per endpoint, and how many shared ones.
struct ContextCount {
    attr: &'static str,
    asked: usize,
    offers: usize,
    most: usize,
    shared: usize,
}

fn check_contexts(asked: &EpAttr, most: &Parts) -> Check {
    check_context(ContextCount {
        attr: "ep_attr.tx_ctx_cnt",
        asked: asked.tx_ctx_cnt,
        offers: most.ep.tx_ctx_cnt,
        most: most.domain.max_ep_tx_ctx,
        shared: most.domain.max_ep_stx_ctx,
    })?;
    check_context(ContextCount {
        attr: "ep_attr.rx_ctx_cnt",
        asked: asked.rx_ctx_cnt,
        offers: most.ep.rx_ctx_cnt,
        most: most.domain.max_ep_rx_ctx,
        shared: most.domain.max_ep_srx_ctx,
    })
}

fn check_context(count: ContextCount) -> Check {
    match count.asked {
        FI_SHARED_CONTEXT if count.most != FI_SHARED_CONTEXT && count.shared == 0 => Err(Refusal::says(
            count.attr,
            "asked FI_SHARED_CONTEXT, no shared contexts offered",
        )),
        FI_SHARED_CONTEXT => Ok(()),
        0 if count.offers == FI_SHARED_CONTEXT => {
            Err(Refusal::says(count.attr, "needs FI_SHARED_CONTEXT to be asked for"))
        }
        asked => size_at_most(count.attr, asked, count.most),
    }
}

fn check_order_sizes(asked: &EpAttr, most: &EpAttr) -> Check {
    size_at_most(
        "ep_attr.max_order_raw_size",
        asked.max_order_raw_size,
        most.max_order_raw_size,
    )?;
    size_at_most(
        "ep_attr.max_order_war_size",
        asked.max_order_war_size,
        most.max_order_war_size,
    )?;
    size_at_most(
        "ep_attr.max_order_waw_size",
        asked.max_order_waw_size,
        most.max_order_waw_size,
    )
}

fn check_auth_key(asked: &EpAttr, most: &EpAttr, hints: &Info, query: &Query) -> Check {
    if !keys_by_av(hints.domain.as_ref(), query) {
        return check_key_size("ep_attr.auth_key_size", &asked.auth_key, &most.auth_key);
    }
    if asked.auth_key.bytes.is_some() || asked.auth_key.size != KeySize::default() {
        return Err(Refusal::says(
            "ep_attr.auth_key",
            "must be NULL and of size 0 with FI_AV_AUTH_KEY",
        ));
    }
    Ok(())
}

/// What counts in a tag format is how far up it reaches.
fn check_tag_format(asked: u64, offers: u64) -> Check {
    let highest_bit = |format: u64| u64::BITS - format.leading_zeros();
    if asked == 0 || highest_bit(asked) <= highest_bit(offers) {
        return Ok(());
    }
    at_most(
        "ep_attr.mem_tag_format (bits)",
        highest_bit(asked).into(),
        highest_bit(offers).into(),
    )
}
