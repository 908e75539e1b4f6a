//! Receiving: how the records of a ring, and the turns of two dialogues, are delivered to the engine.
//!
//! - `inbox`: which lanes are polled; `speeds`: how quickly their bodies come.
//!
//! Called by `ShmTransport::poll`, `housekeeping` and `sleeping`. Knows nothing of who a peer is.

mod inbox;
mod speeds;

use super::delivery::{Delivery, deliver};
use super::dialogue::{Dialogue, Heard, TurnIn};
use super::dual_copy::HelpRequest;
use super::exclusion;
use super::fill;
use super::lane::{self, Lane};
use super::ring::{Consumer, LINE, Record, RingEnd};
use super::streaming::{Streaming, Way};
use crate::engine::port::{PeerId, Sink, Token};
use crate::engine::wire;
use core::sync::atomic::{Ordering, compiler_fence, fence};
pub(super) use inbox::Inbox;
use speeds::Speeds;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Inbound {
    consumer: Consumer,
    pub(super) lane: Lane,
    pub peer: PeerId,
    /// See `lane::FENCED`.
    fenced: bool,
    /// The sender is dead: the lane is freed once it is empty.
    pub ending: bool,
    /// What its sender asked us to copy, which is done after the look at the ring.
    pub(super) help: Option<HelpRequest>,
    pub(super) speeds: Speeds,
    streaming: Streaming,
    /// The engine refused the next record.
    refused: bool,
    /// The sender is not told yet what was read last: the engine is to answer it when the poll is over.
    unanswered: bool,
    /// Where the two write by turns, in the order of `TurnIn`. Until we have a lane in the sender's file, both are the
    /// one in this lane.
    pub(super) dialogues: [Arc<Dialogue>; 2],
    pub(super) heard: Heard,
    /// Whether the next poll looks at both dialogues.
    looks_at_both: bool,
    /// Its sender goes on in a large ring, which we could not map.
    cannot_follow: bool,
    hot: bool,
    /// Had records since the clock hand of `cool_one` last passed.
    active: bool,
    /// Delivered something since `take_delivered`.
    delivered: bool,
    /// Polls in a row that found nothing here, to `WAITED`.
    empty_polls: u8,
}

/// What is to be done about a lane after its ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneEvent {
    /// Nothing: all that was there has been delivered, or as much as the engine takes now.
    Nothing,
    /// It is empty, and nothing more will come.
    Over,
    /// The sender wrote something that the protocol does not allow.
    Broken,
    /// Its sender sleeps until there is room, which there now is.
    Starved,
    /// Its sender asks for help with a dual copy.
    Help,
    /// Its sender goes on in a large ring.
    Moved,
}

impl Inbound {
    /// Delivers up to `budget` records. Says how many. Unless the engine is still to answer one, its sender is told
    /// that they are read.
    #[inline]
    fn drain<S: Sink>(&mut self, sink: &mut S, budget: usize) -> (usize, LaneEvent) {
        // A second look in one poll must not say that reading is over, as a first one that is refused does.
        if self.unanswered {
            return (0, LaneEvent::Nothing);
        }
        let words = *self.lane.rows();
        // A sender that takes records back has the kernel run the barrier for both sides.
        if !exclusion::may_read(&words, self.ending, || compiler_fence(Ordering::SeqCst)) {
            // What the engine refused before it has not been offered again, so nobody may sleep on it.
            self.refused = false;
            return (0, LaneEvent::Nothing);
        }
        let found = self.read_records(sink, budget);
        self.unanswered = sink.is_to_answer(self.peer);
        if !self.unanswered {
            self.say_read();
        }
        found
    }

    /// Tells the sender how far we have read.
    #[inline(always)]
    fn say_read(&self) {
        // SYNC POINT heard: release.
        self.lane.heard().store(self.heard.parts(), Ordering::Release);
        exclusion::has_read(self.lane.rows(), self.consumer.position());
    }

    /// The engine has answered what it had still to answer.
    fn has_answered(&mut self) {
        if core::mem::take(&mut self.unanswered) {
            self.say_read();
        }
    }

    #[inline(always)]
    fn read_records<S: Sink>(&mut self, sink: &mut S, budget: usize) -> (usize, LaneEvent) {
        self.refused = false;
        let alone = core::mem::take(&mut self.empty_polls) >= WAITED && budget > 0;
        // Whoever waited for a message mostly waited for one. Its sender has already taken the line behind it to write
        // the next: a look there takes as long as a message, and the sender then has to take the line once more.
        let (done, event) = match alone {
            true => match self.next_turn() {
                Some(place) => return self.hear_alone(place, sink),
                None => self.read_messages(sink, 1),
            },
            false => self.read_messages(sink, budget),
        };
        if alone && done > 0 {
            self.has_delivered();
            return self.or_help(done, event);
        }
        self.read_all(sink, budget, alone, done, event)
    }

    /// Goes on with records of all kinds, and turns.
    #[inline(always)]
    fn read_all<S: Sink>(
        &mut self,
        sink: &mut S,
        budget: usize,
        alone: bool,
        mut done: usize,
        mut event: LaneEvent,
    ) -> (usize, LaneEvent) {
        let turns = self.heard.turns();
        while done < budget {
            let found = self.consumer.next(self.lane.rows());
            // The ring is looked at first: a turn that was written before what is there is seen now.
            if !matches!(found, Ok(Some(_)))
                && let Some(place) = self.next_turn()
            {
                // The program has not answered the turn before, nor posted the receive for this one. What it says to
                // both would be taken for several in a row.
                if self.heard.turns() != turns {
                    break;
                }
                match self.hear(place, sink) {
                    Delivery::Done if alone => {
                        done += 1;
                        break;
                    }
                    Delivery::Done => {
                        done += 1;
                        continue;
                    }
                    Delivery::Refused => {
                        self.refused = true;
                        break;
                    }
                    Delivery::Broken => return (done, LaneEvent::Broken),
                }
            }
            let record = match found {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(RingEnd::Turn) => {
                    self.consumer.pass_turn();
                    continue;
                }
                Err(RingEnd::Moved) if !self.lane.is_wide() => {
                    // A sender that starves is woken first, and followed in the next poll.
                    if event == LaneEvent::Nothing {
                        event = LaneEvent::Moved;
                    }
                    break;
                }
                Err(RingEnd::Moved | RingEnd::Broken) => return (done, LaneEvent::Broken),
            };
            match self.deliver_record(sink, record, done) {
                Delivery::Done => {}
                Delivery::Refused => {
                    self.consumer.leave();
                    self.refused = true;
                    break;
                }
                Delivery::Broken => return (done, LaneEvent::Broken),
            }
            if self.consumer.advance(self.lane.rows(), record) && self.sender_starves() {
                event = LaneEvent::Starved;
            }
            done += 1;
            if alone && record.len <= LINE {
                break;
            }
        }
        if !self.refused {
            self.has_delivered();
        }
        self.or_help(done, event)
    }

    /// What we waited for is a turn.
    #[inline(always)]
    fn hear_alone<S: Sink>(&mut self, place: TurnIn, sink: &mut S) -> (usize, LaneEvent) {
        match self.hear(place, sink) {
            Delivery::Done => {
                self.has_delivered();
                self.or_help(1, LaneEvent::Nothing)
            }
            Delivery::Refused => {
                self.refused = true;
                self.or_help(0, LaneEvent::Nothing)
            }
            Delivery::Broken => (0, LaneEvent::Broken),
        }
    }

    #[inline(always)]
    fn has_delivered(&mut self) {
        self.active = true;
        self.delivered = true;
        self.looks_at_both = true;
    }

    /// Whoever asked us to copy something is helped unless there is something else to be done about the lane.
    #[inline(always)]
    fn or_help(&self, done: usize, event: LaneEvent) -> (usize, LaneEvent) {
        match event {
            LaneEvent::Nothing if self.help.is_some() => (done, LaneEvent::Help),
            event => (done, event),
        }
    }

    /// Reads messages of up to a line, until there is something else. Most records are such, so they have a loop that
    /// holds little.
    #[inline(always)]
    fn read_messages<S: Sink>(&mut self, sink: &mut S, budget: usize) -> (usize, LaneEvent) {
        let mut done = 0;
        while done < budget {
            let rows = self.lane.rows();
            let Some(record) = self.consumer.short(rows) else { break };
            // SAFETY: the record was read, and the reader goes behind it after the last use of the slice.
            let body: &[u8] = unsafe { rows.body(record) };
            if done >= SEVERAL {
                self.lane.expect_behind(record.cell);
            }
            let header = wire::Header::from_words(rows.read_header(record));
            if !header.is_some_and(|header| sink.take_message(self.peer, &header, body)) {
                break;
            }
            done += 1;
            if self.consumer.advance(self.lane.rows(), record) && self.sender_starves() {
                return (done, LaneEvent::Starved);
            }
        }
        (done, LaneEvent::Nothing)
    }

    /// The next record, before which this poll has delivered so many.
    #[inline(always)]
    fn deliver_record<S: Sink>(&mut self, sink: &mut S, record: Record, before: usize) -> Delivery {
        // SAFETY: the record was read, and the reader goes behind it after the last use of the slice.
        let body: &[u8] = unsafe { self.lane.rows().body(record) };
        // The sender is ahead, so the next lines are written already, and come while this record is taken. A long body
        // would be copied slower out of lines that were asked for.
        if before >= SEVERAL && record.len < fill::LONG {
            self.lane.expect_behind(record.cell);
        }
        let started = self.speeds.start(record.len);
        let header = wire::Header::from_words(self.lane.rows().read_header(record));
        if !header.is_some_and(|header| sink.take(self.peer, &header, body)) {
            // The header is read once more, so that on the way through `take` it stays in registers.
            let words = self.lane.rows().read_header(record);
            match deliver(sink, self.peer, &mut self.help, words, body) {
                Delivery::Done => {}
                other => return other,
            }
        }
        if let Some(started) = started {
            self.speeds.copied(&self.lane, record.len, started.elapsed());
        }
        Delivery::Done
    }

    /// SYNC POINT starved: lines were given back before this look. A starved sender has the kernel run our barrier, or
    /// we fence.
    #[inline]
    fn sender_starves(&self) -> bool {
        if self.fenced {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        if self.lane.sender().load(Ordering::Relaxed) & lane::STARVED == 0 {
            return false;
        }
        self.lane.sender().fetch_and(!lane::STARVED, Ordering::Relaxed);
        true
    }

    #[inline]
    fn has_news(&self) -> bool {
        !self.cannot_follow && (self.consumer.has_news(self.lane.rows()) || self.next_turn().is_some())
    }

    /// The same in a poll. Of the two dialogues only every other poll looks at the one in which no turn is expected: a
    /// processor that looks at a line takes it from the other side's, which may be about to read it, or to write.
    #[inline(always)]
    fn has_news_in_poll(&mut self) -> bool {
        let looks_at_both = self.looks_at_both;
        self.looks_at_both = !looks_at_both;
        if self.cannot_follow || self.consumer.has_news(self.lane.rows()) {
            return !self.cannot_follow;
        }
        let (number, position) = (self.heard.turns(), self.consumer.position());
        let is_next = |dialogue: &Dialogue| dialogue.is_next(number, position);
        let [expected, other] = &self.dialogues;
        if expected.silence.is_too_soon() {
            return false;
        }
        is_next(expected) || (looks_at_both || expected.is_ours()) && is_next(other)
    }

    #[inline(always)]
    fn has_no_news(&mut self) {
        self.empty_polls = (self.empty_polls + 1).min(WAITED);
        let [expected, _] = &self.dialogues;
        expected.nothing_heard();
    }

    /// In which dialogue the next part is there that comes before what is next in the ring.
    #[inline(always)]
    fn next_turn(&self) -> Option<TurnIn> {
        let (number, position) = (self.heard.turns(), self.consumer.position());
        let [expected, other] = &self.dialogues;
        if expected.is_next(number, position) {
            Some(TurnIn::Expected)
        } else if other.is_next(number, position) {
            Some(TurnIn::Other)
        } else {
            None
        }
    }

    /// Whether the ring is empty and stays so. Reads first whether the sender has closed, then whether there are
    /// records: so those sent before it closed are seen.
    fn is_over(&self) -> bool {
        let closed = self.lane.sender().load(Ordering::Acquire) & lane::SENDER_CLOSED != 0;
        (closed || self.ending) && !self.has_news()
    }

    /// Goes on in the larger ring. If that cannot be mapped, the lane waits to be tried again.
    fn follow(&mut self, index: usize, file: BorrowedFd<'_>) -> io::Result<()> {
        let moved = self.lane.grow(file, index);
        self.cannot_follow = moved.is_err();
        moved.map(|_| self.consumer.follow())
    }

    /// How a long message of this lane's sender comes best. `polls`: the sender's, by now. `plenty`: whether
    /// /dev/shm has room to spare, as a stream needs a large ring, which the two may not have yet.
    pub(super) fn way_of(&mut self, message: Token, polls: u64, plenty: impl FnOnce() -> bool) -> Way {
        let may_try = || self.lane.is_large() || plenty();
        self.streaming.choose(message, self.speeds.of_ring(), polls, may_try)
    }

    #[cfg(test)]
    pub(super) fn has_refused(&self) -> bool {
        self.refused
    }

    fn set_hot(&mut self, hot: bool) {
        self.hot = hot;
        self.active = hot;
        self.lane.hot().store(u64::from(hot), Ordering::Relaxed);
    }
}

/// After so many empty polls the receiver is taken to wait. After one, the program may have done something else since.
const WAITED: u8 = 2;

/// After so many records in one poll the sender is taken to be ahead.
const SEVERAL: usize = 4;
