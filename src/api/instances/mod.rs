//! The open fabrics and domains of this library, in the order they were opened, for fi_getinfo: hints may name one, and
//! replies hand them out (fabric_attr.fabric, domain_attr.domain).
//!
//! Knows them as numbers, the addresses of their fids. `abi::object` opens and closes, `provider::getinfo` asks.

use super::info::model::{Info, Opaque};
use crate::sys::lock::{Guard, Held, Lock};

/// An open fabric or domain.
struct Instance {
    at: usize,
    /// The fabric of a domain.
    parent: Option<usize>,
    /// The provider of a fabric; a domain has its fabric's.
    provider: String,
    name: String,
}

static OPEN: Instances = Instances(Lock::new(Vec::new()));

/// For `abi::process`.
pub(crate) static LOCK: &dyn Held = &OPEN.0;

struct Instances(Lock<Vec<Instance>>);

pub fn fabric_opened(at: usize, provider: &str, name: &str) {
    OPEN.add(at, None, provider, name);
}

pub fn domain_opened(at: usize, fabric: usize, name: &str) {
    OPEN.add(at, Some(fabric), "", name);
}

pub fn closed(at: usize) {
    OPEN.list().retain(|instance| instance.at != at);
}

/// Puts the handles of open fabrics and domains into an info with their names: those that the hints name, else the
/// first. False: the hints name a handle that does not fit the info.
pub fn tell(info: &mut Info, hints: Option<&Info>) -> bool {
    OPEN.tell(info, hints)
}

impl Instances {
    fn list(&self) -> Guard<'_, Vec<Instance>> {
        self.0.lock()
    }

    fn add(&self, at: usize, parent: Option<usize>, provider: &str, name: &str) {
        self.list().push(Instance {
            at,
            parent,
            provider: provider.to_owned(),
            name: name.to_owned(),
        });
    }

    fn tell(&self, info: &mut Info, hints: Option<&Info>) -> bool {
        let asked_fabric = hints
            .and_then(|hints| Some(hints.fabric.as_ref()?.fabric.0))
            .unwrap_or(0);
        let asked_domain = hints
            .and_then(|hints| Some(hints.domain.as_ref()?.domain.0))
            .unwrap_or(0);
        let list = self.list();
        let is = |asked: usize, at: usize| asked == 0 || asked == at;
        let fabrics: Vec<usize> = list
            .iter()
            .filter(|one| one.parent.is_none() && same(&one.provider, info.prov_name()))
            .filter(|one| same(&one.name, info.fabric_name()) && is(asked_fabric, one.at))
            .map(|one| one.at)
            .collect();
        let domain = list.iter().find(|one| {
            let ours = one.parent.is_some_and(|fabric| fabrics.contains(&fabric));
            ours && same(&one.name, info.domain_name()) && is(asked_domain, one.at)
        });
        // A domain that was asked for goes with its own fabric.
        let fabric = match domain {
            Some(domain) if asked_domain != 0 => domain.parent,
            _ => fabrics.first().copied(),
        };
        let there = (asked_fabric == 0 || fabric.is_some()) && (asked_domain == 0 || domain.is_some());
        if let Some(attr) = &mut info.fabric {
            attr.fabric = Opaque(fabric.unwrap_or(0));
        }
        if let Some(attr) = &mut info.domain {
            attr.domain = Opaque(domain.map_or(0, |domain| domain.at));
        }
        there
    }
}

/// Names are compared as fi_getinfo does.
fn same(own: &str, asked: Option<&str>) -> bool {
    own.eq_ignore_ascii_case(asked.unwrap_or(""))
}

#[cfg(test)]
mod tests;
