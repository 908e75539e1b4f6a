//! What ends when a peer dies, cannot be reached, violates the protocol or loses its connection; and which peer numbers
//! may be reused.

use super::message::Landing;
use super::op::{CompletionLevel, Error, Failure, MessageKind, Report};
use super::outgoing::Stage;
use super::peer::{Detours, Peer};
use super::port::PeerId;
use super::rma_peer::RmaPeer;
use super::state::Core;
use crate::util::slab::Id;
use std::collections::HashSet;

impl Core {
    /// All peers that the engine still refers to.
    pub(super) fn peers_in_use(&mut self) -> HashSet<PeerId> {
        let mut named: HashSet<PeerId> = self.busy.iter().chain(&self.starved).copied().collect();
        named.extend(&self.awaiting_answers);
        named.extend(&self.newly_shunned);
        for (id, peer) in self.peers.iter().enumerate() {
            if !peer.is_idle(&self.config) {
                named.insert(id as PeerId);
            }
        }
        named.extend(self.outgoing.iter().map(|(_, outgoing)| outgoing.to));
        named.extend(self.arrivals.iter().map(|(_, message)| message.from));
        named.extend(self.streams.keys().map(|(from, _)| *from));
        for kind in MessageKind::ALL {
            let matcher = self.matcher(kind);
            named.extend(matcher.posted_sources());
            named.extend(matcher.unexpected_sources());
        }
        let sources: Vec<PeerId> = named.iter().map(|id| self.source(*id)).collect();
        named.extend(sources);
        named
    }

    /// The transport may give these numbers to other peers from now on.
    pub(super) fn forget_all(&mut self, peers: &[PeerId]) {
        for peer in peers {
            if let Some(peer) = self.peers.get_mut(*peer as usize) {
                *peer = Peer::new(&self.config);
            }
        }
    }

    /// A peer violated the protocol. Its later packets cannot be trusted, so it is treated as dead until the transport
    /// reports it gone. What waits for it ends when the transport has let go of it (`shunned_ends`), after this poll.
    /// One that is being lost only answers what has failed meanwhile.
    #[cold]
    pub(super) fn shun(&mut self, id: PeerId) {
        if self.peer(id).ending {
            return;
        }
        self.malformed += 1;
        let peer = self.peer(id);
        if !peer.detours.has(Detours::SHUNNED) {
            peer.detours.set(Detours::SHUNNED, true);
            self.newly_shunned.push(id);
            self.wake(id);
        }
    }

    pub(super) fn shunned_ends(&mut self, id: PeerId, report: &mut impl Report) {
        self.peer_gone(id, Error::Protocol, report);
        self.peer(id).detours.set(Detours::SHUNNED, true);
    }

    /// Fails everything that waits for a peer: operations to it, messages from it that have not arrived completely, and
    /// receives directed to it; but only a collective's if the connection broke, as the peer may connect again. Its
    /// complete unexpected messages can still be received. Its state is reset.
    #[cold]
    pub(super) fn peer_gone(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        let source = self.source(peer);
        self.context_gone(peer, error, report);
        // Other transmit contexts of the same scalable endpoint may still send to these receives.
        let others = self.peers.iter().enumerate().filter(|(id, _)| *id != peer as usize);
        if !others.map(|(_, other)| other.source).any(|other| other == Some(source)) {
            self.end_receives(source, error, report);
        }
    }

    /// The same, but receives that name it stay: those of which nothing was heard yet may still send to them.
    pub(super) fn context_gone(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        // Offers that were matched in this poll end with the peer's other messages.
        self.keep_matched_offers(report);
        self.drop_reads_of(peer);
        let rma = self.forget(peer);
        self.end_short_ops(peer, rma, error, report);
        self.end_outgoing_to(peer, error, report);
        self.end_messages(peer, error, report);
        let known = self.peer(peer);
        known.losses = known.losses.wrapping_add(1);
        known.last_loss = error;
    }

    /// Nothing more reaches a peer: operations that were not pushed completely fail. Packets that it sent before are
    /// still delivered, among them answers to operations that were.
    #[cold]
    pub(super) fn unreached(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        let known = self.peer(peer);
        let unsent: Vec<Id> = known.queue.drain(..).chain(known.requested.drain(..)).collect();
        for id in unsent {
            self.end_outgoing(id, Some(Failure { error, overflow: 0 }), report);
        }
    }

    /// Resets a peer's state, except its source, which the transport sets, as packets of it may still come. Called
    /// before any completion, since completing an operation may schedule the peer.
    fn forget(&mut self, peer: PeerId) -> Option<Box<RmaPeer>> {
        let config = self.config;
        let old = self.peer(peer);
        let rma = old.rma.take();
        *old = Peer {
            source: old.source,
            busy: old.busy,
            kept: old.kept,
            losses: old.losses,
            last_loss: old.last_loss,
            ..Peer::new(&config)
        };
        self.starved.retain(|starved| *starved != peer);
        self.streams.retain(|(from, _), _| *from != peer);
        rma
    }

    fn end_outgoing_to(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        let to = self.outgoing.iter().filter(|(_, outgoing)| outgoing.to == peer);
        let ids: Vec<Id> = to.map(|(id, _)| id).collect();
        for id in ids {
            let Some(outgoing) = self.outgoing.get(id) else {
                continue;
            };
            // Of what had ended before, only its packets may be lost.
            let error = match outgoing.stage {
                Stage::Ended(None) if outgoing.level == CompletionLevel::Delivery => None,
                Stage::Ended(Some(error)) => Some(error),
                _ => Some(error),
            };
            self.complete(id, error.map(|error| Failure { error, overflow: 0 }), report);
        }
    }

    fn end_messages(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        self.end_direct_landings(peer, error, report);
        for id in self.arrivals_of(peer) {
            let Some(message) = self.arrivals.get_mut(id) else {
                continue;
            };
            message.ack = false; // its sender no longer waits for `Done`
            // One that is here whole and waits for its receive stays.
            if !(message.complete() && message.unexpected_id.is_some()) {
                self.end_arrival(peer, id, error, report);
            }
        }
        self.drop_stale_landings(peer);
    }

    /// Nobody is left to receive what a peer that is gone had sent.
    #[cold]
    pub(super) fn end_kept_messages(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        for id in self.arrivals_of(peer) {
            self.end_arrival(peer, id, error, report);
        }
    }

    fn arrivals_of(&self, peer: PeerId) -> Vec<Id> {
        let arrivals = self.arrivals.iter().filter(|(_, message)| message.from == peer);
        arrivals.map(|(id, _)| id).collect()
    }

    /// Whole messages that the transport is moving into their receives.
    fn end_direct_landings(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        let direct = |landing: &Landing| matches!(landing, Landing::Direct(delivery) if delivery.from == peer);
        let landings: Vec<Id> = self
            .landings
            .iter()
            .filter(|(_, l)| direct(l))
            .map(|(id, _)| id)
            .collect();
        for id in landings {
            if let Some(Landing::Direct(delivery)) = self.landings.remove(id) {
                self.report_message(&delivery, Some(error), report);
            }
        }
    }

    /// A message that was coming, or waits for its receive.
    fn end_arrival(&mut self, peer: PeerId, id: Id, error: Error, report: &mut impl Report) {
        let Some(message) = self.arrivals.get(id) else {
            return;
        };
        let (kind, held, kept) = (message.kind, message.unexpected_id, message.kept);
        if let Some(held) = held {
            self.matcher(kind).take_unexpected(held);
            self.release_kept(peer, kept);
            let claims = self.claims.values_mut();
            for claim in claims.filter(|claim| claim.kind == kind && claim.unexpected == held) {
                claim.lost = Some(error);
            }
        }
        let Some(message) = self.arrivals.remove(id) else {
            return;
        };
        if let Some(matched) = &message.matched {
            self.report_message(&message.delivery(matched), Some(error), report);
        }
    }

    /// Placements that the transport will not finish.
    fn drop_stale_landings(&mut self, peer: PeerId) {
        let (arrivals, outgoing) = (&self.arrivals, &self.outgoing);
        let stale = |landing: &Landing| match landing {
            Landing::Direct(_) => false,
            Landing::Part { message, .. } | Landing::Remote { message } => arrivals.get(*message).is_none(),
            Landing::Write { from, .. } | Landing::LeasedWrite { from, .. } | Landing::Packet { from, .. } => {
                *from == peer
            }
            Landing::Reply { operation, .. } | Landing::Exposed { operation, .. } => outgoing.get(*operation).is_none(),
        };
        let landings: Vec<Id> = self
            .landings
            .iter()
            .filter(|(_, l)| stale(l))
            .map(|(id, _)| id)
            .collect();
        for id in landings {
            self.landings.remove(id);
        }
    }

    fn end_receives(&mut self, peer: PeerId, error: Error, report: &mut impl Report) {
        let waits = |kind: &MessageKind| !error.is_break() || *kind == MessageKind::Collective;
        for kind in MessageKind::ALL.into_iter().filter(waits) {
            for id in self.matcher(kind).search_posted(|source| source == Some(peer)) {
                self.withdraw(kind, id, error, report);
            }
        }
    }
}
