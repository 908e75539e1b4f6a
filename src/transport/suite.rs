//! What every transport must do: one suite, run on each.
//!
//! A transport brings a `Pair`, two endpoints of one process that know each other, and says
//! `crate::transport::suite::tests!(ThePair)` in a test module. Nothing here sleeps: the tests poll until a thing has
//! happened, and give up after a time that only a broken transport takes.

mod engines;
mod memory;

use crate::engine::port::*;
use crate::engine::wire::{Header, Packet};
use crate::util::user::Lent;
use std::any::Any;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub use engines::*;
pub use memory::*;

/// Two endpoints and their names for each other. `b` may be dropped while `a` goes on.
pub struct Ends<T> {
    pub a: T,
    pub b: T,
    pub b_of_a: PeerId,
    pub a_of_b: PeerId,
    /// What must live as long as both.
    pub keep: Box<dyn Any>,
}

pub trait Pair: Transport + Sized {
    fn pair() -> Ends<Self>;
}

/// Runs the suite: a test function per line, so that a failure has a name.
macro_rules! tests {
    ($pair:ty) => {
        crate::transport::suite::tests!($pair:
            bodies_of_every_length_arrive_in_order,
            a_full_lane_loses_nothing,
            bodies_go_where_they_are_told,
            what_is_refused_comes_again,
            both_ways_at_once,
            a_small_budget_is_enough,
            memory_is_fetched_where_that_is_offered,
            the_end_of_a_peer_is_noticed,
            engines_exchange_messages,
            engines_stand_a_flood,
            engines_notice_the_end_of_a_peer,
            engines_reach_each_others_memory,
            engines_refuse_what_is_not_open,
            engines_keep_short_operations_and_messages_in_order,
        );
    };
    ($pair:ty: $($test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                crate::transport::suite::$test::<$pair>();
            }
        )*
    };
}
pub(crate) use tests;

/// Far more than anything here takes, for machines that do other things too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Does something until it says that it is over.
fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "waited too long: {what}");
    }
}

fn header(number: u32) -> Header {
    Header {
        packet: Packet::Segment,
        flags: 0,
        code: 0,
        id: number,
        tag: u64::from(number) << 32,
        data: !u64::from(number),
        total: 77,
    }
}

fn byte(number: u32, at: usize) -> u8 {
    (u64::from(number) * 131 + at as u64 * 7 + at as u64 / 251) as u8
}

fn bytes(number: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| byte(number, at)).collect()
}

/// What a test wants done with the packets that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Keep,
    Drop,
    Refuse,
    /// At this byte of a buffer of this length.
    Into(usize, usize),
}

/// Notes what comes, and checks what can be checked at once.
struct Taker<F> {
    wish: F,
    /// Packets that were taken, with the length of their bodies.
    came: Vec<(Header, usize)>,
    /// Bodies by number: when they were all there.
    bodies: HashMap<u32, Vec<u8>>,
    waiting: HashMap<Token, (u32, Option<(Lent, usize)>)>,
    finished: Vec<(Token, bool)>,
    gone: Vec<PeerId>,
    refused: bool,
    /// Packets that `poll` spoke of.
    said: usize,
    from: PeerId,
}

impl<F: FnMut(&Header, usize) -> Wish> Taker<F> {
    fn new(from: PeerId, wish: F) -> Taker<F> {
        Taker {
            wish,
            came: Vec::new(),
            bodies: HashMap::new(),
            waiting: HashMap::new(),
            finished: Vec::new(),
            gone: Vec::new(),
            refused: false,
            said: 0,
            from,
        }
    }

    /// Polls once; says how many packets came.
    fn poll(&mut self, transport: &mut impl Transport, budget: usize) -> usize {
        self.refused = false;
        let said = transport.poll(self, budget);
        self.said += said;
        // One may have begun to come.
        let came = self.came.len();
        assert!(
            self.said == came || self.said + 1 == came,
            "{} said, {came} came",
            self.said
        );
        said
    }

    fn numbers(&self) -> Vec<u32> {
        self.came.iter().map(|(header, _)| header.id).collect()
    }
}

impl<F: FnMut(&Header, usize) -> Wish> Sink for Taker<F> {
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Place {
        assert_eq!(from, self.from);
        assert!(!self.refused, "a packet after one that was refused, in one poll");
        assert!(self.gone.is_empty(), "a packet of a peer that is gone");
        let wish = (self.wish)(header, len);
        if wish == Wish::Refuse {
            self.refused = true;
            return Place::Refuse;
        }
        let token = self.came.len() as Token + 1000;
        self.came.push((*header, len));
        match wish {
            Wish::Drop | Wish::Refuse => Place::Drop,
            Wish::Keep => {
                self.waiting.insert(token, (header.id, None));
                let buffer = vec![0; len];
                Place::Keep { buffer, token }
            }
            Wish::Into(at, room) => {
                let memory = Lent::new(&[room / 3, 0, room - room / 3], 0xee);
                self.waiting.insert(token, (header.id, Some((memory, at))));
                let iov = memory.iov();
                Place::Into { iov, at, token }
            }
        }
    }

    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        let (number, memory) = self
            .waiting
            .remove(&token)
            .expect("placed once, and only what was placed");
        let body = match memory {
            None => buffer.expect("the buffer comes back"),
            Some((memory, at)) => {
                assert_eq!(buffer, None);
                let mut bytes = memory.bytes();
                assert!(
                    bytes.drain(..at.min(bytes.len())).all(|byte| byte == 0xee),
                    "written before its place"
                );
                bytes
            }
        };
        assert!(self.bodies.insert(number, body).is_none());
    }

    fn finished(&mut self, token: Token, ok: bool) {
        self.finished.push((token, ok));
    }

    fn gone(&mut self, peer: PeerId) {
        self.gone.push(peer);
    }
}

/// Pushes as soon as there is room; `meanwhile` makes it.
fn push<R>(transport: &mut impl Transport, to: PeerId, number: u32, body: Body<'_>, mut meanwhile: impl FnMut() -> R) {
    until("room to push", || match transport.push(to, &header(number), body) {
        Push::Done => true,
        Push::Full => {
            meanwhile();
            false
        }
        other => panic!("{other:?}"),
    });
}

fn lengths(max: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..70)
        .chain([127, 128, 129, 255, 256, max / 2, max - 1, max])
        .collect();
    lengths.retain(|len| *len <= max);
    lengths
}

pub fn bodies_of_every_length_arrive_in_order<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let lengths = lengths(a.limits().max_body);
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
    for (number, len) in (0u32..).zip(&lengths) {
        // By turns from the engine's memory, and from the middle of an application's in pieces.
        let whole = bytes(number, *len);
        let memory = Lent::new(&[len / 2, 3, len - len / 2 + 3], 0);
        memory.set(&[vec![1; 5], whole.clone(), vec![1]].concat());
        let iov = &memory.iov();
        let body = match number % 2 {
            _ if *len == 0 => Body::Empty,
            0 => Body::Bytes(&whole),
            _ => Body::User { iov, at: 5, len: *len },
        };
        push(&mut a, b_of_a, number, body, || taker.poll(&mut b, 100));
        memory.set(&vec![9; len + 6]); // it may be used again
    }
    let count = lengths.len();
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.bodies.len() == count
    });
    let expected: Vec<(Header, usize)> = (0u32..)
        .zip(&lengths)
        .map(|(number, len)| (header(number), *len))
        .collect();
    assert_eq!(taker.came, expected);
    for (number, len) in (0u32..).zip(&lengths) {
        assert_eq!(taker.bodies[&number], bytes(number, *len));
    }
}

pub fn a_full_lane_loses_nothing<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
    let len = a.limits().max_body / 2;
    let mut number = 0;
    for _ in 0..3 {
        let mut room = 1 << 20;
        while a.push(b_of_a, &header(number), Body::Bytes(&bytes(number, len))) == Push::Done {
            number += 1;
            room -= 1;
            assert!(room > 0, "a lane without end");
        }
        assert!(number > 0);
        until("what was pushed", || {
            a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
            taker.poll(&mut b, 7);
            taker.bodies.len() == number as usize
        });
        // What waited inside the lane is gone, so there is room again, in a while.
        push(&mut a, b_of_a, number, Body::Bytes(&bytes(number, len)), || {
            taker.poll(&mut b, 7)
        });
        number += 1;
    }
    until("the last", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 7);
        taker.bodies.len() == number as usize
    });
    assert_eq!(taker.numbers(), (0..number).collect::<Vec<_>>());
    assert!(taker.bodies.iter().all(|(number, body)| *body == bytes(*number, len)));
}

pub fn bodies_go_where_they_are_told<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let max = a.limits().max_body;
    let mut wishes = vec![Wish::Drop, Wish::Keep];
    for len in [0, 1, 50, max] {
        for at in [0, 1, 40, len, len + 9] {
            wishes.push(Wish::Into(at, len));
        }
    }
    let plan = wishes.clone();
    let mut taker = Taker::new(a_of_b, |header: &Header, _| plan[header.id as usize % plan.len()]);
    let lens = [1, 30, 50, max];
    let count = (wishes.len() * lens.len()) as u32;
    let len_of = |number: u32| lens[number as usize / wishes.len()];
    for number in 0..count {
        let body = bytes(number, len_of(number));
        push(&mut a, b_of_a, number, Body::Bytes(&body), || taker.poll(&mut b, 100));
    }
    let placed = (0..count)
        .filter(|number| wishes[*number as usize % wishes.len()] != Wish::Drop)
        .count();
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.came.len() == count as usize && taker.bodies.len() == placed
    });
    for number in 0..count {
        let whole = bytes(number, len_of(number));
        let expected = match wishes[number as usize % wishes.len()] {
            Wish::Drop | Wish::Refuse => None,
            Wish::Keep => Some(whole),
            Wish::Into(at, room) => {
                let left = room.saturating_sub(at);
                let mut expected = vec![0xee; left];
                let fits = left.min(whole.len());
                expected[..fits].copy_from_slice(&whole[..fits]);
                Some(expected)
            }
        };
        assert_eq!(taker.bodies.get(&number), expected.as_ref(), "packet {number}");
    }
}

pub fn what_is_refused_comes_again<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut tries = HashMap::new();
    let mut taker = Taker::new(a_of_b, |header: &Header, _| {
        let tries: &mut u32 = tries.entry(header.id).or_default();
        *tries += 1;
        if *tries <= header.id % 4 {
            Wish::Refuse
        } else {
            Wish::Keep
        }
    });
    for number in 0..40 {
        let body = bytes(number, number as usize);
        push(&mut a, b_of_a, number, Body::Bytes(&body), || taker.poll(&mut b, 100));
    }
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.bodies.len() == 40
    });
    assert_eq!(taker.numbers(), (0..40).collect::<Vec<_>>());
    assert!(
        taker
            .bodies
            .iter()
            .all(|(number, body)| *body == bytes(*number, *number as usize))
    );
    drop(taker);
    assert!(
        tries.iter().all(|(number, tries)| *tries == number % 4 + 1),
        "{tries:?}"
    );
}

pub fn both_ways_at_once<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let (mut at_a, mut at_b) = (
        Taker::new(b_of_a, |_: &Header, _| Wish::Keep),
        Taker::new(a_of_b, |_: &Header, _| Wish::Into(0, 200)),
    );
    const COUNT: u32 = 2000;
    let (mut from_a, mut from_b) = (0, 0);
    until("all packets of both", || {
        for _ in 0..3 {
            let body = bytes(from_a, 200);
            if from_a < COUNT && a.push(b_of_a, &header(from_a), Body::Bytes(&body)) == Push::Done {
                from_a += 1;
            }
            if from_b < COUNT && b.push(a_of_b, &header(from_b), Body::Empty) == Push::Done {
                from_b += 1;
            }
        }
        at_a.poll(&mut a, 5);
        at_b.poll(&mut b, 5);
        at_a.bodies.len() + at_b.bodies.len() == 2 * COUNT as usize
    });
    let all: Vec<u32> = (0..COUNT).collect();
    assert_eq!((at_a.numbers(), at_b.numbers()), (all.clone(), all));
    assert!(at_b.bodies.iter().all(|(number, body)| *body == bytes(*number, 200)));
}

pub fn a_small_budget_is_enough<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Drop);
    for number in 0..50 {
        push(&mut a, b_of_a, number, Body::Bytes(&[1; 10]), || taker.poll(&mut b, 1));
    }
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 1);
        let came = taker.poll(&mut b, 1);
        assert!(came <= 8, "{came} packets, one was asked for");
        taker.came.len() == 50
    });
}

pub fn memory_is_fetched_where_that_is_offered<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    if !a.limits().can_get {
        return;
    }
    for (token, (len, at, part)) in (1..).zip([(1, 0, 1), (5000, 0, 5000), (100_000, 77, 90_000), (3, 2, 1)]) {
        let theirs = Lent::new(&[len / 3, len - len / 3], 0);
        theirs.set(&bytes(len as u32, len));
        let remote = b.expose(a_of_b, &theirs.iov());
        let ours = Lent::new(&[len / 2, 0, len - len / 2], 0xee);
        let mut taker = Taker::new(b_of_a, |_: &Header, _| Wish::Keep);
        let mut begun = None;
        until("room for a get", || {
            begun = Some(a.get(b_of_a, &remote, &ours.iov(), at, part, Some(token)));
            taker.poll(&mut a, 10);
            Taker::new(a_of_b, |_: &Header, _| Wish::Keep).poll(&mut b, 10);
            begun != Some(Get::Full)
        });
        match begun {
            Some(Get::Done) => assert_eq!(taker.finished, []),
            Some(Get::Later) => {
                until("the get", || {
                    taker.poll(&mut a, 10);
                    Taker::new(a_of_b, |_: &Header, _| Wish::Keep).poll(&mut b, 10);
                    !taker.finished.is_empty()
                });
                assert_eq!(taker.finished, [(token, true)]);
            }
            Some(Get::Unsupported) => continue,
            other => panic!("{other:?}"),
        }
        let mut expected = vec![0xee; len];
        expected[at..at + part].copy_from_slice(&bytes(len as u32, len)[at..at + part]);
        assert_eq!(ours.bytes(), expected);
    }
}

pub fn the_end_of_a_peer_is_noticed<P: Pair>() {
    for push_too in [false, true] {
        let Ends {
            mut a,
            mut b,
            b_of_a,
            a_of_b,
            keep: _keep,
        } = P::pair();
        let mut taker = Taker::new(b_of_a, |_: &Header, _| Wish::Keep);
        let mut at_b = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
        push(&mut a, b_of_a, 0, Body::Empty, || {});
        push(&mut b, a_of_b, 0, Body::Empty, || {});
        until("a packet each", || {
            taker.poll(&mut a, 10);
            at_b.poll(&mut b, 10);
            taker.came.len() + at_b.came.len() == 2
        });
        drop(b);
        until("the end", || {
            if push_too && a.push(b_of_a, &header(1), Body::Empty) == Push::Gone {
                return true;
            }
            taker.poll(&mut a, 10);
            taker.gone == [b_of_a]
        });
    }
}
