//! A lane: what one sender has in an endpoint's file. A control block and a small ring, which are claimed together, a
//! large ring when the small one is too small, and a wide one when that is full time and again. After the claim each
//! cache line has one writer, but where two are named:
//!
//! | line of the control block | written by | holds |
//! | --- | --- | --- |
//! | claimer | the sender, once; the owner, when it takes the lane back | its instance, its address |
//! | hot | the receiver, seldom | whether it polls this lane without a bell, how quickly bodies go through it and by turns, whether it wants a large one |
//! | taken | the receiver, every few records and around each read | the credit, how far it has read, here and in the dialogue, whether it reads |
//! | sender | the sender, seldom; the receiver clears that it is starved | whether it has closed, is starved, or takes records back (`recall`); how quickly it copies to either place |
//! | pieces | both, for a dual copy | which pieces nobody has taken yet (`dual_copy`) |
//! | helped | the sender, for a dual copy | how many pieces it has copied |
//! | the last six | both, by turns | what they say to each other (`dialogue`) |
//!
//! - `rows`: those words and the lines of a ring, as they are read and written.
//!
//! Two lanes share a page, so the memory of one is released when the other is free too and nobody is claiming it. Knows
//! nothing of what records mean; made by `outbound` and `housekeeping`, used by them and by `inbound`.

mod rows;

use super::ahead;
use super::dialogue;
use super::layout::{FileHeader, LOCK_LANES, MAX_LANES, lanes_at, read_address};
use super::name::ADDRESS_MAX;
use super::ring::{Cells, LINE, Size};
use crate::sys::shared::{self, FileMap};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
pub(super) use rows::Rows;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

const AT_CLAIMER: usize = 0;
const AT_CLAIMER_LEN: usize = 8;
const AT_HOT: usize = LINE;
const AT_RING_SPEED: usize = AT_HOT + 8;
const AT_DIALOGUE_SPEED: usize = AT_HOT + 16;
const AT_ROOM_WANTED: usize = AT_HOT + 24;
const AT_TAKEN: usize = 2 * LINE;
const AT_SEEN: usize = AT_TAKEN + 8;
const AT_READING: usize = AT_SEEN + 8;
const AT_HEARD: usize = AT_READING + 8;
const AT_SENDER: usize = 3 * LINE;
const AT_RECALLING: usize = AT_SENDER + 8;
const AT_FILLING: usize = AT_SENDER + 16;
const AT_SAYING: usize = AT_SENDER + 24;
const AT_CLAIMER_ADDRESS: usize = 4 * LINE;
const AT_PIECES: usize = 8 * LINE;
const AT_HELPED: usize = 9 * LINE;
pub(super) const DIALOGUE_AT: usize = 10 * LINE;
/// The length of the control block, which the small ring follows.
pub(super) const CONTROL_BYTES: usize = 16 * LINE;
const _: () = assert!(AT_CLAIMER_ADDRESS + ADDRESS_MAX <= AT_PIECES);

/// The ring that each pair begins with. Every packet fits that carries no bytes of a program: they have 256 at most.
pub(super) const SMALL: Size = Size::of(32);
/// Measured: 128 KiB gained nothing over 64 KiB, for small messages or for streams, while both sides poll.
pub(super) const LARGE: Size = Size::of(2048);
/// What the other side takes when it looks next has to lie somewhere: 256 messages of 4 KiB to a receiver that computes
/// take one look, in a ring of 512 KiB three, and through a large one 18. Of all of them only the front is used while
/// both sides poll.
pub(super) const WIDE: Size = Size::of(1 << 16);
pub(super) const LANE_BYTES: usize = 2048;
/// A large ring, and the room of the dialogue behind it, if there was plenty of memory.
pub(super) const LARGE_BYTES: usize = LARGE.bytes() + dialogue::ROOM;
/// The lines of the dialogue in the control block.
pub(super) const DIALOGUE_BYTES: usize = CONTROL_BYTES - DIALOGUE_AT;
const _: () = assert!(CONTROL_BYTES + SMALL.bytes() == LANE_BYTES);

/// Bits of the sender word.
pub(super) const SENDER_CLOSED: u64 = 1;
pub(super) const STARVED: u64 = 2;
/// The kernel gives one of the two sides no barrier over the other, so the receiver fences before it looks for
/// `STARVED`.
pub(super) const FENCED: u64 = 4;
/// Behind the large ring is the room of the dialogue.
pub(super) const HAS_ROOM: u64 = 8;

pub(super) fn lane_at(index: usize) -> usize {
    lanes_at() + index * LANE_BYTES
}

fn large_at(index: usize) -> u64 {
    (lanes_at() + MAX_LANES * LANE_BYTES + index * LARGE_BYTES) as u64
}

fn wide_at(index: usize) -> u64 {
    large_at(MAX_LANES) + (index * WIDE.bytes()) as u64
}

/// Allocates a lane's memory.
fn allocate_lane(fd: BorrowedFd<'_>, index: usize) -> io::Result<()> {
    shared::allocate(fd, lane_at(index) as u64, LANE_BYTES as u64)
}

/// A lane, mapped: the ring in use and its control block.
#[derive(Debug)]
pub(super) struct Lane {
    rows: Rows,
    /// The ring that was in use before this one.
    earlier: Option<Rows>,
    /// Where the lane is in `lanes`.
    at: usize,
    lanes: Arc<FileMap>,
    large: Arc<OnceLock<LargeMap>>,
    wide: Option<FileMap>,
}

/// A large ring, mapped, and the room of the dialogue behind it.
#[derive(Debug)]
pub(super) struct LargeMap(FileMap);

impl LargeMap {
    /// The room of the dialogue, if it has any: `dialogue::ROOM` bytes.
    pub(super) fn dialogue(&self) -> Option<NonNull<u8>> {
        // SAFETY: the mapping holds both.
        (self.0.len() >= LARGE_BYTES).then(|| unsafe { self.0.base().add(LARGE.bytes()) })
    }
}

// SAFETY: the pointers point into the `FileMap`s beside them, which may be sent and live as long.
unsafe impl Send for Lane {}

impl Lane {
    /// For a sender: allocates the lane, and maps its page.
    pub(super) fn map(fd: BorrowedFd<'_>, index: usize) -> io::Result<Lane> {
        allocate_lane(fd, index)?;
        let page = shared::page_size();
        let first = lane_at(index) / page * page;
        let map = FileMap::new(fd, first as u64, page)?;
        Ok(Lane::within(Arc::new(map), lane_at(index) - first))
    }

    /// For the owner, which has mapped all lanes.
    pub(super) fn of(lanes: &Arc<FileMap>, fd: BorrowedFd<'_>, index: usize) -> io::Result<Lane> {
        // The claimer should have done this. If it did not, touching the lane would raise SIGBUS.
        allocate_lane(fd, index)?;
        Ok(Lane::within(lanes.clone(), index * LANE_BYTES))
    }

    fn within(lanes: Arc<FileMap>, at: usize) -> Lane {
        assert!(at <= lanes.len() && LANE_BYTES <= lanes.len() - at);
        // SAFETY: the lane lies in the mapping, as asserted.
        let [control, lines] = [at, at + CONTROL_BYTES].map(|at| unsafe { lanes.base().add(at) });
        Lane {
            rows: Rows {
                lines,
                control,
                size: SMALL,
            },
            earlier: None,
            at,
            lanes,
            large: Arc::default(),
            wide: None,
        }
    }

    /// Where records are written to, or read from.
    #[inline(always)]
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The room of the dialogue, if there is a large ring that has it.
    pub(super) fn dialogue_room(&self) -> Option<NonNull<u8>> {
        self.large.get()?.dialogue()
    }

    pub(super) fn is_large(&self) -> bool {
        self.large.get().is_some()
    }

    pub(super) fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// The ring that was in use before this one.
    pub(super) fn earlier_rows(&self) -> Option<&Rows> {
        self.earlier.as_ref()
    }

    /// Allocates and maps the next larger ring, which is the one in use from now on; with a large one the room of the
    /// dialogue, if its sender has said so (`HAS_ROOM`). Returns the ring before.
    pub(super) fn grow(&mut self, fd: BorrowedFd<'_>, index: usize) -> io::Result<Rows> {
        let is_first = !self.is_large();
        let (size, at, len) = if is_first {
            let has_room = self.sender().load(Ordering::Relaxed) & HAS_ROOM != 0;
            let len = if has_room { LARGE_BYTES } else { LARGE.bytes() };
            (LARGE, large_at(index), len)
        } else {
            (WIDE, wide_at(index), WIDE.bytes())
        };
        shared::allocate(fd, at, len as u64)?;
        let map = FileMap::new(fd, at, len)?;
        let (earlier, lines) = (self.rows, map.base());
        self.rows = Rows { lines, size, ..earlier };
        self.earlier = Some(earlier);
        if is_first {
            let _ = self.large.set(LargeMap(map));
        } else {
            self.wide = Some(map);
        }
        Ok(earlier)
    }

    /// Releases the lane's memory, and frees it for the next claimer. Its sender must be gone.
    pub(super) fn free(self, fd: BorrowedFd<'_>, index: usize, header: &FileHeader) {
        // The page may be kept for its neighbour. A sender that lives after all finds here that the lane was taken
        // back.
        self.hot().store(0, Ordering::Relaxed);
        self.word(AT_CLAIMER).store(0, Ordering::Relaxed);
        drop(self);
        // If the file system cannot release memory, it is kept until the file is removed.
        let _ = shared::release(fd, large_at(index), LARGE_BYTES as u64);
        let _ = shared::release(fd, wide_at(index), WIDE.bytes() as u64);
        release_page(fd, index, header);
        header.set_free(index);
    }

    /// Resets the control block and the ring, and writes whose it is.
    pub(super) fn init(&self, instance: u64, address: &[u8]) {
        let receivers = [
            AT_HOT,
            AT_RING_SPEED,
            AT_DIALOGUE_SPEED,
            AT_ROOM_WANTED,
            AT_TAKEN,
            AT_SEEN,
            AT_READING,
            AT_HEARD,
        ];
        let senders = [AT_SENDER, AT_RECALLING, AT_FILLING, AT_SAYING];
        for at in receivers
            .into_iter()
            .chain(senders)
            .chain([AT_PIECES, AT_HELPED, DIALOGUE_AT])
        {
            self.word(at).store(0, Ordering::Relaxed);
        }
        self.rows.clear(0);
        self.word(AT_CLAIMER).store(instance, Ordering::Relaxed);
        self.word(AT_CLAIMER_LEN).store(address.len() as u64, Ordering::Relaxed);
        self.lanes.write(self.at + AT_CLAIMER_ADDRESS, address);
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.rows.word(at)
    }

    /// The instance of the claimer; 0 or another one once the owner has taken the lane back.
    pub(super) fn claimed_by(&self) -> u64 {
        self.word(AT_CLAIMER).load(Ordering::Relaxed)
    }

    /// False in a child of fork.
    pub(super) fn is_ours(&self) -> bool {
        self.lanes.is_ours()
    }

    /// Instance and address of the claimer; None if there is no proper address.
    pub(super) fn claimer(&self) -> Option<(u64, Vec<u8>)> {
        let address = read_address(&self.lanes, self.at + AT_CLAIMER_LEN, self.at + AT_CLAIMER_ADDRESS)?;
        Some((self.claimed_by(), address))
    }

    #[inline]
    pub(super) fn hot(&self) -> &AtomicU64 {
        self.word(AT_HOT)
    }

    /// How quickly bodies go through the ring, as the receiver has judged: one of `copy_speed::SpeedClass`.
    #[inline]
    pub(super) fn ring_speed(&self) -> &AtomicU64 {
        self.word(AT_RING_SPEED)
    }

    /// The same for what goes by turns.
    #[inline]
    pub(super) fn dialogue_speed(&self) -> &AtomicU64 {
        self.word(AT_DIALOGUE_SPEED)
    }

    /// Whether the receiver wants a large ring, for the room that the dialogue of this lane then has.
    pub(super) fn room_wanted(&self) -> &AtomicU64 {
        self.word(AT_ROOM_WANTED)
    }

    pub(super) fn sender(&self) -> &AtomicU64 {
        self.word(AT_SENDER)
    }

    /// What a byte took the sender to copy into the ring, the last time that was measured: `copy_speed::per_byte`.
    pub(super) fn filling(&self) -> &AtomicU64 {
        self.word(AT_FILLING)
    }

    /// The same for what goes by turns.
    pub(super) fn saying(&self) -> &AtomicU64 {
        self.word(AT_SAYING)
    }

    /// The position up to which the receiver has read, written at the end of each look.
    #[inline]
    pub(super) fn seen(&self) -> &AtomicU64 {
        self.word(AT_SEEN)
    }

    /// How many parts of the sender's turns, in both dialogues, the receiver has read, written at the end of each look.
    #[inline]
    pub(super) fn heard(&self) -> &AtomicU64 {
        self.word(AT_HEARD)
    }

    /// The lines of the dialogue, their memory, and where its room is once there is a large ring.
    pub(super) fn dialogue(&self) -> (NonNull<u8>, Arc<FileMap>, Arc<OnceLock<LargeMap>>) {
        // SAFETY: they lie in the control block.
        let lines = unsafe { self.rows.control.add(DIALOGUE_AT) };
        (lines, self.lanes.clone(), self.large.clone())
    }

    pub(super) fn pieces(&self) -> &AtomicU64 {
        self.word(AT_PIECES)
    }

    pub(super) fn helped(&self) -> &AtomicU64 {
        self.word(AT_HELPED)
    }

    /// Asks for the line of a cell that will soon be written.
    #[inline]
    pub(super) fn prepare(&self, cell: u64) {
        ahead::to_write(self.rows.cell(cell));
    }

    /// Asks for the lines behind that of a cell, which will soon be read. At the end of the front, where records go on
    /// elsewhere, that is in vain.
    #[inline(always)]
    pub(super) fn expect_behind(&self, cell: u64) {
        let here = self.rows.cell(cell);
        for line in 1..=ahead::LINES as usize {
            ahead::to_read(here.wrapping_add(line * LINE));
        }
    }
}

#[cfg(any(test, fuzzing))]
impl Lane {
    /// Writes any word of the control block and the small ring, as a sender can.
    pub fn set_word(&self, word: usize, value: u64) {
        self.lanes
            .word(self.at + word % (LANE_BYTES / 8) * 8)
            .store(value, Ordering::Relaxed);
    }
}

/// Releases the page of a lane that is claimed still but no longer used, if the other lanes in it are free. Their locks
/// are held meanwhile, so that nobody claims one.
fn release_page(fd: BorrowedFd<'_>, index: usize, header: &FileHeader) {
    let page = shared::page_size();
    let (first, count) = (lane_at(index) / page * page, page / LANE_BYTES);
    let others = (0..count)
        .map(|other| index / count * count + other)
        .filter(|other| *other != index);
    let mut locked = Vec::new();
    let mut all = true;
    for other in others {
        let lock = LOCK_LANES + other as i64;
        // The lock first and then the state: a claimer locks a lane before it writes the state.
        all = shared::try_lock(fd, lock).unwrap_or(false);
        if all {
            locked.push(lock);
            all = header.claim(other).is_none();
        }
        if !all {
            break;
        }
    }
    if all {
        let _ = shared::release(fd, first as u64, page as u64);
    }
    for lock in locked {
        let _ = shared::unlock(fd, lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::shm::layout::OWNER_AT;

    #[test]
    fn the_last_ring_ends_before_the_owners_page() {
        assert!(wide_at(MAX_LANES) <= OWNER_AT);
    }
}
