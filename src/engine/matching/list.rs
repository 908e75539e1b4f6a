//! A list of slab entries, oldest first, whose links lie in the entries.
//!
//! So adding an entry and removing one touch only it and its neighbours. Used by `unexpected`, and by
//! `chains`, each of which is a list.

use crate::util::slab::NOWHERE;

/// An entry's neighbours in its list, by their places in the slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Of the first entry it may be any place.
    before: u32,
    after: u32,
}

impl Link {
    /// Of an entry that has no neighbours.
    pub(super) const ALONE: Link = Link {
        before: NOWHERE,
        after: NOWHERE,
    };

    /// The place of the next entry, or `NOWHERE`.
    #[inline]
    pub(super) fn after(self) -> u32 {
        self.after
    }
}

/// Gives access to the link of the entry at a place.
pub(super) trait Links {
    fn link(&mut self, place: u32) -> Option<&mut Link>;
}

#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        first: NOWHERE,
        last: NOWHERE,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == NOWHERE
    }

    /// The place of the oldest entry, or `NOWHERE`.
    #[inline]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Appends the entry that is, or is about to be put, at this place of the slab. Returns the link to store in it.
    #[inline(always)]
    pub(super) fn append(&mut self, links: &mut impl Links, place: u32) -> Link {
        let before = std::mem::replace(&mut self.last, place);
        match links.link(before) {
            Some(last) => last.after = place,
            None => self.first = place,
        }
        Link { before, after: NOWHERE }
    }

    /// Removes the entry at this place, which has this link.
    #[inline(always)]
    pub(super) fn unlink(&mut self, links: &mut impl Links, place: u32, link: Link) {
        let Link { before, after } = link;
        if self.first == place {
            self.first = after;
            if self.last == place {
                self.last = NOWHERE;
            }
            return;
        }
        if let Some(link) = links.link(before) {
            link.after = after;
        }
        match links.link(after) {
            Some(link) => link.before = before,
            None => self.last = before,
        }
    }

    /// The oldest entry for which `fits` is true, and its place. `at` returns the entry at a place and its link.
    #[inline]
    pub(super) fn find<E>(&self, at: impl Fn(u32) -> Option<(E, Link)>, fits: impl Fn(&E) -> bool) -> Option<(u32, E)> {
        let mut next = self.first;
        loop {
            let (entry, link) = at(next)?;
            #[cfg(test)]
            looks::count();
            if fits(&entry) {
                return Some((next, entry));
            }
            next = link.after;
        }
    }
}

/// Counts the entries that the thread's searches have compared: tests check that searches stay short.
#[cfg(test)]
pub(super) mod looks {
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });

    pub fn count() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// The count since the last call.
    pub fn take() -> u64 {
        LOOKS.take()
    }
}
