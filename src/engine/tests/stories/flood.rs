//! Credit: more messages are sent than received.

use super::*;
use crate::util::user::{Lent, UserIov};

/// Each sends to the other until it is refused, nobody receives; then both receive last things first.
#[test]
fn two_that_flood_each_other_do_not_wait_for_ever() {
    let manner = Manner {
        depth: 4,
        ..Manner::default()
    };
    let config = Config {
        in_flight: 64,
        ..small()
    };
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
    // Each is there as soon as it is asked for, whatever lies before it.
    for me in [0, 1] {
        for (tag, sent) in numbers[me as usize].iter().rev() {
            let recv = bed.recv(1 - me, &[200], tagged(*tag));
            bed.settle();
            check(&bed, recv, *sent);
        }
    }
}

/// Once a sender has come late to see credit, the receiver fetches what lacks it, and does not wait for the sender.
#[test]
fn what_lacks_credit_is_offered_by_who_polls_seldom() {
    const MESSAGES: usize = 20;
    let config = Config {
        in_flight: 2 * MESSAGES,
        ..small()
    };
    let in_window = config.window / 456;
    for (came_late, gets, offered) in [
        (0, [0, 0, 16], 0),
        (16, [0, 0, 16], MESSAGES - in_window),
        (16, [16, 0, 0], 0),
    ] {
        let mut manner = Manner {
            came_late,
            gets,
            sooner_sent: 16,
            ..Manner::default()
        };
        manner.limits.eager_if_fetched = 100;
        let mut bed = Bed::new(2, 1, manner, config);
        let offers = |bed: &Bed| bed.world.borrow().count(Packet::Rendezvous);
        let burst = |bed: &mut Bed| {
            let recvs = [(); MESSAGES].map(|()| bed.recv(1, &[200], tagged(1)));
            let before = offers(bed);
            let sent = [(); MESSAGES].map(|()| bed.send(letter(0, 1, 1, 200)).unwrap());
            let offered = offers(bed) - before;
            bed.settle();
            recvs
                .into_iter()
                .zip(sent)
                .for_each(|(recv, sent)| check(bed, recv, sent));
            offered
        };
        assert_eq!(burst(&mut bed), 0, "nothing is known yet");
        // A receiver that turns out not to fetch is found out by the first offer.
        burst(&mut bed);
        assert_eq!(burst(&mut bed), offered, "{came_late} {gets:?}");
    }
}

#[test]
fn one_that_is_received_keeps_its_credit_though_another_fills_the_room() {
    let mut bed = Bed::new(3, 1, Manner::default(), small());
    while bed.send(letter(0, 1, 1, 200)).is_ok() {
        bed.settle();
    }
    while bed.send(letter(1, 1, 1, 200)).is_ok() {
        bed.settle();
    }
    let offers = bed.world.borrow().count(Packet::Rendezvous);
    assert_eq!(offers, 2 * small().in_flight);
    for _ in 0..100 {
        let sent = bed.send(letter(2, 1, 2, 200)).unwrap();
        bed.settle();
        let recv = bed.recv(1, &[200], tagged(2));
        bed.settle();
        check(&bed, recv, sent);
    }
    assert_eq!(bed.world.borrow().count(Packet::Rendezvous), offers);
}

#[test]
fn one_fills_its_share_of_the_room_and_a_window() {
    let eager = |senders: &[PeerId]| {
        let mut bed = bed();
        for from in senders {
            while bed.send(letter(*from, 1, 1, 200)).is_ok() {
                bed.settle();
            }
        }
        bed.world.borrow().count(Packet::Eager) + bed.world.borrow().count(Packet::First)
    };
    // A message takes 200 and 256; the last that fits is followed by what a window holds.
    let Config { window, share, .. } = small();
    assert_eq!(eager(&[0]), share / 456 + window / 456);
    // That has filled the room of all: the next has only its window.
    assert_eq!(eager(&[0, 2]), share / 456 + 2 * (window / 456));
}

#[test]
fn when_there_is_room_again_all_get_their_credit_back() {
    let config = Config {
        room: 8192,
        share: 8192,
        ..small()
    };
    let mut bed = Bed::new(3, 1, Manner::default(), config);
    let fill = |bed: &mut Bed, from, tag| {
        let before = bed.world.borrow().sent.len();
        while bed.world.borrow().count(Packet::Rendezvous) == 0 {
            bed.send(letter(from, 1, tag, 200)).unwrap();
            bed.settle();
        }
        bed.world.borrow_mut().packets.clear();
        bed.world.borrow().sent.len() - before
    };
    let first = fill(&mut bed, 0, 1);
    fill(&mut bed, 2, 2);
    for _ in 0..first {
        bed.recv(1, &[200], tagged(1));
        bed.settle();
    }
    bed.world.borrow_mut().packets.clear();
    bed.send(letter(2, 1, 2, 200)).unwrap();
    let packets = bed.world.borrow().packets.clone();
    assert_eq!(packets, [(Packet::First as u8, 1), (Packet::Segment as u8, 1)].into());
}

/// Counts ends, and sees that messages come in the order of their tags.
#[derive(Default)]
struct InOrder(u64);

impl Report for InOrder {
    fn report(&mut self, end: Completion) {
        assert_eq!(end.failure, None);
        if end.op == CompletedOp::Recv {
            assert_eq!((end.tag, end.len), (self.0, 8));
            self.0 += 1;
        }
    }
}

#[test]
fn a_million_messages_that_nobody_receives_take_bounded_memory_and_all_arrive() {
    const MESSAGES: u64 = 1_000_000;
    let config = Config::default();
    let most = (config.share + config.window) / (8 + 256) + config.in_flight;
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

/// The sender calls for nothing but to send: what is taken arrives all the same, and what cannot go yet is refused.
#[test]
fn what_is_taken_of_one_that_is_told_nothing_needs_no_more_calls() {
    for depth in [4, 1 << 20] {
        let manner = Manner {
            depth,
            ..Manner::default()
        };
        let mut bed = Bed::new(2, 1, manner, small());
        let (mut received, mut taken) = (InOrder::default(), 0);
        let body = Lent::new(&[8], 1).iov();
        let recv = Recv {
            body,
            ignore: u64::MAX,
            ..tagged(0)
        };
        for _ in 0..10_000 {
            bed.nodes[1].engine.recv(&recv, &mut received).unwrap();
            let send = Send {
                tag: taken,
                inject: true,
                body,
                ..plain_send()
            };
            match bed.nodes[0].engine.send(&send, &mut received) {
                Ok(()) => taken += 1,
                // For want of room in the transport, or of credit, which comes when the sender looks.
                Err(why) => assert_eq!(why, Refused::Again),
            }
            for _ in 0..if depth == 4 { taken % 2 } else { 8 } {
                bed.nodes[1].engine.progress(&mut received);
            }
        }
        while bed.nodes[1].engine.progress(&mut received) > 0 {}
        assert!((5..10_000).contains(&taken), "{taken}: nothing was refused");
        assert_eq!(received.0, taken);
        bed.nodes[0].engine.progress(&mut received);
        let send = Send {
            tag: taken,
            inject: true,
            body,
            ..plain_send()
        };
        assert_eq!(bed.nodes[0].engine.send(&send, &mut received), Ok(()));
    }
}

fn plain_send() -> Send {
    Send {
        kind: MessageKind::Tagged,
        to: 1,
        tag: 0,
        data: None,
        body: UserIov::NONE,
        inject: false,
        level: CompletionLevel::Inject,
        fence: false,
        context: 0,
        tell: Tell::Counters,
    }
}

/// Its messages are all that a program may want of its queue. The last poll takes as many as a poll can.
#[test]
fn whoever_has_received_all_owes_no_answer() {
    const MESSAGES: usize = 128;
    let manner = Manner {
        depth: 2 * MESSAGES,
        gets: [0, 0, 16],
        ..Manner::default()
    };
    let config = Config {
        in_flight: MESSAGES,
        ..small()
    };
    let mut bed = Bed::new(2, 1, manner, config);
    let receives: Vec<_> = (0..MESSAGES).map(|_| bed.recv(1, &[400], tagged(1))).collect();
    for _ in 0..MESSAGES {
        bed.send(letter(0, 1, 1, 400)).unwrap();
    }
    (0..MESSAGES).for_each(|_| _ = bed.progress(0));
    while !receives.iter().all(|recv| bed.found(*recv).len() == 1) {
        bed.progress(1);
    }
    (0..MESSAGES).for_each(|_| _ = bed.progress(0));
    assert_eq!(sends_ended(&bed, 0).len(), MESSAGES);
}
