//! The ring: records from one producer to one consumer, which share nothing but its lines.
//!
//! A ring is a power of two of 64-byte lines. A record takes whole lines in a row, and ends before the end of the ring;
//! if it does not fit there, a skip is written and the record begins at line 0. The first word of a record, the control
//! word, is written last: it tells that the record is there and how long it is. So a short record moves one cache line,
//! and neither side does a read-modify-write.
//!
//! Short records begin at line 0 again already behind the front, an eighth of a large ring, so that its lines stay in
//! both processors' first caches, for either direction. While the consumer has not read the front yet, they go on behind it;
//! and if it stops when they have just begun at line 0 again, they go on behind what it has not read, over another skip.
//!
//! The control word has the number of the lap around the ring in which it was written. So the consumer knows a word of
//! an earlier lap as old, and nobody has to clear it. But the body of a longer record covers the first words of its
//! later lines with anything: where the last thing written to a line was a body, the producer clears the first word of
//! the line behind the new record, where the consumer looks next, before it publishes that record. The consumer gives lines
//! back as credit, a quarter of the front at a time, in a line of its own.
//!
//! A pair of peers begins with a small ring. When that is too small, the producer goes on in a larger one that nobody
//! has used: a control word in the line behind the last record, which is always free, says so. Positions count on
//! through the change, so lines of the first ring that were given back stay given back.
//!
//! This file is the order of loads and stores, over any memory that is `Lines`: shared memory (`lane`), plain memory
//! (`tests`), and loom's (`model`). Neither side trusts the other: an impossible word is `Broken`, and no index leaves
//! the ring. Called by `outbound`, `inbound` and `recall`.

/// How many lines a ring has: a power of two, at most `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    mask: u64,
    shift: u32,
    /// So many lines are enough for short records. Where the processors share a cache, 1 KiB takes a sixth less in a front of 8
    /// KiB than in one of 16, and 4 KiB take a sixth less in one of 16 than in 64.
    front: u64,
}

impl Size {
    pub(super) const fn of(lines: u64) -> Size {
        assert!(lines.is_power_of_two() && lines <= MOST);
        Size {
            mask: lines - 1,
            shift: lines.trailing_zeros(),
            front: match lines {
                0..SMALLEST_FRONT => lines,
                _ if lines < 8 * SMALLEST_FRONT => SMALLEST_FRONT,
                _ => lines / 8,
            },
        }
    }

    #[inline(always)]
    pub(super) const fn lines(self) -> u64 {
        self.mask + 1
    }

    /// Where records of so many lines end: at the front, or if they are long, where three of them have room. With two, 16 KiB
    /// in two records take a tenth longer; with four, 4 KiB do.
    #[inline(always)]
    fn end_for(self, need: u64) -> u64 {
        (3 * need).max(self.front).min(self.lines())
    }

    /// The lines to skip before a record, so that it ends no further than `end` or begins at line 0.
    #[inline(always)]
    fn skip(self, start: u64, need: u64, end: u64) -> u64 {
        if start + need > end { self.lines() - start } else { 0 }
    }

    /// The line of a position, which counts all lines since the ring began.
    #[inline(always)]
    pub(super) fn line(self, position: u64) -> u64 {
        position & self.mask
    }

    /// The lap of a position, shifted to its place in a control word: control words of earlier laps are less than this.
    #[inline(always)]
    fn lap(self, position: u64) -> u64 {
        ((position >> self.shift) + 1) << LAP_SHIFT
    }
}

/// Memory of a ring, with the orderings that the protocol needs. A release and its acquire have one SYNC POINT name.
pub(super) trait Lines {
    fn size(&self) -> Size;
    /// SYNC POINT record: acquire.
    fn control(&self, line: u64) -> u64;
    /// SYNC POINT record: release.
    fn publish(&self, line: u64, word: u64);
    /// Relaxed: a later `publish` makes it visible.
    fn clear(&self, line: u64);
    /// SYNC POINT space: acquire.
    fn taken(&self) -> u64;
    /// SYNC POINT space: release.
    fn give_back(&self, position: u64);
}

pub(super) const LINE: usize = 64;
/// Where the header is in a record.
pub(super) const HEADER_AT: usize = 8;
/// Where a body is in a record: behind the header if it fits into that line, else from the second line on. The consumer
/// polls the first line, so that is written at once, at the end.
const BODY_NEAR: usize = 40;
const BODY_FAR: usize = LINE;
const NEAR_MOST: usize = LINE - BODY_NEAR;

// A control word, from the top: the lap, counted from 1; what it stands for; the length of a record's body, or the lines that
// are skipped, with this one.
const LEN: u64 = (1 << 16) - 1;
const RECORD: u64 = 1 << 16;
const SKIP: u64 = 2 << 16;
/// The producer goes on in another ring.
const MOVED: u64 = 3 << 16;
const LAP_SHIFT: u32 = 20;

/// The least lines of a front, and of a ring that has one.
const SMALLEST_FRONT: u64 = 16;
/// The most lines of a ring.
const MOST: u64 = 1024;
/// From what the consumer has read to the last record there are at most so many rings, as skipped lines count.
const MOST_WAITING: u64 = 2;
/// No position.
const NOWHERE: u64 = u64::MAX;
const _: () = assert!(longest(MOST) as u64 <= LEN);

/// Whether a record takes a single line.
#[inline]
pub(super) fn is_near(len: usize) -> bool {
    len <= NEAR_MOST
}

#[inline]
pub(super) fn body_at(len: usize) -> usize {
    if is_near(len) { BODY_NEAR } else { BODY_FAR }
}

#[inline]
fn lines_for(len: usize) -> u64 {
    (body_at(len) + len).div_ceil(LINE) as u64
}

/// The longest body for which there is always room once the consumer has taken everything; a longer one fits only where
/// it needs no skip. At least three quarters are free then, as up to a quarter (of the front) is not given back yet, and a
/// record, a skip before it and a free line behind it must fit there.
pub(super) const fn longest(lines: u64) -> usize {
    let most = (lines / 4 * 3 - 1) / 2;
    most.saturating_sub(1) as usize * LINE
}

/// Lines of traffic after which a pair deserves a large ring. In a small one the producer reads the consumer's credit
/// every few messages, a cache line from the other processor each time: 10 ns for a message of 64 bytes.
const OUTGROWN_AFTER: u64 = 4096;

/// The other side wrote a word that the protocol does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Room for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Its first line.
    pub line: u64,
    lines: u64,
    skip: u64,
}

/// The writing side.
#[derive(Debug)]
pub(super) struct Producer {
    /// Lines written since the ring began.
    tail: u64,
    /// The consumer's credit as last read: read again only when the ring seems full by it.
    taken: u64,
    /// From this position on a small ring counts as full, so that its owner replaces it by a large one.
    outgrown_at: u64,
    /// The position of the last skip to line 0. Until the consumer has passed it, the lines behind it to the end of the ring are
    /// free, or hold records that were put there since (`over_what_is_unread`).
    skipped_at: u64,
    /// A bit for each line whose first word may be anything: part of a body, or older than the ring.
    covered: [u64; MOST as usize / 64],
}

impl Default for Producer {
    fn default() -> Producer {
        Producer {
            tail: 0,
            taken: 0,
            outgrown_at: OUTGROWN_AFTER,
            skipped_at: NOWHERE,
            covered: [!0; MOST as usize / 64],
        }
    }
}

impl Producer {
    /// Room for a body of `len` bytes; None while the ring is full.
    #[inline(always)]
    pub(super) fn reserve<L: Lines>(&mut self, lines: &L, len: usize) -> Result<Option<Slot>, Broken> {
        let (size, need) = (lines.size(), lines_for(len));
        let end = if is_near(len) { size.front } else { size.end_for(need) };
        self.reserve_until(end, lines, need)
    }

    /// The same, but only behind the last record, or at the beginning of the ring if it does not fit there: what stood in
    /// the ring further on, in this order, has room here.
    pub(super) fn reserve_behind<L: Lines>(&mut self, lines: &L, len: usize) -> Result<Option<Slot>, Broken> {
        self.reserve_until(lines.size().lines(), lines, lines_for(len))
    }

    /// Whether `reserve_behind` would find room for records of these lengths, one behind the other from a position on. It may not
    /// where the records that stood there were spread by skips over more than one ring.
    pub(super) fn fit_behind<L: Lines>(&self, lines: &L, position: u64, lens: impl Iterator<Item = usize>) -> bool {
        let size = lines.size();
        let behind = lens.fold(position, |at, len| {
            let need = lines_for(len);
            at + size.skip(size.line(at), need, size.lines()) + need
        });
        check_taken(lines.taken(), self.tail, size).is_ok_and(|taken| behind < taken + size.lines())
    }

    /// Room for so many lines, of which the last is before `end` if the consumer has read what is at the beginning.
    #[inline(always)]
    fn reserve_until<L: Lines>(&mut self, end: u64, lines: &L, need: u64) -> Result<Option<Slot>, Broken> {
        let size = lines.size();
        let start = size.line(self.tail);
        let mut skip = size.skip(start, need, end);
        // One line more, behind the record, is kept free for the consumer to look at.
        if self.tail + need + skip >= self.taken + size.lines() {
            match self.look_for_room(lines, start, need, skip)? {
                Some(found) => skip = found,
                None => return Ok(None),
            }
        }
        let line = size.line(start + skip);
        // Done here and not in `publish`: waiting there for this line from the other core makes it likely that the
        // record's own lines are taken away once more.
        self.uncover(lines, size.line(line + need));
        Ok(Some(Slot {
            line,
            lines: need,
            skip,
        }))
    }

    /// The lines to skip by what the consumer has read by now; None while the ring is full.
    #[inline(never)]
    fn look_for_room<L: Lines>(&mut self, lines: &L, start: u64, need: u64, skip: u64) -> Result<Option<u64>, Broken> {
        let size = lines.size();
        self.taken = check_taken(lines.taken(), self.tail, size)?;
        if self.is_outgrown() {
            return Ok(None);
        }
        // It may go on behind the front that the consumer has not read yet.
        let behind = (start + need <= size.lines()).then_some(0);
        let fits = |skip: &u64| self.tail + need + skip < self.taken + size.lines();
        let found = [Some(skip), behind].into_iter().flatten().find(fits);
        Ok(found.or_else(|| self.over_what_is_unread(size, start, need)))
    }

    /// Where the consumer has not come to the last skip to line 0 yet, what it has not read is in the way of what follows that
    /// skip. Behind it are lines that the skip left out: says how many lines to skip to those.
    fn over_what_is_unread(&self, size: Size, start: u64, need: u64) -> Option<u64> {
        let is_unread = self.taken <= self.skipped_at && self.skipped_at < self.tail;
        let from = start.max(size.line(self.skipped_at) + 1);
        // The line behind the record is kept free, and line 0 is not.
        (is_unread && from + need < size.lines()).then(|| from - start)
    }

    /// Makes the record in `slot` visible.
    #[inline(always)]
    pub(super) fn publish<L: Lines>(&mut self, lines: &L, slot: Slot, len: usize) {
        let size = lines.size();
        lines.publish(slot.line, size.lap(self.tail + slot.skip) | RECORD | len as u64);
        if slot.skip > 0 {
            lines.publish(size.line(self.tail), size.lap(self.tail) | SKIP | slot.skip);
            if slot.line == 0 {
                self.skipped_at = self.tail;
            }
        }
        self.tail += slot.skip + slot.lines;
        if slot.lines > 1 {
            self.cover(slot.line + 1, slot.lines - 1);
        }
    }

    /// Goes on in another ring, no smaller than this one.
    pub(super) fn move_on<L: Lines>(&mut self, from: &L, to: &L) {
        let size = from.size();
        to.clear(to.size().line(self.tail + 1));
        // The line behind the last record is always kept free.
        from.publish(size.line(self.tail), size.lap(self.tail) | MOVED);
        self.tail += 1;
        self.outgrown_at = u64::MAX;
        self.skipped_at = NOWHERE;
        self.covered = [!0; MOST as usize / 64];
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

    /// Lines written since the first ring began.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.tail
    }

    /// The next `count` lines, as far as they are known to be free. At the end of the front the next record may begin
    /// elsewhere, which is seldom.
    #[inline(always)]
    pub(super) fn next_lines(&self, size: Size, count: u64) -> impl Iterator<Item = u64> + use<> {
        let free = (self.taken + size.lines()).saturating_sub(self.tail);
        (self.tail..self.tail + count.min(free)).map(move |line| size.line(line))
    }

    /// Takes back all records from a position on. The consumer has not read them, and must not read now (`exclusion`).
    #[cold]
    pub(super) fn rewind<L: Lines>(&mut self, lines: &L, position: u64) {
        let Some(gone) = self
            .tail
            .checked_sub(position)
            .filter(|gone| (1..=MOST_WAITING * lines.size().lines()).contains(gone))
        else {
            return;
        };
        let size = lines.size();
        let line = size.line(position);
        let until_end = gone.min(size.lines() - line);
        self.cover(line, until_end);
        self.cover(0, (gone - until_end).min(size.lines()));
        self.tail = position;
        self.taken = self.taken.min(position);
        if self.skipped_at >= position {
            self.skipped_at = NOWHERE;
        }
        self.uncover(lines, line);
    }

    /// Clears the first word of a line if it may be anything.
    #[inline]
    fn uncover<L: Lines>(&mut self, lines: &L, line: u64) {
        let bit = 1 << (line % 64);
        if let Some(word) = self
            .covered
            .get_mut(line as usize / 64)
            .filter(|word| **word & bit != 0)
        {
            *word &= !bit;
            lines.clear(line);
        }
    }

    /// Notes that these lines were written as a body.
    fn cover(&mut self, mut from: u64, count: u64) {
        let end = from + count;
        while from < end {
            let here = (64 - from % 64).min(end - from);
            if let Some(word) = self.covered.get_mut(from as usize / 64) {
                *word |= !0 >> (64 - here) << (from % 64);
            }
            from += here;
        }
    }
}

#[inline]
fn check_taken(taken: u64, tail: u64, size: Size) -> Result<u64, Broken> {
    match tail.checked_sub(taken) {
        Some(waiting) if waiting <= MOST_WAITING * size.lines() => Ok(taken),
        _ => Err(Broken),
    }
}

/// A record that the consumer can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub line: u64,
    pub len: usize,
    lines: u64,
}

/// The reading side.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    /// Lines taken since the ring began.
    head: u64,
    /// The credit that the producer was given last.
    given: u64,
}

impl Consumer {
    /// Lines taken since the ring began.
    #[inline]
    pub(super) fn position(&self) -> u64 {
        self.head
    }

    /// A second reader, from this position on, that gives nothing back: with `pass` in place of `advance`.
    pub(super) fn at(position: u64) -> Consumer {
        Consumer {
            head: position,
            given: position,
        }
    }

    /// Goes on to the next record without giving lines back.
    pub(super) fn pass(&mut self, record: Record) {
        self.head += record.lines;
    }

    /// Whether there is anything to read. One load.
    #[inline]
    pub(super) fn has_news<L: Lines>(&self, lines: &L) -> bool {
        let size = lines.size();
        lines.control(size.line(self.head)) >= size.lap(self.head)
    }

    /// The oldest record. It stays until `advance`.
    #[inline]
    pub(super) fn next<L: Lines>(&mut self, lines: &L) -> Result<Option<Record>, RingEnd> {
        let size = lines.size();
        let (line, lap) = (size.line(self.head), size.lap(self.head));
        let word = lines.control(line);
        match decode(size, line, word, lap) {
            Ok(found) => Ok(Some(found)),
            Err(Broken) if word < lap => Ok(None),
            Err(Broken) if word & !LEN == lap | SKIP => self.skip(lines, word & LEN),
            Err(Broken) if word == lap | MOVED => Err(RingEnd::Moved),
            Err(Broken) => Err(RingEnd::Broken),
        }
    }

    /// The record behind so many skipped lines.
    #[cold]
    fn skip<L: Lines>(&mut self, lines: &L, count: u64) -> Result<Option<Record>, RingEnd> {
        let size = lines.size();
        self.head += count;
        let line = size.line(self.head);
        let found = decode(size, line, lines.control(line), size.lap(self.head));
        found.map(Some).map_err(|Broken| RingEnd::Broken)
    }

    /// Releases a record that was read. True when lines were given back.
    #[inline]
    pub(super) fn advance<L: Lines>(&mut self, lines: &L, record: Record) -> bool {
        self.head += record.lines;
        if self.head - self.given < lines.size().front / 4 {
            return false;
        }
        self.given = self.head;
        lines.give_back(self.head);
        true
    }

    /// Goes on in the producer's next ring, after `next` has said `Moved`.
    pub(super) fn follow(&mut self) {
        self.head += 1;
    }
}

/// Why there is no next record, and will not be in this ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingEnd {
    Broken,
    /// The producer goes on in another ring.
    Moved,
}

#[inline]
fn decode(size: Size, line: u64, word: u64, lap: u64) -> Result<Record, Broken> {
    // If the word is no record of this lap, bits above the length are left.
    let len = (word ^ (lap | RECORD)) as usize;
    if is_near(len) {
        return Ok(Record { line, len, lines: 1 });
    }
    if len > LEN as usize {
        return Err(Broken);
    }
    let lines = lines_for(len);
    if line + lines > size.lines() {
        return Err(Broken);
    }
    Ok(Record { line, len, lines })
}

#[cfg(test)]
mod tests;

#[cfg(all(test, loom))]
mod model;
