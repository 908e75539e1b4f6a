//! The table of one process: addresses at small numbers, the lowest free one first.
//!
//! `Store` is what the address vector asks of a table; `shared` is the other one. An address that is inserted again
//! keeps its place and is counted, and goes when it was removed as often; the C library does the same.

use super::index::Index;
use super::kind::AddressKind;
use crate::abi::types::{FI_EINVAL, FI_ENOMEM};
use crate::api::errno::{Errno, Result};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What addresses belong to beside their bytes: no authorization key, or one of them.
pub(super) type Scope = u32;

/// The result of inserting an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inserted {
    pub index: u32,
    /// The address was not in the table.
    pub new: bool,
}

pub(super) trait Store: Send {
    /// Called before a series of changes; `end` after it.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn end(&mut self) {}

    fn insert(&mut self, scope: Scope, address: &[u8]) -> Result<Inserted>;

    /// Removes one insertion. True: it was the last, and the address is gone.
    fn remove(&mut self, index: u32) -> Result<bool>;

    fn address(&self, index: u32) -> Option<Cow<'_, [u8]>>;

    fn find(&mut self, scope: Scope, address: &[u8]) -> Option<u32>;

    /// One more than the highest index ever used.
    fn span(&self) -> u32;
}

struct Slot {
    address: Box<[u8]>,
    scope: Scope,
    /// How often it was inserted. 0: free.
    uses: u32,
}

pub(super) struct Table {
    kind: Arc<dyn AddressKind>,
    slots: Vec<Slot>,
    free: BinaryHeap<Reverse<u32>>,
    index: Index,
    /// Slots compared so far, so that a test can tell a search by hash from one by looking at everything.
    #[cfg(test)]
    pub compared: u64,
}

impl Table {
    /// `count`: how many addresses will come, as far as the application knows.
    pub(super) fn new(kind: Arc<dyn AddressKind>, count: usize) -> Table {
        /// More is not believed beforehand.
        const BELIEVED: usize = 1 << 16;
        Table {
            kind,
            slots: Vec::with_capacity(count.min(BELIEVED)),
            free: BinaryHeap::new(),
            index: Index::default(),
            #[cfg(test)]
            compared: 0,
        }
    }

    fn lookup(&mut self, hash: u64, scope: Scope, key: &[u8]) -> Option<u32> {
        #[cfg(test)]
        {
            self.compared += self.index.places(hash).count() as u64;
        }
        self.index.places(hash).find(|place| {
            self.slots
                .get(*place as usize)
                .is_some_and(|slot| slot.scope == scope && self.kind.key(&slot.address) == key)
        })
    }

    fn place(&mut self, slot: Slot) -> Result<u32> {
        if let Some(Reverse(free)) = self.free.pop() {
            if let Some(old) = self.slots.get_mut(free as usize) {
                *old = slot;
            }
            return Ok(free);
        }
        let index = u32::try_from(self.slots.len()).map_err(|_| Errno(FI_ENOMEM))?;
        self.slots.push(slot);
        Ok(index)
    }
}

impl Store for Table {
    fn insert(&mut self, scope: Scope, address: &[u8]) -> Result<Inserted> {
        let kind = self.kind.clone();
        let hash = self.index.hash(scope, kind.key(address));
        if let Some(index) = self.lookup(hash, scope, kind.key(address)) {
            let slot = self.slots.get_mut(index as usize).ok_or(Errno(FI_EINVAL))?;
            slot.uses = slot.uses.checked_add(1).ok_or(Errno(FI_ENOMEM))?;
            return Ok(Inserted { index, new: false });
        }
        let index = self.place(Slot {
            address: address.into(),
            scope,
            uses: 1,
        })?;
        self.index.insert(hash, index);
        Ok(Inserted { index, new: true })
    }

    fn remove(&mut self, index: u32) -> Result<bool> {
        let slot = self.slots.get_mut(index as usize).filter(|slot| slot.uses > 0);
        let slot = slot.ok_or(Errno(FI_EINVAL))?;
        slot.uses -= 1;
        if slot.uses > 0 {
            return Ok(false);
        }
        let address = core::mem::take(&mut slot.address);
        let hash = self.index.hash(slot.scope, self.kind.key(&address));
        self.index.remove(hash, index);
        self.free.push(Reverse(index));
        Ok(true)
    }

    fn address(&self, index: u32) -> Option<Cow<'_, [u8]>> {
        let slot = self.slots.get(index as usize).filter(|slot| slot.uses > 0)?;
        Some(Cow::Borrowed(&slot.address))
    }

    fn find(&mut self, scope: Scope, address: &[u8]) -> Option<u32> {
        let kind = self.kind.clone();
        let key = kind.key(address);
        self.lookup(self.index.hash(scope, key), scope, key)
    }

    fn span(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::string::StringAddr;
    use super::*;

    #[test]
    fn a_million_addresses_cost_one_comparison_each() {
        const MANY: u32 = 1_000_000;
        let name = |number: u32| format!("fi_shm://{number}\0").into_bytes();
        let mut table = Table::new(Arc::new(StringAddr::of("fi_shm")), MANY as usize);
        for number in 0..MANY {
            let inserted = table.insert(0, &name(number));
            assert_eq!(
                inserted,
                Ok(Inserted {
                    index: number,
                    new: true
                })
            );
        }
        // None was there before, so only equal hashes of different names could have been compared.
        assert!(table.compared < 10, "{} comparisons", table.compared);
        let before = table.compared;
        for number in (0..MANY).step_by(10) {
            assert_eq!(table.find(0, &name(number)), Some(number));
            assert_eq!(table.address(number).as_deref(), Some(&name(number)[..]));
        }
        let compared = table.compared - before;
        assert!(compared < u64::from(MANY / 10) + 10, "{compared} comparisons");
        for number in (0..MANY).step_by(1000) {
            assert_eq!(table.remove(number), Ok(true));
        }
        for number in (0..MANY).step_by(1000) {
            let inserted = table.insert(0, &name(MANY + number));
            assert_eq!(
                inserted,
                Ok(Inserted {
                    index: number,
                    new: true
                })
            );
        }
        assert_eq!(table.span(), MANY);
    }
}
