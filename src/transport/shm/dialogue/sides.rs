//! The two sides of a dialogue: what an `Outbound` says, and an `Inbound` hears.
//!
//! Each of them has the `Dialogue` of its pair, once both have a ring. Called by `outbound`, `inbound`, `recall` and
//! `ring_or_kernel`. Of the engine's headers it knows which answer each other.

use super::super::copy_speed;
use super::super::delivery::{Delivery, deliver};
use super::super::fill;
use super::super::inbound::Inbound;
use super::super::outbound::{Outbound, Written};
use super::{Dialogue, LONGEST_TURN, PART_BITS, PARTS};
use crate::engine::port::Sink;
use crate::engine::wire::{self, Packet};
use core::ops::Range;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// What we have said last; nothing that is still to be heard, if that is of no parts.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Said {
    /// `Dialogue::parts`, once it is read.
    parts: u64,
    /// How many parts its turn has so far, and where they stand among the records of our ring.
    of_turn: usize,
    positions: [u64; PARTS],
}

impl Said {
    #[inline(always)]
    pub(in super::super) fn parts(&self) -> u64 {
        self.parts
    }
}

/// Whether such a packet may begin a turn: it answers another, or is answered with one turn.
#[inline(always)]
pub(in super::super) fn is_said(header: &wire::Header) -> bool {
    match header.packet {
        Packet::Eager
        | Packet::Write
        | Packet::Atomic
        | Packet::FetchAtomic
        | Packet::CompareAtomic
        | Packet::Reply
        | Packet::Acked => true,
        Packet::Read => header.total <= LONGEST_TURN as u64,
        _ => false,
    }
}

/// Whether it is one of several packets with bytes that were read. As only a brief packet asks for them, their lines
/// are all with the other side's processor.
#[inline(always)]
fn is_answer_in_parts([first, _, behind, at]: [u64; 4]) -> bool {
    first as u8 == Packet::Reply as u8 && (behind > 0 || at > 0)
}

impl Outbound {
    /// Whether the next turn of the dialogue is ours, or goes on, and there is room for such a body.
    #[inline(always)]
    pub(in super::super) fn may_say(&self, len: usize) -> bool {
        self.dialogue.as_ref().is_some_and(|dialogue| dialogue.may_say(len))
    }

    /// Whether a turn of several parts would go to lines that our processor has.
    pub(in super::super) fn has_lines(&self) -> bool {
        self.dialogue.as_ref().is_some_and(|dialogue| dialogue.has_lines())
    }

    /// Whether our turn goes on.
    #[inline(always)]
    pub(in super::super) fn is_speaking(&self) -> bool {
        self.dialogue.as_ref().is_some_and(|dialogue| dialogue.is_open())
    }

    /// Writes the next part of the dialogue. Is given words and an address, so that on the way to the ring neither
    /// header nor body need be in memory.
    ///
    /// # Safety
    /// `len` bytes are readable at `from`.
    #[inline(never)]
    pub(in super::super) unsafe fn say(
        &mut self,
        first: u64,
        second: u64,
        third: u64,
        fourth: u64,
        from: *const u8,
        len: usize,
    ) -> Written {
        let started = if len < fill::LONG { None } else { self.start_saying(len) };
        let Some(dialogue) = &self.dialogue else {
            return Written::Gone;
        };
        let position = self.producer.position();
        let part = dialogue.part();
        let header = [first, second, third, fourth];
        let said = dialogue.say(part, header, len, position, |room| {
            // SAFETY: the caller's promise. No memory that may be sent is the dialogue's.
            unsafe {
                match len >= fill::LONG && is_answer_in_parts(header) {
                    true => fill::copy_asking_ahead(from, room),
                    false => core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len()),
                }
            }
        });
        if said.is_none() {
            return Written::Full;
        }
        if let Some(started) = started {
            let took = copy_speed::per_byte(len, started.elapsed());
            self.lane.saying().store(took, Ordering::Relaxed);
        }
        self.said.parts = dialogue.parts();
        self.said.of_turn = part + 1;
        if let Some(at) = self.said.positions.get_mut(part) {
            *at = position;
        }
        self.producer.behind_a_turn();
        self.announce()
    }

    /// Before a long body is copied: the time, if that is to be timed.
    #[cold]
    fn start_saying(&mut self, len: usize) -> Option<Instant> {
        let known = self.dialogue_speed();
        self.timer_of_turns.start(len, known)
    }

    /// Whether the peer has read all that we have said.
    #[inline(always)]
    pub(in super::super) fn is_heard(&self) -> bool {
        self.has_heard(self.said.parts)
    }

    /// The same as far as so many parts go.
    #[inline(always)]
    pub(in super::super) fn has_heard(&self, parts: u64) -> bool {
        // SYNC POINT heard: acquire.
        parts == 0 || self.lane.heard().load(Ordering::Acquire) >= parts
    }

    /// Which parts of our last turn the peer has not read.
    pub(in super::super) fn unheard_parts(&self) -> Range<usize> {
        if self.is_heard() {
            return 0..0;
        }
        let (parts, of_turn) = (self.said.parts, self.said.of_turn);
        let heard = self.lane.heard().load(Ordering::Acquire);
        // The peer may have written anything.
        let is_begun = heard >> PART_BITS == (parts - 1) >> PART_BITS;
        let first = if is_begun {
            (heard % (1 << PART_BITS)) as usize
        } else {
            0
        };
        first.min(of_turn)..of_turn
    }

    /// The position in our ring before which one of them stands.
    pub(in super::super) fn position_of(&self, part: usize) -> u64 {
        self.said.positions.get(part).copied().unwrap_or(u64::MAX)
    }

    /// Header and body of one of them.
    pub(in super::super) fn said(&self, part: usize) -> Option<([u64; 4], &[u8])> {
        self.dialogue.as_ref()?.said(part)
    }

    /// One of them was carried out without the peer, who goes over it by this header. See `Dialogue::replace_header`.
    pub(in super::super) fn replace_said(&self, part: usize, header: [u64; 4]) {
        if let Some(dialogue) = &self.dialogue {
            dialogue.replace_header(part, header);
        }
    }

    /// All of them were carried out without the peer, so the next part is ours again. See `Dialogue::unsay`.
    pub(in super::super) fn take_back_turn(&mut self) {
        let parts = self.unheard_parts();
        if let Some(dialogue) = self.dialogue.as_ref().filter(|_| !parts.is_empty()) {
            dialogue.unsay(parts);
        }
        self.said = Said::default();
        self.last_reads.forget();
    }
}

impl Inbound {
    /// Delivers the next part of the dialogue.
    #[inline(never)]
    pub(in super::super) fn hear<S: Sink>(&mut self, sink: &mut S) -> Delivery {
        let Some(dialogue) = &self.dialogue else {
            return Delivery::Broken;
        };
        let Some((words, body, goes_on)) = dialogue.hear() else {
            return Delivery::Broken;
        };
        let started = self.speeds.start_turn(body.len());
        let header = wire::Header::from_words(words);
        let take = |header| sink.take_message(self.peer, &header, body) || sink.take(self.peer, &header, body);
        if !header.is_some_and(take) {
            match deliver(sink, self.peer, &mut self.help, words, body) {
                Delivery::Done => {}
                other => return other,
            }
        }
        let len = body.len();
        dialogue.heard(goes_on);
        if let Some(started) = started {
            self.speeds
                .copied_of_turn(&self.lane, len, started.elapsed(), is_answer_in_parts(words));
        }
        Delivery::Done
    }

    /// Both sides have a lane: whose instance is the smaller one has the dialogue in the lane that it has in the
    /// other's file.
    pub(in super::super) fn open_dialogue(&mut self, out: &mut Outbound, own_instance: u64) {
        if self.ending || out.instance() != self.lane.claimed_by() {
            return;
        }
        if own_instance < out.instance() {
            self.dialogue = Some(Arc::new(Dialogue::new(&out.lane, true)));
        }
        out.dialogue = self.dialogue.clone();
    }
}
