//! Provider `shm`: what fi_getinfo offers for endpoints in shared memory, and the names of their addresses.
//!
//! Only tables and rules; the transport behind it is `transport::shm`. Registered by `abi::built_in`.
//!
//! - `settings`: the variables FI_SHM_*.

use super::on_engine::{OnEngine, Rdm, drop_unasked_order};
use crate::abi::types::*;
use crate::api::av::string::{name, text};
use crate::api::av::{AddressKind, StringAddr};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::engine::port::{Limits, PeerId};
use crate::sys::{self, home};
use crate::transport::shm::{self, Config, OpenError, ShmTransport};
use std::os::fd::RawFd;
use std::sync::Arc;

mod settings;
use settings::Settings;

const NAME: &str = "shm";

/// What stands before the names of endpoints in their addresses.
const SCHEME: &str = "fi_shm";
const PREFIX: &str = "fi_shm://";

/// Sends up to this size can be injected.
const INJECT_SIZE: usize = 4096;

pub struct Shm;

impl OnEngine for Shm {
    type Transport = ShmTransport;
    type Shared = ();

    const NAME: &'static str = NAME;
    const VERSION: u32 = 206 << 16;

    fn start() -> Shm {
        settings::init();
        Shm
    }

    fn offers(&self) -> Vec<Info> {
        vec![offer(&settings::get())]
    }

    fn address(&self, answer: &mut Info, query: &Query) -> Result<()> {
        let (source, dest) = addresses(query);
        (answer.src_addr, answer.dest_addr) = (Some(source), dest);
        answer.addr_format = FI_ADDR_STR;
        drop_unasked_order(answer, query);
        Ok(())
    }

    fn address_kind(_: u32) -> Arc<dyn AddressKind> {
        Arc::new(StringAddr::of(SCHEME))
    }

    fn limits() -> Limits {
        config().limits()
    }

    fn share(_: &Info) -> Result<()> {
        Ok(())
    }

    /// One that is not named by itself, or by fi_getinfo, gets a name of its own: what fi_getinfo said, and a number
    /// that others do not have. Those of all processes have one length, as MPICH expects.
    fn open(_: &Arc<()>, info: &Info) -> Result<ShmTransport> {
        let asked = info.src_addr.as_deref().unwrap_or_default();
        let mut stem = String::from_utf8_lossy(name(asked)).into_owned();
        if stem.is_empty() {
            stem = own_name();
        }
        if asked.is_empty() || asked.starts_with(PREFIX.as_bytes()) {
            open_numbered(&stem)
        } else {
            open(&stem)
        }
    }

    fn open_context(_: &Arc<()>, address: &[u8]) -> Result<ShmTransport> {
        open(&String::from_utf8_lossy(address))
    }
}

fn offer(settings: &Settings) -> Info {
    let rdm = Rdm {
        fabric: NAME.into(),
        domain: NAME.into(),
        version: Shm::VERSION,
        addr_format: FI_ADDR_STR,
        protocol: FI_PROTO_SHM,
        protocol_version: 1,
        reach: FI_LOCAL_COMM,
        tx_size: settings.tx_size,
        rx_size: settings.rx_size,
        inject_size: INJECT_SIZE,
        limits: Shm::limits(),
    };
    rdm.offer()
}

/// Source and destination of an answer. Node and service name the one or the other, as FI_SOURCE says; the hints fill
/// in; an endpoint that nobody named is called after a number that its process drew.
fn addresses(query: &Query) -> (Vec<u8>, Option<Vec<u8>>) {
    let named = (query.node.is_some() || query.service.is_some()).then(|| address_for(query.node, query.service));
    let hinted = |pick: fn(&Info) -> &Option<Vec<u8>>| query.hints.and_then(|hints| pick(hints).clone());
    let own = || c_string(&format!("{PREFIX}{}", own_name()));
    if query.has_flag(FI_SOURCE) {
        (named.unwrap_or_else(own), hinted(|hints| &hints.dest_addr))
    } else {
        let dest = named.or_else(|| hinted(|hints| &hints.dest_addr));
        (hinted(|hints| &hints.src_addr).unwrap_or_else(own), dest)
    }
}

/// A node that is a name of ours already is taken as it is.
fn address_for(node: Option<&str>, service: Option<&str>) -> Vec<u8> {
    let text = match (node, service) {
        (Some(node), _) if node.contains("://") => node.to_owned(),
        (Some(node), Some(service)) => format!("fi_ns://{node}:{service}"),
        (Some(node), None) => format!("fi_shm://{node}"),
        (None, Some(service)) => format!("fi_ns://{service}"),
        (None, None) => format!("{PREFIX}{}", own_name()),
    };
    c_string(&text)
}

/// Addresses are C strings: their length counts the zero.
fn c_string(text: &str) -> Vec<u8> {
    let fits = text.bytes().take_while(|byte| *byte != 0).take(StringAddr::LONGEST - 1);
    fits.chain([0]).collect()
}

/// What all names begin with that this process's endpoints get. Process numbers would not do: containers that share
/// /dev/shm have the same ones.
fn own_name() -> String {
    format!("{:016x}", sys::identity::random_of_process().unwrap_or(0))
}

fn open_numbered(stem: &str) -> Result<ShmTransport> {
    const TRIES: u32 = 16;
    for _ in 1..TRIES {
        let number = sys::shared::random().unwrap_or(0) as u32;
        let name = format!("{stem}:{number:08x}");
        match try_open(&name) {
            Err(OpenError::InUse) => {}
            opened => return opened.map_err(|error| refused(&name, &error)),
        }
    }
    open(stem)
}

/// How many sends and receives an endpoint can have, as the user set it.
pub(super) fn queue_sizes() -> (usize, usize) {
    let settings = settings::get();
    (settings.tx_size, settings.rx_size)
}

/// A transport of exactly this name.
pub(super) fn open(name: &str) -> Result<ShmTransport> {
    try_open(name).map_err(|error| refused(name, &error))
}

fn try_open(name: &str) -> core::result::Result<ShmTransport, OpenError> {
    let config = config();
    home::enter(&config.dir, |home| {
        let dir = home.to_owned();
        ShmTransport::open(name, &Config { dir, ..config.clone() })
    })
}

fn refused(name: &str, error: &OpenError) -> Errno {
    log!(by NAME; Warn, EpCtrl, "fi_endpoint: {name}: {error}");
    Errno(match error {
        OpenError::Address => FI_EINVAL,
        OpenError::InUse => FI_EADDRINUSE,
        OpenError::NoSpace { .. } => FI_ENOSPC,
        OpenError::System(..) => FI_EIO,
    })
}

fn config() -> Config {
    let Settings {
        fetch, eager, together, ..
    } = settings::get();
    let default = Config::default();
    Config {
        warn: |text| log!(by NAME; Warn, EpCtrl, "{text}"),
        debug: |text| log!(by NAME; Debug, Mr, "{text}"),
        fetch,
        eager: eager.unwrap_or(default.eager),
        eager_if_fetched: eager.unwrap_or(default.eager_if_fetched),
        together: together.unwrap_or(default.together),
        stream: together.is_none(),
        ..default
    }
}

impl EndpointTransport for ShmTransport {
    fn local_address(&self) -> Vec<u8> {
        c_string(&format!("{PREFIX}{}", ShmTransport::local_address(self)))
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<ShmTransport>> {
        let wanted = text(address);
        if wanted.is_empty() {
            return Ok(Renamed::default());
        }
        let transport = match name(wanted) {
            own if own == ShmTransport::local_address(self).as_bytes() => None,
            other => Some(open(&String::from_utf8_lossy(other))?),
        };
        let address = Some([wanted, &[0]].concat());
        Ok(Renamed { transport, address })
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        shm::context(name(address), index)
    }

    fn base_address(address: &[u8]) -> &[u8] {
        shm::base(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        [PREFIX.as_bytes(), address, &[0]].concat()
    }

    fn arm(&mut self) -> bool {
        self.arm_among_others()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(ShmTransport::wake_fd(self))
    }

    fn wake(&self) {
        ShmTransport::wake(self);
    }
}

#[cfg(test)]
mod tests;
