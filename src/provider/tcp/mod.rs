//! Provider `tcp`.
//!
//! Only tables and rules; the transport behind it is `transport::tcp`. Registered by `abi::built_in`.
//!
//! - `settings`: the variables FI_TCP_*;
//! - `keys`: which secret the endpoints of a domain have;
//! - `connected`: FI_EP_MSG and passive endpoints, which `tcp` has besides;
//! - `other_names`: `tcp;ofi_rxm` and `sockets`, by which it goes too;
//! - `interfaces`: one offer for each address of this machine, and which of them fit a query; `choice`: which
//!   comes first, and why; `nic`: their cards.

use super::on_engine::{OnEngine, Rdm};
use crate::abi::types::*;
use crate::api::av::{AddressKind, SocketAddr as SocketKind, SocketUri, uri};
use crate::api::endpoint::connection::Connects;
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{AuthKey, Info, NicAttr};
use crate::api::info::query::Query;
use crate::engine::port::{Limits, PeerId};
use crate::sys::resolve::{from_bytes, to_bytes};
use crate::transport::connecting::address;
use crate::transport::tcp::{Config, OpenError, Secret, TcpTransport};
use crate::util::ready::Ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;

mod choice;
mod connected;
mod interfaces;
mod keys;
mod nic;
mod other_names;
mod settings;

pub use keys::DomainKey;
pub use other_names::{Sockets, TcpRxm};

const NAME: &str = "tcp";

/// Sends up to this size can be injected.
const INJECT_SIZE: usize = 4096;

pub struct Tcp;

impl OnEngine for Tcp {
    type Transport = TcpTransport;
    type Shared = DomainKey;

    const NAME: &'static str = NAME;
    const VERSION: u32 = 206 << 16;

    fn start() -> Tcp {
        settings::init();
        Tcp
    }

    fn offers(&self) -> Vec<Info> {
        let mut offers = interfaces::offers(FI_PROTO_XNET);
        offers.extend(interfaces::offers(FI_PROTO_SOCK_TCP));
        offers
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        interfaces::address(info, query)
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        match format {
            FI_ADDR_STR => Arc::new(SocketUri::default()),
            _ => Arc::new(SocketKind::new(format)),
        }
    }

    fn limits() -> Limits {
        settings::get().config.limits()
    }

    fn share(info: &Info) -> Result<DomainKey> {
        DomainKey::of(info)
    }

    fn open(key: &Arc<DomainKey>, info: &Info) -> Result<TcpTransport> {
        open(&address_of(info), key.of_endpoint(info))
    }

    fn open_context(key: &Arc<DomainKey>, address: &[u8]) -> Result<TcpTransport> {
        open(address, key.of_context())
    }
}

/// The address that an endpoint is to have.
fn address_of(info: &Info) -> Vec<u8> {
    let asked = info.src_addr.as_deref().and_then(place);
    let place = asked.or_else(|| interfaces::usual(info.addr_format));
    to_bytes(&place.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
}

/// An address of a program: a socket address or a string, which no one can take for the other.
fn place(address: &[u8]) -> Option<SocketAddr> {
    from_bytes(address).or_else(|| uri::place(address))
}

/// The address of an endpoint that was given none.
pub(super) fn usual_place() -> Option<SocketAddr> {
    interfaces::usual(FI_FORMAT_UNSPEC)
}

/// What programs are told of the cards of all interfaces, one for each address, best first.
pub(super) fn nics() -> Vec<NicAttr> {
    interfaces::nics()
}

/// Which of these addresses of this machine an endpoint would rather have; None: it may have none of them.
pub(super) fn best_of(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    interfaces::best_of(addresses)
}

fn open(address: &[u8], secret: Option<Secret>) -> Result<TcpTransport> {
    open_with(address, &config(secret))
}

/// An endpoint that calls itself so towards its peers.
pub(super) fn open_as(address: &[u8], instance: u64, secret: Option<Secret>) -> Result<TcpTransport> {
    let instance = Some(instance);
    open_with(
        address,
        &Config {
            instance,
            ..config(secret)
        },
    )
}

fn open_with(address: &[u8], config: &Config) -> Result<TcpTransport> {
    let opened = opened("fi_endpoint", address, TcpTransport::open(address, config));
    opened.inspect(|transport| {
        let place = from_bytes(&TcpTransport::local_address(transport));
        log!(by NAME; Info, EpCtrl, "fi_endpoint: {}", interfaces::told(place));
    })
}

fn open_to_call(call: &str, address: &[u8], secret: Option<Secret>) -> Result<TcpTransport> {
    opened(call, address, TcpTransport::open_to_call(address, &config(secret)))
}

/// What the transport has opened at an address, or why it has not.
fn opened<T>(call: &str, address: &[u8], opened: core::result::Result<T, OpenError>) -> Result<T> {
    opened.map_err(|error| {
        let place = address::shown(address::place(address));
        log!(by NAME; Warn, EpCtrl, "{call}: {place}: {error}");
        Errno(match error {
            OpenError::Address | OpenError::Destination => FI_EINVAL,
            OpenError::InUse => FI_EADDRINUSE,
            OpenError::NotHere => FI_EADDRNOTAVAIL,
            OpenError::Descriptors(_) => FI_EMFILE,
            OpenError::System(..) => FI_EIO,
        })
    })
}

fn config(secret: Option<Secret>) -> Config {
    Config {
        secret,
        warn: |text| log!(by NAME; Warn, EpCtrl, "{text}"),
        info: |text| log!(by NAME; Info, EpCtrl, "{text}"),
        ..settings::get().config
    }
}

impl EndpointTransport for TcpTransport {
    /// One that listens at all addresses of the machine is known by the one that others are given.
    fn local_address(&self) -> Vec<u8> {
        let own = TcpTransport::local_address(self);
        let everywhere = from_bytes(&own).filter(|place| place.ip().is_unspecified() && !self.has_one_peer());
        everywhere.map_or(own, |place| to_bytes(&interfaces::reachable(place)))
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<TcpTransport>> {
        let wanted = to_bytes(&place(address).ok_or(Errno(FI_EINVAL))?);
        if wanted == TcpTransport::local_address(self) {
            return Ok(Renamed::default());
        }
        if self.is_for_call() {
            log!(by NAME; Warn, EpCtrl, "fi_setname: the endpoint of a request has the address that was asked for");
            return Err(Errno(FI_EINVAL));
        }
        let transport = match self.has_one_peer() {
            true => open_to_call("fi_setname", &wanted, self.secret())?,
            false => open(&wanted, self.secret())?,
        };
        Ok(Renamed {
            transport: Some(transport),
            address: None,
        })
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        address::context(address, index)
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address::base(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        address::raw(address)
    }

    fn told_address(address: Vec<u8>, format: u32) -> Vec<u8> {
        match from_bytes(&address) {
            Some(place) if format == FI_ADDR_STR => uri::uri(&place),
            _ => address,
        }
    }

    fn arm(&mut self) -> bool {
        TcpTransport::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(TcpTransport::wake_fd(self))
    }

    fn wake(&self) {
        TcpTransport::wake(self);
    }

    fn watched_by(&mut self, mark: &Arc<Ready>) -> bool {
        let watched = self.has_one_peer();
        if watched {
            self.be_watched(mark);
        }
        watched
    }

    #[inline]
    fn connection(&mut self) -> Option<&mut dyn Connects> {
        self.has_one_peer().then_some(self as &mut dyn Connects)
    }
}

/// The same offer to programs that have a secret.
pub(super) fn with_auth_keys(mut info: Info) -> Info {
    if let (Some(domain), Some(ep)) = (&mut info.domain, &mut info.ep) {
        (domain.auth_key, ep.auth_key) = (AuthKey::OF_ANY_SIZE, AuthKey::OF_ANY_SIZE);
    }
    info
}

/// What an endpoint on an interface can do.
fn rdm(fabric: String, domain: String, addr_format: u32, protocol: u32, reach: u64) -> Rdm {
    let settings = settings::get();
    Rdm {
        fabric,
        domain,
        version: Tcp::VERSION,
        addr_format,
        protocol,
        // That of the C library's, which some programs compare.
        protocol_version: u32::from(protocol != FI_PROTO_SOCK_TCP),
        reach,
        tx_size: settings.tx_size,
        rx_size: settings.rx_size,
        inject_size: INJECT_SIZE,
        limits: Tcp::limits(),
    }
}
