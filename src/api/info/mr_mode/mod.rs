//! Memory registration modes, through three ages of the API: two named modes (until 1.4), bits with the two names kept
//! for old programs (1.5 on), and FI_LOCAL_MR, the bit that moved from `mode` to `mr_mode` in between.

use super::caps::is_rma_target;
use super::model::Info;
use super::query::Query;
use super::refusal::{Check, Refusal, Why};
use crate::abi::types::*;
use core::ffi::c_int;

/// A provider sets these beside its bits when it can also serve a program that names an old mode.
const LEGACY: c_int = FI_MR_BASIC | FI_MR_SCALABLE;
/// Bits that only matter to a target of RMA.
const RMA_TARGET: c_int = FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT;

/// Removes the bits that do not matter to an endpoint with these caps.
fn reduce(caps: u64, mut mr_mode: c_int) -> c_int {
    if caps & FI_HMEM == 0 {
        mr_mode &= !FI_MR_HMEM;
    }
    if !is_rma_target(caps) {
        if mr_mode & (FI_MR_LOCAL | FI_MR_HMEM) == 0 {
            return 0;
        }
        mr_mode &= !RMA_TARGET;
    }
    mr_mode & !LEGACY
}

/// The mode bits a provider needs: FI_LOCAL_MR is among them for programs that do not know FI_MR_LOCAL.
pub fn needed_mode(offers: &Info, hints: &Info, query: &Query) -> u64 {
    let hinted = hints.domain.as_ref().map(|domain| domain.mr_mode);
    let knows_mr_local = query.speaks(1, 5) && hinted.is_none_or(|mr_mode| mr_mode & FI_MR_LOCAL != 0);
    if !knows_mr_local && mr_mode_of(offers) & FI_MR_LOCAL != 0 {
        offers.mode | FI_LOCAL_MR
    } else {
        offers.mode
    }
}

fn mr_mode_of(info: &Info) -> c_int {
    info.domain.as_ref().map_or(0, |domain| domain.mr_mode)
}

pub fn check(offered: c_int, hints: &Info, query: &Query) -> Check {
    let asked = mr_mode_of(hints);
    let registers_local = hints.mode & FI_LOCAL_MR != 0 || asked & FI_MR_LOCAL != 0;
    if offered & FI_MR_LOCAL != 0 && !registers_local {
        return Err(refusal(FI_MR_LOCAL, asked));
    }
    if !query.speaks(1, 5) {
        check_before_1_5(offered, asked)
    } else {
        check_bits(offered, hints, asked)
    }
}

fn check_before_1_5(offered: c_int, asked: c_int) -> Check {
    let fits = match asked {
        FI_MR_UNSPEC => offered & LEGACY != 0,
        FI_MR_BASIC | FI_MR_SCALABLE => offered & asked != 0,
        _ => {
            return Err(Refusal::says(
                "domain_attr.mr_mode",
                "before API 1.5 only FI_MR_BASIC and FI_MR_SCALABLE",
            ));
        }
    };
    if fits { Ok(()) } else { Err(refusal(offered, asked)) }
}

fn check_bits(offered: c_int, hints: &Info, asked: c_int) -> Check {
    if asked & LEGACY != 0 {
        // An old name stands alone: BASIC wins where both are set, and then SCALABLE is one bit too many.
        let name = if asked & FI_MR_BASIC != 0 {
            FI_MR_BASIC
        } else {
            FI_MR_SCALABLE
        };
        let fits = asked == name && offered & name != 0;
        return if fits { Ok(()) } else { Err(refusal(offered, asked)) };
    }
    let needs = reduce(hints.caps, offered);
    if asked == FI_MR_UNSPEC || asked & needs == needs {
        Ok(())
    } else {
        Err(refusal(needs, asked))
    }
}

fn refusal(needs: c_int, given: c_int) -> Refusal {
    let bits = |mode: c_int| u64::from(mode as u32);
    let why = Why::Needs {
        kind: FI_TYPE_MR_MODE,
        needs: bits(needs),
        given: bits(given),
    };
    Refusal {
        attr: "domain_attr.mr_mode",
        why,
    }
}

/// The mode bit that goes with a reply to a program that names an old mode.
pub fn reply_mode(offered: c_int, hints: Option<&Info>, query: &Query) -> u64 {
    let old_name = hints.is_some_and(|hints| mr_mode_of(hints) & LEGACY != 0);
    if offered & FI_MR_LOCAL != 0 && (old_name || !query.speaks(1, 5)) {
        FI_LOCAL_MR
    } else {
        0
    }
}

/// `caps` are those of the reply.
pub fn reply(offered: c_int, caps: u64, hints: Option<&Info>, query: &Query) -> c_int {
    let hinted = hints
        .and_then(|hints| hints.domain.as_ref())
        .map(|domain| domain.mr_mode);
    if let Some(asked) = hinted.filter(|asked| asked & LEGACY != 0) {
        return asked;
    }
    if !query.speaks(1, 5) {
        return if offered != 0 && offered != FI_MR_SCALABLE {
            FI_MR_BASIC
        } else {
            FI_MR_SCALABLE
        };
    }
    let bits = offered & !LEGACY;
    match hinted {
        Some(asked) if asked & bits != bits => reduce(caps, bits & asked),
        _ => bits,
    }
}

/// Takes FI_REMOTE_* from the caps of a reply when the program does not keep the modes that being a target needs.
pub fn trim_caps(caps: u64, offered: c_int, hints: &Info, query: &Query) -> u64 {
    let target_bits = offered & RMA_TARGET;
    if !is_rma_target(caps) || target_bits == 0 {
        return caps;
    }
    let keeps = hints.domain.as_ref().is_some_and(|domain| {
        let asked = domain.mr_mode;
        asked == FI_MR_BASIC || asked & target_bits == target_bits || (asked == FI_MR_UNSPEC && !query.speaks(1, 5))
    });
    if keeps {
        caps
    } else {
        caps & !(FI_REMOTE_READ | FI_REMOTE_WRITE)
    }
}

#[cfg(test)]
mod tests;
