//! The ring over plain memory: records come out as they went in, whatever their lengths and whenever the ring grows.

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

    /// A larger ring for the same two sides, in memory with old words of any lap.
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

#[test]
fn while_the_consumer_keeps_up_records_stay_in_the_front() {
    for (len, last) in [(0, 16), (100, 16), (200, 16), (400, 24), (1000, 51)] {
        let lines = Plain::new(LARGE);
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        producer.stay();
        let ends = (0..1000).map(|_| {
            assert!(put(&lines, &mut producer, len));
            let record = consumer.next(&lines).unwrap().unwrap();
            consumer.advance(&lines, record);
            record.line + record.lines
        });
        let most = ends.max().unwrap();
        assert!(most <= last && most > last - lines_for(len), "{len}: {most}");
    }
}

#[test]
fn what_is_not_read_has_the_whole_ring() {
    let lines = Plain::new(LARGE);
    let mut producer = Producer::default();
    let fit = (0..).take_while(|_| put(&lines, &mut producer, 100)).count() as u64;
    assert_eq!(fit, (LARGE - 1) / lines_for(100));
}

/// Also where it stops when records have just begun at line 0 again: of the lines only those are lost that two skips and a
/// free line take, that are not given back yet, and where a record does not fit.
#[test]
fn what_a_consumer_leaves_that_stops_has_the_whole_ring() {
    for (len, before) in [0, 100, 200]
        .iter()
        .flat_map(|len| (0..200).map(move |before| (*len, before)))
    {
        let lines = Plain::new(LARGE);
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        producer.stay();
        for _ in 0..before {
            assert!(put(&lines, &mut producer, len));
            let record = consumer.next(&lines).unwrap().unwrap();
            consumer.advance(&lines, record);
        }
        let fit = (0..).take_while(|_| put(&lines, &mut producer, len)).count() as u64;
        let lost = LARGE - fit * lines_for(len);
        assert!(lost <= 3 + 3 + 3 * (lines_for(len) - 1), "{len} {before}: {lost}");
        for _ in 0..fit {
            let record = consumer.next(&lines).unwrap().unwrap();
            assert_eq!(record.len, len);
            consumer.advance(&lines, record);
        }
        assert_eq!(consumer.next(&lines), Ok(None));
        assert!(put(&lines, &mut producer, longest(LARGE)));
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
                    if found == Err(RingEnd::Moved) {
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
