//! What a user may set of provider `auto`: FI_AUTO_LOCAL and FI_AUTO_NETWORK. docs/environment.md tells the same.
//!
//! Read once, when the core comes up. What the two ways may be set to is each one's own: FI_SHM_*, FI_TCP_*.

use crate::api::params::{Found, Owner, ParamType, Value};
use crate::provider::settings::{Variable, define};
use std::sync::OnceLock;

/// No address of a plug-in's struct.
const OWNER: Owner = Owner(5);

const VARIABLES: [Variable; 2] = [
    (
        "local",
        ParamType::String,
        "How peers on the same machine are reached: shm, or none to reach them by the network too (default: shm)",
    ),
    (
        "network",
        ParamType::String,
        "How other peers are reached: verbs for an RDMA device, and tcp where that leads nowhere; tcp; or none for peers on the \
         same machine only (default: verbs if there is a device, else tcp)",
    ),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Network {
    None,
    Tcp,
    /// By an RDMA device, and by tcp where that leads nowhere.
    Verbs,
    /// The same if there is a device.
    #[default]
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Peers on the same machine are reached by shared memory.
    pub local: bool,
    pub network: Network,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            local: true,
            network: Network::Any,
        }
    }
}

impl Settings {
    /// `find`: what the user set. What he did not set, or what makes no sense, stays as it is by default.
    fn read(find: impl Fn(&str) -> Found) -> Settings {
        let local = [("none", false), ("shm", true)];
        let network = [
            ("none", Network::None),
            ("tcp", Network::Tcp),
            ("verbs", Network::Verbs),
        ];
        let settings = Settings {
            local: way(&find, "local", &local).unwrap_or(true),
            network: way(&find, "network", &network).unwrap_or_default(),
        };
        if !settings.local && settings.network == Network::None {
            log!(by super::NAME; Warn, Core,
                "FI_AUTO_LOCAL and FI_AUTO_NETWORK are both none, which leaves no way to anybody: auto is not offered");
        }
        settings
    }
}

/// What the user chose of these by their names. None: nothing, or nothing that makes sense.
fn way<W: Copy>(find: impl Fn(&str) -> Found, name: &str, ways: &[(&str, W)]) -> Option<W> {
    let Ok(Value::Text(set)) = find(name) else { return None };
    let chosen = ways.iter().find(|(way, _)| set.eq_ignore_ascii_case(way.as_bytes()));
    if chosen.is_none() && !set.is_empty() {
        let names: Vec<&str> = ways.iter().map(|(way, _)| *way).collect();
        log!(by super::NAME; Warn, Core,
            "FI_AUTO_{}: {:?} is none of {}; it is as if it were not set",
            name.to_ascii_uppercase(), String::from_utf8_lossy(&set), names.join(", "));
    }
    chosen.map(|(_, way)| *way)
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Makes the variables known, and reads them.
pub(super) fn init() {
    let _ = SETTINGS.set(define(OWNER, super::NAME, &VARIABLES, |find| Settings::read(find)));
}

pub(super) fn get() -> Settings {
    SETTINGS.get().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::params::Miss;

    #[test]
    fn a_way_is_used_unless_it_is_switched_off() {
        let read = |local: &str, network: &str| {
            let (local, network) = (local.to_owned(), network.to_owned());
            let settings = Settings::read(|name| {
                let set = if name == "local" { &local } else { &network };
                match &**set {
                    "unset" => Err(Miss::Unset),
                    set => Ok(Value::Text(set.as_bytes().to_vec())),
                }
            });
            (settings.local, settings.network)
        };
        assert_eq!(read("unset", "unset"), (true, Network::Any));
        assert_eq!(read("none", "tcp"), (false, Network::Tcp));
        assert_eq!(read("SHM", "None"), (true, Network::None));
        assert_eq!(read("carrier-pigeon", "Verbs"), (true, Network::Verbs));
        assert_eq!(read("", "carrier-pigeon"), (true, Network::Any));
        assert_eq!(read("none", "none"), (false, Network::None));
    }

    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_AUTO_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
