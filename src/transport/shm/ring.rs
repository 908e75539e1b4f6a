//! The ring: records from one producer to one consumer, which share nothing but its lines.
//!
//! A ring is a power of two of 64-byte lines. A record takes whole lines in a row; its first word, the control word,
//! tells that it is there and how long it is, and is written last. So a small record moves one cache line, and neither
//! side does a read-modify-write. A control word says in which lap around the ring it was written, so an old one is no
//! news, and nobody has to empty it. But a body may cover the place of one with anything: before the producer publishes a
//! record, it empties the word behind it, where the consumer will look next, if that was last written so.
//! A record that does not fit before the end of the ring is preceded by a skip.
//! The consumer gives lines back a quarter of the ring at a time, in a line of its own.
//!
//! This file is the order of loads and stores, over any memory that is `Lines`: shared memory (`layout`), and loom's
//! (below). Neither side believes the other: a word that cannot be is `Broken`, and no index leaves the ring.

/// Memory of a ring, with the orderings the protocol needs. SYNC POINT names pair a release with its acquire.
pub trait Lines {
    /// How many lines there are: a power of two.
    const COUNT: u64;
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

pub const LINE: usize = 64;
/// Where the header is in a record.
pub const HEADER_AT: usize = 8;
/// Where a body is in a record: in the header's line if it fits, else from the second line on, so that the first line,
/// at which the consumer stares, is written in one go at the end.
const BODY_NEAR: usize = 40;
const BODY_FAR: usize = LINE;
const NEAR_MOST: usize = LINE - BODY_NEAR;

// A control word: the lap, counted from 1, then what it stands for, then the length of a record's body.
const LEN: u64 = (1 << 16) - 1;
const RECORD: u64 = 1 << 16;
const SKIP: u64 = 2 << 16;
const LAP_SHIFT: u32 = 20;

/// The most lines of a ring.
const MOST: u64 = 1024;
const _: () = assert!(longest(MOST) as u64 <= LEN);

/// The lap of a position, where it stands in a control word: all words of earlier laps are less than this.
#[inline]
fn lap<L: Lines>(position: u64) -> u64 {
    const { assert!(L::COUNT.is_power_of_two() && L::COUNT <= MOST) };
    (position / L::COUNT + 1) << LAP_SHIFT
}

/// Whether a record takes a single line.
#[inline]
pub fn is_near(len: usize) -> bool {
    len <= NEAR_MOST
}

#[inline]
pub fn body_at(len: usize) -> usize {
    if is_near(len) { BODY_NEAR } else { BODY_FAR }
}

#[inline]
fn lines_for(len: usize) -> u64 {
    (body_at(len) + len).div_ceil(LINE) as u64
}

/// The longest body for a ring. When the consumer has taken everything, at least three quarters are free, and a record
/// with a skip before it and an empty word behind it must fit there.
pub const fn longest(lines: u64) -> usize {
    let most = (lines / 4 * 3 - 1) / 2;
    most.saturating_sub(1) as usize * LINE
}

/// The other side wrote something that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Room for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first line.
    pub line: u64,
    lines: u64,
    skip: u64,
}

/// The writing side.
#[derive(Debug)]
pub struct Producer {
    /// Lines written since the ring began.
    tail: u64,
    /// What the consumer had taken when last looked at: its line is read only when this says full.
    taken: u64,
    /// A bit for each line whose first word may be anything: part of a body, or of what was there before the ring.
    covered: [u64; MOST as usize / 64],
}

impl Default for Producer {
    fn default() -> Producer {
        Producer {
            tail: 0,
            taken: 0,
            covered: [!0; MOST as usize / 64],
        }
    }
}

impl Producer {
    /// Room for a body of `len` bytes; None while the ring is full.
    #[inline(always)]
    pub fn reserve<L: Lines>(&mut self, lines: &L, len: usize) -> Result<Option<Slot>, Broken> {
        let start = self.tail & (L::COUNT - 1);
        let need = lines_for(len);
        let skip = if start + need > L::COUNT { L::COUNT - start } else { 0 };
        // One more for the empty word behind it.
        if L::COUNT - (self.tail - self.taken) <= need + skip {
            self.taken = check_taken::<L>(lines.taken(), self.tail)?;
            if L::COUNT - (self.tail - self.taken) <= need + skip {
                return Ok(None);
            }
        }
        let line = (start + skip) & (L::COUNT - 1);
        // Now and not at the end: while this line comes from the other core, the record's own would be lost again.
        self.uncover(lines, (line + need) & (L::COUNT - 1));
        Ok(Some(Slot {
            line,
            lines: need,
            skip,
        }))
    }

    /// Makes the record in `slot` visible.
    #[inline(always)]
    pub fn publish<L: Lines>(&mut self, lines: &L, slot: Slot, len: usize) {
        lines.publish(slot.line, lap::<L>(self.tail + slot.skip) | RECORD | len as u64);
        if slot.skip > 0 {
            lines.publish(self.tail & (L::COUNT - 1), lap::<L>(self.tail) | SKIP);
        }
        self.tail += slot.skip + slot.lines;
        if slot.lines > 1 {
            self.cover(slot.line + 1, slot.lines - 1);
        }
    }

    /// Lines written since the ring began.
    #[inline]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// The lines where a record as long as this one would be written next, as far as they are known to be free.
    #[inline(always)]
    pub fn next_lines<L: Lines>(&self, slot: Slot) -> impl Iterator<Item = u64> + use<L> {
        // The one behind a record always is.
        let more = (slot.lines - 1).min(L::COUNT - (self.tail - self.taken) - 1);
        (self.tail..self.tail + 1 + more).map(|line| line & (L::COUNT - 1))
    }

    /// Takes back what was written from a position on. The consumer has not read it, and does not read now.
    #[cold]
    pub fn rewind<L: Lines>(&mut self, lines: &L, position: u64) {
        let Some(gone) = self
            .tail
            .checked_sub(position)
            .filter(|gone| (1..=L::COUNT).contains(gone))
        else {
            return;
        };
        let line = position & (L::COUNT - 1);
        let until_end = gone.min(L::COUNT - line);
        self.cover(line, until_end);
        self.cover(0, gone - until_end);
        self.tail = position;
        self.taken = self.taken.min(position);
        self.uncover(lines, line);
    }

    /// Empties the first word of a line, if need be.
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

    /// These lines were written as a body.
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
fn check_taken<L: Lines>(taken: u64, tail: u64) -> Result<u64, Broken> {
    match tail.checked_sub(taken) {
        Some(waiting) if waiting <= L::COUNT => Ok(taken),
        _ => Err(Broken),
    }
}

/// A record that is there to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub line: u64,
    pub len: usize,
    lines: u64,
}

/// The reading side.
#[derive(Debug, Default)]
pub struct Consumer {
    /// Lines taken since the ring began.
    head: u64,
    /// What the producer was told of it.
    given: u64,
}

impl Consumer {
    /// Lines taken since the ring began.
    #[inline]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// One that reads along from this position, and gives nothing back.
    pub fn at(position: u64) -> Consumer {
        Consumer {
            head: position,
            given: position,
        }
    }

    /// Goes on to the next record, for one that reads along.
    pub fn pass(&mut self, record: Found) {
        self.head += record.lines;
    }

    /// Whether there is anything to look at. One load.
    #[inline]
    pub fn has_news<L: Lines>(&self, lines: &L) -> bool {
        lines.control(self.head & (L::COUNT - 1)) >= lap::<L>(self.head)
    }

    /// The oldest record. It stays until `advance`.
    #[inline]
    pub fn next<L: Lines>(&mut self, lines: &L) -> Result<Option<Found>, Broken> {
        let (line, lap) = (self.head & (L::COUNT - 1), lap::<L>(self.head));
        let word = lines.control(line);
        match found::<L>(line, word, lap) {
            Ok(found) => Ok(Some(found)),
            Err(Broken) if word < lap => Ok(None),
            Err(Broken) if word == lap | SKIP && line != 0 => self.next_lap(lines, line),
            Err(Broken) => Err(Broken),
        }
    }

    /// What is behind a skip.
    #[cold]
    fn next_lap<L: Lines>(&mut self, lines: &L, line: u64) -> Result<Option<Found>, Broken> {
        self.head += L::COUNT - line;
        found::<L>(0, lines.control(0), lap::<L>(self.head)).map(Some)
    }

    /// Lets go of a record found. True when lines were given back.
    #[inline]
    pub fn advance<L: Lines>(&mut self, lines: &L, record: Found) -> bool {
        self.head += record.lines;
        if self.head - self.given < L::COUNT / 4 {
            return false;
        }
        self.given = self.head;
        lines.give_back(self.head);
        true
    }
}

#[inline]
fn found<L: Lines>(line: u64, word: u64, lap: u64) -> Result<Found, Broken> {
    // More than a length is left of a word that is no record of this lap.
    let len = (word ^ (lap | RECORD)) as usize;
    if is_near(len) {
        return Ok(Found { line, len, lines: 1 });
    }
    if len > longest(L::COUNT) {
        return Err(Broken);
    }
    let lines = lines_for(len);
    if line + lines > L::COUNT {
        return Err(Broken);
    }
    Ok(Found { line, len, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const LINES: u64 = 16;

    /// Plain memory, full of words that look like records.
    struct Plain {
        words: RefCell<[u64; LINES as usize]>,
        taken: Cell<u64>,
    }

    impl Plain {
        fn new() -> Plain {
            let words = RefCell::new(core::array::from_fn(|line| lap::<Plain>(line as u64) | RECORD | 5));
            words.borrow_mut()[0] = 0;
            Plain {
                words,
                taken: Cell::new(0),
            }
        }
    }

    impl Lines for Plain {
        const COUNT: u64 = LINES;
        fn control(&self, line: u64) -> u64 {
            self.words.borrow()[line as usize]
        }
        fn publish(&self, line: u64, word: u64) {
            self.words.borrow_mut()[line as usize] = word;
        }
        fn clear(&self, line: u64) {
            self.publish(line, 0);
        }
        fn taken(&self) -> u64 {
            self.taken.get()
        }
        fn give_back(&self, position: u64) {
            self.taken.set(position);
        }
    }

    #[test]
    fn records_are_as_long_as_their_lines() {
        let rows = [
            (0, 1),
            (24, 1),
            (25, 2),
            (64, 2),
            (65, 3),
            (512, 9),
            (513, 10),
            (8192, 129),
        ];
        for (len, lines) in rows {
            assert_eq!(lines_for(len), lines, "{len}");
        }
        for count in [8, 16, 256, 1024, 2048] {
            let most = longest(count);
            assert!(2 * lines_for(most) < count / 4 * 3, "{count}: {most}");
            assert!((0..=most).all(|len| lines_for(len) <= lines_for(most)));
        }
    }

    proptest! {
            /// What goes in comes out, in order, and a ring whose records are all taken is never full.
            #[test]
            fn first_in_first_out(steps in proptest::collection::vec((any::<bool>(), 0..=longest(LINES)), 1..300)) {
                let lines = Plain::new();
                let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
                let mut inside = VecDeque::new();
                for (put, len) in steps {
                    if put {
                        let slot = producer.reserve(&lines, len).unwrap();
                        prop_assert!(slot.is_some() || !inside.is_empty());
                        if let Some(slot) = slot {
                            // A body covers the control words of its later lines, perhaps with what would be one in
                            // the next lap.
                            let next = lap::<Plain>(producer.tail + slot.skip + LINES);
                            (1..slot.lines).for_each(|more| lines.publish(slot.line + more, next | RECORD | 1));
                            producer.publish(&lines, slot, len);
                            inside.push_back(len);
                        }
                    } else {
                        let found = consumer.next(&lines).unwrap();
                        prop_assert_eq!(found.map(|record| record.len), inside.pop_front());
                        if let Some(record) = found {
     consumer.advance(&lines, record);
    }
                    }
                }
            }

            /// Whatever the other side writes, both sides stay within the ring.
            #[test]
            fn garbage_is_broken_or_harmless(words in proptest::collection::vec(prop_oneof![
                    any::<u64>(),
                (0..3u64, 0..4u64, 0..1024u64).prop_map(|(lap, kind, len)| lap << LAP_SHIFT | kind << 16 | len),
            ], LINES as usize), taken in any::<u64>()) {
                let lines = Plain::new();
                lines.words.borrow_mut().copy_from_slice(&words);
                lines.taken.set(taken);
                let mut consumer = Consumer::default();
                for _ in 0..100 {
                    match consumer.next(&lines) {
                        Ok(Some(record)) => {
                            prop_assert!(record.line as usize * LINE + body_at(record.len) + record.len
                                <= LINES as usize * LINE);
                            consumer.advance(&lines, record);
                        }
                        Ok(None) | Err(Broken) => break,
                    }
                }
                lines.taken.set(taken);
                let mut producer = Producer::default();
                for _ in 0..100 {
                    match producer.reserve(&lines, 100) {
                        Ok(Some(slot)) => {
                            prop_assert!(slot.line + slot.lines <= LINES);
                            producer.publish(&lines, slot, 100);
                        }
                        Ok(None) | Err(Broken) => break,
                    }
                }
            }
        }
}

/// Every order in which the two sides' loads and stores can be seen: `abi-tests/loom/run`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};

    const LINES: usize = 8;

    struct Model {
        control: [AtomicU64; LINES],
        /// What the rest of a line holds; loom fails when both sides touch one at once.
        body: [UnsafeCell<u64>; LINES],
        taken: AtomicU64,
    }

    impl Lines for Model {
        const COUNT: u64 = LINES as u64;
        fn control(&self, line: u64) -> u64 {
            self.control[line as usize].load(Ordering::Acquire)
        }
        fn publish(&self, line: u64, word: u64) {
            self.control[line as usize].store(word, Ordering::Release);
        }
        fn clear(&self, line: u64) {
            self.control[line as usize].store(0, Ordering::Relaxed);
        }
        fn taken(&self) -> u64 {
            self.taken.load(Ordering::Acquire)
        }
        fn give_back(&self, position: u64) {
            self.taken.store(position, Ordering::Release);
        }
    }

    fn send(lines: &Model, producer: &mut Producer, value: u64, len: usize) {
        let slot = loop {
            match producer.reserve(lines, len).unwrap() {
                Some(slot) => break slot,
                None => loom::thread::yield_now(),
            }
        };
        for line in slot.line..slot.line + slot.lines {
            // SAFETY: the room is the producer's; loom proves it.
            lines.body[line as usize].with_mut(|body| unsafe { *body = value });
            if line != slot.line {
                // A body covers the control words of its later lines, with anything.
                let next = lap::<Model>(producer.tail + slot.skip + LINES as u64);
                lines.control[line as usize].store(next | RECORD | 1, Ordering::Relaxed);
            }
        }
        producer.publish(lines, slot, len);
    }

    fn receive(lines: &Model, consumer: &mut Consumer) -> (u64, usize) {
        let found = loop {
            match consumer.next(lines).unwrap() {
                Some(found) => break found,
                None => loom::thread::yield_now(),
            }
        };
        let mut value = 0;
        for line in found.line..found.line + lines_for(found.len) {
            // SAFETY: the record is the consumer's; loom proves it.
            lines.body[line as usize].with(|body| value = unsafe { *body });
        }
        consumer.advance(lines, found);
        (value, found.len)
    }

    /// Sends bodies of these lengths through a ring that is first filled and emptied up to `before` lines.
    fn check(before: usize, lens: &'static [usize]) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let lines = Arc::new(Model {
                control: core::array::from_fn(|line| {
                    AtomicU64::new(if line == 0 {
                        0
                    } else {
                        lap::<Model>(line as u64) | RECORD | 2
                    })
                }),
                body: core::array::from_fn(|_| UnsafeCell::new(0)),
                taken: AtomicU64::new(0),
            });
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            for _ in 0..before {
                send(&lines, &mut producer, 77, 0);
                assert_eq!(receive(&lines, &mut consumer), (77, 0));
            }
            let theirs = lines.clone();
            let sender = loom::thread::spawn(move || {
                for (at, len) in lens.iter().enumerate() {
                    send(&theirs, &mut producer, at as u64 + 1, *len);
                }
            });
            for (at, len) in lens.iter().enumerate() {
                assert_eq!(receive(&lines, &mut consumer), (at as u64 + 1, *len));
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn small_records() {
        check(0, &[0, 8, 24]);
    }

    #[test]
    fn records_over_the_end() {
        check(7, &[0, 60]);
        check(7, &[60, 0]);
    }

    #[test]
    fn a_full_ring() {
        check(5, &[60, 60, 60, 60]);
    }
}
