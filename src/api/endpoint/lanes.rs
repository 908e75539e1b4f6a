//! Several transports as one: so one engine, with one set of posted receives, serves several endpoints.
//!
//! Every transport is a lane, added and closed while the others work. A peer is one number per lane it is met on, so an
//! answer leaves through the lane that the question came by; all numbers of one address are one source to matching.
//! A peer's address can only be asked for between polls: its first packet is refused once, and taken in the next look.

use super::Wire;
use crate::engine::op::{Access, RemotePart};
use crate::engine::port::{
    Body, ExposedName, Get, Limits, PeerId, Placement, Push, Recall, Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;
use std::sync::Arc;

/// A peer of one lane, as all know it.
#[derive(Clone, Copy)]
struct Known {
    id: PeerId,
    source: PeerId,
    /// The engine was told of its source, in this life.
    met: bool,
}

struct Lane<T> {
    /// None: closed.
    transport: Option<T>,
    /// By the lane's own number.
    known: Vec<Option<Known>>,
}

/// What a number stands for.
#[derive(Clone, Copy)]
enum End {
    /// An address, by whatever lane.
    Source,
    Peer {
        lane: usize,
        number: PeerId,
    },
    /// Free for another.
    Nothing,
}

pub struct Lanes<T> {
    limits: Limits,
    lanes: Vec<Lane<T>>,
    ends: Vec<End>,
    sources: HashMap<Box<[u8]>, PeerId>,
    /// Peers of closed lanes that the engine has not been told of.
    over: Vec<Known>,
    /// Peers met in a poll that have no number yet; empty between polls.
    fresh: Vec<PeerId>,
    /// Peers of closed lanes whose end was told.
    past: Vec<PeerId>,
    /// Numbers that stand for nothing.
    free: Vec<PeerId>,
}

impl<T: Wire> Lanes<T> {
    /// `limits`: what all transports to come have.
    pub fn new(limits: Limits) -> Lanes<T> {
        Lanes {
            limits,
            lanes: Vec::new(),
            ends: Vec::new(),
            sources: HashMap::new(),
            over: Vec::new(),
            fresh: Vec::new(),
            past: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Adds a lane. Says its number, which is never used again.
    pub fn add(&mut self, transport: T) -> usize {
        self.lanes.push(Lane {
            transport: Some(transport),
            known: Vec::new(),
        });
        self.lanes.len() - 1
    }

    /// Its transport goes now; the engine is told of the end of its peers with the next poll.
    pub fn close(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.transport = None;
            self.over.extend(lane.known.drain(..).flatten());
        }
    }

    pub fn transport(&self, lane: usize) -> Option<&T> {
        self.lanes.get(lane)?.transport.as_ref()
    }

    pub fn transport_mut(&mut self, lane: usize) -> Option<&mut T> {
        self.lanes.get_mut(lane)?.transport.as_mut()
    }

    /// Peers that are met on this lane may reach these regions. Once only. Not by `Transport::publish_regions`: each lane
    /// is another endpoint's, which may be no target, or count what peers do.
    pub fn show_by(&mut self, lane: usize, regions: &Arc<Regions>, endpoint: u64) {
        if let Some(transport) = self.transport_mut(lane) {
            transport.publish_regions(regions, endpoint);
        }
    }

    pub fn wake_fd(&self, lane: usize) -> Option<RawFd> {
        self.transport(lane)?.wake_fd()
    }

    /// Wakes whoever sleeps for any lane.
    pub fn wake(&self) {
        self.lanes
            .iter()
            .filter_map(|lane| lane.transport.as_ref())
            .for_each(T::wake);
    }

    /// The peer at an address, to be sent to by one lane.
    pub fn peer_by(&mut self, lane: usize, address: &[u8]) -> Option<PeerId> {
        let number = self.transport_mut(lane)?.peer(address)?;
        self.know(lane, number).map(|known| known.id)
    }

    /// The lane that a peer is met on.
    #[inline]
    pub fn lane_of(&self, peer: PeerId) -> Option<usize> {
        match self.ends.get(peer as usize)? {
            End::Peer { lane, .. } => Some(*lane),
            End::Source | End::Nothing => None,
        }
    }

    pub fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        match self.ends.get(peer as usize)? {
            End::Peer { lane, number } => self.transport(*lane)?.address_of(*number),
            End::Source | End::Nothing => None,
        }
    }

    /// The transport behind a peer, and the peer's number there.
    #[inline]
    fn behind(&mut self, peer: PeerId) -> Option<(&mut T, PeerId)> {
        match *self.ends.get(peer as usize)? {
            End::Peer { lane, number } => Some((self.transport_mut(lane)?, number)),
            End::Source | End::Nothing => None,
        }
    }

    fn add_end(&mut self, end: End) -> Option<PeerId> {
        if let Some(id) = self.free.pop() {
            *self.ends.get_mut(id as usize)? = end;
            return Some(id);
        }
        let id = PeerId::try_from(self.ends.len()).ok()?;
        self.ends.push(end);
        Some(id)
    }

    fn know(&mut self, lane: usize, number: PeerId) -> Option<Known> {
        let at = number as usize;
        if let Some(known) = self.lanes.get(lane)?.known.get(at).copied().flatten() {
            return Some(known);
        }
        let address = self.transport(lane)?.address_of(number)?;
        let base = T::base_address(address).to_vec();
        let source = self.source(&base)?;
        let id = self.add_end(End::Peer { lane, number })?;
        let known = Known { id, source, met: false };
        let table = &mut self.lanes.get_mut(lane)?.known;
        if table.len() <= at {
            table.resize(at + 1, None);
        }
        *table.get_mut(at)? = Some(known);
        Some(known)
    }

    fn source(&mut self, address: &[u8]) -> Option<PeerId> {
        if let Some(known) = self.sources.get(address) {
            return Some(*known);
        }
        let id = self.add_end(End::Source)?;
        self.sources.insert(address.into(), id);
        Some(id)
    }
}

/// The engine, as the transport of one lane sees it.
struct Tap<'a, S> {
    sink: &'a mut S,
    known: &'a mut [Option<Known>],
    fresh: &'a mut Vec<PeerId>,
}

impl<S: Sink> Sink for Tap<'_, S> {
    fn met(&mut self, peer: PeerId, _source: PeerId) {
        if let Some(Some(known)) = self.known.get_mut(peer as usize) {
            known.met = true;
            self.sink.met(known.id, known.source);
        }
    }

    #[inline]
    fn take(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        match self.known.get(from as usize) {
            Some(Some(known)) if known.met => self.sink.take(known.id, header, body),
            _ => false,
        }
    }

    #[inline]
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        let Some(Some(known)) = self.known.get_mut(from as usize) else {
            self.fresh.push(from);
            return Placement::Refuse;
        };
        if !known.met {
            known.met = true;
            self.sink.met(known.id, known.source);
        }
        self.sink.place(known.id, header, len)
    }

    #[inline]
    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        self.sink.placed(token, buffer);
    }

    fn exposed_memory(&mut self, peer: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        let known = self.known.get(peer as usize).copied().flatten()?;
        self.sink.exposed_memory(known.id, name, access)
    }

    fn finished(&mut self, token: Token, ok: bool) {
        self.sink.finished(token, ok);
    }

    fn gone(&mut self, peer: PeerId) {
        if let Some(Some(known)) = self.known.get_mut(peer as usize) {
            known.met = false;
            // Receives that name it end too, though it may never have sent anything.
            self.sink.met(known.id, known.source);
            self.sink.gone(known.id);
        }
    }
}

impl<T: Wire> Transport for Lanes<T> {
    fn limits(&self) -> Limits {
        self.limits
    }

    /// A source: whoever has this address, by whatever lane. It cannot be sent to.
    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.source(address)
    }

    fn is_crowded(&self) -> bool {
        let mut transports = self.lanes.iter().filter_map(|lane| lane.transport.as_ref());
        transports.any(T::is_crowded)
    }

    fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let (mut gone, kept) = self.past.drain(..).partition::<Vec<_>, _>(|id| !held(*id));
        self.past = kept;
        for lane in &mut self.lanes {
            let Some(transport) = &mut lane.transport else { continue };
            let known = &lane.known;
            let known = |number: PeerId| known.get(number as usize).copied().flatten();
            for number in transport.forget(&|number| known(number).is_some_and(|known| held(known.id))) {
                let known = lane.known.get_mut(number as usize).and_then(Option::take);
                gone.extend(known.map(|known| known.id));
            }
        }
        // A source is needed for as long as a peer has it.
        let known = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.known)
            .flatten()
            .chain(&self.over);
        let used: HashSet<PeerId> = known.map(|known| known.source).collect();
        self.sources.retain(|_, id| {
            let stays = held(*id) || used.contains(id);
            gone.extend((!stays).then_some(*id));
            stays
        });
        for id in &gone {
            if let Some(end) = self.ends.get_mut(*id as usize) {
                *end = End::Nothing;
            }
        }
        self.free.extend(&gone);
        gone
    }

    #[inline]
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>) -> Push {
        match self.behind(to) {
            Some((transport, number)) => transport.push(number, header, body),
            None => Push::Gone,
        }
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        while let Some(known) = self.over.pop() {
            // It lives, only not for us here: receives that name it may still be filled by another lane.
            sink.met(known.id, known.id);
            sink.gone(known.id);
            self.past.push(known.id);
        }
        let mut done = 0;
        for at in 0..self.lanes.len() {
            done += self.poll_lane(at, sink, budget);
        }
        done
    }

    fn expose(&self, to: PeerId, iov: &UserIov, name: ExposedName) -> Remote {
        let nothing = Remote {
            bytes: [0; Remote::SIZE],
        };
        let Some(End::Peer { lane, number }) = self.ends.get(to as usize) else {
            return nothing;
        };
        self.transport(*lane)
            .map_or(nothing, |transport| transport.expose(*number, iov, name))
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
        match self.behind(from) {
            Some((transport, number)) => transport.get(number, remote, local, at, len, token),
            None => Get::Gone,
        }
    }

    #[inline(always)]
    fn reach<R>(
        &mut self,
        to: PeerId,
        part: &RemotePart,
        wanted: Rights,
        work: impl FnOnce(UserBuf) -> R,
    ) -> Option<R> {
        let (transport, number) = self.behind(to)?;
        transport.reach(number, part, wanted, work)
    }

    fn reach_all<R>(
        &mut self,
        to: PeerId,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        let (transport, number) = self.behind(to)?;
        transport.reach_all(number, parts, wanted, work)
    }

    fn copy(&mut self, to: PeerId, part: &RemotePart, local: &UserIov, access: Access, token: Token) -> Get {
        match self.behind(to) {
            Some((transport, number)) => transport.copy(number, part, local, access, token),
            None => Get::Unsupported,
        }
    }

    fn poll_mark(&self, to: PeerId) -> u64 {
        match self.ends.get(to as usize) {
            Some(End::Peer { lane, number }) => self
                .transport(*lane)
                .map_or(0, |transport| transport.poll_mark(*number)),
            Some(End::Source | End::Nothing) | None => 0,
        }
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        let (transport, number) = self.behind(to)?;
        transport.recall(number, judge)
    }
}

impl<T: Wire> Lanes<T> {
    fn poll_lane<S: Sink>(&mut self, at: usize, sink: &mut S, budget: usize) -> usize {
        let mut done = 0;
        loop {
            let Some(lane) = self.lanes.get_mut(at) else {
                return done;
            };
            let Some(transport) = &mut lane.transport else {
                return done;
            };
            let mut tap = Tap {
                sink,
                known: &mut lane.known,
                fresh: &mut self.fresh,
            };
            done += transport.poll(&mut tap, budget);
            if self.fresh.is_empty() {
                return done;
            }
            while let Some(number) = self.fresh.pop() {
                if self.know(at, number).is_none() {
                    return done;
                }
            }
        }
    }
}
