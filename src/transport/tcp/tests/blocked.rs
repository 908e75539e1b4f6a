//! A socket that takes no more, as its peer does not read.

use super::*;
use crate::engine::wire::Packet;
use crate::util::user::{UserBuf, UserIov};

fn push(end: &mut TcpTransport, to: PeerId, id: u32, body: &[u8], notice: Option<Notice>) -> Push {
    end.push(to, &Header::new(Packet::Eager, id), Body::Bytes(body), notice)
}

/// Two ends that are connected, and what they call each other. The first waits long when it closes.
fn connected() -> ([TcpTransport; 2], PeerId, PeerId) {
    let patient = Config {
        linger: PATIENCE,
        ..config()
    };
    let (mut a, mut b) = (open_at("127.0.0.1:0", &patient), open());
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut a, b_of_a, &mut b, a_of_b);
    a.flush();
    ([a, b], b_of_a, a_of_b)
}

/// Pushes what somebody waits for until the socket takes less. Returns the answers.
fn fill(end: &mut TcpTransport, to: PeerId) -> Vec<Push> {
    let long = vec![7; 256 << 10];
    let mut answers = Vec::new();
    while !end.holds_back(to) {
        answers.push(push(end, to, answers.len() as u32, &long, Some(Notice::ANSWERED)));
        assert_ne!(answers.last(), Some(&Push::Full));
    }
    answers
}

/// Whoever injects may never call again: a packet that cannot leave is not taken.
#[test]
fn what_nobody_waits_for_is_not_taken() {
    let ([mut a, mut b], b_of_a, _) = connected();
    let pushed = fill(&mut a, b_of_a).len() as u32;
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

/// The last word of a connection stands behind a body of which a part has left from the application's memory.
#[test]
fn an_end_does_not_get_into_what_is_on_its_way() {
    let ([mut a, mut b], b_of_a, a_of_b) = connected();
    let mut memory: Vec<u8> = (0..256 << 10).map(|at: u32| (at / 5) as u8).collect();
    let memory_len = memory.len();
    // SAFETY: `memory` lives to the end of this function, and only the socket reads it.
    let iov = UserIov::one(unsafe { UserBuf::new(memory.as_mut_ptr(), memory_len) });
    let body = || Body::User {
        iov: &iov,
        at: 0,
        len: memory_len,
    };
    let mut pushed = 0;
    while !a.holds_back(b_of_a) {
        let header = Header::new(Packet::Eager, pushed);
        let notice = Notice {
            token: 1,
            when: When::Transmitted,
        };
        assert_ne!(a.push(b_of_a, &header, body(), Some(notice)), Push::Full);
        pushed += 1;
    }
    let mut at_b = Kept::default();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(a));
        until("the end", || {
            b.poll(&mut at_b, 10);
            !at_b.gone.is_empty()
        });
    });
    assert_eq!(at_b.gone, [(a_of_b, Loss::Died)]);
    assert_eq!(at_b.packets.len(), pushed as usize);
    assert!(at_b.packets.iter().all(|(_, _, body)| *body == memory));
}

/// Long bodies too may stay in part, and whoever waits for an answer need not call again before it has left.
#[test]
fn what_stays_in_part_is_said_to_stay() {
    let ([mut a, _b], b_of_a, _) = connected();
    let mut answers = fill(&mut a, b_of_a);
    assert_eq!(answers.pop(), Some(Push::Later));
    assert!(answers.iter().all(|answer| *answer == Push::Done));
}
