//! What a plug-in answers to getinfo: a C list, taken apart into infos that can be handed out one by one.
//!
//! A plug-in may have allocated structs as short as those of the API version it was written for, and may leave out
//! what it should not; neither must hurt the program that gets the answer. Called by `plugin`.

use super::ExternalProvider;
use crate::abi::info;
use crate::abi::layout::{CURRENT, Layout};
use crate::abi::memory::{self, NoMemory};
use crate::abi::text;
use crate::abi::types::*;
use crate::api::info::model::FabricAttr;
use crate::api::info::query::Answer;
use crate::provider::Provider;
use core::ptr::{NonNull, null, null_mut};

/// One fi_info as the plug-in made it, without a successor, in the newest layout. Freed unless it is handed out.
pub struct OwnInfo(NonNull<fi_info>);

impl OwnInfo {
    /// Gives it away, with the provider's name and the versions as the core wants them. Freed with fi_freeinfo.
    pub fn signed(self, words: Option<&FabricAttr>) -> Result<*mut fi_info, NoMemory> {
        if let Some(words) = words {
            let name = words.prov_name.as_deref().map(text::owned);
            // SAFETY: a whole fi_info of ours with all parts; its strings come from malloc.
            unsafe {
                let fabric = (*self.0.as_ptr()).fabric_attr;
                let name = memory::string(name.as_ref().map_or(null(), |name| name.as_ptr()))?;
                memory::free((*fabric).prov_name);
                (*fabric).prov_name = name;
                (*fabric).prov_version = words.prov_version;
                (*fabric).api_version = words.api_version;
            }
        }
        let raw = self.0.as_ptr();
        core::mem::forget(self);
        Ok(raw)
    }

    fn into_answer(self) -> Answer {
        Answer {
            // SAFETY: a whole fi_info of ours, in the newest layout.
            info: unsafe { info::read(self.0.as_ptr(), &CURRENT) },
            own: Some(Box::new(self)),
        }
    }
}

impl Drop for OwnInfo {
    fn drop(&mut self) {
        // SAFETY: a list of one, ours, freed here only.
        unsafe { info::free(self.0.as_ptr(), &CURRENT) };
    }
}

/// Takes a list apart. An info that lacks a part is freed, and the plug-in logged.
///
/// # Safety
/// `list` is NULL or a list of malloc'ed fi_info, in the layout of the plug-in's API version, that is now ours.
pub(super) unsafe fn take(mut list: *mut fi_info, plugin: &ExternalProvider) -> Vec<Answer> {
    let layout = Layout::of_api(plugin.fi_version());
    let mut answers = Vec::new();
    if list.is_null() {
        log!(Warn, Core, "fi_getinfo: provider {} output empty list", plugin.name());
    }
    while let Some(node) = NonNull::new(list) {
        // SAFETY: a list of fi_info, whose `next` is the first field in every layout.
        list = unsafe { (&raw mut (*node.as_ptr()).next).replace(null_mut()) };
        // SAFETY: unlinked, so the node is ours alone.
        match unsafe { take_one(node, layout) } {
            Ok(own) => answers.push(own.into_answer()),
            Err(why) => log!(
                Warn,
                Core,
                "fi_getinfo: provider {}: {why}: entry dropped",
                plugin.name()
            ),
        }
    }
    answers
}

/// # Safety
/// As `take`, for a list of one.
unsafe fn take_one(node: NonNull<fi_info>, layout: &Layout) -> Result<OwnInfo, &'static str> {
    // SAFETY: an fi_info of some layout, and every layout has these fields.
    let missing = unsafe { missing_part(node.as_ptr()) };
    if *layout == CURRENT && missing.is_none() {
        return Ok(OwnInfo(node));
    }
    // The plug-in's own struct is freed: it is incomplete, or shorter than programs of today read.
    // SAFETY: an fi_info of that layout, ours alone, and not used again after `free`.
    unsafe {
        let whole = missing.map_or_else(|| info::dup(node.as_ptr(), layout).map_err(no_memory), Err);
        info::free(node.as_ptr(), layout);
        whole
            .and_then(|whole| NonNull::new(whole).ok_or("no memory"))
            .map(OwnInfo)
    }
}

/// The first part that every info must have and this one lacks.
///
/// # Safety
/// `node` points to an fi_info of any layout.
unsafe fn missing_part(node: *const fi_info) -> Option<&'static str> {
    // SAFETY: an fi_info of some layout, and every layout has these fields.
    let parts = unsafe {
        [
            ((*node).fabric_attr.is_null(), "no fabric_attr"),
            ((*node).domain_attr.is_null(), "no domain_attr"),
            ((*node).ep_attr.is_null(), "no ep_attr"),
            ((*node).tx_attr.is_null(), "no tx_attr"),
            ((*node).rx_attr.is_null(), "no rx_attr"),
        ]
    };
    parts.into_iter().find(|(missing, _)| *missing).map(|(_, what)| what)
}

fn no_memory(_: NoMemory) -> &'static str {
    "no memory"
}
