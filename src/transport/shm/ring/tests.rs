//! The ring over plain memory: records come out as they went in, whatever their lengths and whenever the ring grows.

use super::record::{HALF_LINE, LAP_SHIFT};
use super::*;
use core::cell::{Cell, RefCell};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::rc::Rc;

const SMALL: u64 = 32;

const LARGE: u64 = 128;

/// Plain memory, full of words that look like records.
struct Plain {
    size: Size,
    words: RefCell<Vec<u64>>,
    taken: Rc<Cell<u64>>,
}

impl Plain {
    fn new(cells: u64) -> Plain {
        let size = Size::of(cells);
        let mut words: Vec<u64> = (0..cells).map(|cell| size.lap(cell) | HALF_LINE | 5).collect();
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
        let word = |cell| size.lap(position + cell) | HALF_LINE | 5;
        Plain {
            size,
            words: RefCell::new((0..LARGE).map(word).collect()),
            taken: self.taken.clone(),
        }
    }
}

impl Cells for Plain {
    fn size(&self) -> Size {
        self.size
    }
    fn control(&self, cell: u64) -> u64 {
        self.words.borrow()[cell as usize]
    }
    fn publish(&self, cell: u64, word: u64) {
        self.words.borrow_mut()[cell as usize] = word;
    }
    fn clear(&self, cell: u64) {
        self.publish(cell, 0);
    }
    fn taken(&self) -> u64 {
        self.taken.get()
    }
    fn give_back(&self, position: u64) {
        self.taken.set(position);
    }
}

fn put(ring: &Plain, producer: &mut Producer, form: Form, len: usize) -> bool {
    let Some(slot) = producer.reserve(ring, form, len).unwrap() else {
        return false;
    };
    assert!(
        slot.record.cells == 1 || slot.record.cell % 2 == 0,
        "{slot:?} begins in the middle of a line"
    );
    // What follows covers the control words of its later cells, perhaps with what would be one in the next lap.
    let next = ring.size.lap(producer.tail + slot.skip + ring.size.cells());
    (1..slot.record.cells).for_each(|more| ring.publish(slot.record.cell + more, next | HALF_LINE | 1));
    producer.publish(ring, slot);
    true
}

fn take(ring: &Plain, consumer: &mut Consumer) -> Option<Record> {
    let (short, from) = (consumer.short(ring), consumer.position());
    let found = consumer.next(ring).unwrap();
    let is_at_hand = |record: &Record| record.form != Form::Lines && consumer.position() == from;
    assert_eq!(short, found.filter(is_at_hand));
    if let Some(record) = found {
        consumer.advance(ring, record);
    }
    found
}

const FORMS: [Form; 3] = [Form::HalfLine, Form::OneLine, Form::Lines];

/// The length of a body that has this form, as close to `len` as may be.
fn fitting(form: Form, len: usize) -> usize {
    match form {
        Form::HalfLine => len.min(CELL - form.body_at()),
        Form::OneLine => len.min(LINE - form.body_at()),
        Form::Lines => len.max(LINE - Form::OneLine.body_at() + 1),
    }
}

#[test]
fn records_are_as_long_as_their_cells() {
    let rows = [
        (Form::HalfLine, 0, 1),
        (Form::HalfLine, 8, 1),
        (Form::OneLine, 0, 2),
        (Form::OneLine, 24, 2),
        (Form::Lines, 25, 4),
        (Form::Lines, 64, 4),
        (Form::Lines, 65, 6),
        (Form::Lines, 512, 18),
        (Form::Lines, 513, 20),
        (Form::Lines, 8192, 258),
    ];
    for (form, len, cells) in rows {
        assert_eq!(form.cells(len), cells, "{form:?} {len}");
    }
    for count in [16, 32, 512, 2048, 4096] {
        let most = longest(count);
        assert!(2 * Form::Lines.cells(most) < count / 4 * 3, "{count}: {most}");
        assert!((0..=most).all(|len| Form::Lines.cells(len) <= Form::Lines.cells(most)));
    }
}

/// Nothing of a header may be lost.
#[test]
fn a_record_of_half_a_line_has_room_for_its_header() {
    let (data, total) = (7, 9);
    let rows = [
        ([1, 2, 0, 0], 0, Form::HalfLine),
        ([1, 2, 0, total], 0, Form::HalfLine),
        ([1, 2, data, 0], 0, Form::OneLine),
        ([1, 2, 0, 8], 8, Form::HalfLine),
        ([1, 2, 0, 3], 3, Form::HalfLine),
        ([1, 2, 0, total], 8, Form::OneLine),
        ([1, 2, 0, 0], 3, Form::OneLine),
        ([1, 2, data, 8], 8, Form::OneLine),
        ([1, 2, 0, 9], 9, Form::OneLine),
        ([1, 2, 0, 24], 24, Form::OneLine),
        ([1, 2, 0, 25], 25, Form::Lines),
    ];
    for (header, len, form) in rows {
        assert_eq!(Form::of(&header, len, true), form, "{header:?} {len}");
        assert_ne!(Form::of(&header, len, false), Form::HalfLine);
    }
}

#[test]
fn two_brief_records_share_a_line() {
    let ring = Plain::new(LARGE);
    let (mut producer, mut consumer) = (Producer::of(&ring), Consumer::default());
    for form in [
        Form::HalfLine,
        Form::HalfLine,
        Form::HalfLine,
        Form::OneLine,
        Form::HalfLine,
    ] {
        assert!(put(&ring, &mut producer, form, 8));
    }
    let cells = core::iter::from_fn(|| take(&ring, &mut consumer)).map(|record| (record.cell, record.form));
    let (brief, near) = (Form::HalfLine, Form::OneLine);
    let found: Vec<_> = cells.collect();
    assert_eq!(found, [(0, brief), (1, brief), (2, brief), (4, near), (6, brief)]);
}

#[test]
fn while_the_consumer_keeps_up_records_stay_in_the_front() {
    let rows = [
        (Form::HalfLine, 0, 32),
        (Form::OneLine, 0, 32),
        (Form::Lines, 100, 32),
        (Form::Lines, 200, 32),
        (Form::Lines, 400, 48),
        (Form::Lines, 1000, 102),
    ];
    for (form, len, last) in rows {
        let ring = Plain::new(LARGE);
        let (mut producer, mut consumer) = (Producer::of(&ring), Consumer::default());
        producer.stay();
        let ends = (0..1000).map(|_| {
            assert!(put(&ring, &mut producer, form, len));
            let record = take(&ring, &mut consumer).unwrap();
            record.cell + record.cells
        });
        let most = ends.max().unwrap();
        assert!(most <= last && most > last - form.cells(len), "{form:?} {len}: {most}");
    }
}

#[test]
fn what_is_not_read_has_the_whole_ring() {
    for (form, len) in [(Form::HalfLine, 8), (Form::OneLine, 8), (Form::Lines, 100)] {
        let ring = Plain::new(LARGE);
        let mut producer = Producer::of(&ring);
        let fit = (0..).take_while(|_| put(&ring, &mut producer, form, len)).count() as u64;
        assert_eq!(fit, (LARGE - 1) / form.cells(len));
    }
}

/// Also where it stops when records have just begun at cell 0 again: of the cells only those are lost that two skips
/// and a free cell take, that are not given back yet, and where a record does not fit.
#[test]
fn what_a_consumer_leaves_that_stops_has_the_whole_ring() {
    let forms = [
        (Form::HalfLine, 8),
        (Form::OneLine, 0),
        (Form::Lines, 100),
        (Form::Lines, 200),
    ];
    for ((form, len), before) in forms
        .iter()
        .flat_map(|form| (0..400).map(move |before| (*form, before)))
    {
        let ring = Plain::new(LARGE);
        let (mut producer, mut consumer) = (Producer::of(&ring), Consumer::default());
        producer.stay();
        for _ in 0..before {
            assert!(put(&ring, &mut producer, form, len));
            take(&ring, &mut consumer);
        }
        let fit = (0..).take_while(|_| put(&ring, &mut producer, form, len)).count() as u64;
        let lost = LARGE - fit * form.cells(len);
        let front = Size::of(LARGE).front;
        assert!(
            lost <= 3 + (front / 4 - 1) + 3 * (form.cells(len) - 1),
            "{form:?} {len} {before}: {lost}"
        );
        for _ in 0..fit {
            assert_eq!(take(&ring, &mut consumer).map(|record| record.len), Some(len));
        }
        assert_eq!(consumer.next(&ring), Ok(None));
        assert!(put(&ring, &mut producer, Form::Lines, longest(LARGE)));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(Form, usize),
    Take,
    Grow,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = |(form, len)| Step::Put(form, fitting(form, len));
    let forms = || prop_oneof![Just(Form::HalfLine), Just(Form::OneLine), Just(Form::Lines)];
    let step = prop_oneof![
        20 => (Just(Form::Lines), 0..=longest(LARGE)).prop_map(put),
        30 => (forms(), 0..=longest(SMALL)).prop_map(put),
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
        let small = Plain::new(SMALL);
        let (mut producer, mut consumer) = (Producer::of(&small), Consumer::default());
        let mut large: Option<Plain> = None;
        let mut followed = false;
        let mut inside = VecDeque::new();
        for step in steps {
            match step {
                Step::Put(form, len) => {
                    let ring = large.as_ref().unwrap_or(&small);
                    let done = put(ring, &mut producer, form, len);
                    prop_assert!(done || !inside.is_empty() || len > longest(ring.size.cells()));
                    if done {
                        inside.push_back((form, len));
                    }
                }
                Step::Take => {
                    let ring = if followed { large.as_ref().unwrap() } else { &small };
                    let mut found = consumer.next(ring);
                    if found == Err(RingEnd::Moved) {
                        prop_assert!(!followed && consumer.has_news(ring));
                        consumer.follow();
                        followed = true;
                        found = consumer.next(large.as_ref().unwrap());
                    }
                    let found = found.unwrap();
                    prop_assert_eq!(found.map(|record| (record.form, record.len)), inside.pop_front());
                    let ring = if followed { large.as_ref().unwrap() } else { &small };
                    if let Some(record) = found {
                        consumer.advance(ring, record);
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
        (0..3u64, 0..5u64, 0..1024u64).prop_map(|(lap, kind, len)| lap << LAP_SHIFT | kind << 16 | len),
    ], SMALL as usize), taken in any::<u64>()) {
        let ring = Plain::new(SMALL);
        ring.words.borrow_mut().copy_from_slice(&words);
        ring.taken.set(taken);
        let mut consumer = Consumer::default();
        for _ in 0..100 {
            let short = consumer.short(&ring);
            let next = consumer.next(&ring);
            prop_assert!(short.is_none() || next == Ok(short));
            match next {
                Ok(Some(record)) => {
                    prop_assert!(record.cell + record.cells <= SMALL);
                    prop_assert!(record.form.body_at() + record.len <= record.cells as usize * CELL);
                    consumer.advance(&ring, record);
                }
                Ok(None) | Err(_) => break,
            }
        }
        ring.taken.set(taken);
        let mut producer = Producer::of(&ring);
        for form in (0..100).map(|at| FORMS[at % FORMS.len()]) {
            let len = fitting(form, 100);
            match producer.reserve(&ring, form, len) {
                Ok(Some(slot)) => {
                    prop_assert!(slot.record.cell + slot.record.cells <= SMALL);
                    producer.publish(&ring, slot);
                }
                Ok(None) | Err(Broken) => break,
            }
        }
    }
}
