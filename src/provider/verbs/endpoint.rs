//! Endpoints, listeners and registered memory of `transport::verbs` as `api` wants them.

use super::NAME;
use crate::abi::types::*;
use crate::api::endpoint::connection::{ConnectionEvent, Connects};
use crate::api::endpoint::direct::{CardReceives, DirectReceives, DirectTransport};
use crate::api::errno::{Errno, Result};
use crate::api::mr::registrar::{Registered, Registrar};
use crate::api::passive::{self, Incoming, Listener};
use crate::engine::op::{self, AtomicOp, Completion, PostHint, Refused};
use crate::sys::locked_memory;
use crate::sys::rdma::Access;
use crate::sys::resolve::{from_bytes, to_bytes};
use crate::transport::verbs::{
    Happened, Link, Receives, Registrations, Request, SharedPool, VerbsEndpoint, VerbsListener,
};
use crate::util::regions::Rights;
use crate::util::user::UserIov;
use core::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Logs what could not be done, and gives the errno that a program gets.
pub(super) fn failed(what: fmt::Arguments<'_>, error: &io::Error) -> Errno {
    let advice = locked_memory::advice(error.raw_os_error().unwrap_or(0));
    log!(by NAME; Warn, EpCtrl, "{what}: {error}{advice}");
    Errno(match error.kind() {
        io::ErrorKind::InvalidInput => FI_EINVAL,
        _ => error.raw_os_error().unwrap_or(FI_EIO),
    })
}

fn bytes(address: Option<SocketAddr>) -> Vec<u8> {
    address.as_ref().map(to_bytes).unwrap_or_default()
}

impl<L: Link> DirectTransport for VerbsEndpoint<L> {
    fn local_address(&self) -> Vec<u8> {
        bytes(VerbsEndpoint::local_address(self))
    }

    fn send(&mut self, send: &op::Send, hint: PostHint) -> Result<(), Refused> {
        VerbsEndpoint::send(self, send, hint)
    }

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused> {
        VerbsEndpoint::recv(self, recv)
    }

    fn rma(&mut self, rma: &op::Rma, hint: PostHint) -> Result<(), Refused> {
        VerbsEndpoint::rma(self, rma, hint)
    }

    fn amos(&self) -> &'static [AtomicOp] {
        VerbsEndpoint::amos(self)
    }

    fn atomic(&mut self, atomic: &op::Atomic, hint: PostHint) -> Result<(), Refused> {
        VerbsEndpoint::atomic(self, atomic, hint)
    }

    fn share(&mut self, receives: &CardReceives) -> Result<()> {
        let pool = receives.any.clone().downcast::<SharedPool<L::Receives>>();
        let pool = pool.map_err(|_| Errno(FI_EINVAL))?;
        VerbsEndpoint::share(self, &pool).map_err(|error| failed(format_args!("fi_ep_bind: a shared context"), &error))
    }

    fn poll(&mut self, report: &mut dyn FnMut(Completion)) {
        VerbsEndpoint::poll(self, report);
    }

    fn unfinished(&self) -> (usize, usize) {
        VerbsEndpoint::unfinished(self)
    }

    fn arm(&mut self) -> bool {
        VerbsEndpoint::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(VerbsEndpoint::wake_fd(self))
    }

    fn connection(&mut self) -> Option<&mut dyn Connects> {
        Some(self)
    }
}

impl<L: Link> Connects for VerbsEndpoint<L> {
    fn connect(&mut self, address: &[u8], data: &[u8]) -> Result<()> {
        let to = from_bytes(address).ok_or(Errno(FI_EINVAL))?;
        let begun = VerbsEndpoint::connect(self, &to, data);
        begun.map_err(|error| failed(format_args!("fi_connect: {to}"), &error))
    }

    fn accept(&mut self, data: &[u8]) -> Result<()> {
        VerbsEndpoint::accept(self, data).map_err(|error| failed(format_args!("fi_accept"), &error))
    }

    fn shutdown(&mut self) {
        VerbsEndpoint::shutdown(self);
    }

    fn event(&mut self) -> Option<ConnectionEvent> {
        Some(match self.happened()? {
            Happened::Connected { data } => ConnectionEvent::Connected { data },
            Happened::Refused { data } => ConnectionEvent::Failed {
                error: Errno(FI_ECONNREFUSED),
                data,
            },
            Happened::Unreachable => ConnectionEvent::Failed {
                error: Errno(FI_ETIMEDOUT),
                data: Vec::new(),
            },
            Happened::Closed => ConnectionEvent::Closed,
        })
    }

    fn peer_address(&self) -> Option<Vec<u8>> {
        VerbsEndpoint::peer_address(self).as_ref().map(to_bytes)
    }
}

impl Listener for VerbsListener {
    type Request = Request;

    fn listen(&mut self, backlog: usize) -> Result<()> {
        VerbsListener::listen(self, backlog).map_err(|error| failed(format_args!("fi_listen"), &error))
    }

    fn next_request(&mut self) -> Option<Incoming<Request>> {
        let waiting = VerbsListener::next_request(self)?;
        Some(Incoming {
            peer: bytes(waiting.peer),
            local: bytes(waiting.local),
            data: waiting.data,
            request: waiting.request,
        })
    }

    fn local_address(&self) -> Vec<u8> {
        bytes(VerbsListener::local_address(self))
    }

    fn rename(&mut self, address: &[u8]) -> Result<()> {
        let at = from_bytes(address).ok_or(Errno(FI_EINVAL))?;
        let other = VerbsListener::open(&at, super::warn);
        *self = other.map_err(|error| failed(format_args!("fi_setname: {at}"), &error))?;
        Ok(())
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(VerbsListener::wake_fd(self))
    }

    fn arm(&mut self) -> bool {
        self.may_sleep()
    }
}

impl passive::Request for Request {
    fn reject(self, data: &[u8]) {
        Request::reject(self, data);
    }
}

impl<R: Receives> DirectReceives for SharedPool<R> {
    fn recv(&self, recv: &op::Recv) -> core::result::Result<(), Refused> {
        SharedPool::recv(self, recv)
    }

    fn posted(&self) -> usize {
        SharedPool::posted(self)
    }
}

/// The registered memory of a domain.
pub(super) struct Registry {
    pub memory: Arc<Registrations>,
    /// Programs name memory without descriptors, so each region is found by its address and serves for all.
    pub for_all: bool,
}

impl Registrar for Registry {
    fn register(&self, memory: &UserIov, access: u64, rights: Rights) -> Result<Registered> {
        if self.for_all && rights == Rights::default() && access & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
            log!(by NAME; Warn, Mr, "fi_mr_reg: a card tells nobody what peers do with a region, so there are no flags for that");
            return Err(Errno(FI_EOPNOTSUPP));
        }
        let Some(part) = memory.only() else {
            log!(by NAME; Warn, Mr, "fi_mr_reg: {} pieces; a card registers one", memory.parts().len());
            return Err(Errno(FI_EINVAL));
        };
        let access = Access {
            local_write: self.for_all || access & (FI_RECV | FI_READ) != 0,
            remote_read: rights.read,
            remote_write: rights.write,
        };
        let (desc, key) = self
            .memory
            .register(&part, access)
            .map_err(|error| Errno(error.raw_os_error().unwrap_or(FI_EIO)))?;
        Ok(Registered {
            desc,
            key: (rights != Rights::default()).then_some(u64::from(key)),
        })
    }

    fn deregister(&self, registered: &Registered) {
        self.memory.deregister(registered.desc);
    }

    fn lend(&self, addr: usize, desc: usize) -> bool {
        self.memory.has(addr, desc)
    }
}
