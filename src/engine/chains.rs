//! Chains: entries of a slab in the order they came, in as many chains as keep each short, found by hash.
//!
//! The links are in the entries, so putting one in, finding it and taking it out touch it and its neighbours and no
//! other memory. Entries of one key are in one chain, oldest first. Used by `matching`.

use crate::util::slab::{Id, Slab};

/// Where an entry stands in one chain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    hash: u32,
    before: Option<Id>,
    after: Option<Id>,
}

/// An entry that can stand in chains. `Chains<N>` uses link N.
pub(super) trait Linked {
    fn links(&mut self) -> &mut [Link];
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    first: Option<Id>,
    last: Option<Id>,
}

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
            chains: vec![Ends::default()],
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

    /// Puts an entry, which is in the slab already, at the end of its chain.
    #[inline(always)]
    pub fn push<E: Linked>(&mut self, slab: &mut Slab<E>, hash: u32, id: Id) {
        if self.len >= CROWD * self.chains.len() && self.grows {
            self.grow(slab);
        }
        self.len += 1;
        self.append(slab, hash, id);
    }

    #[inline]
    fn append<E: Linked>(&mut self, slab: &mut Slab<E>, hash: u32, id: Id) {
        let at = hash as usize & self.chains.len().wrapping_sub(1);
        let Some(ends) = self.chains.get_mut(at) else { return };
        let before = ends.last.replace(id);
        match before {
            Some(last) => set(slab, last, |link: &mut Link| link.after = Some(id), N),
            None => ends.first = Some(id),
        }
        let fresh = Link {
            hash,
            before,
            after: None,
        };
        set(slab, id, |link| *link = fresh, N);
    }

    /// The oldest entry of a chain that fits. `link` gives an entry's link N.
    #[inline]
    pub fn find<'s, E>(
        &self,
        slab: &'s Slab<E>,
        hash: u32,
        link: impl Fn(&E) -> Link,
        fits: impl Fn(&E) -> bool,
    ) -> Option<(Id, &'s E)> {
        let at = hash as usize & self.chains.len().wrapping_sub(1);
        let mut next = self.chains.get(at)?.first;
        while let Some(id) = next {
            let entry = slab.get(id)?;
            if fits(entry) {
                return Some((id, entry));
            }
            next = link(entry).after;
        }
        None
    }

    /// Takes out the entry that has this link, which is one of these chains.
    #[inline]
    pub fn unlink<E: Linked>(&mut self, slab: &mut Slab<E>, link: Link) {
        let Link { hash, before, after } = link;
        let at = hash as usize & self.chains.len().wrapping_sub(1);
        let Some(ends) = self.chains.get_mut(at) else { return };
        match before {
            Some(before) => set(slab, before, |link| link.after = after, N),
            None => ends.first = after,
        }
        match after {
            Some(after) => set(slab, after, |link| link.before = before, N),
            None => ends.last = before,
        }
        self.len -= 1;
        if self.len == 0 && self.chains.len() > MANY {
            self.chains = Vec::new();
        }
    }

    /// Twice as many chains. Each is split in two, so the order within them stays.
    #[cold]
    fn grow<E: Linked>(&mut self, slab: &mut Slab<E>) {
        let wide = (2 * self.chains.len()).max(FEW);
        let old = std::mem::replace(&mut self.chains, vec![Ends::default(); wide]);
        for ends in old {
            let mut next = ends.first;
            while let Some(id) = next {
                let Some(link) = slab.get_mut(id).and_then(|entry| entry.links().get(N).copied()) else {
                    break;
                };
                next = link.after;
                self.append(slab, link.hash, id);
            }
        }
    }
}

#[inline]
fn set<E: Linked>(slab: &mut Slab<E>, id: Id, change: impl FnOnce(&mut Link), which: usize) {
    if let Some(link) = slab.get_mut(id).and_then(|entry| entry.links().get_mut(which)) {
        change(link);
    }
}
