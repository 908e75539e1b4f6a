//! The transport of an `auto` endpoint: shared memory and the network, joined by the addresses of `address`.
//!
//! Called by `mod`, which opens it, and by the endpoint.

use super::address::{Address, NAMES, whole};
use super::network::{self, NetworkTransport};
use super::sleep::{self, both};
use super::{AutoDomain, settings};
use crate::abi::types::*;
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::engine::port::PeerId;
use crate::provider::shm;
use crate::sys::epoll::Epoll;
use crate::sys::shared;
use crate::transport::join::{Join, Naming};
use crate::transport::shm::{self as shared_memory, ShmTransport};
use crate::transport::tcp::Secret;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What an endpoint knows of addresses, its own among them, and where it sleeps.
pub struct Names {
    own: Address,
    domain: Arc<AutoDomain>,
    secret: Option<Secret>,
    /// Readable when one of the two ways is; None: there is only one.
    both: Option<Epoll>,
}

pub(super) type AutoTransport = Join<Names>;

impl Naming for Names {
    type Near = ShmTransport;
    type Far = NetworkTransport;

    /// Whether it is near is found out by looking for it there.
    fn near(&self, address: &[u8]) -> Option<Vec<u8>> {
        Address::of(address)?;
        Some(address.to_vec())
    }

    fn far(&self, address: &[u8]) -> Option<Vec<u8>> {
        Address::of(address)?.place?;
        Some(address.to_vec())
    }

    fn met_near(&self, near: &ShmTransport, peer: PeerId) -> Option<Vec<u8>> {
        let address = near.address(peer)?;
        Address::of(address)?;
        Some(address.to_vec())
    }

    fn met_far(&self, far: &NetworkTransport, peer: PeerId) -> Option<Vec<u8>> {
        Some(far.address(peer)?.to_vec())
    }

    fn base<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        shared_memory::base(address)
    }

    fn chosen(&self, address: &[u8], near: bool) {
        if near {
            let text = String::from_utf8_lossy(address);
            log!(by super::NAME; Debug, EpCtrl, "{text} is reached by shm");
        }
    }

    fn ended(&self, near: usize, far: usize) {
        if near + far > 0 {
            log!(by super::NAME; Info, EpCtrl, "fi_close: {near} peers were reached by shm, {far} by {}", self.network());
        }
    }
}

impl Names {
    fn network(&self) -> &'static str {
        match self.own.card() {
            Some(_) => "the network",
            None => "tcp",
        }
    }
}

/// An endpoint at this address, of which what is 0 is drawn. One of the two ways may fail to open, which is told; but
/// not the network for want of something, as peers on other machines would find nobody there.
pub(super) fn open(wanted: &Address, domain: &Arc<AutoDomain>, secret: Option<Secret>) -> Result<AutoTransport> {
    let settings = settings::get();
    let has_network = settings.network != settings::Network::None;
    let mut own = *wanted;
    while own.name == 0 {
        own.name = shared::random().map_err(|_| Errno(FI_EIO))? % NAMES;
    }
    let mut refusal = Errno(FI_ENODATA);
    let opened = has_network.then(|| network::open(&own, wanted.name == 0, domain, secret.as_ref()));
    let opened = opened.and_then(|opened| opened.map_err(|error| refusal = error).ok());
    // A port that was asked for is one that others know.
    let is_known = wanted.place.is_some_and(|place| place.port() != 0);
    let lacks = matches!(refusal.0, FI_EMFILE | FI_ENOMEM | FI_EADDRINUSE) || refusal.0 == libc::ENFILE;
    if opened.is_none() && has_network && (is_known || lacks) {
        return Err(refusal);
    }
    let (far, own) = match opened {
        Some((far, own)) => (Some(far), own),
        None => (None, own.listening_at(&[])),
    };
    let near = settings
        .local
        .then(|| open_local(&own))
        .and_then(|opened| opened.map_err(|error| refusal = error).ok());
    if near.is_none() && far.is_none() {
        return Err(refusal);
    }
    tell_ways(&own, near.is_some());
    let names = Names {
        own,
        domain: domain.clone(),
        secret,
        both: both(near.as_ref(), far.as_ref())?,
    };
    Ok(Join::new(names, near, far))
}

fn open_local(own: &Address) -> Result<ShmTransport> {
    shm::open(&String::from_utf8_lossy(&own.text()))
}

fn tell_ways(own: &Address, near: bool) {
    let local = if near { "shm" } else { "the network too" };
    let network = match (own.place, own.card()) {
        (None, _) => "no way".to_owned(),
        (Some(place), None) => format!("tcp at {place}"),
        (Some(place), Some(_)) => format!("verbs or tcp at {place}"),
    };
    log!(by super::NAME; Info, EpCtrl, "fi_endpoint: peers on this machine are reached by {local}, others by {network}");
}

impl EndpointTransport for AutoTransport {
    fn local_address(&self) -> Vec<u8> {
        whole(&self.names().own.text())
    }

    /// Its address stands for what it has opened, so it keeps that.
    fn renamed(&self, address: &[u8]) -> Result<Renamed<AutoTransport>> {
        let wanted = Address::of(address).ok_or(Errno(FI_EINVAL))?;
        if wanted == self.names().own {
            return Ok(Renamed::default());
        }
        Ok(Renamed {
            transport: Some(open(&wanted, &self.names().domain, self.names().secret.clone())?),
            address: None,
        })
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        shared_memory::context(address, index)
    }

    fn base_address(address: &[u8]) -> &[u8] {
        shared_memory::base(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        whole(address)
    }

    fn arm(&mut self) -> bool {
        sleep::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        sleep::wake_fd(self, self.names().both.as_ref())
    }

    fn wake(&self) {
        sleep::wake(self);
    }
}
