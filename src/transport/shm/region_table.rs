//! The table in an endpoint's file of the regions that its peers may work on by themselves: its owner's side.
//!
//! A region is in an entry: where it lies in this process, and who may do what. An entry's generation is odd while it is
//! there. A peer that works on one marks itself with the entry, then looks at the generation, and marks itself again when
//! it is done; the owner changes the generation, and then waits for every peer whose mark it finds set for that entry. One
//! of the two must see the other, which takes a barrier between the two steps on both sides, as in `attention`.
//!
//! What lies behind the memory is for the peer to find out (`direct_access`), so registering costs a few stores, and closing a
//! region that nobody ever reached so costs one more. Peers that die are known by their locks. A peer that was stopped in
//! the middle cannot be told to leave, so waiting has an end, and the region stays. Nobody waits with a lock, and who is
//! in one region keeps no other from being closed.

use super::endpoint_file::EndpointFile;
use super::layout::{self, Header, LOCK_RINGS, MAX_ENTRIES};
use crate::sys::forks::ParentFd;
use crate::sys::{barrier, shared};
use crate::util::regions::{Mirror, Region, Rights};
use crate::util::user::UserBuf;
use core::sync::atomic::{Ordering, fence};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

// The words of an entry.
const GENERATION: usize = 0;
const KEY: usize = 1;
const BASE: usize = 2;
const ADDR: usize = 3;
const LEN: usize = 4;
const RIGHTS: usize = 5;

// A mark counts by `VISIT`. What is added while its peer works says in which entry.
pub const VISIT: u64 = 1 << 16;
/// In more than one entry.
pub const IN_SEVERAL: u64 = 1;
const _: () = assert!(mark_in_entry(MAX_ENTRIES) < VISIT);

#[inline(always)]
pub const fn mark_in_entry(entry: usize) -> u64 {
    2 * entry as u64 + 3
}

/// Whether a peer with this mark works in an entry; None: in any.
fn is_at(mark: u64, entry: Option<usize>) -> bool {
    let place = mark % VISIT;
    match entry {
        Some(entry) => place == mark_in_entry(entry) || place == IN_SEVERAL,
        None => place % 2 == 1,
    }
}

/// Slots that get memory at a time: a page.
const STEP: usize = 64;

/// A region as its entry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownRegion {
    pub entry: usize,
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
    pub fn generation(&self, entry: usize) -> u64 {
        self.entry_word(entry, GENERATION).load(Ordering::Acquire)
    }

    /// Looks for a region by its key.
    pub fn find_entry(&self, key: u64) -> Option<ShownRegion> {
        let used = self.entries_used();
        let has_key = |entry: &usize| self.entry_word(*entry, KEY).load(Ordering::Relaxed) == key;
        (0..used).filter(has_key).find_map(|entry| self.read_entry(entry, key))
    }

    fn read_entry(&self, entry: usize, key: u64) -> Option<ShownRegion> {
        let generation = self.generation(entry);
        let get = |word| self.entry_word(entry, word).load(Ordering::Relaxed);
        let rights = get(RIGHTS);
        let shown = ShownRegion {
            entry,
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
        // SYNC POINT entry: what was read is of this generation if it still is.
        fence(Ordering::Acquire);
        let still = self.entry_word(entry, GENERATION).load(Ordering::Relaxed) == generation;
        (still && generation % 2 == 1 && shown.key == key).then_some(shown)
    }

    /// `generation` is what the entry had last.
    fn fill_entry(&self, entry: usize, generation: u64, key: u64, region: &Region, memory: UserBuf) {
        // SYNC POINT entry: who reads a word of this generation finds that the one before is over.
        fence(Ordering::Release);
        let set = |word, value| self.entry_word(entry, word).store(value, Ordering::Relaxed);
        set(KEY, key);
        set(BASE, region.base);
        set(ADDR, memory.addr() as u64);
        set(LEN, memory.len() as u64);
        set(RIGHTS, rights_word(region.rights));
        // SYNC POINT entry: release.
        self.entry_word(entry, GENERATION)
            .store(generation + 1, Ordering::Release);
        self.changes().fetch_add(1, Ordering::Release);
    }
}

pub struct RegionTable {
    endpoint: u64,
    /// Where peers mark themselves: looked at without a lock.
    header: Header,
    file: Arc<ParentFd>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// By key, from the first time that a region was shown until it is closed.
    by_key: HashMap<u64, EntryVersion>,
    /// Slots that were used, and may be again.
    free: Vec<EntryVersion>,
    unused_from: usize,
    /// The endpoint is.
    closed: bool,
}

/// An entry and its generation. What is in the file may be anybody's.
#[derive(Clone, Copy, Debug)]
struct EntryVersion {
    entry: usize,
    generation: u64,
}

impl RegionTable {
    /// Of the endpoint that regions know by this number.
    pub fn new(own: &EndpointFile, endpoint: u64) -> io::Result<RegionTable> {
        let file = own.hold_file();
        Ok(RegionTable {
            endpoint,
            header: Header::map(file.as_fd())?,
            file,
            entries: Mutex::default(),
        })
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is shown any more. Peers may still be at regions that were, which are not the endpoint's to give back.
    pub fn close(&self) {
        if !self.file.is_ours() {
            return;
        }
        let mut entries = self.entries();
        entries.closed = true;
        let keys: Vec<u64> = entries.by_key.keys().copied().collect();
        keys.iter().for_each(|key| entries.hide(&self.header, *key));
    }

    /// Waits, but not for ever, until no peer works in this entry, or in any.
    fn is_left(&self, entry: Option<usize>, patience: Duration) -> bool {
        // SYNC POINT reach: either we find a peer's mark, or it finds what was hidden.
        fence(Ordering::SeqCst);
        if self.header.direct_access().load(Ordering::Relaxed) == 0 {
            return true;
        }
        barrier::everywhere();
        let start = Instant::now();
        (0..self.header.used()).all(|ring| match self.mark(ring) {
            Some(mark) if is_at(mark, entry) => self.waits_for(ring, mark, start, patience),
            _ => true,
        })
    }

    /// The mark of whoever has this ring.
    fn mark(&self, ring: usize) -> Option<u64> {
        self.header.claim(ring)?;
        self.header.mark(ring).map(|mark| mark.load(Ordering::Acquire))
    }

    /// Waits for a peer that is at our memory: what it does there cannot be stopped. False: it lives, and does not leave.
    #[cold]
    fn waits_for(&self, ring: usize, mark: u64, start: Instant, patience: Duration) -> bool {
        let (mut asked, mut nap) = (Instant::now(), FIRST_NAP);
        for spin in 0u32.. {
            if self.mark(ring) != Some(mark) {
                return true;
            }
            if spin < SPINS {
                core::hint::spin_loop();
                continue;
            }
            if start.elapsed() >= patience {
                return !self.lives(ring);
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(LAST_NAP);
            if asked.elapsed() > ASK_EVERY {
                if !self.lives(ring) {
                    return true;
                }
                asked = Instant::now();
            }
        }
        false
    }

    fn lives(&self, ring: usize) -> bool {
        shared::is_locked(self.file.as_fd(), LOCK_RINGS + ring as i64).unwrap_or(true)
    }
}

impl Mirror for RegionTable {
    fn show(&self, key: u64, region: &Region) {
        if !self.file.is_ours() {
            return;
        }
        let mut entries = self.entries();
        entries.hide(&self.header, key);
        if let Some(memory) = region.shown_at(self.endpoint).filter(|_| !entries.closed) {
            entries.show(self, key, region, memory);
        }
    }

    fn hide(&self, key: u64) {
        if self.file.is_ours() {
            self.entries().hide(&self.header, key);
        }
    }

    fn settle(&self, key: u64) -> bool {
        let Some(entry) = self.entries().by_key.get(&key).map(|place| place.entry) else {
            return true;
        };
        if !self.file.is_ours() {
            return true;
        }
        // Without the lock, which whoever registers memory needs.
        let left = self.is_left(Some(entry), PATIENCE);
        if left {
            self.entries().forget(key);
        }
        left
    }

    fn is_over(&self) -> bool {
        let closed = self.entries().closed;
        closed && self.is_left(None, Duration::ZERO)
    }
}

/// How long a closing region waits for a peer that is at it: far longer than any operation takes.
const PATIENCE: Duration = Duration::from_secs(1);
/// Looks at a mark before the processor is given away.
const SPINS: u32 = 1000;
const FIRST_NAP: Duration = Duration::from_micros(20);
const LAST_NAP: Duration = Duration::from_millis(5);
/// How often it is asked whether the peer lives still.
const ASK_EVERY: Duration = Duration::from_millis(10);

impl Entries {
    fn show(&mut self, table: &RegionTable, key: u64, region: &Region, memory: UserBuf) {
        let known = self.by_key.get(&key).copied();
        let Some(place) = known.or_else(|| self.free.pop()).or_else(|| self.fresh_entry(table)) else {
            return; // the table is full, or the file system: peers ask
        };
        table
            .header
            .fill_entry(place.entry, place.generation, key, region, memory);
        let generation = place.generation + 1;
        self.by_key.insert(key, EntryVersion { generation, ..place });
    }

    fn fresh_entry(&mut self, table: &RegionTable) -> Option<EntryVersion> {
        let entry = self.unused_from;
        if entry >= MAX_ENTRIES {
            return None;
        }
        if entry % STEP == 0 {
            layout::allocate_entries(table.file.as_fd(), entry + STEP).ok()?;
            (entry..entry + STEP)
                .for_each(|entry| table.header.entry_word(entry, GENERATION).store(0, Ordering::Relaxed));
            table.header.set_entries_used(entry + STEP);
        }
        self.unused_from += 1;
        Some(EntryVersion { entry, generation: 0 })
    }

    /// The key keeps its entry, in which peers may still be.
    fn hide(&mut self, header: &Header, key: u64) {
        let shown = self.by_key.get_mut(&key).filter(|place| place.generation % 2 == 1);
        let Some(place) = shown else { return };
        place.generation += 1;
        // SYNC POINT reach: before the marks are looked at.
        header
            .entry_word(place.entry, GENERATION)
            .store(place.generation, Ordering::Relaxed);
    }

    /// Nobody is in the entry of a key that is hidden: it may be another's.
    fn forget(&mut self, key: u64) {
        if self.by_key.get(&key).is_some_and(|place| place.generation % 2 == 0) {
            self.free.extend(self.by_key.remove(&key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_at_its_slot_only() {
        let entries = [0, 1, 2, MAX_ENTRIES - 1];
        for turn in [0, VISIT, 77 * VISIT] {
            for entry in entries {
                assert!(!is_at(turn, Some(entry)) && is_at(turn + IN_SEVERAL, Some(entry)));
                for other in entries {
                    assert_eq!(is_at(turn + mark_in_entry(entry), Some(other)), entry == other);
                }
                assert!(is_at(turn + mark_in_entry(entry), None));
            }
            assert!(!is_at(turn, None) && is_at(turn + IN_SEVERAL, None));
        }
    }
}
