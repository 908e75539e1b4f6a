//! A quick hash for keys that are numbers: ids of our own, tags and keys that a program or a peer chose.
//!
//! A multiplication to 128 bits whose halves are folded together. Each table has a random seed, which goes through the
//! multiplication: so nobody can say without it which keys meet in one bucket, and peers, who number their own
//! messages, cannot make a table slow. Used by `regions`, `engine` and `transport`.

use core::hash::{BuildHasher, Hasher};
use std::collections::HashMap;
use std::hash::RandomState;

pub type QuickMap<K, V> = HashMap<K, V, SeededState>;

pub struct QuickHasher(u64);

impl QuickHasher {
    /// A hasher that starts from a seed, or from a word that it has hashed already.
    pub fn new(seen: u64) -> QuickHasher {
        QuickHasher(seen)
    }
}

/// Makes hashers with one random seed per table.
#[derive(Clone, Debug)]
pub struct SeededState(u64);

impl SeededState {
    pub fn random() -> SeededState {
        SeededState(RandomState::new().hash_one(()))
    }
}

impl Default for SeededState {
    fn default() -> SeededState {
        SeededState::random()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever knows one table's seed and finds keys that meet there cannot use them against another table.
    #[test]
    fn keys_that_meet_under_one_seed_do_not_under_another() {
        const KEYS: u64 = 1 << 10;
        let first = SeededState::random();
        let meet: Vec<u64> = (0..KEYS * KEYS).filter(|key| first.hash_one(key) % KEYS == 0).collect();
        let other = SeededState::random();
        let still = meet.iter().filter(|key| other.hash_one(key) % KEYS == 0).count();
        assert!(
            meet.len() > KEYS as usize / 2 && still < meet.len() / 16,
            "{still} of {}",
            meet.len()
        );
    }
}
