//! Endpoints of datagrams of `transport::verbs::datagram` as `api` wants them, and the addresses of their vectors.
//!
//! - `offer`: what fi_getinfo answers for them.

mod offer;

pub(super) use offer::{SUFFIX, address, inline, offer};

use super::endpoint::failed;
use super::{NAME, devices, settings};
use crate::abi::types::*;
use crate::api::av::{AddressKind, Layout};
use crate::api::endpoint::connection::Connects;
use crate::api::endpoint::direct::DirectTransport;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::engine::op::{self, Completion, PostHint, Refused};
use crate::engine::port::PeerId;
use crate::sys::rdma::{Pd, Sizes};
use crate::transport::verbs::Registrations;
use crate::transport::verbs::datagram::{
    Address, DatagramConfig, DatagramEndpoint, DatagramLink, DeviceDatagrams, DeviceRouter, Held, Router, Ways,
};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) type DeviceWays = Ways<DeviceRouter>;

/// The ways from the first port of a device that is up.
pub(super) fn ways(pd: &Arc<Pd>) -> Result<Arc<DeviceWays>> {
    let device = pd.device();
    let port = device
        .attributes()
        .and_then(|attributes| devices::port_of(&device, attributes.ports));
    let (port, _) = port.map_err(|error| failed(format_args!("fi_domain: {}", device.name()), &error))?;
    let gid = u8::try_from(settings::get().gid).map_err(|_| Errno(FI_EINVAL))?;
    Ok(Arc::new(Ways::new(DeviceRouter::new(pd, port, gid))))
}

pub(super) fn open(
    ways: &Arc<DeviceWays>,
    memory: &Arc<Registrations>,
    info: &Info,
    sizes: Sizes,
) -> Result<DatagramEndpoint<DeviceDatagrams>> {
    let router = ways.router();
    let opened = router.local_address().and_then(|address| {
        let (link, pair, inline) = router.link(&sizes)?;
        Ok((Address { pair, ..address }, link, inline))
    });
    let (address, link, inline) = opened.map_err(|error| failed(format_args!("fi_endpoint"), &error))?;
    let config = DatagramConfig {
        sizes: Sizes { inline, ..sizes },
        most: info.ep.as_ref().map_or(0, |ep| ep.max_msg_size),
        sourced: info.caps & FI_SOURCE != 0,
        warn: |text| log!(by NAME; Warn, EpData, "{text}"),
    };
    Ok(DatagramEndpoint::new(
        link,
        &address,
        ways.clone(),
        memory.clone(),
        config,
    ))
}

impl<L: DatagramLink> DirectTransport for DatagramEndpoint<L> {
    fn local_address(&self) -> Vec<u8> {
        DatagramEndpoint::local_address(self).to_vec()
    }

    fn send(&mut self, send: &op::Send, _: PostHint) -> Result<(), Refused> {
        DatagramEndpoint::send(self, send)
    }

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        DatagramEndpoint::recv(self, recv)
    }

    fn rma(&mut self, _: &op::Rma, _: PostHint) -> Result<(), Refused> {
        Err(Refused::Unsupported)
    }

    fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        DatagramEndpoint::poll(self, report);
    }

    fn unfinished(&self) -> (usize, usize) {
        DatagramEndpoint::unfinished(self)
    }

    fn arm(&mut self) -> bool {
        DatagramEndpoint::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(DatagramEndpoint::wake_fd(self))
    }

    fn connection(&mut self) -> Option<&mut dyn Connects> {
        None
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        DatagramEndpoint::peer(self, address)
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        DatagramEndpoint::address_of(self, peer)
    }
}

/// Addresses of queue pairs (FI_ADDR_IB_UD). A vector's kind holds the ways to what the vector has, and gives them back
/// with the vector.
pub(super) struct QueuePairKind<R: Router = DeviceRouter> {
    ways: Option<Arc<Ways<R>>>,
    held: Mutex<HashMap<Vec<u8>, Uses<R::Way>>>,
}

/// How often a vector has an address, under different keys, and the way there.
struct Uses<W>(usize, Arc<Held<W>>);

impl Default for QueuePairKind {
    /// Addresses that are only looked at.
    fn default() -> QueuePairKind {
        QueuePairKind {
            ways: None,
            held: Mutex::default(),
        }
    }
}

impl<R: Router> QueuePairKind<R> {
    /// The kind of one vector.
    pub(super) fn over(ways: &Arc<Ways<R>>) -> QueuePairKind<R> {
        QueuePairKind {
            ways: Some(ways.clone()),
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Uses<R::Way>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Router> Drop for QueuePairKind<R> {
    fn drop(&mut self) {
        let held = core::mem::take(&mut *self.held());
        if let Some(ways) = &self.ways {
            held.into_values().for_each(|Uses(_, held)| ways.let_go(held));
        }
    }
}

/// Queue pairs have numbers of 24 bits.
const MOST_PAIRS: u32 = 1 << 24;

impl<R: Router> AddressKind for QueuePairKind<R> {
    fn format(&self) -> u32 {
        FI_ADDR_IB_UD
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(Address::SIZE)
    }

    fn longest(&self) -> usize {
        Address::SIZE
    }

    fn check(&self, address: &[u8]) -> Result<()> {
        let place = Address::from_bytes(address).filter(Address::is_place);
        match place {
            Some(place) if (1..MOST_PAIRS).contains(&place.pair) => Ok(()),
            _ => Err(Errno(FI_EADDRNOTAVAIL)),
        }
    }

    fn key<'a>(&self, address: &'a [u8]) -> &'a [u8] {
        address.get(..Address::TOLD).unwrap_or(address)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        let named = node.filter(|_| service.is_none()).and_then(Address::from_text);
        Ok(named.ok_or(Errno(FI_ENODATA))?.to_bytes().to_vec())
    }

    fn inserted(&self, kept: &[u8]) -> Result<()> {
        let Some(ways) = &self.ways else { return Ok(()) };
        if let Some(Uses(count, _)) = self.held().get_mut(self.key(kept)) {
            *count += 1;
            return Ok(());
        }
        let address = Address::from_bytes(kept).ok_or(Errno(FI_EINVAL))?;
        let way = ways.hold(&address);
        let way = way.map_err(|error| failed(format_args!("fi_av_insert: the way to an address"), &error))?;
        self.held().insert(self.key(kept).to_vec(), Uses(1, way));
        Ok(())
    }

    fn removed(&self, kept: &[u8]) {
        let Some(ways) = &self.ways else { return };
        let mut held = self.held();
        let Some(Uses(count, _)) = held.get_mut(self.key(kept)) else {
            return;
        };
        *count -= 1;
        if *count > 0 {
            return;
        }
        let last = held.remove(self.key(kept));
        drop(held);
        if let Some(Uses(_, way)) = last {
            ways.let_go(way);
        }
    }
}

#[cfg(test)]
mod tests;
