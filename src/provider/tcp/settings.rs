//! What a user may set of provider `tcp`: the variables FI_TCP_*. docs/environment.md tells the same.
//!
//! Read once, when the core comes up. The names that the C library's tcp has too mean the same.

use super::keys;
use crate::api::params::{Found, Owner, ParamType, Value};
use crate::provider::settings::{QUEUE_MAX, Variable, define, size, within};
use crate::transport::tcp::{Config, Secret};
use std::sync::OnceLock;
use std::time::Duration;

/// No address of a plug-in's struct.
const OWNER: Owner = Owner(2);

const VARIABLES: [Variable; 11] = [
    (
        "iface",
        ParamType::String,
        "The network interface to use, by its name (default: all)",
    ),
    (
        "port_low_range",
        ParamType::Int,
        "The lowest port that an endpoint listens on which names none (default: the system's choice)",
    ),
    (
        "port_high_range",
        ParamType::Int,
        "The highest one (default: the system's choice)",
    ),
    (
        "tx_size",
        ParamType::Size,
        "How many sends an endpoint can have under way (default: 4096)",
    ),
    (
        "rx_size",
        ParamType::Size,
        "How many receives an endpoint can have posted (default: 4096)",
    ),
    (
        "eager_size",
        ParamType::Size,
        "Messages up to this many bytes are sent without asking the receiver (default: 65536)",
    ),
    (
        "connect_timeout",
        ParamType::Size,
        "Milliseconds in which a peer must be reached before operations to it fail (default: 10000)",
    ),
    (
        "silence_timeout",
        ParamType::Size,
        "Milliseconds that a peer's machine may be silent before it counts as lost (default: 30000)",
    ),
    (
        "linger_timeout",
        ParamType::Size,
        "Milliseconds that fi_close of an endpoint waits for room in the kernel for what was sent (default: 2000)",
    ),
    (
        "nic_pci",
        ParamType::Bool,
        "Tell where on the PCI bus an interface's card is (default: no)",
    ),
    (
        "auth_key_file",
        ParamType::String,
        "A file with a secret that peers must prove to have, if the program sets no auth_key (default: none)",
    ),
];

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub tx_size: usize,
    pub rx_size: usize,
    pub interface: Option<String>,
    /// Places of cards on the PCI bus are told.
    pub nic_pci: bool,
    /// An error: there should be one.
    pub secret: Result<Option<Secret>, String>,
    pub config: Config,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tx_size: 4096,
            rx_size: 4096,
            interface: None,
            nic_pci: false,
            secret: Ok(None),
            config: Config::default(),
        }
    }
}

impl Settings {
    /// `find`: what the user set. What he did not set, or what makes no sense, stays as it is by default.
    fn read(find: impl Fn(&str) -> Found) -> Settings {
        let mut settings = Settings::default();
        let size = |name: &str| size(find(name));
        let number = |name: &str, range| within(super::NAME, name, find(name), range);
        let time = |name: &str, default: Duration| {
            // An hour is for ever here.
            let ms = number(name, 1..=3_600_000).map(|ms| ms as u64);
            ms.map_or(default, Duration::from_millis)
        };
        let queue = |name: &str| number(name, 1..=QUEUE_MAX);
        settings.tx_size = queue("tx_size").unwrap_or(settings.tx_size);
        settings.rx_size = queue("rx_size").unwrap_or(settings.rx_size);
        let config = &mut settings.config;
        config.eager = size("eager_size").unwrap_or(config.eager);
        config.connect_timeout = time("connect_timeout", config.connect_timeout);
        config.silence = time("silence_timeout", config.silence);
        config.linger = time("linger_timeout", config.linger);
        let port = |name: &str| match find(name) {
            Ok(Value::Int(port)) => u16::try_from(port).ok().filter(|port| *port != 0),
            _ => None,
        };
        config.ports = match (port("port_low_range"), port("port_high_range")) {
            (Some(low), Some(high)) if low <= high => Some((low, high)),
            (Some(low), None) => Some((low, u16::MAX)),
            _ => None,
        };
        if config.ports.is_none() {
            for name in ["port_low_range", "port_high_range"] {
                tell_no_range(name, &find(name));
            }
        }
        settings.nic_pci = matches!(find("nic_pci"), Ok(Value::Bool(true)));
        if let Ok(Value::Text(name)) = find("iface") {
            settings.interface = String::from_utf8(name).ok().filter(|name| !name.is_empty());
        }
        match find("auth_key_file") {
            Ok(Value::Text(path)) if !path.is_empty() => settings.secret = keys::of_file(&path).map(Some),
            _ => {}
        }
        settings
    }
}

/// Of a port that was set in vain, which matters behind a firewall. 0 is the system's choice.
fn tell_no_range(name: &str, found: &Found) {
    let Ok(Value::Int(port @ (..=-1 | 1..))) = found else {
        return;
    };
    log!(by super::NAME; Warn, Core,
        "FI_TCP_{}: with {port} there is no range of ports from 1 to 65535, or no lowest one; the system's choice is used",
        name.to_ascii_uppercase());
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Makes the variables known, and reads them. Once, though two providers call it.
pub(super) fn init() {
    // Not inside the cell: a child of fork would wait for ever for a thread that was reading them.
    if SETTINGS.get().is_none() {
        let _ = SETTINGS.set(define(OWNER, super::NAME, &VARIABLES, |find| Settings::read(find)));
    }
}

pub(super) fn get() -> Settings {
    SETTINGS.get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::params::Miss;

    #[test]
    fn what_makes_sense_is_used() {
        let read = |rows: &[(&str, Value)]| {
            let row = |name: &str| rows.iter().find(|row| row.0 == name).map(|row| row.1.clone());
            Settings::read(|name| row(name).ok_or(Miss::Unset))
        };
        let set = read(&[
            ("tx_size", Value::Size(7)),
            ("rx_size", Value::Size(0)),
            ("iface", Value::Text(b"eth7".to_vec())),
            ("eager_size", Value::Size(5)),
            ("connect_timeout", Value::Size(9)),
            ("port_low_range", Value::Int(5000)),
            ("port_high_range", Value::Int(5010)),
            ("nic_pci", Value::Bool(true)),
        ]);
        assert!(set.nic_pci);
        assert_eq!((set.tx_size, set.rx_size), (7, 1));
        assert_eq!((set.interface.as_deref(), set.config.eager), (Some("eth7"), 5));
        assert_eq!(set.config.connect_timeout, Duration::from_millis(9));
        assert_eq!(set.config.ports, Some((5000, 5010)));
        for (low, high) in [(5000, 4000), (0, 5), (-1, 70000)] {
            let odd = read(&[
                ("port_low_range", Value::Int(low)),
                ("port_high_range", Value::Int(high)),
            ]);
            assert_eq!(odd.config.ports, None, "{low} {high}");
        }
        let usual = Settings::read(|_| Err(Miss::Bad("no number".into())));
        assert_eq!((usual.tx_size, usual.config.ports, usual.interface), (4096, None, None));
        assert!(!usual.nic_pci);
    }

    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_TCP_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
