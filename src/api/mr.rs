//! Registered memory: regions and their keys.
//!
//! Local memory needs no registration with any transport of ours, so a region is a record for remote access: where,
//! how much, what is allowed. Keys that the library chooses are unpredictable. Called by `abi::object`.

use super::errno::{Errno, Result};
use crate::abi::types::*;
use crate::util::user::UserBuf;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub parts: Vec<UserBuf>,
    pub access: u64,
    /// What remote addresses count from: 0, or the first byte's own address with FI_MR_VIRT_ADDR.
    pub base: u64,
}

/// The regions of one domain.
pub struct Regions {
    /// FI_MR_PROV_KEY, or the old FI_MR_BASIC: the library chooses the keys.
    own_keys: bool,
    table: Mutex<Table>,
}

struct Table {
    regions: HashMap<u64, Region>,
    made: u64,
}

impl Regions {
    pub fn new(mr_mode: i32) -> Regions {
        let table = Table {
            regions: HashMap::new(),
            made: 0,
        };
        Regions {
            own_keys: mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC) != 0,
            table: Mutex::new(table),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a region in and says its key. A key that the application chose and that is taken is -FI_ENOKEY.
    pub fn add(&self, region: Region, wanted: u64) -> Result<u64> {
        let mut table = self.table();
        let key = if self.own_keys { table.fresh_key() } else { wanted };
        match table.regions.entry(key) {
            Entry::Occupied(_) => Err(Errno(FI_ENOKEY as i32)),
            Entry::Vacant(place) => {
                place.insert(region);
                Ok(key)
            }
        }
    }

    pub fn remove(&self, key: u64) {
        self.table().regions.remove(&key);
    }

    pub fn get(&self, key: u64) -> Option<Region> {
        self.table().regions.get(&key).cloned()
    }
}

impl Table {
    /// A key nobody can guess: std's hasher has secret keys of its own.
    fn fresh_key(&mut self) -> u64 {
        loop {
            self.made = self.made.wrapping_add(1);
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(self.made);
            let key = hasher.finish();
            if key != FI_KEY_NOTAVAIL && !self.regions.contains_key(&key) {
                return key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(access: u64) -> Region {
        Region {
            parts: Vec::new(),
            access,
            base: 0,
        }
    }

    #[test]
    fn an_applications_key_is_its_own_until_closed() {
        let regions = Regions::new(0);
        assert_eq!(regions.add(region(1), 7), Ok(7));
        assert_eq!(regions.add(region(2), 7), Err(Errno(FI_ENOKEY as i32)));
        assert_eq!(regions.get(7), Some(region(1)));
        regions.remove(7);
        assert_eq!(regions.get(7), None);
        assert_eq!(regions.add(region(2), 7), Ok(7));
    }

    #[test]
    fn keys_of_ours_differ_and_do_not_count_up() {
        let regions = Regions::new(FI_MR_PROV_KEY);
        let keys: Vec<u64> = (0..100).map(|_| regions.add(region(0), 7).unwrap()).collect();
        assert!(keys.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 1));
        assert!(keys.iter().all(|key| regions.get(*key).is_some()));
    }
}
