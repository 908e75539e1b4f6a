//! Atomic operations on the buffers of tagged receives.

use super::atomic::{SUM, bytes, operation, words};
use super::*;
use crate::engine::tests::stories::sends_ended;
use crate::mem::atomic::Op;

const CSWAP: Op = Op::Cswap;

fn at(tag: u64, at: u64) -> AtomicTarget {
    AtomicTarget::Tagged { tag, at }
}

/// How the end of one should look.
fn ended(form: Form, tag: u64, len: usize, error: Option<Error>) -> Completion {
    Completion {
        kind: MessageKind::Tagged,
        tag,
        ..end(CompletedOp::Atomic(form), 1, len, error)
    }
}

/// A receive whose buffer already has something in it.
fn post(bed: &mut Bed, tag: u64, content: &[u64]) -> (usize, Lent) {
    let recv = bed.recv(1, &[content.len() * 8], tagged(tag));
    let memory = bed.world.borrow().received[recv].memory;
    memory.set(&bytes(content));
    (recv, memory)
}

fn received(bed: &Bed, recv: usize) -> Completion {
    let found = bed.found(recv);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].0
}

fn as_received(recv: usize, tag: u64, len: usize, data: Option<u64>, overflow: usize) -> Completion {
    Completion {
        op: CompletedOp::Recv,
        context: recv,
        data,
        source: Some(0),
        failure: (overflow > 0).then_some(Failure {
            error: Error::Truncated,
            overflow,
        }),
        ..Completion {
            len,
            ..ended(Form::Base, tag, len, None)
        }
    }
}

#[test]
fn the_buffer_of_a_posted_receive_is_worked_on() {
    for manner in manners() {
        for form in [Form::Base, Form::Fetch, Form::Compare] {
            let mut bed = Bed::new(2, 4, manner, small());
            let other = post(&mut bed, 8, &[7, 7]);
            let (recv, memory) = post(&mut bed, 9, &[1, 2, 3, 4]);
            let (operand, compare, result) = (words(&[10, 20]), words(&[2, 0]), words(&[0, 0]));
            let data = (form == Form::Base).then_some(99);
            let op = if form == Form::Compare { CSWAP } else { SUM };
            let atomic = Atomic {
                data,
                compare: if form == Form::Compare {
                    compare.iov()
                } else {
                    UserIov::default()
                },
                result: if form == Form::Base {
                    UserIov::default()
                } else {
                    result.iov()
                },
                ..operation(form, op, at(9, 8), &operand)
            };
            bed.atomic(0, &atomic).unwrap();
            bed.settle();
            assert_eq!(bed.done(0), [ended(form, 9, 16, None)], "{manner:?}");
            assert_eq!(received(&bed, recv), as_received(recv, 9, 16, data, 0));
            let (after, was): (&[u64], &[u64]) = match form {
                Form::Base => (&[1, 12, 23, 4], &[0, 0]),
                Form::Fetch => (&[1, 12, 23, 4], &[2, 3]),
                Form::Compare => (&[1, 10, 3, 4], &[2, 3]),
            };
            assert_eq!((memory.bytes(), result.bytes()), (bytes(after), bytes(was)));
            assert!(bed.found(other.0).is_empty());
            assert!(bed.cancel(1, other.0));
            bed.check_nothing_left();
        }
    }
}

#[test]
fn one_without_a_receive_is_held_in_order_with_messages() {
    for manner in manners() {
        let mut bed = Bed::new(2, 4, manner, small());
        let (one, two, result) = (words(&[1]), words(&[2]), words(&[0]));
        bed.atomic(0, &operation(Form::Base, SUM, at(9, 0), &one)).unwrap();
        let sent = bed.send(letter(0, 1, 9, 8)).unwrap();
        let fetch = Atomic {
            result: result.iov(),
            ..operation(Form::Fetch, SUM, at(9, 8), &two)
        };
        bed.atomic(0, &fetch).unwrap();
        bed.settle();
        assert_eq!(bed.done(0), []);
        let (first, first_memory) = {
            let recv = Recv {
                ignore: 2,
                ..tagged(11)
            };
            // The receive is filled while it is posted, so what was in it is zeros.
            let recv = bed.recv(1, &[8], recv);
            (recv, bed.world.borrow().received[recv].memory)
        };
        bed.settle();
        assert_eq!(bed.done(0), [ended(Form::Base, 9, 8, None)], "{manner:?}");
        assert_eq!(received(&bed, first), as_received(first, 9, 8, None, 0));
        assert_eq!(first_memory.bytes(), bytes(&[1]));
        let message = bed.recv(1, &[8], tagged(9));
        bed.settle();
        assert_eq!(bed.found(message)[0].1, bed.bytes(sent));
        assert_eq!(sends_ended(&bed, 0), [sent]);
        let last = bed.recv(1, &[16], tagged(9));
        bed.settle();
        assert_eq!(received(&bed, last), as_received(last, 9, 8, None, 0));
        assert_eq!(bed.done(0), [ended(Form::Fetch, 9, 8, None)]);
        assert_eq!(result.bytes(), bytes(&[0]));
        assert_eq!(bed.world.borrow().received[last].memory.bytes(), bytes(&[0, 2]));
        bed.check_nothing_left();
    }
}

#[test]
fn a_buffer_that_is_too_small_is_not_touched_and_both_are_told() {
    for manner in manners() {
        for early in [false, true] {
            for (offset, room) in [(0, 1), (8, 2), (16, 2), (u64::MAX, 2), (1000, 0)] {
                let mut bed = Bed::new(2, 4, manner, small());
                let content = [5, 6];
                let operand = words(&[1, 1]);
                let atomic = operation(Form::Base, SUM, at(9, offset), &operand);
                let recv = early.then(|| post(&mut bed, 9, &content[..room]));
                bed.atomic(0, &atomic).unwrap();
                bed.settle();
                let (recv, memory) = recv.unwrap_or_else(|| {
                    let recv = bed.recv(1, &[room * 8], tagged(9));
                    (recv, bed.world.borrow().received[recv].memory)
                });
                bed.settle();
                assert_eq!(bed.done(0), [ended(Form::Base, 9, 16, Some(Error::OutOfRange))]);
                let reached = (room as u64 * 8).saturating_sub(offset) as usize;
                assert_eq!(received(&bed, recv), as_received(recv, 9, reached, None, 16 - reached));
                let untouched = if early {
                    bytes(&content[..room])
                } else {
                    vec![0; room * 8]
                };
                assert_eq!(memory.bytes(), untouched);
                bed.check_nothing_left();
            }
        }
    }
}

#[test]
fn a_held_one_is_seen_claimed_and_dropped_like_a_message() {
    for (peek, then) in [
        (Peek::Discard, None),
        (Peek::Claim, Some(Peek::DiscardClaimed)),
        (Peek::Claim, Some(Peek::ReceiveClaimed)),
    ] {
        let mut bed = Bed::new(2, 4, manners()[0], small());
        let operand = words(&[3, 4]);
        bed.atomic(0, &operation(Form::Base, SUM, at(9, 0), &operand)).unwrap();
        bed.settle();
        let recv = Recv {
            context: PEEK,
            ..tagged(9)
        };
        bed.peek(1, Peek::Only, recv).unwrap();
        bed.peek(1, peek, recv).unwrap();
        let seen: Vec<(usize, bool)> = bed.ends(1).iter().map(|end| (end.len, end.peeked)).collect();
        assert_eq!(seen, [(16, true), (16, true)]);
        let mut memory = None;
        match then {
            Some(Peek::ReceiveClaimed) => memory = Some(bed.take(1, 16, recv)),
            Some(peek) => bed.peek(1, peek, recv).unwrap(),
            None => {}
        }
        bed.settle();
        let error = memory.is_none().then_some(Error::Canceled);
        assert_eq!(bed.done(0), [ended(Form::Base, 9, 16, error)]);
        assert!(memory.is_none_or(|memory| memory.bytes() == bytes(&[3, 4])));
        bed.check_nothing_left();
    }
}

#[test]
fn many_go_into_one_multi_receive() {
    for early in [false, true] {
        let mut bed = Bed::new(2, 4, manners()[0], small());
        let recv = Recv {
            multi: Some(8),
            ..tagged(9)
        };
        let posted = early.then(|| bed.recv(1, &[48], recv));
        for (offset, operand) in [(0, words(&[1, 2])), (8, words(&[3])), (0, words(&[4, 5]))] {
            bed.atomic(0, &operation(Form::Base, SUM, at(9, offset), &operand))
                .unwrap();
        }
        bed.settle();
        let posted = posted.unwrap_or_else(|| bed.recv(1, &[48], recv));
        bed.settle();
        assert_eq!(bed.done(0).len(), 3);
        let memory = bed.world.borrow().received[posted].memory;
        assert_eq!(memory.bytes(), bytes(&[1, 2, 0, 3, 4, 5]));
        let ends = bed
            .found(posted)
            .into_iter()
            .map(|(end, _)| (end.len, end.released, end.failure));
        assert_eq!(
            ends.collect::<Vec<_>>(),
            [(16, false, None), (8, false, None), (16, true, None)]
        );
        bed.check_nothing_left();
    }
}

/// More than the target wants to keep: none is lost, all credit comes back, and later ones can be received first.
#[test]
fn a_flood_of_them_is_held_and_done() {
    for manner in manners() {
        let config = Config {
            in_flight: 100,
            room: 1500,
            share: 1000,
            ..small()
        };
        let mut bed = Bed::new(2, 4, manner, config);
        let one = words(&[1]);
        for tag in 0..100 {
            bed.atomic(0, &operation(Form::Base, SUM, at(tag, 0), &one)).unwrap();
        }
        assert_eq!(
            bed.atomic(0, &operation(Form::Base, SUM, at(0, 0), &one)),
            Err(Refused::Again)
        );
        bed.settle();
        for tag in (0..100).rev() {
            let recv = bed.recv(1, &[8], tagged(tag));
            bed.settle();
            assert_eq!(
                bed.world.borrow().received[recv].memory.bytes(),
                bytes(&[1]),
                "{manner:?}"
            );
            assert_eq!(bed.done(0), [ended(Form::Base, tag, 8, None)]);
        }
        bed.check_nothing_left();
        let (credit, ..) = bed.nodes[0].engine.credit(1);
        let (_, allowed, due) = bed.nodes[1].engine.credit(0);
        assert_eq!((allowed, credit + due), (credit, config.window));
    }
}

/// One whose sender has died is done all the same, as a held message is received.
#[test]
fn the_dead_may_have_left_one() {
    let mut bed = Bed::new(2, 4, manners()[0], small());
    let operand = words(&[3]);
    bed.atomic(0, &operation(Form::Base, SUM, at(9, 0), &operand)).unwrap();
    bed.settle();
    bed.kill(0);
    bed.settle();
    let recv = bed.recv(1, &[8], tagged(9));
    assert_eq!(received(&bed, recv), as_received(recv, 9, 8, None, 0));
    bed.settle();
    assert_eq!(bed.nodes[1].engine.leftovers(), [0; 5]);
    assert_eq!(bed.world.borrow().knocks, 0);
}
