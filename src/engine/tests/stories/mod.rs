//! Messages between two or three endpoints, one feature per test.
//!
//! - `flood`: credit and unexpected messages in great number. `peeks`: FI_PEEK, multi-receives, cancelled receives.
//! - `cancel`: operations that are taken back before they have begun.
//! - `later`: pushes that end later. `offers`: messages that their receiver fetches, and which are.
//! - `peer_death`: peers that die, do not exist, or violate the protocol.

mod cancel;
mod flood;
mod later;
mod offers;
mod peeks;
mod peer_death;

use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::outgoing::Stage;
use crate::engine::port::*;
use crate::engine::tests::sim::*;
use crate::engine::wire::Packet;

fn bed() -> Bed {
    Bed::new(3, 1, Manner::default(), small())
}

/// Little room, so that short stories reach its limits.
fn small() -> Config {
    Config {
        window: 4096,
        room: 4096,
        share: 2048,
        in_flight: 8,
        ..Config::default()
    }
}

/// Fetches messages of up to `gets_at_once` in the poll that brings their offer.
fn bed_that_fetches(gets_at_once: usize) -> Bed {
    let mut manner = Manner::default();
    manner.limits.gets_at_once = gets_at_once;
    Bed::new(2, 1, manner, small())
}

pub(super) fn sends_ended(bed: &Bed, node: PeerId) -> Vec<usize> {
    let sends = bed.ends(node).into_iter().filter(|end| end.op == CompletedOp::Send);
    sends.map(|end| end.context).collect()
}

const CANCELED: Option<Failure> = Some(Failure {
    error: Error::Canceled,
    overflow: 0,
});

/// Below and above one packet, the eager limit, and what `Remote` takes.
const LENGTHS: [usize; 11] = [0, 1, 8, 80, 99, 100, 101, 200, 300, 301, 5000];

fn check(bed: &Bed, recv: usize, sent: usize) {
    let found = bed.found(recv);
    let [(end, bytes)] = &found[..] else {
        panic!("{found:?}")
    };
    let whole = bed.bytes(sent);
    let room = bed.world.borrow().received[recv].recv.body.len();
    let len = whole.len().min(room);
    assert_eq!(*bytes, whole[..len]);
    let world = bed.world.borrow();
    let send = &world.sent[sent].send;
    let expected = Completion {
        op: CompletedOp::Recv,
        kind: send.kind,
        context: recv,
        tell: Tell::Queue,
        len,
        buf: 0,
        tag: send.tag,
        data: send.data,
        source: Some(world.sent[sent].from),
        released: false,
        peeked: false,
        failure: (whole.len() > room).then(|| Failure {
            error: Error::Truncated,
            overflow: whole.len() - room,
        }),
    };
    assert_eq!(*end, expected);
}

#[test]
fn every_length_arrives_expected_or_not_whole_or_cut() {
    for (can_get, gets_at_once) in [(true, 0), (true, 2000), (true, 9000), (false, 9000)] {
        for len in LENGTHS {
            for room in [len, len / 2, 0, len + 10] {
                for (early, inject) in [(true, false), (true, true), (false, false), (false, true)] {
                    let mut manner = Manner::default();
                    manner.limits.can_get = can_get;
                    manner.limits.gets_at_once = gets_at_once;
                    let mut bed = Bed::new(2, 1, manner, small());
                    let cuts = [room / 2, 0, room - room / 2];
                    let early = early.then(|| bed.recv(1, &cuts, tagged(7)));
                    let data = Some(len as u64 + 1);
                    let letter = Letter {
                        inject,
                        data,
                        ..letter(0, 1, 7, len)
                    };
                    let sent = bed.send(letter).unwrap();
                    bed.settle();
                    let recv = early.unwrap_or_else(|| bed.recv(1, &cuts, tagged(7)));
                    bed.settle();
                    check(&bed, recv, sent);
                    assert_eq!(sends_ended(&bed, 0), [sent]);
                }
            }
        }
    }
}

#[test]
fn a_small_message_is_one_packet_and_ends_at_once() {
    let mut bed = bed();
    for _ in 0..2 {
        bed.send(letter(0, 1, 1, 8)).unwrap();
    }
    assert_eq!(sends_ended(&bed, 0), [0, 1]);
    let packets = bed.world.borrow().packets.clone();
    assert_eq!(packets, [(Packet::Eager as u8, 2)].into());
}

#[test]
fn untagged_messages_have_matching_of_their_own() {
    let mut bed = bed();
    let untagged = Recv {
        kind: MessageKind::Untagged,
        ..tagged(3)
    };
    let (first, second) = (bed.recv(1, &[8], untagged), bed.recv(1, &[8], tagged(3)));
    let two = bed.send(letter(0, 1, 3, 8)).unwrap();
    let one = bed
        .send(Letter {
            kind: MessageKind::Untagged,
            tag: 0,
            ..letter(0, 1, 0, 8)
        })
        .unwrap();
    bed.settle();
    check(&bed, first, one);
    check(&bed, second, two);
}

#[test]
fn collectives_have_matching_of_their_own_and_no_look_at_the_applications() {
    for len in LENGTHS {
        let mut bed = bed();
        let kinds = [MessageKind::Collective, MessageKind::Tagged, MessageKind::Untagged];
        let tag = |kind| if kind == MessageKind::Untagged { 0 } else { 3 };
        let recvs = kinds.map(|kind| bed.recv(1, &[len], Recv { kind, ..tagged(3) }));
        assert!(!bed.cancel(1, recvs[0]), "not the application's to cancel");
        let sent = [2, 1, 0].map(|at| {
            let (kind, tag) = (kinds[at], tag(kinds[at]));
            bed.send(Letter {
                kind,
                ..letter(0, 1, tag, len)
            })
            .unwrap()
        });
        bed.settle();
        for (recv, sent) in recvs.into_iter().zip(sent.into_iter().rev()) {
            check(&bed, recv, sent);
        }
    }
}

#[test]
fn directed_receives_take_only_their_sources_messages() {
    let mut bed = bed();
    let from_two = bed.recv(
        1,
        &[400],
        Recv {
            from: Some(2),
            ..tagged(0)
        },
    );
    let from_any = bed.recv(1, &[400], tagged(0));
    let zero = bed.send(letter(0, 1, 0, 8)).unwrap();
    bed.settle();
    let two = bed.send(letter(2, 1, 0, 350)).unwrap();
    bed.settle();
    check(&bed, from_any, zero);
    check(&bed, from_two, two);
}

#[test]
fn delivery_is_told_when_the_message_is_in_place() {
    let level = CompletionLevel::Delivery;
    for (gets_at_once, len) in [0, 9000].into_iter().flat_map(|most| LENGTHS.map(|len| (most, len))) {
        let mut bed = bed_that_fetches(gets_at_once);
        let delivered = Letter {
            level,
            ..letter(0, 1, 1, len)
        };
        let late = bed.send(delivered).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), []);
        let recv = bed.recv(1, &[len], tagged(1));
        bed.settle();
        check(&bed, recv, late);
        assert_eq!(sends_ended(&bed, 0), [late]);
        let recv = bed.recv(1, &[len], tagged(1));
        let awaited = bed.send(delivered).unwrap();
        assert_eq!(sends_ended(&bed, 0), [late]);
        bed.settle();
        check(&bed, recv, awaited);
        assert_eq!(sends_ended(&bed, 0), [late, awaited]);
    }
}

#[test]
fn a_fence_waits_for_all_before_it_and_holds_all_after_it() {
    for len in [8, 200, 1000] {
        let mut bed = bed();
        let level = CompletionLevel::Delivery;
        bed.send(Letter {
            level,
            ..letter(0, 1, 1, len)
        })
        .unwrap();
        bed.send(letter(0, 2, 9, 8)).unwrap(); // others do not count
        bed.send(Letter {
            fence: true,
            ..letter(0, 1, 2, 8)
        })
        .unwrap();
        bed.send(letter(0, 1, 3, 8)).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [1], "{len}");
        let after = bed.recv(1, &[8], tagged(3));
        bed.recv(1, &[len], tagged(1));
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [1, 0, 2, 3]);
        check(&bed, after, 3);
    }
}

#[test]
fn nothing_is_lost_when_the_lane_is_full() {
    let manner = Manner {
        depth: 1,
        ..Manner::default()
    };
    let mut bed = Bed::new(2, 1, manner, small());
    let mut taken = 0;
    let refused = loop {
        match bed.send(Letter {
            inject: true,
            ..letter(0, 1, 0, 8)
        }) {
            Ok(_) => taken += 1,
            Err(why) => break why,
        }
    };
    assert_eq!((refused, taken), (Refused::Again, 1 + small().in_flight));
    assert_eq!(sends_ended(&bed, 0), [0]);
    bed.settle();
    let recvs: Vec<usize> = (0..taken).map(|_| bed.recv(1, &[8], tagged(0))).collect();
    bed.settle();
    recvs
        .iter()
        .enumerate()
        .for_each(|(sent, recv)| check(&bed, *recv, sent));
}
