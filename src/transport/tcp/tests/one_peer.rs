//! Endpoints of FI_EP_MSG: how a connection comes about, and the ways in which it does not.

use super::*;
use crate::engine::wire::Packet;
use crate::sys::clock;
use crate::transport::tests::suite::Ends;
use handshake::{Answer, CALL, Hello, Verdict};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

pub(super) const PEER: PeerId = 0;

fn at(place: SocketAddr) -> Vec<u8> {
    resolve::to_bytes(&place)
}

fn anywhere() -> Vec<u8> {
    at("127.0.0.1:0".parse().unwrap())
}

pub(super) fn passive(config: &Config) -> Passive {
    let mut passive = Passive::open(&anywhere(), config).unwrap();
    passive.listen(8).unwrap();
    passive
}

pub(super) fn caller(config: &Config) -> TcpTransport {
    TcpTransport::open_to_call(&anywhere(), config).unwrap()
}

pub(super) fn next_call(passive: &mut Passive) -> Call {
    let mut call = None;
    until("a call", || {
        call = call.take().or_else(|| passive.next_call());
        call.is_some()
    });
    call.unwrap()
}

/// Polls until there is an event.
pub(super) fn next_event(end: &mut TcpTransport, sink: &mut Kept) -> Event {
    let mut event = None;
    until("an event", || {
        end.poll(sink, 10);
        event = end.event();
        event.is_some()
    });
    event.unwrap()
}

pub(super) fn connected(data: &[u8]) -> Event {
    Event::Connected { data: data.to_vec() }
}

fn failed(errno: i32, data: &[u8]) -> Event {
    Event::Failed {
        errno,
        data: data.to_vec(),
    }
}

/// Two ends that are connected, of whom the first has called.
pub(super) fn pair(config: &Config) -> [TcpTransport; 2] {
    let mut passive = passive(config);
    let mut a = caller(config);
    a.call(&passive.local_address(), b"").unwrap();
    let mut b = TcpTransport::open_for_call(&mut Some(next_call(&mut passive)), config).unwrap();
    b.accept(b"");
    let mut sink = Kept::default();
    assert_eq!(next_event(&mut a, &mut sink), connected(b""));
    assert_eq!(next_event(&mut b, &mut sink), connected(b""));
    [a, b]
}

pub(super) fn ends(config: &Config) -> Ends<TcpTransport> {
    let [a, b] = pair(config);
    Ends {
        a,
        b,
        b_of_a: PEER,
        a_of_b: PEER,
        keep: Box::new(()),
    }
}

#[test]
fn data_and_addresses_go_both_ways() {
    let mut passive = passive(&config());
    let (mut a, mut sink) = (caller(&config()), Kept::default());
    assert_eq!((a.connected_with(), a.event()), (None, None));
    a.call(&passive.local_address(), &[1; DATA_SIZE]).unwrap();
    let call = next_call(&mut passive);
    assert_eq!((call.data(), call.peer()), (vec![1; DATA_SIZE], a.local_address()));
    let mut b = TcpTransport::open_for_call(&mut Some(call), &config()).unwrap();
    assert_eq!(b.local_address(), passive.local_address());
    b.accept(&[2; DATA_SIZE]);
    assert_eq!(next_event(&mut a, &mut sink), connected(&[2; DATA_SIZE]));
    assert_eq!(next_event(&mut b, &mut sink), connected(b""));
    assert_eq!(a.connected_with(), Some(b.local_address()));
    assert_eq!(b.connected_with(), Some(a.local_address()));
    assert!(sink.gone.is_empty());
}

#[test]
fn nobody_listens() {
    let closed = passive(&config()).local_address();
    // Bound, and so nobody else's, but not listening.
    let bound = Passive::open(&anywhere(), &config()).unwrap();
    for address in [closed, bound.local_address()] {
        let (mut a, mut sink) = (caller(&config()), Kept::default());
        a.call(&address, b"x").unwrap();
        assert_eq!(next_event(&mut a, &mut sink), failed(libc::ECONNREFUSED, b""));
        assert_eq!(sink.gone, [(PEER, Loss::Died)]);
        a.poll(&mut sink, 10);
        assert_eq!((a.event(), sink.gone.len()), (None, 1));
    }
}

#[test]
fn addresses_that_cannot_be_connected_to() {
    let mut a = caller(&config());
    for address in [
        &[][..],
        &at("127.0.0.1:0".parse().unwrap()),
        &at("[::1]:7".parse().unwrap()),
    ] {
        assert!(a.call(address, b"").is_err(), "{address:?}");
    }
}

#[test]
fn a_rejection_brings_its_data() {
    let mut passive = passive(&config());
    let address = passive.local_address();
    let ask = || {
        let mut a = caller(&config());
        a.call(&address, b"please").unwrap();
        a
    };
    let (mut rejected, mut sink) = (ask(), Kept::default());
    next_call(&mut passive).reject(b"no");
    assert_eq!(next_event(&mut rejected, &mut sink), failed(libc::ECONNREFUSED, b"no"));
    let mut dropped = ask();
    drop(next_call(&mut passive));
    assert_eq!(next_event(&mut dropped, &mut sink), failed(libc::ECONNREFUSED, b""));
    let mut not_accepted = ask();
    drop(TcpTransport::open_for_call(
        &mut Some(next_call(&mut passive)),
        &config(),
    ));
    assert_eq!(
        next_event(&mut not_accepted, &mut sink),
        failed(libc::ECONNREFUSED, b"")
    );
    let mut shut_down = ask();
    let mut b = TcpTransport::open_for_call(&mut Some(next_call(&mut passive)), &config()).unwrap();
    b.shut_down();
    assert_eq!(next_event(&mut shut_down, &mut sink), failed(libc::ECONNREFUSED, b""));
    assert_eq!(sink.gone, [(PEER, Loss::Died); 4]);
}

/// Nobody takes the connection: the kernel's queue is full.
#[test]
fn whoever_does_not_answer_is_given_up() {
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    full.bind(&any.into()).unwrap();
    full.listen(0).unwrap();
    let place = full.local_addr().unwrap().as_socket().unwrap();
    let impatient = Config {
        connect_timeout: Duration::from_millis(50),
        ..config()
    };
    let crowd: Vec<_> = (0..4)
        .map(|_| {
            let mut one = caller(&impatient);
            one.call(&at(place), b"").unwrap();
            one
        })
        .collect();
    let (mut a, mut sink) = (caller(&impatient), Kept::default());
    a.call(&at(place), b"").unwrap();
    assert_eq!(next_event(&mut a, &mut sink), failed(libc::ETIMEDOUT, b""));
    assert_eq!(sink.gone, [(PEER, Loss::Died)]);
    drop(crowd);
}

/// Whoever listens there is no passive endpoint.
#[test]
fn strangers_that_answer_are_refused() {
    let instance = 7;
    let welcome = |behind: &[u8]| {
        let verdict = Verdict::Welcome;
        [&Answer { verdict, instance }.encode()[..], behind].concat()
    };
    let later = Answer {
        verdict: Verdict::Later,
        instance,
    };
    let rows = [
        (vec![], libc::ECONNRESET),
        (b"220 mail.example.org ESMTP".to_vec(), libc::ECONNREFUSED),
        (later.encode().to_vec(), libc::ECONNREFUSED),
        (welcome(&[0; 9]), libc::ECONNRESET),
        (welcome(&[255; program_data::SIZE]), libc::EPROTO),
    ];
    for (said, errno) in rows {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut a, mut sink) = (caller(&config()), Kept::default());
        a.call(&at(listener.local_addr().unwrap()), b"").unwrap();
        let (mut stranger, _) = listener.accept().unwrap();
        let mut heard = [0; Hello::SIZE + program_data::SIZE];
        until("a hello", || {
            a.poll(&mut sink, 10);
            stranger.set_nonblocking(true).unwrap();
            stranger.peek(&mut heard).is_ok_and(|came| came == heard.len())
        });
        stranger.read_exact(&mut heard).unwrap();
        stranger.write_all(&said).unwrap();
        drop(stranger);
        assert_eq!(next_event(&mut a, &mut sink), failed(errno, b""), "{said:?}");
        assert_eq!((sink.gone, sink.packets.len()), (vec![(PEER, Loss::Died)], 0));
    }
}

/// An endpoint of the other kind listens there, or calls.
#[test]
fn endpoints_of_other_kinds_do_not_meet() {
    let (mut rdm, mut a, mut sink) = (open(), caller(&config()), Kept::default());
    a.call(&rdm.local_address(), b"").unwrap();
    let mut event = None;
    until("a refusal", || {
        rdm.poll(&mut sink, 10);
        a.poll(&mut sink, 10);
        event = a.event();
        event.is_some()
    });
    assert_eq!(event, Some(failed(libc::ECONNREFUSED, b"")));
    assert_eq!((sink.gone, sink.met), (vec![(PEER, Loss::Died)], vec![]));
}

/// What connects to a passive endpoint by hand.
fn call_by_hand(passive: &Passive, behind: &[u8]) -> TcpStream {
    let place = resolve::from_bytes(&passive.local_address()).unwrap();
    let mut stream = TcpStream::connect(place).unwrap();
    let hello = Hello {
        from: address::of(&stream.local_addr().unwrap()),
        instance: 5,
        context: CALL,
        nonce: None,
    };
    stream.write_all(&[&hello.encode()[..], behind].concat()).unwrap();
    stream
}

#[test]
fn a_caller_that_went_away_is_noticed_when_it_is_accepted() {
    let mut passive = passive(&config());
    let stream = call_by_hand(&passive, &program_data::encode(b"x"));
    let call = next_call(&mut passive);
    drop(stream);
    let (mut b, mut sink) = (
        TcpTransport::open_for_call(&mut Some(call), &config()).unwrap(),
        Kept::default(),
    );
    b.accept(b"");
    assert_eq!(next_event(&mut b, &mut sink), failed(libc::ECONNRESET, b""));
    assert_eq!(sink.gone, [(PEER, Loss::Died)]);
}

/// The program is told what the engine has heard already.
#[test]
fn an_accept_that_fails_at_once_is_told_in_the_next_poll() {
    let mut passive = passive(&config());
    let stream = call_by_hand(&passive, &program_data::encode(b"x"));
    let call = next_call(&mut passive);
    // Its kernel answers whatever comes with a reset, and has sent one.
    socket2::SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
    let (mut b, mut sink) = (
        TcpTransport::open_for_call(&mut Some(call), &config()).unwrap(),
        Kept::default(),
    );
    b.accept(b"");
    assert_eq!(b.event(), None);
    assert_eq!(next_event(&mut b, &mut sink), failed(libc::ECONNRESET, b""));
    assert_eq!(sink.gone, [(PEER, Loss::Died)]);
}

#[test]
fn a_call_that_says_too_much_is_refused() {
    let mut passive = passive(&config());
    let mut stream = call_by_hand(&passive, &[255; program_data::SIZE]);
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let mut answer = [0; Answer::SIZE];
    until("a refusal", || {
        assert!(passive.next_call().is_none());
        stream.read_exact(&mut answer).is_ok()
    });
    assert_eq!(Answer::decode(&answer).unwrap().verdict, Verdict::Foreign);
}

/// More calls than a program may leave without an answer wait in the kernel, and come when there is room.
#[test]
fn calls_without_an_answer_are_bounded() {
    const MOST: usize = 256;
    let mut passive = passive(&config());
    passive.listen(MOST).unwrap();
    let mut streams = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..MOST {
        streams.push(call_by_hand(&passive, &program_data::encode(b"")));
        calls.push(next_call(&mut passive));
    }
    streams.extend((0..20).map(|_| call_by_hand(&passive, &program_data::encode(b""))));
    assert!((0..100).all(|_| passive.next_call().is_none()));
    calls.truncate(MOST - 20);
    calls.extend((0..20).map(|_| next_call(&mut passive)));
    assert_eq!((calls.len(), streams.len()), (MOST, MOST + 20));
}

#[test]
fn what_was_pushed_before_a_shutdown_arrives() {
    let [mut a, mut b] = pair(&config());
    let header = Header::new(Packet::Eager, 3);
    let body = vec![7; config::MAX_BODY];
    let mut pushed = 0;
    while matches!(
        a.push(PEER, &header, Body::Bytes(&body), None),
        Push::Done | Push::Later
    ) {
        pushed += 1;
    }
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    a.shut_down();
    assert_eq!(a.push(PEER, &header, Body::Empty, None), Push::Gone);
    until("all of it", || {
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        !at_b.gone.is_empty()
    });
    assert_eq!((at_b.packets.len(), b.event()), (pushed, Some(Event::Closed)));
    assert_eq!((at_a.gone, a.event()), (vec![(PEER, Loss::Died)], None));
    assert_eq!((a.connected_with(), b.connected_with()), (None, None));
}

/// The other process dies, or its machine: no goodbye.
#[test]
fn a_connection_that_breaks_is_closed_and_not_made_anew() {
    let [mut a, b] = pair(&config());
    let mut sink = Kept::default();
    a.abandon(PEER);
    assert_eq!(next_event(&mut a, &mut sink), Event::Closed);
    assert_eq!(sink.gone, [(PEER, Loss::Died)]);
    for _ in 0..200 {
        a.poll(&mut sink, 10);
    }
    assert!(a.peers.ways().is_empty() && sink.met.is_empty() && a.event().is_none());
    drop(b);
}

/// The other side is welcomed, and then says nothing.
#[test]
fn an_accept_that_nobody_confirms_fails_after_half_a_minute() {
    const PATIENCE_MS: u64 = 30_000;
    let mut passive = passive(&config());
    let stream = call_by_hand(&passive, &program_data::encode(b"x"));
    let call = next_call(&mut passive);
    let (mut b, mut sink) = (
        TcpTransport::open_for_call(&mut Some(call), &config()).unwrap(),
        Kept::default(),
    );
    let before = clock::monotonic_ms();
    b.accept(b"");
    let after = clock::monotonic_ms();
    let Way::Begun(Attempt::Welcomed { until, .. }) = &mut b.peers.get_mut(PEER).unwrap().way else {
        panic!("nobody is welcomed");
    };
    assert!((before..=after).contains(&(*until - PATIENCE_MS)));
    // The time is over.
    *until = before;
    assert!(!b.arm());
    assert_eq!(next_event(&mut b, &mut sink), failed(libc::ETIMEDOUT, b""));
    assert_eq!(sink.gone, [(PEER, Loss::Died)]);
    drop(stream);
}

/// After fi_shutdown the program has its memory back, and may write to it.
#[test]
fn memory_that_was_lent_is_kept_when_the_connection_is_shut_down() {
    use crate::engine::port::When;
    use crate::util::user::Lent;
    const LEN: usize = 400_000;
    let small = Config {
        kernel_buffer: Some(4 << 10),
        ..config()
    };
    let [mut a, mut b] = pair(&small);
    let memory = Lent::new(&[LEN / 2, LEN / 2], 7);
    let iov = memory.iov();
    let body = Body::User {
        iov: &iov,
        at: 0,
        len: LEN,
    };
    let notice = Notice {
        token: 77,
        when: When::Released,
    };
    let header = Header::new(Packet::Eager, 3);
    assert_eq!(a.push(PEER, &header, body, Some(notice)), Push::Later);
    a.shut_down();
    memory.set(&[9; LEN]);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    until("the end", || {
        a.poll(&mut at_a, 10);
        b.poll(&mut at_b, 10);
        !at_b.gone.is_empty()
    });
    assert!(at_b.packets.len() == 1 && at_b.packets[0].2 == [7; LEN]);
    assert_eq!(at_a.sent, []);
}

#[test]
fn a_listener_that_closes_rejects_whom_its_program_has_not_heard_of() {
    let (mut passive, mut a) = (passive(&config()), caller(&config()));
    a.call(&passive.local_address(), b"").unwrap();
    until_put_off(&mut a, &mut passive);
    drop(passive);
    let mut sink = Kept::default();
    assert_eq!(next_event(&mut a, &mut sink), failed(libc::ECONNREFUSED, b""));
}

/// Until a call has come that is told of a few polls later.
fn until_put_off(caller: &mut TcpTransport, passive: &mut Passive) {
    until("a call that is told of later", || {
        caller.poll(&mut Kept::default(), 10);
        assert!(passive.next_call().is_none());
        !passive.arm()
    });
}

/// A listener, the calls that it has and those that its program has are the parent's.
#[test]
fn a_child_of_fork_leaves_the_parents_calls_alone() {
    use crate::sys::child::Child;
    let mut passive = passive(&config());
    let address = passive.local_address();
    let mut callers = [(); 3].map(|()| caller(&config()));
    let call = |caller: &mut TcpTransport| caller.call(&address, b"").unwrap();
    call(&mut callers[0]);
    let mut held = Some(next_call(&mut passive));
    call(&mut callers[1]);
    until_put_off(&mut callers[1], &mut passive);
    let child = Child::run(|| {
        // They have the numbers that the parent's sockets had.
        let pairs = (0..32).map(|_| UnixStream::pair().unwrap());
        let mut own: Vec<_> = pairs.flat_map(|(one, other)| [one, other]).collect();
        assert!(passive.next_call().is_none());
        drop(held.take());
        drop(core::mem::replace(
            &mut passive,
            Passive::open(&anywhere(), &config()).unwrap(),
        ));
        for end in &mut own {
            end.set_nonblocking(true).unwrap();
            assert_eq!(end.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        }
    });
    assert_eq!(child.wait(), 0);
    call(&mut callers[2]);
    for caller in &mut callers {
        let call = held.take().unwrap_or_else(|| next_call(&mut passive));
        assert_eq!(call.peer(), caller.local_address());
        let mut accepted = TcpTransport::open_for_call(&mut Some(call), &config()).unwrap();
        accepted.accept(b"");
        assert_eq!(next_event(caller, &mut Kept::default()), connected(b""));
    }
}
