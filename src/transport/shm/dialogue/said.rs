//! What one side of a pair has said and the other has read, counted over both dialogues; and how turns that were not
//! read are taken back.
//!
//! Each dialogue has one turn at most that is not read, or is under way. Called by `sides`, by `passing`, and by
//! `recall`, which carries out what such a turn asks for.

use super::super::outbound::Outbound;
use super::sides::BegunBy;
use super::{Dialogue, PART_BITS, PARTS};
use core::ops::Range;
use core::sync::atomic::Ordering;

/// The parts that one side has said, or that the other has read of them.
#[derive(Clone, Copy, Debug, Default)]
struct Count(u64);

impl Count {
    /// Whole turns.
    #[inline(always)]
    fn turns(self) -> u64 {
        self.0 >> PART_BITS
    }

    /// Parts of the turn behind them.
    fn of_next(self) -> usize {
        (self.0 % (1 << PART_BITS)) as usize
    }

    #[inline(always)]
    fn add_part(&mut self, goes_on: bool) {
        self.0 = if goes_on {
            self.0 + 1
        } else {
            (self.turns() + 1) << PART_BITS
        };
    }
}

/// What we have read of what the peer has said.
#[derive(Debug, Default)]
pub(in super::super) struct Heard {
    count: Count,
    /// In which dialogue the last turn was.
    last: TurnIn,
}

/// In which of the two dialogues a turn is: the one in which it is expected, or the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum TurnIn {
    #[default]
    Expected,
    Other,
}

impl Heard {
    #[inline(always)]
    pub(in super::super) fn turns(&self) -> u64 {
        self.count.turns()
    }

    #[inline(always)]
    pub(in super::super) fn parts(&self) -> u64 {
        self.count.0
    }

    /// Says whether the next turn is expected in the other dialogue now: where both speak at the same time, the turns
    /// change between the two, so the next is where the last but one was.
    #[inline(always)]
    pub(super) fn add_part(&mut self, place: TurnIn, goes_on: bool) -> bool {
        self.count.add_part(goes_on);
        if goes_on {
            return false;
        }
        let changes = core::mem::replace(&mut self.last, place) == TurnIn::Other;
        if changes {
            self.last = match place {
                TurnIn::Expected => TurnIn::Other,
                TurnIn::Other => TurnIn::Expected,
            };
        }
        changes
    }
}

/// What we have said.
#[derive(Debug, Default)]
pub(in super::super) struct Said {
    count: Count,
    /// Our last turn in each dialogue, in the order of `BegunBy`.
    turns: [Turn; 2],
}

/// A turn, as far as we have come with it. There is none if it has no parts.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// How many turns of ours were before it.
    number: u64,
    parts: usize,
    /// Where the parts stand among the records of our ring.
    positions: [u64; PARTS],
}

/// A part that the peer has not read: of our last turn in this dialogue, and before this position of our ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct SaidPart {
    pub(super) dialogue: usize,
    pub(super) part: usize,
    pub(in super::super) position: u64,
}

impl Turn {
    /// Which parts the peer has not read, that has read so many. It may have written anything.
    fn unread(&self, heard: Count) -> Range<usize> {
        let first = match heard.turns() {
            turns if turns > self.number => self.parts,
            turns if turns == self.number => heard.of_next(),
            _ => 0,
        };
        first.min(self.parts)..self.parts
    }
}

impl Said {
    #[inline(always)]
    pub(in super::super) fn parts(&self) -> u64 {
        self.count.0
    }

    #[inline(always)]
    pub(super) fn turns(&self) -> u64 {
        self.count.turns()
    }

    /// This part was said, before this position of our ring.
    #[inline(always)]
    pub(super) fn add_part(&mut self, dialogue: usize, part: usize, position: u64, goes_on: bool) {
        let [here, there] = &mut self.turns;
        let turn = if dialogue == BegunBy::Peer as usize {
            there
        } else {
            here
        };
        (turn.number, turn.parts) = (self.count.turns(), part + 1);
        if let Some(at) = turn.positions.get_mut(part) {
            *at = position;
        }
        self.count.add_part(goes_on);
    }

    /// In which dialogue our last turn was.
    pub(super) fn last(&self) -> BegunBy {
        let [here, there] = &self.turns;
        match there.parts > 0 && (here.parts == 0 || there.number > here.number) {
            true => BegunBy::Peer,
            false => BegunBy::Us,
        }
    }

    /// Whether our last turn was of several parts, and not in this dialogue.
    pub(super) fn was_long_elsewhere(&self, dialogue: usize) -> bool {
        let last = self.last() as usize;
        last != dialogue && self.turns.get(last).is_some_and(|turn| turn.parts > 1)
    }
}

impl Outbound {
    /// Whether the peer has read all that we have said.
    #[inline(always)]
    pub(in super::super) fn is_heard(&self) -> bool {
        self.has_heard(self.said.parts())
    }

    /// The same as far as so many parts go.
    #[inline(always)]
    pub(in super::super) fn has_heard(&self, parts: u64) -> bool {
        // SYNC POINT heard: acquire.
        parts == 0 || self.lane.heard().load(Ordering::Acquire) >= parts
    }

    /// Which parts of our turns the peer has not read, oldest first.
    pub(in super::super) fn unheard_parts(&self) -> Vec<SaidPart> {
        let heard = Count(self.lane.heard().load(Ordering::Acquire));
        let mut turns: Vec<(usize, &Turn)> = self.said.turns.iter().enumerate().collect();
        turns.sort_by_key(|(_, turn)| turn.number);
        let parts = turns.into_iter().flat_map(|(dialogue, turn)| {
            let positions = turn.positions.iter().copied().enumerate();
            let unread = turn.unread(heard);
            positions
                .filter(move |(part, _)| unread.contains(part))
                .map(move |(part, position)| SaidPart {
                    dialogue,
                    part,
                    position,
                })
        });
        parts.collect()
    }

    fn dialogue_of(&self, said: SaidPart) -> Option<&Dialogue> {
        self.dialogues.as_ref().map(|dialogues| dialogues.of(said.dialogue))
    }

    /// Header and body of one of them.
    pub(in super::super) fn said(&self, part: SaidPart) -> Option<([u64; 4], &[u8])> {
        self.dialogue_of(part)?.said(part.part)
    }

    /// One of them was carried out without the peer, who goes over it by this header. See `Dialogue::replace_header`.
    pub(in super::super) fn replace_said(&self, part: SaidPart, header: [u64; 4]) {
        if let Some(dialogue) = self.dialogue_of(part) {
            dialogue.replace_header(part.part, header);
        }
    }

    /// All of them were carried out without the peer, so the next part is ours again where each was. See
    /// `Dialogue::unsay`.
    pub(in super::super) fn take_back_turns(&mut self) {
        let unheard = self.unheard_parts();
        for first in unheard.iter().rev().filter(|said| said.is_first_of(&unheard)) {
            let Some(turn) = self.said.turns.get(first.dialogue) else {
                continue;
            };
            if let Some(dialogue) = self.dialogue_of(*first) {
                dialogue.unsay(first.part..turn.parts);
            }
            self.said.count = Count(turn.number << PART_BITS | first.part as u64);
        }
        self.said.turns = Default::default();
        self.last_reads.forget();
    }
}

impl SaidPart {
    /// Whether none of its turn is before it.
    fn is_first_of(&self, unheard: &[SaidPart]) -> bool {
        let first = unheard.iter().find(|said| said.dialogue == self.dialogue);
        first == Some(self)
    }
}

#[cfg(test)]
impl Said {
    /// As if one more turn had been said somewhere.
    pub(in super::super) fn pass_turn(&mut self) {
        self.count.add_part(false);
    }
}

#[cfg(test)]
impl Heard {
    pub(in super::super) fn pass_turn(&mut self) {
        self.count.add_part(false);
    }
}
