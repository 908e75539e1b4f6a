//! Unexpected messages, in order of arrival.
//!
//! A search walks through them and mostly ends at once, since programs have few and tend to receive in the order of
//! sending. When searches have passed as many messages as building an index would, the pattern asked for gets an index.
//! So each receive passes a bounded number of messages on average, whatever it ignores, and programs that never search
//! far pay nothing. Used by `matching`.

use super::index::{FEW, Index};
use super::list::{Link, Links, List};
use super::{Key, Pattern, Source, Want};
use crate::util::keep_in_registers;
use crate::util::slab::{Id, Slab};
use std::cell::Cell;

/// The most indices at a time. MPI libraries use four patterns: with and without a source, with and without a tag.
const MOST: usize = 8;
/// With all indices in use, a new one replaces another only after so many times as much searching, so that patterns
/// which take turns do not drive each other out.
const DEARER: usize = 8;

#[derive(Debug)]
struct Entry<M> {
    value: M,
    source: Source,
    tag: u64,
    /// Claimed: not in `all`, so no search finds it.
    hidden: bool,
    link: Link,
}

impl<M> Links for Slab<Entry<M>> {
    #[inline]
    fn link(&mut self, place: u32) -> Option<&mut Link> {
        Some(&mut self.at_mut(place)?.link)
    }
}

#[derive(Debug)]
pub(super) struct Unexpected<M> {
    slab: Slab<Entry<M>>,
    /// In order of arrival.
    all: List,
    /// Each contains all messages of `all`.
    indices: Vec<(Pattern, Index<Key>)>,
    /// Messages that searches have passed since the last index was made.
    looked: usize,
}

impl<M> Default for Unexpected<M> {
    fn default() -> Self {
        Unexpected {
            slab: Slab::default(),
            all: List::EMPTY,
            indices: Vec::new(),
            looked: 0,
        }
    }
}

impl<M> Unexpected<M> {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Source> {
        self.slab.iter().map(|(_, message)| message.source)
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut M> {
        self.slab.get_mut(id).map(|message| &mut message.value)
    }

    pub(super) fn insert(&mut self, source: Source, tag: u64, value: M) -> Id {
        let place = self.slab.next_place();
        if !self.indices.is_empty() {
            self.index_message(source, tag, place);
        }
        let link = self.all.append(&mut self.slab, place);
        self.slab.insert(Entry {
            value,
            source,
            tag,
            hidden: false,
            link,
        })
    }

    #[inline]
    pub(super) fn find(&mut self, want: &Want) -> Option<Id> {
        if self.all.is_empty() {
            return None;
        }
        self.search(*want)
    }

    #[inline(never)]
    fn search(&mut self, mut want: Want) -> Option<Id> {
        let want = keep_in_registers(&mut want);
        let pattern = Pattern::of(want);
        let place = match self.indices.iter_mut().find(|(indexed, _)| *indexed == pattern) {
            Some((_, index)) => index.find(want.key()).next(),
            None => self.walk(want),
        };
        self.slab.name(place?)
    }

    /// Searches one message after the other, and makes an index when that has cost enough.
    fn walk(&mut self, want: &Want) -> Option<u32> {
        let looked = Cell::new(0);
        let at = |place| self.slab.at(place).map(|message| (message, message.link));
        let found = self.all.find(at, |message| {
            looked.set(looked.get() + 1);
            want.fits(message.source, message.tag)
        });
        let found = found.map(|(place, _)| place);
        if looked.get() > FEW {
            self.looked += looked.get();
            let full = self.indices.len() >= MOST;
            if self.looked >= self.slab.places() * if full { DEARER } else { 1 } {
                self.make_index(Pattern::of(want));
            }
        }
        found
    }

    #[cold]
    fn make_index(&mut self, pattern: Pattern) {
        self.looked = 0;
        let keys = self
            .in_order()
            .map(|(place, message)| (pattern.key(message.source, message.tag), place));
        let fresh = (pattern, Index::of(keys));
        if self.indices.len() < MOST {
            self.indices.push(fresh);
        } else if let Some(longest_idle) = self.indices.iter_mut().max_by_key(|(_, index)| index.idle()) {
            *longest_idle = fresh;
        }
    }

    /// All messages that are not hidden, oldest first.
    fn in_order(&self) -> impl Iterator<Item = (u32, &Entry<M>)> {
        let at = |place: u32| Some((place, self.slab.at(place)?));
        std::iter::successors(at(self.all.first()), move |(_, message)| at(message.link.after()))
    }

    #[cold]
    fn index_message(&mut self, source: Source, tag: u64, place: u32) {
        self.indices.retain(|(_, index)| !index.is_stale());
        for (pattern, index) in &mut self.indices {
            index.push(pattern.key(source, tag), place);
        }
    }

    #[cfg(test)]
    pub fn indices(&self) -> usize {
        self.indices.len()
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<M> {
        self.hide(id);
        self.slab.remove(id).map(|message| message.value)
    }

    /// Hides a message from searches. False if it was hidden or does not exist.
    pub(super) fn hide(&mut self, id: Id) -> bool {
        let Some(message) = self.slab.get_mut(id).filter(|message| !message.hidden) else {
            return false;
        };
        message.hidden = true;
        let (link, source, tag) = (message.link, message.source, message.tag);
        self.all.unlink(&mut self.slab, id.place(), link);
        for (pattern, index) in &mut self.indices {
            index.remove(pattern.key(source, tag), id.place());
        }
        true
    }
}
