//! A hash table of slab entries that keeps entries of one hash in order of insertion.
//!
//! Each bucket is a doubly linked chain, oldest entry first, and the links lie in the entries (`Links`). So inserting,
//! finding and removing touch only the entry and its neighbours. Used by `posted` and `unexpected`.

use crate::util::slab::NOWHERE;

/// An entry's neighbours in its chain, by their places in the slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    hash: u32,
    before: u32,
    after: u32,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            hash: 0,
            before: NOWHERE,
            after: NOWHERE,
        }
    }
}

impl Link {
    /// The place of the next entry of the chain, or `NOWHERE`.
    pub(super) fn after(self) -> u32 {
        self.after
    }
}

/// Gives access to the link of the entry at a place.
pub(super) trait Links {
    fn link(&mut self, place: u32) -> Option<&mut Link>;
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends {
    first: NOWHERE,
    last: NOWHERE,
};

/// The initial number of chains, and the number of entries per chain at which it doubles.
const FEW: usize = 16;
const CROWD: usize = 2;
/// A table with more chains than this is freed when it becomes empty.
const MANY: usize = 1024;

#[derive(Debug)]
pub(super) struct Chains {
    /// Their number is 0 or a power of two.
    chains: Vec<Ends>,
    len: usize,
    grows: bool,
}

impl Default for Chains {
    fn default() -> Self {
        Chains {
            chains: Vec::new(),
            len: 0,
            grows: true,
        }
    }
}

impl Chains {
    /// A table that always has a single chain: a list.
    pub(super) fn only_one() -> Chains {
        Chains {
            chains: vec![EMPTY],
            len: 0,
            grows: false,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of the oldest entry of a list, or `NOWHERE`.
    pub(super) fn first(&self) -> u32 {
        self.chains.first().map_or(NOWHERE, |ends| ends.first)
    }

    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.chains.len()
    }

    /// Appends the entry that is about to be put into this place of the slab. Returns the link to store in it.
    #[inline(always)]
    pub(super) fn push(&mut self, links: &mut impl Links, hash: u32, place: u32) -> Link {
        if self.len >= CROWD * self.chains.len() && self.grows {
            self.grow(links);
        }
        self.len += 1;
        self.append(links, hash, place)
    }

    #[inline]
    fn append(&mut self, links: &mut impl Links, hash: u32, place: u32) -> Link {
        let at = self.chain_of(hash);
        let Some(ends) = self.chains.get_mut(at) else {
            return Link::default();
        };
        let before = std::mem::replace(&mut ends.last, place);
        match links.link(before) {
            Some(last) => last.after = place,
            None => ends.first = place,
        }
        Link {
            hash,
            before,
            after: NOWHERE,
        }
    }

    /// The oldest entry with this hash for which `fits` is true, and its place. `at` returns the entry at a place and
    /// its link.
    #[inline]
    pub(super) fn find<E>(
        &self,
        hash: u32,
        at: impl Fn(u32) -> Option<(E, Link)>,
        fits: impl Fn(&E) -> bool,
    ) -> Option<(u32, E)> {
        let mut next = self.chains.get(self.chain_of(hash))?.first;
        loop {
            let (entry, link) = at(next)?;
            #[cfg(test)]
            looks::count();
            if fits(&entry) {
                return Some((next, entry));
            }
            next = link.after;
        }
    }

    /// Removes the entry that has this link.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut impl Links, link: Link) {
        let Link { hash, before, after } = link;
        let at = self.chain_of(hash);
        let Some(ends) = self.chains.get_mut(at) else { return };
        match links.link(before) {
            Some(link) => link.after = after,
            None => ends.first = after,
        }
        match links.link(after) {
            Some(link) => link.before = before,
            None => ends.last = before,
        }
        self.len -= 1;
        if self.len == 0 && self.chains.len() > MANY {
            self.chains = Vec::new();
        }
    }

    #[inline]
    fn chain_of(&self, hash: u32) -> usize {
        hash as usize & self.chains.len().wrapping_sub(1)
    }

    /// Doubles the number of chains. Each splits in two, so the order within them stays.
    #[cold]
    fn grow(&mut self, links: &mut impl Links) {
        let wide = (2 * self.chains.len()).max(FEW);
        let old = std::mem::replace(&mut self.chains, vec![EMPTY; wide]);
        for ends in old {
            let mut next = ends.first;
            while let Some(link) = links.link(next).copied() {
                let new = self.append(links, link.hash, next);
                if let Some(old) = links.link(next) {
                    *old = new;
                }
                next = link.after;
            }
        }
    }
}

/// Counts the entries that the thread's searches have compared: tests check that searches stay short.
#[cfg(test)]
pub(super) mod looks {
    use std::cell::Cell;

    thread_local!(static LOOKS: Cell<u64> = const { Cell::new(0) });

    pub fn count() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// The count since the last call.
    pub fn take() -> u64 {
        LOOKS.take()
    }
}
