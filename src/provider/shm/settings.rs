//! What a user may set of provider `shm`: the variables FI_SHM_*. docs/environment.md tells the same.
//!
//! Read once, when the core comes up. The names that the C library's shm has too mean the same.

use crate::api::params::{Found, Owner, ParamType, Value};
use crate::provider::settings::{QUEUE_MAX, Variable, define, size, within};
use crate::transport::shm::Config;
use std::sync::OnceLock;

/// No address of a plug-in's struct.
const OWNER: Owner = Owner(1);

const VARIABLES: [Variable; 5] = [
    (
        "tx_size",
        ParamType::Size,
        "How many sends an endpoint can have under way (default: 1024)",
    ),
    (
        "rx_size",
        ParamType::Size,
        "How many receives an endpoint can have posted (default: 1024)",
    ),
    (
        "disable_cma",
        ParamType::Bool,
        "Never read another process's memory through the kernel: large messages go in pieces (default: false)",
    ),
    (
        "eager_size",
        ParamType::Size,
        "Messages up to this many bytes are sent without asking the receiver (default: 7168; 32768 where the receiver \
         cannot read the sender's memory, or copies quickly)",
    ),
    (
        "together_size",
        ParamType::Size,
        "From this many bytes on, sender and receiver copy a message together (default: 49152, unless pieces are \
         quicker between the two)",
    ),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub tx_size: usize,
    pub rx_size: usize,
    /// Whether a peer's memory may be read through the kernel.
    pub fetch: bool,
    /// None: `transport::shm` knows what is best.
    pub eager: Option<usize>,
    /// From here on both sides copy. None: as for `eager`.
    pub together: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        let Config { fetch, .. } = Config::default();
        Settings {
            tx_size: 1024,
            rx_size: 1024,
            fetch,
            eager: None,
            together: None,
        }
    }
}

impl Settings {
    /// `find`: what the user set. What he did not set, or what makes no sense, stays as it is by default.
    fn read(find: impl Fn(&str) -> Found) -> Settings {
        let mut settings = Settings::default();
        let size = |name: &str| size(find(name));
        let queue = |name: &str| within(super::NAME, name, find(name), 1..=QUEUE_MAX);
        settings.tx_size = queue("tx_size").unwrap_or(settings.tx_size);
        settings.rx_size = queue("rx_size").unwrap_or(settings.rx_size);
        settings.eager = size("eager_size");
        settings.together = size("together_size");
        if let Ok(Value::Bool(disabled)) = find("disable_cma") {
            settings.fetch = !disabled;
        }
        settings
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Makes the variables known, and reads them.
pub(super) fn init() {
    let _ = SETTINGS.set(define(OWNER, super::NAME, &VARIABLES, |find| Settings::read(find)));
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
        let default = Settings::default();
        assert_eq!(read(&[]), default);
        assert_eq!(
            read(&[
                ("tx_size", Value::Size(7)),
                ("rx_size", Value::Size(8)),
                ("disable_cma", Value::Bool(true)),
                ("eager_size", Value::Size(0)),
                ("together_size", Value::Size(2)),
            ]),
            Settings {
                tx_size: 7,
                rx_size: 8,
                fetch: false,
                eager: Some(0),
                together: Some(2),
            }
        );
        let odd = read(&[("tx_size", Value::Size(0)), ("rx_size", Value::Size(usize::MAX))]);
        assert_eq!((odd.tx_size, odd.rx_size), (1, QUEUE_MAX));
        assert_eq!(Settings::read(|_| Err(Miss::Bad("no number".into()))), default);
    }

    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_SHM_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
