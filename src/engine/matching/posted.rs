//! Posted receives, found by an arriving message or by their context.
//!
//! Most messages match the receive that was posted first, so receives wait in a list, `fresh`, of which only the first
//! is compared. When a message does not match it, all of them are sorted into groups: receives of one pattern form a
//! group, in which a message finds the oldest match by hash, and the oldest of all groups gets it. What is sorted is
//! older than what is fresh. Cancelling searches all receives while there are few, else an index of their contexts.
//! Used by `matching`.

use super::chains::{Chains, Hashes};
use super::index::{FEW, Index};
use super::list::{Link, Links, List};
use super::{Key, Pattern, Receive, Source, Taken, Want};
use crate::util::slab::{Id, Slab};

/// So many groups are kept although they are empty.
const USUAL: usize = 8;

#[derive(Debug)]
struct Entry<P> {
    value: P,
    /// What it asks for: its key, and the bits that its pattern compares.
    tag: u64,
    tag_mask: u64,
    source: Source,
    source_mask: Source,
    order: u64,
    /// Its group's place, or `FRESH`.
    group: u32,
    /// Among the fresh ones, or in its group.
    link: Link,
}

impl<P> Entry<P> {
    #[inline]
    fn pattern(&self) -> Pattern {
        Pattern {
            source: self.source_mask,
            tag: self.tag_mask,
        }
    }

    #[inline]
    fn key(&self) -> Key {
        Key {
            source: self.source,
            tag: self.tag,
        }
    }

    /// The source that it names.
    fn named(&self) -> Option<Source> {
        (self.source_mask != 0).then_some(self.source)
    }

    #[inline]
    fn fits(&self, source: Source, tag: u64) -> bool {
        #[cfg(test)]
        super::list::looks::count();
        self.pattern().key(source, tag) == self.key()
    }
}

const FRESH: u32 = u32::MAX;

impl<P> Links for Slab<Entry<P>> {
    #[inline]
    fn link(&mut self, place: u32) -> Option<&mut Link> {
        Some(&mut self.at_mut(place)?.link)
    }
}

impl<P> Hashes for Slab<Entry<P>> {
    #[inline]
    fn hash(&self, place: u32) -> u32 {
        self.at(place).map_or(0, |post| post.key().hash())
    }
}

/// Receives of one pattern.
#[derive(Debug)]
struct Group {
    pattern: Pattern,
    chains: Chains,
}

#[derive(Debug)]
pub(super) struct Posted<P> {
    slab: Slab<Entry<P>>,
    /// In order of posting.
    fresh: List,
    groups: Vec<Group>,
    /// How many receives are in groups.
    sorted: usize,
    order: u64,
    /// The index by context, while receives are being cancelled.
    contexts: Option<Box<Index<usize>>>,
    /// Posting and removing must keep `contexts` up to date, or may drop groups beyond `USUAL`.
    watched: bool,
}

impl<P> Default for Posted<P> {
    fn default() -> Self {
        Posted {
            slab: Slab::default(),
            fresh: List::EMPTY,
            groups: Vec::new(),
            sorted: 0,
            order: 0,
            contexts: None,
            watched: false,
        }
    }
}

impl<P: Receive> Posted<P> {
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    pub(super) fn get(&self, id: Id) -> Option<&P> {
        self.slab.get(id).map(|post| &post.value)
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, want: Want, value: impl FnOnce() -> P) -> Id {
        self.order += 1;
        let place = self.slab.next_place();
        let link = self.fresh.append(&mut self.slab, place);
        let (pattern, key) = (Pattern::of(&want), want.key());
        let id = self.slab.insert(Entry {
            value: value(),
            tag: key.tag,
            tag_mask: pattern.tag,
            source: key.source,
            source_mask: pattern.source,
            order: self.order,
            group: FRESH,
            link,
        });
        if self.watched {
            self.index_post(place);
        }
        id
    }

    /// Puts the fresh receives into groups.
    #[inline(never)]
    fn sort(&mut self) {
        let mut next = self.fresh.first();
        self.fresh = List::EMPTY;
        while let Some(post) = self.slab.at(next) {
            let (place, pattern, hash) = (next, post.pattern(), post.key().hash());
            next = post.link.after();
            let at = self.group_of(pattern);
            let Some(group) = self.groups.get_mut(at) else { return };
            let link = group.chains.push(&mut self.slab, hash, place);
            if let Some(post) = self.slab.at_mut(place) {
                (post.group, post.link) = (at as u32, link);
            }
            self.sorted += 1;
        }
    }

    #[inline]
    fn group_of(&mut self, pattern: Pattern) -> usize {
        match self.groups.iter().position(|group| group.pattern == pattern) {
            Some(found) => found,
            None => self.new_group(pattern),
        }
    }

    #[cold]
    fn new_group(&mut self, pattern: Pattern) -> usize {
        let fresh = Group {
            pattern,
            chains: Chains::default(),
        };
        // An empty group is reused for another pattern, so there are never more groups than patterns in use at once.
        let unused = self.groups.iter().position(|group| group.chains.is_empty());
        match unused.and_then(|place| Some((place, self.groups.get_mut(place)?))) {
            Some((place, group)) => {
                *group = fresh;
                place
            }
            None => {
                self.groups.push(fresh);
                self.watch();
                self.groups.len() - 1
            }
        }
    }

    /// The oldest match, which stays.
    pub(super) fn find(&mut self, source: Source, tag: u64) -> Option<Id> {
        let (place, ()) = self.oldest(source, tag, |_| ())?;
        self.slab.name(place)
    }

    /// Removes the oldest match, if it is simple.
    #[inline(always)]
    pub(super) fn take(&mut self, source: Source, tag: u64) -> Taken<P::Simple> {
        match self.oldest(source, tag, P::simple) {
            None => Taken::Nothing,
            Some((_, None)) => Taken::Other,
            Some((place, Some(simple))) => {
                self.unlink(place);
                self.slab.clear(place);
                Taken::Simple(simple)
            }
        }
    }

    /// The place of the oldest match, and what `look` returns of it.
    #[inline(always)]
    fn oldest<R>(&mut self, source: Source, tag: u64, look: impl Fn(&P) -> R) -> Option<(u32, R)> {
        let first = self.fresh.first();
        match self.slab.at(first) {
            Some(post) if self.sorted == 0 && post.fits(source, tag) => Some((first, look(&post.value))),
            _ => {
                let place = self.search_groups(source, tag)?;
                Some((place, look(&self.slab.at(place)?.value)))
            }
        }
    }

    /// The same where the first of the fresh receives may not be it.
    #[inline(never)]
    fn search_groups(&mut self, source: Source, tag: u64) -> Option<u32> {
        if self.sorted > 0 {
            if let Some(sorted) = self.oldest_sorted(source, tag) {
                return Some(sorted);
            }
            let first = self.fresh.first();
            if self.slab.at(first).is_some_and(|post| post.fits(source, tag)) {
                return Some(first);
            }
        }
        if self.fresh.is_empty() {
            return None;
        }
        self.sort();
        self.oldest_sorted(source, tag)
    }

    /// The place of the oldest match in the groups.
    #[inline]
    fn oldest_sorted(&self, source: Source, tag: u64) -> Option<u32> {
        let mut oldest: Option<(u32, &Entry<P>)> = None;
        for group in self.groups.iter().filter(|group| !group.chains.is_empty()) {
            let key = group.pattern.key(source, tag);
            let at = |place| self.slab.at(place).map(|post| (post, post.link));
            if let Some(found) = group.chains.find(key.hash(), at, |post| post.key() == key) {
                oldest = Some(oldest.map_or(
                    found,
                    |oldest| if oldest.1.order < found.1.order { oldest } else { found },
                ));
            }
        }
        oldest.map(|(place, _)| place)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<P> {
        self.slab.get(id)?;
        self.unlink(id.place());
        self.slab.remove(id).map(|post| post.value)
    }

    /// Takes an entry that is to be removed out of its list or group.
    #[inline(always)]
    fn unlink(&mut self, place: u32) {
        if self.watched {
            self.tidy(place);
        }
        let Some(post) = self.slab.at(place) else { return };
        if post.group == FRESH {
            let link = post.link;
            self.fresh.unlink(&mut self.slab, place, link);
        } else {
            self.unlink_sorted(place);
        }
    }

    #[inline(never)]
    fn unlink_sorted(&mut self, place: u32) {
        let Some(post) = self.slab.at(place) else { return };
        let (hash, link) = (post.key().hash(), post.link);
        if let Some(group) = self.groups.get_mut(post.group as usize) {
            group.chains.unlink(&mut self.slab, hash, place, link);
            self.sorted -= 1;
        }
    }

    /// The rare part of removing a receive: drops empty groups and updates the index.
    #[cold]
    fn tidy(&mut self, place: u32) {
        while self.groups.len() > USUAL && self.groups.last().is_some_and(|group| group.chains.is_empty()) {
            self.groups.pop();
        }
        if let (Some(contexts), Some(post)) = (&mut self.contexts, self.slab.at(place)) {
            contexts.remove(post.value.context(), place);
        }
        self.watch();
    }

    fn watch(&mut self) {
        self.watched = self.contexts.is_some() || self.groups.len() > USUAL;
    }

    pub(super) fn find_context(&mut self, context: usize, means: impl Fn(&P) -> bool) -> Option<Id> {
        if self.contexts.is_none() && self.slab.places() > FEW {
            self.index_contexts();
        }
        match &mut self.contexts {
            Some(index) => {
                let mut found = index.find(context);
                let place = found.find(|place| self.slab.at(*place).is_some_and(|post| means(&post.value)))?;
                self.slab.name(place)
            }
            None => {
                let meant = |post: &Entry<P>| {
                    #[cfg(test)]
                    super::list::looks::count();
                    post.value.context() == context && means(&post.value)
                };
                let found = self.slab.iter().filter(|(_, post)| meant(post));
                found.min_by_key(|(_, post)| post.order).map(|(id, _)| id)
            }
        }
    }

    #[cold]
    fn index_contexts(&mut self) {
        let posts = self.slab.iter();
        let mut entries: Vec<_> = posts
            .map(|(id, post)| (post.order, post.value.context(), id.place()))
            .collect();
        entries.sort_unstable();
        let index = Index::of(entries.into_iter().map(|(_, context, place)| (context, place)));
        self.contexts = Some(Box::new(index));
        self.watch();
    }

    #[cold]
    fn index_post(&mut self, place: u32) {
        if self.contexts.as_ref().is_some_and(|index| index.is_stale()) {
            self.contexts = None;
            self.watch();
        }
        let context = self.slab.at(place).map(|post| post.value.context());
        if let (Some(index), Some(context)) = (&mut self.contexts, context) {
            index.push(context, place);
        }
    }

    pub(super) fn search(&self, means: impl Fn(Option<Source>) -> bool) -> Vec<Id> {
        let meant = self.slab.iter().filter(|(_, post)| means(post.named()));
        let mut found: Vec<(u64, Id)> = meant.map(|(id, post)| (post.order, id)).collect();
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Source> {
        self.slab.iter().filter_map(|(_, post)| post.named())
    }

    #[cfg(test)]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Chains of the first group.
    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.groups[0].chains.width()
    }
}
