//! hints->fabric_attr->prov_name: which providers it lets through, and who may stand on whom.
//!
//! `core`, `util`, `core;util` or `util;core`, then any number of `^name` that are left out. The last form and the
//! flag CORE_PROV_ONLY come from utility providers, which call fi_getinfo to find something to stand on.

use crate::api::info::query::{CORE_PROV_ONLY, Query};
use crate::provider::registry::{Entry, Registry};
use crate::provider::{Kind, UTILITY_PREFIX};

/// The names in hints, parted.
pub(super) struct Wanted<'a> {
    names: Vec<&'a str>,
    excluded: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    pub(super) fn parse(prov_name: Option<&'a str>) -> Wanted<'a> {
        let mut names: Vec<&str> = prov_name.map_or(Vec::new(), |text| text.split(';').collect());
        // Only at the end does a caret exclude; elsewhere it is part of a name that nobody has.
        let kept = names
            .iter()
            .rposition(|name| !name.starts_with('^'))
            .map_or(0, |last| last + 1);
        let excluded = names
            .split_off(kept)
            .into_iter()
            .filter_map(|name| name.strip_prefix('^'))
            .collect();
        Wanted { names, excluded }
    }

    /// Whether a provider is to be asked, or else why not.
    pub(super) fn admits(&self, entry: &Entry, registry: &Registry, query: &Query) -> Result<(), String> {
        let provider = entry.provider();
        if self
            .excluded
            .iter()
            .any(|name| name.eq_ignore_ascii_case(provider.name()))
        {
            return Err("the hints exclude it".into());
        }
        if query.has_flag(CORE_PROV_ONLY) {
            self.admits_below(entry)?;
        }
        match self.names.as_slice() {
            [] if provider.is_only_by_name() && !registry.filter().names(provider.name()) => {
                Err("it is there for those who name it".into())
            }
            [] => Ok(()),
            [core] if provider.kind() == Kind::Utility && !is_utility(core) => layers_over(core, registry),
            [util, core] if is_utility(util) && !is_utility(core) => is_named(provider.name(), util),
            [.., top] => is_named(provider.name(), top),
        }
    }

    /// A utility provider looks for what to stand on.
    fn admits_below(&self, entry: &Entry) -> Result<(), String> {
        if entry.provider().kind() != Kind::Core {
            return Err("a core provider is wanted".into());
        }
        if self.names.is_empty() && entry.refuses_layers() {
            return Err("nothing is layered over it unless the hints name it".into());
        }
        Ok(())
    }
}

fn is_utility(name: &str) -> bool {
    name.get(..UTILITY_PREFIX.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(UTILITY_PREFIX))
}

/// The application named a core provider: any utility provider that can stand on it is welcome too.
fn layers_over(core: &str, registry: &Registry) -> Result<(), String> {
    match registry.find(core) {
        Some(entry) if entry.refuses_layers() => {
            Err(format!("nothing is layered over {core} unless the hints name both"))
        }
        _ => Ok(()),
    }
}

fn is_named(name: &str, wanted: &str) -> Result<(), String> {
    if name.eq_ignore_ascii_case(wanted) {
        Ok(())
    } else {
        Err(format!("the hints want {wanted:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parted_names() {
        let rows: &[(Option<&str>, &[&str], &[&str])] = &[
            // (prov_name, names, excluded)
            (None, &[], &[]),
            (Some("tcp"), &["tcp"], &[]),
            (Some("tcp;ofi_rxm"), &["tcp", "ofi_rxm"], &[]),
            (Some("^ofi_rxm"), &[], &["ofi_rxm"]),
            (Some("tcp;^ofi_rxm;^ofi_rxd"), &["tcp"], &["ofi_rxm", "ofi_rxd"]),
            (Some("^tcp;ofi_rxm"), &["^tcp", "ofi_rxm"], &[]),
            (Some(""), &[""], &[]),
            (Some(";"), &["", ""], &[]),
            (Some("^"), &[], &[""]),
        ];
        for (text, names, excluded) in rows {
            let wanted = Wanted::parse(*text);
            assert_eq!(wanted.names, *names, "{text:?}");
            assert_eq!(wanted.excluded, *excluded, "{text:?}");
        }
    }
}
