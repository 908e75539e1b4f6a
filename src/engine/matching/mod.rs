//! Matching of messages with receives: the posted receives, and the unexpected messages.
//!
//! A receive names a source (or any) and a tag with a mask of bits to ignore. A message goes to the oldest posted
//! receive that matches; a new receive takes the oldest unexpected message that matches. Both orders are exact, as MPI
//! needs them. The bits that a receive compares are its `Pattern`, and programs use few patterns.
//!
//! - `posted`: a row of receives, of which a message is compared with the first. `sorted`: where a message that does
//!   not match that one finds its own by hash, which costs one lookup per pattern in use.
//! - `unexpected`: messages are searched one by one while that is cheap, else through an index of the pattern asked
//!   for.
//! - `list`: the order of messages, and of receives that are sorted. `chains`: the hash table of `sorted`. `index`: an
//!   index over a slab, made when needed.
//!
//! An engine has one `Matcher` for each `MessageKind`; the tag of untagged messages is always 0. Knows `util` only.

mod chains;
mod index;
mod list;
mod posted;
mod sorted;
mod unexpected;

#[cfg(test)]
mod tests;

use crate::util::hash::QuickHasher;
use crate::util::slab::Id;
use posted::Posted;
use std::hash::Hasher;
use unexpected::Unexpected;

/// The sender of a message, as receives name it: the peer's number, or that of another peer (`Core::source`).
pub type Source = u32;

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
    /// Any message from anyone.
    pub const ANY: Want = Want {
        source: None,
        tag: 0,
        ignore: u64::MAX,
    };

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
    source: u32,
    tag: u64,
}

impl Pattern {
    #[inline]
    fn of(want: &Want) -> Pattern {
        Pattern {
            source: if want.source.is_some() { u32::MAX } else { 0 },
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

/// The bits of source and tag that a pattern compares: a message matches a receive of that pattern if their keys are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: u32,
    tag: u64,
}

impl Key {
    #[inline]
    fn hash(self) -> u32 {
        let mut hasher = QuickHasher::new(u64::from(self.source) << 32);
        hasher.write_u64(self.tag);
        hasher.finish() as u32
    }
}

/// What the matcher must know of a posted receive.
pub trait Receive {
    /// The context by which the application cancels it. Several receives may have the same.
    fn context(&self) -> usize;
}

/// What `take_posted` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<P> {
    Nothing,
    Removed(P),
    /// One of `post_lasting`, which stays until `unpost`.
    Lasting(Id),
}

/// Posted receives and unexpected messages. `P` is what the engine keeps of a receive, `M` of a message.
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
    /// Posts a receive for which `find_unexpected` found nothing.
    // Inlined, and with a closure that makes the receive last, so that it is written only once, where it stays.
    #[inline(always)]
    pub fn post(&mut self, want: Want, receive: impl FnOnce() -> P) {
        self.posted.push(&want, receive);
    }

    /// The same for a receive that takes message after message.
    pub fn post_lasting(&mut self, want: Want, receive: P) -> Id {
        self.posted.push_lasting(&want, receive)
    }

    /// A receive of `post_lasting`, or one that `find_context` or `search_posted` has found.
    #[inline]
    pub fn posted(&self, receive: Id) -> Option<&P> {
        self.posted.get(receive)
    }

    /// The oldest receive with this context for which `means` is true.
    pub fn find_context(&mut self, context: usize, means: impl Fn(&P) -> bool) -> Option<Id> {
        self.posted.find_context(context, means)
    }

    /// All receives whose source is as `means` says, oldest first.
    pub fn search_posted(&mut self, means: impl Fn(Option<Source>) -> bool) -> Vec<Id> {
        self.posted.search(means)
    }

    /// The sources that receives name.
    pub fn posted_sources(&self) -> impl Iterator<Item = Source> {
        self.posted.sources()
    }

    /// The sources of the messages that wait for a receive, as they were when those came.
    pub fn unexpected_sources(&self) -> impl Iterator<Item = Source> {
        self.unexpected.sources()
    }

    /// Removes such a receive.
    pub fn unpost(&mut self, receive: Id) -> Option<P> {
        self.posted.remove(receive)
    }

    /// Removes the oldest receive that a message matches, unless it lasts.
    #[inline(always)]
    pub fn take_posted(&mut self, source: Source, tag: u64) -> Taken<P> {
        self.posted.take(source, tag)
    }

    /// Keeps a message for which `take_posted` found no receive.
    pub fn add_unexpected(&mut self, source: Source, tag: u64, message: M) -> Id {
        self.unexpected.insert(source, tag, message)
    }

    /// The oldest unexpected message that a receive matches. It stays until `take_unexpected`.
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

    /// Hides a message from matching and keeps it, for FI_PEEK with FI_CLAIM.
    pub fn claim(&mut self, message: Id) -> bool {
        self.unexpected.hide(message)
    }

    pub fn posted_len(&self) -> usize {
        self.posted.len()
    }

    #[cfg(test)]
    pub fn unexpected_len(&self) -> usize {
        self.unexpected.len()
    }
}
