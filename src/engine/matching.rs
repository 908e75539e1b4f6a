//! Which receive a message belongs to: posted receives, and messages that came before their receive.
//!
//! A receive names a source (or any) and a tag with a mask of bits to ignore. A message goes to the oldest posted
//! receive that fits, a new receive takes the oldest held message that fits; both orders are exact, as MPI needs them.
//! Receives of one kind (same mask, source given or not) are found by hash, so an arrival costs one look-up per kind in
//! use, however many are posted. Held messages are found by hash when the receive has no mask. Both stand in `chains`.
//!
//! Used by the endpoint, once for tagged and once for untagged messages (whose tag is always 0).

use super::chains::{Chains, Link, Linked};
use crate::util::apart;
use crate::util::fold::Fold;
use crate::util::slab::{Id, Slab};
use std::hash::Hasher;

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
    // Into the call, as all that it is made of, and made in the end: so the receive is written once, where it stays.
    #[inline(always)]
    pub fn post(&mut self, want: Want, receive: impl FnOnce() -> P) -> Id {
        self.posted.insert(want, receive)
    }

    /// The oldest receive that a message fits. It stays posted until `unpost`, as a multi-receive does.
    #[inline]
    pub fn find_posted(&mut self, source: Source, tag: u64) -> Option<Id> {
        let (place, _) = self.posted.find(source, tag)?;
        self.posted.slab.name(place)
    }

    #[inline]
    pub fn posted(&self, receive: Id) -> Option<&P> {
        self.posted.slab.get(receive).map(|post| &post.value)
    }

    #[inline]
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

    /// The oldest receive that a message fits is taken away, if `take` has done with it. Says so.
    #[inline]
    pub fn take_posted(&mut self, source: Source, tag: u64, take: impl FnOnce(&P) -> bool) -> bool {
        let Some((place, post)) = self.posted.find(source, tag) else {
            return false;
        };
        let taken = take(&post.value);
        if taken {
            self.posted.clear(place);
        }
        taken
    }

    /// Keeps a message for which `find_posted` found nothing.
    pub fn hold(&mut self, source: Source, tag: u64, message: M) -> Id {
        self.held.insert(source, tag, message)
    }

    /// The oldest message that a receive wants. It stays held until `release`, as FI_PEEK asks.
    #[inline]
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

#[inline]
fn hash(source: Source, tag: u64) -> u32 {
    let mut fold = Fold::new(source.rotate_left(32));
    fold.write_u64(tag);
    fold.finish() as u32
}

/// A posted receive that is one of a kind (`Kind`).
#[derive(Debug)]
struct Post<P> {
    value: P,
    source: Source,
    tag: u64,
    kind: usize,
    order: u64,
    links: [Link; 1],
}

impl<P> Linked for Post<P> {
    #[inline]
    fn links(&mut self) -> &mut [Link] {
        &mut self.links
    }
}

/// Receives that share a mask and whether they name a source.
#[derive(Debug)]
struct Kind {
    ignore: u64,
    any_source: bool,
    chains: Chains<0>,
}

impl Kind {
    #[inline]
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
    #[inline(always)]
    fn insert(&mut self, want: Want, value: impl FnOnce() -> P) -> Id {
        let at = self.kind_of(&want);
        self.order += 1;
        let kind = &mut self.kinds[at];
        let (source, tag) = kind.key(want.source.unwrap_or(0), want.tag);
        let place = self.slab.next_place();
        let link = kind.chains.push(&mut self.slab, hash(source, tag), place);
        self.slab.insert(Post {
            value: value(),
            source,
            tag,
            kind: at,
            order: self.order,
            links: [link],
        })
    }

    #[inline]
    fn kind_of(&mut self, want: &Want) -> usize {
        let any_source = want.source.is_none();
        let same = |kind: &Kind| kind.ignore == want.ignore && kind.any_source == any_source;
        match self.kinds.iter().position(same) {
            Some(found) => found,
            None => self.new_kind(want.ignore, any_source),
        }
    }

    #[cold]
    fn new_kind(&mut self, ignore: u64, any_source: bool) -> usize {
        let fresh = Kind {
            ignore,
            any_source,
            chains: Chains::default(),
        };
        // A kind without posts can change its mask, so there are never more kinds than were once in use together.
        let unused = self.kinds.iter().position(|kind| kind.chains.is_empty());
        match unused.and_then(|place| Some((place, self.kinds.get_mut(place)?))) {
            Some((place, kind)) => {
                *kind = fresh;
                place
            }
            None => {
                self.kinds.push(fresh);
                self.kinds.len() - 1
            }
        }
    }

    /// The oldest of those that are the oldest of their kind.
    #[inline]
    fn find(&self, source: Source, tag: u64) -> Option<(u32, &Post<P>)> {
        let mut oldest: Option<(u32, &Post<P>)> = None;
        for kind in self.kinds.iter().filter(|kind| !kind.chains.is_empty()) {
            let (source, tag) = kind.key(source, tag);
            let same = |post: &Post<P>| post.source == source && post.tag == tag;
            let hash = hash(source, tag);
            if let Some(found) = kind.chains.find(&self.slab, hash, |post| post.links[0], same) {
                oldest = Some(oldest.map_or(
                    found,
                    |oldest| if oldest.1.order < found.1.order { oldest } else { found },
                ));
            }
        }
        oldest
    }

    #[inline]
    fn unlink(&mut self, kind: usize, link: Link) {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.chains.unlink(&mut self.slab, link);
        }
    }

    /// Takes a receive away that nobody wants to have.
    #[inline]
    fn clear(&mut self, place: u32) {
        if let Some(post) = self.slab.at(place) {
            let (kind, link) = (post.kind, post.links[0]);
            self.unlink(kind, link);
            self.slab.clear(place);
        }
    }

    fn remove(&mut self, id: Id) -> Option<P> {
        let post = self.slab.get(id)?;
        self.unlink(post.kind, post.links[0]);
        self.slab.remove(id).map(|post| post.value)
    }
}

#[derive(Debug)]
struct Message<M> {
    value: M,
    source: Source,
    tag: u64,
    /// In no chain, so nobody finds it.
    hidden: bool,
    links: [Link; 3],
}

impl<M> Linked for Message<M> {
    #[inline]
    fn links(&mut self) -> &mut [Link] {
        &mut self.links
    }
}

#[derive(Debug)]
struct Held<M> {
    slab: Slab<Message<M>>,
    by_source: Chains<0>,
    by_tag: Chains<1>,
    /// One chain, in order of arrival.
    all: Chains<2>,
}

impl<M> Default for Held<M> {
    fn default() -> Self {
        Held {
            slab: Slab::default(),
            by_source: Chains::default(),
            by_tag: Chains::default(),
            all: Chains::only_one(),
        }
    }
}

impl<M> Held<M> {
    fn insert(&mut self, source: Source, tag: u64, value: M) -> Id {
        let slab = &mut self.slab;
        let place = slab.next_place();
        let links = [
            self.by_source.push(slab, hash(source, tag), place),
            self.by_tag.push(slab, hash(0, tag), place),
            self.all.push(slab, 0, place),
        ];
        slab.insert(Message {
            value,
            source,
            tag,
            hidden: false,
            links,
        })
    }

    #[inline]
    fn find(&self, want: &Want) -> Option<Id> {
        if self.all.is_empty() {
            return None;
        }
        self.search(*want)
    }

    fn search(&self, mut want: Want) -> Option<Id> {
        let want = apart(&mut want);
        let (slab, tag) = (&self.slab, want.tag);
        let fits = |message: &Message<M>| want.fits(message.source, message.tag);
        let found = match want.source {
            _ if want.ignore != 0 => self.all.find(slab, 0, |message| message.links[2], fits),
            Some(source) => self
                .by_source
                .find(slab, hash(source, tag), |message| message.links[0], fits),
            None => self.by_tag.find(slab, hash(0, tag), |message| message.links[1], fits),
        };
        slab.name(found?.0)
    }

    fn remove(&mut self, id: Id) -> Option<M> {
        self.hide(id);
        self.slab.remove(id).map(|message| message.value)
    }

    fn hide(&mut self, id: Id) -> bool {
        let Some(message) = self.slab.get_mut(id).filter(|message| !message.hidden) else {
            return false;
        };
        message.hidden = true;
        let [first, second, third] = message.links;
        self.by_source.unlink(&mut self.slab, first);
        self.by_tag.unlink(&mut self.slab, second);
        self.all.unlink(&mut self.slab, third);
        true
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
                matcher.post(want, || name);
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
            let receive = matcher.post(want, || 0);
            assert_eq!(matcher.find_posted(1, tag), Some(receive));
            matcher.unpost(receive);
            let message = matcher.hold(1, tag, 0u32);
            assert_eq!(matcher.find_held(&want), Some(message));
            matcher.release(message);
        }
        assert_eq!(matcher.posted.kinds[0].chains.width(), matcher.held.by_tag.width());
        assert!(matcher.held.by_tag.width() <= 65);
    }

    /// Many at once make many chains, which keep the order and do not outlive their entries.
    #[test]
    fn chains_grow_and_shrink() {
        let want = |tag| Want {
            source: Some(tag % 3),
            tag: tag / 2,
            ignore: 0,
        };
        let mut matcher: Matcher<u64, u64> = Matcher::default();
        const MANY: u64 = 10_000;
        for name in 0..MANY {
            matcher.post(want(name % 600), || name);
            matcher.hold(name % 3, name % 300, name);
        }
        let mut last = vec![None; 600];
        for name in 0..MANY {
            let Want { source, tag, .. } = want(name % 600);
            let found = matcher
                .find_posted(source.unwrap(), tag)
                .and_then(|id| matcher.unpost(id))
                .unwrap();
            let place = &mut last[(name % 600) as usize];
            assert!(*place < Some(found), "oldest first");
            *place = Some(found);
        }
        assert!(matcher.posted.kinds[0].chains.width() == 0);
        let any = Want {
            source: None,
            tag: 0,
            ignore: u64::MAX,
        };
        for name in 0..MANY {
            let found = matcher.find_held(&any).and_then(|id| matcher.release(id));
            assert_eq!(found, Some(name));
        }
        assert_eq!((matcher.held.by_tag.width(), matcher.held_len()), (0, 0));
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
