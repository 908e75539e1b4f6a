//! Copies of regions that cross: each side reads or writes the other's memory at the same time.
//!
//! Each is busy with its own copy then, and comes too late to help with the other's, which was cut into pieces for that
//! and is waited for. So whoever begins looks whether pieces of the peer's own copy are still to be taken; if so, it
//! copies in one call, and its word says meanwhile that it is at it. Two that copy by turns never see each other so:
//! one begins when the other's pieces are all taken. Called by `ShmTransport::copy`.

use super::super::ShmTransport;
use super::PiecesLeft;
use crate::engine::port::{Get, PeerId};
use core::sync::atomic::Ordering;

/// After a copy that crossed another, so many are taken to cross. Of two that begin at once, one sees the other.
const STAYS: u8 = 8;

/// What the word says of a copy for which nobody is asked to help: there is something left, and no request for it.
const ALONE: PiecesLeft = PiecesLeft {
    number: 0,
    front: 0,
    back: 1,
};

impl ShmTransport {
    /// Whether a copy that begins now crosses one of the peer's.
    pub(in super::super) fn crosses_copy_of(&mut self, peer: PeerId) -> bool {
        let Some(out) = self.peers.get_mut(peer).and_then(|peer| peer.out.as_mut()) else {
            return false;
        };
        let theirs = PiecesLeft::of(out.lane.pieces().load(Ordering::Relaxed));
        let stays = &mut out.choice.copies_cross;
        *stays = if theirs.front < theirs.back {
            STAYS
        } else {
            stays.saturating_sub(1)
        };
        *stays > 0
    }

    /// Copies alone, so that the peer sees it if it begins meanwhile. No copy with this peer may be pending.
    pub(in super::super) fn copy_seen_by(&mut self, peer: PeerId, copy: impl FnOnce(&mut ShmTransport) -> Get) -> Get {
        self.show_pieces(peer, ALONE.word());
        let got = copy(self);
        self.show_pieces(peer, 0);
        got
    }

    fn show_pieces(&mut self, peer: PeerId, word: u64) {
        let lane = self.peers.get(peer).and_then(|peer| self.inbox.lane(peer.lane?));
        if let Some(lane) = lane {
            lane.pieces().store(word, Ordering::Relaxed);
        }
    }
}
