//! The fast path of a peer's reads: they are answered out of the memory itself when the poll is over, if nothing else
//! has come from the peer behind them.
//!
//! If something has, it may change that memory, so they are answered with copies that are made first (`Reply`). While a
//! peer has such reads, it is off its fast path (`Detours`), so that whatever comes from it makes those copies. A
//! transport whose peers work on this memory directly keeps them from it until the answer (`Sink::is_to_answer`).
//! Called by `rma_fast`, `deliver`, `endpoint` and `peer_death`.

use super::endpoint::Engine;
use super::peer::Detours;
use super::port::{Body, PeerId, Push, Transport};
use super::rma_peer::reply_header;
use super::state::Core;
use crate::util::user::{UserBuf, UserIov};

/// A read that has come in this poll.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAtHand {
    pub number: u32,
    pub memory: UserBuf,
}

/// The reads of this poll, all of one peer: no more than a poll may take. None between two calls of the engine.
#[derive(Debug, Default)]
pub(super) struct AtHand {
    peer: PeerId,
    reads: Vec<ReadAtHand>,
}

impl AtHand {
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether there is a read of this peer.
    #[inline]
    pub(super) fn is_of(&self, peer: PeerId) -> bool {
        !self.is_nothing() && self.peer == peer
    }
}

impl Core {
    /// Answers a peer's read when the poll is over; with a copy, if other answers are still owed to the peer, which go
    /// first.
    #[inline]
    pub(super) fn answer_after_poll(&mut self, from: PeerId, read: ReadAtHand) {
        if self.at_hand.is_nothing() {
            if self.owes_answers(from) {
                return self.copy_read(from, &read, 0);
            }
            self.at_hand.peer = from;
            self.set_at_hand(from, true);
        } else if self.at_hand.peer != from {
            return self.copy_read(from, &read, 0);
        }
        self.at_hand.reads.push(read);
    }

    /// Something that is no read has come from this peer, maybe behind its reads.
    #[inline]
    pub(super) fn something_follows(&mut self, from: PeerId) {
        if self.at_hand.is_of(from) {
            self.copy_reads_at_hand();
        }
    }

    #[inline(never)]
    pub(super) fn copy_reads_at_hand(&mut self) {
        let from = self.at_hand.peer;
        self.set_at_hand(from, false);
        let mut reads = core::mem::take(&mut self.at_hand.reads);
        for read in reads.drain(..) {
            self.copy_read(from, &read, 0);
        }
        self.at_hand.reads = reads;
    }

    /// Answers with a copy of the bytes from `at` on; those before have been pushed.
    pub(super) fn copy_read(&mut self, from: PeerId, read: &ReadAtHand, at: usize) {
        let mut bytes = self.buffers.take(read.memory.len());
        read.memory.read(&mut bytes);
        self.reply_from(at, from, read.number, bytes);
    }

    fn set_at_hand(&mut self, of: PeerId, at_hand: bool) {
        self.peer(of).detours.set(Detours::READS_AT_HAND, at_hand);
    }

    /// The peer is gone, and nobody waits for the answer.
    pub(super) fn drop_reads_of(&mut self, peer: PeerId) {
        if self.at_hand.is_of(peer) {
            self.at_hand.reads.clear();
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Answers the reads that nothing followed in the poll that is over.
    #[inline(never)]
    pub(super) fn answer_reads_at_hand(&mut self) {
        let from = self.core.at_hand.peer;
        self.core.set_at_hand(from, false);
        let mut is_full = false;
        let mut next = 0;
        while let Some(&read) = self.core.at_hand.reads.get(next) {
            next += 1;
            let pushed = if is_full { Err(0) } else { self.push_read(from, &read) };
            if let Err(at) = pushed {
                // The queue of answers deals with whatever has kept the push from going.
                is_full = true;
                self.core.copy_read(from, &read, at);
            }
        }
        self.core.at_hand.reads.clear();
    }

    /// Pushes an answer, in packets as long as they may be. Err: how much of it has gone.
    fn push_read(&mut self, to: PeerId, read: &ReadAtHand) -> Result<(), usize> {
        let (iov, all) = (&UserIov::one(read.memory), read.memory.len());
        let most = self.core.max_body_to(to);
        let mut at = 0;
        loop {
            let len = most.min(all - at);
            let header = reply_header(read.number, at, all - at - len);
            let body = Body::User { iov, at, len };
            if Self::push_out_of_line(&mut self.transport, to, &header, body) != Push::Done {
                return Err(at);
            }
            at += len;
            if at >= all {
                return Ok(());
            }
        }
    }
}
