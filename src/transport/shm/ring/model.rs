//! Tries every order in which the two sides' loads and stores can be seen: `abi-tests/loom/run`.

use super::record::HALF_LINE;
use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

const SMALL: usize = 16;
const LARGE: usize = 32;

/// One of the two rings of a pair, or both, which share what the consumer gave back.
struct Model {
    control: [AtomicU64; SMALL + LARGE],
    /// The rest of each cell. Loom fails if both sides touch one at once.
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

    fn at(&self, cell: u64) -> usize {
        assert!(cell < self.size.cells());
        self.first + cell as usize
    }
}

impl Cells for Part {
    fn size(&self) -> Size {
        self.size
    }
    fn control(&self, cell: u64) -> u64 {
        self.of.control[self.at(cell)].load(Ordering::Acquire)
    }
    fn publish(&self, cell: u64, word: u64) {
        self.of.control[self.at(cell)].store(word, Ordering::Release);
    }
    fn clear(&self, cell: u64) {
        self.of.control[self.at(cell)].store(0, Ordering::Relaxed);
    }
    fn taken(&self) -> u64 {
        self.of.taken.load(Ordering::Acquire)
    }
    fn give_back(&self, position: u64) {
        self.of.taken.store(position, Ordering::Release);
    }
}

fn send(ring: &Part, producer: &mut Producer, value: u64, (form, len): (Form, usize)) {
    let slot = loop {
        match producer.reserve(ring, form, len).unwrap() {
            Some(slot) => break slot,
            None => loom::thread::yield_now(),
        }
    };
    let (record, first) = (slot.record, slot.record.cell);
    for cell in first..first + record.cells {
        // SAFETY: the room is the producer's; loom proves it.
        ring.of.body[ring.at(cell)].with_mut(|body| unsafe { *body = value });
        if cell != first {
            // What follows covers the control words of its later cells, with anything.
            let next = ring.size.lap(producer.tail + slot.skip + ring.size.cells());
            ring.of.control[ring.at(cell)].store(next | HALF_LINE | 1, Ordering::Relaxed);
        }
    }
    producer.publish(ring, slot);
}

fn receive(ring: &mut Part, consumer: &mut Consumer) -> (u64, (Form, usize)) {
    let found = loop {
        match consumer.next(ring) {
            Ok(Some(found)) => break found,
            Ok(None) => loom::thread::yield_now(),
            Err(RingEnd::Moved) => {
                *ring = Part::large(&ring.of);
                consumer.follow();
            }
            Err(RingEnd::Broken | RingEnd::Turn) => panic!("broken"),
        }
    };
    let mut value = 0;
    for cell in found.cell..found.cell + found.cells {
        // SAFETY: the record is the consumer's; loom proves it.
        ring.of.body[ring.at(cell)].with(|body| value = unsafe { *body });
    }
    consumer.advance(ring, found);
    (value, (found.form, found.len))
}

/// Sends these records through a ring that is first filled and emptied up to `before` cells. Before the
/// record of number `grow` the sender goes on in the larger ring.
fn check(before: usize, records: &'static [(Form, usize)], grow: Option<usize>) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let words = |at: usize| match at {
            0 => 0,
            1..SMALL => Size::of(SMALL as u64).lap(at as u64) | HALF_LINE | 2,
            _ => Size::of(LARGE as u64).lap(at as u64) | HALF_LINE | 2,
        };
        let model = Arc::new(Model {
            control: core::array::from_fn(|at| AtomicU64::new(words(at))),
            body: core::array::from_fn(|_| UnsafeCell::new(0)),
            taken: AtomicU64::new(0),
        });
        let mut ring = Part::small(&model);
        let (mut producer, mut consumer) = (Producer::of(&ring), Consumer::default());
        for _ in 0..before {
            send(&ring, &mut producer, 77, HALF_LINE_RECORD);
            assert_eq!(receive(&mut ring, &mut consumer), (77, HALF_LINE_RECORD));
        }
        let mut theirs = ring.clone();
        let sender = loom::thread::spawn(move || {
            for (at, record) in records.iter().enumerate() {
                if grow == Some(at) {
                    let large = Part::large(&theirs.of);
                    producer.move_on(&theirs, &large);
                    theirs = large;
                }
                send(&theirs, &mut producer, at as u64 + 1, *record);
            }
        });
        for (at, record) in records.iter().enumerate() {
            assert_eq!(receive(&mut ring, &mut consumer), (at as u64 + 1, *record));
        }
        sender.join().unwrap();
    });
}

/// A turn of the dialogue between two records, of which the second may need a skip, or another ring. `waits`: the
/// reader looks for the turn before each look at the ring, as one does who waited, and not only after it.
fn check_turn(before: usize, second: (Form, usize), grow: bool, waits: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let model = Arc::new(Model {
            control: core::array::from_fn(|_| AtomicU64::new(0)),
            body: core::array::from_fn(|_| UnsafeCell::new(0)),
            taken: AtomicU64::new(0),
        });
        let turn = Arc::new(AtomicU64::new(0));
        let mut ring = Part::small(&model);
        let (mut producer, mut consumer) = (Producer::of(&ring), Consumer::default());
        for _ in 0..before {
            send(&ring, &mut producer, 77, HALF_LINE_RECORD);
            assert_eq!(receive(&mut ring, &mut consumer), (77, HALF_LINE_RECORD));
        }
        let (mut theirs, their_turn) = (ring.clone(), turn.clone());
        let sender = loom::thread::spawn(move || {
            send(&theirs, &mut producer, 1, HALF_LINE_RECORD);
            their_turn.store(producer.position(), Ordering::Release);
            producer.behind_a_turn();
            if grow {
                let large = Part::large(&theirs.of);
                producer.move_on(&theirs, &large);
                theirs = large;
            }
            send(&theirs, &mut producer, 3, second);
        });
        let mut read = Vec::new();
        while read.len() < 3 {
            // As `inbound` reads.
            let position = consumer.position();
            let is_spoken_to = |read: &[u64]| {
                !read.contains(&2) && turn.load(Ordering::Acquire) == position && position > before as u64
            };
            if waits && is_spoken_to(&read) {
                read.push(2);
                continue;
            }
            let found = consumer.next(&ring);
            if let Ok(Some(found)) = found {
                // SAFETY: the record is the consumer's; loom proves it.
                read.push(ring.of.body[ring.at(found.cell)].with(|body| unsafe { *body }));
                consumer.advance(&ring, found);
                continue;
            }
            if is_spoken_to(&read) {
                read.push(2);
                continue;
            }
            match found {
                Err(RingEnd::Turn) => consumer.pass_turn(),
                Err(RingEnd::Moved) => {
                    ring = Part::large(&ring.of);
                    consumer.follow();
                }
                Err(RingEnd::Broken) => panic!("broken"),
                _ => loom::thread::yield_now(),
            }
        }
        assert_eq!(read, [1, 2, 3]);
        sender.join().unwrap();
    });
}

#[test]
fn a_turn_between_records() {
    for waits in [false, true] {
        check_turn(0, HALF_LINE_RECORD, false, waits);
        check_turn(0, ONE_LINE_RECORD, false, waits);
        check_turn(14, LINES_RECORD, false, waits);
        check_turn(2, LINES_RECORD, true, waits);
    }
}

const HALF_LINE_RECORD: (Form, usize) = (Form::HalfLine, 0);
const ONE_LINE_RECORD: (Form, usize) = (Form::OneLine, 24);
const LINES_RECORD: (Form, usize) = (Form::Lines, 60);

#[test]
fn records_of_a_cell() {
    check(0, &[HALF_LINE_RECORD, HALF_LINE_RECORD, HALF_LINE_RECORD], None);
}

#[test]
fn records_of_a_line_begin_with_one() {
    check(0, &[HALF_LINE_RECORD, ONE_LINE_RECORD, HALF_LINE_RECORD], None);
}

#[test]
fn records_over_the_end() {
    check(14, &[ONE_LINE_RECORD, LINES_RECORD], None);
    check(15, &[HALF_LINE_RECORD, LINES_RECORD], None);
    check(15, &[LINES_RECORD, HALF_LINE_RECORD], None);
}

#[test]
fn a_full_ring() {
    check(10, &[LINES_RECORD, LINES_RECORD, LINES_RECORD, LINES_RECORD], None);
}

#[test]
fn a_ring_that_grows() {
    check(0, &[HALF_LINE_RECORD, LINES_RECORD, LINES_RECORD], Some(0));
    check(12, &[LINES_RECORD, LINES_RECORD, LINES_RECORD], Some(1));
    check(14, &[HALF_LINE_RECORD, LINES_RECORD, LINES_RECORD], Some(2));
}
