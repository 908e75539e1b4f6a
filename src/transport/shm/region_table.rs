//! The table, in an endpoint's file, of the registered memory that peers may access directly: its owner's side.
//!
//! An entry tells where a region lies in the owner's process, and with what rights; its generation is odd while the
//! region is shown. A peer that accesses a region sets its access mark to the entry, then reads the generation, and
//! changes the mark again when it is done. The owner hides a region by changing the generation, and then waits for
//! every peer whose mark names that entry. One of the two must see the other: there is a barrier between the two steps
//! on both sides, as in `attention`.
//!
//! What is behind the memory is for the peer to find out (`direct_access`), so registering costs a few stores, and
//! closing a region that nobody accessed directly costs one more. A peer that is dead is known by its lock. A peer that
//! is stopped in the middle of a copy cannot be told to leave, so waiting is bounded, and the region then stays
//! registered. No lock is held while waiting, and a peer at one region delays the closing of no other.
//!
//! Called through `Mirror` by `util::regions`, whenever a region of the domain changes.

use super::endpoint_file::EndpointFile;
use super::layout::{self, FileHeader, LOCK_LANES, MAX_ENTRIES};
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
/// Set by a peer that maps the region, and cleared for the next region of this entry. What none has mapped only the kernel
/// copies.
const MAPPED: usize = 6;

// An access mark counts visits in steps of `VISIT`. What is added to it during a visit says to which entry.
pub(super) const VISIT: u64 = 1 << 16;
/// A visit to more than one entry.
pub(super) const IN_SEVERAL: u64 = 1;
const _: () = assert!(mark_in_entry(MAX_ENTRIES) < VISIT);

#[inline(always)]
pub(super) const fn mark_in_entry(entry: usize) -> u64 {
    2 * entry as u64 + 3
}

/// Whether a peer with this mark is at an entry; None: at any.
fn is_at(mark: u64, entry: Option<usize>) -> bool {
    let place = mark % VISIT;
    match entry {
        Some(entry) => place == mark_in_entry(entry) || place == IN_SEVERAL,
        None => place % 2 == 1,
    }
}

/// Entries that are allocated at a time: a page.
const STEP: usize = 64;

/// A region as its entry shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownRegion {
    pub entry: usize,
    pub generation: u64,
    pub key: u64,
    /// The remote address of its first byte.
    pub base: u64,
    /// Where it lies in its owner's process.
    pub addr: u64,
    pub len: u64,
    pub rights: Rights,
}

fn rights_word(rights: Rights) -> u64 {
    u64::from(rights.read) | u64::from(rights.write) << 1
}

impl FileHeader {
    #[inline(always)]
    pub(super) fn generation(&self, entry: usize) -> u64 {
        self.entry_word(entry, GENERATION).load(Ordering::Acquire)
    }

    /// Called by a peer that maps the region. It fences before it looks at the generation again.
    pub(super) fn note_mapping(&self, entry: usize) {
        self.entry_word(entry, MAPPED).store(1, Ordering::Relaxed);
    }

    /// Looks for a region by its key.
    pub(super) fn find_entry(&self, key: u64) -> Option<ShownRegion> {
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
        // SYNC POINT entry: the words are of one generation if it has not changed meanwhile.
        fence(Ordering::Acquire);
        let still = self.entry_word(entry, GENERATION).load(Ordering::Relaxed) == generation;
        (still && generation % 2 == 1 && shown.key == key).then_some(shown)
    }

    /// `generation` is the entry's last one, which is even.
    fn fill_entry(&self, entry: usize, generation: u64, key: u64, region: &Region, memory: UserBuf) {
        // SYNC POINT entry: a reader that sees a word of the new generation sees that the old one is over.
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

pub(super) struct RegionTable {
    endpoint: u64,
    /// Has the peers' marks, which are read without a lock.
    header: FileHeader,
    file: Arc<ParentFd>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// The entry of each region that was ever shown and is not closed yet.
    by_key: HashMap<u64, EntryVersion>,
    /// Entries that were used and are free again.
    free: Vec<EntryVersion>,
    unused_from: usize,
    /// The endpoint is closed.
    closed: bool,
}

/// An entry and its generation, kept outside of the file, where peers may write anything.
#[derive(Clone, Copy, Debug)]
struct EntryVersion {
    entry: usize,
    generation: u64,
}

impl RegionTable {
    /// `endpoint` is the number by which regions that are bound to an endpoint name it.
    pub(super) fn new(own: &EndpointFile, endpoint: u64) -> io::Result<RegionTable> {
        let file = own.hold_file();
        Ok(RegionTable {
            endpoint,
            header: FileHeader::map(file.as_fd())?,
            file,
            entries: Mutex::default(),
        })
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hides all regions. Peers may still be at them: closing each region waits for that.
    pub(super) fn close(&self) {
        if !self.file.is_ours() {
            return;
        }
        let mut entries = self.entries();
        entries.closed = true;
        let keys: Vec<u64> = entries.by_key.keys().copied().collect();
        keys.iter().for_each(|key| entries.hide(&self.header, *key));
    }

    /// Waits up to `patience` until no peer is at this entry (None: at any). Whether that came about.
    fn is_left(&self, entry: Option<usize>, patience: Duration) -> bool {
        // SYNC POINT reach: either we see a peer's mark, or it sees that the region is hidden.
        fence(Ordering::SeqCst);
        if self.header.direct_access().load(Ordering::Relaxed) == 0 {
            return true;
        }
        // Whoever has the kernel copy fences by itself, as this call may take longer than registering the memory.
        let is_mapped = |entry| self.header.entry_word(entry, MAPPED).load(Ordering::Relaxed) != 0;
        if entry.is_none_or(is_mapped) {
            barrier::everywhere();
        }
        let start = Instant::now();
        (0..self.header.used()).all(|lane| match self.mark(lane) {
            Some(mark) if is_at(mark, entry) => self.waits_for(lane, mark, start, patience),
            _ => true,
        })
    }

    /// The mark of the lane's claimer.
    fn mark(&self, lane: usize) -> Option<u64> {
        self.header.claim(lane)?;
        self.header.mark(lane).map(|mark| mark.load(Ordering::Acquire))
    }

    /// Waits until a peer has left our memory, or is dead, as it cannot be stopped there. False: out of patience.
    #[cold]
    fn waits_for(&self, lane: usize, mark: u64, start: Instant, patience: Duration) -> bool {
        let (mut asked, mut nap) = (Instant::now(), FIRST_NAP);
        for spin in 0u32.. {
            if self.mark(lane) != Some(mark) {
                return true;
            }
            if spin < SPINS {
                core::hint::spin_loop();
                continue;
            }
            if start.elapsed() >= patience {
                return !self.lives(lane);
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(LAST_NAP);
            if asked.elapsed() > ASK_EVERY {
                if !self.lives(lane) {
                    return true;
                }
                asked = Instant::now();
            }
        }
        false
    }

    fn lives(&self, lane: usize) -> bool {
        shared::is_locked(self.file.as_fd(), LOCK_LANES + lane as i64).unwrap_or(true)
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
        // The lock is not held here: threads that register memory need it.
        let left = self.is_left(Some(entry), PATIENCE);
        if left {
            self.entries().forget(key);
        }
        left
    }

    fn closed(&self) {
        if self.file.is_ours() {
            // SYNC POINT lent: before the program may use the memory for something else.
            self.header.closings().fetch_add(1, Ordering::SeqCst);
        }
    }

    fn is_over(&self) -> bool {
        let closed = self.entries().closed;
        closed && self.is_left(None, Duration::ZERO)
    }
}

/// How long closing a region waits for a peer that is at it: far longer than any operation takes.
const PATIENCE: Duration = Duration::from_secs(1);
/// Looks at a mark before the waiting thread begins to sleep.
const SPINS: u32 = 1000;
const FIRST_NAP: Duration = Duration::from_micros(20);
const LAST_NAP: Duration = Duration::from_millis(5);
/// How often the peer's lock is asked for, to see whether it is alive.
const ASK_EVERY: Duration = Duration::from_millis(10);

impl Entries {
    fn show(&mut self, table: &RegionTable, key: u64, region: &Region, memory: UserBuf) {
        let known = self.by_key.get(&key).copied();
        let Some(place) = known.or_else(|| self.free.pop()).or_else(|| self.fresh_entry(table)) else {
            return; // the table or the file system is full: peers have to ask the owner
        };
        if known.is_none() {
            table.header.entry_word(place.entry, MAPPED).store(0, Ordering::Relaxed);
        }
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

    /// Hides a region. The key keeps its entry until `forget`, as peers may still be at it.
    fn hide(&mut self, header: &FileHeader, key: u64) {
        let shown = self.by_key.get_mut(&key).filter(|place| place.generation % 2 == 1);
        let Some(place) = shown else { return };
        place.generation += 1;
        // SYNC POINT reach: the generation is changed before the marks are read.
        header
            .entry_word(place.entry, GENERATION)
            .store(place.generation, Ordering::Relaxed);
    }

    /// Frees the entry of a hidden region that no peer is at any more.
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
