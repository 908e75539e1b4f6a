//! What is where in an endpoint's file, and the atomics of its header, by which processes find each other there.
//!
//! Room is kept for many senders, and memory given to real ones: by whoever claims a ring before it touches it, so that a
//! full file system is an error and no signal. In this order:
//!
//! | part | for each sender | memory from |
//! | --- | --- | --- |
//! | header | | the owner, before anyone sees the file |
//! | bells | a bit | whoever claims; the first page from the owner |
//! | states | 4 bytes: free, or the number of the claim | the same |
//! | table of the owner's regions (`region_table`) | | the owner, with its first regions |
//! | marks | a line, written when the sender begins to work on the owner's memory by itself, and when it ends | whoever claims |
//! | slots (`lane`) | 2 KiB: a control block, and a small ring | whoever claims |
//! | large rings (`lane`) | 64 KiB | the sender, when it has more to say than the small one holds |
//!
//! The owner maps all but the large rings at once, which costs only addresses; a sender maps the pages that are its own.
//! What a slot and a large ring took goes back when the sender is gone; marks, states and bells stay, for owners look at
//! them at any time.
//!
//! The attention word of the header is read by every sender after every message, and written when the owner goes to
//! sleep, wakes or closes.

use super::attention::AttentionWord;
use super::name::ADDRESS_MAX;
use super::ring::LINE;
use crate::sys::shared::{self, FileMap};
use core::num::NonZeroU32;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

pub use super::lane::Ring;

const MAGIC: u64 = u64::from_le_bytes(*b"lfab-shm");
/// Changes with anything in this file, in `lane`, in `ring`, or in the engine's headers.
const VERSION: u64 = 9;

/// Senders that an endpoint can have at once: more than a machine has processes. Their number is only an extent of
/// addresses.
pub const MAX_RINGS: usize = 1 << 17;

/// A page of the file that only its owner maps, behind all that it holds. It is never touched.
pub const OWNER_AT: u64 = 12 << 30;

// The lock that tells whether the owner lives, the one for whoever removes the file, and from RINGS on one for each
// ring, held by whoever sends through it.
pub const LOCK_LIFE: i64 = 0;
pub const LOCK_REMOVE: i64 = 1;
pub const LOCK_RINGS: i64 = 64;

// The header.
const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_INSTANCE: usize = 16;
const AT_PID: usize = 24;
const AT_PROBE: usize = 32;
const AT_FENCE: usize = 40;
const AT_ADDRESS_LEN: usize = 48;
const AT_OWNER_PAGE: usize = 56;
const AT_ATTENTION: usize = LINE;
const AT_USED: usize = 2 * LINE;
const AT_CLAIMS: usize = 3 * LINE;
const AT_ADDRESS: usize = 4 * LINE;
const AT_RUNG: usize = 8 * LINE;
const AT_ENTRIES_USED: usize = 12 * LINE;
const AT_CHANGES: usize = AT_ENTRIES_USED + 8;
const AT_DIRECT_ACCESS: usize = 13 * LINE;
const AT_FIRST_FREE: usize = 14 * LINE;
const AT_POLLS: usize = 15 * LINE;
const HEADER_BYTES: usize = 16 * LINE;
/// Words of bells, a bit for each ring; and of bits that say which of those words have news.
const BELLS: usize = MAX_RINGS / 64;
const RUNG: usize = BELLS / 64;
const _: () = assert!(AT_ADDRESS + ADDRESS_MAX <= AT_RUNG && AT_RUNG + RUNG * 8 <= AT_ENTRIES_USED);

impl AttentionWord for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline]
    fn replace(&self, seen: u64, new: u64) {
        let _ = self.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Bits of the attention word.
pub const SLEEPING: u64 = 1;
pub const CLOSED: u64 = 2;

fn whole_pages(bytes: usize) -> usize {
    bytes.next_multiple_of(shared::page_size())
}

fn bells_at() -> usize {
    whole_pages(HEADER_BYTES)
}

fn states_at() -> usize {
    bells_at() + whole_pages(BELLS * 8)
}

/// The most regions that are shown; others are reached by asking.
pub const MAX_ENTRIES: usize = 4096;
pub const ENTRY_WORDS: usize = 6;

// `ENTRY_WORDS` words in a line for each region.
fn table_at() -> usize {
    states_at() + whole_pages(MAX_RINGS * size_of::<u32>())
}

fn marks_at() -> usize {
    table_at() + whole_pages(MAX_ENTRIES * LINE)
}

/// Where the slots of senders begin.
pub fn lanes_at() -> usize {
    marks_at() + whole_pages(MAX_RINGS * LINE)
}

/// What a file has at least: without it, it is none of ours.
pub fn header_bytes() -> usize {
    states_at() + size_of::<u32>()
}

/// What an endpoint that nobody sends to takes of the file system.
pub fn bytes_needed() -> usize {
    3 * shared::page_size()
}

/// Sees that the header has memory.
pub fn allocate_header(fd: BorrowedFd<'_>) -> io::Result<()> {
    shared::allocate(fd, 0, HEADER_BYTES as u64)?;
    allocate_state(fd, 0)
}

/// Sees that the bell and the state of a ring have memory.
fn allocate_state(fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
    shared::allocate(fd, (bells_at() + index / 64 * 8) as u64, 8)?;
    shared::allocate(fd, (states_at() + index * 4) as u64, 4)
}

/// All slots of an endpoint, for its owner.
pub fn map_lanes(fd: BorrowedFd<'_>) -> io::Result<Arc<FileMap>> {
    let len = MAX_RINGS * super::lane::LANE_BYTES;
    FileMap::new(fd, lanes_at() as u64, len).map(Arc::new)
}

/// The state of a ring: free, or the number of the claim, which counts on through the life of the file.
pub type Claim = Option<NonZeroU32>;

/// What an owner writes into its header.
pub struct Owner<'a> {
    pub address: &'a [u8],
    pub instance: u64,
    pub pid: u32,
    /// Where in the owner's memory its instance is, for `get` to prove that a pid is the right one.
    pub probe: u64,
    /// Senders must fence, because the owner cannot do it for them.
    pub fence: bool,
}

/// A header, mapped, up to the end of the table, with marks.
#[derive(Debug)]
pub struct Header {
    map: FileMap,
    /// The owner's proof of being that.
    owner_page: Option<FileMap>,
    /// Where things begin: asking for the size of a page each time would take longer than a copy.
    bells: NonNull<u8>,
    states: NonNull<u8>,
    table: NonNull<u8>,
    /// The marks of all senders, for the owner.
    marks: Option<FileMap>,
}

// SAFETY: as for `FileMap`, into which all point.
unsafe impl Send for Header {}
// SAFETY: everything in it is reached through atomics, once it is filled.
unsafe impl Sync for Header {}

/// A sender's own mark in a peer's file, mapped: odd while the sender works on the peer's memory by itself.
#[derive(Debug)]
pub struct AccessMark {
    word: NonNull<AtomicU64>,
    _map: FileMap,
}

// SAFETY: as for `FileMap`, into which it points.
unsafe impl Send for AccessMark {}

impl AccessMark {
    /// For whoever claims this ring. The mark has memory after this.
    pub fn map(fd: BorrowedFd<'_>, index: usize) -> io::Result<AccessMark> {
        let mark_at = marks_at() + index * LINE;
        shared::allocate(fd, mark_at as u64, LINE as u64)?;
        let page_at = mark_at / shared::page_size() * shared::page_size();
        let map = FileMap::new(fd, page_at as u64, shared::page_size())?;
        // SAFETY: within the page that is mapped.
        let word = unsafe { map.base().add(mark_at - page_at) }.cast();
        let mark = AccessMark { word, _map: map };
        mark.word().store(0, Ordering::Relaxed);
        Ok(mark)
    }

    #[inline(always)]
    pub fn word(&self) -> &AtomicU64 {
        // SAFETY: mapped as long as this lives, and aligned as a line is; every process uses it as an atomic.
        unsafe { self.word.as_ref() }
    }
}

/// Why a file is no region of ours to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    NotAnEndpoint,
    OtherVersion(u64),
    OtherAddress,
}

impl Header {
    /// For the owner, with all marks.
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Header> {
        let marks = FileMap::new(fd, marks_at() as u64, MAX_RINGS * LINE)?;
        Ok(Header {
            marks: Some(marks),
            ..Header::map_for_sender(fd)?
        })
    }

    /// The same for the file's owner, whose process others can then tell by what it has mapped.
    pub fn map_own(fd: BorrowedFd<'_>) -> io::Result<Header> {
        let owner_page = Some(FileMap::new(fd, OWNER_AT, shared::page_size())?);
        Ok(Header {
            owner_page,
            ..Header::map(fd)?
        })
    }

    /// For a sender, which has `AccessMark` in place of all marks.
    pub fn map_for_sender(fd: BorrowedFd<'_>) -> io::Result<Header> {
        let map = FileMap::new(fd, 0, marks_at())?;
        // SAFETY: the mapping ends behind the table, which is the last of these.
        let [bells, states, table] = [bells_at(), states_at(), table_at()].map(|at| unsafe { map.base().add(at) });
        Ok(Header {
            map,
            owner_page: None,
            bells,
            states,
            table,
            marks: None,
        })
    }

    /// Fills a fresh header.
    pub fn init(&self, owner: &Owner<'_>) {
        let set = |at, value| self.map.word(at).store(value, Ordering::Relaxed);
        set(AT_INSTANCE, owner.instance);
        set(AT_PID, u64::from(owner.pid));
        set(AT_PROBE, owner.probe);
        set(AT_FENCE, u64::from(owner.fence));
        set(AT_ADDRESS_LEN, owner.address.len() as u64);
        let owner_page = self.owner_page.as_ref().unwrap_or(&self.map);
        set(AT_OWNER_PAGE, owner_page.base().as_ptr() as u64);
        set(AT_CLAIMS, 1);
        set(AT_VERSION, VERSION);
        self.map.write(AT_ADDRESS, owner.address);
        self.map.word(AT_MAGIC).store(MAGIC, Ordering::Release);
    }

    pub fn check(&self, address: &[u8]) -> Result<(), Unfit> {
        let get = |at| self.map.word(at).load(Ordering::Acquire);
        if get(AT_MAGIC) != MAGIC {
            return Err(Unfit::NotAnEndpoint);
        }
        if get(AT_VERSION) != VERSION {
            return Err(Unfit::OtherVersion(get(AT_VERSION)));
        }
        match read_address(&self.map, AT_ADDRESS_LEN, AT_ADDRESS) {
            Some(found) if found == address => Ok(()),
            _ => Err(Unfit::OtherAddress),
        }
    }

    pub fn instance(&self) -> u64 {
        self.map.word(AT_INSTANCE).load(Ordering::Relaxed)
    }

    pub fn pid(&self) -> u32 {
        self.map.word(AT_PID).load(Ordering::Relaxed) as u32
    }

    pub fn probe(&self) -> u64 {
        self.map.word(AT_PROBE).load(Ordering::Relaxed)
    }

    pub fn wants_fence(&self) -> bool {
        self.map.word(AT_FENCE).load(Ordering::Relaxed) != 0
    }

    /// Where the owner has `OWNER_AT` of this file mapped: a process that has that there is the owner's.
    pub fn owner_page(&self) -> u64 {
        self.map.word(AT_OWNER_PAGE).load(Ordering::Relaxed)
    }

    #[inline]
    pub fn attention(&self) -> &AtomicU64 {
        self.map.word(AT_ATTENTION)
    }

    /// Rings that were ever claimed lie below this.
    pub fn used(&self) -> usize {
        (self.map.word(AT_USED).load(Ordering::Acquire) as usize).min(MAX_RINGS)
    }

    pub fn raise_used(&self, used: usize) {
        self.map.word(AT_USED).fetch_max(used as u64, Ordering::Release);
    }

    fn bells(&self, group: usize) -> &AtomicU64 {
        assert!(group < BELLS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.bells.as_ptr().add(group * 8).cast::<AtomicU64>() }
    }

    fn rung(&self, word: usize) -> &AtomicU64 {
        assert!(word < RUNG);
        self.map.word(AT_RUNG + word * 8)
    }

    /// Says that a ring has news. SYNC POINT bell: the bit of the ring first, then that of its word. Who finds the
    /// latter set already knows that the owner has yet to look at the word.
    pub fn ring_bell(&self, index: usize) {
        let group = index / 64;
        self.bells(group).fetch_or(1 << (index % 64), Ordering::SeqCst);
        let (word, bit) = (self.rung(group / 64), 1 << (group % 64));
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether any bell was rung.
    pub fn has_rung(&self) -> bool {
        (0..self.used().div_ceil(64 * 64)).any(|word| self.rung(word).load(Ordering::Relaxed) != 0)
    }

    /// Silences the bells and says whose they were. SYNC POINT bell: the words' bits first, then those of the rings.
    pub fn take_bells(&self, rung: &mut Vec<usize>) {
        let used = self.used();
        for word in 0..used.div_ceil(64 * 64) {
            if self.rung(word).load(Ordering::Relaxed) == 0 {
                continue;
            }
            for group in bits(self.rung(word).swap(0, Ordering::SeqCst)).map(|bit| word * 64 + bit) {
                if group < used.div_ceil(64) {
                    rung.extend(bits(self.bells(group).swap(0, Ordering::SeqCst)).map(|bit| group * 64 + bit));
                }
            }
        }
    }

    fn state_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < MAX_RINGS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.states.as_ptr().add(index * 4).cast::<AtomicU32>() }
    }

    /// Sees that the state of a ring that nobody may have used has memory.
    pub fn allocate_state(&self, fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
        let is_first_page = index * size_of::<u32>() < shared::page_size();
        if is_first_page || index < self.used() {
            return Ok(());
        }
        allocate_state(fd, index)
    }

    /// No ring below this is free. Only the owner writes it.
    pub fn first_free(&self) -> usize {
        (self.map.word(AT_FIRST_FREE).load(Ordering::Relaxed) as usize).min(MAX_RINGS)
    }

    pub fn set_first_free(&self, index: usize) {
        self.map.word(AT_FIRST_FREE).store(index as u64, Ordering::Relaxed);
    }

    /// SYNC POINT claim: acquire.
    pub fn claim(&self, index: usize) -> Claim {
        NonZeroU32::new(self.state_word(index).load(Ordering::Acquire))
    }

    /// SYNC POINT claim: release.
    pub fn set_claimed(&self, index: usize) {
        let number = self.map.word(AT_CLAIMS).fetch_add(1, Ordering::Relaxed) as u32;
        self.state_word(index).store(number.max(1), Ordering::Release);
    }

    pub fn set_free(&self, index: usize) {
        self.state_word(index).store(0, Ordering::Release);
    }

    /// The mark of a ring's sender, for the owner. The ring is claimed, which gave the mark memory; None: no such ring.
    pub fn mark(&self, index: usize) -> Option<&AtomicU64> {
        let marks = self.marks.as_ref()?;
        (index < MAX_RINGS).then(|| marks.word(index * LINE))
    }

    /// Set by the first who works so.
    pub fn direct_access(&self) -> &AtomicU64 {
        self.map.word(AT_DIRECT_ACCESS)
    }

    /// Changes while the owner looks for packets. On a line of its own: read by who waits for the owner only.
    #[inline]
    pub fn polls(&self) -> &AtomicU64 {
        self.map.word(AT_POLLS)
    }

    /// Slots of the table that have memory lie below this.
    pub fn entries_used(&self) -> usize {
        (self.map.word(AT_ENTRIES_USED).load(Ordering::Acquire) as usize).min(MAX_ENTRIES)
    }

    pub fn set_entries_used(&self, used: usize) {
        self.map.word(AT_ENTRIES_USED).store(used as u64, Ordering::Release);
    }

    /// How often a region was put into the table.
    pub fn changes(&self) -> &AtomicU64 {
        self.map.word(AT_CHANGES)
    }

    /// One word of a slot. Panics for what is not in the table.
    #[inline(always)]
    pub fn entry_word(&self, entry: usize, word: usize) -> &AtomicU64 {
        assert!(entry < MAX_ENTRIES && word < ENTRY_WORDS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.table.as_ptr().add(entry * LINE + word * 8).cast::<AtomicU64>() }
    }
}

#[cfg(any(test, fuzzing))]
impl Header {
    /// Any word of the header and the bells, as anybody may write it.
    pub fn set_word(&self, word: usize, value: u64) {
        self.map
            .word(word % (states_at() / 8) * 8)
            .store(value, Ordering::Relaxed);
    }
}

/// Sees that slots of the table below `slots` have memory.
pub fn allocate_entries(fd: BorrowedFd<'_>, entries: usize) -> io::Result<()> {
    shared::allocate(fd, table_at() as u64, (entries.min(MAX_ENTRIES) * LINE) as u64)
}

/// The instance in a region's file, without mapping it.
pub fn instance_in(fd: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes = [0u8; AT_INSTANCE + 8];
    let (magic, instance) = (AT_MAGIC..AT_MAGIC + 8, AT_INSTANCE..AT_INSTANCE + 8);
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    let whole = shared::read_start(fd, &mut bytes) && word(bytes.get(magic)?)? == MAGIC;
    whole.then(|| word(bytes.get(instance)?))?
}

/// The numbers of the bits that are set.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| word & 1 << bit != 0)
}

pub(super) fn read_address(map: &FileMap, len_at: usize, at: usize) -> Option<Vec<u8>> {
    let len = map.word(len_at).load(Ordering::Acquire);
    let mut address = vec![
        0;
        usize::try_from(len)
            .ok()
            .filter(|len| (1..=ADDRESS_MAX).contains(len))?
    ];
    map.read(at, &mut address);
    Some(address)
}
