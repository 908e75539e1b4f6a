//! What a user may set of provider `verbs`: the variables FI_VERBS_*. docs/environment.md tells the same.
//!
//! Read once, when the core comes up. The names are the C library's, and mean the same.

use crate::api::params::{Found, Owner, ParamType, Value};
use crate::provider::settings::{QUEUE_MAX, Variable, define, within};
use std::sync::OnceLock;

/// No address of a plug-in's struct.
const OWNER: Owner = Owner(3);

const VARIABLES: [Variable; 9] = [
    (
        "tx_size",
        ParamType::Int,
        "How many sends an endpoint has room for if the program does not say (default: 384)",
    ),
    (
        "rx_size",
        ParamType::Int,
        "How many receives an endpoint has room for if the program does not say (default: 384)",
    ),
    (
        "tx_iov_limit",
        ParamType::Int,
        "Of how many pieces a send may be if the program does not say (default: 4)",
    ),
    (
        "rx_iov_limit",
        ParamType::Int,
        "Of how many pieces a receive may be if the program does not say (default: 4)",
    ),
    (
        "inline_size",
        ParamType::Int,
        "Bytes that a request is to carry within itself, as far as the device can (default: 256)",
    ),
    (
        "min_rnr_timer",
        ParamType::Int,
        "How long a peer waits before it sends again what there was no receive for, as a code of ibv_modify_qp(3) from 0 \
         to 31 (default: 12)",
    ),
    (
        "gid_idx",
        ParamType::Int,
        "Which entry of a port's table of GIDs names the fabric, and endpoints of datagrams: 0 to 255 (default: 0)",
    ),
    (
        "device_name",
        ParamType::String,
        "How the names of the devices to use begin, several with commas between them (default: all)",
    ),
    (
        "iface",
        ParamType::String,
        "The names of the network interfaces whose addresses to use, or how they begin, several with commas between them \
         (default: all)",
    ),
];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub tx_size: usize,
    pub rx_size: usize,
    pub tx_pieces: usize,
    pub rx_pieces: usize,
    pub inline: usize,
    pub retry_timer: u8,
    pub gid: usize,
    /// None: all.
    pub devices: Vec<String>,
    /// None: all.
    pub interfaces: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tx_size: 384,
            rx_size: 384,
            tx_pieces: 4,
            rx_pieces: 4,
            inline: 256,
            retry_timer: 12,
            gid: 0,
            devices: Vec::new(),
            interfaces: Vec::new(),
        }
    }
}

impl Settings {
    /// `find`: what the user set. What he did not set, or what makes no sense, stays as it is by default.
    fn read(find: impl Fn(&str) -> Found) -> Settings {
        let usual = Settings::default();
        let number = |name: &str, least: usize, most: usize, usual: usize| {
            within(super::NAME, name, find(name), least..=most).unwrap_or(usual)
        };
        let list = |name: &str| match find(name) {
            Ok(Value::Text(text)) => names(&text),
            _ => Vec::new(),
        };
        const PIECES: usize = crate::util::user::IOV_LIMIT;
        Settings {
            tx_size: number("tx_size", 1, QUEUE_MAX, usual.tx_size),
            rx_size: number("rx_size", 1, QUEUE_MAX, usual.rx_size),
            tx_pieces: number("tx_iov_limit", 1, PIECES, usual.tx_pieces),
            rx_pieces: number("rx_iov_limit", 1, PIECES, usual.rx_pieces),
            inline: number("inline_size", 0, 1 << 16, usual.inline),
            retry_timer: number("min_rnr_timer", 0, 31, usize::from(usual.retry_timer)) as u8,
            gid: number("gid_idx", 0, 255, usual.gid),
            devices: list("device_name"),
            interfaces: list("iface"),
        }
    }
}

/// Names with commas between them.
fn names(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Makes the variables known, and reads them.
pub(super) fn init() {
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
    fn what_makes_no_sense_is_left_out() {
        let nothing = |_: &str| Err(Miss::Unset);
        assert_eq!(Settings::read(nothing), Settings::default());
        let wild = |name: &str| match name {
            "device_name" => Ok(Value::Text(b"mlx,,rxe0".to_vec())),
            "iface" => Ok(Value::Text(b",".to_vec())),
            "gid_idx" => Ok(Value::Int(256)),
            "inline_size" => Ok(Value::Int(0)),
            "tx_size" => Ok(Value::Int(8)),
            "min_rnr_timer" => Ok(Value::Int(32)),
            _ => Ok(Value::Int(-1)),
        };
        let expected = Settings {
            inline: 0,
            tx_size: 8,
            rx_size: 1,
            tx_pieces: 1,
            rx_pieces: 1,
            retry_timer: 31,
            gid: 255,
            devices: vec!["mlx".into(), "rxe0".into()],
            ..Settings::default()
        };
        assert_eq!(Settings::read(wild), expected);
    }
    #[test]
    fn the_page_names_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _, _) in VARIABLES {
            let row = format!("| `FI_VERBS_{}` |", name.to_ascii_uppercase());
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
