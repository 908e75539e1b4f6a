//! The ring: records from one producer to one consumer, which share nothing but its lines.
//!
//! A ring is a power of two of cells, of 32 bytes, two to a cache line. A record takes cells in a row, a line at least
//! if it does not fit into one cell (`record`), and ends before the end of the ring; if it does not fit there, or would
//! begin in the middle of a line, a skip is written before it. The first word of a record, the control word, is written
//! last: it tells that the record is there and how long it is. So a short record moves one cache line, or half of one,
//! and neither side does a read-modify-write.
//!
//! Short records begin at cell 0 again already behind the front, 8 KiB of a large ring, so that its lines stay in
//! both processors' first caches, for either direction. While the consumer has not read the front yet, they go on
//! behind it; and if it stops when they have just begun at cell 0 again, they go on behind what it has not read, over
//! another skip.
//!
//! The control word has the number of the lap around the ring in which it was written. So the consumer knows a word of
//! an earlier lap as old, and nobody has to clear it. But the body of a longer record covers the first words of its
//! later lines with anything: where the last thing written to a line was a body, the producer clears the first word of
//! the line behind the new record, where the consumer looks next, before it publishes that record. The second cell of a
//! line it clears whenever a record takes the first alone. The consumer gives cells back as credit, a quarter of the
//! front at a time, in a line of its own.
//!
//! What two peers say by turns (`dialogue`) does not go through the ring, but has its place among the records. A record
//! that was written behind such a turn has a mark in its control word, so that the consumer looks for the turn first.
//!
//! A pair of peers begins with a small ring. When that is too small, the producer goes on in a larger one that nobody
//! has used: a control word in the cell behind the last record, which is always free, says so. Positions count on
//! through the change, so cells of the first ring that were given back stay given back.
//!
//! This file is the order of loads and stores, over any memory that is `Cells`: shared memory (`lane`), plain memory
//! (`tests`), and loom's (`model`). Neither side trusts the other: an impossible word is `Broken`, and no index leaves
//! the ring. Called by `outbound`, `inbound` and `recall`.

mod record;

use record::{AFTER_TURN, LEN, MOVED, SKIP, decode, encode, pad};
pub(super) use record::{Broken, CELL, Form, HEADER_AT, LINE, Record, Size, Slot, longest};

/// Memory of a ring, with the orderings that the protocol needs. A release and its acquire have one SYNC POINT name.
pub(super) trait Cells {
    fn size(&self) -> Size;
    /// SYNC POINT record: acquire.
    fn control(&self, cell: u64) -> u64;
    /// SYNC POINT record: release.
    fn publish(&self, cell: u64, word: u64);
    /// Relaxed: a later `publish` makes it visible.
    fn clear(&self, cell: u64);
    /// SYNC POINT space: acquire.
    fn taken(&self) -> u64;
    /// SYNC POINT space: release.
    fn give_back(&self, position: u64);
}

/// From what the consumer has read to the last record there are at most so many rings, as skipped cells count.
const MOST_WAITING: u64 = 2;
/// No position.
const NOWHERE: u64 = u64::MAX;

/// Cells of traffic after which a pair deserves a large ring. In a small one the producer reads the consumer's credit
/// every few messages, a cache line from the other processor each time: 10 ns for a message of 64 bytes.
const OUTGROWN_AFTER: u64 = 8192;

/// The writing side.
#[derive(Debug)]
pub(super) struct Producer {
    /// Cells written since the ring began.
    tail: u64,
    /// The consumer's credit as last read: read again only when the ring seems full by it.
    taken: u64,
    /// From this position on a small ring counts as full, so that its owner replaces it by a large one.
    outgrown_at: u64,
    /// The position of the last skip to cell 0. Until the consumer has passed it, the cells behind it to the end of the
    /// ring are free, or hold records that were put there since (`over_what_is_unread`).
    skipped_at: u64,
    /// What the control word of the next record has besides: whether a turn of the dialogue comes before it.
    mark: u64,
    /// A bit for each line whose first word may be anything: part of a body, or older than the ring.
    covered: Box<[u64]>,
}

/// That of a ring that nobody has used.
fn all_covered(size: Size) -> Box<[u64]> {
    vec![!0; size.cells().div_ceil(2 * 64) as usize].into()
}

impl Producer {
    /// Of a ring that nobody has used.
    pub(super) fn of<C: Cells>(ring: &C) -> Producer {
        Producer {
            tail: 0,
            taken: 0,
            outgrown_at: OUTGROWN_AFTER,
            skipped_at: NOWHERE,
            mark: 0,
            covered: all_covered(ring.size()),
        }
    }

    /// Room for a body of `len` bytes; None while the ring is full.
    #[inline(always)]
    pub(super) fn reserve<C: Cells>(&mut self, ring: &C, form: Form, len: usize) -> Result<Option<Slot>, Broken> {
        let size = ring.size();
        let end = if form == Form::Lines {
            size.end_for(form.cells(len))
        } else {
            size.front
        };
        self.reserve_until(end, ring, form, len)
    }

    /// The same, but only behind the last record, or at the beginning of the ring if it does not fit there: what stood
    /// in the ring further on, in this order, has room here.
    pub(super) fn reserve_behind<C: Cells>(
        &mut self,
        ring: &C,
        form: Form,
        len: usize,
    ) -> Result<Option<Slot>, Broken> {
        self.reserve_until(ring.size().cells(), ring, form, len)
    }

    /// Whether `reserve_behind` would find room for records like these, one behind the other from a position on. It may
    /// not where the records that stood there were spread by skips over more than one ring.
    pub(super) fn fit_behind<C: Cells>(&self, ring: &C, position: u64, records: impl Iterator<Item = Record>) -> bool {
        let size = ring.size();
        let behind = records.fold(position, |at, record| {
            let need = record.cells;
            at + size.skip(size.cell(at), need, size.cells()) + need
        });
        check_taken(ring.taken(), self.tail, size).is_ok_and(|taken| behind < taken + size.cells())
    }

    /// Room that is before `end` if the consumer has read what is at the beginning.
    #[inline(always)]
    fn reserve_until<C: Cells>(&mut self, end: u64, ring: &C, form: Form, len: usize) -> Result<Option<Slot>, Broken> {
        let (size, need) = (ring.size(), form.cells(len));
        let start = size.cell(self.tail);
        let mut skip = size.skip(start, need, end);
        // One cell more, behind the record, is kept free for the consumer to look at.
        if self.tail + need + skip >= self.taken + size.cells() {
            match self.look_for_room(ring, start, need, skip)? {
                Some(found) => skip = found,
                None => return Ok(None),
            }
        }
        let cell = size.cell(start + skip);
        // Done here and not in `publish`: waiting there for this line from the other core makes it likely that the
        // record's own lines are taken away once more.
        self.uncover(ring, size.cell(cell + need));
        let cells = need;
        Ok(Some(Slot {
            record: Record { cell, form, len, cells },
            skip,
        }))
    }

    /// The cells to skip by what the consumer has read by now; None while the ring is full.
    #[inline(never)]
    fn look_for_room<C: Cells>(&mut self, ring: &C, start: u64, need: u64, skip: u64) -> Result<Option<u64>, Broken> {
        let size = ring.size();
        self.taken = check_taken(ring.taken(), self.tail, size)?;
        if self.is_outgrown() {
            return Ok(None);
        }
        // It may go on behind the front that the consumer has not read yet.
        let pad = pad(start, need);
        let behind = (start + pad + need <= size.cells()).then_some(pad);
        let fits = |skip: &u64| self.tail + need + skip < self.taken + size.cells();
        let found = [Some(skip), behind].into_iter().flatten().find(fits);
        Ok(found.or_else(|| self.over_what_is_unread(size, start, need)))
    }

    /// Where the consumer has not come to the last skip to cell 0 yet, what it has not read is in the way of what
    /// follows that skip. Behind it are cells that the skip left out: says how many to skip to those.
    fn over_what_is_unread(&self, size: Size, start: u64, need: u64) -> Option<u64> {
        let is_unread = self.taken <= self.skipped_at && self.skipped_at < self.tail;
        let from = start.max(size.cell(self.skipped_at) + 1);
        let from = from + pad(from, need);
        // The cell behind the record is kept free, and cell 0 is not.
        (is_unread && from + need < size.cells()).then(|| from - start)
    }

    /// Makes the record in `slot` visible.
    #[inline(always)]
    pub(super) fn publish<C: Cells>(&mut self, ring: &C, slot: Slot) {
        let (size, Slot { record, skip }) = (ring.size(), slot);
        let mark = core::mem::take(&mut self.mark);
        ring.publish(record.cell, size.lap(self.tail + skip) | encode(record) | mark);
        if skip > 0 {
            ring.publish(size.cell(self.tail), size.lap(self.tail) | SKIP | skip);
            if record.cell == 0 {
                self.skipped_at = self.tail;
            }
        }
        self.tail += skip + record.cells;
        if record.form == Form::Lines {
            self.cover(record.cell + 2, record.cells - 2);
        }
    }

    /// A turn of the dialogue was written, which comes before the next record.
    #[inline(always)]
    pub(super) fn behind_a_turn(&mut self) {
        self.mark = AFTER_TURN;
    }

    /// Goes on in another ring, no smaller than this one.
    pub(super) fn move_on<C: Cells>(&mut self, from: &C, to: &C) {
        let size = from.size();
        to.clear(to.size().cell(self.tail + 1));
        // The cell behind the last record is always kept free.
        from.publish(size.cell(self.tail), size.lap(self.tail) | MOVED);
        self.tail += 1;
        self.outgrown_at = u64::MAX;
        self.skipped_at = NOWHERE;
        self.covered = all_covered(to.size());
    }

    /// Whether the ring counts as full only because of its traffic.
    pub(super) fn is_outgrown(&self) -> bool {
        self.tail >= self.outgrown_at
    }

    /// Lets the traffic of this ring go on for 64 times as long before it counts as full again, in case no large one is
    /// to be had.
    pub(super) fn stay(&mut self) {
        self.outgrown_at = self.tail + 64 * OUTGROWN_AFTER;
    }

    /// Whether the last record has left half of its line free.
    #[inline(always)]
    pub(super) fn is_mid_line(&self) -> bool {
        self.tail % 2 != 0
    }

    /// Cells written since the first ring began.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.tail
    }

    /// The next `count` lines, each by its first cell, as far as they are known to be free; none if the last record has
    /// left half of its line free. At the end of the front the next record may begin elsewhere, which is seldom.
    #[inline(always)]
    pub(super) fn next_lines(&self, size: Size, count: u64) -> impl Iterator<Item = u64> + use<> {
        let free = (self.taken + size.cells()).saturating_sub(self.tail) / 2;
        let count = if self.is_mid_line() { 0 } else { count.min(free) };
        let from = self.tail;
        (0..count).map(move |line| size.cell(from + 2 * line))
    }

    /// Takes back all records from a position on. The consumer has not read them, and must not read now (`exclusion`).
    #[cold]
    pub(super) fn rewind<C: Cells>(&mut self, ring: &C, position: u64) {
        let Some(gone) = self
            .tail
            .checked_sub(position)
            .filter(|gone| (1..=MOST_WAITING * ring.size().cells()).contains(gone))
        else {
            return;
        };
        let size = ring.size();
        let cell = size.cell(position);
        let until_end = gone.min(size.cells() - cell);
        self.cover(cell, until_end);
        self.cover(0, (gone - until_end).min(size.cells()));
        self.tail = position;
        self.taken = self.taken.min(position);
        if self.skipped_at >= position {
            self.skipped_at = NOWHERE;
        }
        self.uncover(ring, cell);
    }

    /// Clears the first word of a cell if it may be anything.
    #[inline(always)]
    fn uncover<C: Cells>(&mut self, ring: &C, cell: u64) {
        if cell % 2 != 0 {
            return ring.clear(cell);
        }
        let line = cell / 2;
        let bit = 1 << (line % 64);
        if let Some(word) = self
            .covered
            .get_mut(line as usize / 64)
            .filter(|word| **word & bit != 0)
        {
            *word &= !bit;
            ring.clear(cell);
        }
    }

    /// Notes that the lines which begin among these cells were written as a body.
    fn cover(&mut self, from: u64, count: u64) {
        let (mut line, end) = (from.div_ceil(2), (from + count).div_ceil(2));
        while line < end {
            let here = (64 - line % 64).min(end - line);
            if let Some(word) = self.covered.get_mut(line as usize / 64) {
                *word |= !0 >> (64 - here) << (line % 64);
            }
            line += here;
        }
    }
}

#[inline]
fn check_taken(taken: u64, tail: u64, size: Size) -> Result<u64, Broken> {
    match tail.checked_sub(taken) {
        Some(waiting) if waiting <= MOST_WAITING * size.cells() => Ok(taken),
        _ => Err(Broken),
    }
}

/// The reading side.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    /// Cells taken since the ring began.
    head: u64,
    /// The credit that the producer was given last.
    given: u64,
    /// Where a record comes next before which a turn of the dialogue was taken.
    turn_passed: Option<u64>,
}

impl Consumer {
    /// Cells taken since the ring began.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.head
    }

    /// A second reader, from this position on, that gives nothing back: with `pass` in place of `advance`.
    pub(super) fn at(position: u64) -> Consumer {
        Consumer {
            head: position,
            given: position,
            turn_passed: None,
        }
    }

    /// Goes on to the next record without giving lines back.
    pub(super) fn pass(&mut self, record: Record) {
        self.head += record.cells;
    }

    /// Whether there is anything to read. One load.
    #[inline]
    pub(super) fn has_news<C: Cells>(&self, ring: &C) -> bool {
        let size = ring.size();
        ring.control(size.cell(self.head)) >= size.lap(self.head)
    }

    /// The oldest record. It stays until `advance`.
    #[inline(always)]
    pub(super) fn next<C: Cells>(&mut self, ring: &C) -> Result<Option<Record>, RingEnd> {
        let (size, from) = (ring.size(), self.head);
        loop {
            let (cell, lap) = (size.cell(self.head), size.lap(self.head));
            let word = ring.control(cell);
            if let Ok(found) = decode(size, cell, word, lap) {
                return Ok(Some(found));
            }
            if word < lap && self.head == from {
                return Ok(None);
            }
            match self.unusual(size, word, from)? {
                Unusual::Skip => {}
                Unusual::AfterTurn => {
                    let found = decode(size, cell, word & !AFTER_TURN, lap);
                    return found.map_or(Err(RingEnd::Broken), |found| Ok(Some(found)));
                }
            }
        }
    }

    /// The oldest record, if it is of one line or less, and nothing is to be done before it.
    #[inline(always)]
    pub(super) fn short<C: Cells>(&self, ring: &C) -> Option<Record> {
        let (size, cell) = (ring.size(), ring.size().cell(self.head));
        record::decode_short(cell, ring.control(cell), size.lap(self.head))
    }

    /// What a word stands for that tells of something else than a usual record. Goes on behind skipped cells, where a
    /// record is. `from`: where `next` began.
    // The record is not returned from here, so that the usual one stays in registers.
    #[cold]
    fn unusual(&mut self, size: Size, word: u64, from: u64) -> Result<Unusual, RingEnd> {
        let (lap, has_skipped) = (size.lap(self.head), self.head != from);
        match word {
            _ if word & !LEN == lap | SKIP && !has_skipped && word & LEN > 0 => {
                self.head += word & LEN;
                Ok(Unusual::Skip)
            }
            _ if word == lap | MOVED && !has_skipped => Err(RingEnd::Moved),
            _ if word < lap || word & AFTER_TURN == 0 => Err(RingEnd::Broken),
            _ if self.turn_passed == Some(from) => Ok(Unusual::AfterTurn),
            _ => {
                // The turn was written before the skip.
                self.head = from;
                Err(RingEnd::Turn)
            }
        }
    }

    /// After `next` has said `Turn`: the turn was taken, so the record comes next.
    #[inline]
    pub(super) fn pass_turn(&mut self) {
        self.turn_passed = Some(self.head);
    }

    /// The record that `next` gave is left for later. If it is taken back until then, a turn may come before what is
    /// there next.
    #[cold]
    pub(super) fn leave(&mut self) {
        self.turn_passed = None;
    }

    /// Releases a record that was read. True when lines were given back.
    #[inline]
    pub(super) fn advance<C: Cells>(&mut self, ring: &C, record: Record) -> bool {
        self.head += record.cells;
        if self.head - self.given < ring.size().front / 4 {
            return false;
        }
        self.given = self.head;
        ring.give_back(self.head);
        true
    }

    /// Goes on in the producer's next ring, after `next` has said `Moved`.
    pub(super) fn follow(&mut self) {
        self.head += 1;
    }
}

/// Why there is no next record now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingEnd {
    Broken,
    /// The producer goes on in another ring.
    Moved,
    /// There is a record, but a turn of the dialogue comes before it: see `Consumer::pass_turn`.
    Turn,
}

/// What a control word stands for that tells of no usual record.
enum Unusual {
    Skip,
    /// A record, whose turn of the dialogue was taken.
    AfterTurn,
}

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod model;
