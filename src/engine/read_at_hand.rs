//! The short way of a peer's read: if it comes alone in a poll, it is answered out of the memory itself when the poll is over.
//!
//! A read that something comes behind in the same poll is answered with a copy of the bytes as they were (`Reply`), and so are
//! all after it. While one is at hand, its peer is off the fast path, so that whatever comes from it next makes that copy first.
//! A transport whose peers work on this memory directly keeps them from it until then (`Sink::is_to_answer`). Called by
//! `rma_fast`, `deliver`, `endpoint` and `peer_death`.

use super::endpoint::Engine;
use super::port::{Body, PeerId, Push, Transport};
use super::state::Core;
use super::wire::{Header, Packet};
use crate::util::user::UserIov;

/// A read that has come in this poll.
#[derive(Debug)]
pub(super) struct ReadAtHand {
    pub from: PeerId,
    pub number: u32,
    pub memory: UserIov,
}

/// The reads of this poll; `Nothing` between two calls of the engine.
#[derive(Debug, Default)]
pub(super) enum AtHand {
    #[default]
    Nothing,
    Read(ReadAtHand),
    /// One was followed by something, and copied.
    Several,
}

impl AtHand {
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, AtHand::Nothing)
    }

    /// Whether there is a read of this peer.
    #[inline]
    pub(super) fn is_of(&self, peer: PeerId) -> bool {
        matches!(self, AtHand::Read(read) if read.from == peer)
    }
}

impl Core {
    /// A peer's read is answered when the poll is over.
    #[inline]
    pub(super) fn answer_after_poll(&mut self, read: ReadAtHand) {
        self.copy_read_at_hand();
        if matches!(self.at_hand, AtHand::Several) {
            return self.copy_read(&read);
        }
        self.set_at_hand(read.from, true);
        self.at_hand = AtHand::Read(read);
    }

    /// Something has come from this peer, maybe behind its read.
    #[inline]
    pub(super) fn something_follows(&mut self, from: PeerId) {
        if self.at_hand.is_of(from) {
            self.copy_read_at_hand();
        }
    }

    /// The read at hand, if there is one, is answered with a copy.
    fn copy_read_at_hand(&mut self) {
        if let Some(read) = self.take_read_at_hand() {
            self.copy_read(&read);
            self.at_hand = AtHand::Several;
        }
    }

    pub(super) fn copy_read(&mut self, read: &ReadAtHand) {
        let mut bytes = self.buffers.take(read.memory.len());
        read.memory.read(0, &mut bytes);
        self.reply(read.from, read.number, bytes);
    }

    #[inline]
    fn take_read_at_hand(&mut self) -> Option<ReadAtHand> {
        if !matches!(self.at_hand, AtHand::Read(_)) {
            return None;
        }
        let AtHand::Read(read) = core::mem::take(&mut self.at_hand) else {
            return None;
        };
        self.set_at_hand(read.from, false);
        Some(read)
    }

    fn set_at_hand(&mut self, of: PeerId, at_hand: bool) {
        let peer = self.peer(of);
        peer.rma_mut().read_at_hand = at_hand;
        peer.update_fast_path();
    }

    /// The peer is gone, and nobody waits for the answer.
    pub(super) fn drop_read_of(&mut self, peer: PeerId) {
        if self.at_hand.is_of(peer) {
            self.at_hand = AtHand::Nothing;
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Answers the read that came alone in the poll that is over.
    #[inline(never)]
    pub(super) fn answer_read_at_hand(&mut self) {
        if let AtHand::Read(read) = &self.core.at_hand {
            // A copy goes the way of all answers: behind those that are owed already, and what is wrong is seen to.
            if self.core.owes_answers(read.from) || Self::push_read(&mut self.transport, read) != Push::Done {
                self.core.copy_read_at_hand();
            } else {
                self.core.take_read_at_hand();
            }
        }
        self.core.at_hand = AtHand::Nothing;
    }

    fn push_read(transport: &mut T, read: &ReadAtHand) -> Push {
        let (iov, len) = (&read.memory, read.memory.len());
        let header = Header::new(Packet::Reply, read.number);
        Self::push_out_of_line(transport, read.from, &header, Body::User { iov, at: 0, len })
    }
}
