//! Tries every order in which the two sides' loads and stores can be seen: `abi-tests/loom/run`.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

const SMALL: usize = 8;
const LARGE: usize = 16;

/// One of the two rings of a pair, or both, which share what the consumer gave back.
struct Model {
    control: [AtomicU64; SMALL + LARGE],
    /// The rest of each line. Loom fails if both sides touch one at once.
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
            Err(RingEnd::Moved) => {
                *lines = Part::large(&lines.of);
                consumer.follow();
            }
            Err(RingEnd::Broken) => panic!("broken"),
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
