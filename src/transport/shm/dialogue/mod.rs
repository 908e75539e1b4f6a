//! A dialogue: two endpoints that answer each other write by turns to the same lines.
//!
//! A processor that reads a line which another has written gets it for itself, on AMD's at least. If the answer goes to
//! that line, it need not be taken from the other side first, as a line of a ring must, where the other side looks
//! meanwhile. A bare ring takes twice as long to and fro for 8 bytes where no cache is shared, and nearly twice for 4
//! and 8 KiB where one is.
//!
//! A pair has two, each in the lane of one side in the other's file: a few lines of the control block, and for longer
//! bodies some behind the large ring. That side has the first turn there. Whoever has read the other's turn has the
//! next. So two that answer each other need one of them, and two that send at the same time, as in a halo or a
//! reduction, write to both and change places with each message. What else is to be sent goes through the ring.
//!
//! The word of a turn tells the position in its writer's ring before which it belongs, so turns and records keep one
//! order: a reader takes a turn before the record that stands at its position. That no turn comes before a record it
//! knows only if it looks here after it has seen the record. A bit of the word says which of two turns is the earlier.
//!
//! A message, a write or an answer of several packets is a turn of several parts, each in lines of its own, so that one
//! is read while the next is written. Only with the last the next turn is the reader's.
//!
//! - `sides`: what a sender says and a receiver hears; `said`: what of it the receiver has not read; `silence`: when an
//!   answer is looked for; `lines`: where word, header and body of a part are; `words`: what the word tells.
//! - For long turns, `room`: how memory for them comes to be; `places`: where in it a body goes, so that its writer's
//!   processor has the lines.
//!
//! This file is what the two sides share of one dialogue. Opened by `Inbox::add` and `Inbound::open_dialogues`. Of the
//! engine's headers it knows which are the parts of one message, write or answer.

#[cfg(test)]
mod forge;
mod lines;
mod places;
mod room;
mod said;
mod sides;
mod silence;
mod words;

use super::lane::{Lane, LargeMap};
use crate::engine::wire::{Packet, flag};
use crate::sys::shared::FileMap;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
#[cfg(test)]
pub(super) use forge::word;
use lines::{BESIDE_HEADER, HEADER_AT, SHORT, line_of, place_in_lines, word_at, write_first_line};
pub(super) use lines::{ROOM, clear_room};
use places::Places;
pub(super) use room::{RoomWish, room_needed};
pub(super) use said::{Heard, Said, SaidPart, TurnIn};
#[cfg(test)]
pub(super) use sides::BegunBy;
pub(super) use sides::{Dialogues, is_said};
use silence::Silence;
use std::sync::{Arc, OnceLock};
#[cfg(test)]
pub(super) use words::SECOND_UNIT;
use words::{len_of, unit_of, which_of};

/// The longest body: that of a write.
pub(super) const LONGEST: usize = super::config::MAX_WRITE;
const _: () = assert!(LONGEST <= words::MOST);
/// The most parts of a turn.
const PARTS: usize = 16;
/// The longest message, write and answer that is one turn. Of a longer write a part may be one.
pub(super) const LONGEST_TURN: usize = UNITS * UNIT;
/// What room the bodies of messages and answers take; those of writes take up to two.
const UNIT: usize = super::config::MAX_BODY;
const UNITS: usize = PARTS;
const _: () = assert!(2 * LONGEST <= LONGEST_TURN);
const FIRST: u8 = Packet::First as u8;
const SEGMENT: u8 = Packet::Segment as u8;
const REPLY: u8 = Packet::Reply as u8;
const WRITE: u8 = Packet::Write as u8;
/// A count of parts that one side has said: that of its turns above, and below that of the parts of the one under way.
const PART_BITS: u32 = 5;
const _: () = assert!(PARTS < 1 << PART_BITS);

#[derive(Debug)]
pub(super) struct Dialogue {
    /// The first of the lines in the control block.
    lines: NonNull<u8>,
    /// The room for long bodies, once there is a large ring.
    long: Arc<OnceLock<LargeMap>>,
    room_wanted: NonNull<AtomicU64>,
    /// The memory of both.
    _lane: Arc<FileMap>,
    /// Turns so far. The first is 1.
    turn: AtomicU64,
    /// Parts so far of the turn under way, and the line of the next one.
    part: AtomicU64,
    here: AtomicPtr<u8>,
    /// Where in the room the body of the next part goes: behind those of the parts so far.
    unit: AtomicUsize,
    /// Whether the last turn of several parts was the other side's, so that this side's processor has its lines.
    has_lines: AtomicBool,
    /// Bytes of our message that are still to come in this turn.
    left: AtomicU64,
    places: Places,
    pub(super) silence: Silence,
    /// Whether the odd turns are this side's.
    first: bool,
}

// SAFETY: the pointers point into the `FileMap` beside them, which may be sent and lives as long.
unsafe impl Send for Dialogue {}
// SAFETY: what is not atomic is used by whoever has the turn, under the lock of its endpoint.
unsafe impl Sync for Dialogue {}

impl Dialogue {
    /// In this lane. `first`: this side has claimed the lane, and so has the first turn.
    pub(super) fn new(lane: &Lane, first: bool) -> Dialogue {
        let (lines, map, long) = lane.dialogue();
        Dialogue {
            lines,
            long,
            room_wanted: NonNull::from(lane.room_wanted()),
            _lane: map,
            turn: AtomicU64::new(0),
            part: AtomicU64::new(0),
            here: AtomicPtr::new(lines.as_ptr()),
            unit: AtomicUsize::new(0),
            has_lines: AtomicBool::new(false),
            left: AtomicU64::new(0),
            places: Places::default(),
            silence: Silence::default(),
            first,
        }
    }

    /// Whether the next turn is this side's.
    #[inline(always)]
    pub(super) fn is_ours(&self) -> bool {
        (self.turn() % 2 == 0) == self.first
    }

    /// The number of the last turn that was written here, or read, to its end.
    #[inline(always)]
    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn part(&self) -> usize {
        self.part.load(Ordering::Relaxed) as usize
    }

    /// Where the word of the next part is.
    #[inline(always)]
    fn here(&self) -> *mut u8 {
        self.here.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        word_at(self.here())
    }

    /// Which part is the next, before what stands in the ring at this position. `number`: how many turns its writer has
    /// had.
    #[inline(always)]
    fn next(&self, number: u64, position: u64) -> u64 {
        words::which(self.turn() + 1, number, position)
    }

    /// Whether the other side has written the next part, and it belongs before what stands in the ring at this
    /// position and behind so many turns.
    #[inline(always)]
    pub(super) fn is_next(&self, number: u64, position: u64) -> bool {
        // SYNC POINT turn: acquire.
        !self.is_ours() && which_of(self.word().load(Ordering::Acquire)) == self.next(number, position)
    }

    /// Header and body of the part that `is_next`, and whether the turn goes on behind it. They are this side's until
    /// it is `heard` and the next turn is written. None: what the word says cannot be.
    #[inline(always)]
    fn hear(&self) -> Option<([u64; 4], &[u8], bool)> {
        let word = self.word().load(Ordering::Relaxed);
        let goes_on = words::goes_on(word);
        if goes_on && !self.may_go_on() {
            return None;
        }
        let (header, body) = self.contents(self.here(), self.part(), word)?;
        Some((header, body, goes_on))
    }

    /// Header and body of a part whose lines begin here, and of which this is the word.
    #[inline(always)]
    fn contents(&self, here: *mut u8, part: usize, word: u64) -> Option<([u64; 4], &[u8])> {
        let len = len_of(word);
        let body: *const u8 = self.place(here, part, len, unit_of(word))?;
        // SAFETY: the header lies in the lines, aligned, and `place` has as many bytes. A peer that breaks the protocol
        // can change them meanwhile, nothing else; `wire::Header::from_words` checks whatever it is given.
        unsafe {
            let header = here.add(HEADER_AT).cast::<[u64; 4]>().read();
            Some((header, core::slice::from_raw_parts(body, len)))
        }
    }

    /// Header and body of a part of this side's last turn, which the other side has not taken.
    fn said(&self, part: usize) -> Option<([u64; 4], &[u8])> {
        let here = self.lines_of(part)?;
        self.contents(here, part, word_at(here).load(Ordering::Relaxed))
    }

    /// Such a part was carried out without the other side, which goes over it by this header. It must not read now
    /// (`exclusion`).
    fn replace_header(&self, part: usize, header: [u64; 4]) {
        if let Some(here) = self.lines_of(part) {
            // SAFETY: the header lies in the lines, aligned.
            unsafe { here.add(HEADER_AT).cast::<[u64; 4]>().write(header) };
        }
    }

    /// Takes back the parts of this side's last turn that the other side has not taken: its turn goes on behind those
    /// that were, or is still to begin. The other side must not read now (`exclusion`).
    fn unsay(&self, parts: Range<usize>) {
        let before = if self.is_open() { self.turn() } else { self.turn() - 1 };
        let Some(here) = self.lines_of(parts.start) else { return };
        let unit = unit_of(word_at(here).load(Ordering::Relaxed));
        self.unit
            .store(if parts.start == 0 { 0 } else { unit }, Ordering::Relaxed);
        self.turn.store(before, Ordering::Relaxed);
        self.part.store(parts.start as u64, Ordering::Relaxed);
        self.here.store(here, Ordering::Relaxed);
        for here in parts.filter_map(|part| self.lines_of(part)) {
            word_at(here).store(0, Ordering::Relaxed);
        }
    }

    /// Where the lines of a part begin.
    fn lines_of(&self, part: usize) -> Option<*mut u8> {
        if part == 0 {
            return Some(self.lines.as_ptr());
        }
        let room = self.room().filter(|_| part < PARTS)?;
        // SAFETY: there are lines for as many parts.
        Some(unsafe { line_of(room, part) })
    }

    /// Whether the next turn is this side's, or goes on, and there is room for such a body.
    #[inline(always)]
    pub(super) fn may_say(&self, len: usize) -> bool {
        let is_short = len <= BESIDE_HEADER || len <= SHORT && self.part() == 0;
        self.is_ours() && (is_short || self.has_room_for(len))
    }

    /// Whether this side's turn goes on.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.part() > 0 && self.is_ours()
    }

    /// Whether there can be a part behind the next one.
    fn may_go_on(&self) -> bool {
        self.part() + 1 < PARTS && self.room().is_some()
    }

    fn unit(&self) -> usize {
        self.unit.load(Ordering::Relaxed)
    }

    /// The memory behind the large ring, once there is one.
    fn room(&self) -> Option<NonNull<u8>> {
        self.long.get()?.dialogue()
    }

    fn has_room_for(&self, len: usize) -> bool {
        is_in_room(self.unit(), len) && self.room().is_some()
    }

    #[inline(always)]
    pub(super) fn lacks_room_for(&self, len: usize) -> bool {
        len > SHORT && len <= LONGEST && self.room().is_none()
    }

    /// See `Lane::room_wanted`.
    pub(super) fn room_wanted(&self) -> &AtomicU64 {
        // SAFETY: a word of the lane that has the dialogue, mapped as its lines are, and only used atomically.
        unsafe { self.room_wanted.as_ref() }
    }

    /// Where the body of a part goes, or is, whose lines begin `here`. A long one is in this unit of the room and
    /// behind it.
    #[inline(always)]
    fn place(&self, here: *mut u8, part: usize, len: usize, unit: usize) -> Option<*mut u8> {
        if let Some(place) = place_in_lines(here, part, len) {
            return Some(place);
        }
        let room = self.room().filter(|_| is_in_room(unit, len))?;
        // SAFETY: within the room.
        Some(unsafe { room.as_ptr().add(unit * UNIT) })
    }

    /// Where the long body of such a packet goes: a turn of one part has two places, one behind the other. That of a
    /// first part leaves what is behind it to the next.
    #[inline(never)]
    fn unit_for(&self, header: [u64; 4], len: usize) -> usize {
        match (header[0] as u8, header[2]) {
            _ if self.part() > 0 => self.unit(),
            (FIRST | SEGMENT, _) | (REPLY, 1..) => 0,
            (WRITE, _) if behind_write(header) > 0 => 0,
            _ => self.places.next() * units(len),
        }
    }

    /// A long body was written there.
    #[inline(never)]
    fn filled(&self, unit: usize, len: usize, goes_on: bool) {
        self.unit
            .store(if goes_on { unit + units(len) } else { 0 }, Ordering::Relaxed);
        if self.part() == 0 {
            let place = usize::from(unit > 0);
            let other = (1 - place) * units(len);
            let other = if goes_on {
                None
            } else {
                self.place(self.here(), 0, len, other)
            };
            self.places.wrote(place, other, len);
        }
    }

    /// Writes the next part, which this side `may_say`. `at`: how many turns it has had, and the position of the ring
    /// that goes the same way. `fill` puts the body in its place. Says whether the turn goes on; None if there is no
    /// room. `BRIEF`: the part `is_brief`, as most are, so the compiler leaves out what is for the others.
    #[inline(always)]
    fn say<const BRIEF: bool>(
        &self,
        header: [u64; 4],
        len: usize,
        (number, position): (u64, u64),
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<bool> {
        let (here, part) = (self.here(), if BRIEF { 0 } else { self.part() });
        let is_long = !BRIEF && (len > SHORT || part > 0);
        let unit = if is_long { self.unit_for(header, len) } else { 0 };
        let place = self.place(here, part, len, unit)?;
        let next_fits = || unit + 2 * units(len) <= UNITS;
        let goes_on = !BRIEF && self.more_follows(header, len) && next_fits() && self.may_go_on();
        // The word is computed first, so that all stores to the first line follow each other: the other side polls it,
        // and would fetch it in between.
        let word = words::word(self.next(number, position), len, unit, goes_on);
        // SAFETY: as many bytes are there; it is this side's turn, so only a peer that breaks the protocol uses them
        // meanwhile.
        fill(unsafe { core::slice::from_raw_parts_mut(place, len) });
        // SAFETY: the lines of a part begin there.
        unsafe { write_first_line(here, header, word) };
        if is_long {
            self.filled(unit, len, goes_on);
        }
        match BRIEF {
            true => self.end_turn(),
            false => self.pass(goes_on),
        }
        Some(goes_on)
    }

    /// Whether this is not the last packet of its message, write or answer.
    #[inline(always)]
    fn more_follows(&self, header: [u64; 4], len: usize) -> bool {
        let [first, _, data, total] = header;
        let all = match first as u8 {
            FIRST => total,
            SEGMENT => self.left.load(Ordering::Relaxed),
            REPLY => return data > 0,
            WRITE => return behind_write(header) > 0,
            _ => return false,
        };
        let left = all.saturating_sub(len as u64);
        self.left.store(left, Ordering::Relaxed);
        left > 0
    }

    /// A part was taken. A word that is not the first must not be taken for one of a turn that begins when as many
    /// turns have passed as a word can tell apart.
    #[inline(always)]
    fn heard(&self, goes_on: bool) {
        let word = self.word().load(Ordering::Relaxed);
        if len_of(word) > SHORT {
            self.places.read(usize::from(unit_of(word) > 0));
        }
        if self.part() > 0 {
            self.word().store(0, Ordering::Relaxed);
        }
        self.pass(goes_on);
    }

    /// After a poll that has found nothing.
    #[inline(always)]
    pub(super) fn nothing_heard(&self) {
        self.places.take_back();
    }

    /// A part was taken or written. If it was the last, the next turn is the other side's.
    #[inline(always)]
    fn pass(&self, goes_on: bool) {
        if goes_on || self.part() > 0 {
            return self.pass_part(goes_on);
        }
        self.end_turn();
    }

    #[inline(always)]
    fn end_turn(&self) {
        self.turn.store(self.turn() + 1, Ordering::Relaxed);
    }

    #[inline(never)]
    fn pass_part(&self, goes_on: bool) {
        let next = self.part() + 1;
        let (part, here) = match self.room().filter(|_| goes_on && next < PARTS) {
            // SAFETY: the lines of as many parts are there.
            Some(room) => (next, unsafe { line_of(room, next) }),
            None => (0, self.lines.as_ptr()),
        };
        self.part.store(part as u64, Ordering::Relaxed);
        self.here.store(here, Ordering::Relaxed);
        if part == 0 {
            self.has_lines.store(!self.is_ours(), Ordering::Relaxed);
            self.end_turn();
        }
    }

    /// Whether a turn of several parts of this side's would go to lines that its processor has.
    pub(super) fn has_lines(&self) -> bool {
        self.has_lines.load(Ordering::Relaxed)
    }
}

/// How many bytes of a write follow this packet of it.
#[inline(always)]
fn behind_write([first, _, _, total]: [u64; 4]) -> u64 {
    let has_data = (first >> 8) as u8 & flag::DATA != 0;
    if has_data { 0 } else { total }
}

/// How many units a body takes.
fn units(len: usize) -> usize {
    len.div_ceil(UNIT)
}

fn is_in_room(unit: usize, len: usize) -> bool {
    len <= LONGEST && unit * UNIT + len <= LONGEST_TURN
}
