//! Provider `tcp`, and `tcp;ofi_rxm`, which is the same by the name and protocol of the C library's layer over it.
//!
//! Only tables and rules; the transport behind it is `transport::tcp`. Registered by `abi::built_in`.
//!
//! - `settings`: the variables FI_TCP_*;
//! - `interfaces`: one offer for each address of this machine, and which of them fit a query.

use super::on_engine::{OnEngine, Rdm};
use crate::abi::types::*;
use crate::api::av::{AddressKind, SocketAddr as SocketKind};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{FabricAttr, Info};
use crate::api::info::query::Query;
use crate::engine::port::{Limits, PeerId};
use crate::sys::resolve::{from_bytes, to_bytes};
use crate::transport::tcp::{self, Config, OpenError, TcpTransport};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;

mod interfaces;
mod settings;

const NAME: &str = "tcp";

/// Sends up to this size can be injected.
const INJECT_SIZE: usize = 4096;

pub struct Tcp;

/// What programs ask for that know the C library's `tcp` as a provider of connected endpoints, with `ofi_rxm` over it.
pub struct TcpRxm;

impl OnEngine for Tcp {
    type Transport = TcpTransport;
    type Shared = ();

    const NAME: &'static str = NAME;
    const VERSION: u32 = 206 << 16;

    fn start() -> Tcp {
        settings::init();
        Tcp
    }

    fn offers(&self) -> Vec<Info> {
        interfaces::offers(FI_PROTO_XNET)
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        interfaces::address(info, query)
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        Arc::new(SocketKind::new(format))
    }

    fn limits() -> Limits {
        config().limits()
    }

    fn share(_: &Info) -> Result<()> {
        Ok(())
    }

    fn open(_: &Arc<()>, info: &Info) -> Result<TcpTransport> {
        let asked = info.src_addr.as_deref().and_then(from_bytes);
        let place = asked.or_else(|| interfaces::usual(info.addr_format));
        open(&to_bytes(&place.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))))
    }

    fn open_context(_: &Arc<()>, address: &[u8]) -> Result<TcpTransport> {
        open(address)
    }
}

impl OnEngine for TcpRxm {
    type Transport = TcpTransport;
    type Shared = ();

    const NAME: &'static str = "ofi_rxm";

    /// Below that of every plug-in, which stands on other providers too and goes first.
    const VERSION: u32 = 100 << 16;

    fn start() -> TcpRxm {
        settings::init();
        TcpRxm
    }

    fn offers(&self) -> Vec<Info> {
        let below = FabricAttr {
            prov_name: Some(NAME.into()),
            prov_version: Self::VERSION,
            ..FabricAttr::default()
        };
        let mut offers = interfaces::offers(FI_PROTO_RXM);
        for offer in &mut offers {
            let name = offer.fabric.take().and_then(|fabric| fabric.name);
            offer.fabric = Some(FabricAttr { name, ..below.clone() });
        }
        offers
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        interfaces::address(info, query)
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        Tcp::address_kind(format)
    }

    fn limits() -> Limits {
        Tcp::limits()
    }

    fn share(_: &Info) -> Result<()> {
        Ok(())
    }

    fn open(shared: &Arc<()>, info: &Info) -> Result<TcpTransport> {
        Tcp::open(shared, info)
    }

    fn open_context(_: &Arc<()>, address: &[u8]) -> Result<TcpTransport> {
        open(address)
    }
}

fn open(address: &[u8]) -> Result<TcpTransport> {
    TcpTransport::open(address, &config()).map_err(|error| {
        let place = from_bytes(&tcp::raw(address)).map_or_else(|| "no address".into(), |place| place.to_string());
        log!(by NAME; Warn, EpCtrl, "fi_endpoint: {place}: {error}");
        Errno(match error {
            OpenError::Address => FI_EINVAL,
            OpenError::InUse => FI_EADDRINUSE,
            OpenError::NotHere => FI_EADDRNOTAVAIL,
            OpenError::Descriptors(_) => FI_EMFILE,
            OpenError::System(..) => FI_EIO,
        })
    })
}

fn config() -> Config {
    Config {
        warn: |text| log!(by NAME; Warn, EpCtrl, "{text}"),
        info: |text| log!(by NAME; Info, EpCtrl, "{text}"),
        ..settings::get().config
    }
}

impl EndpointTransport for TcpTransport {
    fn local_address(&self) -> Vec<u8> {
        TcpTransport::local_address(self)
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<TcpTransport>> {
        let wanted = from_bytes(address).ok_or(Errno(FI_EINVAL))?;
        if to_bytes(&wanted) == TcpTransport::local_address(self) {
            return Ok(Renamed::default());
        }
        Ok(Renamed {
            transport: Some(open(address)?),
            address: None,
        })
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        tcp::context(address, index)
    }

    fn base_address(address: &[u8]) -> &[u8] {
        tcp::base(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        tcp::raw(address)
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
        protocol_version: 1,
        reach,
        tx_size: settings.tx_size,
        rx_size: settings.rx_size,
        inject_size: INJECT_SIZE,
        limits: Tcp::limits(),
    }
}
