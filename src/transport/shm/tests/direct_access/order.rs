//! Records and turns of all kinds, refused and taken back, held against the order in which they were pushed.

use super::recall::{judge, write_header};
use super::recalled_turns::{out, pair_with_room};
use super::*;
use proptest::prelude::*;

/// What one side has pushed, by number: whether it is done.
#[derive(Default)]
struct Told {
    done: Vec<bool>,
}

impl Told {
    fn push(&mut self) {
        self.done.push(false);
    }

    /// This is done now: once, and after all before it.
    fn is_done(&mut self, number: usize) {
        assert_eq!(
            self.done[..number].iter().position(|done| !done),
            None,
            "before {number}"
        );
        assert!(!std::mem::replace(&mut self.done[number], true), "{number} twice");
    }

    fn count(&self) -> usize {
        self.done.iter().filter(|done| **done).count()
    }

    fn is_all_done(&self) -> bool {
        self.count() == self.done.len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Writes and messages are done in the order in which they were pushed, by the target or without it; and nothing is
    /// done directly before them.
    #[test]
    fn all_is_done_once_and_in_order(steps in proptest::collection::vec((0..14u8, 0..8u32), 1..600)) {
        let memory = Memory::private();
        let (mut p, back) = pair_with_room(&memory);
        let (mut sinks, mut told) = ([Kept::default(), Kept::default()], Told::default());
        let mut is_to_answer = false;
        // Says whether there was any.
        let read = |sink: &mut Kept, told: &mut Told| {
            let before = told.count();
            for (_, header, _) in sink.packets.drain(..) {
                match header.packet {
                    Packet::Write => told.is_done((header.tag - BASE) as usize),
                    Packet::Eager => told.is_done(header.id as usize),
                    _ => {}
                }
            }
            told.count() > before
        };
        for (step, kind) in steps {
            let next = told.done.len();
            match step {
                0..5 => {
                    let header = Header {
                        total: u64::from(kind % 3),
                        ..write_header(next)
                    };
                    let len = [1, 24, 25, 300, 473, MAX_BODY, MAX_BODY + 1, MAX_WRITE][kind as usize];
                    if p.end.push(p.to, &header, Body::Bytes(&vec![5; len]), None) == Push::Done {
                        told.push();
                    }
                }
                5 => {
                    if p.end.push(p.to, &header(next as u32), Body::Bytes(&body(kind)), None) == Push::Done {
                        told.push();
                    }
                }
                6 | 7 => drop(p.target.push(back, &header(kind), Body::Bytes(&body(kind)), None)),
                8 => {
                    let packet = if kind < 4 { Packet::Reply } else { Packet::Read };
                    let _ = p.end.push(p.to, &Header::new(packet, 0), Body::Empty, None);
                }
                9 => {
                    let mut places = Vec::new();
                    let done = p.end.recall(p.to, |header, len| judge(header, len, &mut places)).unwrap_or(0);
                    prop_assert!(done == 0 || !is_to_answer);
                    places.into_iter().take(done).for_each(|place| told.is_done(place as usize));
                }
                10 | 11 => {
                    // Some packets are refused at first, and some are answered only later.
                    p.target.flush();
                    sinks[0].refuse = kind < 2;
                    sinks[0].is_to_answer = kind > 5;
                    p.target.poll(&mut sinks[0], 1 + kind as usize % 4);
                    sinks[0].refuse = false;
                    is_to_answer = read(&mut sinks[0], &mut told) && kind > 5;
                }
                12 => drop(p.end.poll(&mut sinks[1], 3)),
                _ => {
                    // The target answers, so that the next turn is this side's.
                    p.target.poll(&mut sinks[0], 64);
                    read(&mut sinks[0], &mut told);
                    let _ = p.target.push(back, &header(kind), Body::Bytes(&body(kind)), None);
                    p.target.flush();
                    is_to_answer = false;
                    p.end.poll(&mut sinks[1], 64);
                }
            }
            for may_access in [out(&p).may_go_ahead(), out(&p).may_pass(Access::Read)] {
                prop_assert!(!may_access || told.is_all_done() && !is_to_answer);
            }
        }
        p.target.flush();
        sinks[0].is_to_answer = false;
        let start = Instant::now();
        while !told.is_all_done() {
            p.target.poll(&mut sinks[0], 64);
            read(&mut sinks[0], &mut told);
            prop_assert!(start.elapsed() < PATIENCE, "nothing comes any more");
        }
    }
}
