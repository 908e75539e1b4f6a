//! Peers that die, do not exist, or violate the protocol.

use super::*;
use crate::engine::wire::{Header, flag};
use crate::util::regions::{Region, Rights};
use crate::util::user::Lent;

#[test]
fn the_dead_leave_nothing_waiting() {
    let mut bed = bed();
    let kinds = [8, 200, 1000];
    for len in kinds {
        bed.send(Letter {
            level: CompletionLevel::Delivery,
            ..letter(0, 1, 5, len)
        })
        .unwrap();
    }
    let directed = bed.recv(
        0,
        &[8],
        Recv {
            from: Some(1),
            ..tagged(1)
        },
    );
    let multi = bed.recv(
        0,
        &[800],
        Recv {
            from: Some(1),
            multi: Some(1),
            ..tagged(2)
        },
    );
    let anyone = bed.recv(0, &[8], tagged(3));
    bed.settle();
    bed.kill(1);
    bed.settle();
    let gone = Some(Failure {
        error: Error::PeerGone,
        overflow: 0,
    });
    let ends: Vec<_> = bed
        .ends(0)
        .iter()
        .map(|end| (end.op, end.context, end.failure, end.released))
        .collect();
    let expected = [
        (CompletedOp::Send, 0, gone, false),
        (CompletedOp::Send, 1, gone, false),
        (CompletedOp::Send, 2, gone, false),
        (CompletedOp::Recv, directed, gone, false),
        (CompletedOp::Recv, multi, gone, true),
    ];
    assert_eq!(ends, expected);
    // A send that finds nobody is told so, once.
    bed.send(letter(0, 1, 1, 8)).unwrap();
    assert_eq!(
        bed.ends(0)[5..].iter().map(|end| end.failure).collect::<Vec<_>>(),
        [gone]
    );
    assert!(bed.send(letter(0, 3, 1, 8)).is_ok());
    assert_eq!(
        bed.send(letter(0, 3, 1, 8)),
        Err(Refused::Unreachable(Unreached::Nobody))
    );
    let sent = bed.send(letter(2, 0, 3, 8)).unwrap();
    bed.settle();
    check(&bed, anyone, sent);
}

/// What a peer waits for is not given up for want of memory, as what the program sends is.
#[test]
fn answers_go_when_there_is_memory_again() {
    let mut bed = bed();
    for (tag, len) in [(5, 8), (6, 1000)] {
        bed.recv(1, &[len], tagged(tag));
        bed.send(Letter {
            level: CompletionLevel::Delivery,
            ..letter(0, 1, tag, len)
        })
        .unwrap();
    }
    bed.world.borrow_mut().manner.no_lanes = true;
    for _ in 0..100 {
        bed.world.borrow_mut().now += 1;
        bed.progress(1);
    }
    bed.send(letter(1, 0, 7, 8)).unwrap_err();
    assert_eq!(bed.ends(0), []);
    // Whoever sleeps meanwhile wakes now and then, as memory that comes back wakes nobody.
    assert!(bed.nodes[1].engine.unfinished());
    bed.world.borrow_mut().manner.no_lanes = false;
    bed.settle();
    assert!(!bed.nodes[1].engine.unfinished());
    let ends: Vec<_> = bed.ends(0).iter().map(|end| (end.context, end.failure)).collect();
    assert_eq!(ends, [(0, None), (1, None)]);
}

/// The offer and the news that its sender is dead come in one poll: there is nobody left to fetch from.
#[test]
fn an_offer_of_the_dead_ends_the_receive_that_it_found() {
    let mut matched = 0;
    for seed in 0..32 {
        let mut manner = Manner::default();
        manner.limits.gets_at_once = 2000;
        let mut bed = Bed::new(2, seed, manner, small());
        let first = bed.recv(0, &[8], tagged(3));
        let sent = bed.send(letter(1, 0, 3, 8)).unwrap();
        bed.settle();
        check(&bed, first, sent);
        let recv = bed.recv(0, &[1000], tagged(3));
        bed.send(letter(1, 0, 3, 1000)).unwrap();
        bed.kill(1);
        bed.settle();
        let log = &bed.world.borrow().log;
        let arrived = log.iter().filter(|event| matches!(event, Event::Arrive { .. }));
        let found = arrived.count() > 1;
        matched += usize::from(found);
        let ends: Vec<_> = bed.ends(0)[1..].iter().map(|end| (end.context, end.failure)).collect();
        let gone = Some(Failure {
            error: Error::PeerGone,
            overflow: 0,
        });
        assert_eq!(ends, if found { vec![(recv, gone)] } else { Vec::new() }, "seed {seed}");
    }
    assert!(matched > 0);
}

#[test]
fn nobody_there_yet_ends_sends_but_not_receives() {
    let mut bed = bed();
    let nobody = 3;
    let recv = bed.recv(
        0,
        &[8],
        Recv {
            from: Some(nobody),
            ..tagged(1)
        },
    );
    bed.send(letter(0, nobody, 1, 500)).unwrap();
    let ends: Vec<_> = bed
        .ends(0)
        .iter()
        .map(|end| (end.op, end.failure.unwrap().error))
        .collect();
    assert_eq!(ends, [(CompletedOp::Send, Error::Unreachable(Unreached::Nobody))]);
    assert_eq!(
        bed.send(letter(0, nobody, 1, 8)),
        Err(Refused::Unreachable(Unreached::Nobody))
    );
    assert_eq!(bed.found(recv).len(), 0);
    assert_eq!(bed.nodes[0].engine.posted(), 1);
}

#[test]
fn what_the_dead_sent_whole_can_still_be_received() {
    let mut bed = bed();
    let level = CompletionLevel::Delivery;
    let mut send = |len: usize| {
        bed.send(Letter {
            level,
            ..letter(1, 0, len as u64, len)
        })
        .unwrap()
    };
    let sent = [8, 300, 1000].map(&mut send);
    bed.settle();
    let claim = Recv {
        context: PEEK,
        ..tagged(1000)
    };
    bed.peek(0, Peek::Claim, claim).unwrap();
    bed.kill(1);
    bed.settle();
    let whole = [bed.recv(0, &[300], tagged(300)), bed.recv(0, &[300], tagged(8))];
    check(&bed, whole[0], sent[1]);
    check(&bed, whole[1], sent[0]);
    // The large one was only offered.
    bed.peek(0, Peek::ReceiveClaimed, claim).unwrap();
    let end = *bed.ends(0).last().unwrap();
    let gone = Some(Failure {
        error: Error::PeerGone,
        overflow: 0,
    });
    assert_eq!((end.context, end.failure), (PEEK, gone));
    assert_eq!(bed.world.borrow().knocks, 0, "an answer to the dead");
}

/// A shared receive context gives the sender another number, which outlives the peer's own. A receive that names it
/// still takes the message, so nobody else may get it meanwhile.
#[test]
fn the_number_that_a_waiting_message_is_known_by_stays_in_use() {
    const KNOWN_AS: PeerId = 7;
    let mut bed = bed();
    bed.node(0).engine.core.peer(1).source = Some(KNOWN_AS);
    let sent = bed.send(letter(1, 0, 1, 8)).unwrap();
    bed.settle();
    bed.kill(1);
    bed.settle();
    let is_used = |bed: &mut Bed| bed.node(0).engine.core.peers_in_use().contains(&KNOWN_AS);
    assert_eq!(
        bed.nodes[0].engine.core.source(1),
        1,
        "its own number may mean another one"
    );
    assert!(is_used(&mut bed));
    let from = Some(KNOWN_AS);
    let recv = bed.recv(0, &[8], Recv { from, ..tagged(1) });
    assert_eq!(bed.found(recv)[0].1, bed.bytes(sent));
    assert!(!is_used(&mut bed));
}

#[test]
fn what_the_dead_sent_still_comes_though_a_send_met_their_end() {
    let mut bed = bed();
    let recv = bed.recv(0, &[30], tagged(0));
    let header = |packet, total| Header {
        packet,
        flags: flag::TAGGED,
        code: 0,
        id: 1,
        tag: 0,
        data: 0,
        total,
    };
    bed.world.borrow_mut().put(1, 0, header(Packet::First, 30), &[7; 10]);
    bed.settle();
    bed.world.borrow_mut().put(1, 0, header(Packet::Segment, 10), &[8; 20]);
    bed.world.borrow_mut().dead.push(1);
    for len in [8, 500] {
        bed.send(letter(0, 1, 5, len)).unwrap();
    }
    bed.settle();
    let ends = bed.ends(0);
    let failures: Vec<_> = ends
        .iter()
        .map(|end| end.failure.map(|failure| failure.error))
        .collect();
    assert_eq!(failures, [Some(Error::PeerGone), Some(Error::PeerGone), None]);
    let found = bed.found(recv);
    assert_eq!((found.len(), found[0].0.len), (1, 30));
    assert_eq!(found[0].1, [[7; 10].as_slice(), &[8; 20]].concat());
}

#[test]
fn a_message_that_was_cut_off_fails_its_receive_and_is_not_answered() {
    for packet in [Packet::First, Packet::Rendezvous] {
        let mut bed = bed();
        let recv = bed.recv(0, &[30], tagged(0));
        let flags = flag::TAGGED | flag::ACK;
        let header = Header {
            packet,
            flags,
            code: 0,
            id: 1,
            tag: 0,
            data: 0,
            total: 30,
        };
        let len = if packet == Packet::First { 10 } else { 0 };
        bed.world.borrow_mut().put(1, 0, header, &vec![0; len]);
        bed.settle();
        bed.kill(1);
        bed.settle();
        let gone = Some(Failure {
            error: Error::PeerGone,
            overflow: 0,
        });
        let ends: Vec<_> = bed
            .found(recv)
            .iter()
            .map(|(end, _)| (end.failure, end.source))
            .collect();
        assert_eq!((ends, bed.world.borrow().knocks), (vec![(gone, Some(1))], 0));
        assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
    }
}

/// Headers that no engine writes, each after an exchange that worked.
#[test]
fn nonsense_from_a_peer_ends_what_it_has_to_do_with_and_nothing_else() {
    let plain = Header {
        packet: Packet::Eager,
        flags: flag::TAGGED,
        code: 0,
        id: 0,
        tag: 0,
        data: 0,
        total: 0,
    };
    let with = |packet, id, total| Header {
        packet,
        id,
        total,
        ..plain
    };
    let max = u64::MAX;
    let nonsense = [
        (with(Packet::Eager, 0, 1), 0),
        (with(Packet::Eager, 0, max), 8),
        (
            Header {
                flags: flag::TAGGED | flag::COLLECTIVE,
                ..plain
            },
            0,
        ),
        (with(Packet::First, 1, 0), 0),
        (with(Packet::First, 1, 10), 10),
        (with(Packet::First, 1, max), 10),
        (with(Packet::First, 1, 100_000), 10),
        (with(Packet::Segment, 0, 0), 10),
        (with(Packet::Segment, max as u32, max), 10),
        (with(Packet::Rendezvous, 1, max), 97),
        (with(Packet::Rendezvous, 1, 5), 97),
        (with(Packet::Request, 5, 5), 0),
        (with(Packet::Request, 0, max), 0),
        (with(Packet::Done, 5, 0), 0),
        (with(Packet::Done, 0, 0), 4),
        (with(Packet::Credit, 0, 1 << 20), 0),
        (with(Packet::Credit, 0, max), 0),
    ];
    for (header, len) in nonsense {
        let mut bed = bed();
        bed.send(Letter {
            level: CompletionLevel::Delivery,
            ..letter(0, 1, 1, 8)
        })
        .unwrap();
        let directed = bed.recv(
            0,
            &[8],
            Recv {
                from: Some(1),
                ..tagged(1)
            },
        );
        let any = bed.recv(0, &[8], tagged(2));
        bed.settle();
        bed.world.borrow_mut().put(1, 0, header, &vec![0; len]);
        bed.settle();
        assert_eq!(bed.nodes[0].engine.malformed(), 1, "{header:?}");
        let failed: Vec<_> = bed
            .ends(0)
            .iter()
            .map(|end| (end.op, end.context, end.failure.unwrap().error))
            .collect();
        let expected = [
            (CompletedOp::Send, 0, Error::Protocol),
            (CompletedOp::Recv, directed, Error::Protocol),
        ];
        assert_eq!(failed, expected, "{header:?}");
        assert_eq!(
            bed.send(letter(0, 1, 1, 8)),
            Err(Refused::Unreachable(Unreached::Nobody))
        );
        let sent = bed.send(letter(2, 0, 2, 8)).unwrap();
        bed.settle();
        check(&bed, any, sent);
    }
}

/// Two segments out of place, and more unasked than the window has.
#[test]
fn a_peer_that_breaks_its_own_message_is_not_believed() {
    let first = Header {
        packet: Packet::First,
        flags: flag::TAGGED,
        code: 0,
        id: 1,
        tag: 0,
        data: 0,
        total: 30,
    };
    let segment = |total| Header {
        packet: Packet::Segment,
        flags: 0,
        code: 0,
        total,
        ..first
    };
    let offer = Header {
        packet: Packet::Rendezvous,
        ..first
    };
    let broken: [&[(Header, usize)]; 6] = [
        &[(first, 10), (segment(11), 10)],
        &[(first, 10), (segment(10), 21)],
        &[(first, 10), (segment(10), 20), (segment(30), 1)],
        &[(first, 10), (first, 10)],
        &[(first, 10), (offer, 0)],
        &[(
            Header {
                packet: Packet::Eager,
                total: 100,
                ..first
            },
            100,
        ); 12],
    ];
    for packets in broken {
        let mut bed = bed();
        if packets.len() != 12 {
            bed.recv(0, &[30], tagged(0));
            bed.recv(0, &[30], tagged(0));
        }
        for (header, len) in packets {
            bed.world.borrow_mut().put(1, 0, *header, &vec![0; *len]);
        }
        bed.settle();
        let engine = &bed.nodes[0].engine;
        assert_eq!(engine.malformed(), 1, "{packets:?}");
        if packets.len() != 12 {
            assert_eq!(engine.leftovers(), [0; 5], "{packets:?}");
        }
    }
}

/// What a peer may have copied is what it was offered, as long as that has not ended, and what regions allow.
#[test]
fn a_name_is_worth_what_it_was_given_for() {
    let mut bed = bed();
    bed.send(letter(0, 1, 5, 5000)).unwrap();
    bed.settle();
    let core = &bed.nodes[0].engine.core;
    let (id, send) = core.outgoing.iter().next().unwrap();
    let offered = ExposedName::Sent(id.bits());
    assert_eq!(send.stage, Stage::Offered);
    assert_eq!(
        core.exposed_memory(1, &offered, Access::Read).map(|iov| iov.len()),
        Some(5000)
    );
    let refused = [
        (2, offered, Access::Read),
        (1, offered, Access::Write),
        (1, ExposedName::Sent(id.bits() + 1), Access::Read),
        (1, ExposedName::Sent(u64::MAX), Access::Read),
        (1, ExposedName::Nothing, Access::Read),
    ];
    for (peer, name, access) in refused {
        assert_eq!(core.exposed_memory(peer, &name, access), None, "{peer} {name:?}");
    }
    let recv = bed.recv(1, &[5000], tagged(5));
    bed.settle();
    assert_eq!(bed.found(recv).len(), 1);
    assert_eq!(bed.nodes[0].engine.core.exposed_memory(1, &offered, Access::Read), None);
}

/// A region is named by whoever may use it so; one whose uses are counted is written through the engine only.
#[test]
fn a_region_is_named_by_its_rights() {
    let bed = bed();
    let memory = Lent::new(&[100], 0);
    let rows = [
        (7, Rights::READ, false, [true, false]),
        (8, Rights::WRITE, false, [false, true]),
        (9, Rights::BOTH, true, [true, false]),
    ];
    for (key, rights, counted, expected) in rows {
        let region = Region {
            memory: memory.iov(),
            rights,
            base: 0,
            enabled: true,
            endpoint: None,
            counted,
        };
        bed.nodes[0].regions.add(region, key).unwrap();
        for (access, may) in [Access::Read, Access::Write].into_iter().zip(expected) {
            for (addr, len, fits) in [(0, 100, true), (1, 100, false), (u64::MAX, 2, false)] {
                let name = ExposedName::Region(RemotePart { addr, len, key });
                let found = bed.nodes[0].engine.core.exposed_memory(1, &name, access);
                assert_eq!(found.is_some(), may && fits, "{key} {access:?} {addr}");
            }
        }
    }
}
