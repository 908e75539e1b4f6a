//! The registered memory of a domain: its regions, and the endpoints and counters that have to do with them.
//!
//! Endpoints are known here from fi_enable to the end of fi_close: closing a region waits until each of them has left
//! its current call, and a counter that is bound to a region drives them all, since peers may access the region through
//! any of them. Called by `mr`, `deferred` and `endpoint`.

use crate::abi::types::*;
use crate::api::cntr::Cntr;
use crate::api::errno::{Errno, Result};
use crate::api::progress::Progress;
use crate::engine::op::Access;
use crate::util::mutex::{Mutex, lock};
use crate::util::regions::{Busy, Region, Regions, Rights};
use crate::util::user::UserIov;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

/// The bits of domain_attr.mr_mode that make a difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// FI_MR_VIRT_ADDR: remote addresses are virtual addresses, not offsets.
    virtual_addresses: bool,
    /// FI_MR_PROV_KEY
    own_keys: bool,
    pub raw: bool,
    /// FI_MR_ENDPOINT: a region is one endpoint's.
    pub by_endpoint: bool,
    /// FI_MR_RMA_EVENT: regions with counters wait for fi_mr_enable.
    pub by_event: bool,
}

impl Mode {
    /// FI_MR_BASIC and FI_MR_SCALABLE are old names for sets of bits, the second for none.
    pub fn of(mr_mode: i32) -> Mode {
        let has = |bit| mr_mode & bit != 0;
        Mode {
            virtual_addresses: has(FI_MR_VIRT_ADDR | FI_MR_BASIC),
            own_keys: has(FI_MR_PROV_KEY | FI_MR_BASIC),
            raw: has(FI_MR_RAW),
            by_endpoint: has(FI_MR_ENDPOINT),
            by_event: has(FI_MR_RMA_EVENT),
        }
    }

    pub fn region(&self, memory: UserIov, access: u64, flags: u64) -> Region {
        let waits = self.by_endpoint || self.by_event && flags & FI_RMA_EVENT != 0;
        Region {
            memory: memory.joined(),
            rights: Rights {
                read: access & FI_REMOTE_READ != 0,
                write: access & FI_REMOTE_WRITE != 0,
            },
            base: if self.virtual_addresses {
                memory.address(0) as u64
            } else {
                0
            },
            enabled: !waits,
            endpoint: None,
            counted: flags & FI_MR_SINGLE_USE != 0,
        }
    }
}

/// What is to happen when peers access a region.
#[derive(Default)]
struct Counted {
    /// Its counters, and which accesses each counts.
    counters: Vec<(Arc<Cntr>, Rights)>,
    /// FI_MR_SINGLE_USE: the first use is the last.
    once: bool,
}

#[derive(Default)]
struct DrivenByRegions {
    endpoints: Vec<Arc<dyn Progress>>,
    /// Endpoints that are being closed: counters drive them no more.
    ending: Vec<Arc<dyn Progress>>,
    /// Counters of regions and deferred work, each as often as it is named.
    counters: Vec<Arc<Cntr>>,
}

pub struct Memory {
    pub regions: Arc<Regions>,
    pub mode: Mode,
    /// The greatest key that fits domain_attr.mr_key_size.
    greatest_key: u64,
    endpoints_made: AtomicU64,
    driven: Mutex<DrivenByRegions>,
    /// How many regions are counted; mostly none, so completions at the target need not look.
    counted_regions: AtomicUsize,
    counted: Mutex<HashMap<u64, Counted>>,
}

impl Memory {
    /// `locked`: several threads may call into different objects at once.
    pub fn new(mr_mode: i32, key_size: usize, locked: bool) -> Memory {
        let mode = Mode::of(mr_mode);
        let greatest_key = match key_size {
            0 | 8.. => FI_KEY_NOTAVAIL - 1,
            bytes => (1 << (8 * bytes)) - 1,
        };
        Memory {
            regions: Arc::new(Regions::new(mode.own_keys, locked)),
            mode,
            greatest_key,
            endpoints_made: AtomicU64::new(0),
            driven: Mutex::default(),
            counted_regions: AtomicUsize::new(0),
            counted: Mutex::default(),
        }
    }

    /// A new number for an endpoint, by which regions know it. Never 0.
    pub fn number(&self) -> u64 {
        self.endpoints_made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a region and returns its key: the provider's, if it chose one. -FI_ENOKEY: the key that the program chose
    /// is taken.
    pub fn add(&self, region: Region, wanted: u64, own: Option<u64>) -> Result<u64> {
        if let Some(key) = own {
            return self.regions.add_as(region, key).ok_or(Errno(FI_ENOKEY as i32));
        }
        if !self.mode.own_keys && wanted > self.greatest_key {
            return Err(Errno(FI_EKEYREJECTED));
        }
        self.regions.add(region, wanted).ok_or(Errno(FI_ENOKEY as i32))
    }

    /// Removes a region: after success nothing touches its memory. -FI_EBUSY while a peer does that cannot be waited
    /// for.
    pub fn remove(&self, key: u64) -> Result<()> {
        let settle = || {
            let driven = lock(&self.driven);
            let endpoints: Vec<_> = driven.endpoints.iter().chain(&driven.ending).cloned().collect();
            drop(driven);
            // A thread that looked the region up before is inside a call of an endpoint, so waits for all calls.
            endpoints.iter().for_each(|endpoint| endpoint.settle());
            if lock(&self.counted).remove(&key).is_some() {
                self.counted_regions.fetch_sub(1, Ordering::Relaxed);
            }
        };
        self.regions.remove_settled(key, settle).map_err(|Busy| Errno(FI_EBUSY))
    }

    /// fi_enable of an endpoint.
    pub fn join(&self, endpoint: &Arc<dyn Progress>) {
        let mut driven = lock(&self.driven);
        driven.counters.iter().for_each(|cntr| cntr.attach(endpoint.clone()));
        driven.endpoints.push(endpoint.clone());
    }

    /// fi_close of an endpoint that may have been enabled. `end` waits for those who are in a call of it: until then
    /// they may be working on a region.
    pub fn leave(&self, endpoint: &Arc<dyn Progress>, end: impl FnOnce()) {
        let take = |from: &mut Vec<Arc<dyn Progress>>| {
            let same = |other: &Arc<dyn Progress>| core::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(endpoint));
            Some(from.swap_remove(from.iter().position(same)?))
        };
        let mut driven = lock(&self.driven);
        if let Some(known) = take(&mut driven.endpoints) {
            driven.ending.push(known);
            for cntr in &driven.counters {
                let _ = cntr.detach(endpoint);
            }
        }
        drop(driven);
        end();
        take(&mut lock(&self.driven).ending);
    }

    /// How many endpoints closing a region waits for.
    #[cfg(test)]
    pub fn waited_for(&self) -> usize {
        let driven = lock(&self.driven);
        driven.endpoints.len() + driven.ending.len()
    }

    fn count_with(&self, key: u64, change: impl FnOnce(&mut Counted)) {
        let mut counted = lock(&self.counted);
        if !counted.contains_key(&key) {
            self.counted_regions.fetch_add(1, Ordering::Relaxed);
        }
        change(counted.entry(key).or_default());
        self.regions.change(key, |region| region.counted = true);
    }

    /// FI_MR_SINGLE_USE.
    pub fn end_with_first_use(&self, key: u64) {
        self.count_with(key, |region| region.once = true);
    }

    /// Has the counter count what peers do with the region, and reading it drive all endpoints.
    pub fn count_accesses(&self, key: u64, cntr: &Arc<Cntr>, events: Rights) {
        self.count_with(key, |region| region.counters.push((cntr.clone(), events)));
        self.drive(cntr);
    }

    /// Has reading the counter drive all endpoints.
    pub fn drive(&self, cntr: &Arc<Cntr>) {
        let mut driven = lock(&self.driven);
        driven
            .endpoints
            .iter()
            .for_each(|endpoint| cntr.attach(endpoint.clone()));
        driven.counters.push(cntr.clone());
    }

    /// Takes one `drive` back.
    pub fn release(&self, cntr: &Arc<Cntr>) {
        let mut driven = lock(&self.driven);
        let Some(at) = driven.counters.iter().position(|other| Arc::ptr_eq(other, cntr)) else {
            return;
        };
        driven.counters.swap_remove(at);
        for endpoint in &driven.endpoints {
            let _ = cntr.detach(endpoint);
        }
    }

    /// A peer's operation on a region is complete: counts it.
    pub fn touched(&self, key: u64, access: Access, atomic: bool, len: usize) {
        if self.counted_regions.load(Ordering::Relaxed) == 0 {
            return;
        }
        let counted = lock(&self.counted);
        let Some(region) = counted.get(&key) else { return };
        for (cntr, events) in &region.counters {
            // Atomics count as writes, also those that fetch.
            let write = access == Access::Write || atomic;
            if events.write && write || events.read && access == Access::Read {
                cntr.complete(len);
            }
        }
        if region.once {
            // The key stays in use until the region is closed.
            self.regions.change(key, |region| region.enabled = false);
        }
    }
}
