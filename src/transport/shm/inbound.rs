//! Receiving: which of the rings in our file are polled, and how a record is delivered to the engine.
//!
//! A ring that was active lately is hot: every poll reads it, and its sender does nothing but write. Every other ring
//! has a bell, a bit that its sender sets. A sender may still see a ring as hot that has just ceased to be, and not
//! ring; as senders do not fence, all rings are also scanned in turn, a few at a time.
//!
//! Called by `ShmTransport::poll` (hot rings), `housekeeping` (all others) and `sleeping`. Knows nothing of who a peer
//! is.

use super::copy_speed::{Copies, CopySpeed};
use super::delivery::{Delivery, deliver};
use super::dual_copy::HelpRequest;
use super::exclusion;
use super::fill;
use super::lane::{self, Ring};
use super::layout::FileHeader;
use super::ring::{Consumer, LINE, RingEnd};
use super::streaming::{Streaming, Way};
use crate::engine::port::{PeerId, Sink, Token};
use crate::engine::wire;
use core::sync::atomic::{Ordering, compiler_fence, fence};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Inbound {
    consumer: Consumer,
    pub(super) ring: Ring,
    pub peer: PeerId,
    /// See `lane::FENCED`.
    fenced: bool,
    /// The sender is dead: the ring is freed once it is empty.
    pub ending: bool,
    /// What its sender asked us to copy, which is done after the look at the ring.
    help: Option<HelpRequest>,
    copy_speed: CopySpeed,
    streaming: Streaming,
    /// The engine refused the next record.
    refused: bool,
    /// The sender is not told yet what was read last: the engine is to answer it when the poll is over.
    unanswered: bool,
    /// Its sender goes on in a large ring, which we could not map.
    cannot_follow: bool,
    hot: bool,
    /// Had records since the clock hand of `cool_one` last passed.
    active: bool,
    /// Delivered something since `take_delivered`.
    delivered: bool,
    /// The last poll found nothing here.
    was_empty: bool,
}

/// What is to be done about a ring after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingEvent {
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
    /// Delivers up to `budget` records. Says how many. Unless the engine is still to answer one, its sender is told that they
    /// are read.
    #[inline]
    fn drain<S: Sink>(&mut self, sink: &mut S, budget: usize) -> (usize, RingEvent) {
        // A second look in one poll must not say that reading is over, as a first one that is refused does.
        if self.unanswered {
            return (0, RingEvent::Nothing);
        }
        let words = *self.ring.rows();
        // A sender that takes records back has the kernel run the barrier for both sides.
        if !exclusion::may_read(&words, self.ending, || compiler_fence(Ordering::SeqCst)) {
            return (0, RingEvent::Nothing);
        }
        let found = self.read_records(sink, budget);
        self.unanswered = sink.is_to_answer(self.peer);
        if !self.unanswered {
            exclusion::has_read(&words, self.consumer.position());
        }
        found
    }

    /// The engine has answered what it had still to answer.
    fn has_answered(&mut self) {
        if core::mem::take(&mut self.unanswered) {
            exclusion::has_read(self.ring.rows(), self.consumer.position());
        }
    }

    #[inline(always)]
    fn read_records<S: Sink>(&mut self, sink: &mut S, budget: usize) -> (usize, RingEvent) {
        self.refused = false;
        let alone = core::mem::take(&mut self.was_empty);
        let (mut done, mut event) = (0, RingEvent::Nothing);
        while done < budget {
            let record = match self.consumer.next(self.ring.rows()) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(RingEnd::Moved) if !self.ring.is_large() => return (done, RingEvent::Moved),
                Err(RingEnd::Moved | RingEnd::Broken) => return (done, RingEvent::Broken),
            };
            // SAFETY: the record was read and is released after the last use of the slice.
            let body: &[u8] = unsafe { self.ring.rows().body(record) };
            // The sender is ahead, so the next lines are written already, and come while this record is taken. A long body would be
            // copied slower out of lines that were asked for.
            if done >= SEVERAL && record.len < fill::LONG {
                self.ring.expect_behind(record.cell);
            }
            let started = self.copy_speed.start(record.len);
            let header = wire::Header::from_words(self.ring.rows().read_header(record));
            if !header.is_some_and(|header| sink.take(self.peer, &header, body)) {
                // The header is read once more, so that on the way through `take` it stays in registers.
                let words = self.ring.rows().read_header(record);
                match deliver(sink, self.peer, &mut self.help, words, body) {
                    Delivery::Done => {}
                    Delivery::Refused => {
                        self.refused = true;
                        break;
                    }
                    Delivery::Broken => return (done, RingEvent::Broken),
                }
            }
            if let Some(started) = started {
                self.copied(record.len, started.elapsed());
            }
            if self.consumer.advance(self.ring.rows(), record) && self.sender_starves() {
                event = RingEvent::Starved;
            }
            done += 1;
            // Whoever waited for a message mostly waited for one. Its sender has already taken the line behind it to write
            // the next: a look there takes as long as a message, and the sender then has to take the line once more.
            if alone && record.len <= LINE {
                break;
            }
        }
        if !self.refused {
            self.active = true;
            self.delivered = true;
        }
        match event {
            RingEvent::Nothing if self.help.is_some() => (done, RingEvent::Help),
            event => (done, event),
        }
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
        if self.ring.sender().load(Ordering::Relaxed) & lane::STARVED == 0 {
            return false;
        }
        self.ring.sender().fetch_and(!lane::STARVED, Ordering::Relaxed);
        true
    }

    #[inline]
    fn has_news(&self) -> bool {
        !self.cannot_follow && self.consumer.has_news(self.ring.rows())
    }

    /// Whether the ring is empty and stays so. Reads first whether the sender has closed, then whether there are
    /// records: so those sent before it closed are seen.
    fn is_over(&self) -> bool {
        let closed = self.ring.sender().load(Ordering::Acquire) & lane::SENDER_CLOSED != 0;
        (closed || self.ending) && !self.has_news()
    }

    /// Goes on in the large ring. If that cannot be mapped, the ring waits to be tried again.
    fn follow(&mut self, index: usize, file: BorrowedFd<'_>) -> io::Result<()> {
        let moved = self.ring.enlarge(file, index);
        self.cannot_follow = moved.is_err();
        moved.map(|_| self.consumer.follow())
    }

    /// A body of this length was copied out of the ring in this time, which may change what the sender is told.
    #[cold]
    pub(super) fn copied(&mut self, len: usize, time: Duration) {
        let sender = self.ring.filling().load(Ordering::Relaxed);
        if let Some(copies) = self.copy_speed.took(len, time, sender) {
            self.ring.copies().store(copies as u64, Ordering::Relaxed);
        }
    }

    /// How quickly its records are copied.
    pub(super) fn copies(&self) -> Copies {
        self.copy_speed.told()
    }

    /// How a long message of this ring's sender comes best. `polls`: the sender's, by now. `plenty`: whether
    /// /dev/shm has room to spare, as a stream needs a large ring, which the two may not have yet.
    pub(super) fn way_of(&mut self, message: Token, polls: u64, plenty: impl FnOnce() -> bool) -> Way {
        let may_try = || self.ring.is_large() || plenty();
        self.streaming.choose(message, self.copy_speed.told(), polls, may_try)
    }

    fn set_hot(&mut self, hot: bool) {
        self.hot = hot;
        self.active = hot;
        self.ring.hot().store(u64::from(hot), Ordering::Relaxed);
    }
}

/// After so many records in one poll the sender is taken to be ahead.
const SEVERAL: usize = 4;

/// The most rings that are hot at a time.
const HOT_MOST: usize = 32;

/// All rings, by their index in the file.
#[derive(Default)]
pub(super) struct Inbox {
    rings: Vec<Option<Inbound>>,
    /// In the order in which they are polled.
    hot: Vec<usize>,
    /// The hand of the clock algorithm by which `cool_one` finds hot rings that are no longer active.
    clock_hand: usize,
    /// Where the next step of the slow scan begins.
    scanned_to: usize,
    /// The ring that is `unanswered`: there is one at most, as the engine answers one thing at most so late.
    unanswered: Option<usize>,
    /// Rings that cannot be taken up now, or not be followed into a large ring. They keep nobody from sleeping.
    put_off: Vec<usize>,
}

impl Inbox {
    pub(super) fn get(&self, index: usize) -> Option<&Inbound> {
        self.rings.get(index)?.as_ref()
    }

    pub(super) fn ring(&self, index: usize) -> Option<&Ring> {
        self.get(index).map(|inbound| &inbound.ring)
    }

    /// The request for help that came through this ring, and from whom.
    pub(super) fn take_help(&mut self, index: usize) -> Option<(PeerId, HelpRequest)> {
        let inbound = self.get_mut(index)?;
        Some((inbound.peer, inbound.help.take()?))
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Inbound> {
        self.rings.get_mut(index)?.as_mut()
    }

    pub(super) fn knows(&self, index: usize) -> bool {
        self.get(index).is_some()
    }

    /// Adds a ring that a peer has claimed.
    pub(super) fn add(&mut self, index: usize, ring: Ring, peer: PeerId, header: &FileHeader) {
        if self.rings.len() <= index {
            self.rings.resize_with(index + 1, || None);
        }
        if let Some(place) = self.rings.get_mut(index) {
            *place = Some(Inbound {
                consumer: Consumer::default(),
                fenced: ring.sender().load(Ordering::Relaxed) & lane::FENCED != 0,
                ring,
                peer,
                ending: false,
                help: None,
                copy_speed: CopySpeed::default(),
                streaming: Streaming::default(),
                refused: false,
                unanswered: false,
                cannot_follow: false,
                hot: false,
                active: false,
                delivered: true,
                was_empty: true,
            });
        }
        if header.first_free() == index {
            let first = (index + 1..).find(|next| !self.knows(*next));
            header.set_first_free(first.unwrap_or(index));
        }
    }

    /// Leaves this ring alone until `retry`.
    pub(super) fn put_off(&mut self, index: usize) {
        if !self.put_off.contains(&index) {
            self.put_off.push(index);
        }
    }

    /// Hands out the rings that were put off, to be tried again.
    pub(super) fn retry(&mut self, again: &mut Vec<usize>) {
        for index in self.put_off.drain(..) {
            if let Some(inbound) = self.rings.get_mut(index).and_then(Option::as_mut) {
                inbound.cannot_follow = false;
            }
            again.push(index);
        }
    }

    /// Follows a sender into its large ring.
    pub(super) fn follow(&mut self, index: usize, header: &FileHeader, file: BorrowedFd<'_>) -> io::Result<()> {
        let Some(inbound) = self.get_mut(index) else {
            return Ok(());
        };
        let moved = inbound.follow(index, file);
        let hot = inbound.hot;
        match &moved {
            // The bell for what is in the large ring may have been taken already.
            Ok(()) if !hot => header.ring_bell(index),
            Ok(()) => {}
            Err(_) => self.put_off(index),
        }
        moved
    }

    /// Removes a ring and frees it for the next claimer.
    pub(super) fn remove(&mut self, index: usize, header: &FileHeader, file: BorrowedFd<'_>) -> Option<PeerId> {
        let gone = self.rings.get_mut(index)?.take()?;
        self.hot.retain(|hot| *hot != index);
        self.put_off.retain(|off| *off != index);
        self.free(index, gone.ring, header, file);
        Some(gone.peer)
    }

    /// Releases a ring's memory, and frees it for the next claimer.
    pub(super) fn free(&mut self, index: usize, ring: Ring, header: &FileHeader, file: BorrowedFd<'_>) {
        ring.free(file, index, header);
        header.set_first_free(header.first_free().min(index));
    }

    /// Reads the hot rings. What is to be done about them is added to `events`.
    #[inline]
    pub(super) fn poll_hot<S: Sink>(
        &mut self,
        sink: &mut S,
        budget: usize,
        events: &mut Vec<(usize, RingEvent)>,
    ) -> usize {
        let mut done = 0;
        let last = self.hot.iter().copied().find(|index| {
            let Some(inbound) = self.rings.get_mut(*index).and_then(Option::as_mut) else {
                return false;
            };
            if !inbound.has_news() {
                inbound.was_empty = true;
                return false;
            }
            let (more, event) = inbound.drain(sink, budget - done);
            if inbound.unanswered {
                self.unanswered = Some(*index);
            }
            done += more;
            if event != RingEvent::Nothing {
                events.push((*index, event));
            }
            done >= budget
        });
        if let Some(last) = last {
            self.begin_behind(last);
        }
        done
    }

    /// The engine has answered whatever this poll brought.
    #[inline(always)]
    pub(super) fn has_answered(&mut self) {
        if let Some(inbound) = self.unanswered.take().and_then(|index| self.get_mut(index)) {
            inbound.has_answered();
        }
    }

    /// This hot ring has taken the last of a poll's budget: the next poll reads it last.
    #[cold]
    fn begin_behind(&mut self, last: usize) {
        let before = self.hot.iter().position(|index| *index == last);
        self.hot.rotate_left(before.map_or(0, |before| before + 1));
    }

    /// Reads one ring, hot or not, and makes it hot if it had records. A hot ring of which the engine refused a record
    /// is left alone: this poll has read it already, and a refused record must not be offered twice in one poll, nor
    /// may anything overtake it.
    pub(super) fn read_ring<S: Sink>(
        &mut self,
        index: usize,
        header: &FileHeader,
        sink: &mut S,
        budget: usize,
    ) -> (usize, RingEvent) {
        let Some(inbound) = self.rings.get_mut(index).and_then(Option::as_mut) else {
            return (0, RingEvent::Nothing);
        };
        let waits = inbound.hot && inbound.refused;
        let (done, event) = if inbound.has_news() && !waits {
            inbound.drain(sink, budget)
        } else {
            (0, RingEvent::Nothing)
        };
        if inbound.unanswered {
            self.unanswered = Some(index);
        }
        if event == RingEvent::Nothing && inbound.is_over() {
            return (done, RingEvent::Over);
        }
        let (hot, more) = (inbound.hot, inbound.has_news());
        if !hot && (done > 0 || more) {
            self.warm(index);
        }
        if more && !self.get(index).is_some_and(|inbound| inbound.hot) {
            // The sender's bell was taken, so we ring it for what is left.
            header.ring_bell(index);
        }
        (done, event)
    }

    /// Makes a ring hot. If too many are, one that is not active is cooled first; if there is none, the ring stays
    /// cold.
    fn warm(&mut self, index: usize) {
        if self.hot.len() >= HOT_MOST && !self.cool_one() {
            return;
        }
        if let Some(inbound) = self.get_mut(index) {
            inbound.set_hot(true);
            self.hot.push(index);
        }
    }

    fn cool_one(&mut self) -> bool {
        for _ in 0..self.hot.len() {
            self.clock_hand = if self.clock_hand + 1 < self.hot.len() {
                self.clock_hand + 1
            } else {
                0
            };
            let Some(index) = self.hot.get(self.clock_hand).copied() else {
                continue;
            };
            let Some(inbound) = self.get_mut(index) else { continue };
            if !core::mem::take(&mut inbound.active) {
                inbound.set_hot(false);
                self.hot.swap_remove(self.clock_hand);
                return true;
            }
        }
        false
    }

    /// The next rings of the slow scan, `count` at most.
    pub(super) fn next_scanned(&mut self, header: &FileHeader, count: usize) -> impl Iterator<Item = usize> + use<> {
        let used = header.used();
        let from = if self.scanned_to < used { self.scanned_to } else { 0 };
        let to = used.min(from + count);
        self.scanned_to = to;
        from..to
    }

    /// Rings that were claimed and are not known yet, oldest claim first: so an earlier endpoint of an address comes
    /// before a later one, wherever their rings lie.
    pub(super) fn newcomers(&self, header: &FileHeader) -> Vec<usize> {
        let unknown = (header.first_free()..header.used()).filter(|index| !self.knows(*index));
        let mut found: Vec<_> = unknown
            .filter_map(|index| Some((header.claim(index)?, index)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }

    /// Whether a poll would find something, after a barrier that makes all senders' stores visible. What the engine
    /// refused does not count: it knows of that.
    pub(super) fn would_find(&self, header: &FileHeader) -> bool {
        let used = header.used();
        header.has_rung()
            || (0..used).any(|index| match self.get(index) {
                Some(inbound) => !inbound.refused && inbound.has_news(),
                None => header.claim(index).is_some() && !self.put_off.contains(&index),
            })
    }

    /// Whether a ring delivered something since the last call.
    pub(super) fn take_delivered(&mut self, index: usize) -> bool {
        self.get_mut(index)
            .is_some_and(|inbound| core::mem::take(&mut inbound.delivered))
    }
}
