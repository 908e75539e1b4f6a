//! The table in an endpoint's file of the regions that its peers may work on by themselves: its owner's side.
//!
//! A region is in a slot: where it lies in this process, and who may do what. A slot's generation is odd while it is
//! there. A peer that works on one marks itself, then looks at the generation, and marks itself again when it is done; the
//! owner changes the generation, and then waits for every peer whose mark it finds set. One of the two must see the
//! other, which takes a barrier between the two steps on both sides, as in `sleep`.
//!
//! What lies behind the memory is for the peer to find out (`reach`), so registering costs a few stores, and closing a
//! region that nobody ever reached so costs one more. Peers that die are known by their locks.

use super::layout::{self, Header, LOCK_RINGS, MAX_SLOTS};
use super::region::Region as Own;
use crate::sys::forks::ParentFd;
use crate::sys::{process_vm, shared};
use crate::util::regions::{Mirror, Region, Rights};
use crate::util::user::UserBuf;
use core::sync::atomic::{Ordering, fence};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// The words of a slot.
const GENERATION: usize = 0;
const KEY: usize = 1;
const BASE: usize = 2;
const ADDR: usize = 3;
const LEN: usize = 4;
const RIGHTS: usize = 5;

/// Slots that get memory at a time: a page.
const STEP: usize = 64;

/// A region as its slot has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub slot: usize,
    pub generation: u64,
    pub key: u64,
    /// What remote addresses count from.
    pub base: u64,
    /// Where it lies in its owner's process.
    pub addr: u64,
    pub len: u64,
    pub rights: Rights,
}

fn rights_word(rights: Rights) -> u64 {
    u64::from(rights.read) | u64::from(rights.write) << 1
}

impl Header {
    #[inline(always)]
    pub fn generation(&self, slot: usize) -> u64 {
        self.slot(slot, GENERATION).load(Ordering::Acquire)
    }

    /// Looks for a region by its key.
    pub fn find_slot(&self, key: u64) -> Option<Shown> {
        let used = self.slots_used();
        let has_key = |slot: &usize| self.slot(*slot, KEY).load(Ordering::Relaxed) == key;
        (0..used).filter(has_key).find_map(|slot| self.read_slot(slot, key))
    }

    fn read_slot(&self, slot: usize, key: u64) -> Option<Shown> {
        let generation = self.generation(slot);
        let get = |word| self.slot(slot, word).load(Ordering::Relaxed);
        let rights = get(RIGHTS);
        let shown = Shown {
            slot,
            generation,
            key: get(KEY),
            base: get(BASE),
            addr: get(ADDR),
            len: get(LEN),
            rights: Rights {
                read: rights & 1 != 0,
                write: rights & 2 != 0,
            },
        };
        // SYNC POINT slot: what was read is of this generation if it still is.
        fence(Ordering::Acquire);
        let still = self.slot(slot, GENERATION).load(Ordering::Relaxed) == generation;
        (still && generation % 2 == 1 && shown.key == key).then_some(shown)
    }

    /// `generation` is what the slot had last.
    fn fill_slot(&self, slot: usize, generation: u64, key: u64, region: &Region, memory: UserBuf) {
        // SYNC POINT slot: who reads a word of this generation finds that the one before is over.
        fence(Ordering::Release);
        let set = |word, value| self.slot(slot, word).store(value, Ordering::Relaxed);
        set(KEY, key);
        set(BASE, region.base);
        set(ADDR, memory.addr() as u64);
        set(LEN, memory.len() as u64);
        set(RIGHTS, rights_word(region.rights));
        // SYNC POINT slot: release.
        self.slot(slot, GENERATION).store(generation + 1, Ordering::Release);
        self.changes().fetch_add(1, Ordering::Release);
    }
}

pub struct Board {
    endpoint: u64,
    inner: Mutex<Option<Inner>>,
}

struct Inner {
    header: Header,
    file: Arc<ParentFd>,
    slots: HashMap<u64, Place>,
    /// Slots that were used, and may be again.
    free: Vec<Place>,
    fresh: usize,
}

/// A slot and its generation. What is in the file may be anybody's.
#[derive(Clone, Copy, Debug)]
struct Place {
    slot: usize,
    generation: u64,
}

impl Board {
    /// Of the endpoint that regions know by this number.
    pub fn new(own: &Own, endpoint: u64) -> io::Result<Board> {
        let file = own.hold_file();
        let inner = Inner {
            header: Header::map(file.as_fd())?,
            file,
            slots: HashMap::new(),
            free: Vec::new(),
            fresh: 0,
        };
        Ok(Board {
            endpoint,
            inner: Mutex::new(Some(inner)),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Option<Inner>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is shown any more, and nobody works on what was.
    pub fn close(&self) {
        // Locked to the end: whoever closes a region meanwhile must not find it hidden before its users are gone.
        let mut guard = self.inner();
        if let Some(inner) = guard.as_mut().filter(|inner| inner.file.is_ours()) {
            let keys: Vec<u64> = inner.slots.keys().copied().collect();
            keys.iter().for_each(|key| inner.hide(*key));
            inner.settle();
        }
        *guard = None;
    }

    /// Does something if the endpoint is open and this is its process.
    fn with(&self, work: impl FnOnce(&mut Inner)) {
        if let Some(inner) = self.inner().as_mut().filter(|inner| inner.file.is_ours()) {
            work(inner);
        }
    }
}

impl Mirror for Board {
    fn show(&self, key: u64, region: &Region) {
        self.with(|inner| {
            inner.hide(key);
            if let Some(memory) = region.shown_at(self.endpoint) {
                inner.show(key, region, memory);
            }
        });
    }

    fn hide(&self, key: u64) {
        self.with(|inner| inner.hide(key));
    }

    fn settle(&self) {
        self.with(|inner| inner.settle());
    }
}

/// Looks at a mark before the processor is given away.
const SPINS: u32 = 1000;
const NAP: Duration = Duration::from_micros(100);
/// How often it is asked whether the peer lives still.
const ASK_EVERY: Duration = Duration::from_millis(10);

impl Inner {
    fn show(&mut self, key: u64, region: &Region, memory: UserBuf) {
        let Some(place) = self.free.pop().or_else(|| self.fresh_slot()) else {
            return; // the table is full, or the file system: peers ask
        };
        self.header.fill_slot(place.slot, place.generation, key, region, memory);
        let generation = place.generation + 1;
        self.slots.insert(key, Place { generation, ..place });
    }

    fn fresh_slot(&mut self) -> Option<Place> {
        let slot = self.fresh;
        if slot >= MAX_SLOTS {
            return None;
        }
        if slot % STEP == 0 {
            layout::allocate_slots(self.file.as_fd(), slot + STEP).ok()?;
            (slot..slot + STEP).for_each(|slot| self.header.slot(slot, GENERATION).store(0, Ordering::Relaxed));
            self.header.set_slots_used(slot + STEP);
        }
        self.fresh += 1;
        Some(Place { slot, generation: 0 })
    }

    fn hide(&mut self, key: u64) {
        let Some(place) = self.slots.remove(&key) else { return };
        let generation = place.generation + 1;
        // SYNC POINT reach: before the marks are looked at.
        self.header
            .slot(place.slot, GENERATION)
            .store(generation, Ordering::Relaxed);
        self.free.push(Place { generation, ..place });
    }

    fn settle(&self) {
        // SYNC POINT reach: either we find a peer's mark, or it finds what was hidden.
        fence(Ordering::SeqCst);
        if self.header.reached().load(Ordering::Relaxed) == 0 {
            return;
        }
        process_vm::barrier_everywhere();
        for ring in 0..self.header.used() {
            let mark = self
                .header
                .claim(ring)
                .map(|_| self.header.mark(ring).load(Ordering::Acquire));
            if let Some(mark) = mark.filter(|mark| mark % 2 == 1) {
                self.wait_for(ring, mark);
            }
        }
    }

    /// Waits for as long as a peer lives that is at our memory: what it does there cannot be stopped.
    #[cold]
    fn wait_for(&self, ring: usize, mark: u64) {
        let is_there = || self.header.mark(ring).load(Ordering::Acquire) == mark;
        let mut asked = Instant::now();
        for spin in 0u32.. {
            if !is_there() {
                return;
            }
            if spin < SPINS {
                core::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            if asked.elapsed() > ASK_EVERY {
                let lives = shared::is_locked(self.file.as_fd(), LOCK_RINGS + ring as i64).unwrap_or(true);
                if !lives || self.header.claim(ring).is_none() {
                    return;
                }
                asked = Instant::now();
            }
        }
    }
}
