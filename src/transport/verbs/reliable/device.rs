//! The seam over a real device.

use super::seam::{Device, Request};
use super::{Config, Reliable};
use crate::sys::epoll::{Epoll, Events};
use crate::sys::eventfd::EventFd;
use crate::sys::rdma::{self, Done, EventKind, Id, PairMade, Pd, Piece, Queues, SharedReceives, Sizes, Stopped, Watch};
use crate::transport::verbs::device::kind_of;
use crate::transport::verbs::listener::NO_DESCRIPTOR;
use crate::transport::verbs::seam::{Completions, Nic, QueuePair};
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Requests that wait to be looked at.
const BACKLOG: usize = 1024;

/// Completions that there is room for at first, besides those of receives.
const COMPLETIONS: usize = 16 << 10;

/// Keys of the epoll instance that are no connection's.
const LISTENER: u64 = u64::MAX;
const QUEUES: u64 = u64::MAX - 1;
const BELL: u64 = u64::MAX - 2;
const DEVICE: u64 = u64::MAX - 3;

/// The queues of all connections of an endpoint.
struct Shared {
    queues: Arc<Queues>,
    receives: Arc<SharedReceives>,
}

pub struct Card {
    pd: Arc<Pd>,
    listener: Id,
    place: SocketAddr,
    shared: Arc<Shared>,
    epoll: Epoll,
    /// Of others' threads, and of `watch`.
    bell: Arc<EventFd>,
    watch: Arc<Watch>,
    warn: fn(&str),
}

impl Card {
    /// Listens at an address of the protection domain's device. `receives`, `completions`: how many the queues of the
    /// endpoint hold.
    pub fn open(pd: &Arc<Pd>, at: &SocketAddr, receives: u32, completions: usize, warn: fn(&str)) -> io::Result<Card> {
        let mut listener = Id::open()?;
        listener.bind(at)?;
        if listener.device() != Some(pd.device()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        listener.listen(BACKLOG)?;
        let place = listener.local_address().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let queues = Arc::new(Queues::open(pd, completions)?);
        let receives = Arc::new(SharedReceives::open(pd, receives, 1)?);
        let (epoll, bell) = (Epoll::new()?, Arc::new(EventFd::new()?));
        let watch = queues.watch(&bell);
        epoll.add_with_key(listener.event_fd(), LISTENER)?;
        epoll.add_with_key(queues.fd(), QUEUES)?;
        epoll.add_with_key(bell.fd(), BELL)?;
        epoll.add_with_key(pd.device().event_fd(), DEVICE)?;
        Ok(Card {
            pd: pd.clone(),
            listener,
            place,
            shared: Arc::new(Shared { queues, receives }),
            epoll,
            bell,
            watch,
            warn,
        })
    }
}

impl Reliable<Card> {
    /// Makes the endpoint that others reach by `at`; with port 0 at a port that is free.
    pub fn open(pd: &Arc<Pd>, at: &SocketAddr, config: &Config) -> io::Result<Reliable<Card>> {
        let most = pd.device().attributes()?;
        let receives = config.receives.min(most.shared_receives);
        let most_receives = config.most_receives.clamp(receives, most.shared_receives);
        let completions = (receives + COMPLETIONS).min(most.completions);
        let card = Card::open(pd, at, most_receives as u32, completions, config.warn)?;
        let sends = config.sends.min(most.requests.saturating_sub(1));
        Reliable::new(
            card,
            &Config {
                receives,
                most_receives,
                sends,
                ..*config
            },
        )
    }

    /// What its device registers memory with.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.device.pd
    }
}

impl Completions for Card {
    fn poll(&mut self, room: &mut [Done]) -> io::Result<usize> {
        self.shared.queues.poll(room)
    }

    fn notify(&mut self) -> io::Result<()> {
        self.shared.queues.notify()
    }

    fn wake_fd(&self) -> RawFd {
        self.epoll.fd()
    }
}

impl Device for Card {
    type Wire = CardWire;

    fn nic(&self) -> &dyn Nic {
        &self.pd
    }

    fn place(&self) -> SocketAddr {
        self.place
    }

    fn dial(&mut self) -> io::Result<CardWire> {
        let (id, shared) = (Id::open()?, self.shared.clone());
        Ok(CardWire { id, shared })
    }

    fn request(&mut self) -> Option<Request<CardWire>> {
        loop {
            let event = self.listener.event()?;
            if event.kind != EventKind::Request {
                continue; // nothing else concerns who listens
            }
            let Some(id) = event.request else {
                (self.warn)(NO_DESCRIPTOR);
                continue;
            };
            let (from, shared) = (id.peer_address(), self.shared.clone());
            return Some(Request {
                wire: CardWire { id, shared },
                from,
                data: event.data,
            });
        }
    }

    fn watch(&mut self, wire: &CardWire, key: u64) -> io::Result<()> {
        self.epoll.add_with_key(wire.id.event_fd(), key)
    }

    fn look(&mut self, keys: &mut Vec<u64>) {
        let mut events = Events::new();
        self.epoll.look(&mut events);
        if events.iter().any(|event| event.key == DEVICE) {
            self.pd.device().look();
        }
        keys.extend(events.iter().map(|event| event.key).filter(|key| *key < DEVICE));
    }

    fn trouble(&mut self) -> Option<EventKind> {
        self.watch.take().map(kind_of)
    }

    fn make_room(&mut self, completions: usize) -> io::Result<()> {
        // Seldom, as each time what waits in the queue is copied.
        let room = completions.next_power_of_two();
        let made = self.shared.queues.make_room(room);
        made.or_else(|_| self.shared.queues.make_room(completions))
            .map_err(|error| {
                let why = format!("the completion queue cannot hold {completions}: {error}");
                io::Error::new(io::ErrorKind::OutOfMemory, why)
            })
    }

    unsafe fn post_receive(&mut self, id: u64, piece: Piece) -> io::Result<()> {
        // SAFETY: forwarded.
        unsafe { self.shared.receives.post(id, &[piece]) }
    }

    fn wake(&self) {
        self.bell.set();
    }

    fn quieten(&self) {
        self.bell.clear();
    }
}

pub struct CardWire {
    id: Id,
    shared: Arc<Shared>,
}

impl QueuePair for CardWire {
    type Connection = Id;

    fn connection(&mut self) -> &mut Id {
        &mut self.id
    }

    fn make_pair(&mut self, sizes: &Sizes) -> io::Result<PairMade> {
        let Shared { queues, receives } = &*self.shared;
        self.id.make_pair(queues.clone(), Some(receives), sizes)
    }

    #[inline]
    unsafe fn post_sends(&mut self, requests: &[rdma::Request<'_>]) -> Result<(), Stopped> {
        // SAFETY: forwarded.
        unsafe { self.id.post_sends(requests) }
    }
}
