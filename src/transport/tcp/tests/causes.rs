//! What a program does on several connections is told in that order, whoever is polled first.

use super::one_peer::{PEER, caller, connected, next_call, next_event, pair, passive};
use super::*;
use crate::engine::wire::Packet;

#[test]
fn an_end_does_not_overtake_what_was_sent_before_on_another_connection() {
    let ([a, mut at_a], [mut b, mut at_b]) = (pair(&config()), pair(&config()));
    let header = Header::new(Packet::Eager, 3);
    assert_eq!(b.push(PEER, &header, Body::Bytes(b"first"), None), Push::Done);
    b.flush();
    drop(a);
    let (mut ended, mut came) = (Kept::default(), Kept::default());
    until("the end", || {
        at_a.poll(&mut ended, 10);
        assert!(ended.gone.is_empty() || !came.packets.is_empty(), "the end comes first");
        at_b.poll(&mut came, 10);
        !ended.gone.is_empty()
    });
    assert_eq!(at_a.event(), Some(Event::Closed));
    drop(b);
}

#[test]
fn a_call_does_not_overtake_the_confirmation_of_the_one_before() {
    let mut passive = passive(&config());
    let (mut first, mut second, mut sink) = (caller(&config()), caller(&config()), Kept::default());
    first.call(&passive.local_address(), b"").unwrap();
    let mut accepted = TcpTransport::open_for_call(&mut Some(next_call(&mut passive)), &config()).unwrap();
    accepted.accept(b"");
    // It has confirmed when it is told.
    assert_eq!(next_event(&mut first, &mut sink), connected(b""));
    second.call(&passive.local_address(), b"").unwrap();
    until("a hello", || {
        second.poll(&mut sink, 10);
        matches!(
            second.peers.get(PEER).unwrap().way,
            Way::Begun(Attempt::Dialing { said: Some(_), .. })
        )
    });
    let mut events = Vec::new();
    until("a call", || {
        let call = passive.next_call();
        accepted.poll(&mut sink, 10);
        if call.is_none() {
            events.extend(accepted.event());
        }
        call.is_some()
    });
    assert_eq!(events, [connected(b"")]);
}

/// Who waits for the end of a connection alone sees it, though it polls seldom or sleeps.
#[test]
fn what_is_put_off_lets_nobody_sleep() {
    let [a, mut b] = pair(&config());
    drop(a);
    let mut sink = Kept::default();
    until("the end", || {
        if !b.peers.ended.is_empty() {
            assert!(!b.arm());
        }
        b.poll(&mut sink, 10);
        !sink.gone.is_empty()
    });
    let (mut passive, mut a) = (passive(&config()), caller(&config()));
    a.call(&passive.local_address(), b"").unwrap();
    let (mut call, mut put_off) = (None, 0);
    until("a call", || {
        a.poll(&mut sink, 10);
        call = passive.next_call();
        put_off += usize::from(call.is_none() && !passive.arm());
        call.is_some()
    });
    assert!(put_off > 0);
}
