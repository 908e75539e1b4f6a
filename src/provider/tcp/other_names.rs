//! `tcp` by the names that programs know of the C library's providers of sockets: `tcp;ofi_rxm`, its layer over connected
//! endpoints, and `sockets`, which was there before it.
//!
//! They differ in what they are called and offer; what is opened is tcp's. Registered by `abi::built_in`.

use super::{DomainKey, Tcp, interfaces};
use crate::abi::types::*;
use crate::api::av::AddressKind;
use crate::api::errno::Result;
use crate::api::info::model::{FabricAttr, Info};
use crate::api::info::query::Query;
use crate::engine::port::Limits;
use crate::provider::connected::Connected;
use crate::provider::on_engine::OnEngine;
use crate::transport::tcp::{Call, Passive, TcpTransport};
use core::marker::PhantomData;
use std::sync::Arc;

/// What programs ask for that know the C library's `tcp` as a provider of connected endpoints, with `ofi_rxm` over it.
pub type TcpRxm = TcpAs<Rxm>;

/// What programs ask for that were written before there was a `tcp`. Whoever names no provider is not offered it.
pub type Sockets = TcpAs<BeforeTcp>;

/// Below that of every plug-in, which goes first.
const VERSION: u32 = 100 << 16;

/// A name of the C library's, and what it stands for there.
pub trait OtherName: Send + Sync + 'static {
    const NAME: &'static str;
    const WHOLE_NAME: &'static str = Self::NAME;
    const ONLY_BY_NAME: bool = false;
    const PROGRESS: u32 = FI_PROGRESS_MANUAL;

    fn offers() -> Vec<Info>;
}

pub struct TcpAs<N>(PhantomData<N>);

pub struct Rxm;

pub struct BeforeTcp;

impl OtherName for Rxm {
    const NAME: &'static str = "ofi_rxm";
    const WHOLE_NAME: &'static str = "tcp;ofi_rxm";

    fn offers() -> Vec<Info> {
        let below = FabricAttr {
            prov_name: Some(Tcp::NAME.into()),
            prov_version: VERSION,
            ..FabricAttr::default()
        };
        let mut offers = interfaces::offers(FI_PROTO_RXM);
        for offer in &mut offers {
            let name = offer.fabric.take().and_then(|fabric| fabric.name);
            offer.fabric = Some(FabricAttr { name, ..below.clone() });
        }
        offers
    }
}

impl OtherName for BeforeTcp {
    const NAME: &'static str = "sockets";
    const ONLY_BY_NAME: bool = true;
    // There a thread is the rule, and programs of its time may count on it.
    const PROGRESS: u32 = FI_PROGRESS_AUTO;

    fn offers() -> Vec<Info> {
        let mut offers = interfaces::offers(FI_PROTO_XNET);
        offers.extend(interfaces::offers(FI_PROTO_SOCK_TCP));
        for offer in &mut offers {
            if let Some(ep) = &mut offer.ep {
                ep.protocol = FI_PROTO_SOCK_TCP;
            }
        }
        offers
    }
}

impl<N: OtherName> OnEngine for TcpAs<N> {
    type Transport = TcpTransport;
    type Shared = DomainKey;

    const NAME: &'static str = N::NAME;
    const WHOLE_NAME: &'static str = N::WHOLE_NAME;
    const VERSION: u32 = VERSION;
    const ONLY_BY_NAME: bool = N::ONLY_BY_NAME;
    const PROGRESS: u32 = N::PROGRESS;

    fn start() -> TcpAs<N> {
        Tcp::start();
        TcpAs(PhantomData)
    }

    fn offers(&self) -> Vec<Info> {
        N::offers()
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        Tcp.address(info, query)
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        Tcp::address_kind(format)
    }

    fn limits() -> Limits {
        Tcp::limits()
    }

    fn share(info: &Info) -> Result<DomainKey> {
        Tcp::share(info)
    }

    fn open(shared: &Arc<DomainKey>, info: &Info) -> Result<TcpTransport> {
        Tcp::open(shared, info)
    }

    fn open_context(key: &Arc<DomainKey>, address: &[u8]) -> Result<TcpTransport> {
        Tcp::open_context(key, address)
    }
}

impl Connected for Sockets {
    type Listener = Passive;
    type ConnectedTransport = TcpTransport;

    const DATA_SIZE: usize = Tcp::DATA_SIZE;

    fn listener(info: &Info) -> Result<Passive> {
        Tcp::listener(info)
    }

    fn open_connected(key: &Arc<DomainKey>, info: &Info) -> Result<TcpTransport> {
        Tcp::open_connected(key, info)
    }

    fn answer(key: &Arc<DomainKey>, info: &Info, call: &mut Option<Call>) -> Result<TcpTransport> {
        Tcp::answer(key, info, call)
    }
}
