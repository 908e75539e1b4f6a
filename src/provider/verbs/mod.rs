//! Provider `verbs`: endpoints on RDMA devices, connected ones and those of datagrams; and `verbs;ofi_rxm`, the engine
//! on the same devices.
//!
//! Only tables and rules; what carries data is `transport::verbs`, without the engine, and
//! `transport::verbs::reliable`, with it. Registered by `abi::built_in`.
//!
//! - `devices`: what fi_getinfo may offer: devices, ports, and the addresses that lead to them;
//! - `datagram`: the same for endpoints without a connection, and what they are offered as;
//! - `endpoint`: endpoints, listeners and registered memory as `api` wants them;
//! - `settings`: the variables FI_VERBS_*;
//! - `rxm`: reliable endpoints, and `rxm_settings`: the variables FI_OFI_RXM_*;
//! - `network`: the same for a provider that has another way besides.

use super::connected::Connected;
use super::datagrams::Datagrams;
use super::direct::Direct;
use super::on_engine::OnEngine;
use crate::abi::types::*;
use crate::api::av::{AddressKind, SocketAddr as SocketKind};
use crate::api::endpoint::direct::{CardReceives, NoEngine};
use crate::api::errno::{Errno, Result};
use crate::api::info::address::of_interface;
use crate::api::info::check::judge;
use crate::api::info::model::{Info, RxAttr};
use crate::api::info::query::Query;
use crate::api::mr::registrar::Registrar;
use crate::engine::op::AtomicOp;
use crate::sys::rdma::{Pd, SharedReceives, Sizes};
use crate::sys::resolve::from_bytes;
use crate::transport::verbs::datagram::{DatagramEndpoint, DeviceDatagrams};
use crate::transport::verbs::{
    Config, DATA_SIZE, DeviceLink, MARK_ROOM, Registrations, Request, SharedPool, VerbsEndpoint, VerbsListener, amos,
};
use datagram::{DeviceWays, QueuePairKind};
use endpoint::{Registry, failed};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

mod datagram;
mod devices;
mod endpoint;
mod kept;
pub(super) mod network;
mod rxm;
mod rxm_settings;
mod settings;

pub use rxm::VerbsRxm;

const NAME: &str = "verbs";

pub struct Verbs;

/// What the endpoints of a domain share.
pub struct Domain {
    pd: Arc<Pd>,
    memory: Arc<Registrations>,
    /// The device has atomics.
    atomics: bool,
    /// Of a domain of datagrams.
    ways: Option<Arc<DeviceWays>>,
}

impl OnEngine for Verbs {
    type Transport = NoEngine;
    type Shared = Domain;

    const NAME: &'static str = NAME;

    /// Below that of every plug-in, which has more kinds of endpoint and goes first.
    const VERSION: u32 = 100 << 16;

    fn start() -> Verbs {
        settings::init();
        Verbs
    }

    fn offers(&self) -> Vec<Info> {
        devices::offers(false)
    }

    fn fitting(&self, query: &Query) -> Vec<Info> {
        let mut fitting = Vec::new();
        for mut offer in devices::offers(query.has_flag(FI_RESCAN)) {
            devices::drop_unasked_mode(&mut offer, query);
            fitting.extend(judge(NAME, &offer, &devices::most(&offer), query));
        }
        fitting
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        match info.ep_type() {
            FI_EP_DGRAM => datagram::address(info, query),
            _ => of_interface(info, query),
        }
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        match format {
            FI_ADDR_IB_UD => Arc::new(QueuePairKind::default()),
            _ => Arc::new(SocketKind::new(format)),
        }
    }

    fn share(info: &Info) -> Result<Domain> {
        let pd = devices::open(info)?;
        let failed = |error| failed(format_args!("fi_domain"), &error);
        let ways = match info.ep_type() {
            FI_EP_DGRAM => Some(datagram::ways(&pd)?),
            _ => None,
        };
        Ok(Domain {
            atomics: pd.device().attributes().map_err(failed)?.atomics,
            ways,
            memory: Arc::new(Registrations::new(Box::new(pd.clone()))),
            pd,
        })
    }

    fn amos(domain: &Arc<Domain>) -> &'static [AtomicOp] {
        amos(domain.atomics)
    }

    fn registrar(domain: &Arc<Domain>) -> Option<Arc<dyn Registrar>> {
        Some(Arc::new(Registry {
            memory: domain.memory.clone(),
            for_all: false,
        }))
    }
}

impl Connected for Verbs {
    type Listener = VerbsListener;
    type ConnectedTransport = VerbsEndpoint<DeviceLink>;

    const DATA_SIZE: usize = DATA_SIZE;

    fn listener(info: &Info) -> Result<VerbsListener> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let at = info.src_addr.as_deref().and_then(from_bytes).unwrap_or(any);
        VerbsListener::open(&at, warn).map_err(|error| failed(format_args!("fi_passive_ep: {at}"), &error))
    }

    fn open_connected(domain: &Arc<Domain>, info: &Info) -> Result<Self::ConnectedTransport> {
        made(domain, info, |room| DeviceLink::open(&domain.pd, room))
    }

    fn answer(domain: &Arc<Domain>, info: &Info, request: &mut Option<Request>) -> Result<Self::ConnectedTransport> {
        let id = request.as_mut().ok_or(Errno(FI_EINVAL))?.id();
        made(domain, info, |room| DeviceLink::of(id, &domain.pd, room))
    }
}

impl Direct for Verbs {
    fn shared_receives(domain: &Arc<Domain>, rx: &RxAttr) -> Result<CardReceives> {
        let (receives, pieces) = receive_sizes(Some(rx));
        let failed = |error| failed(format_args!("fi_srx_context: {receives} receives"), &error);
        let queue = SharedReceives::open(&domain.pd, receives, pieces).map_err(failed)?;
        let memory = domain.memory.clone();
        Ok(CardReceives::new(SharedPool::new(
            queue,
            memory,
            receives as usize,
            pieces,
            warn,
        )))
    }
}

impl Datagrams for Verbs {
    type DatagramTransport = DatagramEndpoint<DeviceDatagrams>;

    fn open_datagram(domain: &Arc<Domain>, info: &Info) -> Result<Self::DatagramTransport> {
        let ways = domain.ways.as_ref().ok_or(Errno(FI_EINVAL))?;
        datagram::open(ways, &domain.memory, info, sizes(info))
    }

    fn vector_kind(domain: &Arc<Domain>, format: u32) -> Arc<dyn AddressKind> {
        match &domain.ways {
            Some(ways) => Arc::new(QueuePairKind::over(ways)),
            None => Self::address_kind(format),
        }
    }
}

/// An endpoint on a connection that has room for this many completions.
fn made(
    domain: &Arc<Domain>,
    info: &Info,
    open: impl FnOnce(usize) -> io::Result<DeviceLink>,
) -> Result<VerbsEndpoint<DeviceLink>> {
    let sizes = sizes(info);
    let link = open((sizes.sends + MARK_ROOM + sizes.receives) as usize);
    let link = link.map_err(|error| failed(format_args!("fi_endpoint"), &error))?;
    let config = Config {
        sizes,
        from: info.src_addr.as_deref().and_then(from_bytes),
        retry_timer: settings::get().retry_timer,
        atomics: domain.atomics,
        warn,
    };
    Ok(VerbsEndpoint::new(link, domain.memory.clone(), config))
}

fn warn(text: &str) {
    log!(by NAME; Warn, EpData, "{text}");
}

/// What was asked for, or the usual.
fn number(asked: Option<usize>, usual: usize) -> u32 {
    let asked = asked.filter(|asked| *asked != 0).unwrap_or(usual);
    u32::try_from(asked).unwrap_or(u32::MAX / 4)
}

/// How many receives a queue holds, and of how many pieces each is.
fn receive_sizes(rx: Option<&RxAttr>) -> (u32, u32) {
    let usual = settings::get();
    (
        number(rx.map(|rx| rx.size), usual.rx_size),
        number(rx.map(|rx| rx.iov_limit), usual.rx_pieces),
    )
}

/// What the queues of an endpoint hold.
fn sizes(info: &Info) -> Sizes {
    let (tx, usual) = (info.tx.as_ref(), settings::get());
    let (receives, receive_pieces) = receive_sizes(info.rx.as_ref());
    Sizes {
        sends: number(tx.map(|tx| tx.size), usual.tx_size),
        receives,
        send_pieces: number(tx.map(|tx| tx.iov_limit), usual.tx_pieces),
        receive_pieces,
        inline: tx.map_or(0, |tx| u32::try_from(tx.inject_size).unwrap_or(0)),
    }
}
