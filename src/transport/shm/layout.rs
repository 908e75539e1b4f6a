//! What is where in an endpoint's file, and the atomics by which processes talk through it.
//!
//! First the header, which the owner writes before anyone sees the file, then a state for every ring, a mark for every
//! ring, the table of the owner's regions (`board`), then the rings: a control block and the lines. The memory of a ring
//! and its mark is given by whoever claims it, that of the table by the owner with its first regions, so a file has room
//! for many and memory for real ones. Every cache line but one has one writer after a ring was claimed:
//!
//! | line of a control block | written by | holds |
//! | --- | --- | --- |
//! | who | the sender, once | its instance, its address |
//! | hot | the receiver, seldom | whether it looks at this ring of its own accord |
//! | taken | the receiver, every quarter ring, and when it has read all | how far it has read |
//! | sender | the sender, seldom | closed, starved |
//! | pieces | both, for a large message | what is left of it to be fetched (`share`) |
//! | helped | the sender, for a large message | what it has done of it |
//!
//! A mark is written by the ring's sender when it begins to work on the owner's memory by itself, and when it ends.
//!
//! The attention word of the header is read by every sender after every message, and written when the owner goes to
//! sleep, wakes or closes.

use super::name::ADDRESS_MAX;
use super::ring::{LINE, Lines};
use super::sleep::Word;
use crate::sys::shared::{self, Map};
use core::num::NonZeroU32;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::BorrowedFd;

const MAGIC: u64 = u64::from_le_bytes(*b"lfab-shm");
/// Changes with anything in this file, in `ring`, or in the engine's headers.
const VERSION: u64 = 6;

pub const MAX_RINGS: usize = 2048;
/// Lines of a ring. Measured: 128 KiB gained nothing over 64 KiB, for small messages or for streams.
pub const RING_LINES: u64 = 1024;
const RING_BYTES: usize = RING_LINES as usize * LINE;

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
const AT_HERE: usize = 56;
const AT_ATTENTION: usize = LINE;
const AT_USED: usize = 2 * LINE;
const AT_CLAIMS: usize = 3 * LINE;
const AT_ADDRESS: usize = 4 * LINE;
const AT_BELLS: usize = 8 * LINE;
const AT_SLOTS_USED: usize = 12 * LINE;
const AT_CHANGES: usize = AT_SLOTS_USED + 8;
const AT_REACHED: usize = 13 * LINE;
const AT_STATES: usize = 2048;
const HEADER_BYTES: usize = AT_STATES + MAX_RINGS * size_of::<u32>();
pub const BELLS: usize = MAX_RINGS / 64;
const _: () = assert!(AT_ADDRESS + ADDRESS_MAX <= AT_BELLS && AT_BELLS + BELLS * 8 <= AT_SLOTS_USED);

// A ring.
const AT_WHO: usize = 0;
const AT_WHO_LEN: usize = 8;
const AT_HOT: usize = LINE;
const AT_TAKEN: usize = 2 * LINE;
const AT_SEEN: usize = AT_TAKEN + 8;
const AT_SENDER: usize = 3 * LINE;
const AT_WHO_ADDRESS: usize = 4 * LINE;
const AT_PIECES: usize = 8 * LINE;
const AT_HELPED: usize = 9 * LINE;
pub const CONTROL_BYTES: usize = 10 * LINE;
const _: () = assert!(AT_WHO_ADDRESS + ADDRESS_MAX <= AT_PIECES);

impl Word for AtomicU64 {
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

/// Bits of a ring's sender word.
pub const SENDER_CLOSED: u64 = 1;
pub const STARVED: u64 = 2;

fn whole_pages(bytes: usize) -> usize {
    bytes.next_multiple_of(shared::page_size())
}

fn ring_stride() -> usize {
    whole_pages(CONTROL_BYTES + RING_BYTES)
}

pub fn header_bytes() -> usize {
    whole_pages(HEADER_BYTES)
}

// The marks, one line for each ring, and the table: `SLOT_WORDS` words in a line for each region.
const MARKS_BYTES: usize = MAX_RINGS * LINE;
/// The most regions that are shown; others are reached by asking.
pub const MAX_SLOTS: usize = 4096;
pub const SLOT_WORDS: usize = 6;
const TABLE_BYTES: usize = MAX_SLOTS * LINE;

fn mark_at(index: usize) -> usize {
    header_bytes() + index * LINE
}

fn slot_at(slot: usize) -> usize {
    header_bytes() + whole_pages(MARKS_BYTES) + slot * LINE
}

pub fn ring_at(index: usize) -> u64 {
    (slot_at(0) + whole_pages(TABLE_BYTES) + index * ring_stride()) as u64
}

/// What an endpoint with so many peers takes of the file system.
pub fn bytes_needed(rings: usize) -> usize {
    header_bytes() + whole_pages(rings * LINE) + rings * ring_stride()
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

/// A header, mapped, with the marks and the table.
#[derive(Debug)]
pub struct Header {
    map: Map,
    /// Where the marks and the table begin: asking for the size of a page each time would take longer than a copy.
    marks: NonNull<u8>,
    table: NonNull<u8>,
}

// SAFETY: as for `Map`, into which both point.
unsafe impl Send for Header {}

/// Why a file is no region of ours to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    NotARegion,
    OtherVersion(u64),
    OtherAddress,
}

impl Header {
    pub fn map(fd: BorrowedFd<'_>) -> io::Result<Header> {
        let map = Map::new(fd, 0, ring_at(0) as usize)?;
        // SAFETY: the mapping ends behind the table, which is behind the marks.
        let (marks, table) = unsafe { (map.base().add(mark_at(0)), map.base().add(slot_at(0))) };
        Ok(Header { map, marks, table })
    }

    /// Fills a fresh header.
    pub fn init(&self, owner: &Owner<'_>) {
        let set = |at, value| self.map.word(at).store(value, Ordering::Relaxed);
        set(AT_INSTANCE, owner.instance);
        set(AT_PID, u64::from(owner.pid));
        set(AT_PROBE, owner.probe);
        set(AT_FENCE, u64::from(owner.fence));
        set(AT_ADDRESS_LEN, owner.address.len() as u64);
        set(AT_HERE, self.map.base().as_ptr() as u64);
        set(AT_CLAIMS, 1);
        set(AT_VERSION, VERSION);
        self.map.write(AT_ADDRESS, owner.address);
        self.map.word(AT_MAGIC).store(MAGIC, Ordering::Release);
    }

    pub fn check(&self, address: &[u8]) -> Result<(), Unfit> {
        let get = |at| self.map.word(at).load(Ordering::Acquire);
        if get(AT_MAGIC) != MAGIC {
            return Err(Unfit::NotARegion);
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

    /// Where the owner has this mapped: a process that has this file there is the owner's.
    pub fn here(&self) -> u64 {
        self.map.word(AT_HERE).load(Ordering::Relaxed)
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

    /// One bit for each of 64 rings that has news. Panics for a `group` that is not below `BELLS`.
    pub fn bells(&self, group: usize) -> &AtomicU64 {
        assert!(group < BELLS);
        self.map.word(AT_BELLS + group * 8)
    }

    pub fn ring_bell(&self, index: usize) {
        self.bells(index / 64).fetch_or(1 << (index % 64), Ordering::Release);
    }

    fn state_word(&self, index: usize) -> &AtomicU32 {
        assert!(index < MAX_RINGS);
        // SAFETY: within the header, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.map.base().as_ptr().add(AT_STATES + index * 4).cast::<AtomicU32>() }
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

    /// Odd while the sender of a ring works on memory of the owner's by itself. The ring is claimed, which gave it
    /// memory. Panics for an `index` that is not below `MAX_RINGS`.
    #[inline(always)]
    pub fn mark(&self, index: usize) -> &AtomicU64 {
        assert!(index < MAX_RINGS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.marks.as_ptr().add(index * LINE).cast::<AtomicU64>() }
    }

    /// Set by the first who works so.
    pub fn reached(&self) -> &AtomicU64 {
        self.map.word(AT_REACHED)
    }

    /// Slots of the table that have memory lie below this.
    pub fn slots_used(&self) -> usize {
        (self.map.word(AT_SLOTS_USED).load(Ordering::Acquire) as usize).min(MAX_SLOTS)
    }

    pub fn set_slots_used(&self, used: usize) {
        self.map.word(AT_SLOTS_USED).store(used as u64, Ordering::Release);
    }

    /// How often a region was put into the table.
    pub fn changes(&self) -> &AtomicU64 {
        self.map.word(AT_CHANGES)
    }

    /// One word of a slot. Panics for what is not in the table.
    #[inline(always)]
    pub fn slot(&self, slot: usize, word: usize) -> &AtomicU64 {
        assert!(slot < MAX_SLOTS && word < SLOT_WORDS);
        // SAFETY: within the mapping, as asserted, and aligned; every process uses it as an atomic.
        unsafe { &*self.table.as_ptr().add(slot * LINE + word * 8).cast::<AtomicU64>() }
    }
}

/// Sees that slots of the table below `slots` have memory.
pub fn allocate_slots(fd: BorrowedFd<'_>, slots: usize) -> io::Result<()> {
    shared::allocate(fd, slot_at(0) as u64, (slots.min(MAX_SLOTS) * LINE) as u64)
}

/// The instance in a region's file, without mapping it.
pub fn instance_in(fd: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes = [0u8; AT_INSTANCE + 8];
    let (magic, instance) = (AT_MAGIC..AT_MAGIC + 8, AT_INSTANCE..AT_INSTANCE + 8);
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    let whole = shared::read_start(fd, &mut bytes) && word(bytes.get(magic)?)? == MAGIC;
    whole.then(|| word(bytes.get(instance)?))?
}

fn read_address(map: &Map, len_at: usize, at: usize) -> Option<Vec<u8>> {
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

/// A ring, mapped.
#[derive(Debug)]
pub struct Ring {
    map: Map,
    lines: NonNull<u8>,
}

// SAFETY: as for `Map`, into which `lines` points.
unsafe impl Send for Ring {}

impl Ring {
    /// Sees that the ring has memory, and maps it.
    pub fn map(fd: BorrowedFd<'_>, index: usize) -> io::Result<Ring> {
        shared::allocate(fd, mark_at(index) as u64, LINE as u64)?;
        shared::allocate(fd, ring_at(index), ring_stride() as u64)?;
        let map = Map::new(fd, ring_at(index), ring_stride())?;
        // SAFETY: the mapping is longer than the control block.
        let lines = unsafe { map.base().add(CONTROL_BYTES) };
        Ok(Ring { map, lines })
    }

    /// Gives the memory back. Nobody may use the ring any more.
    pub fn free(self, fd: BorrowedFd<'_>, index: usize) {
        drop(self);
        // A file system that cannot do this only keeps the memory until the file goes.
        let _ = shared::release(fd, ring_at(index), ring_stride() as u64);
    }

    /// Empties the ring and says whose it is.
    pub fn init(&self, instance: u64, address: &[u8]) {
        for at in [AT_HOT, AT_TAKEN, AT_SEEN, AT_SENDER, AT_PIECES, AT_HELPED] {
            self.map.word(at).store(0, Ordering::Relaxed);
        }
        self.clear(0);
        self.map.word(AT_WHO).store(instance, Ordering::Relaxed);
        self.map.word(AT_WHO_LEN).store(address.len() as u64, Ordering::Relaxed);
        self.map.write(AT_WHO_ADDRESS, address);
    }

    /// The instance of whoever claimed it; nobody's once the owner has taken it back.
    pub fn claimed_by(&self) -> u64 {
        self.map.word(AT_WHO).load(Ordering::Relaxed)
    }

    /// False in a child of fork.
    pub fn is_ours(&self) -> bool {
        self.map.is_ours()
    }

    /// Whose it is: instance and address.
    pub fn who(&self) -> Option<(u64, Vec<u8>)> {
        let address = read_address(&self.map, AT_WHO_LEN, AT_WHO_ADDRESS)?;
        Some((self.claimed_by(), address))
    }

    #[inline]
    pub fn hot(&self) -> &AtomicU64 {
        self.map.word(AT_HOT)
    }

    pub fn sender(&self) -> &AtomicU64 {
        self.map.word(AT_SENDER)
    }

    /// All records up to this position have been looked at: said when the ring is found empty.
    #[inline]
    pub fn seen(&self) -> &AtomicU64 {
        self.map.word(AT_SEEN)
    }

    pub fn pieces(&self) -> &AtomicU64 {
        self.map.word(AT_PIECES)
    }

    pub fn helped(&self) -> &AtomicU64 {
        self.map.word(AT_HELPED)
    }

    /// The first byte of a line, masked into the ring.
    #[inline]
    fn line(&self, line: u64) -> *mut u8 {
        let at = (line & (RING_LINES - 1)) as usize * LINE;
        // SAFETY: the mapping holds the control block and RING_LINES lines behind it.
        unsafe { self.lines.as_ptr().add(at) }
    }

    #[inline]
    fn control_word(&self, line: u64) -> &AtomicU64 {
        // SAFETY: aligned and within the mapping; the first word of a line where a record may begin is only used so.
        unsafe { &*self.line(line).cast::<AtomicU64>() }
    }

    /// Writes a header's words behind the control word of a line.
    #[inline]
    pub fn write_header(&self, line: u64, header: [u64; 4]) {
        // SAFETY: the header lies in the line, which is the producer's, and is aligned there.
        unsafe {
            self.line(line)
                .add(super::ring::HEADER_AT)
                .cast::<[u64; 4]>()
                .write(header)
        };
    }

    #[inline]
    pub fn read_header(&self, line: u64) -> [u64; 4] {
        // SAFETY: the header lies in the line. A peer that writes meanwhile breaks the protocol and makes us read
        // other bytes, which are checked as any bytes are.
        unsafe { self.line(line).add(super::ring::HEADER_AT).cast::<[u64; 4]>().read() }
    }

    /// The body of a record.
    ///
    /// # Safety
    /// The record is this side's: reserved and not published, or found and not let go of. So it lies within the ring. A
    /// peer that breaks the protocol can change the bytes, nothing else.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn body(&self, line: u64, len: usize) -> &mut [u8] {
        let at = super::ring::body_at(len);
        debug_assert!(line as usize * LINE + at + len <= RING_BYTES);
        // SAFETY: within the ring, and this side's as the caller promised.
        unsafe { core::slice::from_raw_parts_mut(self.line(line).add(at), len) }
    }

    /// Brings a line that will soon be written into this core's cache.
    #[inline]
    pub fn prepare(&self, line: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint; the address is within the mapping. The intrinsic would ask for reading only.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) self.line(line), options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}

impl Lines for Ring {
    const COUNT: u64 = RING_LINES;

    #[inline]
    fn control(&self, line: u64) -> u64 {
        self.control_word(line).load(Ordering::Acquire)
    }

    #[inline]
    fn publish(&self, line: u64, word: u64) {
        self.control_word(line).store(word, Ordering::Release);
    }

    #[inline]
    fn clear(&self, line: u64) {
        self.control_word(line).store(0, Ordering::Relaxed);
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.map.word(AT_TAKEN).load(Ordering::Acquire)
    }

    #[inline]
    fn give_back(&self, position: u64) {
        self.map.word(AT_TAKEN).store(position, Ordering::Release);
    }
}
