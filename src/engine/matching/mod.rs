//! Which receive a message belongs to: posted receives, and messages that came before their receive.
//!
//! A receive names a source (or any) and a tag with a mask of bits to ignore. A message goes to the oldest posted
//! receive that fits, a new receive takes the oldest held message that fits; both orders are exact, as MPI needs them.
//! What a receive compares is its `Pattern`: programs use few of them. Posted receives of one pattern are found by hash,
//! so an arrival costs one look-up per pattern in use, however many are posted (`posted`). Held messages are searched
//! one by one while that is cheap, and through an index of the pattern asked for when it is not (`unexpected`).
//!
//! Used by the endpoint, once for tagged and once for untagged messages (whose tag is always 0).

mod chains;
mod index;
mod posted;
mod unexpected;

#[cfg(test)]
mod tests;

use crate::util::hash::QuickHasher;
use crate::util::slab::Id;
use posted::Posted;
use std::hash::Hasher;
use unexpected::Unexpected;

/// Where a message comes from: the number that the endpoint's address vector gave the peer.
pub type Source = u64;

/// What a receive asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// No source: from anyone.
    pub source: Option<Source>,
    pub tag: u64,
    /// Bits of the tag that may differ.
    pub ignore: u64,
}

impl Want {
    pub fn fits(&self, source: Source, tag: u64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && (self.tag ^ tag) & !self.ignore == 0
    }

    #[inline]
    fn key(&self) -> Key {
        Pattern::of(self).key(self.source.unwrap_or(0), self.tag)
    }
}

/// The bits of source and tag that a receive compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    source: u64,
    tag: u64,
}

impl Pattern {
    #[inline]
    fn of(want: &Want) -> Pattern {
        Pattern {
            source: if want.source.is_some() { u64::MAX } else { 0 },
            tag: !want.ignore,
        }
    }

    #[inline]
    fn key(self, source: Source, tag: u64) -> Key {
        Key {
            source: source & self.source,
            tag: tag & self.tag,
        }
    }
}

/// What is left of source and tag when a pattern's bits are taken: equal for a receive of it and a message that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: u64,
    tag: u64,
}

impl Key {
    #[inline]
    fn hash(self) -> u32 {
        let mut hasher = QuickHasher::new(self.source.rotate_left(32));
        hasher.write_u64(self.tag);
        hasher.finish() as u32
    }
}

/// What the endpoint keeps of a posted receive, as far as it is asked for here.
pub trait Receive {
    /// By which the application names it to cancel it. Several may have the same.
    fn context(&self) -> usize;
}

/// Receives and messages waiting for each other. `P` is what the endpoint keeps of a posted receive, `M` of a message.
#[derive(Debug)]
pub struct Matcher<P, M> {
    posted: Posted<P>,
    unexpected: Unexpected<M>,
}

impl<P, M> Default for Matcher<P, M> {
    fn default() -> Self {
        Matcher {
            posted: Posted::default(),
            unexpected: Unexpected::default(),
        }
    }
}

impl<P: Receive, M> Matcher<P, M> {
    /// Adds a receive for which `find_held` found nothing.
    // Into the call, as all that it is made of, and made in the end: so the receive is written once, where it stays.
    #[inline(always)]
    pub fn post(&mut self, want: Want, receive: impl FnOnce() -> P) -> Id {
        self.posted.insert(want, receive)
    }

    /// The oldest receive that a message fits. It stays posted until `unpost`, as a multi-receive does.
    #[inline]
    pub fn find_posted(&mut self, source: Source, tag: u64) -> Option<Id> {
        self.posted.find_id(source, tag)
    }

    #[inline]
    pub fn posted(&self, receive: Id) -> Option<&P> {
        self.posted.get(receive)
    }

    #[inline]
    pub fn posted_mut(&mut self, receive: Id) -> Option<&mut P> {
        self.posted.get_mut(receive)
    }

    /// The oldest receive with this context that the caller means.
    pub fn find_context(&mut self, context: usize, means: impl Fn(&P) -> bool) -> Option<Id> {
        self.posted.find_context(context, means)
    }

    /// The receives that a caller means, oldest first. Looks at all.
    pub fn search_posted(&self, means: impl Fn(&P) -> bool) -> Vec<Id> {
        self.posted.search(means)
    }

    /// Takes a receive away: it has its message, or was cancelled.
    pub fn unpost(&mut self, receive: Id) -> Option<P> {
        self.posted.remove(receive)
    }

    /// The oldest receive that a message fits is taken away, if `take` has done with it. Says so.
    #[inline]
    pub fn take_posted(&mut self, source: Source, tag: u64, take: impl FnOnce(&P) -> bool) -> bool {
        self.posted.take(source, tag, take)
    }

    /// Keeps a message for which `find_posted` found nothing.
    pub fn add_unexpected(&mut self, source: Source, tag: u64, message: M) -> Id {
        self.unexpected.insert(source, tag, message)
    }

    /// The oldest message that a receive wants. It stays held until `release`, as FI_PEEK asks.
    #[inline]
    pub fn find_unexpected(&mut self, want: &Want) -> Option<Id> {
        self.unexpected.find(want)
    }

    pub fn unexpected_mut(&mut self, message: Id) -> Option<&mut M> {
        self.unexpected.get_mut(message)
    }

    pub fn take_unexpected(&mut self, message: Id) -> Option<M> {
        self.unexpected.remove(message)
    }

    /// Takes a message out of matching without letting go of it, as FI_PEEK with FI_CLAIM asks.
    pub fn claim(&mut self, message: Id) -> bool {
        self.unexpected.hide(message)
    }

    pub fn posted_len(&self) -> usize {
        self.posted.len()
    }

    pub fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }
}
