//! How a join sleeps: its two transports are asked together, and wake it by one descriptor.
//!
//! Called by `endpoint`; a network that is a join itself is asked as any other transport.

use super::network::NetworkTransport;
use crate::abi::types::FI_EMFILE;
use crate::api::endpoint::EndpointTransport;
use crate::api::errno::{Errno, Result};
use crate::sys::epoll::Epoll;
use crate::transport::join::{Join, Naming};
use std::os::fd::RawFd;

/// What of `EndpointTransport` a way has to do.
pub(super) trait Sleeps {
    fn arm(&mut self) -> bool;
    fn wake_fd(&self) -> Option<RawFd>;
    fn wake(&self);

    /// The descriptors by which it is woken, each of which watches no other of ours.
    fn descriptors(&self) -> Vec<RawFd> {
        self.wake_fd().into_iter().collect()
    }
}

impl<T: EndpointTransport> Sleeps for T {
    fn arm(&mut self) -> bool {
        EndpointTransport::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        EndpointTransport::wake_fd(self)
    }

    fn wake(&self) {
        EndpointTransport::wake(self);
    }
}

impl Sleeps for NetworkTransport {
    fn arm(&mut self) -> bool {
        arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        wake_fd(self, self.names().both())
    }

    fn wake(&self) {
        wake(self);
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let near = self.near().map(Sleeps::descriptors);
        let far = self.far().map(Sleeps::descriptors);
        near.into_iter().chain(far).flatten().collect()
    }
}

/// Readable when one of the two ways wakes. None: only one of them does. It watches the descriptors of a network that
/// is a join itself one by one: the kernel lets epolls watch each other to a depth of five, and the program's own is to
/// be one of them.
pub(super) fn both(near: Option<&impl Sleeps>, far: Option<&impl Sleeps>) -> Result<Option<Epoll>> {
    let (near, far) = (near.map(Sleeps::descriptors), far.map(Sleeps::descriptors));
    let (near, far) = (near.unwrap_or_default(), far.unwrap_or_default());
    if near.is_empty() || far.is_empty() {
        return Ok(None);
    }
    let add = || {
        let epoll = Epoll::new()?;
        near.iter().chain(&far).try_for_each(|fd| epoll.add(*fd))?;
        Ok(Some(epoll))
    };
    add().map_err(|error: std::io::Error| {
        log!(by super::NAME; Warn, EpCtrl, "fi_endpoint: epoll: {error}");
        Errno(FI_EMFILE)
    })
}

pub(super) fn arm<N: Naming<Near: Sleeps, Far: Sleeps>>(join: &mut Join<N>) -> bool {
    // Both, as the announcement of each stands.
    let near = join.near_mut().is_none_or(Sleeps::arm);
    let far = join.far_mut().is_none_or(Sleeps::arm);
    near && far
}

pub(super) fn wake_fd<N: Naming<Near: Sleeps, Far: Sleeps>>(join: &Join<N>, both: Option<&Epoll>) -> Option<RawFd> {
    let near = || join.near().and_then(Sleeps::wake_fd);
    let far = || join.far().and_then(Sleeps::wake_fd);
    both.map(Epoll::fd).or_else(near).or_else(far)
}

pub(super) fn wake<N: Naming<Near: Sleeps, Far: Sleeps>>(join: &Join<N>) {
    match (join.near(), join.far()) {
        (Some(near), _) => near.wake(),
        (None, Some(far)) => far.wake(),
        (None, None) => {}
    }
}
