//! Sends whose packets the transport keeps: they end when it is done with them, and not before.

use super::*;
use crate::util::slab::Id;

/// Every push that may end later does.
fn keeping() -> Bed {
    let manner = Manner {
        keeps: 16,
        ..Manner::default()
    };
    Bed::new(3, 1, manner, small())
}

#[test]
fn a_send_ends_when_the_transport_is_done_with_it() {
    for level in [
        CompletionLevel::Inject,
        CompletionLevel::Transmit,
        CompletionLevel::Delivery,
    ] {
        for (len, inject) in LENGTHS.into_iter().flat_map(|len| [(len, false), (len, true)]) {
            let mut bed = keeping();
            let recv = bed.recv(1, &[5000], tagged(1));
            // What is copied at once, or has no memory, ends at once if nobody waits for more.
            let at_once = level == CompletionLevel::Inject && (inject && len <= 300 || len == 0);
            for node in 0..2 {
                bed.progress(node); // so that the fast path is open
            }
            let sent = bed
                .send(Letter {
                    level,
                    inject,
                    ..letter(0, 1, 1, len)
                })
                .unwrap();
            let ended = !sends_ended(&bed, 0).is_empty();
            assert_eq!(ended, at_once, "{level:?} {len} {inject}");
            bed.settle();
            check(&bed, recv, sent);
            assert_eq!(sends_ended(&bed, 0), [sent], "{level:?} {len} {inject}");
            assert!(bed.nodes.iter().all(|node| node.engine.leftovers() == [0; 5]));
        }
    }
}

/// The receiver has answered, but the transport has not said that it is done with the memory.
#[test]
fn an_answer_does_not_end_what_the_transport_still_has() {
    let level = CompletionLevel::Delivery;
    let mut late = 0;
    for seed in 0..40 {
        let manner = Manner {
            keeps: 16,
            ..Manner::default()
        };
        let mut bed = Bed::new(2, seed, manner, small());
        bed.recv(1, &[80], tagged(1));
        bed.send(Letter {
            level,
            ..letter(0, 1, 1, 80)
        })
        .unwrap();
        for _ in 0..60 {
            let told = bed.world.borrow().sent_later == 1;
            assert!(told || sends_ended(&bed, 0).is_empty());
            let answered = bed.nodes[0].engine.core.outgoing.iter();
            let answered = answered.filter(|(_, send)| matches!(send.stage, Stage::Ended(None)));
            let answered = answered.count();
            late += usize::from(!told && answered == 1);
            bed.world.borrow_mut().now += 1;
            bed.progress(1);
            bed.progress(0);
        }
        assert_eq!(sends_ended(&bed, 0), [0]);
    }
    assert!(late > 0, "never answered before it was told");
}

/// No more than `Config::in_flight` are with the transport at a time.
#[test]
fn what_the_transport_keeps_is_limited() {
    let mut bed = keeping();
    bed.progress(0);
    let most = small().in_flight;
    for _ in 0..most {
        bed.send(letter(0, 1, 1, 8)).unwrap();
    }
    assert_eq!(bed.send(letter(0, 1, 1, 8)), Err(Refused::Again));
    bed.settle();
    assert_eq!(sends_ended(&bed, 0).len(), most);
    bed.send(letter(0, 1, 1, 8)).unwrap();
}

#[test]
fn a_packet_that_fails_fails_its_send_once_all_are_let_go() {
    let mut bed = keeping();
    bed.world.borrow_mut().manner.depth = 2;
    bed.send(letter(0, 1, 1, 290)).unwrap();
    let Node { engine, reporter, .. } = bed.node(0);
    let id: Vec<Id> = engine.core.outgoing.iter().map(|(id, _)| id).collect();
    assert_eq!(engine.core.outgoing.get(id[0]).map(|send| send.held), Some(2));
    engine.core.packet_sent(id[0], Err(Error::Broken), reporter);
    assert_eq!(engine.core.outgoing.len(), 1, "another packet is with the transport");
    engine.core.packet_sent(id[0], Ok(()), reporter);
    let failure = bed.ends(0)[0].failure.map(|failure| failure.error);
    assert_eq!((bed.ends(0).len(), failure), (1, Some(Error::Broken)));
    let engine = &bed.nodes[0].engine;
    assert_eq!((engine.leftovers()[0], engine.core.peers[1].queue.len()), (0, 0));
}

/// What a peer that violates the protocol has to do with ends when the transport touches it no more.
#[test]
fn a_shunned_peers_operations_wait_for_the_transport() {
    let mut bed = keeping();
    bed.progress(0);
    let sent = bed.send(letter(0, 1, 1, 80)).unwrap();
    let nonsense = crate::engine::wire::Header::new(Packet::Segment, 9);
    let core = &mut bed.node(0).engine.core;
    core.shun(1);
    assert_eq!(sends_ended(&bed, 0), []);
    bed.world.borrow_mut().put(1, 0, nonsense, &[0; 10]);
    bed.settle();
    assert_eq!(sends_ended(&bed, 0), [sent]);
    let failure = bed.ends(0)[0].failure.map(|failure| failure.error);
    assert_eq!((failure, bed.world.borrow().sent_later), (Some(Error::Protocol), 0));
    assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
}
