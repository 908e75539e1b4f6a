//! What an endpoint asks of its transport besides carrying packets: addresses, sleep, a connection, and whether it must
//! be polled.
//!
//! Knows nothing of what endpoints do with it. Implemented by `provider` for each transport, and in `direct` for cards
//! that need no engine. Used by all kinds of endpoints.

use super::connection::Connects;
use crate::api::errno::Result;
use crate::api::progress::Watch;
use crate::engine::port::{PeerId, Transport};
use crate::util::ready::Ready;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What an endpoint asks of its transport besides carrying packets.
pub trait EndpointTransport: Transport + core::marker::Send {
    /// Whether the domain's registrar is to be shown the descriptors that programs pass: see `api::mr::registrar`.
    const DESCRIPTORS: bool = false;

    /// The endpoint's own address, by which peers send to it.
    fn local_address(&self) -> Vec<u8>;
    /// fi_setname, with all bytes that the program gave: what becomes of this end.
    fn renamed(&self, address: &[u8]) -> Result<Renamed<Self>>
    where
        Self: Sized;
    /// The address of a peer that the transport has numbered.
    fn address_of(&self, peer: PeerId) -> Option<&[u8]>;
    /// The address of a context of the scalable endpoint at `address`; context 0 has the endpoint's own.
    fn context_address(address: &[u8], index: usize) -> Vec<u8>;
    /// The address of the scalable endpoint that `address` is a context of; any other address as it is.
    fn base_address(address: &[u8]) -> &[u8];
    /// An address in the form that vectors keep, and in that of the usual address format.
    fn raw_address(address: &[u8]) -> Vec<u8>;
    /// An address as fi_getname and others tell it in a domain, or at a passive endpoint, of this address format.
    fn told_address(address: Vec<u8>, _format: u32) -> Vec<u8> {
        address
    }
    /// Drains `wake_fd`, then announces to peers that a thread sleeps on it. False: there is work, so do not sleep; the
    /// announcement stands, since others may sleep.
    fn arm(&mut self) -> bool;
    /// Becomes readable when a peer has sent something since `arm`.
    fn wake_fd(&self) -> Option<RawFd>;
    /// Makes `wake_fd` readable.
    fn wake(&self);

    /// Its connection, if the endpoint is one of FI_EP_MSG.
    fn connection(&mut self) -> Option<&mut dyn Connects> {
        None
    }

    /// Called when the endpoint is enabled. A transport that need not be polled to find out whether there is something
    /// to do keeps the mark. It sets it, or its `wake_fd` becomes readable, whenever there is, and though nobody called
    /// `arm`: when something has come, when there is room again after `Push::Full`, when a connection has news, when it
    /// is time for something, when a push or a poll leaves something (its budget was used up, or the engine refused a
    /// packet). If `Ready::take_readable`, a poll sees to the descriptor, so that it is readable no longer. False:
    /// `poll` must be called to find out.
    fn watched_by(&mut self, _mark: &Arc<Ready>) -> bool {
        false
    }
}

/// How it is found out that a transport has something to do; None: by polling it.
pub(super) fn watch_of<T: EndpointTransport>(transport: &mut T) -> Option<Watch> {
    let mark = Arc::new(Ready::default());
    transport.watched_by(&mark).then(|| Watch {
        mark,
        fd: transport.wake_fd(),
    })
}

/// What fi_setname makes of an end.
pub struct Renamed<T> {
    /// Another end in place of this one; None: this one has the address already.
    pub transport: Option<T>,
    /// What fi_getname tells from then on; None: as before.
    pub address: Option<Vec<u8>>,
}

impl<T> Default for Renamed<T> {
    fn default() -> Renamed<T> {
        Renamed {
            transport: None,
            address: None,
        }
    }
}
