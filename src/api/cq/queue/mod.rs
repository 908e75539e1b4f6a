//! The entries of a completion queue in order: a ring of successes, and errors that stand between them.
//!
//! A reader that found nothing may lend its array while it drives the endpoints: what comes goes there at once, as long
//! as it comes in order and there is room.
//! Knows no lock and no waiting: `cq` has both. An error takes no slot of the ring; it remembers which entry it stands
//! before, and reading stops there. A ring that was read empty starts again at its beginning, so that a queue that is
//! read as fast as it is filled stays in the nearest cache. Called by `cq`.

use super::entry::{Entry, ErrorEntry};
use crate::abi::types::FI_EOVERRUN;
use crate::util::user_array::UserArray;
use core::ffi::c_int;
use std::collections::VecDeque;

/// The ring's first size. It grows to what the program asked for when that is needed.
const FIRST: usize = 1024;

pub(super) struct Queue {
    /// Has no room unless a reader lends it and nothing else is in the queue.
    lent: UserArray,
    /// A power of two of them.
    slots: Box<[Entry]>,
    /// Where the oldest entry is; `head` and `tail` run on, and are masked when used.
    head: usize,
    tail: usize,
    /// The number of entries at which the ring is full: no slot is left, or no more may be kept.
    full: usize,
    /// Each with the `tail` at the time it came.
    errors: VecDeque<(usize, ErrorEntry)>,
    /// The size that the program asked for, errors included.
    capacity: usize,
    /// FI_RM_ENABLED: more than that are kept; else they are an overrun.
    managed: bool,
    overrun: bool,
    /// The error read last, whose data the program may look at until it reads the next.
    last: ErrorEntry,
    /// The number of entries at which a waiter must be woken; `NOBODY` when none sleeps.
    pub wake_at: usize,
}

pub(super) const NOBODY: usize = usize::MAX;

/// What reading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Entries(usize),
    Empty,
    /// An error is next.
    Error,
}

impl Queue {
    pub(super) fn new(capacity: usize, managed: bool) -> Queue {
        let first = capacity.clamp(1, FIRST).next_power_of_two();
        Queue {
            lent: UserArray::EMPTY,
            slots: vec![Entry::default(); first].into_boxed_slice(),
            head: 0,
            tail: 0,
            full: first.min(capacity),
            errors: VecDeque::new(),
            capacity,
            managed,
            overrun: false,
            last: ErrorEntry::default(),
            wake_at: NOBODY,
        }
    }

    /// Unread entries and errors.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail - self.head + self.errors.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether `count` more fit into the size that the program asked for.
    #[inline]
    pub(super) fn has_room(&self, count: usize) -> bool {
        self.len().saturating_add(count) <= self.capacity
    }

    pub(super) fn is_overrun(&self) -> bool {
        self.overrun
    }

    /// Whether reading would find something.
    pub(super) fn is_ready(&self) -> bool {
        self.len() > 0 || self.overrun
    }

    /// Whether a waiter must be woken.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.wake_at != NOBODY && self.len() >= self.wake_at
    }

    /// Whether a wait for so many entries is over. An error ends it, wherever it stands.
    pub(super) fn has_enough(&self, count: usize) -> bool {
        self.len() >= count || self.has_error()
    }

    fn has_error(&self) -> bool {
        !self.errors.is_empty() || self.overrun
    }

    /// Lends the array of a reader who has found the queue empty. The same call takes it back.
    #[inline(always)]
    pub(super) fn lend(&mut self, array: UserArray) {
        debug_assert!(array.left() == 0 || !self.is_ready());
        self.lent = array;
    }

    /// Gives back what was lent; says how many entries it got. They went before all that the queue has.
    #[inline(always)]
    pub(super) fn take_back(&mut self) -> usize {
        self.lent.close();
        self.lent.filled()
    }

    /// Whether there is something to read, or the array that was lent last has got something.
    pub(super) fn has_told(&self) -> bool {
        self.lent.filled() > 0 || self.is_ready()
    }

    /// False: a reader has it already, so there is nothing in the queue to tell of.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: &Entry) -> bool {
        if entry.put(&mut self.lent) {
            return false;
        }
        if self.tail - self.head >= self.full && !self.make_room() {
            return true;
        }
        let at = self.tail & (self.slots.len() - 1);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = *entry;
        }
        self.tail += 1;
        true
    }

    /// How far reading may go: to the oldest error, or to the tail.
    #[inline]
    fn stop(&self) -> usize {
        self.errors.front().map_or(self.tail, |oldest| oldest.0)
    }

    /// An error is never dropped: there is at most one for each operation that was accepted.
    #[cold]
    pub(super) fn push_error(&mut self, error: ErrorEntry) {
        if self.overrun {
            return;
        }
        self.lent.close();
        self.errors.push_back((self.tail, error));
    }

    /// Passes up to `count` entries to `put`.
    #[inline(always)]
    pub(super) fn take(&mut self, count: usize, mut put: impl FnMut(&Entry)) -> Taken {
        let there = self.stop() - self.head;
        if there == 0 {
            return self.blocked(count);
        }
        let count = count.min(there);
        let first = self.head & (self.slots.len() - 1);
        self.head += count;
        let (begin, end) = self.slots.split_at_checked(first).unwrap_or_default();
        for entry in end.iter().take(count) {
            put(entry);
        }
        for entry in begin.iter().take(count.saturating_sub(end.len())) {
            put(entry);
        }
        Taken::Entries(count)
    }

    /// If all was read, has the next entry put at the beginning of the ring. Returns whether there is nothing to read.
    #[inline(always)]
    pub(super) fn restart_if_read(&mut self) -> bool {
        if self.head != self.tail || !self.errors.is_empty() {
            return false;
        }
        (self.head, self.tail) = (0, 0);
        !self.overrun
    }

    /// The next entry, if it is an error. It stays valid until the next one is taken. The error of an overrun is never
    /// used up.
    #[cold]
    pub(super) fn take_error(&mut self) -> Option<&ErrorEntry> {
        if self.stop() != self.head {
            return None;
        }
        if let Some((_, error)) = self.errors.pop_front() {
            self.last = error;
        } else if self.overrun {
            self.last = ErrorEntry {
                err: FI_EOVERRUN as c_int,
                prov_errno: FI_EOVERRUN as c_int,
                ..ErrorEntry::default()
            };
        } else {
            return None;
        }
        Some(&self.last)
    }

    /// The answer when no entry can be read. As in the C library, a read of 0 entries does not report an error.
    fn blocked(&self, count: usize) -> Taken {
        match (self.has_error(), count) {
            (false, _) => Taken::Empty,
            (true, 0) => Taken::Entries(0),
            (true, _) => Taken::Error,
        }
    }

    /// Makes a full ring larger, or marks the queue overrun. False: the entry is dropped.
    #[cold]
    fn make_room(&mut self) -> bool {
        let used = self.tail - self.head;
        if self.overrun || (used >= self.capacity && !self.managed) {
            return self.give_up();
        }
        if used < self.slots.len() {
            self.full = self.slots.len();
            return true;
        }
        let mut larger = Vec::new();
        let size = self.slots.len().saturating_mul(2);
        if larger.try_reserve_exact(size).is_err() {
            return self.give_up();
        }
        let (mask, head) = (self.slots.len() - 1, self.head);
        larger.extend((head..self.tail).filter_map(|at| self.slots.get(at & mask)));
        larger.resize(size, Entry::default());
        self.slots = larger.into_boxed_slice();
        self.full = if self.managed { size } else { size.min(self.capacity) };
        self.errors.iter_mut().for_each(|error| error.0 -= head);
        (self.head, self.tail) = (0, used);
        true
    }

    /// An overrun queue takes nothing more, even when there is room again.
    fn give_up(&mut self) -> bool {
        self.overrun = true;
        self.full = 0;
        false
    }
}

#[cfg(test)]
mod tests;
