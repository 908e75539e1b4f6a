//! FI_PROVIDER: which providers the user wants to see. It acts twice, on providers when they are registered and on
//! infos before they are handed out, and differently: see `docs/getinfo.md`.

use super::Kind;
use crate::api::names::NameList;

/// `tcp,verbs;ofi_rxm` or, to leave them out, `^tcp,verbs;ofi_rxm`. Letter case does not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Empty: no filter.
    names: NameList,
}

/// A name in FI_PROVIDER that no provider has.
#[derive(Debug, PartialEq)]
pub struct Unknown {
    pub name: String,
    pub meant: Option<String>,
}

impl Filter {
    /// A variable that is set but empty is none, and so are empty elements.
    pub fn parse(text: Option<&str>) -> Filter {
        Filter {
            names: NameList::parse(text.unwrap_or("")),
        }
    }

    /// Whether the user wants to see this provider by its name.
    pub fn names(&self, name: &str) -> bool {
        !self.names.negated && self.names.has(name)
    }

    /// Some `name;other` is listed.
    fn has_stack_on(&self, name: &str) -> bool {
        self.names
            .list
            .iter()
            .any(|known| core_of(known).is_some_and(|core| core.eq_ignore_ascii_case(name)))
    }

    /// Whether a provider is not to be asked at all. A positive list is about core providers: utility providers stay,
    /// to stand on those that are left.
    pub fn hides_provider(&self, name: &str, kind: Kind) -> bool {
        if self.names.is_empty() {
            return false;
        }
        if self.names.negated {
            return self.names.has(name);
        }
        kind == Kind::Core && !self.names.has(name) && !self.has_stack_on(name)
    }

    /// Whether an info of this provider name is not to be handed out. A core name stands for its stacks too.
    pub fn hides_info(&self, prov_name: &str) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let listed = self.names.has(prov_name) || core_of(prov_name).is_some_and(|core| self.names.has(core));
        listed == self.names.negated
    }

    /// Parts of the listed names that are not among `known`.
    pub fn unknown(&self, known: &[&str]) -> Vec<Unknown> {
        let parts = self.names.list.iter().flat_map(|name| name.split(';'));
        parts
            .filter(|part| !known.iter().any(|name| name.eq_ignore_ascii_case(part)))
            .map(|part| Unknown {
                name: part.to_owned(),
                meant: closest(part, known).map(str::to_owned),
            })
            .collect()
    }
}

/// What stands below in a stack; `None` for a name that is no stack.
fn core_of(prov_name: &str) -> Option<&str> {
    prov_name.split_once(';').map(|(core, _)| core)
}

/// The known name somebody may have meant: it begins alike, or a letter or two went wrong.
fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_ascii_lowercase();
    let near = |name: &&'a str| {
        let name = name.to_ascii_lowercase();
        let short = name.strip_prefix("ofi_").unwrap_or(&name);
        let alike = wrong.len() >= 2 && (name.starts_with(&wrong) || short.starts_with(&wrong));
        let distance = if alike {
            0
        } else {
            edits(&wrong, &name).min(edits(&wrong, short))
        };
        let allowed = if wrong.len() <= 3 { 1 } else { 2 };
        (distance <= allowed).then_some(distance)
    };
    let by_distance = known.iter().filter_map(|name| Some((near(name)?, *name)));
    by_distance.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// How many letters must be added, dropped, changed, or swapped with their neighbour, to make `b` of `a`.
fn edits(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().max(b.len()) > LONGEST {
        return usize::MAX;
    }
    // cost[i][j]: from the first i letters of `a` to the first j of `b`.
    let mut cost = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            cost[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (cost[i - 1][j - 1] + change)
                    .min(cost[i - 1][j] + 1)
                    .min(cost[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(cost[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    cost[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_and_infos() {
        let rows: &[(&str, &str, Kind, bool)] = &[
            // (FI_PROVIDER, provider, kind, hidden)
            ("", "tcp", Kind::Core, false),
            ("^", "tcp", Kind::Core, false),
            ("tcp", "tcp", Kind::Core, false),
            ("TCP", "tcp", Kind::Core, false),
            ("tcp", "udp", Kind::Core, true),
            ("tcp", "ofi_rxm", Kind::Utility, false),
            ("tcp", "lnx", Kind::Link, false),
            ("tcp", "off_coll", Kind::Offload, false),
            ("tcp,udp", "udp", Kind::Core, false),
            ("tcp, udp,", "udp", Kind::Core, false),
            ("tcp;ofi_rxm", "tcp", Kind::Core, false),
            ("tcp;ofi_rxm", "tc", Kind::Core, true),
            ("ofi_rxm", "tcp", Kind::Core, true),
            ("ofi_rxm;tcp", "tcp", Kind::Core, true),
            ("^tcp", "tcp", Kind::Core, true),
            ("^tcp", "udp", Kind::Core, false),
            ("^tcp,udp", "udp", Kind::Core, true),
            ("^ofi_rxm", "ofi_rxm", Kind::Utility, true),
            ("^tcp;ofi_rxm", "tcp", Kind::Core, false),
            // A second caret is part of a name.
            ("^tcp,^udp", "udp", Kind::Core, false),
        ];
        for (text, name, kind, hidden) in rows {
            assert_eq!(
                Filter::parse(Some(text)).hides_provider(name, *kind),
                *hidden,
                "{text} {name}"
            );
        }
        let rows = [
            // (FI_PROVIDER, prov_name of an info, hidden)
            ("", "tcp", false),
            ("tcp", "tcp", false),
            ("tcp", "tcp;ofi_rxm", false),
            ("tcp", "TCP;ofi_rxm", false),
            ("tcp;ofi_rxm", "tcp", true),
            ("tcp;ofi_rxm", "tcp;ofi_rxm", false),
            ("tcp;ofi_rxm", "tcp;ofi_rxd", true),
            ("ofi_rxm", "tcp;ofi_rxm", true),
            ("^tcp", "tcp;ofi_rxm", true),
            ("^tcp", "udp;ofi_rxd", false),
            ("^tcp;ofi_rxm", "tcp", false),
            ("^tcp;ofi_rxm", "tcp;ofi_rxm", true),
            ("^ofi_rxm", "tcp;ofi_rxm", false),
        ];
        for (text, name, hidden) in rows {
            assert_eq!(Filter::parse(Some(text)).hides_info(name), hidden, "{text} {name}");
        }
        assert!(!Filter::parse(None).hides_provider("tcp", Kind::Core));
    }

    #[test]
    fn misspelt_names() {
        let known = ["efa", "verbs", "tcp", "udp", "shm", "ofi_rxm", "ofi_rxd", "sockets"];
        let rows = [
            // (FI_PROVIDER, [(unknown, meant)])
            ("tcp,udp;ofi_rxd", &[][..]),
            ("^TCP", &[]),
            ("tpc", &[("tpc", Some("tcp"))]),
            ("verb", &[("verb", Some("verbs"))]),
            ("verbes", &[("verbes", Some("verbs"))]),
            ("rxm", &[("rxm", Some("ofi_rxm"))]),
            ("socket,tcp", &[("socket", Some("sockets"))]),
            ("tcp;rdm", &[("rdm", Some("ofi_rxm"))]),
            ("^tcp,^udp", &[("^udp", Some("udp"))]),
            ("quantum", &[("quantum", None)]),
            ("tcp;", &[("", None)]),
        ];
        for (text, expected) in rows {
            let found = Filter::parse(Some(text)).unknown(&known);
            let found: Vec<_> = found
                .iter()
                .map(|name| (name.name.as_str(), name.meant.as_deref()))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn edit_distances() {
        let rows = [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("tcp", "tcp", 0),
            ("tpc", "tcp", 1),
            ("tcpp", "tcp", 1),
            ("tap", "tcp", 1),
            ("kitten", "sitting", 3),
        ];
        for (a, b, distance) in rows {
            assert_eq!(edits(a, b), distance, "{a} {b}");
        }
        assert_eq!(edits(&"x".repeat(100_000), "tcp"), usize::MAX);
    }
}
