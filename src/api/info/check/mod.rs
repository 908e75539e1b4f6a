//! Holds one candidate against the hints. The order of the checks is the C library's: the first one that fails is the
//! reason a reader of the log sees.

use super::model::{FabricAttr, Info};
use super::query::Query;
use super::refusal::{Candidate, Check, Refusal, Why, at_most, differs, granted, subset};
use super::{addr_format, contexts, domain, endpoint, mr_mode, reply};
use crate::abi::types::*;

/// What is answered when `offer` suits the query: `offer` with what the hints say worked in.
///
/// `offer` holds the provider's defaults, `limits` the most that may be asked for. They are often the same info; a
/// provider that answers with a short queue but allows a long one passes two that differ in sizes.
pub fn check(offer: &Info, limits: &Info, query: &Query) -> Result<Info, Refusal> {
    if let Some(hints) = query.hints {
        check_hints(limits, hints, query)?;
    }
    Ok(reply::build(offer, query))
}

/// As `check`, and the refusal goes to the log.
pub fn judge(provider: &str, offer: &Info, limits: &Info, query: &Query) -> Option<Info> {
    match check(offer, limits, query) {
        Ok(info) => Some(info),
        Err(refusal) => {
            log_refusal(provider, offer, &refusal);
            None
        }
    }
}

pub fn log_refusal(provider: &str, info: &Info, refusal: &Refusal) {
    log!(Info, Core, "refused {}: {refusal}", Candidate { provider, info });
}

/// For providers whose templates are their own limits: every one that fits, in their order.
pub fn judge_all(provider: &str, templates: &[Info], query: &Query) -> Vec<Info> {
    templates
        .iter()
        .filter_map(|template| judge(provider, template, template, query))
        .collect()
}

fn check_hints(limits: &Info, hints: &Info, query: &Query) -> Check {
    let Some(most) = limits.parts() else {
        return Err(Refusal::says("fi_info", "the provider's template lacks an attribute"));
    };
    if let Some(ep) = &hints.ep {
        check_ep_type(ep.ep_type, most.ep.ep_type)?;
    }
    subset("caps", FI_TYPE_CAPS, hints.caps, limits.caps)?;
    granted(
        "mode",
        FI_TYPE_MODE,
        mr_mode::needed_mode(limits, hints, query),
        hints.mode,
    )?;
    if !addr_format::fits(hints.addr_format, limits.addr_format) {
        return Err(differs(
            "addr_format",
            FI_TYPE_ADDR_FORMAT,
            hints.addr_format,
            limits.addr_format,
        ));
    }
    if let Some(fabric) = &hints.fabric {
        check_fabric(fabric, most.fabric)?;
    }
    if let Some(asked) = &hints.domain {
        domain::check(asked, most.domain, hints, query)?;
    }
    if let Some(asked) = &hints.ep {
        endpoint::check(asked, &most, hints, query)?;
    }
    if let Some(asked) = &hints.rx {
        contexts::check_rx(asked, most.rx, hints.mode)?;
    }
    if let Some(asked) = &hints.tx {
        contexts::check_tx(asked, most.tx, hints.mode)?;
    }
    Ok(())
}

fn check_ep_type(asked: u32, offers: u32) -> Check {
    if asked == FI_EP_UNSPEC || offers == FI_EP_UNSPEC || asked == offers {
        Ok(())
    } else {
        Err(differs("ep_attr.type", FI_TYPE_EP_TYPE, asked, offers))
    }
}

/// Names of fabrics are compared later, when interfaces have given them theirs.
fn check_fabric(asked: &FabricAttr, most: &FabricAttr) -> Check {
    if let (Some(asked), Some(offers)) = (&asked.prov_name, &most.prov_name) {
        if !may_stand_on(asked, offers) {
            let why = Why::NotNamed {
                asked: asked.clone(),
                offers: offers.clone(),
            };
            return Err(Refusal {
                attr: "fabric_attr.prov_name",
                why,
            });
        }
    }
    at_most(
        "fabric_attr.prov_version",
        asked.prov_version.into(),
        most.prov_version.into(),
    )?;
    if asked.api_version != 0 && asked.api_version < most.api_version {
        return Err(differs(
            "fabric_attr.api_version",
            FI_TYPE_VERSION,
            asked.api_version,
            most.api_version,
        ));
    }
    Ok(())
}

/// A template that names a provider is meant for use on top of that one only: whether names that a program asks for
/// allow it.
fn may_stand_on(asked: &str, below: &str) -> bool {
    let (asked, below) = (asked.to_ascii_lowercase(), below.to_ascii_lowercase());
    let mut wanted = asked.split(';').filter(|name| !name.starts_with('^')).peekable();
    let excluded = asked.split(';').any(|name| name.strip_prefix('^') == Some(&below));
    // Names of layers alone leave open what they stand on.
    let is_open = wanted.peek().is_some() && wanted.clone().all(|name| name.starts_with("ofi_"));
    !excluded && (is_open || wanted.any(|name| name.contains(&below)))
}

#[cfg(test)]
mod tests;
