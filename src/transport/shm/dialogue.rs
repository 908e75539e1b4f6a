//! A dialogue: two endpoints that answer each other write by turns to the same lines.
//!
//! A processor that reads a line which another has written gets it for itself, on AMD's at least. If the answer goes to that
//! line, it need not be taken from the other side first, as a line of a ring must, where the other side looks meanwhile. A bare
//! ring takes twice as long to and fro for 8 bytes where no cache is shared, and nearly twice for 4 and 8 KiB where one is.
//!
//! A pair has one dialogue, in the lane of whichever has the smaller instance in the other's file: a few lines of the control
//! block, and for longer bodies some behind the large ring. That side has the first turn. Whoever has read the other's turn
//! has the next; what else is to be sent meanwhile goes through the ring. The word of a turn tells the position in its
//! writer's ring before which it belongs, so the two keep one order: a reader looks at the ring, then here, and takes a turn
//! before the record that stands at its position.
//!
//! Called by `outbound` and `inbound`, whose parts in this are here too; opened by `ShmTransport` and `housekeeping`. Of the engine's
//! headers it knows which answer each other.

use super::delivery::{Delivery, deliver};
use super::inbound::Inbound;
use super::lane::{DIALOGUE_BYTES, LargeMap, Ring};
use super::outbound::{Outbound, Written};
use super::ring::LINE;
use crate::engine::port::Sink;
use crate::engine::wire::{self, Packet};
use crate::sys::shared::FileMap;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

// A turn's word, from the top: the low bits of its number, those of the position, the length of the body.
const LEN_BITS: u32 = 16;
const FIELD_BITS: u32 = 24;
const FIELD: u64 = (1 << FIELD_BITS) - 1;
const LEN: u64 = (1 << LEN_BITS) - 1;

const HEADER_AT: usize = 8;
/// A body that fits follows the header at once. Longer ones begin with the second line, as the other side looks at the first
/// meanwhile, which is therefore written at once, at the end.
const BODY_AT: usize = HEADER_AT + 32;
const BRIEF: usize = LINE - BODY_AT;
/// The longest body that fits the lines. Longer ones lie behind the large ring.
const SHORT: usize = DIALOGUE_BYTES - LINE;
/// The longest body: that of a packet.
pub(super) const LONGEST: usize = super::config::MAX_BODY;
const _: () = assert!(LONGEST as u64 <= LEN);

#[derive(Debug)]
pub(super) struct Dialogue {
    /// The first of the lines in the control block.
    lines: NonNull<u8>,
    /// The room for long bodies, once there is a large ring.
    long: Arc<OnceLock<LargeMap>>,
    /// The memory of `lines`.
    _lane: Arc<FileMap>,
    /// Turns so far. The first is 1.
    turn: AtomicU64,
    /// Whether the odd turns are this side's.
    first: bool,
}

// SAFETY: the pointer points into the `FileMap` beside it, which may be sent and lives as long.
unsafe impl Send for Dialogue {}
// SAFETY: what is not atomic is used by whoever has the turn, under the lock of its endpoint.
unsafe impl Sync for Dialogue {}

impl Dialogue {
    /// In this lane. `first`: this side has claimed the lane, and so has the first turn.
    pub(super) fn new(lane: &Ring, first: bool) -> Dialogue {
        let (lines, map, long) = lane.dialogue();
        Dialogue {
            lines,
            long,
            _lane: map,
            turn: AtomicU64::new(0),
            first,
        }
    }

    #[inline(always)]
    fn is_ours(&self) -> bool {
        (self.turn() % 2 == 0) == self.first
    }

    /// The number of the last turn that was written here, or read.
    #[inline(always)]
    pub(super) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: aligned and mapped; as the first word of the lines, it is only used atomically.
        unsafe { &*self.lines.as_ptr().cast::<AtomicU64>() }
    }

    /// The upper part of the word of the next turn.
    #[inline(always)]
    fn next_word(&self, position: u64) -> u64 {
        ((self.turn() + 1) & FIELD) << FIELD_BITS | (position & FIELD)
    }

    /// Whether the other side has written the next turn, and it belongs before what stands in the ring at this position.
    #[inline(always)]
    pub(super) fn is_next(&self, position: u64) -> bool {
        // SYNC POINT turn: acquire.
        !self.is_ours() && self.word().load(Ordering::Acquire) >> LEN_BITS == self.next_word(position)
    }

    /// Header and body of the turn that `is_next`; they are this side's until it is `passed` and the next is written. None: its
    /// length cannot be.
    #[inline(always)]
    fn hear(&self) -> Option<([u64; 4], &[u8])> {
        let len = (self.word().load(Ordering::Relaxed) & LEN) as usize;
        let body: *const u8 = self.place(len)?;
        // SAFETY: the header lies in the lines, aligned, and `place` has as many bytes. A peer that breaks the protocol can
        // change them meanwhile, nothing else; `wire::Header::from_words` checks whatever it is given.
        unsafe {
            let header = self.lines.as_ptr().add(HEADER_AT).cast::<[u64; 4]>().read();
            Some((header, core::slice::from_raw_parts(body, len)))
        }
    }

    /// Whether the next turn is this side's, and there is room for such a body.
    #[inline(always)]
    pub(super) fn may_say(&self, len: usize) -> bool {
        self.is_ours() && self.place(len).is_some()
    }

    #[inline(always)]
    fn place(&self, len: usize) -> Option<*mut u8> {
        if len > SHORT {
            let long = self.long.get().filter(|_| len <= LONGEST);
            return long.map(|long| long.dialogue().as_ptr());
        }
        let at = if len <= BRIEF { BODY_AT } else { LINE };
        // SAFETY: within the lines.
        Some(unsafe { self.lines.as_ptr().add(at) })
    }

    /// Writes the next turn, which this side `may_say`. `position`: that of the ring that goes the same way. Returns its number;
    /// None if there is no room.
    #[inline(always)]
    fn say(&self, header: [u64; 4], len: usize, position: u64, fill: impl FnOnce(&mut [u8])) -> Option<u64> {
        let place = self.place(len)?;
        // SAFETY: as many bytes are there; it is this side's turn, so only a peer that breaks the protocol uses them meanwhile.
        fill(unsafe { core::slice::from_raw_parts_mut(place, len) });
        // SAFETY: the header lies in the lines, aligned.
        unsafe { self.lines.as_ptr().add(HEADER_AT).cast::<[u64; 4]>().write(header) };
        let word = self.next_word(position) << LEN_BITS | len as u64;
        // SYNC POINT turn: release.
        self.word().store(word, Ordering::Release);
        self.passed();
        Some(self.turn())
    }

    /// A turn was taken, or written: the next is the other side's.
    #[inline(always)]
    fn passed(&self) {
        self.turn.store(self.turn() + 1, Ordering::Relaxed);
    }
}

/// A turn of ours in a dialogue; turn 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    turn: u64,
    /// Where it stands among the records of our ring.
    position: u64,
}

/// Whether such packets may go by way of the dialogue: those that answer each other, but for what may be taken back from the
/// ring (`recall`).
#[inline(always)]
pub(super) fn is_said(packet: Packet) -> bool {
    matches!(
        packet,
        Packet::Eager | Packet::FetchAtomic | Packet::CompareAtomic | Packet::Reply
    )
}

impl Outbound {
    /// Whether the next turn of the dialogue is ours, and there is room for such a body.
    #[inline(always)]
    pub(super) fn may_say(&self, len: usize) -> bool {
        self.dialogue.as_ref().is_some_and(|dialogue| dialogue.may_say(len))
    }

    /// Writes the next turn of the dialogue. Is given words and an address, so that on the way to the ring neither header nor body
    /// need be in memory.
    ///
    /// # Safety
    /// `len` bytes are readable at `from`.
    #[inline(never)]
    pub(super) unsafe fn say(
        &mut self,
        first: u64,
        second: u64,
        third: u64,
        fourth: u64,
        from: *const u8,
        len: usize,
    ) -> Written {
        let Some(dialogue) = &self.dialogue else {
            return Written::Gone;
        };
        let position = self.producer.position();
        let turn = dialogue.say([first, second, third, fourth], len, position, |room| {
            // SAFETY: the caller's promise. No memory that may be sent is the dialogue's.
            unsafe { core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len()) };
        });
        let Some(turn) = turn else { return Written::Full };
        self.producer.behind_a_turn();
        self.said = Said { turn, position };
        self.announce()
    }

    /// Whether the peer has read all of our turns.
    #[inline(always)]
    pub(super) fn is_heard(&self) -> bool {
        // SYNC POINT heard: acquire.
        self.said.turn == 0 || self.ring.heard().load(Ordering::Acquire) >= self.said.turn
    }

    /// The position before which our last turn stands, if the peer has not read it.
    pub(super) fn unheard(&self) -> Option<u64> {
        (!self.is_heard()).then_some(self.said.position)
    }
}

impl Inbound {
    /// Delivers the next turn of the dialogue.
    #[inline(never)]
    pub(super) fn hear<S: Sink>(&mut self, sink: &mut S) -> Delivery {
        let Some(dialogue) = &self.dialogue else {
            return Delivery::Broken;
        };
        let Some((words, body)) = dialogue.hear() else {
            return Delivery::Broken;
        };
        let header = wire::Header::from_words(words);
        if !header.is_some_and(|header| sink.take(self.peer, &header, body)) {
            match deliver(sink, self.peer, &mut self.help, words, body) {
                Delivery::Done => {}
                other => return other,
            }
        }
        dialogue.passed();
        Delivery::Done
    }

    /// Both sides have a ring: whose instance is the smaller one has the dialogue in the lane that it has in the other's file.
    pub(super) fn open_dialogue(&mut self, out: &mut Outbound, own_instance: u64) {
        if self.ending || out.instance() != self.ring.claimed_by() {
            return;
        }
        if own_instance < out.instance() {
            self.dialogue = Some(Arc::new(Dialogue::new(out.ring(), true)));
        }
        out.dialogue = self.dialogue.clone();
    }
}
