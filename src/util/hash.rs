//! A quick hash for keys that come from one side: numbers of our own, tags and keys that a program chose.
//!
//! Peers may ask for any key, but put none into a table, so nobody can make its chains long. Where they do, the table is
//! `SeededState`. Knows nobody.

use core::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::hash::RandomState;

pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Multiplies and folds.
#[derive(Default)]
pub struct QuickHasher(u64);

impl QuickHasher {
    /// One that has seen something already.
    pub fn new(seen: u64) -> QuickHasher {
        QuickHasher(seen)
    }
}

/// For tables with keys that peers choose: they can't know which of them meet.
#[derive(Clone, Debug)]
pub struct SeededState(u64);

impl SeededState {
    pub fn random() -> SeededState {
        SeededState(RandomState::new().hash_one(()))
    }
}

impl BuildHasher for SeededState {
    type Hasher = QuickHasher;
    fn build_hasher(&self) -> QuickHasher {
        QuickHasher::new(self.0)
    }
}

impl Hasher for QuickHasher {
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
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        self.0 = wide as u64 ^ (wide >> 64) as u64;
    }
}
