//! Attributes whose values form a scale. What the application asks for must come no earlier on the scale than what the
//! provider offers: a provider that is safe with any threads suits an application that serialises its calls.

use super::refusal::{Check, Refusal, differs};
use crate::abi::types::*;

/// From most parallel to most serialised. The C library ranks neither FI_THREAD_FID nor FI_THREAD_ENDPOINT, and so
/// refuses them everywhere; their place here follows from the man page.
const THREADING: &[fi_threading] = &[
    FI_THREAD_SAFE,
    FI_THREAD_FID,
    FI_THREAD_ENDPOINT,
    FI_THREAD_COMPLETION,
    FI_THREAD_DOMAIN,
    FI_THREAD_UNSPEC,
];

/// From what runs by itself to what the application must drive.
const PROGRESS: &[fi_progress] = &[
    FI_PROGRESS_AUTO,
    FI_PROGRESS_MANUAL,
    FI_PROGRESS_CONTROL_UNIFIED,
    FI_PROGRESS_UNSPEC,
];

const RESOURCE_MGMT: &[fi_resource_mgmt] = &[FI_RM_ENABLED, FI_RM_DISABLED, FI_RM_UNSPEC];

pub(super) fn check_threading(asked: fi_threading, offers: fi_threading) -> Check {
    check(THREADING, "domain_attr.threading", FI_TYPE_THREADING, asked, offers)
}

pub(super) fn check_progress(asked: fi_progress, offers: fi_progress) -> Check {
    check(PROGRESS, "domain_attr.progress", FI_TYPE_PROGRESS, asked, offers)
}

pub(super) fn check_resource_mgmt(asked: fi_resource_mgmt, offers: fi_resource_mgmt) -> Check {
    // fi_tostr has no type of its own for this one.
    check(RESOURCE_MGMT, "domain_attr.resource_mgmt", FI_TYPE_INFO, asked, offers)
}

fn check(scale: &[u32], attr: &'static str, kind: fi_type, asked: u32, offers: u32) -> Check {
    let place = |value| scale.iter().position(|&known| known == value);
    match place(asked) {
        None => Err(Refusal::says(attr, "not a value of this attribute")),
        // A provider's unknown value is its own affair: it has no place, and nobody comes before it.
        asked_at if asked_at >= place(offers) => Ok(()),
        Some(_) => Err(differs(attr, kind, asked, offers)),
    }
}

#[cfg(test)]
mod tests;
