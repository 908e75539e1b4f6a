//! What is where in an endpoint's file, and the atomics of its header, by which processes find each other there.
//!
//! The file is sparse: addresses are kept for very many senders, memory is given to those that there are. Whoever
//! claims a lane allocates that memory before it touches it, so a full file system is an error and not a SIGBUS. In
//! this order:
//!
//! | part | for each sender | memory is allocated by |
//! | --- | --- | --- |
//! | header | | the owner, before anyone sees the file |
//! | bells | a bit | the claimer; the first page by the owner |
//! | states | 4 bytes: free, or the number of the claim | the same |
//! | table of the owner's regions (`region_table`) | | the owner, with its first regions |
//! | access marks | a line, written around each direct access to the owner's memory | the claimer |
//! | lanes (`lane`) | 2 KiB: a control block and a small ring | the claimer |
//! | large rings (`lane`) | 64 KiB, and 132 of room for a dialogue while half is free | the sender, when the small ring is too small |
//! | wide rings (`lane`) | 2 MiB | the sender, when the large ring is full time and again |
//!
//! The owner maps all but the larger rings at once, which costs addresses only; a sender maps the pages of its own. The
//! memory of a lane and its rings is released when the sender is gone; that of marks, states and bells is kept, as
//! the owner reads them at any time.
//!
//! Called by the other files of this module. Knows nothing of what records and regions mean.

use super::attention::AttentionWord;
use super::bells::{self, BellWord, BellWords};
use super::name::ADDRESS_MAX;
use super::ring::LINE;
use crate::engine::wire;
use crate::sys::shared::{self, FileMap};
use core::num::NonZeroU32;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"lfab-shm");
/// To be raised with every change of the layout here, in `lane` or `ring`.
const LAYOUT: u64 = 24;
/// The version of the layout, and of what engines say to each other.
const VERSION: u64 = LAYOUT << 16 | wire::VERSION as u64;

/// Senders that an endpoint can have at once: more than a machine has processes. It costs addresses only.
pub(super) const MAX_LANES: usize = 1 << 17;

/// A page of the file, behind all others, that only the owner maps: /proc/PID/maps shows by it who the owner is
/// (`proof`). It is never touched.
pub(super) const OWNER_AT: u64 = 320 << 30;

// Bytes of the file that are locked: by the owner while it lives, by whoever removes the file, and from `LOCK_LANES` on
// one for each lane, by its sender.
pub(super) const LOCK_LIFE: i64 = 0;
pub(super) const LOCK_REMOVE: i64 = 1;
pub(super) const LOCK_LANES: i64 = 64;

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
const AT_CLOSINGS: usize = AT_CHANGES + 8;
const AT_DIRECT_ACCESS: usize = 13 * LINE;
const AT_FIRST_FREE: usize = 14 * LINE;
const AT_POLLS: usize = 15 * LINE;
const HEADER_BYTES: usize = 16 * LINE;
/// Words of bells, a bit for each lane; and of bits that say which of those words have news.
const BELLS: usize = MAX_LANES / 64;
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

impl BellWord for AtomicU64 {
    fn looks_set(&self) -> bool {
        self.load(Ordering::Relaxed) != 0
    }

    fn load(&self) -> u64 {
        self.load(Ordering::SeqCst)
    }

    fn set(&self, bits: u64) {
        self.fetch_or(bits, Ordering::SeqCst);
    }

    fn take(&self) -> u64 {
        self.swap(0, Ordering::SeqCst)
    }
}

impl BellWords for FileHeader {
    type Word = AtomicU64;

    fn bells(&self, group: usize) -> &AtomicU64 {
        assert!(group < BELLS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.bells.as_ptr().add(group * 8).cast::<AtomicU64>() }
    }

    fn rung(&self, word: usize) -> &AtomicU64 {
        assert!(word < RUNG);
        self.map.word(AT_RUNG + word * 8)
    }
}

/// Bits of the attention word.
pub(super) const SLEEPING: u64 = 1;
pub(super) const CLOSED: u64 = 2;

fn whole_pages(bytes: usize) -> usize {
    bytes.next_multiple_of(shared::page_size())
}

fn bells_at() -> usize {
    whole_pages(HEADER_BYTES)
}

fn states_at() -> usize {
    bells_at() + whole_pages(BELLS * 8)
}

/// The most regions in the table. Operations on others are sent to the owner.
pub(super) const MAX_ENTRIES: usize = 4096;
pub(super) const ENTRY_WORDS: usize = 7;

// A line for each region, of which `ENTRY_WORDS` words are used.
fn table_at() -> usize {
    states_at() + whole_pages(MAX_LANES * size_of::<u32>())
}

pub(super) fn marks_at() -> usize {
    table_at() + whole_pages(MAX_ENTRIES * LINE)
}

/// Where the lanes begin.
pub(super) fn lanes_at() -> usize {
    marks_at() + whole_pages(MAX_LANES * LINE)
}

/// A file that is shorter is no endpoint's.
pub(super) fn header_bytes() -> usize {
    states_at() + size_of::<u32>()
}

/// How much of the file system an endpoint takes that nobody sends to.
pub(super) fn bytes_needed() -> usize {
    3 * shared::page_size()
}

/// Allocates the header, with the first bells and states.
pub(super) fn allocate_header(fd: BorrowedFd<'_>) -> io::Result<()> {
    shared::allocate(fd, 0, HEADER_BYTES as u64)?;
    allocate_state(fd, 0)
}

/// Allocates the bell and the state of a lane.
fn allocate_state(fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
    shared::allocate(fd, (bells_at() + index / 64 * 8) as u64, 8)?;
    shared::allocate(fd, (states_at() + index * 4) as u64, 4)
}

/// Maps all lanes, for the owner.
pub(super) fn map_lanes(fd: BorrowedFd<'_>) -> io::Result<Arc<FileMap>> {
    let len = MAX_LANES * super::lane::LANE_BYTES;
    FileMap::new(fd, lanes_at() as u64, len).map(Arc::new)
}

/// The state of a lane: free, or the number of its claim. Numbers are never used again in one file, so they tell which
/// of two claims is the later one.
pub(super) type Claim = Option<NonZeroU32>;

/// What an owner writes into its header.
pub(super) struct Owner<'a> {
    pub address: &'a [u8],
    pub instance: u64,
    pub pid: u32,
    /// Where in the owner's memory its instance is: `proof` reads it there to see that a pid is the right one.
    pub probe: u64,
    /// Senders must fence after each record, because the kernel gives the owner no barrier over them.
    pub fence: bool,
}

/// A file from its header to the end of the region table, mapped; for the owner with all access marks.
#[derive(Debug)]
pub(super) struct FileHeader {
    map: FileMap,
    /// The page at `OWNER_AT`, if this is the owner.
    owner_page: Option<FileMap>,
    /// Where the parts begin: computing that takes a call of sysconf each time, longer than copying a message.
    bells: NonNull<u8>,
    states: NonNull<u8>,
    table: NonNull<u8>,
    /// The access marks of all senders, for the owner.
    marks: Option<FileMap>,
}

// SAFETY: the pointers point into the `FileMap` beside them, which may be sent and lives as long.
unsafe impl Send for FileHeader {}
// SAFETY: after `init`, which its only owner calls before it shares it, all is read and written through atomics.
unsafe impl Sync for FileHeader {}

/// Why a file is not the endpoint that a sender looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    NotAnEndpoint,
    OtherVersion(u64),
    OtherAddress,
}

impl FileHeader {
    /// With all access marks, as the region table's owner needs them.
    pub(super) fn map(fd: BorrowedFd<'_>) -> io::Result<FileHeader> {
        let marks = FileMap::new(fd, marks_at() as u64, MAX_LANES * LINE)?;
        Ok(FileHeader {
            marks: Some(marks),
            ..FileHeader::map_for_sender(fd)?
        })
    }

    /// The same for the endpoint itself, with the page by which others recognize its process.
    pub(super) fn map_own(fd: BorrowedFd<'_>) -> io::Result<FileHeader> {
        let owner_page = Some(FileMap::new(fd, OWNER_AT, shared::page_size())?);
        Ok(FileHeader {
            owner_page,
            ..FileHeader::map(fd)?
        })
    }

    /// For a sender, which has an `AccessMark` of its own.
    pub(super) fn map_for_sender(fd: BorrowedFd<'_>) -> io::Result<FileHeader> {
        let map = FileMap::new(fd, 0, marks_at())?;
        // SAFETY: the mapping ends behind the table, which is the last of these.
        let [bells, states, table] = [bells_at(), states_at(), table_at()].map(|at| unsafe { map.base().add(at) });
        Ok(FileHeader {
            map,
            owner_page: None,
            bells,
            states,
            table,
            marks: None,
        })
    }

    /// Fills the header of a new file. The magic number is written last, so a header that `check` accepts is whole.
    pub(super) fn init(&self, owner: &Owner<'_>) {
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

    pub(super) fn check(&self, address: &[u8]) -> Result<(), Unfit> {
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

    pub(super) fn instance(&self) -> u64 {
        self.map.word(AT_INSTANCE).load(Ordering::Relaxed)
    }

    pub(super) fn pid(&self) -> u32 {
        self.map.word(AT_PID).load(Ordering::Relaxed) as u32
    }

    pub(super) fn probe(&self) -> u64 {
        self.map.word(AT_PROBE).load(Ordering::Relaxed)
    }

    pub(super) fn wants_fence(&self) -> bool {
        self.map.word(AT_FENCE).load(Ordering::Relaxed) != 0
    }

    /// The address at which the owner's process has `OWNER_AT` of this file mapped.
    pub(super) fn owner_page(&self) -> u64 {
        self.map.word(AT_OWNER_PAGE).load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn attention(&self) -> &AtomicU64 {
        self.map.word(AT_ATTENTION)
    }

    /// All lanes that were ever claimed have a lower index.
    pub(super) fn used(&self) -> usize {
        (self.map.word(AT_USED).load(Ordering::Acquire) as usize).min(MAX_LANES)
    }

    pub(super) fn raise_used(&self, used: usize) {
        self.map.word(AT_USED).fetch_max(used as u64, Ordering::Release);
    }

    /// Tells the owner that a lane has news.
    pub(super) fn ring_bell(&self, index: usize) {
        bells::ring(self, index);
    }

    /// Whether any bell was rung.
    pub(super) fn has_rung(&self) -> bool {
        bells::has_rung(self, self.used())
    }

    /// Whether the bell of one of the first lanes seems to be rung, which is all of them but in a job of thousands.
    #[inline]
    pub(super) fn seems_rung(&self) -> bool {
        self.rung(0).looks_set()
    }

    /// Clears the bells, and adds the lanes whose bells were rung.
    pub(super) fn take_bells(&self, rung: &mut Vec<usize>) {
        bells::take(self, self.used(), rung);
    }

    fn state_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < MAX_LANES);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.states.as_ptr().add(index * 4).cast::<AtomicU32>() }
    }

    /// Allocates the state of a lane, unless an earlier claimer did.
    pub(super) fn allocate_state(&self, fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
        let is_first_page = index * size_of::<u32>() < shared::page_size();
        if is_first_page || index < self.used() {
            return Ok(());
        }
        allocate_state(fd, index)
    }

    /// No lane below this is free: where a claimer begins to look. Only the owner writes it.
    pub(super) fn first_free(&self) -> usize {
        (self.map.word(AT_FIRST_FREE).load(Ordering::Relaxed) as usize).min(MAX_LANES)
    }

    pub(super) fn set_first_free(&self, index: usize) {
        self.map.word(AT_FIRST_FREE).store(index as u64, Ordering::Relaxed);
    }

    /// SYNC POINT claim: acquire.
    pub(super) fn claim(&self, index: usize) -> Claim {
        NonZeroU32::new(self.state_word(index).load(Ordering::Acquire))
    }

    /// SYNC POINT claim: release.
    pub(super) fn set_claimed(&self, index: usize) {
        let number = self.map.word(AT_CLAIMS).fetch_add(1, Ordering::Relaxed) as u32;
        self.state_word(index).store(number.max(1), Ordering::Release);
    }

    pub(super) fn set_free(&self, index: usize) {
        self.state_word(index).store(0, Ordering::Release);
    }

    /// The access mark of a lane's sender, for the owner; None: no such lane. The lane must be claimed, or the mark may
    /// have no memory.
    pub(super) fn mark(&self, index: usize) -> Option<&AtomicU64> {
        let marks = self.marks.as_ref()?;
        (index < MAX_LANES).then(|| marks.word(index * LINE))
    }

    /// Not 0 once any peer has worked on the owner's memory directly.
    pub(super) fn direct_access(&self) -> &AtomicU64 {
        self.map.word(AT_DIRECT_ACCESS)
    }

    /// Changes while the owner polls. On a line of its own, which is read only by peers that wait for the owner.
    #[inline]
    pub(super) fn polls(&self) -> &AtomicU64 {
        self.map.word(AT_POLLS)
    }

    /// Entries of the table that have memory have a lower index.
    pub(super) fn entries_used(&self) -> usize {
        (self.map.word(AT_ENTRIES_USED).load(Ordering::Acquire) as usize).min(MAX_ENTRIES)
    }

    pub(super) fn set_entries_used(&self, used: usize) {
        self.map.word(AT_ENTRIES_USED).store(used as u64, Ordering::Release);
    }

    /// How often a region was put into the table.
    pub(super) fn changes(&self) -> &AtomicU64 {
        self.map.word(AT_CHANGES)
    }

    /// Counts the regions that the owner has closed, those that the table never showed too.
    pub(super) fn closings(&self) -> &AtomicU64 {
        self.map.word(AT_CLOSINGS)
    }

    /// One word of an entry of the region table.
    #[inline(always)]
    pub(super) fn entry_word(&self, entry: usize, word: usize) -> &AtomicU64 {
        assert!(entry < MAX_ENTRIES && word < ENTRY_WORDS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.table.as_ptr().add(entry * LINE + word * 8).cast::<AtomicU64>() }
    }
}

#[cfg(any(test, fuzzing))]
impl FileHeader {
    /// Writes any word of the header and the bells, as a peer can.
    pub fn set_word(&self, word: usize, value: u64) {
        self.map
            .word(word % (states_at() / 8) * 8)
            .store(value, Ordering::Relaxed);
    }
}

/// Allocates the first `entries` entries of the region table.
pub(super) fn allocate_entries(fd: BorrowedFd<'_>, entries: usize) -> io::Result<()> {
    shared::allocate(fd, table_at() as u64, (entries.min(MAX_ENTRIES) * LINE) as u64)
}

/// Reads the instance in an endpoint's file, without mapping it.
pub(super) fn instance_in(fd: BorrowedFd<'_>) -> Option<u64> {
    word_in(fd, AT_INSTANCE)
}

/// The same for the number of its owner's process.
pub(super) fn pid_in(fd: BorrowedFd<'_>) -> Option<u32> {
    word_in(fd, AT_PID)?.try_into().ok()
}

fn word_in(fd: BorrowedFd<'_>, at: usize) -> Option<u64> {
    let mut bytes = [0u8; AT_PID + 8];
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 8)?;
        word.try_into().map(u64::from_ne_bytes).ok()
    };
    let whole = shared::read_start(fd, &mut bytes) && word(&bytes, AT_MAGIC)? == MAGIC;
    whole.then(|| word(&bytes, at))?
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
