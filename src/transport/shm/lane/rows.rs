//! The lines of a ring and the words of its control block, as records are written and read through them.
//!
//! Made by `Lane`, which keeps them mapped. Called through `Cells` by `ring`, through `ExclusionWords` by `exclusion`,
//! and by those who fill and read records.

use super::super::exclusion::ExclusionWords;
use super::super::ring::{CELL, Cells, Form, HEADER_AT, Record, Size};
use super::{AT_READING, AT_RECALLING, AT_SEEN, AT_TAKEN, CONTROL_BYTES};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// The lines of a ring, and the control block of its lane.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Rows {
    pub(super) lines: NonNull<u8>,
    pub(super) control: NonNull<u8>,
    pub(super) size: Size,
}

impl Rows {
    /// A word of the control block. `at` is one of the constants above, never a number from a peer.
    #[inline(always)]
    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at + 8 <= CONTROL_BYTES);
        // SAFETY: within the control block, as asserted, and aligned; other processes use it as an atomic too. `Lane`,
        // from which callers have the rows, keeps it mapped.
        unsafe { &*self.control.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// The first byte of a cell, masked into the ring.
    #[inline(always)]
    pub(super) fn cell(&self, cell: u64) -> *mut u8 {
        let at = self.size.cell(cell) as usize * CELL;
        // SAFETY: the mapping holds as many cells as the size tells.
        unsafe { self.lines.as_ptr().add(at) }
    }

    /// The first word of the header of a record that begins with this cell.
    #[inline(always)]
    fn header(&self, cell: u64) -> *mut u64 {
        // SAFETY: a header begins in its cell, behind the control word.
        unsafe { self.cell(cell).add(HEADER_AT).cast() }
    }

    /// Writes the header of a record behind its control word. See `Form::HalfLine`.
    #[inline(always)]
    pub(in super::super) fn write_header(&self, record: Record, header: [u64; 4]) {
        let at = self.header(record.cell);
        let [first, second, _, last] = header;
        // SAFETY: as many words as the form has room for lie in the record, which is the producer's, and are aligned
        // there.
        unsafe {
            match record.form {
                Form::HalfLine if record.len > 0 => at.cast::<[u64; 2]>().write([first, second]),
                Form::HalfLine => at.cast::<[u64; 3]>().write([first, second, last]),
                Form::OneLine | Form::Lines => at.cast::<[u64; 4]>().write(header),
            }
        }
    }

    /// What a record's header was. See `Form::HalfLine`.
    #[inline(always)]
    pub(in super::super) fn read_header(&self, record: Record) -> [u64; 4] {
        let at = self.header(record.cell);
        // SAFETY: as many words as the form has lie in the record. A peer that breaks the protocol may write meanwhile,
        // and change what is read; `wire::Header::from_words` checks whatever it is given.
        unsafe {
            match record.form {
                Form::HalfLine => {
                    let [first, second, last] = at.cast::<[u64; 3]>().read();
                    let last = if record.len == 0 { last } else { record.len as u64 };
                    [first, second, 0, last]
                }
                Form::OneLine | Form::Lines => at.cast::<[u64; 4]>().read(),
            }
        }
    }

    /// The body of a record.
    ///
    /// # Safety
    /// The record is this side's: reserved and not published yet, or read and not released yet, so it lies within the
    /// ring. A peer that breaks the protocol can change the bytes, nothing else.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(in super::super) unsafe fn body(&self, record: Record) -> &mut [u8] {
        let at = record.form.body_at();
        debug_assert!(record.cell as usize * CELL + at + record.len <= self.size.bytes());
        // SAFETY: within the ring, and this side's as the caller promised.
        unsafe { core::slice::from_raw_parts_mut(self.cell(record.cell).add(at), record.len) }
    }

    #[inline(always)]
    fn control_word(&self, cell: u64) -> &AtomicU64 {
        // SAFETY: aligned and within the mapping; as a control word, the first word of a cell is only used atomically.
        unsafe { &*self.cell(cell).cast::<AtomicU64>() }
    }
}

impl Cells for Rows {
    #[inline(always)]
    fn size(&self) -> Size {
        self.size
    }

    #[inline]
    fn control(&self, cell: u64) -> u64 {
        self.control_word(cell).load(Ordering::Acquire)
    }

    #[inline]
    fn publish(&self, cell: u64, word: u64) {
        self.control_word(cell).store(word, Ordering::Release);
    }

    #[inline]
    fn clear(&self, cell: u64) {
        self.control_word(cell).store(0, Ordering::Relaxed);
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.word(AT_TAKEN).load(Ordering::Acquire)
    }

    #[inline]
    fn give_back(&self, position: u64) {
        self.word(AT_TAKEN).store(position, Ordering::Release);
    }
}

impl ExclusionWords for Rows {
    #[inline(always)]
    fn begin_reading(&self) {
        self.word(AT_READING).store(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn end_reading(&self) {
        self.word(AT_READING).store(0, Ordering::Release);
    }

    fn is_reading(&self) -> bool {
        self.word(AT_READING).load(Ordering::Acquire) != 0
    }

    fn begin_recalling(&self) {
        self.word(AT_RECALLING).store(1, Ordering::Relaxed);
    }

    fn end_recalling(&self) {
        self.word(AT_RECALLING).store(0, Ordering::Release);
    }

    #[inline(always)]
    fn is_recalling(&self) -> bool {
        self.word(AT_RECALLING).load(Ordering::Acquire) != 0
    }

    #[inline(always)]
    fn set_seen(&self, position: u64) {
        self.word(AT_SEEN).store(position, Ordering::Release);
    }

    fn seen(&self) -> u64 {
        self.word(AT_SEEN).load(Ordering::Acquire)
    }
}
