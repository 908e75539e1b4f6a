//! The queue against a plain list: entries, errors and lent arrays in every order that proptest makes up, and what is
//! lost when it may not grow.

use super::*;
use crate::util::user_array::kept;
use proptest::prelude::*;

fn entry(context: usize) -> Entry {
    Entry {
        context,
        ..Entry::default()
    }
}

fn error(context: usize) -> ErrorEntry {
    ErrorEntry {
        context,
        err: 1,
        ..ErrorEntry::default()
    }
}

/// Everything in the queue, in reading order, negative for errors.
fn drain(queue: &mut Queue, at_most: usize) -> Vec<isize> {
    let mut seen = Vec::new();
    while seen.len() < at_most {
        match queue.take(at_most - seen.len(), |entry| seen.push(entry.context as isize)) {
            Taken::Entries(_) => {}
            Taken::Empty => break,
            Taken::Error => seen.push(-(queue.take_error().unwrap().context as isize)),
        }
    }
    seen
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Error,
    Read(usize),
    Drain(usize),
    /// What there is is read; then an array of so much room is lent, and gets what comes before an error and behind it.
    Lend {
        room: usize,
        before: usize,
        error: bool,
        behind: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1usize..20).prop_map(Step::Push),
        Just(Step::Error),
        (0usize..10).prop_map(Step::Read),
        (1usize..20).prop_map(Step::Drain),
        (0usize..20, 0usize..20, any::<bool>(), 0usize..20).prop_map(|(room, before, error, behind)| Step::Lend {
            room,
            before,
            error,
            behind
        }),
    ]
}

proptest! {
    #[test]
    fn what_comes_out_is_what_went_in_in_order(capacity in 1usize..40, steps in prop::collection::vec(step(), 0..200)) {
        let mut queue = Queue::new(capacity, true);
        let mut model: VecDeque<isize> = VecDeque::new();
        let mut next = 1;
        for step in steps {
            match step {
                Step::Push(count) => for _ in 0..count {
                    queue.push(&entry(next));
                    model.push_back(next as isize);
                    next += 1;
                },
                Step::Error => {
                    queue.push_error(error(next));
                    model.push_back(-(next as isize));
                    next += 1;
                }
                Step::Read(count) => {
                    let mut seen = Vec::new();
                    let taken = queue.take(count, |entry| seen.push(entry.context as isize));
                    let good = model.iter().take(count).take_while(|n| **n > 0).count();
                    let expected = match model.front() {
                        None => Taken::Empty,
                        Some(first) if *first < 0 && count > 0 => Taken::Error,
                        Some(_) => Taken::Entries(good),
                    };
                    prop_assert_eq!(taken, expected);
                    prop_assert_eq!(seen, model.drain(..good).collect::<Vec<_>>());
                    prop_assert_eq!(queue.restart_if_read(), model.is_empty());
                }
                Step::Drain(count) => {
                    let count = count.min(model.len());
                    prop_assert_eq!(drain(&mut queue, count), model.drain(..count).collect::<Vec<_>>());
                }
                Step::Lend { room, before, error: with_error, behind } => {
                    prop_assert_eq!(drain(&mut queue, model.len()), model.drain(..).collect::<Vec<_>>());
                    let (array, read) = kept(room);
                    queue.lend(array);
                    prop_assert!(!queue.has_told());
                    for at in 0..before + behind {
                        if with_error && at == before {
                            queue.push_error(error(next));
                            model.push_back(-(next as isize));
                            next += 1;
                        }
                        prop_assert_eq!(queue.push(&entry(next)), at >= room || with_error && at >= before);
                        model.push_back(next as isize);
                        next += 1;
                    }
                    prop_assert_eq!(queue.has_told(), before + behind > 0);
                    let filled = queue.take_back();
                    prop_assert!(queue.push(&entry(next)), "an array that was taken back is not written to");
                    model.push_back(next as isize);
                    next += 1;
                    let seen = read.take(filled).map(|(fields, _)| fields[0] as isize);
                    prop_assert_eq!(seen.collect::<Vec<_>>(), model.drain(..filled).collect::<Vec<_>>());
                    let good = if with_error && behind > 0 { before } else { before + behind };
                    prop_assert_eq!(filled, room.min(good));
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.has_room(1), model.len() < capacity);
            prop_assert!(!queue.is_overrun());
        }
    }

    #[test]
    fn an_unmanaged_queue_keeps_what_it_has_room_for_then_says_so(capacity in 1usize..3000, more in 1usize..50) {
        let mut queue = Queue::new(capacity, false);
        (1..=capacity + more).for_each(|n| {
            queue.push(&entry(n));
        });
        prop_assert!(queue.is_overrun());
        prop_assert_eq!(drain(&mut queue, capacity), (1..=capacity as isize).collect::<Vec<_>>());
        for _ in 0..3 {
            queue.push(&entry(1));
            prop_assert_eq!(queue.take(1, |_| ()), Taken::Error);
            prop_assert_eq!(queue.take_error().map(|error| error.err), Some(FI_EOVERRUN as c_int));
        }
    }
}

#[test]
fn errors_are_read_only_when_it_is_their_turn() {
    let mut queue = Queue::new(8, false);
    assert!(queue.take_error().is_none());
    queue.push(&entry(1));
    queue.push_error(error(2));
    queue.push_error(error(3));
    queue.push(&entry(4));
    assert!(queue.take_error().is_none());
    assert_eq!(queue.take(9, |_| ()), Taken::Entries(1));
    assert_eq!(queue.take(9, |_| ()), Taken::Error);
    assert_eq!(queue.take(0, |_| ()), Taken::Entries(0));
    assert_eq!(queue.take_error().map(|error| error.context), Some(2));
    assert_eq!(queue.take(9, |_| ()), Taken::Error);
    assert_eq!(queue.take_error().map(|error| error.context), Some(3));
    assert_eq!(queue.take(9, |_| ()), Taken::Entries(1));
    assert_eq!(
        (queue.take(9, |_| ()), queue.take(0, |_| ())),
        (Taken::Empty, Taken::Empty)
    );
}

#[test]
fn error_data_stays_until_the_next_error() {
    let mut queue = Queue::new(8, false);
    queue.push_error(ErrorEntry {
        err_data: vec![7; 100],
        ..error(1)
    });
    queue.push_error(error(2));
    let at = queue.take_error().unwrap().err_data.as_ptr();
    queue.push(&entry(3));
    assert_eq!(queue.last.err_data, vec![7; 100]);
    assert_eq!(queue.last.err_data.as_ptr(), at);
}
