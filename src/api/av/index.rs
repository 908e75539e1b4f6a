//! From the bytes of an address to its place in the table, by hash. Keeps no bytes itself: it names the places whose
//! bytes have a hash, and the table looks which of them it is (mostly there is one).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

const END: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Index {
    state: RandomState,
    /// The first place of each hash; the others follow in `next`.
    heads: HashMap<u64, u32, BuildHasherDefault<Same>>,
    next: Vec<u32>,
}

impl Index {
    /// The same bytes in another scope are something else.
    pub(super) fn hash(&self, scope: u32, key: &[u8]) -> u64 {
        self.state.hash_one((scope, key))
    }

    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let at = place as usize;
        if self.next.len() <= at {
            self.next.resize(at + 1, END);
        }
        let before = self.heads.insert(hash, place);
        if let Some(next) = self.next.get_mut(at) {
            *next = before.unwrap_or(END);
        }
    }

    /// The places whose bytes have this hash.
    pub(super) fn places(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads.get(&hash).copied();
        core::iter::successors(first, |place| {
            self.next.get(*place as usize).copied().filter(|next| *next != END)
        })
    }

    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let after = self.next.get(place as usize).copied().unwrap_or(END);
        if self.heads.get(&hash) == Some(&place) {
            match after {
                END => self.heads.remove(&hash),
                after => self.heads.insert(hash, after),
            };
            return;
        }
        let before = self.places(hash).find(|at| self.next.get(*at as usize) == Some(&place));
        if let Some(next) = before.and_then(|at| self.next.get_mut(at as usize)) {
            *next = after;
        }
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.next.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many share a hash, each is found until it is removed.
        #[test]
        fn places_are_found_by_hash(work in prop::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let mut index = Index::default();
            let mut model = std::collections::BTreeSet::new();
            let hash = |place: u32| u64::from(place % 3);
            for (add, place) in work {
                match add {
                    true if model.insert(place) => index.insert(hash(place), place),
                    true => {}
                    false => {
                        model.remove(&place);
                        index.remove(hash(place), place);
                    }
                }
                for class in 0..3 {
                    let mut found: Vec<u32> = index.places(class).collect();
                    found.sort_unstable();
                    let expected: Vec<u32> = model.iter().copied().filter(|place| hash(*place) == class).collect();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn scopes_are_apart() {
        let index = Index::default();
        assert_eq!(index.hash(0, b"a"), index.hash(0, b"a"));
        assert_ne!(index.hash(0, b"a"), index.hash(1, b"a"));
    }
}
