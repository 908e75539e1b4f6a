//! The seam over a real device.

use super::seam::{Completions, Connection, Link, News, Nic, QueuePair, Receives, Registration};
use crate::sys::epoll::Epoll;
use crate::sys::eventfd::EventFd;
use crate::sys::rdma::{
    Access, Done, EventKind, Id, Memory, PairMade, Pd, Piece, Queues, Request, SharedReceives, Sizes, Stopped, Trouble,
};
use crate::util::user::UserBuf;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Milliseconds to find an address or a route, as the C library's provider waits.
const RESOLVE: i32 = 2000;

pub struct DeviceLink {
    /// Before `spare`, as its queue pair uses queues.
    id: Id,
    /// The queues, until the queue pair has them.
    spare: Option<Arc<Queues>>,
    receives: Option<Arc<SharedReceives>>,
    pd: Arc<Pd>,
    /// Rings when the device has told something of it.
    bell: Arc<EventFd>,
    /// Of the bell, and of the identifier's, the device's and the queues' descriptors.
    epoll: Epoll,
}

impl DeviceLink {
    /// A connection that this side is to begin. `room`: completions that nobody has looked at.
    pub fn open(pd: &Arc<Pd>, room: usize) -> io::Result<DeviceLink> {
        DeviceLink::of(&mut Some(Id::open()?), pd, room)
    }

    /// The connection of a request, which it takes; an error leaves it. -EINVAL: it came to another device than the
    /// protection domain's.
    pub fn of(request: &mut Option<Id>, pd: &Arc<Pd>, room: usize) -> io::Result<DeviceLink> {
        let id = request.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
        if id.device().is_some_and(|device| device != pd.device()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (queues, epoll, bell) = (Queues::open(pd, room)?, Epoll::new()?, EventFd::new()?);
        epoll.add(id.event_fd())?;
        epoll.add(pd.device().event_fd())?;
        epoll.add(queues.fd())?;
        epoll.add(bell.fd())?;
        Ok(DeviceLink {
            id: request.take().ok_or(io::ErrorKind::InvalidInput)?,
            spare: Some(Arc::new(queues)),
            receives: None,
            pd: pd.clone(),
            bell: Arc::new(bell),
            epoll,
        })
    }

    fn queues(&self) -> io::Result<&Queues> {
        match self.spare.as_ref() {
            Some(spare) => Ok(spare),
            None => self.id.queues().ok_or_else(|| io::ErrorKind::NotConnected.into()),
        }
    }
}

pub(super) fn kind_of(trouble: Trouble) -> EventKind {
    match trouble {
        Trouble::Broken => EventKind::Failed,
        Trouble::DeviceGone => EventKind::Removed,
        Trouble::PortDown => EventKind::PortDown,
        Trouble::PortUp => EventKind::PortUp,
    }
}

/// As librdmacm makes it.
impl Connection for Id {
    fn resolve_address(&mut self, from: Option<&SocketAddr>, to: &SocketAddr) -> io::Result<()> {
        Id::resolve_address(self, from, to, RESOLVE)
    }

    fn resolve_route(&mut self) -> io::Result<()> {
        Id::resolve_route(self, RESOLVE)
    }

    fn connect(&mut self, data: &[u8]) -> io::Result<()> {
        Id::connect(self, data)
    }

    fn accept(&mut self, data: &[u8]) -> io::Result<()> {
        Id::accept(self, data)
    }

    fn reject(&mut self, data: &[u8]) {
        // The other side may have given up meanwhile.
        let _ = Id::reject(self, data);
    }

    fn disconnect(&mut self) {
        // It puts the queue pair into error first, which cannot fail in a way that matters here.
        let _ = Id::disconnect(self);
    }

    fn news(&mut self) -> Option<News> {
        let event = self.event()?;
        Some(News {
            kind: event.kind,
            data: event.data,
        })
    }
}

impl QueuePair for DeviceLink {
    type Connection = Id;

    fn connection(&mut self) -> &mut Id {
        &mut self.id
    }

    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade> {
        let queues = self.spare.clone().ok_or(io::ErrorKind::AlreadyExists)?;
        let made = self.id.make_pair(queues, self.receives.as_ref(), sizes)?;
        self.spare = None;
        self.id.watch(&self.bell);
        Ok(made)
    }

    unsafe fn post_sends(&mut self, requests: &[Request<'_>]) -> Result<(), Stopped> {
        // SAFETY: forwarded.
        unsafe { self.id.post_sends(requests) }
    }
}

impl Completions for DeviceLink {
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize> {
        self.queues()?.poll(room)
    }

    fn notify(&mut self) -> io::Result<()> {
        // What rings from now on wakes; what rang before is asked for before the sleep.
        self.bell.clear();
        self.queues()?.notify()
    }

    fn wake_fd(&self) -> RawFd {
        self.epoll.fd()
    }
}

impl Link for DeviceLink {
    type Receives = SharedReceives;

    fn share(&mut self, receives: &Arc<SharedReceives>) {
        self.receives = Some(receives.clone());
    }

    fn make_room(&mut self, completions: usize) -> io::Result<()> {
        let larger = Queues::open(&self.pd, completions)?;
        self.epoll.add(larger.fd())?;
        // Those before it leave the set when they are closed.
        self.spare = Some(Arc::new(larger));
        Ok(())
    }

    fn set_retry_timer(&mut self, code: u8) -> io::Result<()> {
        self.id.set_retry_timer(code)
    }

    fn trouble(&mut self) -> Option<EventKind> {
        // Also without a queue pair, as an event of any makes the descriptor readable.
        self.pd.device().look();
        self.id.trouble().map(kind_of)
    }

    unsafe fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        // SAFETY: forwarded.
        unsafe { self.id.post_receive(id, pieces) }
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.id.local_address()
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.id.peer_address()
    }
}

impl Receives for SharedReceives {
    unsafe fn post(&self, id: u64, pieces: &[Piece]) -> io::Result<()> {
        // SAFETY: forwarded.
        unsafe { SharedReceives::post(self, id, pieces) }
    }
}

impl Nic for Arc<Pd> {
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>> {
        // SAFETY: registered memory is the program's until it closes the region, by fi_mr(3), and `UserBuf` was made
        // with that promise.
        let registered = unsafe { Pd::register(self, memory.addr(), memory.len(), access) }?;
        Ok(Box::new(registered))
    }
}

impl Registration for Memory {
    fn local_key(&self) -> u32 {
        Memory::local_key(self)
    }

    fn remote_key(&self) -> u32 {
        Memory::remote_key(self)
    }
}
