//! The transport of an `auto` endpoint: shared memory and the network, joined by the addresses of `address`.
//!
//! Called by `mod`, which opens it, and by the endpoint.

use super::address::{Address, NAMES, whole};
use super::settings;
use crate::abi::types::*;
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::engine::port::PeerId;
use crate::provider::{shm, tcp};
use crate::sys::epoll::Epoll;
use crate::sys::shared;
use crate::transport::join::{Join, Naming};
use crate::transport::shm::{self as shared_memory, ShmTransport};
use crate::transport::tcp::{Secret, TcpTransport};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;

/// What an endpoint knows of addresses, its own among them, and where it sleeps.
pub struct Names {
    own: Address,
    /// Readable when one of the two descriptors is; None: there is only one.
    both: Option<Epoll>,
}

pub(super) type AutoTransport = Join<Names>;

impl Naming for Names {
    type Near = ShmTransport;
    type Far = TcpTransport;

    /// Whether it is near is found out by looking for it there.
    fn near(&self, address: &[u8]) -> Option<Vec<u8>> {
        Address::of(address)?;
        Some(address.to_vec())
    }

    fn far(&self, address: &[u8]) -> Option<Vec<u8>> {
        Address::of(address)?.network()
    }

    fn met_near(&self, near: &ShmTransport, peer: PeerId) -> Option<Vec<u8>> {
        let address = near.address(peer)?;
        Address::of(address)?;
        Some(address.to_vec())
    }

    fn met_far(&self, far: &TcpTransport, peer: PeerId) -> Option<Vec<u8>> {
        Some(Address::met(far.address(peer)?, far.instance_of(peer)?)?.text())
    }

    fn base<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        shared_memory::base(address)
    }

    fn chosen(&self, address: &[u8], near: bool) {
        let (way, text) = (if near { "shm" } else { "tcp" }, String::from_utf8_lossy(address));
        log!(by super::NAME; Debug, EpCtrl, "{text} is reached by {way}");
    }

    fn ended(&self, near: usize, far: usize) {
        if near + far > 0 {
            log!(by super::NAME; Info, EpCtrl, "fi_close: {near} peers were reached by shm, {far} by tcp");
        }
    }
}

/// An endpoint at this address, of which what is 0 is drawn. One of the two ways may fail to open, which is told.
pub(super) fn open(wanted: &Address, secret: Option<Secret>) -> Result<AutoTransport> {
    let settings = settings::get();
    let mut own = *wanted;
    while own.name == 0 {
        own.name = shared::random().map_err(|_| Errno(FI_EIO))? % NAMES;
    }
    let mut refusal = Errno(FI_ENODATA);
    let far = settings
        .network
        .then(|| open_network(&own, secret))
        .and_then(|opened| opened.map_err(|error| refusal = error).ok());
    // A port that was asked for is one that others know.
    if far.is_none() && settings.network && wanted.place.is_some_and(|place| place.port() != 0) {
        return Err(refusal);
    }
    own = own.listening_at(&far.as_ref().map(TcpTransport::local_address).unwrap_or_default());
    let near = settings
        .local
        .then(|| open_local(&own))
        .and_then(|opened| opened.map_err(|error| refusal = error).ok());
    let both = match (&near, &far) {
        (None, None) => return Err(refusal),
        (Some(near), Some(far)) => Some(both(near, far)?),
        _ => None,
    };
    tell_ways(&own, near.is_some());
    Ok(Join::new(Names { own, both }, near, far))
}

fn open_network(own: &Address, secret: Option<Secret>) -> Result<TcpTransport> {
    let usual = || tcp::usual_place().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let place = own.place.unwrap_or_else(usual);
    let there = Address {
        place: Some(place),
        ..*own
    };
    let address = there.network().ok_or(Errno(FI_EINVAL))?;
    tcp::open_as(&address, own.instance(), secret)
}

fn open_local(own: &Address) -> Result<ShmTransport> {
    shm::open(&String::from_utf8_lossy(&own.text()))
}

fn both(near: &ShmTransport, far: &TcpTransport) -> Result<Epoll> {
    let descriptors = [near.wake_fd(), far.wake_fd()];
    let add = || {
        let epoll = Epoll::new()?;
        descriptors.iter().try_for_each(|fd| epoll.add(*fd))?;
        Ok(epoll)
    };
    add().map_err(|error: std::io::Error| {
        log!(by super::NAME; Warn, EpCtrl, "fi_endpoint: epoll: {error}");
        Errno(FI_EMFILE)
    })
}

fn tell_ways(own: &Address, near: bool) {
    let local = if near { "shm" } else { "the network too" };
    let network = own.place.map_or("no way".to_owned(), |place| format!("tcp at {place}"));
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
        let secret = self.far().and_then(TcpTransport::secret);
        Ok(Renamed {
            transport: Some(open(&wanted, secret)?),
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
        // Both, as the announcement of each stands.
        let near = self.near_mut().is_none_or(EndpointTransport::arm);
        let far = self.far_mut().is_none_or(EndpointTransport::arm);
        near && far
    }

    fn wake_fd(&self) -> Option<RawFd> {
        let near = || self.near().and_then(EndpointTransport::wake_fd);
        let far = || self.far().and_then(EndpointTransport::wake_fd);
        let both = self.names().both.as_ref().map(Epoll::fd);
        both.or_else(near).or_else(far)
    }

    fn wake(&self) {
        match (self.near(), self.far()) {
            (Some(near), _) => near.wake(),
            (None, Some(far)) => far.wake(),
            (None, None) => {}
        }
    }
}
