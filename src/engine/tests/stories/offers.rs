//! Messages that their receiver fetches (`Transport::get`): which are offered, and what becomes of an offer.

use super::*;

#[test]
fn a_message_is_offered_unless_it_is_sooner_sent() {
    let (eager, offer) = (Packet::Eager as u8, Packet::Rendezvous as u8);
    for (len, sooner_sent, first) in [
        (80, 0, eager),
        (90, 0, offer),
        (90, 16, eager),
        (200, 0, offer),
        (301, 16, offer),
    ] {
        for gets_at_once in [0, 9000] {
            let mut manner = Manner::default();
            manner.limits.eager_if_fetched = 80;
            manner.limits.gets_at_once = gets_at_once;
            manner.sooner_sent = sooner_sent;
            let mut bed = Bed::new(2, 1, manner, small());
            let recv = bed.recv(1, &[len], tagged(1));
            let sent = bed.send(letter(0, 1, 1, len)).unwrap();
            assert_eq!(
                bed.world.borrow().packets,
                [(first, 1)].into(),
                "{len} {sooner_sent} {gets_at_once}"
            );
            bed.settle();
            check(&bed, recv, sent);
        }
    }
}

/// How messages that wait for others go is asked when it is their turn.
#[test]
fn a_message_that_waits_is_judged_when_it_is_the_first() {
    let mut manner = Manner::default();
    manner.limits.eager_if_fetched = 80;
    let mut bed = Bed::new(2, 1, manner, small());
    let count = |bed: &Bed, packet| bed.world.borrow().count(packet);
    let recvs = [90, 91, 92].map(|len| bed.recv(1, &[len], tagged(len as u64)));
    bed.world.borrow_mut().manner.full = 16;
    let sent = [90, 91, 92].map(|len| {
        bed.world.borrow_mut().manner.sooner_sent = if len == 90 { 16 } else { 0 };
        bed.send(letter(0, 1, len as u64, len)).unwrap()
    });
    assert_eq!(
        count(&bed, Packet::Eager) + count(&bed, Packet::Rendezvous),
        0,
        "all wait"
    );
    {
        let manner = &mut bed.world.borrow_mut().manner;
        (manner.full, manner.sooner_sent) = (0, 0);
    }
    bed.settle();
    for (recv, sent) in recvs.into_iter().zip(sent) {
        check(&bed, recv, sent);
    }
    assert_eq!(
        [Packet::Eager, Packet::Rendezvous].map(|packet| count(&bed, packet)),
        [1, 2]
    );
    let world = bed.world.borrow();
    let followed: Vec<_> = world.around.iter().map(|around| around.followed).collect();
    assert_eq!(followed, [false, true, false]);
}

/// Of all but the short ones.
#[test]
fn messages_are_offered_while_packets_wait_for_long() {
    for (held_up, offered) in [(0, 0), (16, 2)] {
        let mut manner = Manner {
            sooner_sent: 16,
            full: 16,
            ..Manner::default()
        };
        manner.limits = Limits {
            max_body: 4000,
            eager: 5000,
            eager_if_fetched: 3000,
            ..manner.limits
        };
        let mut bed = Bed::new(2, 1, manner, Config::default());
        let lengths = [1000, 1100, 3100];
        let recvs = lengths.map(|len| bed.recv(1, &[len], tagged(len as u64)));
        let sent = lengths.map(|len| bed.send(letter(0, 1, len as u64, len)).unwrap());
        {
            let manner = &mut bed.world.borrow_mut().manner;
            (manner.full, manner.held_up) = (0, held_up);
        }
        bed.settle();
        for (recv, sent) in recvs.into_iter().zip(sent) {
            check(&bed, recv, sent);
        }
        assert_eq!(bed.world.borrow().count(Packet::Rendezvous), offered);
        // They are sent again once nothing waits.
        bed.world.borrow_mut().manner.held_up = 0;
        let recv = bed.recv(1, &[3100], tagged(1));
        let sent = bed.send(letter(0, 1, 1, 3100)).unwrap();
        bed.settle();
        check(&bed, recv, sent);
        assert_eq!(bed.world.borrow().count(Packet::Rendezvous), offered);
    }
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
        let asked = bed.world.borrow().count(Packet::Request);
        assert_eq!(asked, usize::from(gets != [0, 0, 0]));
    }
}

/// Where short messages are fetched at once, a peer that asks for a long one can fetch all the same.
#[test]
fn who_asks_for_a_long_message_is_still_offered_short_ones() {
    let mut manner = Manner::default();
    manner.limits.eager_if_fetched = 150;
    manner.limits.gets_at_once = 200;
    let mut bed = Bed::new(2, 1, manner, small());
    let (fetches, refuses) = ([0, 0, 16], [16, 0, 0]);
    for (gets, len, offered) in [
        (refuses, 301, 1),
        (fetches, 151, 1),
        (refuses, 151, 1),
        (refuses, 151, 0),
    ] {
        let before = bed.world.borrow().count(Packet::Rendezvous);
        bed.world.borrow_mut().manner.gets = gets;
        let recv = bed.recv(1, &[len], tagged(0));
        let sent = bed.send(letter(0, 1, 0, len)).unwrap();
        bed.settle();
        check(&bed, recv, sent);
        assert_eq!(
            bed.world.borrow().count(Packet::Rendezvous) - before,
            offered,
            "{gets:?} {len}"
        );
    }
}

/// Two that send long messages at the same time are both busy: each fetches alone, and what it sends next is not sent
/// in packets that keep both at work.
#[test]
fn messages_that_cross_are_fetched_by_one_side_each() {
    let mut manner = Manner::default();
    manner.limits.eager_if_fetched = 80;
    manner.limits.gets_at_once = 200;
    let mut bed = Bed::new(2, 1, manner, small());
    let exchange = |bed: &mut Bed, senders: &[PeerId]| {
        let recvs: Vec<_> = senders
            .iter()
            .map(|from| bed.recv(1 - from, &[250], tagged(0)))
            .collect();
        let sent = senders
            .iter()
            .map(|from| bed.send(letter(*from, 1 - from, 0, 250)).unwrap());
        let sent: Vec<_> = sent.collect();
        bed.settle();
        for (recv, sent) in recvs.into_iter().zip(sent) {
            check(bed, recv, sent);
        }
        let world = &mut *bed.world.borrow_mut();
        (
            core::mem::take(&mut world.gets_alone),
            core::mem::take(&mut world.around)
                .iter()
                .map(|around| around.crossing)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(exchange(&mut bed, &[0]), (0, vec![false]));
    assert_eq!(exchange(&mut bed, &[0, 1]), (2, vec![false, false]));
    assert_eq!(exchange(&mut bed, &[1, 0]), (2, vec![true, true]));
    assert_eq!(exchange(&mut bed, &[0]), (0, vec![true]));
    assert_eq!(exchange(&mut bed, &[1]), (0, vec![false]));
    assert_eq!(exchange(&mut bed, &[0]), (0, vec![false]));
    let exposed = bed.nodes.iter().map(|node| node.engine.transport().inner.exposed());
    assert_eq!(exposed.sum::<usize>(), 0, "of messages that have ended");
}

/// No get is made of what an endpoint offers to itself: here every one would fail, and be followed by a request.
#[test]
fn what_is_offered_to_oneself_is_copied() {
    for (can_get, gets_at_once) in [(true, 0), (true, 1000), (false, 0)] {
        let mut manner = Manner::default();
        manner.limits.gets_at_once = gets_at_once;
        manner.limits.can_get = can_get;
        manner.gets = [0, 16, 0];
        let mut bed = Bed::new(2, 1, manner, small());
        for (to, expected) in [(0, 0), (1, 1)] {
            for (len, room) in [(900, 900), (900, 500), (3000, 3000)] {
                let before = bed.world.borrow().count(Packet::Request);
                let recv = bed.recv(to, &[room / 4, room - room / 4], tagged(0));
                let sent = bed.send(letter(0, to, 0, len)).unwrap();
                bed.settle();
                check(&bed, recv, sent);
                let later = bed.send(letter(0, to, 0, len)).unwrap();
                bed.settle();
                let recv = bed.recv(to, &[room], tagged(0));
                bed.settle();
                check(&bed, recv, later);
                let requests = bed.world.borrow().count(Packet::Request) - before;
                assert_eq!(requests, 2 * expected, "{gets_at_once} {to} {len} {room}");
            }
        }
        assert!(bed.nodes.iter().all(|node| node.engine.leftovers() == [0; 5]));
    }
}

/// A message of some packets is offered to a peer that can fetch it, and sent unasked to one that was seen not to.
#[test]
fn who_cannot_fetch_is_sent_what_is_not_too_long() {
    let mut manner = Manner::default();
    manner.limits.eager_if_fetched = 150;
    let mut bed = Bed::new(2, 1, manner, small());
    let (fetches, refuses) = ([0, 0, 16], [16, 0, 0]);
    for (gets, len, offered, requested) in [
        (fetches, 150, 0, 0),
        (fetches, 151, 1, 0),
        (refuses, 151, 1, 1),
        (refuses, 300, 0, 0),
        (refuses, 301, 1, 1),
        (fetches, 151, 0, 0),
        (fetches, 301, 1, 0),
        (fetches, 151, 1, 0),
    ] {
        let counts = |bed: &Bed| [Packet::Rendezvous, Packet::Request].map(|packet| bed.world.borrow().count(packet));
        let before = counts(&bed);
        bed.world.borrow_mut().manner.gets = gets;
        let recv = bed.recv(1, &[len], tagged(0));
        let sent = bed.send(letter(0, 1, 0, len)).unwrap();
        bed.settle();
        check(&bed, recv, sent);
        let now = counts(&bed);
        assert_eq!(
            [now[0] - before[0], now[1] - before[1]],
            [offered, requested],
            "{gets:?} {len}"
        );
    }
}
