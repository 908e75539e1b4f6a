//! The providers there are, in the order in which they are asked.
//!
//! Owns them: dropping the registry drops each provider, in that order, which is when plug-ins clean up. Knows nothing
//! of how a plug-in is found. Filled once at start-up by `abi`, then only read.

use super::Provider;
use super::filter::Filter;
use crate::api::info::describe::describe_version;
use crate::api::info::query::fi_version;

/// Fast hardware first, plain sockets last. Other providers follow in the order they come.
const ORDER: &[&str] = &[
    "efa",
    "psm2",
    "opx",
    "usnic",
    "verbs",
    "cxi",
    "psm3",
    "ucx",
    "ofi_rxm",
    "ofi_rxd",
    "auto",
    "shm",
    "udp",
    "tcp",
    "sockets",
    "net",
    "ofi_hook_perf",
    "ofi_hook_trace",
    "ofi_hook_profile",
    "ofi_hook_monitor",
    "ofi_hook_debug",
    "ofi_hook_noop",
    "ofi_hook_hmem",
    "ofi_hook_dmabuf_peer_mem",
    "off_coll",
];

/// The oldest API a provider may be written for.
const OLDEST: u32 = fi_version(1, 3);

/// Which of two providers of one name is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precedence {
    /// The one of higher version; of equals, the first.
    #[default]
    Version,
    /// The first one registered: what `@` in FI_PROVIDER_PATH says.
    FirstRegistered,
}

/// Why a provider that is there is not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hidden {
    ByFilter,
    ByAnother,
}

pub struct Entry {
    provider: Box<dyn Provider>,
    preferred: bool,
    filtered: bool,
    shadowed: bool,
}

impl Entry {
    pub fn provider(&self) -> &dyn Provider {
        &*self.provider
    }

    pub fn hidden(&self) -> Option<Hidden> {
        if self.filtered {
            Some(Hidden::ByFilter)
        } else if self.shadowed {
            Some(Hidden::ByAnother)
        } else {
            None
        }
    }

    /// Whether neither hides the other of the same name: each stands on one provider alone, and those differ.
    fn goes_with(&self, other: &Entry) -> bool {
        let [own, others] = [self, other].map(|entry| entry.provider.whole_name());
        own.contains(';') && others.contains(';') && !own.eq_ignore_ascii_case(others)
    }

    /// Whether a utility provider stands on this one only when told to by name.
    pub fn refuses_layers(&self) -> bool {
        super::refuses_layers(self.provider.name(), self.provider.kind())
    }
}

/// All providers of one name; the first is the one used, besides those that stand on others than it does.
struct Slot {
    name: String,
    entries: Vec<Entry>,
}

pub struct Registry {
    filter: Filter,
    precedence: Precedence,
    slots: Vec<Slot>,
}

impl Registry {
    pub fn new(filter: Filter) -> Registry {
        let slots = ORDER
            .iter()
            .map(|name| Slot {
                name: (*name).into(),
                entries: Vec::new(),
            })
            .collect();
        Registry {
            filter,
            precedence: Precedence::default(),
            slots,
        }
    }

    /// To be set before the first provider comes.
    pub fn set_precedence(&mut self, precedence: Precedence) {
        self.precedence = precedence;
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The names whose plug-ins are looked for along the loader's path, in order.
    pub fn known_names() -> &'static [&'static str] {
        ORDER
    }

    /// Takes a provider in. One that is too old is dropped at once; says whether it stays.
    pub fn register(&mut self, provider: Box<dyn Provider>, preferred: bool) -> bool {
        let (name, version) = (provider.name().to_owned(), provider.version());
        log!(
            Info,
            Core,
            "registering provider: {name} ({})",
            describe_version(version)
        );
        if provider.fi_version() < OLDEST {
            let written_for = describe_version(provider.fi_version());
            log!(
                Info,
                Core,
                "provider {name} is for API {written_for}, the oldest possible is 1.3; ignoring"
            );
            return false;
        }
        let filtered = self.filter.hides_provider(&name, provider.kind());
        if filtered {
            log!(
                Info,
                Core,
                "\"{name}\" filtered by provider include/exclude list, skipping"
            );
        }
        let entry = Entry {
            provider,
            preferred,
            filtered,
            shadowed: false,
        };
        let precedence = self.precedence;
        match self.slots.iter_mut().find(|slot| slot.name.eq_ignore_ascii_case(&name)) {
            Some(slot) => slot.add(entry, precedence),
            None => self.slots.push(Slot {
                name,
                entries: vec![entry],
            }),
        }
        true
    }

    /// The provider used for a name, hidden by FI_PROVIDER or not. `tcp;ofi_rxm` is `ofi_rxm`'s to open.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let top = name.rsplit(';').next()?;
        let slot = self.slots.iter().find(|slot| slot.name.eq_ignore_ascii_case(top))?;
        let mut used = slot.entries.iter().filter(|entry| !entry.shadowed);
        let exact = used.find(|entry| entry.provider.whole_name().eq_ignore_ascii_case(name));
        exact.or(slot.entries.first())
    }

    /// Every provider, hidden ones too, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flat_map(|slot| &slot.entries)
    }

    /// Warns about names in FI_PROVIDER that nobody has. To be called when all providers are in.
    pub fn warn_of_unknown_names(&self) {
        let known: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
        for unknown in self.filter.unknown(&known) {
            match unknown.meant {
                Some(meant) => {
                    log!(
                        Warn,
                        Core,
                        "FI_PROVIDER: no provider is called {:?}; the nearest name is {meant}",
                        unknown.name
                    )
                }
                None => log!(Warn, Core, "FI_PROVIDER: no provider is called {:?}", unknown.name),
            }
        }
    }
}

impl Slot {
    fn add(&mut self, mut entry: Entry, precedence: Precedence) {
        let mut at = self.entries.len();
        let rivals = self.entries.iter_mut().enumerate();
        for (place, current) in rivals.filter(|(_, current)| !current.shadowed) {
            if entry.goes_with(current) {
                continue;
            }
            let newer = entry.provider.version() > current.provider.version();
            let by_version = precedence == Precedence::Version && newer;
            let wins = !current.preferred && (entry.preferred || by_version);
            at = at.min(place + usize::from(!wins));
            let loser = if wins { &mut *current } else { &mut entry };
            loser.shadowed = true;
            log!(
                Info,
                Core,
                "provider {} ({}) is hidden by another of its name",
                self.name,
                { describe_version(loser.provider.version()) }
            );
        }
        self.entries.insert(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::FI_ENODATA;
    use crate::api::errno::{Errno, Result};
    use crate::api::info::query::{Answer, Query};
    use crate::provider::Kind;
    use std::sync::{Arc, Mutex};

    struct Fake {
        name: &'static str,
        version: u32,
        fi_version: u32,
        dropped: Arc<Mutex<Vec<String>>>,
    }

    impl Provider for Fake {
        fn name(&self) -> &str {
            self.name
        }
        fn version(&self) -> u32 {
            self.version
        }
        fn fi_version(&self) -> u32 {
            self.fi_version
        }
        fn kind(&self) -> Kind {
            Kind::of(self.name, true)
        }
        fn getinfo(&self, _: &Query) -> Result<Vec<Answer>> {
            Err(Errno(FI_ENODATA))
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            self.dropped
                .lock()
                .unwrap()
                .push(format!("{} {}", self.name, self.version));
        }
    }

    fn fake(name: &'static str, version: u32) -> Fake {
        Fake {
            name,
            version,
            fi_version: fi_version(2, 6),
            dropped: Arc::default(),
        }
    }

    /// `name version` of each entry, `!` behind the hidden ones.
    fn listed(registry: &Registry) -> Vec<String> {
        let show = |entry: &Entry| {
            let mark = if entry.hidden().is_some() { "!" } else { "" };
            format!("{} {}{mark}", entry.provider().name(), entry.provider().version())
        };
        registry.iter().map(show).collect()
    }

    /// One that stands on one provider alone.
    struct Over(&'static str, u32);

    impl Provider for Over {
        fn name(&self) -> &str {
            "ofi_rxm"
        }
        fn whole_name(&self) -> &str {
            self.0
        }
        fn version(&self) -> u32 {
            self.1
        }
        fn fi_version(&self) -> u32 {
            fi_version(2, 6)
        }
        fn kind(&self) -> Kind {
            Kind::Utility
        }
        fn getinfo(&self, _: &Query) -> Result<Vec<Answer>> {
            Err(Errno(FI_ENODATA))
        }
    }

    /// Those that stand on different providers are all used, but none beside one that stands on any.
    #[test]
    fn layers_of_one_name_over_different_providers() {
        let found = |registry: &Registry, name: &str| {
            let entry = registry.find(name).unwrap();
            (entry.provider().whole_name().to_owned(), entry.provider().version())
        };
        let (tcp, verbs) = ("tcp;ofi_rxm", "verbs;ofi_rxm");
        for plugin_first in [false, true] {
            let mut registry = Registry::new(Filter::default());
            let plugin = || Box::new(fake("ofi_rxm", 9));
            if plugin_first {
                assert!(registry.register(plugin(), false));
            }
            assert!(registry.register(Box::new(Over(tcp, 1)), false));
            assert!(registry.register(Box::new(Over(verbs, 1)), false));
            if !plugin_first {
                assert_eq!(listed(&registry), ["ofi_rxm 1", "ofi_rxm 1"]);
                assert_eq!(found(&registry, tcp), (tcp.into(), 1));
                assert_eq!(found(&registry, "Verbs;ofi_rxm"), (verbs.into(), 1));
                assert_eq!(found(&registry, "ofi_rxm"), (tcp.into(), 1));
                assert!(registry.register(plugin(), false));
            }
            assert_eq!(listed(&registry), ["ofi_rxm 9", "ofi_rxm 1!", "ofi_rxm 1!"]);
            for name in [tcp, verbs, "ofi_rxm", "udp;ofi_rxm"] {
                assert_eq!(found(&registry, name), ("ofi_rxm".into(), 9), "{name}");
            }
        }
    }

    #[test]
    fn order_is_fixed_and_others_follow() {
        let mut registry = Registry::new(Filter::default());
        for name in ["sm2", "tcp", "off_coll", "lnx", "shm", "ofi_rxm", "verbs", "efa", "TCP"] {
            assert!(registry.register(Box::new(fake(name, 1)), false));
        }
        let expected = [
            "efa 1",
            "verbs 1",
            "ofi_rxm 1",
            "shm 1",
            "tcp 1",
            "TCP 1!",
            "off_coll 1",
            "sm2 1",
            "lnx 1",
        ];
        assert_eq!(listed(&registry), expected);
    }

    #[test]
    fn one_of_several_of_a_name_is_used() {
        type Row = (Precedence, &'static [(u32, bool)], &'static [&'static str]);
        let rows: &[Row] = &[
            // (precedence, [(version, preferred)] as registered, as listed)
            (Precedence::Version, &[(1, false), (2, false)], &["tcp 2", "tcp 1!"]),
            (Precedence::Version, &[(2, false), (1, false)], &["tcp 2", "tcp 1!"]),
            (
                Precedence::Version,
                &[(2, false), (3, false), (1, false)],
                &["tcp 3", "tcp 1!", "tcp 2!"],
            ),
            (Precedence::Version, &[(1, true), (2, false)], &["tcp 1", "tcp 2!"]),
            (Precedence::Version, &[(2, false), (1, true)], &["tcp 1", "tcp 2!"]),
            (Precedence::Version, &[(1, true), (2, true)], &["tcp 1", "tcp 2!"]),
            (
                Precedence::FirstRegistered,
                &[(1, false), (2, false)],
                &["tcp 1", "tcp 2!"],
            ),
            (
                Precedence::FirstRegistered,
                &[(1, false), (2, true)],
                &["tcp 2", "tcp 1!"],
            ),
        ];
        for (number, (precedence, registered, expected)) in rows.iter().enumerate() {
            let mut registry = Registry::new(Filter::default());
            registry.set_precedence(*precedence);
            for (version, preferred) in *registered {
                registry.register(Box::new(fake("tcp", *version)), *preferred);
            }
            assert_eq!(listed(&registry), *expected, "row {number}");
        }
    }

    #[test]
    fn of_equals_the_first_stays() {
        for precedence in [Precedence::Version, Precedence::FirstRegistered] {
            let mut registry = Registry::new(Filter::default());
            registry.set_precedence(precedence);
            for minor in [6, 5] {
                let mut provider = fake("tcp", 1);
                provider.fi_version = fi_version(1, minor);
                registry.register(Box::new(provider), false);
            }
            assert_eq!(registry.find("tcp").unwrap().provider().fi_version(), fi_version(1, 6));
        }
    }

    #[test]
    fn too_old_is_dropped_at_once() {
        let mut registry = Registry::new(Filter::default());
        let mut old = fake("tcp", 1);
        old.fi_version = fi_version(1, 2);
        let dropped = Arc::clone(&old.dropped);
        assert!(!registry.register(Box::new(old), true));
        assert_eq!(*dropped.lock().unwrap(), ["tcp 1"]);
        assert!(registry.find("tcp").is_none());
    }

    #[test]
    fn find_takes_the_top_of_a_stack() {
        let mut registry = Registry::new(Filter::parse(Some("tcp")));
        for name in ["tcp", "ofi_rxm", "shm"] {
            registry.register(Box::new(fake(name, 1)), false);
        }
        let rows = [
            ("tcp", Some("tcp")),
            ("TCP;OFI_RXM", Some("ofi_rxm")),
            // FI_PROVIDER hides it from fi_getinfo only.
            ("shm", Some("shm")),
            ("verbs", None),
            ("tcp;", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(
                registry.find(name).map(|entry| entry.provider().name()),
                expected,
                "{name}"
            );
        }
        assert_eq!(listed(&registry), ["ofi_rxm 1", "shm 1!", "tcp 1"]);
        assert_eq!(registry.find("shm").unwrap().hidden(), Some(Hidden::ByFilter));
    }

    #[test]
    fn providers_go_in_order() {
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let mut registry = Registry::new(Filter::default());
        for (name, version) in [("sm2", 1), ("tcp", 1), ("tcp", 2), ("verbs", 1)] {
            let provider = Fake {
                name,
                version,
                fi_version: fi_version(2, 0),
                dropped: Arc::clone(&dropped),
            };
            registry.register(Box::new(provider), false);
        }
        drop(registry);
        assert_eq!(*dropped.lock().unwrap(), ["verbs 1", "tcp 2", "tcp 1", "sm2 1"]);
    }

    #[test]
    fn who_refuses_layers() {
        for (name, refuses) in [
            ("tcp", false),
            ("verbs", false),
            ("shm", true),
            ("EFA", true),
            ("ofi_rxm", true),
        ] {
            let mut registry = Registry::new(Filter::default());
            registry.register(Box::new(fake(name, 1)), false);
            assert_eq!(registry.find(name).unwrap().refuses_layers(), refuses, "{name}");
        }
    }
}
