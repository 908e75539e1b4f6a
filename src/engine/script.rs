//! Stories of two or three endpoints, each with one feature in it.

use super::Config;
use super::op::*;
use super::port::*;
use super::sim::*;
use super::wire::{Header, Packet, flag};
use crate::util::user::{Lent, UserIov};

fn bed() -> Bed {
    Bed::new(3, 1, Manner::default(), small())
}

/// Little room, so that short stories reach its limits.
fn small() -> Config {
    Config {
        window: 4096,
        room: 4096,
        share: 2048,
        sends: 8,
    }
}

fn sends_ended(bed: &Bed, node: PeerId) -> Vec<usize> {
    let sends = bed.ends(node).into_iter().filter(|end| end.ended == Ended::Send);
    sends.map(|end| end.context).collect()
}

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
        ended: Ended::Recv,
        kind: send.kind,
        context: recv,
        report: true,
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
    for can_get in [true, false] {
        for len in LENGTHS {
            for room in [len, len / 2, 0, len + 10] {
                for (early, inject) in [(true, false), (true, true), (false, false), (false, true)] {
                    let mut manner = Manner::default();
                    manner.limits.can_get = can_get;
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
        kind: Kind::Message,
        ..tagged(3)
    };
    let (first, second) = (bed.recv(1, &[8], untagged), bed.recv(1, &[8], tagged(3)));
    let two = bed.send(letter(0, 1, 3, 8)).unwrap();
    let one = bed
        .send(Letter {
            kind: Kind::Message,
            tag: 0,
            ..letter(0, 1, 0, 8)
        })
        .unwrap();
    bed.settle();
    check(&bed, first, one);
    check(&bed, second, two);
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
    for len in LENGTHS {
        let mut bed = bed();
        let level = Level::Delivery;
        let sent = bed
            .send(Letter {
                level,
                ..letter(0, 1, 1, len)
            })
            .unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), []);
        let recv = bed.recv(1, &[len], tagged(1));
        bed.settle();
        check(&bed, recv, sent);
        assert_eq!(sends_ended(&bed, 0), [sent]);
    }
}

#[test]
fn a_fence_waits_for_all_before_it_and_holds_all_after_it() {
    for len in [8, 200, 1000] {
        let mut bed = bed();
        let level = Level::Delivery;
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
    assert_eq!((refused, taken), (Refused::Again, 1 + small().sends));
    assert_eq!(sends_ended(&bed, 0), [0]);
    bed.settle();
    let recvs: Vec<usize> = (0..taken).map(|_| bed.recv(1, &[8], tagged(0))).collect();
    bed.settle();
    recvs
        .iter()
        .enumerate()
        .for_each(|(sent, recv)| check(&bed, *recv, sent));
}

#[test]
fn a_get_that_fails_is_followed_by_asking() {
    for gets in [[16, 0, 0], [0, 16, 0], [0, 0, 0]] {
        let manner = Manner {
            gets,
            ..Manner::default()
        };
        let mut bed = Bed::new(2, 1, manner, small());
        let recv = bed.recv(1, &[1000], tagged(0));
        let sent = bed.send(letter(0, 1, 0, 1000)).unwrap();
        bed.settle();
        check(&bed, recv, sent);
        assert_eq!(sends_ended(&bed, 0), [sent]);
        let asked = bed.world.borrow().count(Packet::Send);
        assert_eq!(asked, usize::from(gets != [0, 0, 0]));
    }
}

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
            report: false,
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
        .map(|(end, _)| (end.len, end.failure, end.released, end.report))
        .collect();
    assert_eq!(ends, [(70, None, false, false), (30, failure, true, true)]);
    assert_eq!(found[1].1, bed.bytes(1)[..30]);
}

#[test]
fn a_cancelled_multi_receive_is_given_back_after_its_last_message() {
    let manner = Manner {
        gets: [0, 0, 0],
        ..Manner::default()
    };
    let mut bed = Bed::new(2, 1, manner, small());
    let recv = bed.recv(
        1,
        &[2000],
        Recv {
            multi: Some(1),
            ..tagged(0)
        },
    );
    bed.send(letter(0, 1, 0, 1000)).unwrap();
    bed.progress(0);
    bed.progress(1);
    assert_eq!(bed.found(recv).len(), 0);
    assert!(bed.cancel(1, recv));
    assert!(!bed.cancel(1, recv));
    assert_eq!(bed.found(recv).len(), 0);
    bed.settle();
    let found = bed.found(recv);
    let canceled = Some(Failure {
        error: Error::Canceled,
        overflow: 0,
    });
    let ends: Vec<_> = found
        .iter()
        .map(|(end, _)| (end.len, end.failure, end.released))
        .collect();
    assert_eq!(ends, [(1000, None, false), (0, canceled, true)]);
    assert_eq!(found[0].1, bed.bytes(0));
}

#[test]
fn cancel_ends_the_oldest_with_the_context_and_none_that_has_a_message() {
    let mut bed = bed();
    let recvs = [bed.recv(1, &[8], tagged(1)), bed.recv(1, &[8], tagged(2))];
    assert!(bed.cancel(1, recvs[0]));
    assert!(!bed.cancel(1, recvs[0]));
    let canceled = Some(Failure {
        error: Error::Canceled,
        overflow: 0,
    });
    assert_eq!(bed.found(recvs[0])[0].0.failure, canceled);
    let sent = bed.send(letter(0, 1, 2, 8)).unwrap();
    bed.settle();
    assert!(!bed.cancel(1, recvs[1]));
    check(&bed, recvs[1], sent);
}

#[test]
fn looking_says_what_is_there_and_leaves_it() {
    for len in LENGTHS {
        let mut bed = bed();
        let (peek, data) = (
            Recv {
                context: LOOK,
                ..tagged(5)
            },
            Some(77),
        );
        bed.look(1, Look::Peek, peek).unwrap();
        let sent = bed
            .send(Letter {
                data,
                ..letter(0, 1, 5, len)
            })
            .unwrap();
        bed.settle();
        bed.look(1, Look::Peek, peek).unwrap();
        let ends = bed.ends(1);
        let nothing = Some(Failure {
            error: Error::NoMessage,
            overflow: 0,
        });
        assert_eq!(
            (ends[0].failure, ends[0].peeked, ends[0].context),
            (nothing, true, LOOK)
        );
        let there = (ends[1].failure, ends[1].len, ends[1].tag, ends[1].data, ends[1].source);
        assert_eq!((there, ends[1].peeked), ((None, len, 5, data, Some(0)), true));
        let recv = bed.recv(1, &[len], tagged(5));
        bed.settle();
        check(&bed, recv, sent);
    }
}

#[test]
fn a_claimed_message_is_only_for_its_claimer() {
    for len in LENGTHS {
        let mut bed = bed();
        let claim = Recv {
            context: LOOK,
            ..tagged(5)
        };
        let sent = [0, 1].map(|_| {
            bed.send(Letter {
                level: Level::Delivery,
                ..letter(0, 1, 5, len)
            })
            .unwrap()
        });
        bed.settle();
        bed.look(1, Look::Claim, claim).unwrap();
        assert_eq!(bed.look(1, Look::Claim, claim), Err(Refused::Invalid));
        let recv = bed.recv(1, &[len], tagged(5));
        bed.settle();
        check(&bed, recv, sent[1]);
        assert_eq!(sends_ended(&bed, 0), [sent[1]]);
        let memory = bed.take(1, len, claim);
        bed.settle();
        assert_eq!(memory.bytes(), bed.bytes(sent[0]));
        assert_eq!(sends_ended(&bed, 0), [sent[1], sent[0]]);
        assert_eq!(bed.look(1, Look::Take, claim), Err(Refused::Invalid));
    }
}

#[test]
fn a_dropped_message_ends_its_send_too() {
    for len in LENGTHS {
        let mut bed = bed();
        let look = Recv {
            context: LOOK,
            ..tagged(5)
        };
        for _ in 0..2 {
            bed.send(Letter {
                level: Level::Delivery,
                ..letter(0, 1, 5, len)
            })
            .unwrap();
        }
        bed.settle();
        bed.look(1, Look::Discard, look).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [0]);
        bed.look(1, Look::Claim, look).unwrap();
        bed.look(1, Look::Drop, look).unwrap();
        bed.settle();
        assert_eq!(sends_ended(&bed, 0), [0, 1]);
        bed.look(1, Look::Peek, look).unwrap();
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

/// Each sends to the other until it is refused, nobody receives; then both receive last things first.
#[test]
fn two_that_flood_each_other_do_not_wait_for_ever() {
    let manner = Manner {
        depth: 4,
        ..Manner::default()
    };
    let config = Config { sends: 64, ..small() };
    let mut bed = Bed::new(2, 1, manner, config);
    let mut numbers = [Vec::new(), Vec::new()];
    for tag in 0.. {
        let mut refused = 0;
        for me in [0, 1] {
            match bed.send(letter(me, 1 - me, tag, 200)) {
                Ok(number) => numbers[me as usize].push((tag, number)),
                Err(_) => refused += 1,
            }
        }
        bed.settle();
        if refused == 2 {
            break;
        }
    }
    // Some fit the room, as many as may be unfinished are offered.
    assert!(numbers.iter().all(|sent| sent.len() > 64 + 8), "{numbers:?}");
    let mut pairs = Vec::new();
    for me in [0, 1] {
        for (tag, sent) in numbers[me as usize].iter().rev() {
            pairs.push((bed.recv(1 - me, &[200], tagged(*tag)), *sent));
            bed.settle();
        }
    }
    pairs.into_iter().for_each(|(recv, sent)| check(&bed, recv, sent));
}

/// Counts ends, and sees that messages come in the order of their tags.
#[derive(Default)]
struct InOrder(u64);

impl Report for InOrder {
    fn report(&mut self, end: Completion) {
        assert_eq!(end.failure, None);
        if end.ended == Ended::Recv {
            assert_eq!((end.tag, end.len), (self.0, 8));
            self.0 += 1;
        }
    }
}

#[test]
fn a_million_messages_that_nobody_receives_take_bounded_memory_and_all_arrive() {
    const MESSAGES: u64 = 1_000_000;
    let config = Config::default();
    let most = (config.share + config.window) / (8 + 256) + config.sends;
    let mut bed = Bed::new(2, 1, Manner::default(), config);
    let (mut received, mut sent, mut stops) = (InOrder::default(), 0, 0);
    let body = Lent::new(&[8], 1).iov();
    let any = Recv {
        body,
        ignore: u64::MAX,
        ..tagged(0)
    };
    while received.0 < MESSAGES {
        let before = sent;
        for _ in 0..1000 {
            let send = Send {
                tag: sent,
                inject: true,
                body,
                ..plain_send()
            };
            if sent < MESSAGES && bed.nodes[0].engine.send(&send, &mut received).is_ok() {
                sent += 1;
            }
        }
        for _ in 0..40 {
            for node in &mut bed.nodes {
                node.engine.progress(&mut received);
            }
        }
        bed.world.borrow_mut().log.clear();
        let held = bed.nodes[1].engine.leftovers()[1];
        assert!(held <= most, "{held} of {most}");
        if sent == before {
            stops += 1;
            for _ in 0..100_000.min(sent - received.0) {
                bed.nodes[1].engine.recv(&any, &mut received).unwrap();
            }
        }
    }
    assert!(stops > 5, "{stops}: the flood was never held back");
    assert_eq!(
        bed.nodes.iter().map(|node| node.engine.leftovers()).collect::<Vec<_>>(),
        [[0; 5]; 2]
    );
}

fn plain_send() -> Send {
    Send {
        kind: Kind::Tagged,
        to: 1,
        tag: 0,
        data: None,
        body: UserIov::default(),
        inject: false,
        level: Level::Inject,
        fence: false,
        context: 0,
        report: false,
    }
}

#[test]
fn the_dead_leave_nothing_waiting() {
    let mut bed = bed();
    let kinds = [8, 200, 1000];
    for len in kinds {
        bed.send(Letter {
            level: Level::Delivery,
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
        .map(|end| (end.ended, end.context, end.failure, end.released))
        .collect();
    let expected = [
        (Ended::Send, 0, gone, false),
        (Ended::Send, 1, gone, false),
        (Ended::Send, 2, gone, false),
        (Ended::Recv, directed, gone, false),
        (Ended::Recv, multi, gone, true),
    ];
    assert_eq!(ends, expected);
    // A send that finds nobody is told so, once.
    bed.send(letter(0, 1, 1, 8)).unwrap();
    assert_eq!(
        bed.ends(0)[5..].iter().map(|end| end.failure).collect::<Vec<_>>(),
        [gone]
    );
    assert_eq!(bed.send(letter(0, 3, 1, 8)).is_ok(), true);
    assert_eq!(bed.send(letter(0, 3, 1, 8)), Err(Refused::Unreachable));
    let sent = bed.send(letter(2, 0, 3, 8)).unwrap();
    bed.settle();
    check(&bed, anyone, sent);
}

#[test]
fn what_the_dead_sent_whole_can_still_be_received() {
    let mut bed = bed();
    let sent: Vec<usize> = [8, 300, 1000]
        .iter()
        .map(|len| bed.send(letter(1, 0, *len as u64, *len)).unwrap())
        .collect();
    bed.settle();
    let claim = Recv {
        context: LOOK,
        ..tagged(1000)
    };
    bed.look(0, Look::Claim, claim).unwrap();
    bed.kill(1);
    bed.settle();
    let whole = [bed.recv(0, &[300], tagged(300)), bed.recv(0, &[300], tagged(8))];
    check(&bed, whole[0], sent[1]);
    check(&bed, whole[1], sent[0]);
    // The large one was only offered.
    bed.look(0, Look::Take, claim).unwrap();
    let end = *bed.ends(0).last().unwrap();
    let gone = Some(Failure {
        error: Error::PeerGone,
        overflow: 0,
    });
    assert_eq!((end.context, end.failure), (LOOK, gone));
}

/// Headers that no engine writes, each after an exchange that worked.
#[test]
fn nonsense_from_a_peer_ends_what_it_has_to_do_with_and_nothing_else() {
    let plain = Header {
        packet: Packet::Eager,
        flags: flag::TAGGED,
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
        (Header { flags: 0x80, ..plain }, 0),
        (with(Packet::First, 1, 0), 0),
        (with(Packet::First, 1, 10), 10),
        (with(Packet::First, 1, max), 10),
        (with(Packet::First, 1, 100_000), 10),
        (with(Packet::Segment, 0, 0), 10),
        (with(Packet::Segment, max as u32, max), 10),
        (with(Packet::Rendezvous, 1, max), 7),
        (with(Packet::Rendezvous, 1, 5), 81),
        (with(Packet::Send, 5, 5), 0),
        (with(Packet::Send, 0, max), 0),
        (with(Packet::Done, 5, 0), 0),
        (with(Packet::Done, 0, 0), 4),
        (with(Packet::Credit, 0, 1 << 20), 0),
        (with(Packet::Credit, 0, max), 0),
    ];
    for (header, len) in nonsense {
        let mut bed = bed();
        bed.send(Letter {
            level: Level::Delivery,
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
            .map(|end| (end.ended, end.context, end.failure.unwrap().error))
            .collect();
        let expected = [
            (Ended::Send, 0, Error::Protocol),
            (Ended::Recv, directed, Error::Protocol),
        ];
        assert_eq!(failed, expected, "{header:?}");
        assert_eq!(bed.send(letter(0, 1, 1, 8)), Err(Refused::Unreachable));
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
        id: 1,
        tag: 0,
        data: 0,
        total: 30,
    };
    let segment = |total| Header {
        packet: Packet::Segment,
        flags: 0,
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
