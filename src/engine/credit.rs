//! Why a flood of messages that nobody receives neither fills memory nor stops anything else.
//!
//! A packet that was sent unasked must be taken, because behind it in the same lane may come the `Done` or `Send` that
//! the application is waiting for: refusing it could make two peers that flood each other wait for ever. So the sender
//! holds back instead. Each `Eager` or `First` costs credit (its length and something for the entry); a peer starts
//! with a window of it. The receiver gives credit back as soon as the message has met its receive, or at once while
//! there is room to keep it; else when the message is received at last. So it never keeps more than `room` and one
//! window per peer.
//!
//! A sender without credit waits if the receiver gives all back, which needs only that the receiver makes progress. If
//! the receiver has said that it withholds some, the sender offers its messages by `Rendezvous`, which cost the
//! receiver a small entry, and are as many as the sender may have unfinished sends: receives can still match them in
//! order, whatever lies before them. Packets that answer (`Segment`, `Send`, `Done`, `Credit`) need no credit: what
//! they belong to has its memory already. So every packet is always taken, every lane flows as long as both sides make
//! progress, and what is left waiting waits for a receive that the application has not posted.

use super::peer::Malformed;
use super::port::PeerId;
use super::state::Core;
use super::wire::{Header, Packet, flag};

/// What a held message takes besides its bytes, about.
pub(super) const ENTRY: usize = 256;

/// The largest message that may go unasked: some of them fit a window, so that the lane does not stand still.
pub(super) fn largest(window: usize) -> usize {
    (window / 4).saturating_sub(ENTRY)
}

/// What a message of this length takes of the sender's credit. Lengths are at most `largest`.
#[inline]
pub(super) fn cost(len: usize) -> usize {
    len.saturating_add(ENTRY)
}

impl Core {
    /// A message came unasked: takes its cost from what the peer may send.
    #[inline]
    pub fn charge_credit(&mut self, from: PeerId, cost: usize) -> Result<(), Malformed> {
        let peer = self.peer(from);
        peer.allowed = peer.allowed.checked_sub(cost).ok_or(Malformed)?;
        Ok(())
    }

    /// Gives credit back, in some time: a quarter of the window makes a packet worth it.
    #[inline]
    pub fn repay_credit(&mut self, to: PeerId, cost: usize) {
        let quarter = self.config.window / 4;
        let peer = self.peer(to);
        peer.owed += cost;
        if peer.owed >= quarter {
            self.wake(to);
        }
    }

    /// A message is held.
    pub fn charge_kept(&mut self, from: PeerId, cost: usize) {
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

    /// A message is held no longer.
    pub fn release_kept(&mut self, from: PeerId, cost: usize) {
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

    /// Half the room is free again: those who wait for credit because of others get theirs.
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

    /// The packet that gives back what is owed, if it is time.
    pub fn credit_due(&self, to: PeerId) -> Option<Header> {
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

    /// That packet is on its way.
    pub fn credit_given(&mut self, to: PeerId, header: &Header) {
        let peer = self.peer(to);
        let given = std::mem::take(&mut peer.owed);
        peer.allowed += given;
        peer.told_withholding = header.flags & flag::WITHHELD != 0;
    }

    /// A peer gave credit back.
    pub fn credited(&mut self, from: PeerId, header: &Header) -> Result<(), Malformed> {
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
