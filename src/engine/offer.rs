//! The fast path of a message that is offered and fetched, where the transport fetches at once.
//!
//! The sender offers it without queueing it. The receiver, if a receive is posted, fetches it when the poll that
//! brought the offer is over, and answers. Whatever is not as simple as that goes the way of `rendezvous`. Called by
//! `endpoint`, and by `rendezvous` and `peer_death` for what was matched in a poll that is not over.

use super::endpoint::Engine;
use super::message::{Delivery, Message, Phase, done_header};
use super::op::{Report, Send};
use super::outgoing::{Outgoing, Stage};
use super::port::{Body, ExposedName, Get, PeerId, Push, Remote, Transport};
use super::receive::MatchedRecv;
use super::state::Core;
use super::wire::{Header, Packet};
use crate::util::slab::Id;

/// Messages that cross are offered and fetched so up to this length, if `gets_at_once` is not more. 64 KiB each way
/// take 4 in a hundred less by it, from 1 MiB on they take 2 to 4 longer.
const CROSSING_AT_ONCE: usize = 128 << 10;

/// An offered message that has found its receive in this poll.
#[derive(Debug)]
pub(super) struct MatchedOffer {
    pub from: PeerId,
    pub header: Header,
    pub total: usize,
    pub remote: Remote,
    pub matched: MatchedRecv,
}

impl MatchedOffer {
    /// The bytes that the receive takes.
    fn goal(&self) -> usize {
        self.total.min(self.matched.iov.len())
    }

    fn into_message(self) -> Message {
        let phase = Phase::Offered(Some(Box::new(self.remote)));
        let mut message = Message::new(self.from, &self.header, phase, self.total);
        message.matched = Some(self.matched);
        message
    }
}

impl Core {
    /// Whether a message is offered before anything else is tried, and nothing to this peer is before it.
    fn may_offer(&self, send: &Send) -> bool {
        let len = send.body.len();
        let limits = self.limits_to(send.to);
        let fits = len > limits.eager_if_fetched && self.is_got_at_once(send.to, len);
        if !fits || send.inject || send.fence || self.outgoing.len() >= Id::SHORT_MAX {
            return false;
        }
        let is_clear =
            |peer: &&super::peer::Peer| peer.queue.is_empty() && !peer.is_off_fast_path() && peer.is_to_fetch();
        let peer = self.peers.get(send.to as usize).filter(is_clear);
        peer.is_some_and(|peer| (peer.unfinished as usize) < self.config.in_flight)
    }

    /// Whether an offered message of this length, to or from this peer, is fetched at the end of a poll, by one call.
    pub(super) fn is_got_at_once(&self, peer: PeerId, len: usize) -> bool {
        let at_once = self.limits_to(peer).gets_at_once;
        (1..=at_once).contains(&len) || (1..=CROSSING_AT_ONCE).contains(&len) && self.is_fetched_alone(peer)
    }

    /// The matched offers become messages like any others.
    pub(super) fn keep_matched_offers(&mut self, report: &mut impl Report) {
        while !self.matched_offers.is_empty() {
            self.keep_first_offer(report);
        }
    }

    #[cold]
    fn keep_first_offer(&mut self, report: &mut impl Report) {
        if let Some(offer) = self.matched_offers.pop_front() {
            let id = self.arrivals.insert(offer.into_message());
            self.accept(id, report);
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Offers a message. False: nothing was done, and it is to be queued.
    pub(super) fn offer_at_once(&mut self, send: &Send) -> bool {
        if !self.core.may_offer(send) {
            return false;
        }
        let id = self.core.outgoing.next_id();
        let exposed = self.transport.expose(send.to, &send.body, ExposedName::Sent(id.bits()));
        let Some(exposed) = exposed else {
            return false;
        };
        if let Some(id) = exposed.id {
            // Who is to be told of the end waits in the queue, from which it is exposed anew.
            self.transport.unexpose(send.to, id);
            return false;
        }
        let offered = Outgoing {
            stage: Stage::Offered,
            ..Outgoing::new(send)
        };
        let header = offered.start(Packet::Rendezvous, id);
        let body = Body::Bytes(exposed.remote.bytes());
        if Self::push_out_of_line(&mut self.transport, send.to, &header, body) != Push::Done {
            return false;
        }
        self.core.outgoing.insert(offered);
        let peer = self.core.peer(send.to);
        peer.unfinished += 1;
        peer.last_offered = id.short();
        peer.is_itself = self.transport.is_itself(send.to);
        peer.requested_next = true;
        true
    }

    /// Fetches the messages whose offers were matched in the poll that is over.
    #[inline(never)]
    pub(super) fn fetch_matched_offers(&mut self, report: &mut impl Report) {
        while let Some(offer) = self.core.matched_offers.front() {
            let (from, number, iov, len) = (offer.from, offer.header.id, &offer.matched.iov, offer.goal());
            let is_here = len > 0
                && (self.core.copy_own(from, number, iov, len)
                    || self.transport.get(from, &offer.remote, iov, 0, len, None) == Get::Done);
            if !is_here {
                self.core.keep_first_offer(report);
                continue;
            }
            let delivery = Delivery::of_header(from, &offer.header, offer.total, &offer.matched, None);
            self.core.matched_offers.pop_front();
            self.core.report_message(&delivery, None, report);
            self.answer_done(from, number);
        }
    }

    /// Tells a peer that its message is here, at once where no answers wait before this one.
    fn answer_done(&mut self, to: PeerId, number: u32) {
        let header = done_header(number);
        let first = self.core.peer(to).control.is_empty();
        if !first || Self::push_out_of_line(&mut self.transport, to, &header, Body::Empty) != Push::Done {
            self.core.send_control(to, header);
        }
    }
}
