//! All lanes in our file: which are polled, in which order, and what is done with each.
//!
//! A lane that was active lately is hot: every poll reads it, and its sender does nothing but write. Every other lane
//! has a bell, a bit that its sender sets. A sender may still see a lane as hot that has just ceased to be, and not
//! ring; as senders do not fence, all lanes are also scanned in turn, a few at a time.
//!
//! Called by `ShmTransport::poll` (hot lanes), `housekeeping` (all others) and `sleeping`.

use super::super::dialogue::{Dialogue, Heard};
use super::super::dual_copy::HelpRequest;
use super::super::lane::{self, Lane};
use super::super::layout::FileHeader;
use super::super::ring::Consumer;
use super::super::streaming::Streaming;
use super::{Inbound, LaneEvent, Speeds, WAITED};
use crate::engine::port::{PeerId, Sink};
use core::sync::atomic::Ordering;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The most lanes that are hot at a time.
const HOT_MOST: usize = 32;

/// All lanes, by their index in the file.
#[derive(Default)]
pub(in super::super) struct Inbox {
    rings: Vec<Option<Inbound>>,
    /// In the order in which they are polled.
    hot: Vec<usize>,
    /// The hand of the clock algorithm by which `cool_one` finds hot lanes that are no longer active.
    clock_hand: usize,
    /// Where the next step of the slow scan begins.
    scanned_to: usize,
    /// The lane that is `unanswered`. There is one at most: the reads of one peer only wait for the end of a poll
    /// (`engine::read_at_hand`).
    unanswered: Option<usize>,
    /// Rings that cannot be taken up now, or not be followed into a large ring. They keep nobody from sleeping.
    put_off: Vec<usize>,
}

impl Inbox {
    pub(in super::super) fn get(&self, index: usize) -> Option<&Inbound> {
        self.rings.get(index)?.as_ref()
    }

    pub(in super::super) fn lane(&self, index: usize) -> Option<&Lane> {
        self.get(index).map(|inbound| &inbound.lane)
    }

    /// The request for help that came through this lane, and from whom.
    pub(in super::super) fn take_help(&mut self, index: usize) -> Option<(PeerId, HelpRequest)> {
        let inbound = self.get_mut(index)?;
        Some((inbound.peer, inbound.help.take()?))
    }

    pub(in super::super) fn get_mut(&mut self, index: usize) -> Option<&mut Inbound> {
        self.rings.get_mut(index)?.as_mut()
    }

    pub(in super::super) fn knows(&self, index: usize) -> bool {
        self.get(index).is_some()
    }

    /// Adds a lane that a peer has claimed.
    pub(in super::super) fn add(&mut self, index: usize, lane: Lane, peer: PeerId, header: &FileHeader) {
        if self.rings.len() <= index {
            self.rings.resize_with(index + 1, || None);
        }
        if let Some(place) = self.rings.get_mut(index) {
            let dialogue = Arc::new(Dialogue::new(&lane, false));
            *place = Some(Inbound {
                dialogues: [dialogue.clone(), dialogue],
                heard: Heard::default(),
                looks_at_both: true,
                consumer: Consumer::default(),
                fenced: lane.sender().load(Ordering::Relaxed) & lane::FENCED != 0,
                lane,
                peer,
                ending: false,
                help: None,
                speeds: Speeds::default(),
                streaming: Streaming::default(),
                refused: false,
                unanswered: false,
                cannot_follow: false,
                hot: false,
                active: false,
                delivered: true,
                empty_polls: WAITED,
            });
        }
        if header.first_free() == index {
            let first = (index + 1..).find(|next| !self.knows(*next));
            header.set_first_free(first.unwrap_or(index));
        }
    }

    /// Leaves this lane alone until `retry`.
    pub(in super::super) fn put_off(&mut self, index: usize) {
        if !self.put_off.contains(&index) {
            self.put_off.push(index);
        }
    }

    /// Hands out the lanes that were put off, to be tried again.
    pub(in super::super) fn retry(&mut self, again: &mut Vec<usize>) {
        for index in self.put_off.drain(..) {
            if let Some(inbound) = self.rings.get_mut(index).and_then(Option::as_mut) {
                inbound.cannot_follow = false;
            }
            again.push(index);
        }
    }

    /// Follows a sender into its large ring.
    pub(in super::super) fn follow(
        &mut self,
        index: usize,
        header: &FileHeader,
        file: BorrowedFd<'_>,
    ) -> io::Result<()> {
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

    /// Removes a lane and frees it for the next claimer.
    pub(in super::super) fn remove(
        &mut self,
        index: usize,
        header: &FileHeader,
        file: BorrowedFd<'_>,
    ) -> Option<PeerId> {
        let gone = self.rings.get_mut(index)?.take()?;
        self.hot.retain(|hot| *hot != index);
        self.put_off.retain(|off| *off != index);
        self.free(index, gone.lane, header, file);
        Some(gone.peer)
    }

    /// Releases a lane's memory, and frees it for the next claimer.
    pub(in super::super) fn free(&mut self, index: usize, lane: Lane, header: &FileHeader, file: BorrowedFd<'_>) {
        lane.free(file, index, header);
        header.set_first_free(header.first_free().min(index));
    }

    /// Reads the hot lanes. What is to be done about them is added to `events`.
    #[inline]
    pub(in super::super) fn poll_hot<S: Sink>(
        &mut self,
        sink: &mut S,
        budget: usize,
        events: &mut Vec<(usize, LaneEvent)>,
    ) -> usize {
        let mut done = 0;
        let last = self.hot.iter().copied().find(|index| {
            let Some(inbound) = self.rings.get_mut(*index).and_then(Option::as_mut) else {
                return false;
            };
            if !inbound.has_news_in_poll() {
                inbound.has_no_news();
                return false;
            }
            let (more, event) = inbound.drain(sink, budget - done);
            if inbound.unanswered {
                self.unanswered = Some(*index);
            }
            done += more;
            if event != LaneEvent::Nothing {
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
    pub(in super::super) fn has_answered(&mut self) {
        if let Some(inbound) = self.unanswered.take().and_then(|index| self.get_mut(index)) {
            inbound.has_answered();
        }
    }

    /// This hot lane has taken the last of a poll's budget: the next poll reads it last.
    #[cold]
    fn begin_behind(&mut self, last: usize) {
        let before = self.hot.iter().position(|index| *index == last);
        self.hot.rotate_left(before.map_or(0, |before| before + 1));
    }

    /// Reads one lane, hot or not, and makes it hot if it had records. A hot lane of which the engine refused a record
    /// is left alone: this poll has read it already, and a refused record must not be offered twice in one poll, nor
    /// may anything overtake it.
    pub(in super::super) fn read_lane<S: Sink>(
        &mut self,
        index: usize,
        header: &FileHeader,
        sink: &mut S,
        budget: usize,
    ) -> (usize, LaneEvent) {
        let Some(inbound) = self.rings.get_mut(index).and_then(Option::as_mut) else {
            return (0, LaneEvent::Nothing);
        };
        let waits = inbound.hot && inbound.refused;
        let (done, event) = if inbound.has_news() && !waits {
            inbound.drain(sink, budget)
        } else {
            (0, LaneEvent::Nothing)
        };
        if inbound.unanswered {
            self.unanswered = Some(index);
        }
        if event == LaneEvent::Nothing && inbound.is_over() {
            return (done, LaneEvent::Over);
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

    /// Makes a lane hot. If too many are, one that is not active is cooled first; if there is none, the lane stays
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

    pub(in super::super) fn is_cold_with_news(&self, index: usize) -> bool {
        self.get(index)
            .is_some_and(|inbound| !inbound.hot && inbound.has_news())
    }

    /// Cools all hot lanes. What has come in them is rung for, as their senders have not.
    #[cold]
    pub(in super::super) fn cool_all(&mut self, header: &FileHeader) {
        for index in core::mem::take(&mut self.hot) {
            let Some(inbound) = self.get_mut(index) else { continue };
            inbound.set_hot(false);
            if inbound.has_news() {
                header.ring_bell(index);
            }
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

    /// The next lanes of the slow scan, `count` at most.
    pub(in super::super) fn next_scanned(
        &mut self,
        header: &FileHeader,
        count: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let used = header.used();
        let from = if self.scanned_to < used { self.scanned_to } else { 0 };
        let to = used.min(from + count);
        self.scanned_to = to;
        from..to
    }

    /// Rings that were claimed and are not known yet, oldest claim first: so an earlier endpoint of an address comes
    /// before a later one, wherever their lanes lie.
    pub(in super::super) fn newcomers(&self, header: &FileHeader) -> Vec<usize> {
        let unknown = (header.first_free()..header.used()).filter(|index| !self.knows(*index));
        let mut found: Vec<_> = unknown
            .filter_map(|index| Some((header.claim(index)?, index)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }

    /// Whether a poll would find something, after a barrier that makes all senders' stores visible. What the engine
    /// refused does not count: it knows of that.
    pub(in super::super) fn would_find(&self, header: &FileHeader) -> bool {
        let used = header.used();
        header.has_rung()
            || (0..used).any(|index| match self.get(index) {
                Some(inbound) => !inbound.refused && inbound.has_news(),
                None => header.claim(index).is_some() && !self.put_off.contains(&index),
            })
    }

    /// Whether a lane delivered something since the last call.
    pub(in super::super) fn take_delivered(&mut self, index: usize) -> bool {
        self.get_mut(index)
            .is_some_and(|inbound| core::mem::take(&mut inbound.delivered))
    }
}
