//! Memory that peers may reach, by key: the registered regions of a domain, and who may do what in them.
//!
//! A region is a record: local memory needs no registration with any transport of ours. It is looked up for every
//! access and never kept by an engine longer than one call, so once a region is removed and each endpoint of the domain
//! has been between two calls, nobody touches its memory. A transport that fills it over several calls has a `Lease`,
//! and looks in each whether that still holds. One whose peers reach memory by themselves keeps a `Mirror` of the
//! records, and is asked when such peers are done. Filled by `api::mr`, asked by `engine`.

use crate::util::hash::QuickMap;
use crate::util::lock::OptLock;
use crate::util::user::{UserBuf, UserIov};
use core::hash::{BuildHasher, Hasher};
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::hash_map::{Entry, RandomState};
use std::sync::{Arc, Weak};

/// What a peer may do with a region, or wants to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    pub read: bool,
    pub write: bool,
}

impl Rights {
    pub const READ: Rights = Rights {
        read: true,
        write: false,
    };
    pub const WRITE: Rights = Rights {
        read: false,
        write: true,
    };
    pub const BOTH: Rights = Rights {
        read: true,
        write: true,
    };

    #[inline]
    pub fn allow(self, wanted: Rights) -> bool {
        (self.read || !wanted.read) && (self.write || !wanted.write)
    }
}

/// A registered region.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub memory: UserIov,
    pub rights: Rights,
    /// What remote addresses count from: 0, or the first byte's own address with FI_MR_VIRT_ADDR.
    pub base: u64,
    /// FI_MR_ENDPOINT and FI_MR_RMA_EVENT: nothing is reached before fi_mr_enable.
    pub enabled: bool,
    /// FI_MR_ENDPOINT: reached through this endpoint only. Numbers of the domain's choosing.
    pub endpoint: Option<u64>,
    /// Somebody counts the accesses: the engine reports each with the key (`op::CompletedOp::Target`).
    pub counted: bool,
}

impl Region {
    /// The memory, if a peer may work on it through this endpoint without anybody here being told.
    pub fn shown_at(&self, endpoint: u64) -> Option<UserBuf> {
        let here = self.endpoint.is_none_or(|only| only == endpoint);
        match self.memory.parts() {
            [part] if self.enabled && !self.counted && here => Some(*part),
            _ => None,
        }
    }
}

/// A transport's table of the regions that peers of one endpoint reach without asking this process.
pub trait Mirror: Send + Sync {
    /// There is such a region, or it has changed.
    fn show(&self, key: u64, region: &Region);
    /// There is none with this key, until it is shown again.
    fn hide(&self, key: u64);
    /// Waits until no peer works on this region, which was hidden before. False: a peer did not leave in time. Called
    /// without a lock.
    fn settle(&self, key: u64) -> bool;
    /// A region, shown or not, is closed, and its memory goes back to the program when this returns: what a peer has leave
    /// to read is not what it was any more.
    fn closed(&self) {}
    /// It shows nothing any more, and no peer works on a region that it showed.
    fn is_over(&self) -> bool;
}

/// A peer that cannot be told to stop still works on the region's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No such key, or not enabled, or another endpoint's.
    Key,
    /// The region was not registered for this.
    Rights,
    /// Outside the region.
    Range,
}

/// Memory that may be accessed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub memory: UserIov,
    pub counted: bool,
}

/// Leave to touch part of a region in several calls of an engine, until the region is closed or disabled.
///
/// It is a word that closing writes, and no lock: whoever closes a region then waits until each endpoint of the domain
/// has been between two calls, so a section that saw the lease hold is over, as it lies within one call.
#[derive(Clone, Debug)]
pub struct Lease {
    memory: UserIov,
    holds: Arc<AtomicBool>,
}

impl Lease {
    /// The length of the part.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Calls `section` with the memory, which must not be used after it returns. None: the region is closed. To be
    /// called within a call of the engine.
    #[inline]
    pub fn with<R>(&self, section: impl FnOnce(&UserIov) -> R) -> Option<R> {
        // Whoever closes the region takes the lock of this endpoint after it has written the word. So relaxed is
        // enough: the word is read before that, and waited for, or after it, and false.
        self.holds.load(Ordering::Relaxed).then(|| section(&self.memory))
    }

    /// Copies in from byte `at` on. False: the region is closed, and nothing was copied.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        self.with(|memory| memory.write(at, bytes)).is_some()
    }
}

/// The regions of one domain.
pub struct Regions {
    /// FI_MR_PROV_KEY, or the old FI_MR_BASIC: the library chooses the keys.
    own_keys: bool,
    table: OptLock<Table>,
}

struct Table {
    regions: QuickMap<u64, Region>,
    /// What the leases of a region share, made with the first of them.
    leases: QuickMap<u64, Arc<AtomicBool>>,
    /// Keys of regions that are being closed: no mirror shows them, and no other region gets them.
    closing: Vec<u64>,
    mirrors: Vec<Weak<dyn Mirror>>,
    /// Mirrors of closed endpoints, kept as long as peers may work on regions that they showed.
    left: Vec<Arc<dyn Mirror>>,
    secret: RandomState,
    made: u64,
}

impl Regions {
    /// `locked`: calls may come from several threads at once.
    pub fn new(own_keys: bool, locked: bool) -> Regions {
        let table = Table {
            regions: QuickMap::default(),
            leases: QuickMap::default(),
            closing: Vec::new(),
            mirrors: Vec::new(),
            left: Vec::new(),
            secret: RandomState::new(),
            made: 0,
        };
        Regions {
            own_keys,
            table: OptLock::new(table, locked),
        }
    }

    /// Adds a region and returns its key. None: the key that the application chose is in use.
    pub fn add(&self, region: Region, wanted: u64) -> Option<u64> {
        let key = if self.own_keys {
            self.table.lock().fresh_key()
        } else {
            wanted
        };
        self.add_as(region, key)
    }

    /// Adds a region under a key that somebody else chose. None: it is in use.
    pub fn add_as(&self, region: Region, key: u64) -> Option<u64> {
        let mut table = self.table.lock();
        let table = &mut *table;
        match table.regions.entry(key) {
            Entry::Vacant(place) if !table.closing.contains(&key) => {
                place.insert(region);
                table.show(key);
                Some(key)
            }
            _ => None,
        }
    }

    /// Changes a region; false: there is none with this key.
    pub fn change(&self, key: u64, change: impl FnOnce(&mut Region)) -> bool {
        let mut table = self.table.lock();
        let Some(region) = table.regions.get_mut(&key) else {
            return false;
        };
        change(region);
        if !region.enabled {
            table.revoke(key);
        }
        table.show(key);
        true
    }

    /// Removes a region. Ok: no peer works on its memory any more. Err: a peer was stopped in the middle of an
    /// operation and may go on with it, so the region stays as it was. Peers are waited for without a lock.
    /// `settle`: waits for who has found the region before, and forgets what belongs to its key, which then is free.
    pub fn remove_settled(&self, key: u64, settle: impl FnOnce()) -> Result<(), Busy> {
        let mut table = self.table.lock();
        let mirrors = table.all_mirrors();
        table.closing.push(key);
        mirrors.iter().for_each(|mirror| mirror.hide(key));
        drop(table);
        let settled = mirrors.iter().all(|mirror| mirror.settle(key));
        if settled {
            let mut table = self.table.lock();
            table.regions.remove(&key);
            table.revoke(key);
            table.left.retain(|mirror| !mirror.is_over());
            drop(table);
            settle();
            mirrors.iter().for_each(|mirror| mirror.closed());
        }
        let mut table = self.table.lock();
        table.closing.retain(|other| *other != key);
        table.show(key);
        if settled { Ok(()) } else { Err(Busy) }
    }

    #[cfg(test)]
    pub fn remove(&self, key: u64) -> Result<(), Busy> {
        self.remove_settled(key, || ())
    }

    /// From now on the mirror shows the regions of this table, until it is dropped.
    pub fn reflect(&self, mirror: &Arc<impl Mirror + 'static>) {
        let mut table = self.table.lock();
        let open = table.regions.iter().filter(|(key, _)| !table.closing.contains(key));
        open.for_each(|(key, region)| mirror.show(*key, region));
        table.mirrors.retain(|other| other.strong_count() > 0);
        table.mirrors.push(Arc::downgrade(mirror) as Weak<dyn Mirror>);
    }

    /// The mirror shows nothing any more, but peers may still work on regions that it showed: closing those waits for
    /// it.
    pub fn leave(&self, mirror: Arc<impl Mirror + 'static>) {
        let mut table = self.table.lock();
        table.left.retain(|mirror| !mirror.is_over());
        if !mirror.is_over() {
            table.left.push(mirror);
        }
    }

    /// The memory of `len` bytes at remote address `addr`, if a peer may do that through this endpoint.
    #[inline]
    pub fn find(&self, endpoint: u64, key: u64, addr: u64, len: usize, wanted: Rights) -> Result<Found, Denied> {
        let table = self.table.lock();
        let (region, at) = table.find(endpoint, key, addr, len, wanted)?;
        let memory = match region.memory.only() {
            Some(only) => UserIov::one(only.part(at, len)),
            None => region.memory.part(at, len),
        };
        Ok(Found {
            memory,
            counted: region.counted,
        })
    }

    /// As `find`, for a region in one piece, as nearly all are. Also returns whether it is counted.
    #[inline]
    pub fn find_one(&self, endpoint: u64, key: u64, addr: u64, len: usize, wanted: Rights) -> Option<(UserBuf, bool)> {
        let table = self.table.lock();
        let (region, at) = table.find(endpoint, key, addr, len, wanted).ok()?;
        Some((region.memory.only()?.part(at, len), region.counted))
    }

    /// As `find`, for longer than one call of the engine. Also returns whether the region is counted.
    pub fn lease(
        &self,
        endpoint: u64,
        key: u64,
        addr: u64,
        len: usize,
        wanted: Rights,
    ) -> Result<(Lease, bool), Denied> {
        let mut table = self.table.lock();
        let (region, at) = table.find(endpoint, key, addr, len, wanted)?;
        let (memory, counted) = (region.memory.part(at, len), region.counted);
        let holds = table
            .leases
            .entry(key)
            .or_insert_with(|| Arc::new(AtomicBool::new(true)));
        let holds = holds.clone();
        Ok((Lease { memory, holds }, counted))
    }
}

impl Table {
    /// The leases of a region hold no longer.
    fn revoke(&mut self, key: u64) {
        if let Some(holds) = self.leases.remove(&key) {
            holds.store(false, Ordering::Relaxed);
        }
    }

    fn all_mirrors(&self) -> Vec<Arc<dyn Mirror>> {
        let living = self.mirrors.iter().filter_map(Weak::upgrade);
        living.chain(self.left.iter().cloned()).collect()
    }

    /// Tells the mirrors of a region that is new or has changed, unless it is being closed.
    fn show(&self, key: u64) {
        let Some(region) = self.regions.get(&key).filter(|_| !self.closing.contains(&key)) else {
            return;
        };
        let living = self.mirrors.iter().filter_map(Weak::upgrade);
        living.for_each(|mirror| mirror.show(key, region));
    }

    /// The region, and the offset in it at which the bytes begin.
    #[inline]
    fn find(&self, endpoint: u64, key: u64, addr: u64, len: usize, wanted: Rights) -> Result<(&Region, usize), Denied> {
        let region = self.regions.get(&key).ok_or(Denied::Key)?;
        if !region.enabled || region.endpoint.is_some_and(|only| only != endpoint) {
            return Err(Denied::Key);
        }
        if !region.rights.allow(wanted) {
            return Err(Denied::Rights);
        }
        let at = addr.checked_sub(region.base).ok_or(Denied::Range)?;
        let at = usize::try_from(at).map_err(|_| Denied::Range)?;
        let size = region.memory.len();
        if at > size || len > size - at {
            return Err(Denied::Range);
        }
        Ok((region, at))
    }

    /// A key that nobody can guess: the hasher has secret keys of its own.
    fn fresh_key(&mut self) -> u64 {
        loop {
            self.made = self.made.wrapping_add(1);
            let mut hasher = self.secret.build_hasher();
            hasher.write_u64(self.made);
            let key = hasher.finish();
            if key != u64::MAX && !self.regions.contains_key(&key) {
                return key;
            }
        }
    }
}

impl core::fmt::Debug for Regions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Regions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
