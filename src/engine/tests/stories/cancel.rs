//! Operations that are taken back before anything of them has left.

use super::*;
use crate::util::user::UserIov;

/// Of the sends of node 0: what ended, and how.
fn ends(bed: &Bed) -> Vec<(usize, usize, Option<Failure>)> {
    let ends = bed.ends(0).into_iter().filter(|end| end.op == CompletedOp::Send);
    ends.map(|end| (end.context, end.len, end.failure)).collect()
}

/// A lane that holds one packet: all but the first of several messages are queued.
fn narrow() -> Bed {
    let manner = Manner {
        depth: 1,
        ..Manner::default()
    };
    Bed::new(2, 1, manner, small())
}

#[test]
fn what_is_queued_is_taken_back_and_the_others_arrive() {
    let mut bed = narrow();
    for number in 0..5 {
        assert_eq!(bed.send(letter(0, 1, number, 8)), Ok(number as usize));
    }
    assert_eq!(ends(&bed), [(0, 8, None)]);
    assert!(bed.cancel_send(0, 2));
    assert!(!bed.cancel_send(0, 2), "it has ended");
    assert!(bed.cancel_send(0, 4));
    assert_eq!(ends(&bed), [(0, 8, None), (2, 0, CANCELED), (4, 0, CANCELED)]);
    bed.settle();
    assert!(!bed.cancel_send(0, 3), "it has left");
    for number in [0, 1, 3] {
        let recv = bed.recv(1, &[8], tagged(number));
        check(&bed, recv, number as usize);
    }
    let others = [2, 4].map(|number| bed.recv(1, &[8], tagged(number)));
    bed.settle();
    assert!(others.iter().all(|recv| bed.found(*recv).is_empty()));
    assert_eq!(sends_ended(&bed, 0), [0, 2, 4, 1, 3]);
    assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
}

/// A fence waits for a message that nobody receives; without it the next one goes at once.
#[test]
fn what_has_waited_behind_it_goes() {
    let mut bed = bed();
    let level = CompletionLevel::Delivery;
    bed.send(Letter {
        level,
        ..letter(0, 1, 0, 8)
    })
    .unwrap();
    let fence = bed
        .send(Letter {
            fence: true,
            ..letter(0, 1, 1, 8)
        })
        .unwrap();
    let behind = bed.send(letter(0, 1, 2, 8)).unwrap();
    bed.settle();
    assert!(ends(&bed).is_empty());
    assert!(bed.cancel_send(0, fence));
    assert_eq!(ends(&bed), [(fence, 0, CANCELED), (behind, 8, None)]);
    bed.settle();
    let recv = bed.recv(1, &[8], tagged(2));
    check(&bed, recv, behind);
}

/// A message of which some has left, or that the peer was offered, goes on.
#[test]
fn what_has_begun_is_not_taken_back() {
    for len in [300, 5000] {
        let mut bed = narrow();
        bed.send(letter(0, 1, 0, 8)).unwrap();
        let long = bed.send(letter(0, 1, 1, len)).unwrap();
        bed.progress(1);
        bed.progress(0);
        assert!(!bed.cancel_send(0, long), "{len}");
        let recv = bed.recv(1, &[len], tagged(1));
        bed.settle();
        check(&bed, recv, long);
    }
}

/// Injected operations have no context, so NULL names nothing; and the program cannot mean what the library has begun.
#[test]
fn nothing_else_is_meant() {
    let mut bed = narrow();
    bed.send(letter(0, 1, 0, 8)).unwrap();
    let mut queue = |context, tell| {
        let body = UserIov::NONE;
        let Node { engine, reporter, .. } = bed.node(0);
        let send = Send {
            kind: MessageKind::Tagged,
            to: 1,
            tag: 1,
            data: None,
            body,
            inject: false,
            level: CompletionLevel::Inject,
            fence: false,
            context,
            tell,
        };
        engine.send(&send, reporter).unwrap();
    };
    queue(0, Tell::Counters);
    queue(7, Tell::Own);
    let mut cancel = |operation| {
        let mut told = Vec::new();
        let found = bed.node(0).engine.cancel_queued(operation, &mut told);
        (found, told.len())
    };
    assert_eq!(cancel(OperationOf::Program(0)), (false, 0));
    assert_eq!(cancel(OperationOf::Program(7)), (false, 0));
    assert_eq!(cancel(OperationOf::Library(7)), (true, 1));
}
