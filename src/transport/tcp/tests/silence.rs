//! Peers that nothing is heard of, each in its own way, and what is told of it: a machine that is gone, one that is
//! there with a process that does not poll, and those that answer the wrong thing.
//!
//! A machine that is gone is a socket whose filter drops all that comes, before the kernel acknowledges it.

use super::*;
use crate::engine::wire::Packet;
use socket2::{Domain, SockAddr, SockFilter, SockRef, Socket, Type};
use std::net::TcpListener;
use std::os::fd::AsFd;

const SHORT: Duration = Duration::from_millis(300);

fn impatient() -> TcpTransport {
    let config = Config {
        connect_timeout: SHORT,
        silence: SHORT,
        ..config()
    };
    open_at("127.0.0.1:0", &config)
}

fn header() -> Header {
    Header::new(Packet::Eager, 1)
}

/// From now on nothing that is sent to this socket arrives.
fn fall_silent(socket: &impl AsFd) {
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let nothing = SockFilter::new(RETURN, 0, 0, 0);
    SockRef::from(socket).attach_filter(&[nothing]).unwrap();
}

/// What pushing to an address comes to, in the end.
fn failure(end: &mut TcpTransport, place: SocketAddr) -> Unreached {
    let to = end.peer(&address::of(&place)).unwrap();
    let (mut sink, mut why) = (Kept::default(), None);
    until("a failure", || {
        end.poll(&mut sink, 1);
        match end.push(to, &header(), Body::Empty, None) {
            Push::Full => {}
            Push::Unreachable(reason) => why = Some(reason),
            other => panic!("{other:?}"),
        }
        why.is_some()
    });
    assert!(sink.gone.is_empty(), "nobody was met");
    why.unwrap()
}

#[test]
fn whoever_refuses_is_told_from_whoever_is_silent() {
    let mut end = impatient();
    let nobody = open().place;
    assert_eq!(failure(&mut end, nobody), Unreached::Refused);
    // The kernel drops those who knock while nobody accepts.
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 1], 0))))
        .unwrap();
    full.listen(0).unwrap();
    let place = full.local_addr().unwrap().as_socket().unwrap();
    let knocks: Vec<Socket> = (0..4)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None).unwrap();
            let _ = socket.connect(&SockAddr::from(place));
            socket
        })
        .collect();
    assert_eq!(failure(&mut end, place), Unreached::TimedOut);
    drop(knocks);
    // 255.255.255.255 is nobody's, and no stream leads there.
    let nowhere = "255.255.255.255:1".parse().unwrap();
    assert_eq!(failure(&mut end, nowhere), Unreached::NoNetwork);
}

/// It is tried again and again until its time is over.
#[test]
fn whoever_resets_is_told_as_well() {
    let mut end = impatient();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let place = listener.local_addr().unwrap();
    let to = end.peer(&address::of(&place)).unwrap();
    let (mut sink, mut why, mut resets) = (Kept::default(), None, 0);
    until("a failure", || {
        end.poll(&mut sink, 1);
        if let Ok((stream, _)) = listener.accept() {
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            resets += 1;
        }
        if let Push::Unreachable(reason) = end.push(to, &header(), Body::Empty, None) {
            why = Some(reason);
        }
        why.is_some()
    });
    assert_eq!(why, Some(Unreached::Reset));
    assert!(resets > 1);
}

/// A process that computes has not died: the kernel answers for it, and what was sent to it waits.
#[test]
fn whoever_does_not_poll_is_waited_for() {
    let (mut a, mut b) = (impatient(), impatient());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    let wait = |a: &mut TcpTransport, at_a: &mut Kept| {
        let start = Instant::now();
        // Longer than any machine here may be silent.
        until("a long time", || {
            assert!(matches!(
                a.push(b_of_a, &header(), Body::Empty, None),
                Push::Full | Push::Done
            ));
            a.poll(at_a, 1);
            start.elapsed() > Duration::from_secs(4)
        });
    };
    wait(&mut a, &mut at_a);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    // More than the kernels of both sides hold.
    let body = vec![7; config::MAX_BODY];
    let mut pushed = 0;
    while a.push(b_of_a, &header(), Body::Bytes(&body), None) == Push::Done {
        pushed += 1;
    }
    assert!(pushed > 2);
    wait(&mut a, &mut at_a);
    until("all packets", || {
        a.poll(&mut at_a, 1);
        b.poll(&mut at_b, 100);
        assert!(at_a.gone.is_empty() && at_b.gone.is_empty());
        at_b.packets.iter().filter(|packet| packet.2 == body).count() == pushed
    });
}

/// What was sent is not acknowledged.
#[test]
fn a_machine_that_is_gone_is_noticed_while_something_is_sent_to_it() {
    let (mut a, mut b) = (impatient(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    fall_silent(&b.peers.link(a_of_b).unwrap().socket);
    assert_eq!(a.push(b_of_a, &header(), Body::Bytes(b"?"), None), Push::Done);
    let mut at_a = Kept::default();
    until("its end", || {
        a.poll(&mut at_a, 1);
        !at_a.gone.is_empty()
    });
    assert_eq!(at_a.gone, [(b_of_a, Loss::Silent)]);
}

/// So is the machine of somebody who has taken our connection, and has not answered the hello.
#[test]
fn a_machine_that_is_gone_is_noticed_before_it_has_answered() {
    let mut end = impatient();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // What is accepted inherits it.
    let place = listener.local_addr().unwrap();
    let to = end.peer(&address::of(&place)).unwrap();
    end.dial(to);
    let (stream, _) = listener.accept().unwrap();
    fall_silent(&stream);
    assert_eq!(failure(&mut end, place), Unreached::TimedOut);
}
