//! Posted receives in groups, with names: those that last, and those that were posted when a message did not match the
//! first, or one of them was looked for by its context or source.
//!
//! Receives of one pattern form a group, in which a message finds the oldest match by hash, and the oldest of all
//! groups gets it. Cancelling searches all receives while there are few, else an index of their contexts. Used by
//! `posted`.

use super::chains::{Chains, Hashes};
use super::index::{FEW, Index};
use super::list::{Link, Links};
use super::posted::Post;
use super::{Pattern, Receive, Source, Taken};
use crate::util::slab::{Id, Slab};

/// So many groups are kept although they are empty.
const USUAL: usize = 8;

#[derive(Debug)]
struct Entry<P> {
    post: Post<P>,
    /// It stays when a message matches it, until it is removed by name.
    lasts: bool,
    order: u64,
    /// Its group's place.
    group: u32,
    /// In its group.
    link: Link,
}

impl<P> Links for Slab<Entry<P>> {
    #[inline]
    fn link(&mut self, place: u32) -> Option<&mut Link> {
        Some(&mut self.at_mut(place)?.link)
    }
}

impl<P> Hashes for Slab<Entry<P>> {
    #[inline]
    fn hash(&self, place: u32) -> u32 {
        self.at(place).map_or(0, |entry| entry.post.key().hash())
    }
}

/// Receives of one pattern.
#[derive(Debug)]
struct Group {
    pattern: Pattern,
    chains: Chains,
}

#[derive(Debug)]
pub(super) struct Sorted<P> {
    slab: Slab<Entry<P>>,
    groups: Vec<Group>,
    order: u64,
    /// The index by context, while receives are being cancelled.
    contexts: Option<Box<Index<usize>>>,
    /// Adding and removing must keep `contexts` up to date, or may drop groups beyond `USUAL`.
    watched: bool,
}

impl<P> Default for Sorted<P> {
    fn default() -> Self {
        Sorted {
            slab: Slab::default(),
            groups: Vec::new(),
            order: 0,
            contexts: None,
            watched: false,
        }
    }
}

impl<P: Receive> Sorted<P> {
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, id: Id) -> Option<&P> {
        self.slab.get(id).map(|entry| &entry.post.value)
    }

    pub(super) fn posts(&self) -> impl Iterator<Item = &Post<P>> {
        self.slab.iter().map(|(_, entry)| &entry.post)
    }

    /// Adds a receive, which is younger than all that are here.
    pub(super) fn insert(&mut self, post: Post<P>, lasts: bool) -> Id {
        self.order += 1;
        let (at, hash) = (self.group_of(post.pattern()), post.key().hash());
        let id = self.slab.insert(Entry {
            post,
            lasts,
            order: self.order,
            group: at as u32,
            link: Link::ALONE,
        });
        if let Some(group) = self.groups.get_mut(at) {
            let link = group.chains.push(&mut self.slab, hash, id.place());
            if let Some(entry) = self.slab.at_mut(id.place()) {
                entry.link = link;
            }
        }
        if self.watched {
            self.index_entry(id.place());
        }
        id
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

    /// Removes the oldest match, unless it lasts.
    #[inline]
    pub(super) fn take(&mut self, source: Source, tag: u64) -> Taken<Post<P>> {
        let Some(place) = self.oldest(source, tag) else {
            return Taken::Nothing;
        };
        match self.slab.at(place) {
            Some(entry) if entry.lasts => self.slab.name(place).map_or(Taken::Nothing, Taken::Lasting),
            _ => self.remove_at(place).map_or(Taken::Nothing, Taken::Removed),
        }
    }

    /// The place of the oldest match.
    #[inline]
    fn oldest(&self, source: Source, tag: u64) -> Option<u32> {
        let mut oldest: Option<(u32, &Entry<P>)> = None;
        for group in self.groups.iter().filter(|group| !group.chains.is_empty()) {
            let key = group.pattern.key(source, tag);
            let at = |place| self.slab.at(place).map(|entry| (entry, entry.link));
            if let Some(found) = group.chains.find(key.hash(), at, |entry| entry.post.key() == key) {
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
        self.remove_at(id.place()).map(|post| post.value)
    }

    fn remove_at(&mut self, place: u32) -> Option<Post<P>> {
        if self.watched {
            self.tidy(place);
        }
        let entry = self.slab.at(place)?;
        let (hash, link, group) = (entry.post.key().hash(), entry.link, entry.group);
        if let Some(group) = self.groups.get_mut(group as usize) {
            group.chains.unlink(&mut self.slab, hash, place, link);
        }
        let id = self.slab.name(place)?;
        self.slab.remove(id).map(|entry| entry.post)
    }

    /// The rare part of removing a receive: drops empty groups and updates the index.
    #[cold]
    fn tidy(&mut self, place: u32) {
        while self.groups.len() > USUAL && self.groups.last().is_some_and(|group| group.chains.is_empty()) {
            self.groups.pop();
        }
        if let (Some(contexts), Some(entry)) = (&mut self.contexts, self.slab.at(place)) {
            contexts.remove(entry.post.value.context(), place);
        }
        self.watch();
    }

    fn watch(&mut self) {
        self.watched = self.contexts.is_some() || self.groups.len() > USUAL;
    }

    /// The oldest receive with this context for which `means` is true.
    pub(super) fn find_context(&mut self, context: usize, means: impl Fn(&P) -> bool) -> Option<Id> {
        if self.contexts.is_none() && self.slab.places() > FEW {
            self.index_contexts();
        }
        match &mut self.contexts {
            Some(index) => {
                let mut found = index.find(context);
                let place = found.find(|place| self.slab.at(*place).is_some_and(|entry| means(&entry.post.value)))?;
                self.slab.name(place)
            }
            None => {
                let meant = |entry: &Entry<P>| {
                    #[cfg(test)]
                    super::list::looks::count();
                    entry.post.value.context() == context && means(&entry.post.value)
                };
                let found = self.slab.iter().filter(|(_, entry)| meant(entry));
                found.min_by_key(|(_, entry)| entry.order).map(|(id, _)| id)
            }
        }
    }

    #[cold]
    fn index_contexts(&mut self) {
        let entries = self.slab.iter();
        let mut entries: Vec<_> = entries
            .map(|(id, entry)| (entry.order, entry.post.value.context(), id.place()))
            .collect();
        entries.sort_unstable();
        let index = Index::of(entries.into_iter().map(|(_, context, place)| (context, place)));
        self.contexts = Some(Box::new(index));
        self.watch();
    }

    #[cold]
    fn index_entry(&mut self, place: u32) {
        if self.contexts.as_ref().is_some_and(|index| index.is_stale()) {
            self.contexts = None;
            self.watch();
        }
        let context = self.slab.at(place).map(|entry| entry.post.value.context());
        if let (Some(index), Some(context)) = (&mut self.contexts, context) {
            index.push(context, place);
        }
    }

    /// All receives whose source is as `means` says, oldest first.
    pub(super) fn search(&self, means: impl Fn(Option<Source>) -> bool) -> Vec<Id> {
        let meant = self.slab.iter().filter(|(_, entry)| means(entry.post.named()));
        let mut found: Vec<(u64, Id)> = meant.map(|(id, entry)| (entry.order, id)).collect();
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, id)| id).collect()
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
