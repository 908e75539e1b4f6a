//! Posted receives, found by an arriving message or by their context.
//!
//! Most messages match the receive that was posted first, so receives wait in a row, `fresh`, of which only the first
//! is compared. When a message does not match it, or one of them is wanted otherwise, all of them are `sorted`; what is
//! sorted is older than what is fresh. Used by `matching`.

use super::index::FEW;
use super::sorted::Sorted;
use super::{Key, Pattern, Receive, Source, Taken, Want};
use crate::util::slab::Id;
use std::collections::VecDeque;

/// The memory of more fresh receives than this is given back when they are sorted.
const MANY: usize = 1024;

/// A receive and what it asks for: its key, and the bits that its pattern compares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Post<P> {
    pub value: P,
    tag: u64,
    tag_mask: u64,
    source: Source,
    source_mask: Source,
}

impl<P> Post<P> {
    #[inline(always)]
    fn new(want: &Want, value: P) -> Post<P> {
        let (pattern, key) = (Pattern::of(want), want.key());
        Post {
            value,
            tag: key.tag,
            tag_mask: pattern.tag,
            source: key.source,
            source_mask: pattern.source,
        }
    }

    #[inline]
    pub(super) fn pattern(&self) -> Pattern {
        Pattern {
            source: self.source_mask,
            tag: self.tag_mask,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> Key {
        Key {
            source: self.source,
            tag: self.tag,
        }
    }

    /// The source that it names.
    pub(super) fn named(&self) -> Option<Source> {
        (self.source_mask != 0).then_some(self.source)
    }

    #[inline]
    fn fits(&self, source: Source, tag: u64) -> bool {
        #[cfg(test)]
        super::list::looks::count();
        self.pattern().key(source, tag) == self.key()
    }
}

#[derive(Debug)]
pub(super) struct Posted<P> {
    /// In order of posting.
    fresh: VecDeque<Post<P>>,
    sorted: Sorted<P>,
}

impl<P> Default for Posted<P> {
    fn default() -> Self {
        Posted {
            fresh: VecDeque::new(),
            sorted: Sorted::default(),
        }
    }
}

impl<P: Receive> Posted<P> {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.sorted.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, want: &Want, value: impl FnOnce() -> P) {
        self.fresh.push_back(Post::new(want, value()));
    }

    /// A receive that stays when a message matches it.
    pub(super) fn push_lasting(&mut self, want: &Want, value: P) -> Id {
        self.sort();
        self.sorted.insert(Post::new(want, value), true)
    }

    /// Removes the oldest match, unless it lasts.
    #[inline(always)]
    pub(super) fn take(&mut self, source: Source, tag: u64) -> Taken<P> {
        let none_sorted = self.sorted.is_empty();
        let is_first = match self.fresh.front() {
            Some(first) => none_sorted && first.fits(source, tag),
            None if none_sorted => return Taken::Nothing,
            None => false,
        };
        if !is_first {
            match self.bring_forward(source, tag) {
                Taken::Nothing => return Taken::Nothing,
                Taken::Lasting(id) => return Taken::Lasting(id),
                Taken::Removed(()) => {}
            }
        }
        self.fresh
            .pop_front()
            .map_or(Taken::Nothing, |post| Taken::Removed(post.value))
    }

    /// Makes the oldest match the first of the fresh receives, from where `take` removes it, unless it lasts.
    // The receive is not returned, so that the one of the usual way stays in registers.
    #[inline(never)]
    fn bring_forward(&mut self, source: Source, tag: u64) -> Taken<()> {
        let mut found = self.sorted.take(source, tag);
        if matches!(found, Taken::Nothing) {
            match self.fresh.front() {
                None => return Taken::Nothing,
                Some(post) if post.fits(source, tag) => return Taken::Removed(()),
                Some(_) => self.sort(),
            }
            found = self.sorted.take(source, tag);
        }
        match found {
            Taken::Nothing => Taken::Nothing,
            Taken::Lasting(id) => Taken::Lasting(id),
            Taken::Removed(post) => {
                self.fresh.push_front(post);
                Taken::Removed(())
            }
        }
    }

    /// Puts the fresh receives into groups, where each has a name.
    fn sort(&mut self) {
        for post in self.fresh.drain(..) {
            self.sorted.insert(post, false);
        }
        if self.fresh.capacity() > MANY {
            self.fresh = VecDeque::new();
        }
    }

    /// A receive that has been sorted.
    #[inline]
    pub(super) fn get(&self, id: Id) -> Option<&P> {
        self.sorted.get(id)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<P> {
        self.sorted.remove(id)
    }

    pub(super) fn find_context(&mut self, context: usize, means: impl Fn(&P) -> bool) -> Option<Id> {
        let found = self.sorted.find_context(context, &means);
        if found.is_some() {
            return found;
        }
        let is_meant = |post: &Post<P>| {
            #[cfg(test)]
            super::list::looks::count();
            post.value.context() == context && means(&post.value)
        };
        if self.fresh.len() <= FEW && !self.fresh.iter().any(is_meant) {
            return None;
        }
        self.sort();
        self.sorted.find_context(context, means)
    }

    pub(super) fn search(&mut self, means: impl Fn(Option<Source>) -> bool) -> Vec<Id> {
        if self.fresh.iter().any(|post| means(post.named())) {
            self.sort();
        }
        self.sorted.search(means)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Source> {
        let posts = self.fresh.iter().chain(self.sorted.posts());
        posts.filter_map(|post| post.named())
    }

    #[cfg(test)]
    pub fn groups(&self) -> usize {
        self.sorted.groups()
    }

    /// Chains of the first group.
    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.sorted.width()
    }
}
