//! Which receive a message belongs to: posted receives, and messages that came before their receive.
//!
//! A receive names a source (or any) and a tag with a mask of bits to ignore. A message goes to the oldest posted
//! receive that fits, a new receive takes the oldest held message that fits; both orders are exact, as MPI needs them.
//! Receives of one kind (same mask, source given or not) are found by hash, so an arrival costs one look-up per kind in
//! use, however many are posted. Held messages are found by hash when the receive has no mask.
//!
//! Used by the endpoint, once for tagged and once for untagged messages (whose tag is always 0).

use crate::util::slab::{Id, Slab};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};

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
}

/// Receives and messages waiting for each other. `P` is what the endpoint keeps of a posted receive, `M` of a message.
#[derive(Debug)]
pub struct Matcher<P, M> {
    posted: Posted<P>,
    held: Held<M>,
}

impl<P, M> Default for Matcher<P, M> {
    fn default() -> Self {
        Matcher {
            posted: Posted::default(),
            held: Held::default(),
        }
    }
}

impl<P, M> Matcher<P, M> {
    /// Adds a receive for which `find_held` found nothing.
    pub fn post(&mut self, want: Want, receive: P) -> Id {
        self.posted.insert(want, receive)
    }

    /// The oldest receive that a message fits. It stays posted until `unpost`, as a multi-receive does.
    pub fn find_posted(&mut self, source: Source, tag: u64) -> Option<Id> {
        self.posted.find(source, tag)
    }

    pub fn posted_mut(&mut self, receive: Id) -> Option<&mut P> {
        self.posted.slab.get_mut(receive).map(|post| &mut post.value)
    }

    /// The receives that a caller means, oldest first.
    pub fn search_posted(&self, means: impl Fn(&P) -> bool) -> Vec<Id> {
        let meant = self.posted.slab.iter().filter(|(_, post)| means(&post.value));
        let mut found: Vec<(u64, Id)> = meant.map(|(id, post)| (post.order, id)).collect();
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes a receive away: it has its message, or was cancelled.
    pub fn unpost(&mut self, receive: Id) -> Option<P> {
        self.posted.remove(receive)
    }

    /// Keeps a message for which `find_posted` found nothing.
    pub fn hold(&mut self, source: Source, tag: u64, message: M) -> Id {
        self.held.insert(source, tag, message)
    }

    /// The oldest message that a receive wants. It stays held until `release`, as FI_PEEK asks.
    pub fn find_held(&mut self, want: &Want) -> Option<Id> {
        self.held.find(want)
    }

    pub fn held_mut(&mut self, message: Id) -> Option<&mut M> {
        self.held.slab.get_mut(message).map(|entry| &mut entry.value)
    }

    pub fn release(&mut self, message: Id) -> Option<M> {
        self.held.remove(message)
    }

    /// Takes a message out of matching without letting go of it, as FI_PEEK with FI_CLAIM asks.
    pub fn claim(&mut self, message: Id) -> bool {
        self.held.hide(message)
    }

    pub fn posted_len(&self) -> usize {
        self.posted.slab.len()
    }

    pub fn held_len(&self) -> usize {
        self.held.slab.len()
    }
}

/// Multiplies and folds: keys are small numbers and tags that programs chose, and no adversary picks both sides.
#[derive(Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }
}

type Buckets = HashMap<(Source, u64), VecDeque<Id>, BuildHasherDefault<Fold>>;

/// Numbers in the order they came, by key. An entry that was removed elsewhere is skipped when it comes to the front.
#[derive(Debug, Default)]
struct Index {
    buckets: Buckets,
    /// Names in the buckets, dead ones included.
    names: usize,
}

impl Index {
    fn push(&mut self, key: (Source, u64), id: Id) {
        self.buckets.entry(key).or_default().push_back(id);
        self.names += 1;
    }

    /// The first name of a key that is alive; dead ones before it are dropped.
    fn first(&mut self, key: (Source, u64), alive: impl Fn(Id) -> bool) -> Option<Id> {
        let queue = self.buckets.get_mut(&key)?;
        while let Some(id) = queue.front() {
            if alive(*id) {
                return Some(*id);
            }
            queue.pop_front();
            self.names -= 1;
        }
        None
    }

    /// Drops dead names and empty queues once they outnumber the living, so that memory follows use.
    fn tidy(&mut self, living: usize, alive: impl Fn(Id) -> bool) {
        const SLACK: usize = 64;
        if self.names.max(self.buckets.len()) <= 2 * living + SLACK {
            return;
        }
        self.buckets.retain(|_, queue| {
            queue.retain(|id| alive(*id));
            !queue.is_empty()
        });
        self.names = self.buckets.values().map(VecDeque::len).sum();
    }
}

#[derive(Debug)]
struct Post<P> {
    value: P,
    kind: usize,
    order: u64,
}

/// Receives that share a mask and whether they name a source.
#[derive(Debug)]
struct Kind {
    ignore: u64,
    any_source: bool,
    posts: usize,
    index: Index,
}

impl Kind {
    fn key(&self, source: Source, tag: u64) -> (Source, u64) {
        (if self.any_source { 0 } else { source }, tag & !self.ignore)
    }
}

#[derive(Debug)]
struct Posted<P> {
    slab: Slab<Post<P>>,
    kinds: Vec<Kind>,
    order: u64,
}

impl<P> Default for Posted<P> {
    fn default() -> Self {
        Posted {
            slab: Slab::default(),
            kinds: Vec::new(),
            order: 0,
        }
    }
}

impl<P> Posted<P> {
    fn insert(&mut self, want: Want, value: P) -> Id {
        let kind = self.kind_of(&want);
        self.order += 1;
        let id = self.slab.insert(Post {
            value,
            kind,
            order: self.order,
        });
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.posts += 1;
            let key = kind.key(want.source.unwrap_or(0), want.tag);
            kind.index.push(key, id);
            kind.index.tidy(kind.posts, |id| self.slab.get(id).is_some());
        }
        id
    }

    fn kind_of(&mut self, want: &Want) -> usize {
        let any_source = want.source.is_none();
        let same = |kind: &Kind| kind.ignore == want.ignore && kind.any_source == any_source;
        let found = self.kinds.iter().position(same);
        // A kind without posts can change its mask, so there are never more kinds than were once in use together.
        let place = found.or_else(|| self.kinds.iter().position(|kind| kind.posts == 0));
        let fresh = Kind {
            ignore: want.ignore,
            any_source,
            posts: 0,
            index: Index::default(),
        };
        match place.and_then(|place| Some((place, self.kinds.get_mut(place)?))) {
            Some((place, kind)) => {
                if found.is_none() {
                    *kind = fresh;
                }
                place
            }
            None => {
                self.kinds.push(fresh);
                self.kinds.len() - 1
            }
        }
    }

    fn find(&mut self, source: Source, tag: u64) -> Option<Id> {
        let slab = &self.slab;
        let mut oldest: Option<(u64, Id)> = None;
        for kind in self.kinds.iter_mut().filter(|kind| kind.posts > 0) {
            let key = kind.key(source, tag);
            let Some(id) = kind.index.first(key, |id| slab.get(id).is_some()) else {
                continue;
            };
            let Some(post) = slab.get(id) else { continue };
            if oldest.is_none_or(|(order, _)| post.order < order) {
                oldest = Some((post.order, id));
            }
        }
        oldest.map(|(_, id)| id)
    }

    fn remove(&mut self, id: Id) -> Option<P> {
        let post = self.slab.remove(id)?;
        if let Some(kind) = self.kinds.get_mut(post.kind) {
            kind.posts -= 1;
        }
        Some(post.value)
    }
}

#[derive(Debug)]
struct Message<M> {
    value: M,
    source: Source,
    tag: u64,
    hidden: bool,
}

#[derive(Debug)]
struct Held<M> {
    slab: Slab<Message<M>>,
    /// In order of arrival; dead names are dropped by `tidy`.
    arrivals: VecDeque<Id>,
    by_source: Index,
    by_tag: Index,
}

impl<M> Default for Held<M> {
    fn default() -> Self {
        Held {
            slab: Slab::default(),
            arrivals: VecDeque::new(),
            by_source: Index::default(),
            by_tag: Index::default(),
        }
    }
}

impl<M> Held<M> {
    fn insert(&mut self, source: Source, tag: u64, value: M) -> Id {
        let id = self.slab.insert(Message {
            value,
            source,
            tag,
            hidden: false,
        });
        self.arrivals.push_back(id);
        self.by_source.push((source, tag), id);
        self.by_tag.push((0, tag), id);
        self.tidy();
        id
    }

    fn find(&mut self, want: &Want) -> Option<Id> {
        let slab = &self.slab;
        let visible = |id: Id| slab.get(id).is_some_and(|message| !message.hidden);
        if want.ignore == 0 {
            return match want.source {
                Some(source) => self.by_source.first((source, want.tag), visible),
                None => self.by_tag.first((0, want.tag), visible),
            };
        }
        let wanted = |id: &Id| {
            slab.get(*id)
                .is_some_and(|message| !message.hidden && want.fits(message.source, message.tag))
        };
        self.arrivals.iter().copied().find(|id| wanted(id))
    }

    fn remove(&mut self, id: Id) -> Option<M> {
        let message = self.slab.remove(id)?;
        while self
            .arrivals
            .front()
            .is_some_and(|first| self.slab.get(*first).is_none())
        {
            self.arrivals.pop_front();
        }
        self.tidy();
        Some(message.value)
    }

    fn hide(&mut self, id: Id) -> bool {
        match self.slab.get_mut(id) {
            Some(message) if !message.hidden => {
                message.hidden = true;
                true
            }
            _ => false,
        }
    }

    fn tidy(&mut self) {
        let (slab, living) = (&self.slab, self.slab.len());
        let visible = |id: Id| slab.get(id).is_some_and(|message| !message.hidden);
        self.by_source.tidy(living, visible);
        self.by_tag.tidy(living, visible);
        if self.arrivals.len() > 2 * living + 64 {
            self.arrivals.retain(|id| slab.get(*id).is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: two lists, searched from the front.
    #[derive(Default)]
    struct Model {
        posted: Vec<(Want, u32)>,
        held: Vec<(Source, u64, u32)>,
    }

    impl Model {
        fn arrive(&mut self, source: Source, tag: u64, name: u32) -> Option<u32> {
            match self.posted.iter().position(|(want, _)| want.fits(source, tag)) {
                Some(place) => Some(self.posted.remove(place).1),
                None => {
                    self.held.push((source, tag, name));
                    None
                }
            }
        }
        fn receive(&mut self, want: Want, name: u32) -> Option<u32> {
            match self.held.iter().position(|(source, tag, _)| want.fits(*source, *tag)) {
                Some(place) => Some(self.held.remove(place).2),
                None => {
                    self.posted.push((want, name));
                    None
                }
            }
        }
    }

    fn arrive(matcher: &mut Matcher<u32, u32>, source: Source, tag: u64, name: u32) -> Option<u32> {
        match matcher.find_posted(source, tag) {
            Some(receive) => matcher.unpost(receive),
            None => {
                matcher.hold(source, tag, name);
                None
            }
        }
    }

    fn receive(matcher: &mut Matcher<u32, u32>, want: Want, name: u32) -> Option<u32> {
        match matcher.find_held(&want) {
            Some(message) => matcher.release(message),
            None => {
                matcher.post(want, name);
                None
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_two_plain_lists(steps in proptest::collection::vec((0u8..3, 0u64..3, 0u64..4, 0u64..4), 0..400)) {
            let (mut matcher, mut model) = (Matcher::default(), Model::default());
            for (name, (what, source, tag, ignore)) in steps.into_iter().enumerate() {
                let name = name as u32;
                if what == 0 {
                    assert_eq!(arrive(&mut matcher, source, tag, name), model.arrive(source, tag, name));
                } else {
                    let want = Want { source: (source > 0).then_some(source), tag, ignore: if what == 1 { 0 } else { ignore } };
                    assert_eq!(receive(&mut matcher, want, name), model.receive(want, name));
                }
                assert_eq!((matcher.posted_len(), matcher.held_len()), (model.posted.len(), model.held.len()));
            }
        }
    }

    #[test]
    fn memory_follows_use() {
        let mut matcher = Matcher::default();
        for tag in 0..100_000 {
            let want = Want {
                source: Some(1),
                tag,
                ignore: 0,
            };
            let receive = matcher.post(want, 0);
            assert_eq!(matcher.find_posted(1, tag), Some(receive));
            matcher.unpost(receive);
            let message = matcher.hold(1, tag, 0u32);
            assert_eq!(matcher.find_held(&want), Some(message));
            matcher.release(message);
        }
        let sizes = [
            matcher.posted.kinds[0].index.buckets.len(),
            matcher.held.by_tag.names,
            matcher.held.arrivals.len(),
        ];
        assert!(sizes.iter().all(|size| *size <= 65), "{sizes:?}");
    }

    #[test]
    fn a_claimed_message_is_out_of_matching_until_released() {
        let mut matcher: Matcher<(), u32> = Matcher::default();
        let any = Want {
            source: None,
            tag: 0,
            ignore: u64::MAX,
        };
        let (first, second) = (matcher.hold(1, 5, 10), matcher.hold(1, 5, 11));
        assert!(matcher.claim(first));
        assert!(!matcher.claim(first));
        assert_eq!(matcher.find_held(&any), Some(second));
        assert_eq!(
            matcher.find_held(&Want {
                ignore: 0,
                tag: 5,
                source: Some(1)
            }),
            Some(second)
        );
        assert_eq!(matcher.release(first), Some(10));
    }
}
