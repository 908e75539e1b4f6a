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
}

/// Readable when one of the two descriptors is. None: there is only one.
pub(super) fn both(near: Option<&impl Sleeps>, far: Option<&impl Sleeps>) -> Result<Option<Epoll>> {
    let near = near.and_then(Sleeps::wake_fd);
    let (Some(near), Some(far)) = (near, far.and_then(Sleeps::wake_fd)) else {
        return Ok(None);
    };
    let add = || {
        let epoll = Epoll::new()?;
        epoll.add(near)?;
        epoll.add(far)?;
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
