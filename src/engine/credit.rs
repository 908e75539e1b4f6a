//! Flow control of eager messages: a flood of them that nobody receives neither fills memory nor blocks anything else.
//!
//! An eager packet must always be taken, because behind it in the same lane may come the `Done` or `Request` that the
//! application waits for: refusing it could make two peers that flood each other wait for ever. So the sender holds
//! back instead. Each `Eager` or `First` costs credit (its length and something for bookkeeping); a peer starts with a
//! window of credit. The receiver returns it when the message is matched, or at once while there is room to keep the
//! message; else only when it is received. So it never keeps more than `room` and one window per peer.
//!
//! A sender without credit waits while the receiver returns all of it, which needs only that the receiver makes
//! progress. If the receiver has said that it withholds credit, the sender offers its messages by `Rendezvous`. These
//! cost the receiver a small entry each and are limited by `Config::in_flight`, so receives can still match all
//! messages in order. Answers (`Segment`, `Request`, `Done`, `Credit`) need no credit, since the memory for them exists
//! already. So every packet is taken, every lane flows as long as both sides make progress, and what waits is waiting
//! for a receive that the application has not posted.
//!
//! Where the sender polls seldom, it is the receiver that waits: all is read, and the sender has yet to see the credit.
//! The transport, which has a clock, tells when that took long (`Transport::came_late`). From then on messages that lack
//! credit are offered to a receiver that can fetch.

use super::outgoing::Stage;
use super::outgoing_op::OutgoingOp;
use super::peer::Malformed;
use super::port::PeerId;
use super::state::Core;
use super::wire::{Header, Packet, flag};

/// About what an unexpected message takes besides its bytes.
pub(super) const ENTRY: usize = 256;

/// Eager messages of the longest kind that fit a window: several, so that the lane does not stand still.
const FIT: usize = 4;

/// After a wait for credit for which we came late, messages that lack it are offered until so many offers were made.
const UNPAID_OFFERS: u16 = 1024;

/// The longest eager message.
pub(super) fn largest(window: usize) -> usize {
    (window / FIT).saturating_sub(ENTRY)
}

/// The window in which that is the longest eager message.
pub(super) const fn window(largest: usize) -> usize {
    FIT * (largest + ENTRY)
}

/// The credit that an eager message of this length costs. Lengths are at most `largest`.
#[inline]
pub(super) fn cost(len: usize) -> usize {
    len.saturating_add(ENTRY)
}

impl Core {
    /// An eager message has come: takes its cost from the peer's credit. An error if it had not enough.
    #[inline]
    pub(super) fn charge_credit(&mut self, from: PeerId, cost: usize) -> Result<(), Malformed> {
        let peer = self.peer(from);
        peer.allowed = peer.allowed.checked_sub(cost).ok_or(Malformed)?;
        Ok(())
    }

    /// Returns credit to a peer, in one packet once it is a quarter of the window.
    #[inline]
    pub(super) fn repay_credit(&mut self, to: PeerId, cost: usize) {
        let quarter = self.config.window / 4;
        let peer = self.peer(to);
        peer.owed += cost;
        if peer.owed >= quarter {
            self.wake(to);
        }
    }

    /// A message is kept as unexpected: returns its credit while there is room, else withholds it.
    pub(super) fn charge_kept(&mut self, from: PeerId, cost: usize) {
        let (room, share) = (self.config.room, self.config.share);
        self.kept += cost;
        let full = self.kept > room;
        let peer = self.peer(from);
        peer.kept += cost;
        if !full && peer.kept <= share {
            return self.repay_credit(from, cost);
        }
        peer.withheld += cost;
        if !peer.told_withholding {
            self.wake(from);
        }
        if self.peer(from).withheld == cost && !self.starved.contains(&from) {
            self.starved.push_back(from);
        }
    }

    /// An unexpected message was received or dropped: returns credit that it withheld.
    pub(super) fn release_kept(&mut self, from: PeerId, cost: usize) {
        self.kept = self.kept.saturating_sub(cost);
        let peer = self.peer(from);
        peer.kept = peer.kept.saturating_sub(cost);
        let back = cost.min(peer.withheld);
        peer.withheld -= back;
        if back > 0 {
            self.repay_credit(from, back);
        }
        self.repay_starved();
    }

    /// When half the room is free again, returns credit to peers from which it was withheld because of others'
    /// messages.
    fn repay_starved(&mut self) {
        if self.starved.is_empty() || self.kept > self.config.room / 2 {
            return;
        }
        let half = self.config.share / 2;
        for _ in 0..self.starved.len() {
            let Some(id) = self.starved.pop_front() else { return };
            let peer = self.peer(id);
            if peer.kept > half && peer.withheld > 0 {
                self.starved.push_back(id);
                continue;
            }
            let back = std::mem::take(&mut peer.withheld);
            self.repay_credit(id, back);
            self.wake(id);
        }
    }

    /// The packet that returns credit, if one is due.
    pub(super) fn credit_due(&self, to: PeerId) -> Option<Header> {
        let peer = self.peers.get(to as usize)?;
        let withheld = peer.withheld > 0;
        let due = peer.owed >= self.config.window / 4 || withheld != peer.told_withholding;
        due.then_some(Header {
            packet: Packet::Credit,
            flags: if withheld { flag::WITHHELD } else { 0 },
            code: 0,
            id: 0,
            tag: 0,
            data: 0,
            total: peer.owed as u64,
        })
    }

    /// That packet was pushed.
    pub(super) fn credit_given(&mut self, to: PeerId, header: &Header) {
        let peer = self.peer(to);
        let given = std::mem::take(&mut peer.owed);
        peer.allowed += given;
        peer.told_withholding = header.flags & flag::WITHHELD != 0;
    }

    /// Whether the message that is first in the queue waits for credit.
    pub(super) fn awaits_credit(&self, to: PeerId) -> bool {
        let Some(peer) = self.peers.get(to as usize).filter(|peer| !peer.withholds_credit) else {
            return false;
        };
        let first = peer.queue.front().and_then(|id| self.outgoing.get(*id));
        first.is_some_and(|first| {
            let is_new = first.stage == Stage::Queued && matches!(first.op, OutgoingOp::Message);
            is_new && first.len <= self.limits_to(to).eager && cost(first.len) > peer.credit
        })
    }

    /// From now on messages to this peer are offered where credit lacks.
    pub(super) fn offer_without_credit(&mut self, to: PeerId) {
        self.peer(to).unpaid_offers = UNPAID_OFFERS;
    }

    /// A peer returns credit.
    pub(super) fn credited(&mut self, from: PeerId, header: &Header) -> Result<(), Malformed> {
        let window = self.config.window;
        let back = usize::try_from(header.total).map_err(|_| Malformed)?;
        let peer = self.peer(from);
        peer.credit = peer
            .credit
            .checked_add(back)
            .filter(|sum| *sum <= window)
            .ok_or(Malformed)?;
        peer.withholds_credit = header.flags & flag::WITHHELD != 0;
        if !peer.queue.is_empty() {
            self.wake(from);
        }
        Ok(())
    }
}
