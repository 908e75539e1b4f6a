//! An index of slab entries by a key that is chosen after they were inserted, oldest entry first.
//!
//! Its links lie in a vector of their own, by place, so entries need no room for indices that may never be made. Making
//! an index costs time for each place of the slab, keeping it a little for each entry that comes or goes. So an owner
//! makes one when searching without it has cost as much, and drops it when it was kept as long without being used. Used
//! by `sorted` and `unexpected`, which supply the keys.

use crate::util::hash::SeededState;
use crate::util::slab::NOWHERE;
use std::collections::HashMap;
use std::hash::Hash;

/// Up to so many entries, searching one by one is no slower. Less in tests, so that the engine's random runs, which
/// have few unexpected messages, use indices too.
pub(super) const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// Room for more keys than this is freed when the index becomes empty.
const MANY: usize = 1024;

/// An entry's neighbours among those of its key, by their places.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

const ALONE: Link = Link {
    before: NOWHERE,
    after: NOWHERE,
};

#[derive(Debug)]
pub(super) struct Index<K> {
    /// Seeded, because peers choose the tags and could provoke collisions.
    lines: HashMap<K, Ends, SeededState>,
    /// By place. For places not in the index the value is arbitrary.
    links: Vec<Link>,
    /// Entries added since the last search.
    idle: usize,
}

impl<K: Copy + Eq + Hash> Index<K> {
    /// Makes an index of entries with these keys and places, given oldest first.
    pub(super) fn of(entries: impl Iterator<Item = (K, u32)>) -> Index<K> {
        let mut index = Index {
            lines: HashMap::with_hasher(SeededState::random()),
            links: Vec::new(),
            idle: 0,
        };
        for (key, place) in entries {
            #[cfg(test)]
            super::list::looks::count();
            index.push(key, place);
        }
        index.idle = 0;
        index
    }

    /// Adds an entry, the newest of all.
    pub(super) fn push(&mut self, key: K, place: u32) {
        let at = place as usize;
        if at >= self.links.len() {
            self.links.resize(at + 1, ALONE);
        }
        let alone = Ends {
            first: place,
            last: NOWHERE,
        };
        let ends = self.lines.entry(key).or_insert(alone);
        let before = std::mem::replace(&mut ends.last, place);
        if let Some(last) = self.links.get_mut(before as usize) {
            last.after = place;
        }
        if let Some(own) = self.links.get_mut(at) {
            *own = Link { before, ..ALONE };
        }
        self.idle += 1;
    }

    /// Removes an entry that is in the index.
    pub(super) fn remove(&mut self, key: K, place: u32) {
        let Some(Link { before, after }) = self.links.get(place as usize).copied() else {
            return;
        };
        if before == NOWHERE && after == NOWHERE {
            return self.remove_line(key);
        }
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => self.ends(key, |ends| ends.first = after),
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => self.ends(key, |ends| ends.last = before),
        }
    }

    fn remove_line(&mut self, key: K) {
        self.lines.remove(&key);
        if self.lines.is_empty() && self.lines.capacity() > MANY {
            self.lines.shrink_to_fit();
        }
    }

    fn ends(&mut self, key: K, change: impl FnOnce(&mut Ends)) {
        if let Some(ends) = self.lines.get_mut(&key) {
            change(ends);
        }
    }

    /// The places of the entries with this key, oldest first.
    pub(super) fn find(&mut self, key: K) -> impl Iterator<Item = u32> {
        self.idle = 0;
        let first = self.lines.get(&key).map(|ends| ends.first);
        std::iter::successors(first, |place| {
            #[cfg(test)]
            super::list::looks::count();
            let after = self.links.get(*place as usize)?.after;
            (after != NOWHERE).then_some(after)
        })
    }

    pub(super) fn idle(&self) -> usize {
        self.idle
    }

    /// Whether keeping it unused has cost as much as making it anew.
    pub(super) fn is_stale(&self) -> bool {
        self.idle > self.links.len().max(FEW)
    }
}
