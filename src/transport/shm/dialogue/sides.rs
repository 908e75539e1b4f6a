//! The two sides of a pair: what an `Outbound` says, and an `Inbound` hears.
//!
//! Each of them has the two dialogues of its pair, once both have a ring. Called by `outbound`, `inbound`, `recall` and
//! `ring_or_kernel`. Of the engine's headers it knows which answer each other.

use super::super::copy_speed;
use super::super::delivery::{Delivery, deliver};
use super::super::fill;
use super::super::inbound::Inbound;
use super::super::outbound::{Outbound, Written};
use super::said::TurnIn;
use super::{Dialogue, LONGEST_TURN, SHORT, behind_write};
use crate::engine::port::Sink;
use crate::engine::wire::{self, Packet};
use core::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Which of a pair's two dialogues: each is begun by one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BegunBy {
    /// In the lane of ours that is in the peer's file.
    Us,
    /// In the peer's lane in our file.
    Peer,
}

/// The two dialogues of a pair, as its sender has them.
#[derive(Debug)]
pub(in super::super) struct Dialogues {
    /// In the order of `BegunBy`.
    each: [Arc<Dialogue>; 2],
}

impl Dialogues {
    /// That in which the next part of ours would be: of the two the one where our turn goes on, or is the next. Where
    /// the peer began, we answer.
    #[inline(always)]
    pub(in super::super) fn next(&self) -> usize {
        let [begun_here, begun_there] = &self.each;
        match begun_there.is_ours() && !begun_here.is_open() {
            true => BegunBy::Peer as usize,
            false => BegunBy::Us as usize,
        }
    }

    /// `which`: a `BegunBy`.
    #[inline(always)]
    pub(in super::super) fn of(&self, which: usize) -> &Dialogue {
        let [begun_here, begun_there] = &self.each;
        match which == BegunBy::Peer as usize {
            true => begun_there,
            false => begun_here,
        }
    }

    #[inline(always)]
    pub(super) fn speaking(&self) -> &Dialogue {
        self.of(self.next())
    }

    /// Whether our turn goes on in one of them.
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.each.iter().any(|dialogue| dialogue.is_open())
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

/// Whether it is all of its message, write or answer.
#[inline(always)]
fn is_whole(header: &wire::Header) -> bool {
    match header.packet {
        Packet::First | Packet::Segment => false,
        Packet::Reply => header.total == 0 && header.data == 0,
        Packet::Write => behind_write(header.words()) == 0,
        _ => true,
    }
}

/// Whether it is one of several packets with bytes that were read. As only a brief packet asks for them, their lines
/// are all with the other side's processor.
#[inline(always)]
fn is_answer_in_parts([first, _, behind, at]: [u64; 4]) -> bool {
    first as u8 == Packet::Reply as u8 && (behind > 0 || at > 0)
}

impl Dialogue {
    /// Whether such a packet would be all of a turn, and fits the lines.
    #[inline(always)]
    pub(in super::super) fn is_brief(&self, header: &wire::Header, len: usize) -> bool {
        len <= SHORT && self.part() == 0 && is_whole(header)
    }
}

impl Outbound {
    /// The dialogue in which the next part of ours would be.
    #[inline(always)]
    pub(in super::super) fn speaking(&self) -> Option<&Dialogue> {
        self.dialogues.as_ref().map(Dialogues::speaking)
    }

    /// Whether the next turn is ours, or goes on, and there is room for such a body.
    #[inline(always)]
    pub(in super::super) fn may_say(&self, len: usize) -> bool {
        self.speaking().is_some_and(|dialogue| dialogue.may_say(len))
    }

    /// Whether a turn of several parts would go to lines that our processor has. Or it will have them: where turns of
    /// both sides cross, each of the two dialogues begins once with lines of the other side.
    pub(in super::super) fn has_lines(&self) -> bool {
        self.speaking().is_some_and(Dialogue::has_lines) || self.says_long_elsewhere()
    }

    /// Whether our last turn was long, and the next is in the other dialogue, as the peer has not answered yet: then
    /// turns of both sides cross.
    pub(in super::super) fn says_long_elsewhere(&self) -> bool {
        let next = self.dialogues.as_ref().map(Dialogues::next);
        next.is_some_and(|next| self.said.was_long_elsewhere(next))
    }

    /// Whether our turn goes on.
    #[inline(always)]
    pub(in super::super) fn is_speaking(&self) -> bool {
        self.dialogues.as_ref().is_some_and(Dialogues::is_open)
    }

    /// Writes the next part of a turn, in the dialogue that is the `next`. `BRIEF`: the packet `is_brief` there. Is given
    /// words and an address, so that on the way to the ring neither header nor body need be in memory.
    ///
    /// # Safety
    /// The bytes of the body are readable.
    #[inline(never)]
    pub(in super::super) unsafe fn say<const BRIEF: bool>(
        &mut self,
        which: usize,
        first: u64,
        second: u64,
        third: u64,
        fourth: u64,
        body: *const [u8],
    ) -> Written {
        let (from, len) = (body.cast::<u8>(), body.len());
        let is_long = !BRIEF && len >= fill::LONG;
        let started = if is_long { self.start_saying(len) } else { None };
        let Some(dialogues) = &self.dialogues else {
            return Written::Gone;
        };
        let dialogue = dialogues.of(which);
        let part = if BRIEF { 0 } else { dialogue.part() };
        let position = self.producer.position();
        let header = [first, second, third, fourth];
        let said = dialogue.say::<BRIEF>(header, len, (self.said.turns(), position), |room| {
            // SAFETY: the caller's promise. No memory that may be sent is the dialogue's.
            unsafe {
                match is_long && is_answer_in_parts(header) {
                    true => fill::copy_asking_ahead(from, room),
                    false => core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len()),
                }
            }
        });
        let Some(goes_on) = said else {
            return Written::Full;
        };
        if let Some(started) = started {
            let took = copy_speed::per_byte(len, started.elapsed());
            self.lane.saying().store(took, Ordering::Relaxed);
        }
        if !goes_on {
            dialogue.silence.begin();
        }
        self.said.add_part(which, part, position, goes_on);
        self.producer.behind_a_turn();
        self.announce()
    }

    /// Before a long body is copied: the time, if that is to be timed.
    #[cold]
    fn start_saying(&mut self, len: usize) -> Option<Instant> {
        let known = self.dialogue_speed();
        self.timer_of_turns.start(len, known)
    }
}

impl Inbound {
    /// Delivers the next part, which is in this dialogue.
    #[inline(never)]
    pub(in super::super) fn hear<S: Sink>(&mut self, place: TurnIn, sink: &mut S) -> Delivery {
        let [expected, other] = &self.dialogues;
        let dialogue = match place {
            TurnIn::Expected => expected,
            TurnIn::Other => other,
        };
        let Some((words, body, goes_on)) = dialogue.hear() else {
            return Delivery::Broken;
        };
        dialogue.silence.end();
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
        if self.heard.add_part(place, goes_on) {
            self.dialogues.swap(0, 1);
        }
        if let Some(started) = started {
            self.speeds
                .copied_of_turn(&self.lane, len, started.elapsed(), is_answer_in_parts(words));
        }
        Delivery::Done
    }

    /// Both sides have a lane, and a dialogue in each. What an endpoint says to itself goes through the ring.
    pub(in super::super) fn open_dialogues(&mut self, out: &mut Outbound, own_instance: u64) {
        if self.ending || out.instance() != self.lane.claimed_by() || out.instance() == own_instance {
            return;
        }
        let [begun_there, other] = &mut self.dialogues;
        *other = Arc::new(Dialogue::new(&out.lane, true));
        out.dialogues = Some(Dialogues {
            each: [other.clone(), begun_there.clone()],
        });
    }
}
