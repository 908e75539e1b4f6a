//! Packets through reliable queue pairs of an RDMA device: what the engine needs to run over a card.
//!
//! **A connection.** Each endpoint listens at an address of librdmacm's. The first push to a peer dials it (`dialing`)
//! and answers `Full` until both ends have agreed (`handshake`, `arrivals`). Two peers have one connection (`link`),
//! whoever made it; the rules are those of `transport::connecting`.
//!
//! **A packet** is header and body in one message, from a registered buffer (`buffers`) or within the request, into one
//! of the receives that all connections share. Credit keeps a peer from sending what there is no receive for (`link`),
//! so that the device never has to send anything again for want of one. `receive` moves bodies to their places at once.
//!
//! **A long message** is read by its receiver straight from the sender's memory into the application's (`fetch`). A
//! read or write of a peer's registered memory is the devices' work too, if both know it (`one_sided`), and so are
//! `atomics` where that was chosen, over a connection of the endpoint with itself too (`to_itself`). All are made of
//! `steps`, with keys from `local_keys`, and what is registered for them is kept in a `verbs::cache` if there is one.
//!
//! **The end.** An endpoint that closes says so behind all that it has sent (`closing`). A connection that ends
//! otherwise is broken; the peer is dialed to find out whether it lives (`ends`). What peers say is checked; nonsense
//! ends their connection and nothing else.
//!
//! `seam` is all that is asked of the device. `device` answers with `sys::rdma`, in tests a stand-in. Knows
//! `engine::port`, `util` and `sys`. Called by the engine, and by `provider` to open and to sleep.

mod arrivals;
mod atomics;
mod attempt;
mod buffers;
mod closing;
mod config;
mod device;
mod dialing;
mod domain_memory;
mod ends;
mod fetch;
mod handshake;
mod link;
mod local_keys;
mod one_sided;
mod receive;
mod seam;
mod send;
mod sleeping;
mod steps;
mod to_itself;

#[cfg(test)]
mod tests;

use crate::engine::port::{
    Amo, Body, Contact, CopyOp, Exposed, ExposedName, Get, Limits, Notice, OneSided, PeerId, Push, Remote, Sink, Token,
    Transport,
};
use crate::engine::wire::Header;
use crate::sys::clock;
use crate::sys::forks::OfProcess;
use crate::sys::rdma::{Access, Done, EventKind};
use crate::sys::{resolve, shared};
use crate::transport::connecting::{SelfQueue, address};
use crate::util::regions::Regions;
use crate::util::user::UserIov;
use attempt::Peers;
use buffers::Buffers;
use fetch::Exposures;
use seam::Request;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use to_itself::ToItself;

pub use config::Config;
pub use device::Card;
pub use domain_memory::DomainMemory;
pub use seam::Device;

/// While nothing is under way, every how manieth poll looks for connections' news, which is a system call.
const LOOK_EVERY: u64 = 64;

/// An endpoint's transport. The fields that a device works on come first, in the order in which they must end.
pub struct Reliable<D: Device> {
    peers: OfProcess<Peers<D::Wire>>,
    device: OfProcess<D>,
    receives: OfProcess<Buffers>,
    sends: OfProcess<Buffers>,
    exposures: OfProcess<Exposures>,
    memory: DomainMemory,
    /// Peers' devices may work on what the program has registered.
    is_open: bool,
    config: Config,
    place: SocketAddr,
    /// The same, as peers are known by.
    own: Vec<u8>,
    /// Drawn at random, to tell this endpoint from others that have, or had, its address.
    instance: u64,
    /// Receives that were posted, and those of them that are no connection's.
    posted: usize,
    spare: usize,
    free_sends: Vec<u32>,
    made_sends: usize,
    /// Whose queue pair has this number.
    pairs: HashMap<u32, PeerId>,
    /// Peers with packets that were not delivered.
    ready: Vec<PeerId>,
    self_queue: SelfQueue,
    to_itself: Option<ToItself>,
    /// What was found on the way to sleep.
    found: VecDeque<Done>,
    news: Vec<u64>,
    visitors: VecDeque<Request<D::Wire>>,
    troubles: VecDeque<EventKind>,
    /// Nothing more comes from its device.
    is_lost: bool,
    polls: u64,
    armed: bool,
    told_shortage: bool,
    told_memory: bool,
    told_differing: bool,
}

impl<D: Device> Reliable<D> {
    /// On a device that listens.
    pub fn new(device: D, config: &Config) -> io::Result<Reliable<D>> {
        let place = device.place();
        let access = |local_write| Access {
            local_write,
            ..Access::default()
        };
        Ok(Reliable {
            peers: OfProcess::new(Peers::default()),
            receives: OfProcess::new(Buffers::new(config.buffer, access(true))),
            sends: OfProcess::new(Buffers::new(config.buffer, access(false))),
            exposures: OfProcess::new(Exposures::default()),
            memory: DomainMemory::default(),
            is_open: false,
            device: OfProcess::new(device),
            config: *config,
            own: address::of(&place),
            place,
            instance: config.instance.map_or_else(shared::random, Ok)?,
            posted: 0,
            spare: 0,
            free_sends: Vec::new(),
            made_sends: 0,
            pairs: HashMap::new(),
            ready: Vec::new(),
            self_queue: SelfQueue::default(),
            found: VecDeque::new(),
            news: Vec::new(),
            visitors: VecDeque::new(),
            troubles: VecDeque::new(),
            is_lost: false,
            polls: 0,
            armed: false,
            told_shortage: false,
            told_memory: false,
            told_differing: false,
            to_itself: None,
        })
    }

    /// Long transfers, and the device's reads and writes, find registrations there.
    pub fn set_memory(&mut self, memory: DomainMemory) {
        self.memory = memory;
    }

    pub fn memory(&self) -> &DomainMemory {
        &self.memory
    }

    /// As a socket address.
    pub fn local_address(&self) -> Vec<u8> {
        resolve::to_bytes(&self.place)
    }

    /// Where others find it.
    pub fn place(&self) -> SocketAddr {
        self.place
    }

    /// The address behind a number.
    pub fn address(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.get(peer).map(|peer| &*peer.address)
    }

    /// What the endpoint behind a number calls itself, once there was a connection with it.
    pub fn instance_of(&self, peer: PeerId) -> Option<u64> {
        self.peers.get(peer).and_then(|peer| peer.history.instance())
    }

    /// A connection of this peer has ended, or may have.
    fn note_end(&mut self, peer: PeerId) {
        let over = self
            .peers
            .get(peer)
            .and_then(|peer| peer.link.as_ref())
            .is_some_and(|link| link.end.is_some());
        if over {
            self.peers.note_end(peer);
        }
    }
}

impl<D: Device> Transport for Reliable<D> {
    const ONE_SIDED: bool = true;

    fn limits(&self) -> Limits {
        self.config.limits()
    }

    fn one_sided(&self) -> OneSided {
        match self.memory.regions {
            Some(_) => one_sided::devices_own(self.memory.atomics),
            None => OneSided::NONE,
        }
    }

    fn publish_regions(&mut self, regions: &Arc<Regions>, endpoint: u64) {
        if self.memory.regions.is_some() {
            self.is_open = true;
            self.device.publish(regions, endpoint);
        }
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        if !self.device.is_ours() {
            return Get::Gone;
        }
        self.transfer(to, copy, token)
    }

    fn amo(&mut self, to: PeerId, amo: &Amo<'_>, token: Token) -> Get {
        if !self.device.is_ours() {
            return Get::Gone;
        }
        self.execute(to, amo, token)
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        let number = self.peers.number(address::base(address))?;
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

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        if !self.device.is_ours() {
            return Push::Gone;
        }
        self.send_packet(to, header, &body)
    }

    fn has_unsent(&self) -> bool {
        !self.self_queue.is_empty()
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        let is_self = self.peers.get(peer).is_some_and(|peer| peer.is_self);
        let link = if is_self {
            self.to_itself.map(|ends| ends.out)
        } else {
            Some(peer)
        };
        link.is_none_or(|link| self.abandon_link(link))
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        if !self.device.is_ours() {
            return 0;
        }
        self.polls += 1;
        let slept = core::mem::replace(&mut self.armed, false);
        let drained = self.take_completions(sink, budget);
        let mut done = self.deliver_ready(sink, budget);
        if !self.self_queue.is_empty()
            && let Some(number) = self.peers.number(&self.own)
        {
            let budget = budget.saturating_sub(done);
            done += self.self_queue.deliver(number, number, sink, budget);
        }
        if slept || !self.peers.ways().is_empty() || self.polls % LOOK_EVERY == 0 {
            self.look(sink);
            self.memory.cache.iter().for_each(|cache| cache.settle());
        }
        if !self.peers.ended.is_empty() {
            self.tell_ends(sink, drained);
        }
        done
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.is_self)
    }

    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        self.expose_memory(to, iov, name)
    }

    fn unexpose(&mut self, _: PeerId, id: u64) {
        self.exposures.end(id);
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get {
        match token {
            Some(token) if self.device.is_ours() => self.fetch(from, remote, local, (at, len), token),
            // It would go on after the call.
            _ => Get::Unsupported,
        }
    }
}
