//! Chains: entries of a slab in the order they came, in as many chains as keep each short, found by hash.
//!
//! The links are in the entries, so putting one in, finding it and taking it out touch it and its neighbours and no
//! other memory. Entries of one key are in one chain, oldest first. Used by `matching`.

use crate::util::slab::{NOWHERE, Slab};

/// Where an entry stands in one chain: between which places of the slab. What is in a chain is in the slab, so a place
/// says who it is.
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

/// An entry that can stand in chains. `Chains<N>` uses link N.
pub(super) trait Linked {
    fn links(&mut self) -> &mut [Link];
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

/// Chains there are at first, and entries per chain from which on there are twice as many.
const FEW: usize = 16;
const CROWD: usize = 2;
/// More chains than this are not kept for entries that may come again.
const MANY: usize = 1024;

#[derive(Debug)]
pub(super) struct Chains<const N: usize> {
    /// None yet, or a power of two.
    chains: Vec<Ends>,
    len: usize,
    grows: bool,
}

impl<const N: usize> Default for Chains<N> {
    fn default() -> Self {
        Chains {
            chains: Vec::new(),
            len: 0,
            grows: true,
        }
    }
}

impl<const N: usize> Chains<N> {
    /// A single chain, whatever the hash.
    pub fn only_one() -> Chains<N> {
        Chains {
            chains: vec![EMPTY],
            len: 0,
            grows: false,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.chains.len()
    }

    /// Lets the chain end with the entry that is about to be put into this place of the slab. Says what its link is.
    #[inline(always)]
    pub fn push<E: Linked>(&mut self, slab: &mut Slab<E>, hash: u32, place: u32) -> Link {
        if self.len >= CROWD * self.chains.len() && self.grows {
            self.grow(slab);
        }
        self.len += 1;
        self.append(slab, hash, place)
    }

    #[inline]
    fn append<E: Linked>(&mut self, slab: &mut Slab<E>, hash: u32, place: u32) -> Link {
        let at = self.chain_of(hash);
        let Some(ends) = self.chains.get_mut(at) else {
            return Link::default();
        };
        let before = std::mem::replace(&mut ends.last, place);
        match link_at(slab, before, N) {
            Some(last) => last.after = place,
            None => ends.first = place,
        }
        Link {
            hash,
            before,
            after: NOWHERE,
        }
    }

    /// The place of the oldest entry of a chain that fits. `link` gives an entry's link N.
    #[inline]
    pub fn find<'s, E>(
        &self,
        slab: &'s Slab<E>,
        hash: u32,
        link: impl Fn(&E) -> Link,
        fits: impl Fn(&E) -> bool,
    ) -> Option<(u32, &'s E)> {
        let mut next = self.chains.get(self.chain_of(hash))?.first;
        loop {
            let entry = slab.at(next)?;
            if fits(entry) {
                return Some((next, entry));
            }
            next = link(entry).after;
        }
    }

    /// Takes out the entry that has this link, which is one of these chains.
    #[inline]
    pub fn unlink<E: Linked>(&mut self, slab: &mut Slab<E>, link: Link) {
        let Link { hash, before, after } = link;
        let at = self.chain_of(hash);
        let Some(ends) = self.chains.get_mut(at) else { return };
        match link_at(slab, before, N) {
            Some(link) => link.after = after,
            None => ends.first = after,
        }
        match link_at(slab, after, N) {
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

    /// Twice as many chains. Each is split in two, so the order within them stays.
    #[cold]
    fn grow<E: Linked>(&mut self, slab: &mut Slab<E>) {
        let wide = (2 * self.chains.len()).max(FEW);
        let old = std::mem::replace(&mut self.chains, vec![EMPTY; wide]);
        for ends in old {
            let mut next = ends.first;
            while let Some(link) = link_at(slab, next, N).copied() {
                let new = self.append(slab, link.hash, next);
                if let Some(old) = link_at(slab, next, N) {
                    *old = new;
                }
                next = link.after;
            }
        }
    }
}

#[inline]
fn link_at<E: Linked>(slab: &mut Slab<E>, place: u32, which: usize) -> Option<&mut Link> {
    slab.at_mut(place)?.links().get_mut(which)
}
