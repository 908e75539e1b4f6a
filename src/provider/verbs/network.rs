//! A device as one way of a provider that has another one too: its reliable endpoints, which give up peers that do not
//! answer, as the other way may reach them. The engine does all reads, writes and atomics, as it does them that way.
//!
//! Called by `provider::auto`.

use super::endpoint::failed;
use super::{devices, kept, rxm};
use crate::abi::types::FI_EP_MSG;
use crate::api::errno::Result;
use crate::api::info::model::{Info, NicAttr};
use crate::engine::port::Limits;
use crate::provider::on_engine::OnEngine;
use crate::sys::rdma::{self, Pd};
use crate::sys::resolve::from_bytes;
use crate::transport::verbs::reliable::{Card, Config, DomainMemory, Reliable};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(in crate::provider) type CardTransport = Reliable<Card>;

/// How long a peer is tried that a device may not lead to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The device of a domain.
pub(in crate::provider) struct Network {
    pd: Arc<Pd>,
    memory: DomainMemory,
    /// The addresses that lead to it.
    places: Vec<SocketAddr>,
}

impl Network {
    /// The first device that can be used. None: there is none, which the log tells at level info.
    pub(in crate::provider) fn find() -> Option<Network> {
        let connected = connected();
        let first = connected.first()?;
        let same = connected
            .iter()
            .filter(|info| info.domain_name() == first.domain_name());
        let places = same.filter_map(|info| from_bytes(info.src_addr.as_deref()?)).collect();
        let pd = devices::open(first).ok()?;
        let cache = kept::open(&pd);
        let memory = DomainMemory {
            cache,
            ..DomainMemory::default()
        };
        Some(Network { pd, memory, places })
    }

    pub(in crate::provider) fn places(&self) -> &[SocketAddr] {
        &self.places
    }

    /// An endpoint at one of these addresses that calls itself so.
    pub(in crate::provider) fn open(&self, at: &SocketAddr, instance: u64) -> Result<CardTransport> {
        let config = Config {
            elsewhere_after: Some(PATIENCE),
            instance: Some(instance),
            ..rxm::config()
        };
        let opened = Reliable::open(&self.pd, at, &config);
        let mut opened = opened.map_err(|error| failed(format_args!("fi_endpoint: {at}"), &error))?;
        opened.set_memory(self.memory.clone());
        Ok(opened)
    }
}

/// Whether there is one.
pub(in crate::provider) fn is_there() -> bool {
    !connected().is_empty()
}

/// What programs are told of all devices.
pub(in crate::provider) fn nics() -> Vec<NicAttr> {
    connected().into_iter().filter_map(|info| info.nic).collect()
}

pub(in crate::provider) fn limits() -> Limits {
    super::VerbsRxm::limits()
}

/// The offer of an endpoint, without contexts, as one on a device has none.
pub(in crate::provider) fn without_contexts(offer: Info) -> Info {
    rxm::without_contexts(offer)
}

/// Offers of connected endpoints. A machine without devices is not searched, nor the log filled.
fn connected() -> Vec<Info> {
    if !rdma::any() {
        return Vec::new();
    }
    let offers = devices::offers(false).into_iter();
    offers.filter(|info| info.ep_type() == FI_EP_MSG).collect()
}
