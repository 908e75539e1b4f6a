//! Room for what a ring does not hold: a larger ring, if there is memory for it. Part of `Outbound`.
//!
//! A pair has a small ring at first. It goes on in a large one when a body does not fit or it has had much traffic, and
//! in a wide one when the large one was full time and again. Those that are made for speed alone are made only while
//! there is plenty of memory, to leave it to those who cannot do without; of wide ones an endpoint has a few (`wide_rings`).

use super::super::dialogue;
use super::super::lane::{self, Rows, SMALL};
use super::super::ring::{self, Cells, Form};
use super::{Outbound, Written};
use crate::sys::{clock, shared};
use core::sync::atomic::Ordering;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};

/// How long after a refusal a larger ring is asked for again.
const RETRY_MS: u64 = 100;

impl Outbound {
    /// The ring is full, too small for a body of this length, or has so much traffic that a large one would be better.
    /// None: reserve again.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, form: Form, len: usize) -> Option<Written> {
        if self.is_closed() {
            return Some(Written::Gone);
        }
        if !self.lane.is_large() {
            if self.producer.is_outgrown() {
                self.producer.stay();
                if shared::is_half_free(&self.path) {
                    self.grow();
                }
                return None;
            }
            if self.grow() {
                return None;
            }
            if len > ring::longest(SMALL.cells()) {
                return Some(Written::TooLong);
            }
        }
        let taken = self.lane.rows().taken();
        self.room_wait.goes_on(taken);
        if self.room_wait.is_frequent() && self.widen(taken) {
            return None;
        }
        self.blocked = Some((form, len));
        Some(Written::Full)
    }

    /// Goes on in a wide ring. Of the records that the peer has not read all are in two rings at most, so that `recall`
    /// finds them.
    fn widen(&mut self, taken: u64) -> bool {
        let is_alone = self.earlier_ring_end.is_none_or(|end| taken > end);
        if !self.lane.is_large() || self.lane.is_wide() || !is_alone || !shared::is_half_free(&self.path) {
            return false;
        }
        let counted = self.wide_rings.one_more();
        let is_wide = counted.is_some() && self.grow();
        self.counted_wide = counted.filter(|_| is_wide);
        is_wide
    }

    /// Whether what found no room waits for long.
    pub(in super::super) fn is_held_up(&mut self) -> bool {
        let Outbound {
            lane,
            producer,
            room_wait,
            ..
        } = self;
        room_wait.is_long(|| lane.rows().taken(), producer.position())
    }

    /// See `Transport::came_late`.
    pub(in super::super) fn came_late(&mut self) -> bool {
        self.credit_wait.end() && self.lane.rows().taken() == self.producer.position()
    }

    /// Goes on in the next larger ring, if there is memory for it.
    pub(in super::super) fn grow(&mut self) -> bool {
        let now = clock::monotonic_ms();
        if self
            .growth_refused_at
            .is_some_and(|then| now.saturating_sub(then) < RETRY_MS)
        {
            return false;
        }
        let grown = self.try_to_grow();
        if let Err(error) = &grown {
            self.tell_of_no_memory(error);
            self.growth_refused_at = Some(now);
        }
        grown.is_ok()
    }

    fn try_to_grow(&mut self) -> io::Result<()> {
        let (file, status) = shared::open_own(&self.path)?;
        if !status.is_same_file(&self.file) {
            return Err(ErrorKind::NotFound.into());
        }
        let was_large = self.lane.is_large();
        // A job of many that all send each other much does not fill the file system with rooms.
        let with_room = !was_large && shared::is_half_free(&self.path);
        let grown = with_room.then(|| self.grow_lane(file.as_fd(), lane::HAS_ROOM));
        let earlier = match grown {
            Some(Ok(earlier)) => earlier,
            _ => self.grow_lane(file.as_fd(), 0)?,
        };
        if !was_large {
            // Nobody uses it before our last record in the small ring is read. A file system that cannot release
            // memory keeps what an earlier sender left there.
            dialogue::clear_room(&self.lane);
        }
        self.earlier_ring_end = Some(self.producer.position());
        self.producer.move_on(&earlier, self.lane.rows());
        Ok(())
    }

    /// `room`: `lane::HAS_ROOM`, or nothing. A lane that is large keeps what it has.
    fn grow_lane(&mut self, file: BorrowedFd<'_>, room: u64) -> io::Result<Rows> {
        if !self.lane.is_large() {
            self.lane.sender().fetch_and(!lane::HAS_ROOM, Ordering::Relaxed);
            self.lane.sender().fetch_or(room, Ordering::Relaxed);
        }
        self.lane.grow(file, self.index)
    }

    /// Said once, and only where there is no large ring: without a wide one all goes as well.
    fn tell_of_no_memory(&self, error: &io::Error) {
        if self.lane.is_large() || self.growth_refused_at.is_some() || error.kind() == ErrorKind::NotFound {
            return;
        }
        let (path, need) = (self.path.display(), lane::LARGE.bytes());
        (self.warn)(&format!(
            "{path}: no memory for a large ring, which needs {need} bytes ({error}): messages to this peer go in small \
             pieces; make the file system larger, or have fewer processes send much to each other"
        ));
    }
}
