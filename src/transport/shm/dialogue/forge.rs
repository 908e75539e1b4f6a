//! For tests: what a peer may write into a dialogue, and what only tests ask of one.

use super::super::outbound::Outbound;
use super::sides::BegunBy;
use super::words::{self, unit_of};
use super::{Dialogue, HEADER_AT, SECOND_UNIT, UNITS};
use core::sync::atomic::Ordering;

/// For tests that write words as a peer may.
pub(in super::super) fn word(turn: u64, position: u64, low: usize) -> u64 {
    words::word(words::which(turn, 0, position), low, 0, false)
}

impl Dialogue {
    /// Whether the body of the last turn, which is of one part, was put into the second place.
    pub(in super::super) fn is_in_second_place(&self) -> bool {
        unit_of(self.word().load(Ordering::Relaxed)) > 0
    }

    /// As if so many turns had passed.
    pub(in super::super) fn pass_turns(&self, turns: u64) {
        self.turn.fetch_add(turns, Ordering::Relaxed);
    }

    /// Writes the next part as a peer may that breaks the protocol, if the turn is this side's: with any header, and a
    /// word that may be of more bytes or parts than there is room for.
    fn forge(&self, header: [u64; 4], len: usize, goes_on: bool, at: (u64, u64)) -> bool {
        if !self.is_ours() {
            return false;
        }
        // SAFETY: as in `say`.
        unsafe { self.here().add(HEADER_AT).cast::<[u64; 4]>().write(header) };
        let (len, unit) = (len % SECOND_UNIT, len / SECOND_UNIT % UNITS);
        let word = words::word(self.next(at.0, at.1), len, unit, goes_on);
        self.word().store(word, Ordering::Release);
        self.pass(goes_on);
        true
    }
}

impl Outbound {
    /// How many turns there were in both dialogues, as this side knows.
    pub(in super::super) fn turns(&self) -> u64 {
        let both = [BegunBy::Us, BegunBy::Peer];
        both.map(|by| self.dialogue(by).turn()).iter().sum()
    }

    pub(in super::super) fn dialogue(&self, by: BegunBy) -> &Dialogue {
        self.dialogues.as_ref().unwrap().of(by as usize)
    }

    /// In which dialogue our last turn was.
    pub(in super::super) fn last_said(&self) -> BegunBy {
        self.said.last()
    }

    /// See `Dialogue::forge`. The next part there is ours.
    pub(in super::super) fn forge(&mut self, header: [u64; 4], len: usize, goes_on: bool) {
        let Some(dialogues) = &self.dialogues else { return };
        let (which, dialogue) = (dialogues.next(), dialogues.speaking());
        let (part, position) = (dialogue.part(), self.producer.position());
        if dialogue.forge(header, len, goes_on, (self.said.turns(), position)) {
            self.said.add_part(which, part, position, goes_on);
        }
    }
}

impl BegunBy {
    pub(in super::super) fn other(self) -> BegunBy {
        match self {
            BegunBy::Us => BegunBy::Peer,
            BegunBy::Peer => BegunBy::Us,
        }
    }
}
