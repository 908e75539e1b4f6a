//! What every transport must do: one suite, run on each.
//!
//! A transport brings a `Pair`, two endpoints of one process that know each other, and says
//! `crate::transport::tests::suite::tests!(ThePair)` in a test module. Nothing here sleeps: the tests poll until a
//! thing has happened, and give up after a time that only a broken transport takes.

mod engines;
mod memory;
mod one_sided;
mod packets;

use crate::engine::op::Error;
use crate::engine::port::*;
use crate::engine::wire::{Header, Packet};
use crate::util::user::Lent;
use std::any::Any;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub use engines::*;
pub use memory::*;
pub use one_sided::*;
pub use packets::*;

/// Two endpoints and their names for each other. `b` may be dropped while `a` goes on.
pub struct Ends<T> {
    pub a: T,
    pub b: T,
    pub b_of_a: PeerId,
    pub a_of_b: PeerId,
    /// Whatever must not be dropped before both.
    pub keep: Box<dyn Any>,
}

pub trait Pair: Transport + Sized {
    fn pair() -> Ends<Self>;
}

/// Makes a test function of each test of the suite.
macro_rules! tests {
    ($pair:ty) => {
        crate::transport::tests::suite::tests!($pair:
            bodies_of_every_length_arrive_in_order,
            a_full_lane_loses_nothing,
            bodies_go_where_they_are_told,
            what_is_refused_comes_again,
            both_ways_at_once,
            memory_is_used_until_that_is_told,
            a_small_budget_is_enough,
            memory_is_fetched_where_that_is_offered,
            the_end_of_a_peer_is_noticed,
            engines_exchange_messages,
            engines_stand_a_flood,
            engines_notice_the_end_of_a_peer,
            engines_reach_each_others_memory,
            engines_refuse_what_is_not_open,
            engines_keep_short_operations_and_messages_in_order,
            engines_write_with_remote_data,
            engines_work_in_pieces_and_in_many_operations_at_once,
            engines_leave_a_closed_region_alone,
            engines_execute_the_cards_atomics_and_no_other,
            engines_ask_a_peer_that_counts,
        );
    };
    ($pair:ty: $($test:ident,)*) => {
        $(
            #[test]
            fn $test() {
                crate::transport::tests::suite::$test::<$pair>();
            }
        )*
    };
}
pub(crate) use tests;

/// Far more than anything here takes, for busy machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats a step until it returns true.
pub fn until(what: &str, mut step: impl FnMut() -> bool) {
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

/// What a test's sink does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Keep,
    Drop,
    Refuse,
    /// At this byte of a buffer of this length.
    Into(usize, usize),
}

/// A sink that records what comes, and checks what can be checked at once.
struct Taker<F> {
    wish: F,
    /// Packets that were not refused, with the length of their bodies.
    came: Vec<(Header, usize)>,
    /// Whole bodies, by the number of their packet.
    bodies: HashMap<u32, Vec<u8>>,
    waiting: HashMap<Token, (u32, Option<(Lent, usize)>)>,
    finished: Vec<(Token, Result<(), NotDone>)>,
    /// Pushes of which the transport said that it is done.
    sent: Vec<Token>,
    gone: Vec<PeerId>,
    refused: bool,
    /// The sum of what `poll` returned.
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
            sent: Vec::new(),
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
        // The body of one packet may be only partly there.
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
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        assert_eq!(from, self.from);
        assert!(!self.refused, "a packet after one that was refused, in one poll");
        assert!(self.gone.is_empty(), "a packet of a peer that is gone");
        let wish = (self.wish)(header, len);
        if wish == Wish::Refuse {
            self.refused = true;
            return Placement::Refuse;
        }
        let token = self.came.len() as Token + 1000;
        self.came.push((*header, len));
        match wish {
            Wish::Drop | Wish::Refuse => Placement::Drop,
            Wish::Keep => {
                self.waiting.insert(token, (header.id, None));
                let buffer = vec![0; len];
                Placement::Keep { buffer, token }
            }
            Wish::Into(at, room) => {
                let memory = Lent::new(&[room / 3, 0, room - room / 3], 0xee);
                self.waiting.insert(token, (header.id, Some((memory, at))));
                let iov = memory.iov();
                Placement::Into { iov, at, token }
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

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.finished.push((token, result));
    }

    fn sent(&mut self, token: Token, result: Result<(), Error>) {
        assert_eq!(result, Ok(()));
        self.sent.push(token);
    }

    fn gone(&mut self, peer: PeerId, _: Loss) {
        self.gone.push(peer);
    }
}

/// Pushes as soon as there is room, which `meanwhile` makes.
fn push<R>(transport: &mut impl Transport, to: PeerId, number: u32, body: Body<'_>, mut meanwhile: impl FnMut() -> R) {
    until("room to push", || {
        match transport.push(to, &header(number), body, None) {
            Push::Done => true,
            Push::Full => {
                // There may be room after a poll, which has nothing to deliver here.
                transport.poll(&mut Taker::new(to, |_: &Header, _| Wish::Drop), 10);
                meanwhile();
                false
            }
            other => panic!("{other:?}"),
        }
    });
}

fn lengths(max: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..70)
        .chain([127, 128, 129, 255, 256, max / 2, max - 1, max])
        .collect();
    lengths.retain(|len| *len <= max);
    lengths
}
