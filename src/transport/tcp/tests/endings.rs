//! Peers whose connection ends at an awkward moment: nothing is lost, and whoever waits for them hears of their end.

use super::*;
use crate::engine::Engine;
use crate::engine::op::{Completion, Error, MessageKind, Recv, Tell};
use crate::engine::wire::Packet;
use crate::util::user::{Lent, UserBuf};
use socket2::SockRef;
use std::net::Shutdown;

fn header(id: u32) -> Header {
    Header::new(Packet::Eager, id)
}

/// Ends it as its process would end when it is killed.
fn kill(mut end: TcpTransport) {
    end.peers.links().for_each(|link| {
        SockRef::from(&link.socket).shutdown(Shutdown::Both).unwrap();
    });
}

fn way(end: &TcpTransport, peer: PeerId) -> &Way {
    &end.peers.get(peer).unwrap().way
}

fn has_said_hello(end: &TcpTransport, peer: PeerId) -> bool {
    matches!(way(end, peer), Way::Begun(Attempt::Dialing { said: Some(_), .. }))
}

fn has_welcomed(end: &TcpTransport, peer: PeerId) -> bool {
    matches!(way(end, peer), Way::Begun(Attempt::Welcomed { .. }))
}

/// A dialer that computes finds a welcome that was withdrawn when it polls again.
#[test]
fn nothing_is_sent_on_a_connection_that_was_given_up() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    a.dial(b_of_a);
    until("hello", || {
        a.say_hello(b_of_a);
        has_said_hello(&a, b_of_a)
    });
    until("welcome", || {
        b.poll(&mut at_b, 10);
        has_welcomed(&b, a_of_b)
    });
    // Half a minute later.
    if let Way::Begun(Attempt::Welcomed { until, .. }) = &mut b.peers.get_mut(a_of_b).unwrap().way {
        *until = 0;
    }
    until("b has given it up", || {
        b.poll(&mut at_b, 10);
        matches!(way(&b, a_of_b), Way::None)
    });
    let mut pushed = false;
    until("the message", || {
        a.poll(&mut at_a, 10);
        pushed = pushed || a.push(b_of_a, &header(7), Body::Bytes(b"body"), None) == Push::Done;
        a.flush();
        b.poll(&mut at_b, 10);
        !at_b.packets.is_empty()
    });
    assert_eq!((at_a.gone, at_b.gone), (vec![], vec![]));
}

/// A receive from whatever has this address.
fn receive_from(address: &[u8], by: &mut Engine<TcpTransport>, memory: &Lent, ends: &mut Vec<Completion>) {
    let recv = Recv {
        kind: MessageKind::Tagged,
        from: by.transport_mut().peer(address),
        tag: 5,
        ignore: 0,
        body: memory.iov(),
        multi: None,
        context: 9,
        tell: Tell::Queue,
    };
    by.recv(&recv, ends).unwrap();
}

/// Whoever waits for a scalable endpoint hears of the death of the context that has sent to it.
#[test]
fn receives_that_name_a_peer_end_with_it() {
    for is_context in [false, true] {
        let (whole, b) = (open(), open());
        let base = whole.local_address();
        let mut whole = Some(whole);
        let mut peer = match is_context {
            true => TcpTransport::open(&address::context(&base, 3), &config()).unwrap(),
            false => whole.take().unwrap(),
        };
        let mut b = Engine::new(b);
        let to_b = peer.peer(&b.transport().local_address()).unwrap();
        let memory = Lent::new(&[100], 0);
        let mut ends: Vec<Completion> = Vec::new();
        receive_from(&base, &mut b, &memory, &mut ends);
        peer.dial(to_b);
        until("a connection", || {
            peer.poll(&mut Kept::default(), 10);
            b.progress(&mut ends);
            is_connected(&mut peer, to_b) && b.transport_mut().peers.links().count() == 1
        });
        kill(peer);
        drop(whole);
        until("its end", || {
            b.progress(&mut ends);
            !ends.is_empty()
        });
        let failures: Vec<_> = ends
            .iter()
            .map(|end| (end.context, end.failure.map(|failure| failure.error)))
            .collect();
        assert_eq!(failures, [(9, Some(Error::PeerGone))], "context: {is_context}");
    }
}

/// One context is closed before another has sent anything: what is received from the endpoint ends with that.
#[test]
fn receives_outlive_a_context_and_end_with_the_endpoint() {
    let (mut whole, mut b) = (open(), Engine::new(open()));
    let base = whole.local_address();
    let mut context = TcpTransport::open(&address::context(&base, 3), &config()).unwrap();
    let to_b = context.peer(&b.transport().local_address()).unwrap();
    let memory = Lent::new(&[100], 0);
    let mut ends: Vec<Completion> = Vec::new();
    receive_from(&base, &mut b, &memory, &mut ends);
    context.dial(to_b);
    until("a connection", || {
        context.poll(&mut Kept::default(), 10);
        b.progress(&mut ends);
        is_connected(&mut context, to_b) && b.transport_mut().peers.links().count() == 1
    });
    drop(context);
    until("its end, and a connection with the endpoint", || {
        b.progress(&mut ends);
        whole.poll(&mut Kept::default(), 10);
        let from = b.transport_mut().peer(&base).unwrap();
        b.transport_mut().peers.link(from).is_some() || !ends.is_empty()
    });
    assert!(ends.is_empty(), "{ends:?}");
    drop(whole);
    until("the endpoint's end", || {
        b.progress(&mut ends);
        !ends.is_empty()
    });
    let error = ends[0].failure.map(|failure| failure.error);
    assert_eq!((ends.len(), error), (1, Some(Error::PeerGone)));
}

/// The connection breaks, a connects anew, and is killed before it confirms.
#[test]
fn who_was_welcomed_and_dies_is_found_dead() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let mut at_b = Kept::default();
    assert!(a.abandon(b_of_a));
    until("hello", || {
        a.poll(&mut Kept::default(), 10);
        has_said_hello(&a, b_of_a)
    });
    until("welcome", || {
        b.poll(&mut at_b, 10);
        has_welcomed(&b, a_of_b)
    });
    drop(a);
    until("the end of a", || {
        b.poll(&mut at_b, 10);
        at_b.gone.len() >= 2
    });
    assert_eq!(at_b.gone, [(a_of_b, Loss::Broken), (a_of_b, Loss::Died)]);
}

#[test]
fn a_death_is_told_though_many_peers_are_waited_for() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    for at in 0..1024u16 {
        let [high, low] = at.to_be_bytes();
        let place = SocketAddr::from(([127, 9, high, low], 7));
        let number = a.peers.number(&address::of(&place)).unwrap();
        a.rest(number, 60_000);
    }
    kill(b);
    let mut at_a = Kept::default();
    until("the end of b", || {
        a.poll(&mut at_a, 10);
        at_a.gone.len() >= 2
    });
    assert_eq!(at_a.gone, [(b_of_a, Loss::Broken), (b_of_a, Loss::Died)]);
}

/// A program that sends what it has unmapped loses that connection, and is told so.
#[test]
fn memory_that_is_gone_ends_the_connection() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    // SAFETY: only the kernel reads there, which finds no page.
    let nothing = UserIov::one(unsafe { UserBuf::new(core::ptr::without_provenance_mut(4096), 20_000) });
    let body = Body::User {
        iov: &nothing,
        at: 0,
        len: 20_000,
    };
    let notice = Some(Notice {
        token: 1,
        when: When::Transmitted,
    });
    assert_eq!(a.push(b_of_a, &header(1), body, notice), Push::Full);
    until("another connection, and a message", || {
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        if at_a.gone.len() == 1 && at_b.packets.is_empty() {
            let _ = a.push(b_of_a, &header(2), Body::Bytes(b"body"), None);
            a.flush();
        }
        !at_b.packets.is_empty()
    });
    assert_eq!(at_a.gone, [(b_of_a, Loss::Broken)]);
    assert_eq!(at_b.packets[0].1.id, 2);
}
