//! An index: entries of a slab by a key that was not thought of when they were put in, oldest first.
//!
//! Its links lie beside the entries, by place, so entries need no room for indices that nobody asked for. To make one
//! costs as much as the slab has places, to keep it a little with every entry that comes and goes. So its owners make
//! one when searching without it has cost as much, and drop it when it was kept as long without being asked. Used by
//! `posted` and `unexpected`, which say what an entry's key is.

use crate::util::hash::SeededState;
use crate::util::slab::NOWHERE;
use std::collections::HashMap;
use std::hash::Hash;

/// Entries that are searched one by one: up to here that is no slower. Tests have less, so that the engine's random stories,
/// in which few messages are held, use indices too.
pub(super) const FEW: usize = if cfg!(test) { 4 } else { 32 };

/// Room for more keys than this is not kept for entries that may come again.
const MANY: usize = 1024;

/// Where an entry stands among those of its key.
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
    /// Peers choose tags, so they must not know the hash.
    lines: HashMap<K, Ends, SeededState>,
    /// By place; of places that are not in the index, anything.
    links: Vec<Link>,
    /// Entries that came since it was last asked.
    idle: usize,
}

impl<K: Copy + Eq + Hash> Index<K> {
    /// An index of entries with these keys at these places, oldest first.
    pub fn of(entries: impl Iterator<Item = (K, u32)>) -> Index<K> {
        let mut index = Index {
            lines: HashMap::with_hasher(SeededState::random()),
            links: Vec::new(),
            idle: 0,
        };
        for (key, place) in entries {
            #[cfg(test)]
            super::chains::looks::count();
            index.push(key, place);
        }
        index.idle = 0;
        index
    }

    /// Puts the newest entry in.
    pub fn push(&mut self, key: K, place: u32) {
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

    /// Takes an entry out that is in.
    pub fn remove(&mut self, key: K, place: u32) {
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
    pub fn find(&mut self, key: K) -> impl Iterator<Item = u32> {
        self.idle = 0;
        let first = self.lines.get(&key).map(|ends| ends.first);
        std::iter::successors(first, |place| {
            #[cfg(test)]
            super::chains::looks::count();
            let after = self.links.get(*place as usize)?.after;
            (after != NOWHERE).then_some(after)
        })
    }

    pub fn idle(&self) -> usize {
        self.idle
    }

    /// Whether keeping it has cost as much as making it anew would.
    pub fn is_stale(&self) -> bool {
        self.idle > self.links.len().max(FEW)
    }
}
