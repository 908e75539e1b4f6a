//! Who sleeps on the descriptor is woken by what comes, by whoever wakes it, and by deadlines.

use super::*;
use crate::engine::wire::Packet;

/// Whose links are looked after so seldom that nothing but what is tried here wakes anybody.
fn open() -> TcpTransport {
    let silence = Duration::from_secs(3600);
    open_at("127.0.0.1:0", &Config { silence, ..config() })
}

/// Whether the descriptor becomes readable in time.
fn wakes(end: &TcpTransport) -> bool {
    let outer = Epoll::new().unwrap();
    outer.add(end.wake_fd()).unwrap();
    outer.wait(PATIENCE.as_millis() as i32).unwrap() == 1
}

/// Polls until nothing is left to do.
fn settle(end: &mut TcpTransport) {
    let mut sink = Kept::default();
    until("rest", || {
        end.poll(&mut sink, 10);
        end.arm()
    });
}

#[test]
fn what_comes_wakes() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    // A stranger who connects, then each packet.
    settle(&mut b);
    a.dial(b_of_a);
    assert!(wakes(&b));
    connect(&mut a, b_of_a, &mut b, a_of_b);
    for id in 0..5 {
        settle(&mut b);
        assert_eq!(
            a.push(b_of_a, &Header::new(Packet::Eager, id), Body::Empty, None),
            Push::Done
        );
        a.flush();
        assert!(wakes(&b) && !b.arm());
        let mut sink = Kept::default();
        b.poll(&mut sink, 10);
        assert_eq!(sink.packets.len(), 1);
    }
    settle(&mut b);
    b.wake();
    assert!(wakes(&b));
    settle(&mut b);
    drop(a);
    assert!(wakes(&b));
}

/// An end that rests after a refusal is woken when it may try again.
#[test]
fn deadlines_wake() {
    let mut a = open();
    let nobody = open().local_address();
    let to = a.peer(&nobody).unwrap();
    let mut sink = Kept::default();
    until("a refusal", || {
        assert_eq!(
            a.push(to, &Header::new(Packet::Eager, 1), Body::Empty, None),
            Push::Full
        );
        a.poll(&mut sink, 1);
        matches!(a.peers.get(to).unwrap().way, Way::Resting { .. })
    });
    settle(&mut a);
    assert!(wakes(&a));
}

/// While somebody sleeps nothing is gathered, and what was gathered leaves before.
#[test]
fn sleepers_leave_nothing_behind() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    let notice = |token| {
        Some(Notice {
            token,
            when: crate::engine::port::When::Released,
        })
    };
    let header = Header::new(Packet::Eager, 1);
    assert_eq!(a.push(b_of_a, &header, Body::Bytes(b"1"), notice(1)), Push::Done);
    assert_eq!(a.push(b_of_a, &header, Body::Bytes(b"2"), notice(2)), Push::Later);
    assert!(!a.arm(), "somebody is to be told");
    let mut sink = Kept::default();
    until("what was gathered", || {
        b.poll(&mut sink, 10);
        sink.packets.len() == 2
    });
    assert_eq!(a.push(b_of_a, &header, Body::Bytes(b"3"), notice(3)), Push::Done);
    until("all packets", || {
        b.poll(&mut sink, 10);
        sink.packets.len() == 3
    });
    let mut at_a = Kept::default();
    a.poll(&mut at_a, 1);
    assert_eq!(at_a.sent, [2]);
}
