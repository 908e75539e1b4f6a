//! The passive side: an identifier that listens, and requests that wait for an answer.
//!
//! A peer that ends one connection and asks for another expects both to be heard in this order, but they come by two
//! event channels, and endpoints seldom look at theirs. So a request is told in the round after the one in which it was
//! found, and endpoints look meanwhile (`requests`).

use super::connection::{from_wire, to_wire};
use crate::sys::rdma::{EventKind, Id};
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// How many requests this process has found.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

/// Changes when a request has been found: what came before it is there by now.
pub(super) fn requests() -> u32 {
    REQUESTS.load(Ordering::Relaxed)
}

/// Listens at an address.
pub struct VerbsListener {
    id: Id,
    /// Found in an earlier round.
    found: VecDeque<Waiting>,
    warn: fn(&str),
}

/// Of a request without an identifier.
pub(super) const NO_DESCRIPTOR: &str =
    "a request for a connection was refused, as this process has no descriptors left: raise its limit (ulimit -n)";

/// A request that has come.
pub struct Waiting {
    pub peer: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub data: Vec<u8>,
    pub request: Request,
}

/// Dropped without an answer, it is refused.
pub struct Request(Option<Id>);

impl VerbsListener {
    pub fn open(at: &SocketAddr, warn: fn(&str)) -> io::Result<VerbsListener> {
        let mut id = Id::open()?;
        id.bind(at)?;
        Ok(VerbsListener {
            id,
            found: VecDeque::new(),
            warn,
        })
    }

    pub fn listen(&mut self, backlog: usize) -> io::Result<()> {
        self.id.listen(backlog)
    }

    pub fn local_address(&self) -> Option<SocketAddr> {
        self.id.local_address()
    }

    pub fn wake_fd(&self) -> RawFd {
        self.id.event_fd()
    }

    /// Called until it gives none, in each round.
    pub fn next_request(&mut self) -> Option<Waiting> {
        let next = self.found.pop_front();
        if next.is_none() {
            while let Some(waiting) = self.find() {
                REQUESTS.fetch_add(1, Ordering::Relaxed);
                self.found.push_back(waiting);
            }
        }
        next
    }

    /// Whether nothing waits for the next round.
    pub fn may_sleep(&self) -> bool {
        self.found.is_empty()
    }

    fn find(&mut self) -> Option<Waiting> {
        loop {
            let event = self.id.event()?;
            if event.kind != EventKind::Request {
                continue; // nothing else concerns who listens
            }
            let Some(id) = event.request else {
                (self.warn)(NO_DESCRIPTOR);
                continue;
            };
            return Some(Waiting {
                peer: id.peer_address(),
                local: id.local_address(),
                data: from_wire(&event.data),
                request: Request(Some(id)),
            });
        }
    }
}

impl Request {
    /// Its identifier, to be taken by what answers it.
    pub fn id(&mut self) -> &mut Option<Id> {
        &mut self.0
    }

    pub fn reject(mut self, data: &[u8]) {
        if let Some(mut id) = self.0.take() {
            // The other side may have given up meanwhile.
            let _ = id.reject(&to_wire(data));
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(id) = &mut self.0 {
            let _ = id.reject(&to_wire(&[]));
        }
    }
}
