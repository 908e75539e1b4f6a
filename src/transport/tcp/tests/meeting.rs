//! How two ends come to one connection: in every order of their steps, and after one of them was replaced.

use super::*;
use crate::engine::wire::Packet;
use socket2::SockRef;
use std::net::Shutdown;

fn header(id: u32) -> Header {
    Header::new(Packet::Eager, id)
}

/// Pushes once; whether it was taken.
fn push(end: &mut TcpTransport, to: PeerId, id: u32) -> bool {
    match end.push(to, &header(id), Body::Bytes(b"body"), None) {
        Push::Done => true,
        Push::Full => false,
        other => panic!("{other:?}"),
    }
}

/// Two ends that push to each other as soon as they can, driven step by step in the order that the bits of `order` say:
/// each bit lets one of them dial, push or poll. Both must get all packets of the other, once and in order.
fn meet(order: u32, steps: u32) {
    const COUNT: u32 = 5;
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    let mut sent = [0, 0];
    let mut step = |first: bool, at_a: &mut Kept, at_b: &mut Kept, push_too: bool| {
        let (end, to, sink, sent) = match first {
            true => (&mut a, b_of_a, at_a, &mut sent[0]),
            false => (&mut b, a_of_b, at_b, &mut sent[1]),
        };
        if push_too && *sent < COUNT && push(end, to, *sent) {
            *sent += 1;
        }
        end.polls |= active::LOOK - 1; // the next poll looks at everything
        end.poll(sink, 10);
    };
    for bit in 0..steps {
        step(order >> bit & 1 == 0, &mut at_a, &mut at_b, true);
    }
    until("all packets", || {
        step(true, &mut at_a, &mut at_b, true);
        step(false, &mut at_a, &mut at_b, true);
        at_a.packets.len() + at_b.packets.len() == 2 * COUNT as usize
    });
    for (sink, from) in [(&at_a, b_of_a), (&at_b, a_of_b)] {
        let came: Vec<u32> = sink.packets.iter().map(|(_, header, _)| header.id).collect();
        assert_eq!(came, (0..COUNT).collect::<Vec<_>>(), "order {order:b}");
        assert!(
            sink.packets
                .iter()
                .all(|(peer, _, body)| *peer == from && body == b"body")
        );
        assert_eq!(
            (sink.gone.as_slice(), sink.met.as_slice()),
            (&[][..], &[(from, from)][..]),
            "order {order:b}"
        );
    }
}

#[test]
fn every_order_of_steps_leads_to_one_connection() {
    const STEPS: u32 = 8;
    (0..1 << STEPS).for_each(|order| meet(order, STEPS));
}

/// One end says hello and the other as well before either hears it: the smaller address keeps its connection.
#[test]
fn of_two_hellos_one_waits() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    let said = |end: &TcpTransport, to: PeerId| {
        matches!(
            end.peers.get(to).unwrap().way,
            Way::Begun(Attempt::Dialing { said: Some(_), .. })
        )
    };
    a.dial(b_of_a);
    b.dial(a_of_b);
    until("two hellos", || {
        a.say_hello(b_of_a);
        b.say_hello(a_of_b);
        said(&a, b_of_a) && said(&b, a_of_b)
    });
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    until("a connection", || {
        a.poll(&mut at_a, 1);
        b.poll(&mut at_b, 1);
        is_connected(&mut a, b_of_a) && is_connected(&mut b, a_of_b)
    });
    let a_port = a.place.port();
    let b_port = b.place.port();
    // Whose connection it is shows in its ports: that of the listener is at the other end.
    let kept_a = a.own < b.own;
    let ends = [&mut a, &mut b].map(|end| {
        let link = end.peers.links().next().unwrap();
        sockets::own_place(&link.socket).unwrap().port()
    });
    assert_eq!(ends[1] == b_port, kept_a, "{ends:?} {a_port} {b_port}");
    assert_eq!(ends[0] == a_port, !kept_a);
    assert!(at_a.gone.is_empty() && at_b.gone.is_empty());
}

/// Whatever the system has for all connections.
#[test]
fn nothing_is_held_back_within_a_machine() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    for end in [&mut a, &mut b] {
        let link = end.peers.links().next().unwrap();
        let chosen = SockRef::from(&link.socket).tcp_congestion().unwrap();
        assert!(chosen.starts_with(b"reno\0"), "{}", chosen.escape_ascii());
    }
}

#[test]
fn an_end_that_closes_has_died_and_its_last_words_arrive() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    for id in 0..100 {
        assert!(push(&mut b, a_of_b, id));
    }
    drop(b);
    let mut at_a = Kept::default();
    until("the end", || {
        a.poll(&mut at_a, 7);
        !at_a.gone.is_empty()
    });
    assert_eq!((at_a.packets.len(), at_a.gone), (100, vec![(b_of_a, Loss::Died)]));
}

/// One thread has both ends: nothing is read while it closes one, and it sends to that one as long as it knows of no
/// end.
#[test]
fn what_has_left_arrives_though_closing_did_not_wait_for_it() {
    let small = Config {
        linger: Duration::ZERO,
        kernel_buffer: Some(8 << 10),
        ..config()
    };
    let (mut a, mut b) = (open_at("127.0.0.1:0", &small), open_at("127.0.0.1:0", &small));
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    let (mut left, mut id) = (0, 0);
    loop {
        let notice = Notice {
            token: Token::from(id),
            when: When::Transmitted,
        };
        match b.push(a_of_b, &header(id), Body::Bytes(&[7; 1000]), Some(notice)) {
            Push::Done => left += 1,
            Push::Later => {}
            _ => break,
        }
        id += 1;
        b.poll(&mut at_b, 10);
    }
    left += at_b.sent.len();
    drop(b);
    assert!(left > 0 && push(&mut a, b_of_a, 0));
    until("the end", || {
        a.poll(&mut at_a, 10);
        !at_a.gone.is_empty()
    });
    let came: Vec<u32> = at_a.packets.iter().map(|(_, header, _)| header.id).collect();
    assert!(came.len() >= left && came.is_sorted(), "{} of {left} came", came.len());
}

/// A successor at the same address: the engine hears of the death before it hears of the new one.
#[test]
fn a_successor_is_a_new_peer() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let place = b.place.to_string();
    // It has no time to say goodbye.
    b.peers.links().for_each(|link| {
        SockRef::from(&link.socket).shutdown(Shutdown::Both).unwrap();
    });
    drop(b);
    let mut b = open_again_at(&place);
    let (_, a_of_b) = numbers(&mut a, &mut b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    let mut sent = false;
    until("a packet of the successor", || {
        sent = sent || push(&mut b, a_of_b, 7);
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        !at_a.packets.is_empty()
    });
    assert_eq!(at_a.gone.last(), Some(&(b_of_a, Loss::Died)), "{:?}", at_a.gone);
    assert_eq!((at_a.packets[0].0, at_b.gone), (b_of_a, vec![]));
}

/// The same at another loopback address than its peer's, while the peer has not yet heard of the death: a connection
/// that comes from elsewhere could not be told from a stranger's that takes the name of the dead one.
#[test]
fn a_successor_connects_from_its_own_address() {
    let mut a = open();
    let mut b = open_at("127.0.0.2:0", &config());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let place = b.place;
    drop(b);
    let mut b = open_again_at(&place.to_string());
    let (_, a_of_b) = numbers(&mut a, &mut b);
    let mut sinks = [Kept::default(), Kept::default()];
    let mut pushed = false;
    until("a connection", || {
        pushed = pushed || push(&mut b, a_of_b, 7);
        b.poll(&mut sinks[0], 10);
        // Said hello, it is heard before the goodbye of the first one.
        if matches!(
            b.peers.get(a_of_b).unwrap().way,
            Way::Begun(Attempt::Dialing { said: Some(_), .. })
        ) {
            a.listener.as_ref().unwrap().serve(a.instance, &a.config);
            a.receive_arrivals(&mut sinks[1]);
        }
        if pushed {
            a.poll(&mut sinks[1], 10);
        }
        !sinks[1].packets.is_empty() || b.peers.get_mut(a_of_b).unwrap().history.answer().is_some()
    });
    assert_eq!(sinks[1].packets.len(), 1, "it was refused");
}

/// Three endpoints at one address, one after the other, while nothing is taken of the first: what the second one said
/// was read by nobody when the third one asks.
#[test]
fn what_a_successor_said_arrives_though_another_one_follows() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let (place, mut at_a) = (b.place.to_string(), Kept::default());
    at_a.refuse = true;
    for id in 1..=3 {
        let (_, a_of_b) = numbers(&mut a, &mut b);
        // The third one is told to come again.
        until("a packet, or a pause", || {
            b.poll(&mut Kept::default(), 10);
            a.poll(&mut at_a, 10);
            let rests = matches!(b.peers.get(a_of_b).unwrap().way, Way::Resting { .. });
            push(&mut b, a_of_b, id) || id == 3 && rests
        });
        if id == 2 {
            until("a confirmation that waits", || {
                a.poll(&mut at_a, 10);
                matches!(a.peers.get(b_of_a).unwrap().way, Way::Begun(Attempt::Agreed { .. }))
            });
        }
        if id < 3 {
            drop(b);
            b = open_again_at(&place);
        }
    }
    at_a.refuse = false;
    until("all packets", || {
        let a_of_b = b.peer(&a.local_address()).unwrap();
        let is_last = at_a.packets.iter().any(|(_, header, _)| header.id == 3);
        let _ = is_last || push(&mut b, a_of_b, 3);
        b.poll(&mut Kept::default(), 10);
        a.poll(&mut at_a, 10);
        is_last
    });
    let mut came: Vec<u32> = at_a.packets.iter().map(|(_, header, _)| header.id).collect();
    came.dedup();
    assert_eq!(came, [1, 2, 3]);
    assert_eq!(at_a.gone, [(b_of_a, Loss::Died), (b_of_a, Loss::Died)]);
}

#[test]
fn a_broken_connection_is_broken_for_both() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    assert!(a.abandon(b_of_a));
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    until("another connection", || {
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        at_a.met.len() + at_b.met.len() == 2 && is_connected(&mut a, b_of_a)
    });
    assert_eq!(
        (at_a.gone, at_b.gone),
        (vec![(b_of_a, Loss::Broken)], vec![(a_of_b, Loss::Broken)])
    );
}

#[test]
fn nobody_at_the_address_is_unreachable_in_time() {
    let mut a = open_at(
        "127.0.0.1:0",
        &Config {
            connect_timeout: Duration::from_millis(50),
            ..config()
        },
    );
    let nobody = open().local_address();
    let to = a.peer(&nobody).unwrap();
    let mut sink = Kept::default();
    until("an answer", || {
        a.poll(&mut sink, 1);
        match a.push(to, &header(1), Body::Empty, None) {
            Push::Full => false,
            Push::Unreachable(Unreached::Refused) => true,
            other => panic!("{other:?}"),
        }
    });
    // It may be there the next time.
    let mut b = open_again_at(&address::place(&nobody).unwrap().to_string());
    let a_of_b = b.peer(&a.local_address()).unwrap();
    connect(&mut a, to, &mut b, a_of_b);
}

#[test]
fn an_endpoint_reaches_itself_by_any_of_its_addresses() {
    for place in ["127.0.0.1:0", "0.0.0.0:0"] {
        let mut a = open_at(place, &config());
        let mut own = a.place;
        own.set_ip([127, 0, 0, 1].into());
        let me = a.peer(&address::of(&own)).unwrap();
        let (mut sink, mut sent) = (Kept::default(), false);
        until("a packet", || {
            sent = sent || push(&mut a, me, 5);
            a.poll(&mut sink, 10);
            !sink.packets.is_empty()
        });
        assert_eq!((sink.packets[0].0, &*sink.packets[0].2), (me, &b"body"[..]));
    }
}

/// The addresses that a peer may know it by, which are the same to it.
#[test]
fn who_listens_everywhere_is_reached_at_every_address() {
    let mut server = open_at("0.0.0.0:0", &config());
    for ip in [[127, 0, 0, 1], [127, 0, 0, 2]] {
        let mut client = open();
        let to = client.peer(&address::of(&(ip, server.place.port()).into())).unwrap();
        let back = server.peer(&client.local_address()).unwrap();
        connect(&mut client, to, &mut server, back);
        assert!(push(&mut client, to, 1) && push(&mut server, back, 2));
        let (mut here, mut there) = (Kept::default(), Kept::default());
        until("both packets", || {
            client.poll(&mut here, 10);
            server.poll(&mut there, 10);
            !here.packets.is_empty() && !there.packets.is_empty()
        });
        assert_eq!((here.packets[0].0, there.packets[0].0), (to, back));
    }
}

/// The kernel knows a link-local address only with its interface. A machine that has none has nothing to ask here.
#[test]
fn link_local_endpoints_meet() {
    let all = crate::sys::interfaces::list().unwrap();
    let mut all = all.iter().map(|one| one.address);
    let is_link_local = |place: &SocketAddr| matches!(place, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local());
    let Some(own) = all.find(is_link_local) else {
        return eprintln!("no link-local address");
    };
    let (mut a, mut b) = (
        open_at(&own.to_string(), &config()),
        open_at(&own.to_string(), &config()),
    );
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
}

#[test]
fn contexts_share_a_port_and_are_one_source() {
    let (mut a, mut b) = (open(), open());
    let base = a.local_address();
    let mut third = TcpTransport::open(&address::context(&base, 3), &config()).unwrap();
    assert!(matches!(
        TcpTransport::open(&address::context(&base, 3), &config()),
        Err(OpenError::InUse)
    ));
    let to = b.peer(&address::context(&base, 3)).unwrap();
    let (mut at_b, mut at_third, mut sent) = (Kept::default(), Kept::default(), false);
    until("a packet", || {
        sent = sent || push(&mut b, to, 5);
        b.poll(&mut at_b, 10);
        a.poll(&mut Kept::default(), 10);
        third.poll(&mut at_third, 10);
        !at_third.packets.is_empty()
    });
    let back = third.peer(&b.local_address()).unwrap();
    assert!(push(&mut third, back, 6));
    until("an answer", || {
        b.poll(&mut at_b, 10);
        !at_b.packets.is_empty()
    });
    let source = b.peer(&base).unwrap();
    assert_eq!((at_b.packets[0].0, at_b.met), (to, vec![(to, source)]));
}

/// Notices: a body that the socket does not take is lent, and told of when it has left.
#[test]
fn lent_memory_is_told_of_when_it_has_left() {
    use crate::engine::port::When;
    use crate::util::user::Lent;
    let small = Config {
        kernel_buffer: Some(4 << 10),
        ..config()
    };
    let (mut a, mut b) = (open_at("127.0.0.1:0", &small), open_at("127.0.0.1:0", &small));
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let memory = Lent::new(&[100_000, 100_000], 0);
    let bytes: Vec<u8> = (0..200_000).map(|at| (at % 251) as u8).collect();
    memory.set(&bytes);
    let iov = memory.iov();
    let body = Body::User {
        iov: &iov,
        at: 0,
        len: bytes.len(),
    };
    let notice = Notice {
        token: 77,
        when: When::Released,
    };
    assert_eq!(a.push(b_of_a, &header(1), body, Some(notice)), Push::Later);
    assert_eq!(a.push(b_of_a, &header(2), Body::Empty, None), Push::Full);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    a.poll(&mut at_a, 10);
    assert_eq!(at_a.sent, []);
    until("the body", || {
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        !at_b.packets.is_empty() && !at_a.sent.is_empty()
    });
    assert_eq!((at_a.sent, &at_b.packets[0].2), (vec![77], &bytes));
}
