//! Several transports as one, so that one engine, with one set of posted receives, serves several endpoints.
//!
//! Every transport is a lane, added and closed while the others work. A peer has one number for each lane it is met on,
//! so a reply leaves on the lane that the request came by; to matching, all numbers of one address are one source.
//! A peer's address can only be asked for between polls: its first packet is refused once, and accepted in the next
//! poll. Knows neither queues nor locks. Called by the engine of `shared_rx`.
//!
//! - `past`: what is kept of closed lanes and lost peers, and when it is forgotten.

mod past;
#[cfg(test)]
mod tests;

use super::EndpointTransport;
use super::connection::{self, ConnectionEvent};
use crate::engine::op::RemotePart;
use crate::engine::port::tap::{Known, KnownPeers, Tap};
use crate::engine::port::{
    self, Around, Body, Contact, Exposed, ExposedName, Get, Limits, Loss, Notice, PeerId, PollMark, Push, Recall,
    Remote, Sink, Token, Transport,
};
use crate::engine::wire::Header;
use crate::util::ready::{Ready, ReadyList};
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

struct Lane<T> {
    /// None: the lane is closed.
    transport: Option<T>,
    /// By the lane transport's own number of the peer.
    known: KnownPeers,
    /// Polled only when its mark was set.
    watched: Option<Arc<Ready>>,
}

/// What a number stands for.
#[derive(Clone, Copy)]
enum NumberOf {
    /// A source: an address, on whatever lane it is met. Only for matching; nothing can be sent to it.
    Source,
    Peer {
        lane: usize,
        number: PeerId,
    },
    /// Free, to be given again.
    Nothing,
}

pub(super) struct Lanes<T> {
    limits: Limits,
    far_limits: Limits,
    lanes: Vec<Lane<T>>,
    numbers: Vec<NumberOf>,
    sources: HashMap<Box<[u8]>, PeerId>,
    /// Peers of closed lanes; the engine hears of their end in the next poll.
    over: Vec<Known>,
    /// Peers met in a poll that have no number yet; empty between polls.
    fresh: Vec<PeerId>,
    /// Peers that were lost in a poll; empty between polls.
    lost: Vec<PeerId>,
    /// Peers of closed lanes whose end the engine has heard of, and how many the last `forget` left.
    past: Vec<PeerId>,
    past_left: usize,
    /// Closed lanes of whose peers nothing is known any more, to be used again.
    free_lanes: Vec<usize>,
    /// Numbers to be given again.
    free: Vec<PeerId>,
    /// Lanes that are polled each time.
    polled: Vec<usize>,
    /// Of the others, those that are to be polled next, and those whose connections may have news since.
    ready: Arc<ReadyList>,
    looked_at: Vec<u64>,
    any_watched: bool,
    any_connected: bool,
}

impl<T: EndpointTransport> Lanes<T> {
    /// The limits are those of every transport that will be added.
    pub(super) fn new(limits: Limits, far_limits: Limits) -> Lanes<T> {
        Lanes {
            limits,
            far_limits,
            lanes: Vec::new(),
            numbers: Vec::new(),
            sources: HashMap::new(),
            over: Vec::new(),
            fresh: Vec::new(),
            lost: Vec::new(),
            past: Vec::new(),
            past_left: 0,
            free_lanes: Vec::new(),
            free: Vec::new(),
            polled: Vec::new(),
            ready: ReadyList::new(None),
            looked_at: Vec::new(),
            any_watched: false,
            any_connected: false,
        }
    }

    /// Adds a lane and returns its number, which no peer that is known has.
    pub(super) fn add(&mut self, mut transport: T) -> usize {
        self.any_connected |= transport.connection().is_some();
        let lane = Lane {
            transport: Some(transport),
            known: Vec::new(),
            watched: None,
        };
        let at = self.free_lanes.pop().unwrap_or(self.lanes.len());
        match self.lanes.get_mut(at) {
            Some(free) => *free = lane,
            None => self.lanes.push(lane),
        }
        self.polled.push(at);
        at
    }

    /// Drops the lane's transport; the engine hears of the end of its peers in the next poll.
    pub(super) fn close(&mut self, lane: usize) {
        self.polled.retain(|polled| *polled != lane);
        if let Some(end) = self.lanes.get_mut(lane) {
            end.transport = None;
            self.over.extend(end.known.drain(..).flatten());
            if let Some(mark) = end.watched.take() {
                mark.leave(&self.ready, lane as u64);
            }
        }
    }

    /// From now on the lane is polled when this mark was set.
    pub(super) fn watch(&mut self, lane: usize, mark: &Arc<Ready>) {
        if let Some(watched) = self.lanes.get_mut(lane) {
            watched.watched = Some(mark.clone());
            self.any_watched = true;
            self.polled.retain(|polled| *polled != lane);
            mark.join(&self.ready, lane as u64);
        }
    }

    /// The next poll looks at this lane in any case.
    pub(super) fn look_at(&self, lane: usize) {
        self.ready.add(lane as u64);
    }

    fn open(&self) -> impl Iterator<Item = &T> {
        self.lanes.iter().filter_map(|lane| lane.transport.as_ref())
    }

    fn open_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.lanes.iter_mut().filter_map(|lane| lane.transport.as_mut())
    }

    pub(super) fn transport(&self, lane: usize) -> Option<&T> {
        self.lanes.get(lane)?.transport.as_ref()
    }

    pub(super) fn transport_mut(&mut self, lane: usize) -> Option<&mut T> {
        self.lanes.get_mut(lane)?.transport.as_mut()
    }

    /// Peers that are met on this lane may reach these regions. Once only. Not by `Transport::publish_regions`: each
    /// lane is another endpoint's, which may be no target, or count what peers do.
    pub(super) fn show_by(&mut self, lane: usize, regions: &Arc<Regions>, endpoint: u64) {
        if let Some(transport) = self.transport_mut(lane) {
            transport.publish_regions(regions, endpoint);
        }
    }

    pub(super) fn wake_fd(&self, lane: usize) -> Option<RawFd> {
        self.transport(lane)?.wake_fd()
    }

    /// Wakes sleepers of every lane.
    pub(super) fn wake(&self) {
        self.open().for_each(T::wake);
    }

    /// The peer at an address, for sending on one lane.
    pub(super) fn peer_by(&mut self, lane: usize, address: &[u8]) -> Option<PeerId> {
        let number = self.transport_mut(lane)?.peer(address)?;
        self.know(lane, number).map(|known| known.id)
    }

    /// The lane that a peer is met on.
    #[inline]
    pub(super) fn lane_of(&self, peer: PeerId) -> Option<usize> {
        match self.numbers.get(peer as usize)? {
            NumberOf::Peer { lane, .. } => Some(*lane),
            NumberOf::Source | NumberOf::Nothing => None,
        }
    }

    pub(super) fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        match self.numbers.get(peer as usize)? {
            NumberOf::Peer { lane, number } => self.transport(*lane)?.address_of(*number),
            NumberOf::Source | NumberOf::Nothing => None,
        }
    }

    /// The transport behind a peer, and the peer's number there.
    #[inline]
    fn behind(&mut self, peer: PeerId) -> Option<(&mut T, PeerId)> {
        match *self.numbers.get(peer as usize)? {
            NumberOf::Peer { lane, number } => Some((self.transport_mut(lane)?, number)),
            NumberOf::Source | NumberOf::Nothing => None,
        }
    }

    /// Calls `hear` with what has become of the lanes' connections, and the engine's number for the peer.
    #[inline]
    pub(super) fn hear_connections(&mut self, mut hear: impl FnMut(usize, ConnectionEvent, Option<PeerId>)) {
        if !self.any_connected {
            return;
        }
        let mut looked_at = core::mem::take(&mut self.looked_at);
        let marked = looked_at.iter().map(|lane| *lane as usize);
        let polled = core::mem::take(&mut self.polled);
        for at in polled.iter().copied().chain(marked) {
            while let Some(event) = self.transport_mut(at).and_then(|lane| lane.connection()?.event()) {
                let only = self.know(at, connection::PEER).map(|known| known.id);
                hear(at, event, only);
            }
        }
        looked_at.clear();
        (self.polled, self.looked_at) = (polled, looked_at);
    }

    fn add_number(&mut self, end: NumberOf) -> Option<PeerId> {
        if let Some(id) = self.free.pop() {
            *self.numbers.get_mut(id as usize)? = end;
            return Some(id);
        }
        let id = PeerId::try_from(self.numbers.len()).ok()?;
        self.numbers.push(end);
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
        let id = self.add_number(NumberOf::Peer { lane, number })?;
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
        let id = self.add_number(NumberOf::Source)?;
        self.sources.insert(address.into(), id);
        Some(id)
    }
}

impl<T: EndpointTransport> Transport for Lanes<T> {
    const PUSHES_LATER: bool = T::PUSHES_LATER;
    const TWO_WAYS: bool = T::TWO_WAYS;

    fn limits(&self) -> Limits {
        self.limits
    }

    fn far_limits(&self) -> Limits {
        self.far_limits
    }

    fn is_far(&mut self, to: PeerId) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.is_far(number))
    }

    /// Returns a source, for matching on any lane; it cannot be sent to.
    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.source(address)
    }

    fn is_crowded(&self) -> bool {
        self.has_much_past() || self.open().any(T::is_crowded)
    }

    fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        self.forget_unheld(held)
    }

    #[inline]
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        match self.behind(to) {
            Some((transport, number)) => transport.push(number, header, body, notice),
            None => Push::Gone,
        }
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        match self.numbers.get(peer as usize) {
            Some(&NumberOf::Peer { lane, number }) => {
                self.transport(lane).is_some_and(|behind| behind.is_itself(number))
            }
            Some(NumberOf::Source | NumberOf::Nothing) | None => false,
        }
    }

    fn is_sooner_sent(&mut self, to: PeerId, len: usize, around: Around) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.is_sooner_sent(number, len, around))
    }

    fn is_held_up(&mut self, to: PeerId) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.is_held_up(number))
    }

    fn awaits_credit(&mut self, to: PeerId) {
        if let Some((transport, number)) = self.behind(to) {
            transport.awaits_credit(number);
        }
    }

    fn came_late(&mut self, to: PeerId) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.came_late(number))
    }

    fn connect(&mut self, to: PeerId) -> Contact {
        match self.behind(to) {
            Some((transport, number)) => transport.connect(number),
            None => Contact::NoWay,
        }
    }

    fn holds_back(&mut self, to: PeerId) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.holds_back(number))
    }

    fn has_unsent(&self) -> bool {
        self.open().any(T::has_unsent)
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        // The transport of a closed lane is gone, and with it all that it had.
        self.behind(peer)
            .is_none_or(|(transport, number)| transport.abandon(number))
    }

    fn gather(&mut self) {
        self.open_mut().for_each(T::gather);
    }

    fn flush(&mut self) {
        self.open_mut().for_each(T::flush);
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        while let Some(known) = self.over.pop() {
            // The peer lives, only this lane is closed: with itself as source, receives that name its address stay
            // posted, as another lane may still fill them.
            sink.met(known.id, known.id);
            sink.gone(known.id, Loss::Closed);
            self.past.push(known.id);
        }
        let mut done = 0;
        for place in 0..self.polled.len() {
            if let Some(at) = self.polled.get(place) {
                done += self.poll_lane(*at, sink, budget);
            }
        }
        if self.any_watched {
            done += self.poll_marked(sink, budget);
        }
        done
    }

    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        let (transport, number) = self.behind(to)?;
        transport.expose(number, iov, name)
    }

    fn unexpose(&mut self, to: PeerId, id: u64) {
        if let Some((transport, number)) = self.behind(to) {
            transport.unexpose(number, id);
        }
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

    fn copy(&mut self, to: PeerId, copy: &port::CopyOp<'_>, token: Token) -> Get {
        match self.behind(to) {
            Some((transport, number)) if !T::ONE_SIDED => transport.copy(number, copy, token),
            _ => Get::Unsupported,
        }
    }

    fn takes_writes(&mut self, to: PeerId, part: &RemotePart) -> bool {
        self.behind(to)
            .is_some_and(|(transport, number)| transport.takes_writes(number, part))
    }

    fn poll_mark(&self, to: PeerId) -> PollMark {
        let Some(NumberOf::Peer { lane, number }) = self.numbers.get(to as usize) else {
            return PollMark::default();
        };
        self.transport(*lane)
            .map_or_else(PollMark::default, |transport| transport.poll_mark(*number))
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        let (transport, number) = self.behind(to)?;
        transport.recall(number, judge)
    }
}

impl<T: EndpointTransport> Lanes<T> {
    #[cold]
    fn poll_marked<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut names = Vec::new();
        self.ready.take(&mut names);
        let done = names.iter().map(|at| self.poll_lane(*at as usize, sink, budget)).sum();
        self.looked_at.append(&mut names);
        done
    }

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
                lost: &mut self.lost,
                forgets: false,
            };
            done += transport.poll(&mut tap, budget);
            self.lost.clear();
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
