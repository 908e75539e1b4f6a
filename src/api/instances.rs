//! The open fabrics and domains of this library, in the order they were opened, for fi_getinfo: hints may name one, and
//! replies hand them out (fabric_attr.fabric, domain_attr.domain).
//!
//! Knows them as numbers, the addresses of their fids. `abi::object` opens and closes, `provider::getinfo` asks.

use super::info::model::{Info, Opaque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open fabric or domain.
struct Instance {
    at: usize,
    /// The fabric of a domain.
    parent: Option<usize>,
    /// The provider of a fabric; a domain has its fabric's.
    provider: String,
    name: String,
}

static OPEN: Instances = Instances(Mutex::new(Vec::new()));

struct Instances(Mutex<Vec<Instance>>);

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
    fn list(&self) -> MutexGuard<'_, Vec<Instance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
mod tests {
    use super::*;
    use crate::api::info::model::{DomainAttr, FabricAttr};

    fn info(fabric: usize, domain: usize) -> Info {
        Info {
            fabric: Some(FabricAttr {
                fabric: Opaque(fabric),
                name: Some("net".into()),
                prov_name: Some("shm".into()),
                ..FabricAttr::default()
            }),
            domain: Some(DomainAttr {
                domain: Opaque(domain),
                name: Some("dom".into()),
                ..DomainAttr::default()
            }),
            ..Info::default()
        }
    }

    /// What hints with these instances are told; None: nothing fits.
    fn told(open: &Instances, fabric: usize, domain: usize) -> Option<(usize, usize)> {
        let mut answer = info(0, 0);
        let there = open.tell(&mut answer, Some(&info(fabric, domain)));
        there.then(|| (answer.fabric.unwrap().fabric.0, answer.domain.unwrap().domain.0))
    }

    #[test]
    fn the_first_is_told_or_the_one_asked_for() {
        let open = Instances(Mutex::default());
        assert_eq!(
            (told(&open, 0, 0), told(&open, 1, 0), told(&open, 0, 1)),
            (Some((0, 0)), None, None)
        );
        open.add(90, None, "tcp", "net");
        open.add(91, Some(90), "", "dom");
        open.add(1, None, "SHM", "net");
        open.add(2, None, "shm", "net");
        open.add(3, None, "shm", "other");
        assert_eq!(told(&open, 0, 0), Some((1, 0)));
        open.add(21, Some(2), "", "dom");
        open.add(22, Some(2), "", "another");
        open.add(23, Some(2), "", "Dom");
        open.add(31, Some(3), "", "dom");
        let rows = [
            // (fabric, domain, expected)
            (0, 0, Some((1, 21))),
            (1, 0, Some((1, 0))),
            (2, 0, Some((2, 21))),
            (2, 23, Some((2, 23))),
            (0, 23, Some((2, 23))),
            (1, 23, None),
            (0, 22, None),
            (0, 31, None),
            (3, 0, None),
            (90, 0, None),
            (0, 91, None),
            (7, 7, None),
        ];
        for (fabric, domain, expected) in rows {
            assert_eq!(told(&open, fabric, domain), expected, "{fabric} {domain}");
        }
        let mut answer = info(5, 5);
        assert!(open.tell(&mut answer, None));
        assert_eq!(answer, info(1, 21));
    }
}
