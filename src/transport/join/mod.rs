//! Two transports as one: peers that are near are reached by one of them, all others by the other.
//!
//! Each peer has one way, chosen when something is first sent to it, or comes from it the far way: the near one if that
//! connects, else the far one. So the packets to a peer keep their order, and nothing above knows of the two but
//! `Limits`, of which the far way may bear more. If only one of two peers can go the near way, each direction has its
//! own. When a peer is lost, the choice is open again; but whoever was near is on this machine, and looked for nowhere
//! else. While a connection is being made the far way, the near one may still be found: an endpoint opens both, one
//! after the other. A near way that takes time to connect may be found to lead nowhere after it was chosen
//! (`Naming::NEAR_MAY_FAIL`); then nothing has gone there yet, and the far one is taken. The engine's numbers are the
//! join's (`peers`), each of the two transports has its own (`side`); `choosing` finds a peer's way, and `turns` says
//! when the far way is polled, which costs a system call where the near one costs a look at memory.
//!
//! Knows `engine::port` and nothing of either transport: what their addresses look like says a `Naming`. Either may be
//! missing. Opened by `provider`.

mod choosing;
mod limits;
mod naming;
mod peers;
mod side;
#[cfg(test)]
mod tests;
mod turns;

use crate::engine::op::RemotePart;
use crate::engine::port::*;
use crate::engine::wire::Header;
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
pub use limits::joined;
pub use naming::Naming;
use peers::{Peers, Way};
use side::Side;
use std::collections::HashMap;
use std::sync::Arc;
use turns::Turns;

pub struct Join<N: Naming> {
    names: N,
    near: Option<Side<N::Near>>,
    far: Option<Side<N::Far>>,
    peers: Peers,
    turns: Turns,
    /// The far way was told to gather, pushed to or polled since its last flush.
    far_is_to_flush: bool,
    /// By the engine's name of what is exposed, if its end is to be told: on which way, and the transport's name.
    exposed: HashMap<u64, (Way, u64)>,
    last_exposed: u64,
    /// Peers that were lost in a poll. Empty between polls.
    lost: Vec<PeerId>,
}

impl<N: Naming> Join<N> {
    /// One of the two may be missing.
    pub fn new(names: N, near: Option<N::Near>, far: Option<N::Far>) -> Join<N> {
        Join {
            names,
            near: near.map(Side::new),
            far: far.map(Side::new),
            peers: Peers::default(),
            turns: Turns::new(N::LOOK_EVERY),
            far_is_to_flush: false,
            exposed: HashMap::new(),
            last_exposed: 0,
            lost: Vec::new(),
        }
    }

    pub fn names(&self) -> &N {
        &self.names
    }

    pub fn near(&self) -> Option<&N::Near> {
        self.near.as_ref().map(|side| &side.transport)
    }

    pub fn far(&self) -> Option<&N::Far> {
        self.far.as_ref().map(|side| &side.transport)
    }

    pub fn near_mut(&mut self) -> Option<&mut N::Near> {
        self.near.as_mut().map(|side| &mut side.transport)
    }

    pub fn far_mut(&mut self) -> Option<&mut N::Far> {
        self.far.as_mut().map(|side| &mut side.transport)
    }

    pub fn address(&self, peer: PeerId) -> Option<&[u8]> {
        self.peers.address(peer)
    }

    /// The near transport, if that is the way to this peer.
    #[inline(always)]
    fn near_to(&mut self, peer: PeerId) -> Option<(&mut N::Near, PeerId)> {
        match (self.peers.way(peer), &mut self.near) {
            (Way::Near(number), Some(near)) => Some((&mut near.transport, number)),
            _ => None,
        }
    }

    /// The far transport, if that is the way to this peer.
    #[inline]
    fn far_to(&mut self, peer: PeerId) -> Option<(&mut N::Far, PeerId)> {
        match (self.peers.way(peer), &mut self.far) {
            (Way::Far(number), Some(far)) => Some((&mut far.transport, number)),
            _ => None,
        }
    }

    /// Polls the near way again, as long as somebody is met there: what was refused for want of a number must not wait
    /// for news that do not come.
    #[cold]
    #[inline(never)]
    fn poll_near_again<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut done = 0;
        self.reopen_lost();
        while self.number_near() {
            let near = self.near.as_mut();
            done += near.map_or(0, |near| near.poll(sink, &mut self.lost, budget));
            self.reopen_lost();
        }
        done
    }

    /// Whoever was met the near way gets a number, by the address that the transport tells. Says whether anybody did.
    /// Who has no address here is a stranger: what it sent would be refused for ever, and nobody could sleep.
    fn number_near(&mut self) -> bool {
        let Some(near) = &mut self.near else { return false };
        let mut is_any = false;
        while let Some(number) = near.fresh.pop() {
            let Some(address) = self.names.met_near(&near.transport, number) else {
                near.transport.abandon(number);
                continue;
            };
            // Another number than the one to connect by is of an endpoint that had this address before.
            let there = self.names.near(&address);
            if there.and_then(|there| near.transport.peer(&there)) == Some(number) {
                self.peers
                    .met(&self.names, &address, Way::Near(number), &mut near.known);
            } else {
                self.peers.met_former(&self.names, &address, number, &mut near.known);
            }
            is_any |= peers::known(&near.known, number).is_some();
        }
        is_any
    }

    /// Polls the far way, and again as long as somebody is met there.
    #[cold]
    #[inline(never)]
    fn poll_far<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let Some(far) = &mut self.far else { return 0 };
        self.far_is_to_flush = true;
        if self.turns.has_found() {
            far.transport.look_everywhere();
        }
        let mut done = far.poll(sink, &mut self.lost, budget);
        self.reopen_lost();
        while self.number_far() {
            self.turns.far_is_used();
            let far = self.far.as_mut();
            done += far.map_or(0, |far| far.poll(sink, &mut self.lost, budget));
            self.reopen_lost();
        }
        self.turns.far_was_polled(done, N::now());
        done
    }

    /// As `number_near`.
    fn number_far(&mut self) -> bool {
        let Some(far) = &mut self.far else { return false };
        let mut is_any = false;
        while let Some(number) = far.fresh.pop() {
            let Some(address) = self.names.met_far(&far.transport, number) else {
                far.transport.abandon(number);
                continue;
            };
            self.peers.met(&self.names, &address, Way::Far(number), &mut far.known);
            is_any |= peers::known(&far.known, number).is_some();
        }
        is_any
    }

    /// The ways to peers that were lost are open again. What still comes another way is of a peer that the engine does
    /// not know; if nothing does, the end of that way is told nobody: by then the number may be that of a successor at
    /// the same address.
    #[cold]
    #[inline(never)]
    fn reopen_lost(&mut self) {
        for peer in self.lost.drain(..) {
            let (near, far) = self.peers.reopen(peer);
            if let (Some(number), Some(side)) = (near, &mut self.near) {
                peers::unknow(&mut side.known, number);
            }
            if let (Some(number), Some(side)) = (far, &mut self.far) {
                peers::unknow(&mut side.known, number);
            }
        }
    }
}

impl<N: Naming> Drop for Join<N> {
    fn drop(&mut self) {
        let (near, far) = self.peers.reached();
        self.names.ended(near, far);
    }
}

impl<N: Naming> Transport for Join<N> {
    const PUSHES_LATER: bool = N::Near::PUSHES_LATER || N::Far::PUSHES_LATER;
    const TWO_WAYS: bool = true;

    fn limits(&self) -> Limits {
        joined(self.near().map(N::Near::limits), self.far().map(N::Far::limits)).0
    }

    fn far_limits(&self) -> Limits {
        joined(self.near().map(N::Near::limits), self.far().map(N::Far::limits)).1
    }

    fn is_far(&mut self, to: PeerId) -> bool {
        matches!(self.settled(to), Way::Far(_))
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        self.peers.number(&self.names, address)
    }

    fn is_crowded(&self) -> bool {
        self.near().is_some_and(N::Near::is_crowded) || self.far().is_some_and(N::Far::is_crowded)
    }

    fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let near = self.near.as_mut().map(|side| side.forget(held));
        self.lost.extend(near.into_iter().flatten());
        self.reopen_lost();
        let far = self.far.as_mut().map(|side| side.forget(held));
        self.lost.extend(far.into_iter().flatten());
        self.reopen_lost();
        self.peers.forget(held)
    }

    #[inline(always)]
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        match self.near_to(to) {
            Some((near, number)) if !N::NEAR_MAY_FAIL => near.push(number, header, body, notice),
            // By value, so that on the near way both stay in registers.
            _ => match body {
                Body::User { iov, at, len } => self.push_elsewhere(to, *header, Some((*iov, at, len)), &[], notice),
                Body::Bytes(bytes) => self.push_elsewhere(to, *header, None, bytes, notice),
                Body::Empty => self.push_elsewhere(to, *header, None, &[], notice),
            },
        }
    }

    fn is_itself(&self, peer: PeerId) -> bool {
        match (self.peers.way(peer), &self.near, &self.far) {
            (Way::Near(number), Some(near), _) => near.transport.is_itself(number),
            (Way::Far(number), _, Some(far)) => far.transport.is_itself(number),
            _ => false,
        }
    }

    fn is_sooner_sent(&mut self, to: PeerId, len: usize, around: Around) -> bool {
        match self.near_to(to) {
            Some((near, number)) => near.is_sooner_sent(number, len, around),
            None => self
                .far_to(to)
                .is_some_and(|(far, number)| far.is_sooner_sent(number, len, around)),
        }
    }

    fn is_held_up(&mut self, to: PeerId) -> bool {
        match self.near_to(to) {
            Some((near, number)) => near.is_held_up(number),
            None => self.far_to(to).is_some_and(|(far, number)| far.is_held_up(number)),
        }
    }

    fn awaits_credit(&mut self, to: PeerId) {
        match self.near_to(to) {
            Some((near, number)) => near.awaits_credit(number),
            None => self
                .far_to(to)
                .into_iter()
                .for_each(|(far, number)| far.awaits_credit(number)),
        }
    }

    fn came_late(&mut self, to: PeerId) -> bool {
        match self.near_to(to) {
            Some((near, number)) => near.came_late(number),
            None => self.far_to(to).is_some_and(|(far, number)| far.came_late(number)),
        }
    }

    fn gather(&mut self) {
        if let Some(near) = self.near_mut() {
            near.gather();
        }
        if let Some(far) = self.far_mut() {
            far.gather();
            self.far_is_to_flush = true;
        }
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(near) = self.near_mut() {
            near.flush();
        }
        if self.far_is_to_flush {
            self.far_is_to_flush = false;
            if let Some(far) = self.far_mut() {
                far.flush();
            }
        }
    }

    fn holds_back(&mut self, to: PeerId) -> bool {
        match self.near_to(to) {
            Some((near, number)) => near.holds_back(number),
            None => self.far_to(to).is_some_and(|(far, number)| far.holds_back(number)),
        }
    }

    fn has_unsent(&self) -> bool {
        self.near().is_some_and(N::Near::has_unsent) || self.far().is_some_and(N::Far::has_unsent)
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        let (near, far) = self.peers.numbers(peer);
        let near = near.and_then(|number| Some(self.near_mut()?.abandon(number)));
        let far = far.and_then(|number| Some(self.far_mut()?.abandon(number)));
        near != Some(false) && far != Some(false)
    }

    fn look_everywhere(&mut self) {
        if let Some(near) = self.near_mut() {
            near.look_everywhere();
        }
        if let Some(far) = self.far_mut() {
            far.look_everywhere();
        }
        self.turns.far_is_next();
    }

    #[inline]
    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let (mut done, mut far_is_due) = (0, true);
        if let Some(near) = &mut self.near {
            done = near.poll(sink, &mut self.lost, budget);
            far_is_due = self.turns.is_far_due(done, N::now);
            if !near.fresh.is_empty() {
                done += self.poll_near_again(sink, budget);
            }
            if !self.lost.is_empty() {
                self.reopen_lost();
            }
        }
        if far_is_due {
            done += self.poll_far(sink, budget);
        }
        done
    }

    fn connect(&mut self, to: PeerId) -> Contact {
        match (self.settled(to), &mut self.near, &mut self.far) {
            (Way::Near(number), Some(near), _) => near.transport.connect(number),
            (Way::Far(number) | Way::Begun(number), _, Some(far)) => {
                self.turns.far_is_used();
                far.transport.connect(number)
            }
            _ => Contact::NoWay,
        }
    }

    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        let way = self.settled(to);
        let exposed = match (way, &mut self.near, &mut self.far) {
            (Way::Near(number), Some(near), _) => near.transport.expose(number, iov, name),
            (Way::Far(number), _, Some(far)) => far.transport.expose(number, iov, name),
            _ => None,
        }?;
        let Some(id) = exposed.id else {
            return Some(exposed);
        };
        // The peer may be reached another way when it is over.
        self.last_exposed += 1;
        self.exposed.insert(self.last_exposed, (way, id));
        Some(Exposed {
            id: Some(self.last_exposed),
            ..exposed
        })
    }

    fn unexpose(&mut self, _: PeerId, id: u64) {
        match (self.exposed.remove(&id), &mut self.near, &mut self.far) {
            (Some((Way::Near(number), id)), Some(near), _) => near.transport.unexpose(number, id),
            (Some((Way::Far(number), id)), _, Some(far)) => far.transport.unexpose(number, id),
            _ => {}
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
        let way = self.settled(from);
        // What a transport exposed is for the same one to fetch, and here the peer's way is not ours.
        if let (Some(_), Some(_)) = self.peers.numbers(from) {
            return Get::Unsupported;
        }
        match (way, &mut self.near, &mut self.far) {
            (Way::Near(number), Some(near), _) => near.transport.get(number, remote, local, at, len, token),
            (Way::Far(number), _, Some(far)) => far.transport.get(number, remote, local, at, len, token),
            _ => Get::Unsupported,
        }
    }

    // Direct access is the near way's: what is done there by its processor and by ours is done by one kind of
    // instruction, so atomics of near and far peers see each other. A card's would not, and its reads and writes are
    // asked for all peers or none, so those are left alone.

    fn publish_regions(&mut self, regions: &Arc<Regions>, endpoint: u64) {
        if let (false, Some(near)) = (N::Near::ONE_SIDED, self.near_mut()) {
            near.publish_regions(regions, endpoint);
        }
    }

    fn let_reads_pass(&mut self) {
        if let Some(near) = self.near_mut() {
            near.let_reads_pass();
        }
    }

    fn hide_regions(&mut self) {
        if let Some(near) = self.near_mut() {
            near.hide_regions();
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
        self.settled(to);
        let (near, number) = self.near_to(to)?;
        near.reach(number, part, wanted, work)
    }

    fn reach_all<R>(
        &mut self,
        to: PeerId,
        parts: &[RemotePart],
        wanted: Rights,
        work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        self.settled(to);
        let (near, number) = self.near_to(to)?;
        near.reach_all(number, parts, wanted, work)
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        self.settled(to);
        match self.near_to(to) {
            Some((near, number)) if !N::Near::ONE_SIDED => near.copy(number, copy, token),
            _ => Get::Unsupported,
        }
    }

    fn takes_writes(&mut self, to: PeerId, part: &RemotePart) -> bool {
        self.near_to(to)
            .is_some_and(|(near, number)| near.takes_writes(number, part))
    }

    fn poll_mark(&self, to: PeerId) -> PollMark {
        match (self.peers.way(to), &self.near) {
            (Way::Near(number), Some(near)) => near.transport.poll_mark(number),
            _ => PollMark::default(),
        }
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        let (near, number) = self.near_to(to)?;
        near.recall(number, judge)
    }
}
