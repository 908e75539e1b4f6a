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
use crate::api::info::query::Answer;
use crate::provider::{Kind, Provider};
use core::ptr::{NonNull, null_mut};

/// One fi_info as the plug-in made it, without a successor, in the newest layout. Freed unless it is handed out.
pub struct OwnInfo(NonNull<fi_info>);

impl OwnInfo {
    /// Gives it away: whoever has it now frees it with fi_freeinfo.
    pub fn into_raw(self) -> *mut fi_info {
        let raw = self.0.as_ptr();
        core::mem::forget(self);
        raw
    }
}

impl Drop for OwnInfo {
    fn drop(&mut self) {
        // SAFETY: a list of one, ours, freed here only.
        unsafe { info::free(self.0.as_ptr(), &CURRENT) };
    }
}

/// Takes a list apart. What misses a part is freed, and the plug-in named.
///
/// # Safety
/// `list` is NULL or a list of malloc'ed fi_info, in the layout of the plug-in's API version, that is now ours.
pub unsafe fn take(mut list: *mut fi_info, plugin: &ExternalProvider, api_version: u32) -> Vec<Answer> {
    let layout = Layout::of_api(plugin.fi_version());
    let mut answers = Vec::new();
    if list.is_null() {
        log!(Warn, Core, "fi_getinfo: provider {} output empty list", plugin.name());
    }
    while let Some(node) = NonNull::new(list) {
        // SAFETY: by contract; `next` is the first field in every layout.
        list = unsafe { (&raw mut (*node.as_ptr()).next).replace(null_mut()) };
        // SAFETY: unlinked, so the node is ours alone.
        match unsafe { take_one(node, layout) }.and_then(|own| own.labelled(plugin, api_version)) {
            Ok(answer) => answers.push(answer),
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
    // SAFETY: by contract; these fields are in every layout.
    let missing = unsafe { missing_part(node.as_ptr()) };
    if *layout == CURRENT && missing.is_none() {
        return Ok(OwnInfo(node));
    }
    // What the plug-in made ends here: it is incomplete, or too short for programs of today.
    // SAFETY: by contract; not used again after `free`.
    unsafe {
        let whole = missing.map_or_else(|| info::dup(node.as_ptr(), layout).map_err(no_memory), Err);
        info::free(node.as_ptr(), layout);
        whole
            .and_then(|whole| NonNull::new(whole).ok_or("no memory"))
            .map(OwnInfo)
    }
}

/// What every info must have and this one has not.
///
/// # Safety
/// `node` points to an fi_info of any layout.
unsafe fn missing_part(node: *const fi_info) -> Option<&'static str> {
    // SAFETY: by contract.
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

impl OwnInfo {
    /// Writes down who answered, and whom.
    fn labelled(self, plugin: &ExternalProvider, api_version: u32) -> Result<Answer, &'static str> {
        // SAFETY: a whole fi_info of ours with all parts; its strings come from malloc.
        let info = unsafe {
            let fabric = (*self.0.as_ptr()).fabric_attr;
            let under = text::read((*fabric).prov_name);
            let name = text::owned(&layered_name(under, plugin.name(), plugin.kind()));
            let name = memory::string(name.as_ptr()).map_err(no_memory)?;
            memory::free((*fabric).prov_name);
            (*fabric).prov_name = name;
            (*fabric).prov_version = plugin.version();
            (*fabric).api_version = api_version;
            info::read(self.0.as_ptr(), &CURRENT)
        };
        Ok(Answer {
            info,
            own: Some(Box::new(self)),
        })
    }
}

fn no_memory(_: NoMemory) -> &'static str {
    "no memory"
}

/// A utility provider leaves the name of the one it stands on for the core to go on from; lnx writes its own name.
fn layered_name(under: Option<String>, name: &str, kind: Kind) -> String {
    match under {
        None => name.to_owned(),
        Some(under) if kind == Kind::Link || under.rsplit(';').next() == Some(name) => under,
        Some(under) => format!("{under};{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_layered_as_programs_know_them() {
        let cases = [
            (None, "verbs", Kind::Core, "verbs"),
            (Some("verbs"), "ofi_rxm", Kind::Utility, "verbs;ofi_rxm"),
            (
                Some("verbs;ofi_rxm"),
                "ofi_mrail",
                Kind::Utility,
                "verbs;ofi_rxm;ofi_mrail",
            ),
            (Some("verbs"), "verbs", Kind::Core, "verbs"),
            (Some("shm+tcp"), "lnx", Kind::Link, "shm+tcp"),
            (None, "lnx", Kind::Link, "lnx"),
        ];
        for (under, name, kind, expected) in cases {
            assert_eq!(layered_name(under.map(str::to_owned), name, kind), expected);
        }
    }
}
