//! Holds a candidate's domain attributes against the hints.
//!
//! Not compared, as in the C library: the counts of objects a domain can hold, mr_key_size, the name (the core
//! filters by it at the end), and max_ep_stx_ctx and max_ep_srx_ctx, which the C library mentions but lets pass.

use super::model::{AuthKey, DomainAttr, Info, KeySize};
use super::mr_mode;
use super::query::Query;
use super::ranks::{check_progress, check_resource_mgmt, check_threading};
use super::refusal::{Check, Refusal, at_most, differs, granted, size_at_most, subset};
use crate::abi::types::*;

pub(super) fn check(asked: &DomainAttr, most: &DomainAttr, hints: &Info, query: &Query) -> Check {
    check_threading(asked.threading, most.threading)?;
    check_progress(asked.progress, most.progress)?;
    check_resource_mgmt(asked.resource_mgmt, most.resource_mgmt)?;
    check_av_type(asked.av_type, most.av_type)?;
    size_at_most("domain_attr.cq_data_size", asked.cq_data_size, most.cq_data_size)?;
    mr_mode::check(most.mr_mode, hints, query)?;
    // Programs written for an older API have no such fields, and what stands there is not theirs.
    if query.speaks(1, 5) {
        check_since_1_5(asked, most)?;
        check_auth_key(&asked.auth_key, &most.auth_key, query)?;
    }
    if query.speaks(1, 20) {
        size_at_most(
            "domain_attr.max_ep_auth_key",
            asked.max_ep_auth_key,
            most.max_ep_auth_key,
        )?;
    }
    if query.speaks(2, 5) {
        check_since_2_5(asked, most)
    } else {
        Ok(())
    }
}

fn check_av_type(asked: u32, offers: u32) -> Check {
    if asked == FI_AV_UNSPEC || offers == FI_AV_UNSPEC || asked == offers {
        Ok(())
    } else {
        Err(differs("domain_attr.av_type", FI_TYPE_AV_TYPE, asked, offers))
    }
}

fn check_since_1_5(asked: &DomainAttr, most: &DomainAttr) -> Check {
    size_at_most("domain_attr.cntr_cnt", asked.cntr_cnt, most.cntr_cnt)?;
    size_at_most("domain_attr.mr_iov_limit", asked.mr_iov_limit, most.mr_iov_limit)?;
    subset("domain_attr.caps", FI_TYPE_CAPS, asked.caps, most.caps)?;
    granted("domain_attr.mode", FI_TYPE_MODE, most.mode, asked.mode)?;
    size_at_most("domain_attr.max_err_data", asked.max_err_data, most.max_err_data)?;
    size_at_most("domain_attr.mr_cnt", asked.mr_cnt, most.mr_cnt)
}

/// Whether the keys are to come with the addresses of the AV instead.
pub(super) fn keys_by_av(asked: Option<&DomainAttr>, query: &Query) -> bool {
    query.speaks(1, 20) && asked.is_some_and(|asked| asked.auth_key.size == KeySize::Is(FI_AV_AUTH_KEY))
}

fn check_auth_key(asked: &AuthKey, most: &AuthKey, query: &Query) -> Check {
    const ATTR: &str = "domain_attr.auth_key_size";
    if asked.size == KeySize::Is(FI_AV_AUTH_KEY) && query.speaks(1, 20) {
        return match asked.bytes {
            Some(_) => Err(Refusal::says(
                "domain_attr.auth_key",
                "must be NULL with FI_AV_AUTH_KEY",
            )),
            None => Ok(()),
        };
    }
    check_key_size(ATTR, asked, most)
}

/// Keys have one size per provider, or any.
pub(super) fn check_key_size(attr: &'static str, asked: &AuthKey, most: &AuthKey) -> Check {
    if asked.size == KeySize::default() || asked.size == most.size {
        return Ok(());
    }
    match most.size {
        KeySize::Any if asked.bytes.is_some() => Ok(()),
        KeySize::Any => Err(Refusal::says(attr, "is set without a key")),
        KeySize::Is(most) => {
            size_at_most(attr, asked.size.in_c(), most)?;
            Err(Refusal::says(attr, "differs from the provider's"))
        }
    }
}

/// Zero is 'no limit known' on the provider's side.
fn check_since_2_5(asked: &DomainAttr, most: &DomainAttr) -> Check {
    if most.max_cntr_value != 0 {
        at_most("domain_attr.max_cntr_value", asked.max_cntr_value, most.max_cntr_value)?;
    }
    if most.max_err_cntr_value != 0 {
        at_most(
            "domain_attr.max_err_cntr_value",
            asked.max_err_cntr_value,
            most.max_err_cntr_value,
        )?;
    }
    Ok(())
}
