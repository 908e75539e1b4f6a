//! The word of a part of a dialogue: what a side writes last, and the other waits for.
//!
//! From the top: the low bits of the turn's number in its dialogue, the lowest of its number among all turns of its
//! writer, a bit that each has, the low bits of the position, whether the turn goes on behind the part, in which unit of
//! the room a long body begins, and the length of the body. Called by `dialogue`.

const LOW_BITS: u32 = 20;
const POSITION_BITS: u32 = 21;
const POSITION: u64 = (1 << POSITION_BITS) - 1;
/// No part is where the word is 0, whatever turn and position are.
const IS_PART: u64 = 1 << POSITION_BITS;
const ORDER_AT: u32 = POSITION_BITS + 1;
const TURN_AT: u32 = ORDER_AT + 1;
const TURN_BITS: u32 = 21;
const TURN: u64 = (1 << TURN_BITS) - 1;
const GOES_ON: u64 = 1 << 19;
const UNIT_AT: u32 = 15;
/// The longest body that a word can tell of.
pub(super) const MOST: usize = (1 << UNIT_AT) - 1;
const _: () = assert!(LOW_BITS + TURN_AT + TURN_BITS == u64::BITS);
const _: () = assert!((super::UNITS * (MOST + 1)) as u64 <= GOES_ON);

/// Which part a word tells of: one of this turn, before what stands in the ring at this position. `number`: how many
/// turns its writer has had before, in both dialogues of the pair. Each has one of them at most that is not read yet, so
/// the lowest bit says which of the two comes first.
#[inline(always)]
pub(super) fn which(turn: u64, number: u64, position: u64) -> u64 {
    (turn & TURN) << TURN_AT | (number & 1) << ORDER_AT | IS_PART | (position & POSITION)
}

#[inline(always)]
pub(super) fn which_of(word: u64) -> u64 {
    word >> LOW_BITS
}

#[inline(always)]
pub(super) fn word(which: u64, len: usize, unit: usize, goes_on: bool) -> u64 {
    let goes_on = if goes_on { GOES_ON } else { 0 };
    which << LOW_BITS | goes_on | (unit as u64) << UNIT_AT | len as u64
}

#[inline(always)]
pub(super) fn goes_on(word: u64) -> bool {
    word & GOES_ON != 0
}

#[inline(always)]
pub(super) fn unit_of(word: u64) -> usize {
    ((word % GOES_ON) >> UNIT_AT) as usize
}

#[inline(always)]
pub(super) fn len_of(word: u64) -> usize {
    word as usize & MOST
}

/// For a test that writes words as a peer may: a bit of the unit.
#[cfg(test)]
pub(in super::super) const SECOND_UNIT: usize = 1 << UNIT_AT;
