//! Packets through TCP, between endpoints of any machines.
//!
//! **A connection.** Each endpoint listens on one port, which with the interface's address is its own
//! (`listener`). The first push to a peer dials it (`dialing`) and answers `Full` until both ends have agreed
//! (`handshake`, `introduction`, `arrivals`); so nothing is ever sent that might be lost to a connection that did not
//! come about. Two peers have one connection, whoever made it; the rules are those of `transport::connecting`.
//!
//! **A packet.** `link` is the connection, `send_buffer` what waits to leave, `receive` the stream taken apart. Small
//! packets that follow one another between two polls leave together, long bodies from the application's memory; what
//! comes is read into one buffer for all peers, long bodies into their places. While the application polls, peers that
//! sent lately are read without asking the kernel who has news; all others are found by epoll (`active`).
//!
//! **Sleep.** The epoll instance is what a program sleeps on (`sleeping`), and what says that an endpoint has news
//! which nobody polls until then (`watched`). Deadlines are looked at now and then by polls, and by a timer while
//! nobody polls (`deadlines`).
//!
//! **One peer.** An endpoint of FI_EP_MSG has the connection that its program asked for (`one_peer`), or that it was
//! asked for at a passive endpoint (`passive`), with that program's data (`program_data`). What is told of one
//! connection does not overtake what came before on others (`causes`). The rest is the same.
//!
//! **The end.** An endpoint that closes says so behind all that it has sent (`closing`). A connection that ends
//! otherwise is broken; the peer is dialed to find out whether it lives (`ends`). What peers send is checked; bad bytes
//! end their connection and nothing else.
//!
//! Knows `engine::port`, `util` and `sys`. Called by the engine, and by `provider` and `abi` to open and to sleep.

mod active;
mod arrivals;
mod attempt;
mod causes;
mod closing;
mod config;
mod deadlines;
mod dialing;
mod ends;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod handshake;
mod introduction;
mod link;
mod listener;
mod one_peer;
mod passive;
mod program_data;
mod receive;
mod secret;
mod send_buffer;
mod sleeping;
mod sockets;
mod watched;

#[cfg(test)]
mod tests;

use crate::engine::op::Unreached;
use crate::engine::port::{
    Body, Contact, Exposed, ExposedName, Get, Limits, Notice, PeerId, Push, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::sys::clock;
use crate::sys::epoll::Epoll;
use crate::sys::forks::Process;
use crate::sys::timerfd::TimerFd;
use crate::sys::{resolve, shared};
use crate::transport::connecting::{SelfQueue, address};
use crate::util::user::UserIov;
use attempt::Peers;
use core::sync::atomic::Ordering;
use listener::{Desk, Listener};
use one_peer::OnePeer;
use receive::Buffer;
use std::net::SocketAddr;
use std::sync::Arc;
use watched::Watched;

pub use closing::LOCK as LOCK_OF_CLOSED;
pub use config::{Config, OpenError};
pub use listener::LOCK;
pub use one_peer::Event;
pub use passive::{Call, Passive};
pub use program_data::MOST as DATA_SIZE;
pub use secret::Secret;

/// Keys of the epoll instance that are no peer's.
mod key {
    pub(crate) const LOBBY: u64 = u64::MAX;
    pub(crate) const BELL: u64 = u64::MAX - 1;
    pub(crate) const TIMER: u64 = u64::MAX - 2;
    /// Of a peer's sockets.
    pub(crate) const WAY: u64 = 0;
    pub(crate) const LINK: u64 = 1;
}

fn key_of(peer: PeerId, role: u64) -> u64 {
    u64::from(peer) << 1 | role
}

/// An endpoint's transport.
pub struct TcpTransport {
    config: Config,
    peers: Peers,
    /// Links that may have news, or had lately.
    active: Vec<PeerId>,
    /// Links with something to flush, or whose senders are to be told.
    unsent: Vec<PeerId>,
    /// Peers for whose connections under way something has come, seen before a sleep.
    news_of_ways: Vec<PeerId>,
    /// A deadline is over, seen before a sleep.
    tick_is_due: bool,
    /// Counts polls, from 1.
    polls: u64,
    /// Until that poll only epoll is asked who has news.
    crowded_until: u64,
    /// The last poll has found something, or one of another transport has.
    has_found: bool,
    /// The engine calls `flush` before it returns.
    flush_follows: bool,
    /// Somebody may sleep: what is pushed leaves at once.
    armed: bool,
    buffer: Buffer,
    self_queue: SelfQueue,
    /// Drawn at random, to tell this endpoint from others that have, or had, its address.
    instance: u64,
    own: Vec<u8>,
    context: u16,
    epoll: Epoll,
    timer: TimerFd,
    /// When links are looked at next for silent machines; None: there were no links.
    watch_at: Option<u64>,
    /// What the timer runs for.
    timed_for: Option<u64>,
    desk: Arc<Desk>,
    /// The first number by which it was found to be the peer itself.
    own_number: Option<PeerId>,
    /// None: nobody connects to it, as it has one peer.
    listener: Option<Arc<Listener>>,
    /// Where others find it.
    place: SocketAddr,
    /// Of an endpoint of FI_EP_MSG.
    one_peer: Option<Box<OnePeer>>,
    /// Of an endpoint that nobody polls until it has something to do.
    watched: Watched,
    process: Process,
    told_shortage: bool,
}

impl TcpTransport {
    /// Makes the endpoint that others reach by `address`, of a socket; with port 0 at a port that is free. With the
    /// address of a scalable endpoint's context it shares that endpoint's port.
    pub fn open(address: &[u8], config: &Config) -> Result<TcpTransport, OpenError> {
        match TcpTransport::try_open(address, config) {
            Err(OpenError::Descriptors(error)) if sockets::has_raised_limit(&error, config) => {
                TcpTransport::try_open(address, config)
            }
            opened => opened,
        }
    }

    fn try_open(address: &[u8], config: &Config) -> Result<TcpTransport, OpenError> {
        let address = address::normal(address).ok_or(OpenError::Address)?;
        let place = address::place(address).ok_or(OpenError::Address)?;
        let context = address::context_number(address);
        let shared = if place.port() == 0 {
            None
        } else {
            Listener::find(address::base(address))
        };
        let listener = match shared {
            Some(listener) => listener,
            None => Listener::open(place, config)?,
        };
        let desk = listener.add_desk(context, config)?;
        let place = listener.place;
        // What one context was given is the secret of all.
        let config = Config {
            secret: listener.secret.clone(),
            ..config.clone()
        };
        TcpTransport::new(desk, Some(listener), place, context, None, &config)
    }

    fn new(
        desk: Arc<Desk>,
        listener: Option<Arc<Listener>>,
        place: SocketAddr,
        context: u16,
        one_peer: Option<OnePeer>,
        config: &Config,
    ) -> Result<TcpTransport, OpenError> {
        let drawn = || shared::random().map_err(|error| OpenError::of("random numbers", error));
        let instance = config.instance.map_or_else(drawn, Ok)?;
        let system = |error| OpenError::of("epoll", error);
        let epoll = sockets::with_more_descriptors(config, Epoll::new).map_err(system)?;
        let timer = sockets::with_more_descriptors(config, TimerFd::new).map_err(system)?;
        if let Some(listener) = &listener {
            epoll.add_with_key(listener.fd(), key::LOBBY).map_err(system)?;
        }
        epoll.add_with_key(desk.bell.fd(), key::BELL).map_err(system)?;
        epoll.add_with_key(timer.fd(), key::TIMER).map_err(system)?;
        Ok(TcpTransport {
            config: config.clone(),
            peers: Peers::default(),
            active: Vec::new(),
            unsent: Vec::new(),
            news_of_ways: Vec::new(),
            tick_is_due: false,
            polls: 1,
            crowded_until: 0,
            has_found: false,
            flush_follows: false,
            armed: false,
            buffer: Buffer::new(),
            self_queue: SelfQueue::default(),
            own_number: None,
            instance,
            own: address::context(&address::of(&place), context.into()),
            context,
            epoll,
            timer,
            watch_at: None,
            timed_for: None,
            watched: Watched::default(),
            desk,
            listener,
            place,
            one_peer: one_peer.map(Box::new),
            process: Process::this(),
            told_shortage: false,
        })
    }

    /// As a socket address.
    pub fn local_address(&self) -> Vec<u8> {
        resolve::to_bytes(&self.place)
    }

    /// What its peers must prove.
    pub fn secret(&self) -> Option<Secret> {
        self.config.secret.clone()
    }

    /// The address behind a number.
    pub fn address(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.get(peer).map(|peer| &*peer.address)
    }

    /// What the endpoint calls itself that was heard last behind a number.
    pub fn instance_of(&self, peer: PeerId) -> Option<u64> {
        self.peers.get(peer).and_then(|peer| peer.history.instance())
    }

    #[cold]
    fn deliver_own<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        // One that listens everywhere is known to its program by the address that it has reached itself by.
        let reached = self
            .own_number
            .filter(|own| self.peers.get(*own).is_some_and(|peer| peer.is_self));
        let Some(number) = reached.or_else(|| self.peers.number(&self.own)) else {
            return 0;
        };
        let source = self.peers.source(number);
        self.self_queue.deliver(number, source, sink, budget)
    }

    fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    /// There is no connection: makes one, or says what became of it.
    #[cold]
    fn push_unconnected(&mut self, to: PeerId, header: &Header, body: &Body<'_>) -> Push {
        let Some(peer) = self.peers.get_mut(to) else {
            return Push::Unreachable(Unreached::Nobody);
        };
        if peer.is_self {
            return self.self_queue.push(header, body);
        }
        if let Some(answer) = peer.history.answer() {
            return answer;
        }
        self.dial_if_idle(to);
        Push::Full
    }

    /// A link of ours is to be read, as it has ended or may have.
    fn activate(&mut self, peer: PeerId) {
        if let Some(link) = self.peers.link(peer).filter(|link| !link.in_active) {
            link.in_active = true;
            link.idle = 0;
            self.active.push(peer);
        }
    }

    fn note_unsent(&mut self, peer: PeerId) {
        if let Some(link) = self.peers.link(peer).filter(|link| !link.in_unsent) {
            link.in_unsent = true;
            self.unsent.push(peer);
        }
    }

    /// What was gathered leaves. Who waits for that is told by the next poll.
    fn flush_links(&mut self) {
        let peers = &mut self.peers;
        self.unsent.retain(|number| {
            peers.link(*number).is_some_and(|link| {
                link.flush();
                link.in_unsent = link.broken || !link.out.told.is_empty() || !link.out.is_empty() && !link.out.blocked;
                link.in_unsent
            })
        });
    }

    /// What was gathered leaves; who waits for that is told.
    fn flush_unsent<S: Sink>(&mut self, sink: &mut S) {
        let mut at = 0;
        while let Some(peer) = self.unsent.get(at).copied() {
            let mut failed = false;
            let stays = self.peers.link(peer).is_some_and(|link| {
                link.flush();
                link.out.told.drain(..).for_each(|token| sink.sent(token, Ok(())));
                failed = link.broken;
                link.in_unsent = !link.out.is_empty() && !link.out.blocked && !failed;
                link.in_unsent
            });
            if failed {
                self.activate(peer);
            }
            if stays {
                at += 1;
            } else {
                self.unsent.swap_remove(at);
            }
        }
    }
}

impl Transport for TcpTransport {
    const PUSHES_LATER: bool = true;

    fn limits(&self) -> Limits {
        self.config.limits()
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        let number = self.peers.number(address)?;
        if let Some(peer) = self.peers.get_mut(number).filter(|peer| *peer.address == *self.own) {
            peer.is_self = true;
        }
        Some(number)
    }

    #[cold]
    fn connect(&mut self, to: PeerId) -> Contact {
        if self.peers.wants_link(to) {
            self.dial_if_idle(to);
        }
        self.peers.contact(to, clock::monotonic_ms())
    }

    fn is_crowded(&self) -> bool {
        self.peers.is_crowded()
    }

    fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        self.peers.reuse(held)
    }

    #[inline(always)]
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        if !self.is_ours() || body.len() > config::MAX_BODY {
            return Push::Gone;
        }
        let poll = if self.armed { 0 } else { self.polls };
        let Some(link) = self.peers.link(to) else {
            return self.push_unconnected(to, header, &body);
        };
        let pushed = link.push(header, &body, notice, poll, self.flush_follows);
        if link.broken {
            if link.has_news() {
                self.activate(to);
                self.watched.mark();
            }
        } else if !(link.in_unsent || link.out.is_empty() && link.out.told.is_empty()) {
            self.note_unsent(to);
            if !self.flush_follows {
                self.watched.mark();
            }
        }
        pushed
    }

    fn gather(&mut self) {
        self.flush_follows = true;
    }

    #[inline]
    fn flush(&mut self) {
        self.flush_follows = false;
        if !self.unsent.is_empty() {
            self.flush_links();
            if !self.unsent.is_empty() {
                self.watched.mark();
            }
        }
    }

    fn holds_back(&mut self, to: PeerId) -> bool {
        self.peers.link(to).is_some_and(|link| !link.out.is_empty())
    }

    fn has_unsent(&self) -> bool {
        !(self.unsent.is_empty() && self.self_queue.is_empty()) || self.peers.any_link(|link| !link.out.is_empty())
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        if let Some(link) = self.peers.link(peer) {
            link.cut();
            self.activate(peer);
            self.watched.mark();
        }
        true
    }

    fn look_everywhere(&mut self) {
        self.has_found = true;
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        if !self.is_ours() {
            return 0;
        }
        self.polls += 1;
        let found = self.watched.begin_poll();
        self.flush_follows = true;
        let slept = core::mem::replace(&mut self.armed, false);
        if !self.unsent.is_empty() {
            self.flush_unsent(sink);
        }
        let mut done = self.read_active(sink, budget);
        if !self.self_queue.is_empty() {
            done += self.deliver_own(sink, budget.saturating_sub(done));
        }
        if found || slept || self.is_look_due() {
            done += self.look_and_read(sink, budget.saturating_sub(done));
        }
        if self.desk.has_arrivals.load(Ordering::Acquire) {
            self.receive_arrivals(sink);
        }
        if !self.peers.ended.is_empty() {
            self.tell_ends(sink);
        }
        if self.watched.is_watched() {
            self.after_watched_poll();
        }
        self.has_found = done > 0;
        done
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.is_self)
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        None
    }

    fn get(&mut self, _: PeerId, _: &Remote, _: &UserIov, _: usize, _: usize, _: Option<Token>) -> Get {
        Get::Unsupported
    }
}
