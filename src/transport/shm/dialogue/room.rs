//! Room for the long turns of a dialogue: what does not fit its few lines lies behind the large ring of the lane that
//! it is in.
//!
//! That ring is there soon where both sides send long bodies. Where one does, to be answered or acknowledged, the
//! dialogue may be the one in the other's lane, and where one only reads, the one in its own. So who has lacked the room
//! for some time makes it, or asks the other side to. Called by `outbound` and `ring_or_kernel`.

use super::super::outbound::Outbound;
use super::LONGEST;
use super::sides::BegunBy;
use crate::engine::wire::{Header, Packet};
use crate::sys::shared;
use core::sync::atomic::Ordering;

/// So many packets lack the room before it is made, as it takes `lane::LARGE_BYTES`.
const PATIENCE: u8 = 32;

/// How many bytes of a part such a packet needs, or its answer.
#[inline(always)]
pub(in super::super) fn room_needed(header: &Header, len: usize) -> usize {
    match header.packet {
        Packet::Read => (header.total as usize).min(LONGEST),
        _ => len,
    }
}

#[derive(Debug, Default)]
pub(in super::super) struct RoomWish {
    /// How many of our packets lacked it, in each dialogue.
    lacked: [u8; 2],
    /// The peer has asked for it.
    heeded: bool,
}

impl Outbound {
    /// Whether a body of so many bytes could be a turn if the dialogue had more room.
    #[inline(always)]
    pub(in super::super) fn lacks_room_for(&self, len: usize) -> bool {
        self.speaking().is_some_and(|dialogue| dialogue.lacks_room_for(len))
    }

    /// A packet that may be a turn lacks the room, or its answer will.
    #[cold]
    pub(in super::super) fn wish_for_room(&mut self) {
        let Some(dialogues) = &self.dialogues else { return };
        let which = dialogues.next();
        let Some(lacked) = self.room_wish.lacked.get_mut(which) else {
            return;
        };
        *lacked = lacked.saturating_add(1);
        if *lacked != PATIENCE {
            return;
        }
        if which == BegunBy::Us as usize {
            return self.make_dialogue_room();
        }
        dialogues.speaking().room_wanted().store(1, Ordering::Relaxed);
    }

    /// A packet of ours might have been a turn, if it had been our turn. Maybe the peer has lacked the room to end its
    /// own.
    #[inline(always)]
    pub(in super::super) fn heed_wish_for_room(&mut self) {
        // The word is in a line that is read with each push anyway.
        if self.lane.room_wanted().load(Ordering::Relaxed) != 0 && !self.room_wish.heeded {
            self.room_wish.heeded = true;
            self.make_dialogue_room();
        }
    }

    #[cold]
    fn make_dialogue_room(&mut self) {
        if !self.lane.is_large() && shared::is_half_free(&self.path) {
            self.grow();
        }
    }
}
