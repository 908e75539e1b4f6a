//! What a user may set of provider `verbs;ofi_rxm`: the variables FI_OFI_RXM_*. docs/environment.md tells the same.
//!
//! Read once, when the core comes up. The names are the C library's; those that say how it does what is done otherwise
//! here are left out.

use crate::api::params::{Found, Owner, ParamType, Value};
use crate::provider::settings::{QUEUE_MAX, Variable, define, within};
use crate::transport::verbs::reliable::Config;
use crate::util::user::IOV_LIMIT;
use std::sync::OnceLock;

/// The least that a packet may have: the longest atomic that fi_atomicvalid promises is one packet, of 4096 bytes, a
/// header and where it goes.
const LEAST_BUFFER: usize = 4096 + 256;

/// A read or write of as many pieces as there may be, on both sides, is as many requests, and a note.
const MOST_PIECES: usize = 2 * IOV_LIMIT;

/// No address of a plug-in's struct.
const OWNER: Owner = Owner(4);

/// Of the variables' names, behind FI_.
const PREFIX: &str = "ofi_rxm";

const VARIABLES: [Variable; 7] = [
    (
        "buffer_size",
        ParamType::Size,
        "Bytes of a packet on an RDMA device, from 4352 to 1 MiB; every peer's must be as long (default: 16 KiB)",
    ),
    (
        "sar_limit",
        ParamType::Size,
        "Longest message that is sent in packets, unasked; longer ones are read by their receiver (default: 64 KiB)",
    ),
    (
        "msg_tx_size",
        ParamType::Size,
        "How many requests the connection with a peer holds (default: 128)",
    ),
    (
        "msg_rx_size",
        ParamType::Size,
        "How many packets a peer may send before they are taken, of 2 to 4096; less with many peers (default: 16)",
    ),
    (
        "tx_size",
        ParamType::Size,
        "How many sends an endpoint has room for if the program does not say (default: 2048)",
    ),
    (
        "rx_size",
        ParamType::Size,
        "How many receives an endpoint has room for if the program does not say (default: 2048)",
    ),
    (
        "device_atomics",
        ParamType::Bool,
        "Atomics by the devices alone where these do reads and writes: fewer kinds; alike for all of a job (default: no)",
    ),
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub config: Config,
    pub tx_size: usize,
    pub rx_size: usize,
    /// Where devices do reads and writes, they do the atomics too, and there are no others.
    pub device_atomics: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            config: Config::default(),
            tx_size: 2048,
            rx_size: 2048,
            device_atomics: false,
        }
    }
}

impl Settings {
    /// `find`: what the user set. What he did not set stays as it is by default.
    fn read(find: impl Fn(&str) -> Found) -> Settings {
        let usual = Settings::default();
        let size = |name: &str, least: usize, most: usize, usual: usize| {
            within(PREFIX, name, find(name), least..=most).unwrap_or(usual)
        };
        let config = usual.config;
        Settings {
            config: Config {
                buffer: size("buffer_size", LEAST_BUFFER, 1 << 20, config.buffer),
                eager: size("sar_limit", 0, 1 << 30, config.eager),
                sends: size("msg_tx_size", MOST_PIECES, 1 << 14, config.sends),
                window: size("msg_rx_size", 2, 4096, config.window),
                ..config
            },
            tx_size: size("tx_size", 1, QUEUE_MAX, usual.tx_size),
            rx_size: size("rx_size", 1, QUEUE_MAX, usual.rx_size),
            device_atomics: matches!(find("device_atomics"), Ok(Value::Bool(true))),
        }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Makes the variables known, and reads them.
pub(super) fn init() {
    let _ = SETTINGS.set(define(OWNER, PREFIX, &VARIABLES, |find| Settings::read(find)));
}

pub(super) fn get() -> Settings {
    SETTINGS.get().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::params::Miss;

    #[test]
    fn what_is_out_of_range_is_the_nearest_that_is_not() {
        let read = |size: usize| Settings::read(|_| Ok(Value::Size(size)));
        let usual = Settings::read(|_| Err(Miss::Unset));
        assert_eq!(
            (usual.config.buffer, usual.config.window, usual.tx_size),
            (16 << 10, 16, 2048)
        );
        let (large, small) = (read(1 << 40), read(0));
        assert_eq!((large.config.buffer, large.config.sends), (1 << 20, 1 << 14));
        assert_eq!((large.config.window, large.rx_size), (4096, QUEUE_MAX));
        assert_eq!((small.config.buffer, small.config.sends), (LEAST_BUFFER, MOST_PIECES));
        assert_eq!((small.config.window, small.rx_size), (2, 1));
        assert!(!usual.device_atomics && !large.device_atomics);
        assert!(Settings::read(|_| Ok(Value::Bool(true))).device_atomics);
        let some = read(5000);
        assert_eq!(
            (some.config.buffer, some.config.eager, some.tx_size),
            (5000, 5000, 5000)
        );
    }

    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_OFI_RXM_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
