//! A socket that takes no more, as its peer does not read.

use super::*;
use crate::engine::wire::Packet;

fn push(end: &mut TcpTransport, to: PeerId, id: u32, body: &[u8], notice: Option<Notice>) -> Push {
    end.push(to, &Header::new(Packet::Eager, id), Body::Bytes(body), notice)
}

/// Two ends; the first has pushed what somebody waits for until its socket took less. Says how much that was.
fn blocked(a: &mut TcpTransport, b: &mut TcpTransport) -> (PeerId, u32) {
    let (b_of_a, a_of_b) = numbers(a, b);
    connect(a, b_of_a, b, a_of_b);
    a.flush();
    let long = vec![7; 256 << 10];
    let mut pushed = 0;
    until("a full socket", || {
        pushed += u32::from(push(a, b_of_a, pushed, &long, Some(Notice::ANSWERED)) != Push::Full);
        a.holds_back(b_of_a)
    });
    (b_of_a, pushed)
}

/// Whoever injects may never call again: a packet that cannot leave is not taken.
#[test]
fn what_nobody_waits_for_is_not_taken() {
    let (mut a, mut b) = (open(), open());
    let (b_of_a, pushed) = blocked(&mut a, &mut b);
    assert_eq!(push(&mut a, b_of_a, pushed, &[], None), Push::Full);
    let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
    until("room", || {
        a.poll(&mut at_a, 10);
        a.flush();
        b.poll(&mut at_b, 10);
        push(&mut a, b_of_a, pushed, &[], None) == Push::Done
    });
    assert!(!a.holds_back(b_of_a));
    until("all", || {
        b.poll(&mut at_b, 10);
        at_b.packets.len() > pushed as usize
    });
    let ids: Vec<u32> = at_b.packets.iter().map(|(_, header, _)| header.id).collect();
    assert_eq!(ids, (0..=pushed).collect::<Vec<u32>>());
}
