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
//! A pair of peers begins with a small ring. When that is too small, the producer goes on in a larger one that nobody has
//! used: the last record of the first says so, in the line behind the last record, which always is free. Both count on
//! through the change, so every position is one place, and what the consumer gave back of the first ring is given back.
//!
//! This file is the order of loads and stores, over any memory that is `Lines`: shared memory (`layout`), and loom's
//! (below). Neither side believes the other: a word that cannot be is `Broken`, and no index leaves the ring.

/// How many lines a ring has: a power of two, at most `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    mask: u64,
    shift: u32,
}

impl Size {
    pub const fn of(lines: u64) -> Size {
        assert!(lines.is_power_of_two() && lines <= MOST);
        Size {
            mask: lines - 1,
            shift: lines.trailing_zeros(),
        }
    }

    #[inline(always)]
    pub const fn lines(self) -> u64 {
        self.mask + 1
    }

    /// Where a position is in the ring.
    #[inline(always)]
    pub fn line(self, position: u64) -> u64 {
        position & self.mask
    }

    /// The lap of a position, where it stands in a control word: all words of earlier laps are less than this.
    #[inline(always)]
    fn lap(self, position: u64) -> u64 {
        ((position >> self.shift) + 1) << LAP_SHIFT
    }
}

/// Memory of a ring, with the orderings the protocol needs. SYNC POINT names pair a release with its acquire.
pub trait Lines {
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
/// The producer goes on in another ring.
const MOVED: u64 = 3 << 16;
const LAP_SHIFT: u32 = 20;

/// The most lines of a ring.
const MOST: u64 = 1024;
const _: () = assert!(longest(MOST) as u64 <= LEN);

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

/// The longest body that a ring always has room for in the end; a longer one may find room by luck. When the consumer has
/// taken everything, at least three quarters are free, and a record with a skip before it and an empty word behind it must
/// fit there.
pub const fn longest(lines: u64) -> usize {
    let most = (lines / 4 * 3 - 1) / 2;
    most.saturating_sub(1) as usize * LINE
}

/// Lines after which a pair is one that talks much. In a small ring the producer reads every few messages how far the
/// consumer has come, which costs a cache line from the other processor each time: 10 ns for a message of 64 bytes.
const OUTGROWN_AFTER: u64 = 4096;

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
    /// From this position on the ring counts as full: it is a small one, and so much traffic deserves a large one.
    outgrown_at: u64,
    /// A bit for each line whose first word may be anything: part of a body, or of what was there before the ring.
    covered: [u64; MOST as usize / 64],
}

impl Default for Producer {
    fn default() -> Producer {
        Producer {
            tail: 0,
            taken: 0,
            outgrown_at: OUTGROWN_AFTER,
            covered: [!0; MOST as usize / 64],
        }
    }
}

impl Producer {
    /// Room for a body of `len` bytes; None while the ring is full.
    #[inline(always)]
    pub fn reserve<L: Lines>(&mut self, lines: &L, len: usize) -> Result<Option<Slot>, Broken> {
        let size = lines.size();
        let start = size.line(self.tail);
        let need = lines_for(len);
        let skip = if start + need > size.lines() {
            size.lines() - start
        } else {
            0
        };
        // One more for the empty word behind it.
        if size.lines() - (self.tail - self.taken) <= need + skip {
            self.taken = check_taken(lines.taken(), self.tail, size)?;
            if self.tail >= self.outgrown_at || size.lines() - (self.tail - self.taken) <= need + skip {
                return Ok(None);
            }
        }
        let line = size.line(start + skip);
        // Now and not at the end: while this line comes from the other core, the record's own would be lost again.
        self.uncover(lines, size.line(line + need));
        Ok(Some(Slot {
            line,
            lines: need,
            skip,
        }))
    }

    /// Makes the record in `slot` visible.
    #[inline(always)]
    pub fn publish<L: Lines>(&mut self, lines: &L, slot: Slot, len: usize) {
        let size = lines.size();
        lines.publish(slot.line, size.lap(self.tail + slot.skip) | RECORD | len as u64);
        if slot.skip > 0 {
            lines.publish(size.line(self.tail), size.lap(self.tail) | SKIP);
        }
        self.tail += slot.skip + slot.lines;
        if slot.lines > 1 {
            self.cover(slot.line + 1, slot.lines - 1);
        }
    }

    /// Goes on in another ring, no smaller than this one.
    pub fn move_on<L: Lines>(&mut self, from: &L, to: &L) {
        let size = from.size();
        to.clear(to.size().line(self.tail + 1));
        // The word behind the last record is empty for the consumer to look at: so the line is free.
        from.publish(size.line(self.tail), size.lap(self.tail) | MOVED);
        self.tail += 1;
        self.outgrown_at = u64::MAX;
        self.covered = [!0; MOST as usize / 64];
    }

    /// Whether the ring counts as full for its traffic alone.
    pub fn is_outgrown(&self) -> bool {
        self.tail >= self.outgrown_at
    }

    /// Goes on in this ring, for much longer than up to now.
    pub fn stay(&mut self) {
        self.outgrown_at = self.tail + 64 * OUTGROWN_AFTER;
    }

    /// Lines written since the first ring began.
    #[inline]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// The lines where a record as long as this one would be written next, as far as they are known to be free.
    #[inline(always)]
    pub fn next_lines(&self, size: Size, slot: Slot) -> impl Iterator<Item = u64> + use<> {
        // The one behind a record always is.
        let more = (slot.lines - 1).min(size.lines() - (self.tail - self.taken) - 1);
        (self.tail..self.tail + 1 + more).map(move |line| size.line(line))
    }

    /// Takes back what was written from a position on. The consumer has not read it, and does not read now.
    #[cold]
    pub fn rewind<L: Lines>(&mut self, lines: &L, position: u64) {
        let Some(gone) = self
            .tail
            .checked_sub(position)
            .filter(|gone| (1..=lines.size().lines()).contains(gone))
        else {
            return;
        };
        let size = lines.size();
        let line = size.line(position);
        let until_end = gone.min(size.lines() - line);
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
fn check_taken(taken: u64, tail: u64, size: Size) -> Result<u64, Broken> {
    match tail.checked_sub(taken) {
        Some(waiting) if waiting <= size.lines() => Ok(taken),
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
        let size = lines.size();
        lines.control(size.line(self.head)) >= size.lap(self.head)
    }

    /// The oldest record. It stays until `advance`.
    #[inline]
    pub fn next<L: Lines>(&mut self, lines: &L) -> Result<Option<Found>, Stop> {
        let size = lines.size();
        let (line, lap) = (size.line(self.head), size.lap(self.head));
        let word = lines.control(line);
        match found(size, line, word, lap) {
            Ok(found) => Ok(Some(found)),
            Err(Broken) if word < lap => Ok(None),
            Err(Broken) if word == lap | SKIP && line != 0 => self.next_lap(lines, line),
            Err(Broken) if word == lap | MOVED => Err(Stop::Moved),
            Err(Broken) => Err(Stop::Broken),
        }
    }

    /// What is behind a skip.
    #[cold]
    fn next_lap<L: Lines>(&mut self, lines: &L, line: u64) -> Result<Option<Found>, Stop> {
        let size = lines.size();
        self.head += size.lines() - line;
        let found = found(size, 0, lines.control(0), size.lap(self.head));
        found.map(Some).map_err(|Broken| Stop::Broken)
    }

    /// Lets go of a record found. True when lines were given back.
    #[inline]
    pub fn advance<L: Lines>(&mut self, lines: &L, record: Found) -> bool {
        self.head += record.lines;
        if self.head - self.given < lines.size().lines() / 4 {
            return false;
        }
        self.given = self.head;
        lines.give_back(self.head);
        true
    }

    /// The producer's next ring is looked at from now on: `next` said that it has moved.
    pub fn follow(&mut self) {
        self.head += 1;
    }
}

/// Why there is no next record, and will not be in this ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Broken,
    /// The producer goes on in another ring.
    Moved,
}

#[inline]
fn found(size: Size, line: u64, word: u64, lap: u64) -> Result<Found, Broken> {
    // More than a length is left of a word that is no record of this lap.
    let len = (word ^ (lap | RECORD)) as usize;
    if is_near(len) {
        return Ok(Found { line, len, lines: 1 });
    }
    if len > LEN as usize {
        return Err(Broken);
    }
    let lines = lines_for(len);
    if line + lines > size.lines() {
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
    use std::rc::Rc;

    const LINES: u64 = 16;

    const LARGE: u64 = 64;

    /// Plain memory, full of words that look like records.
    struct Plain {
        size: Size,
        words: RefCell<Vec<u64>>,
        taken: Rc<Cell<u64>>,
    }

    impl Plain {
        fn new(lines: u64) -> Plain {
            let size = Size::of(lines);
            let mut words: Vec<u64> = (0..lines).map(|line| size.lap(line) | RECORD | 5).collect();
            words[0] = 0;
            Plain {
                size,
                words: words.into(),
                taken: Rc::default(),
            }
        }

        /// A larger one, for the same two sides. Whoever had its memory before left words of any lap.
        fn larger(&self, position: u64) -> Plain {
            let size = Size::of(LARGE);
            let word = |line| size.lap(position + line) | RECORD | 5;
            Plain {
                size,
                words: RefCell::new((0..LARGE).map(word).collect()),
                taken: self.taken.clone(),
            }
        }
    }

    impl Lines for Plain {
        fn size(&self) -> Size {
            self.size
        }
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

    fn put(lines: &Plain, producer: &mut Producer, len: usize) -> bool {
        let Some(slot) = producer.reserve(lines, len).unwrap() else {
            return false;
        };
        // A body covers the control words of its later lines, perhaps with what would be one in the next lap.
        let next = lines.size.lap(producer.tail + slot.skip + lines.size.lines());
        (1..slot.lines).for_each(|more| lines.publish(slot.line + more, next | RECORD | 1));
        producer.publish(lines, slot, len);
        true
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

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Put(usize),
        Take,
        Grow,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            20 => (0..=longest(LARGE)).prop_map(Step::Put),
            20 => (0..=longest(LINES)).prop_map(Step::Put),
            40 => Just(Step::Take),
            1 => Just(Step::Grow),
        ];
        proptest::collection::vec(step, 1..300)
    }

    proptest! {
        /// What goes in comes out, in order, also if the producer goes on in a larger ring at any moment, and a ring whose
        /// records are all taken is never full.
        #[test]
        fn first_in_first_out(steps in steps()) {
            let small = Plain::new(LINES);
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            let mut large: Option<Plain> = None;
            let mut followed = false;
            let mut inside = VecDeque::new();
            for step in steps {
                match step {
                    Step::Put(len) => {
                        let lines = large.as_ref().unwrap_or(&small);
                        let done = put(lines, &mut producer, len);
                        prop_assert!(done || !inside.is_empty() || len > longest(lines.size.lines()));
                        if done {
                            inside.push_back(len);
                        }
                    }
                    Step::Take => {
                        let lines = if followed { large.as_ref().unwrap() } else { &small };
                        let mut found = consumer.next(lines);
                        if found == Err(Stop::Moved) {
                            prop_assert!(!followed && consumer.has_news(lines));
                            consumer.follow();
                            followed = true;
                            found = consumer.next(large.as_ref().unwrap());
                        }
                        let found = found.unwrap();
                        prop_assert_eq!(found.map(|record| record.len), inside.pop_front());
                        let lines = if followed { large.as_ref().unwrap() } else { &small };
                        if let Some(record) = found {
                            consumer.advance(lines, record);
                        }
                    }
                    Step::Grow if large.is_none() => {
                        let to = small.larger(producer.position());
                        producer.move_on(&small, &to);
                        large = Some(to);
                    }
                    Step::Grow => {}
                }
            }
        }

        /// Whatever the other side writes, both sides stay within the ring.
        #[test]
        fn garbage_is_broken_or_harmless(words in proptest::collection::vec(prop_oneof![
                any::<u64>(),
            (0..3u64, 0..4u64, 0..1024u64).prop_map(|(lap, kind, len)| lap << LAP_SHIFT | kind << 16 | len),
        ], LINES as usize), taken in any::<u64>()) {
            let lines = Plain::new(LINES);
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
                    Ok(None) | Err(_) => break,
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

    const SMALL: usize = 8;
    const LARGE: usize = 16;

    /// One of the two rings of a pair, or both, which share what the consumer gave back.
    struct Model {
        control: [AtomicU64; SMALL + LARGE],
        /// What the rest of a line holds; loom fails when both sides touch one at once.
        body: [UnsafeCell<u64>; SMALL + LARGE],
        taken: AtomicU64,
    }

    #[derive(Clone)]
    struct Part {
        of: Arc<Model>,
        first: usize,
        size: Size,
    }

    impl Part {
        fn small(of: &Arc<Model>) -> Part {
            let size = Size::of(SMALL as u64);
            Part {
                of: of.clone(),
                first: 0,
                size,
            }
        }

        fn large(of: &Arc<Model>) -> Part {
            let size = Size::of(LARGE as u64);
            Part {
                of: of.clone(),
                first: SMALL,
                size,
            }
        }

        fn at(&self, line: u64) -> usize {
            assert!(line < self.size.lines());
            self.first + line as usize
        }
    }

    impl Lines for Part {
        fn size(&self) -> Size {
            self.size
        }
        fn control(&self, line: u64) -> u64 {
            self.of.control[self.at(line)].load(Ordering::Acquire)
        }
        fn publish(&self, line: u64, word: u64) {
            self.of.control[self.at(line)].store(word, Ordering::Release);
        }
        fn clear(&self, line: u64) {
            self.of.control[self.at(line)].store(0, Ordering::Relaxed);
        }
        fn taken(&self) -> u64 {
            self.of.taken.load(Ordering::Acquire)
        }
        fn give_back(&self, position: u64) {
            self.of.taken.store(position, Ordering::Release);
        }
    }

    fn send(lines: &Part, producer: &mut Producer, value: u64, len: usize) {
        let slot = loop {
            match producer.reserve(lines, len).unwrap() {
                Some(slot) => break slot,
                None => loom::thread::yield_now(),
            }
        };
        for line in slot.line..slot.line + slot.lines {
            // SAFETY: the room is the producer's; loom proves it.
            lines.of.body[lines.at(line)].with_mut(|body| unsafe { *body = value });
            if line != slot.line {
                // A body covers the control words of its later lines, with anything.
                let next = lines.size.lap(producer.tail + slot.skip + lines.size.lines());
                lines.of.control[lines.at(line)].store(next | RECORD | 1, Ordering::Relaxed);
            }
        }
        producer.publish(lines, slot, len);
    }

    fn receive(lines: &mut Part, consumer: &mut Consumer) -> (u64, usize) {
        let found = loop {
            match consumer.next(lines) {
                Ok(Some(found)) => break found,
                Ok(None) => loom::thread::yield_now(),
                Err(Stop::Moved) => {
                    *lines = Part::large(&lines.of);
                    consumer.follow();
                }
                Err(Stop::Broken) => panic!("broken"),
            }
        };
        let mut value = 0;
        for line in found.line..found.line + lines_for(found.len) {
            // SAFETY: the record is the consumer's; loom proves it.
            lines.of.body[lines.at(line)].with(|body| value = unsafe { *body });
        }
        consumer.advance(lines, found);
        (value, found.len)
    }

    /// Sends bodies of these lengths through a ring that is first filled and emptied up to `before` lines. Before the
    /// body of number `grow` the sender goes on in the larger ring.
    fn check(before: usize, lens: &'static [usize], grow: Option<usize>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let words = |at: usize| match at {
                0 => 0,
                1..SMALL => Size::of(SMALL as u64).lap(at as u64) | RECORD | 2,
                _ => Size::of(LARGE as u64).lap(at as u64) | RECORD | 2,
            };
            let model = Arc::new(Model {
                control: core::array::from_fn(|at| AtomicU64::new(words(at))),
                body: core::array::from_fn(|_| UnsafeCell::new(0)),
                taken: AtomicU64::new(0),
            });
            let mut lines = Part::small(&model);
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            for _ in 0..before {
                send(&lines, &mut producer, 77, 0);
                assert_eq!(receive(&mut lines, &mut consumer), (77, 0));
            }
            let mut theirs = lines.clone();
            let sender = loom::thread::spawn(move || {
                for (at, len) in lens.iter().enumerate() {
                    if grow == Some(at) {
                        let large = Part::large(&theirs.of);
                        producer.move_on(&theirs, &large);
                        theirs = large;
                    }
                    send(&theirs, &mut producer, at as u64 + 1, *len);
                }
            });
            for (at, len) in lens.iter().enumerate() {
                assert_eq!(receive(&mut lines, &mut consumer), (at as u64 + 1, *len));
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn small_records() {
        check(0, &[0, 8, 24], None);
    }

    #[test]
    fn records_over_the_end() {
        check(7, &[0, 60], None);
        check(7, &[60, 0], None);
    }

    #[test]
    fn a_full_ring() {
        check(5, &[60, 60, 60, 60], None);
    }

    #[test]
    fn a_ring_that_grows() {
        check(0, &[0, 60, 60], Some(0));
        check(6, &[60, 60, 60], Some(1));
        check(7, &[0, 60, 60], Some(2));
    }
}
