//! A hash table of slab entries that keeps entries of one hash in order of insertion: each bucket is a list.
//!
//! Used by `sorted`, which supplies the hashes.

use super::list::{Link, Links, List};

/// Gives the hash of the entry at a place, besides its link.
pub(super) trait Hashes: Links {
    fn hash(&self, place: u32) -> u32;
}

/// The initial number of chains, and the number of entries per chain at which it doubles.
const FEW: usize = 16;
const CROWD: usize = 2;
/// A table with more chains than this is freed when it becomes empty.
const MANY: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Their number is 0 or a power of two.
    chains: Vec<List>,
    len: usize,
}

impl Chains {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.chains.len()
    }

    /// Appends the entry at this place of the slab. Returns the link to store in it.
    #[inline]
    pub(super) fn push(&mut self, entries: &mut impl Hashes, hash: u32, place: u32) -> Link {
        if self.len >= CROWD * self.chains.len() {
            self.grow(entries);
        }
        self.len += 1;
        self.append(entries, hash, place)
    }

    #[inline]
    fn append(&mut self, entries: &mut impl Hashes, hash: u32, place: u32) -> Link {
        let at = self.chain_of(hash);
        match self.chains.get_mut(at) {
            Some(chain) => chain.append(entries, place),
            None => Link::ALONE,
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
        self.chains.get(self.chain_of(hash))?.find(at, fits)
    }

    /// Removes the entry at this place, which has this hash and this link.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut impl Links, hash: u32, place: u32, link: Link) {
        let at = self.chain_of(hash);
        let Some(chain) = self.chains.get_mut(at) else { return };
        chain.unlink(links, place, link);
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
    fn grow(&mut self, entries: &mut impl Hashes) {
        let wide = (2 * self.chains.len()).max(FEW);
        let old = std::mem::replace(&mut self.chains, vec![List::EMPTY; wide]);
        for list in old {
            let mut next = list.first();
            while let Some(link) = entries.link(next).copied() {
                let hash = entries.hash(next);
                let new = self.append(entries, hash, next);
                if let Some(old) = entries.link(next) {
                    *old = new;
                }
                next = link.after();
            }
        }
    }
}
