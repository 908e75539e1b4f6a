//! Provider `auto`: one endpoint for every peer. Those on the same machine are reached through shared memory, the
//! others by the network.
//!
//! Only tables and rules: the transport is `transport::join` of that of `shm` and of the network, which is a join of a
//! device's and of `tcp`'s. All are opened as by their own providers, with what the user set for them. Registered by
//! `abi::built_in`.
//!
//! - `address`: what an address says of all ways;
//! - `cards`: the cards that offers tell of;
//! - `endpoint`: shared memory and the network as one;
//! - `network`: a device and tcp as one;
//! - `sleep`: how a join sleeps;
//! - `settings`: the variables FI_AUTO_*.

mod address;
mod cards;
mod endpoint;
mod network;
mod settings;
mod sleep;

use super::on_engine::{OnEngine, Rdm, drop_unasked_order};
use super::shm::Shm;
use super::tcp::{DomainKey, Tcp};
use crate::abi::types::*;
use crate::api::av::AddressKind;
use crate::api::av::string::text;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::{Family, Names, Resolver, System};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::engine::port::Limits;
use crate::provider::verbs::network as card;
use crate::sys::interfaces;
use crate::transport::join;
use address::{Address, AutoAddr, whole};
use endpoint::AutoTransport;
use settings::Network;
use std::net::IpAddr;
use std::sync::Arc;

const NAME: &str = "auto";

/// Which of two it speaks depends on where the peer is. The first bit marks a provider's own protocol.
const PROTOCOL: u32 = 1 << 31 | u32::from_be_bytes(*b"\0aut");

/// Sends up to this size can be injected.
const INJECT_SIZE: usize = 4096;

pub struct Auto;

/// What the endpoints of a domain share.
pub struct AutoDomain {
    key: DomainKey,
    /// None: there is none, or it is not to be used.
    card: Option<card::Network>,
}

impl OnEngine for Auto {
    type Transport = AutoTransport;
    type Shared = AutoDomain;

    const NAME: &'static str = NAME;
    const VERSION: u32 = 206 << 16;

    fn start() -> Auto {
        settings::init();
        Auto
    }

    fn offers(&self) -> Vec<Info> {
        let settings = settings::get();
        let has_network = settings.network != Network::None;
        if !(settings.local || has_network) {
            return Vec::new();
        }
        let (tx_size, rx_size) = super::shm::queue_sizes();
        let rdm = Rdm {
            fabric: NAME.into(),
            domain: NAME.into(),
            version: Auto::VERSION,
            addr_format: FI_ADDR_STR,
            protocol: PROTOCOL,
            protocol_version: 1,
            reach: FI_LOCAL_COMM | if has_network { FI_REMOTE_COMM } else { 0 },
            tx_size,
            rx_size,
            inject_size: INJECT_SIZE,
            limits: Auto::limits(),
        };
        let offer = super::tcp::with_auth_keys(rdm.offer());
        cards::each_with_a_card(if has_card() {
            card::without_contexts(offer)
        } else {
            offer
        })
    }

    fn address(&self, answer: &mut Info, query: &Query) -> Result<()> {
        let (source, dest) = addresses(query)?;
        (answer.src_addr, answer.dest_addr) = (Some(source), dest);
        answer.addr_format = FI_ADDR_STR;
        drop_unasked_order(answer, query);
        Ok(())
    }

    fn address_kind(_: u32) -> Arc<dyn AddressKind> {
        Arc::new(AutoAddr::default())
    }

    fn limits() -> Limits {
        limits().0
    }

    fn far_limits() -> Limits {
        limits().1
    }

    fn share(info: &Info) -> Result<AutoDomain> {
        let key = DomainKey::of(info)?;
        Ok(AutoDomain { key, card: find_card() })
    }

    fn open(domain: &Arc<AutoDomain>, info: &Info) -> Result<AutoTransport> {
        let asked = info.src_addr.as_deref().map_or(Some(blank()), Address::of);
        let secret = domain.key.of_endpoint(info);
        endpoint::open(&asked.ok_or(Errno(FI_EINVAL))?, domain, secret)
    }

    fn open_context(domain: &Arc<AutoDomain>, address: &[u8]) -> Result<AutoTransport> {
        let wanted = Address::of(address).ok_or(Errno(FI_EINVAL))?;
        endpoint::open(&wanted, domain, domain.key.of_context())
    }
}

fn may_have_card() -> bool {
    matches!(settings::get().network, Network::Any | Network::Verbs)
}

/// Whether endpoints have a device, unless theirs cannot be opened.
fn has_card() -> bool {
    may_have_card() && card::is_there()
}

fn find_card() -> Option<card::Network> {
    let found = may_have_card().then(card::Network::find).flatten();
    if found.is_none() && settings::get().network == Network::Verbs {
        log!(by NAME; Warn, Domain, "fi_domain: FI_AUTO_NETWORK=verbs, and no RDMA device can be used (`fi_info --check` says \
            why): peers are reached by tcp");
    }
    found
}

/// Those of near and of far peers. Endpoints whose device cannot be opened may have higher ones.
fn limits() -> (Limits, Limits) {
    let settings = settings::get();
    let near = settings.local.then(Shm::limits);
    let network = match settings.network {
        Network::None => None,
        Network::Tcp => Some(Tcp::limits()),
        Network::Verbs | Network::Any => Some(join::joined(has_card().then(card::limits), Some(Tcp::limits())).0),
    };
    join::joined(near, network)
}

/// An endpoint that nothing is asked of.
fn blank() -> Address {
    Address {
        name: 0,
        place: None,
        context: 0,
    }
}

/// Source and destination of an answer. A node is an address of ours; with FI_SOURCE, it may be where to listen.
fn addresses(query: &Query) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let hinted = |pick: fn(&Info) -> &Option<Vec<u8>>| query.hints.and_then(|hints| pick(hints).as_deref());
    let ours = |bytes: &[u8]| {
        Address::of(bytes)
            .map(|address| whole(&address.text()))
            .ok_or(Errno(FI_ENODATA))
    };
    let own = || whole(&blank().text());
    let hinted_dest = || hinted(|hints| &hints.dest_addr).map(ours).transpose();
    if query.has_flag(FI_SOURCE) {
        return Ok((listening(query)?, hinted_dest()?));
    }
    let named = query.node.map(|node| ours(node.as_bytes())).transpose()?;
    if named.is_none() && query.service.is_some() {
        return Err(Errno(FI_ENODATA));
    }
    let source = hinted(|hints| &hints.src_addr).map(ours).transpose()?;
    Ok((
        source.unwrap_or_else(own),
        named.map_or_else(hinted_dest, |named| Ok(Some(named)))?,
    ))
}

/// Whether this machine has such an address.
fn is_here(ip: IpAddr) -> bool {
    let has = || interfaces::list().is_ok_and(|all| all.iter().any(|one| one.address.ip() == ip));
    ip.is_unspecified() || ip.is_loopback() || has()
}

/// The address of an endpoint that node and service name.
fn listening(query: &Query) -> Result<Vec<u8>> {
    if let Some(address) = query.node.and_then(|node| Address::of(node.as_bytes())) {
        return Ok(whole(&address.text()));
    }
    // A client that names no provider gets another one for the address of a socket, so its server does, too.
    let names_us = |names: &str| names.split(';').any(|name| name.eq_ignore_ascii_case(NAME));
    let is_uri = |node: &str| text(node.as_bytes()).windows(3).any(|three| three == b"://");
    if !query.prov_name().is_some_and(names_us) || query.node.is_some_and(is_uri) {
        return Err(Errno(FI_ENODATA));
    }
    let names = match query.has_flag(FI_NUMERICHOST) {
        true => Names::Numeric,
        false => Names::Resolve,
    };
    let place = System.lookup(
        query.node,
        query.service,
        Family::Any,
        crate::api::info::address::End::Source,
        names,
    );
    let place = place.filter(|place| is_here(place.ip())).ok_or(Errno(FI_ENODATA))?;
    let address = Address {
        place: Some(place),
        ..blank()
    };
    Ok(whole(&address.text()))
}

#[cfg(test)]
mod tests;
