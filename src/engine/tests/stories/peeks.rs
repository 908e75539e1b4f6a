//! Multi-receives, cancelling, and FI_PEEK with FI_CLAIM and FI_DISCARD.

use super::*;

#[test]
fn a_multi_receive_is_filled_piece_by_piece_and_given_back_once() {
    for early in [true, false] {
        let mut bed = bed();
        let multi = Recv {
            multi: Some(60),
            ..tagged(0)
        };
        let early = early.then(|| bed.recv(1, &[1000], multi));
        // The third leaves 50 bytes, less than 60.
        let lens = [400, 250, 300, 10];
        for len in lens {
            bed.send(letter(0, 1, 0, len)).unwrap();
        }
        bed.settle();
        let recv = early.unwrap_or_else(|| bed.recv(1, &[1000], multi));
        bed.settle();
        let found = bed.found(recv);
        let start = bed.world.borrow().received[recv].memory.iov().address(0);
        let mut by_place = found.clone();
        by_place.sort_by_key(|(end, _)| end.buf);
        let places: Vec<_> = by_place
            .iter()
            .map(|(end, _)| (end.buf - start, end.len, end.failure))
            .collect();
        assert_eq!(places, [(0, 400, None), (400, 250, None), (650, 300, None)]);
        for (sent, (_, bytes)) in by_place.iter().enumerate() {
            assert_eq!(*bytes, bed.bytes(sent));
        }
        let released: Vec<bool> = found.iter().map(|(end, _)| end.released).collect();
        assert_eq!(released, [false, false, true]);
        let last = bed.recv(1, &[10], tagged(0));
        bed.settle();
        check(&bed, last, 3);
    }
}

#[test]
fn a_message_longer_than_what_is_left_of_a_multi_receive_is_cut() {
    let mut bed = bed();
    let recv = bed.recv(
        1,
        &[100],
        Recv {
            multi: Some(1),
            tell: Tell::Counters,
            ..tagged(0)
        },
    );
    bed.send(letter(0, 1, 0, 70)).unwrap();
    bed.send(letter(0, 1, 0, 70)).unwrap();
    bed.settle();
    let found = bed.found(recv);
    let failure = Some(Failure {
        error: Error::Truncated,
        overflow: 40,
    });
    let ends: Vec<_> = found
        .iter()
        .map(|(end, _)| (end.len, end.failure, end.released, end.tell))
        .collect();
    assert_eq!(
        ends,
        [(70, None, false, Tell::Counters), (30, failure, true, Tell::Queue)]
    );
    assert_eq!(found[1].1, bed.bytes(1)[..30]);
}

#[test]
fn a_cancelled_multi_receive_is_given_back_after_its_last_message() {
    use crate::engine::op::OperationOf;
    let manner = Manner {
        gets: [0, 0, 0],
        ..Manner::default()
    };
    // What the library began is given back to it, and to nobody's queue.
    let began = [
        (Tell::Queue, OperationOf::Program as fn(Context) -> OperationOf),
        (Tell::Own, OperationOf::Library),
    ];
    for (tell, named) in began {
        let mut bed = Bed::new(2, 1, manner, small());
        let recv = bed.recv(
            1,
            &[2000],
            Recv {
                multi: Some(1),
                tell,
                ..tagged(0)
            },
        );
        bed.send(letter(0, 1, 0, 1000)).unwrap();
        bed.progress(0);
        bed.progress(1);
        assert_eq!(bed.found(recv).len(), 0);
        assert!(bed.take_back(1, named(recv)));
        assert!(!bed.take_back(1, named(recv)));
        assert_eq!(bed.found(recv).len(), 0);
        bed.settle();
        let found = bed.found(recv);
        let ends: Vec<_> = found
            .iter()
            .map(|(end, _)| (end.len, end.failure, end.released, end.tell))
            .collect();
        assert_eq!(ends, [(1000, None, false, tell), (0, CANCELED, true, tell)]);
        assert_eq!(found[0].1, bed.bytes(0));
    }
}

#[test]
fn cancel_ends_the_oldest_with_the_context_and_none_that_has_a_message() {
    let mut bed = bed();
    let recvs = [bed.recv(1, &[8], tagged(1)), bed.recv(1, &[8], tagged(2))];
    assert!(bed.cancel(1, recvs[0]));
    assert!(!bed.cancel(1, recvs[0]));
    assert_eq!(bed.found(recvs[0])[0].0.failure, CANCELED);
    let sent = bed.send(letter(0, 1, 2, 8)).unwrap();
    bed.settle();
    assert!(!bed.cancel(1, recvs[1]));
    check(&bed, recvs[1], sent);
}

#[test]
fn cancel_never_meets_what_the_library_began() {
    let mut bed = bed();
    let recv = bed.recv(
        1,
        &[8],
        Recv {
            tell: Tell::Own,
            ..tagged(1)
        },
    );
    assert!(!bed.cancel(1, recv));
    bed.send(letter(0, 1, 1, 8)).unwrap();
    bed.settle();
    let [(end, _)] = &bed.found(recv)[..] else {
        panic!("not one end")
    };
    assert_eq!((end.tell, end.len, end.failure), (Tell::Own, 8, None));
}

#[test]
fn looking_says_what_is_there_and_leaves_it() {
    for len in LENGTHS {
        let mut bed = bed();
        let (peek, data) = (
            Recv {
                context: PEEK,
                ..tagged(5)
            },
            Some(77),
        );
        bed.peek(1, Peek::Only, peek).unwrap();
        let sent = bed
            .send(Letter {
                data,
                ..letter(0, 1, 5, len)
            })
            .unwrap();
        bed.settle();
        bed.peek(1, Peek::Only, peek).unwrap();
        let ends = bed.ends(1);
        let nothing = Some(Failure {
            error: Error::NoMessage,
            overflow: 0,
        });
        assert_eq!(
            (ends[0].failure, ends[0].peeked, ends[0].context),
            (nothing, true, PEEK)
        );
        let there = (ends[1].failure, ends[1].len, ends[1].tag, ends[1].data, ends[1].source);
        assert_eq!((there, ends[1].peeked), ((None, len, 5, data, Some(0)), true));
        let recv = bed.recv(1, &[len], tagged(5));
        bed.settle();
        check(&bed, recv, sent);
    }
}

/// Behind more than one poll takes, of which the program hears.
#[test]
fn looking_alone_finds_what_has_come() {
    const BEFORE: usize = 100;
    for peek in [Peek::Only, Peek::Claim, Peek::Discard] {
        let mut bed = Bed::new(2, 1, Manner::default(), Config::default());
        let recv = Recv {
            context: PEEK,
            ..tagged(5)
        };
        for _ in 0..BEFORE {
            bed.recv(1, &[8], tagged(4));
            bed.send(letter(0, 1, 4, 8)).unwrap();
        }
        bed.send(letter(0, 1, 5, 50)).unwrap();
        bed.world.borrow_mut().now += 1;
        bed.peek(1, peek, recv).unwrap();
        let ends = bed.ends(1);
        let [before @ .., found] = &*ends else { panic!("no end") };
        assert_eq!(before.len(), BEFORE, "{peek:?}");
        assert_eq!((found.context, found.failure, found.len), (PEEK, None, 50), "{peek:?}");
    }
}

#[test]
fn a_claimed_message_is_only_for_its_claimer() {
    for len in LENGTHS {
        let mut bed = bed();
        let claim = Recv {
            context: PEEK,
            ..tagged(5)
        };
        let sent = [0, 1].map(|_| {
            bed.send(Letter {
                level: CompletionLevel::Delivery,
                ..letter(0, 1, 5, len)
            })
            .unwrap()
        });
        bed.settle();
        bed.peek(1, Peek::Claim, claim).unwrap();
        assert_eq!(bed.peek(1, Peek::Claim, claim), Err(Refused::Invalid));
        let recv = bed.recv(1, &[len], tagged(5));
        bed.settle();
        check(&bed, recv, sent[1]);
        assert_eq!(sends_ended(&bed, 0), [sent[1]]);
        let memory = bed.take(1, len, claim);
        bed.settle();
        assert_eq!(memory.bytes(), bed.bytes(sent[0]));
        assert_eq!(sends_ended(&bed, 0), [sent[1], sent[0]]);
        assert_eq!(bed.peek(1, Peek::ReceiveClaimed, claim), Err(Refused::Invalid));
    }
}

#[test]
fn a_dropped_message_ends_its_send_too() {
    for len in LENGTHS {
        let mut bed = bed();
        let peek = Recv {
            context: PEEK,
            ..tagged(5)
        };
        for _ in 0..2 {
            bed.send(Letter {
                level: CompletionLevel::Delivery,
                ..letter(0, 1, 5, len)
            })
            .unwrap();
        }
        bed.settle();
        bed.peek(1, Peek::Discard, peek).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [0]);
        bed.peek(1, Peek::Claim, peek).unwrap();
        bed.peek(1, Peek::DiscardClaimed, peek).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [0, 1]);
        bed.peek(1, Peek::Only, peek).unwrap();
        let ends = bed.ends(1);
        let seen: Vec<_> = ends
            .iter()
            .map(|end| (end.len, end.peeked, end.failure.is_some()))
            .collect();
        assert_eq!(
            seen,
            [
                (len, true, false),
                (len, true, false),
                (len, false, false),
                (0, true, true)
            ]
        );
    }
}
