//! fi_getinfo from end to end: which providers are asked (`layering`), what is written on their answers, and the list
//! that comes out (`listing`). How one candidate is held against the hints is `api::info`'s.
//!
//! Takes no lock and keeps nothing, so a utility provider may call it while it is being asked. Called by `abi`.

mod layering;
mod listing;

use super::registry::{Entry, Hidden, Registry};
use super::{Kind, Provider};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::describe::{describe_error, describe_version};
use crate::api::info::model::{FabricAttr, Info};
use crate::api::info::query::{Answer, GETINFO_HIDDEN, LIBRARY_VERSION, OFFLOAD_PROV_ONLY, Query};
use crate::api::instances;
use layering::Wanted;

/// Never an empty list: that is -FI_ENODATA. A provider that fails is passed over, whatever its error.
pub fn getinfo(registry: &Registry, query: &Query) -> Result<Vec<Answer>> {
    if query.version > LIBRARY_VERSION {
        log!(Warn, Core, "Requested version is newer than library");
        return Err(Errno(FI_ENOSYS));
    }
    // With any other flag beside it, it means nothing, and neither do flags nobody knows.
    let answers = if query.flags == FI_PROV_ATTR_ONLY {
        list_providers(registry)
    } else {
        ask_all(registry, query)
    };
    if answers.is_empty() {
        let asked = registry.iter().count();
        log!(
            Info,
            Core,
            "nothing fits: {asked} providers are there; fi_info --why tells what each lacks"
        );
        return Err(Errno(FI_ENODATA));
    }
    log!(Info, Core, "{} infos fit", answers.len());
    Ok(answers)
}

/// One bare info per provider: hooks, hidden ones and those of no use on this machine too.
fn list_providers(registry: &Registry) -> Vec<Answer> {
    let mut told = Vec::new();
    for entry in registry.iter() {
        let info = bare_info(entry.provider());
        // Those that only stand on different ones look alike.
        let is_same = |other: &Answer| other.info == info;
        if entry.provider().whole_name() == entry.provider().name() || !told.iter().any(is_same) {
            told.push(Answer { info, own: None });
        }
    }
    told
}

fn bare_info(provider: &dyn Provider) -> Info {
    let prov_name = Some(provider.name().to_owned());
    let fabric = FabricAttr {
        prov_name,
        prov_version: provider.version(),
        ..FabricAttr::default()
    };
    Info {
        fabric: Some(fabric),
        ..Info::blank()
    }
}

fn ask_all(registry: &Registry, query: &Query) -> Vec<Answer> {
    let wanted = Wanted::parse(query.prov_name());
    let mut answers = Vec::new();
    for entry in registry
        .iter()
        .filter(|entry| may_be_asked(entry.provider().kind(), query))
    {
        let name = entry.provider().name();
        match is_visible(entry, query).and_then(|()| wanted.admits(entry, registry, query)) {
            Ok(()) if is_new_enough(entry.provider(), query) => answers.extend(ask(entry.provider(), query)),
            Ok(()) => {}
            Err(why) => log!(Info, Core, "skipped {name}: {why}"),
        }
    }
    if !query.is_internal() {
        listing::finish(&mut answers, registry.filter(), query);
    }
    answers
}

fn may_be_asked(kind: Kind, query: &Query) -> bool {
    match kind {
        Kind::Core | Kind::Utility | Kind::Link => true,
        Kind::Offload => query.has_flag(OFFLOAD_PROV_ONLY),
        Kind::Hook => false,
    }
}

fn is_visible(entry: &Entry, query: &Query) -> core::result::Result<(), String> {
    match entry.hidden() {
        Some(_) if query.has_flag(GETINFO_HIDDEN) => Ok(()),
        Some(Hidden::ByFilter) => Err("FI_PROVIDER leaves it out".into()),
        Some(Hidden::ByAnother) => {
            let version = describe_version(entry.provider().version());
            Err(format!(
                "another provider of its name is used, not this one ({version})"
            ))
        }
        None => Ok(()),
    }
}

/// A provider cannot answer in structs that are newer than itself.
fn is_new_enough(provider: &dyn Provider, query: &Query) -> bool {
    let enough = provider.fi_version() >= query.version;
    if !enough {
        let (own, asked) = (describe_version(provider.fi_version()), describe_version(query.version));
        log!(
            Warn,
            Core,
            "skipped {}: its fi_version {own} < requested {asked}",
            provider.name()
        );
    }
    enough
}

fn ask(provider: &dyn Provider, query: &Query) -> Vec<Answer> {
    let name = provider.name();
    // Should it never return, this is who it was.
    log!(Debug, Core, "asking provider {name}");
    match provider.getinfo(query) {
        Ok(mut answers) => {
            if answers.is_empty() {
                log!(Warn, Core, "fi_getinfo: provider {name} output empty list");
            }
            answers
                .iter_mut()
                .for_each(|answer| sign(&mut answer.info, provider, query));
            // A plug-in knows best what it has open.
            answers.retain_mut(|answer| answer.own.is_some() || instances::tell(&mut answer.info, query.hints));
            answers
        }
        Err(error) => {
            log_failure(name, error, query);
            Vec::new()
        }
    }
}

/// Who asks for one provider only will want to know why it fails.
fn log_failure(name: &str, error: Errno, query: &Query) {
    let text = describe_error(error);
    if query.prov_name() == Some(name) {
        log!(Warn, Core, "fi_getinfo: provider {name} returned {text}");
    } else {
        log!(Info, Core, "fi_getinfo: provider {name} returned {text}");
    }
}

/// Puts the provider's name and version on an info. A utility provider leaves the name of what it stands on.
fn sign(info: &mut Info, provider: &dyn Provider, query: &Query) {
    let fabric = info.fabric.get_or_insert_default();
    let own = provider.name();
    fabric.prov_name = Some(match fabric.prov_name.take() {
        None => own.to_owned(),
        // A link is named by what it joins.
        Some(given) if provider.kind() == Kind::Link || given.eq_ignore_ascii_case(own) => given,
        Some(below) => format!("{below};{own}"),
    });
    fabric.prov_version = provider.version();
    fabric.api_version = query.version;
}

#[cfg(test)]
mod tests;
