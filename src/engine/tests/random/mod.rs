//! Generated runs of messages, judged by the matching rules of MPI.
//!
//! The log of a run says in which order receives were posted and first packets arrived. `rules` replays it on two plain
//! lists to find which message belongs to which receive, and so every completion that must be reported, exactly once.
//! `proptest` shrinks a failing run.

mod judge;
mod rules;

use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::port::*;
use crate::engine::receive::want;
use crate::engine::tests::sim::*;
use crate::engine::wire::{Header, flag};
use judge::*;
use proptest::prelude::*;
use rules::*;
use std::collections::HashMap;

const NODES: PeerId = 3;

/// Runs the stories over a transport. Over lanes in memory they run in `rma::random` and here.
macro_rules! over {
    ($transport:ty) => {
        mod stories {
            use super::*;
            use crate::engine::tests::{random, rma};
            use proptest::prelude::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn every_operation_ends_once_as_the_rules_say(
                    seed: u64, steps in proptest::collection::vec(random::step(), 0..80)
                ) {
                    random::every_operation_ends_once::<$transport>(seed, Default::default(), &steps);
                }

                #[test]
                fn whoever_lives_is_served_when_another_dies_or_connections_break(
                    seed: u64, steps in proptest::collection::vec(random::step(), 0..80), when in 0usize..160
                ) {
                    random::whoever_lives_is_served::<$transport>(seed, Default::default(), &steps, when);
                }

                #[test]
                fn memory_becomes_what_the_calls_say(
                    seed: u64, steps in proptest::collection::vec(rma::random::step(), 0..120)
                ) {
                    rma::random::memory_becomes_what_the_calls_say::<$transport>(seed, Default::default(), &steps);
                }

                #[test]
                fn memory_is_right_when_a_node_dies_or_connections_break(
                    seed: u64, steps in proptest::collection::vec(rma::random::step(), 0..120), when in 0usize..240
                ) {
                    rma::random::whoever_lives_finds_memory_right::<$transport>(seed, Default::default(), &steps, when);
                }
            }
        }
    };
}
pub(crate) use over;

fn config() -> Config {
    Config {
        window: 4096,
        room: 1500,
        share: 1000,
        in_flight: 6,
        ..Config::default()
    }
}

/// What the application does next, as numbers that shrink well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    what: u8,
    node: PeerId,
    peer: PeerId,
    tag: u64,
    len: usize,
    how: u8,
}

impl Step {
    /// As a failing run was printed.
    pub(crate) fn of([what, node, peer, tag, len, how]: [usize; 6]) -> Step {
        Step {
            what: what as u8,
            node: node as PeerId,
            peer: peer as PeerId,
            tag: tag as u64,
            len,
            how: how as u8,
        }
    }
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let lens = prop_oneof![0usize..20, 80usize..130, 290usize..310, 300usize..700];
    (0u8..15, 0..NODES, 0..NODES, 0u64..3, lens, any::<u8>()).prop_map(|(what, node, peer, tag, len, how)| Step {
        what,
        node,
        peer,
        tag,
        len,
        how,
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    let gets = prop_oneof![Just([0, 0, 16]), Just([16, 0, 0]), Just([3, 3, 5]), Just([0, 8, 0])];
    let bodies = prop_oneof![Just(9usize), Just(100), Just(700)];
    let depths = prop_oneof![Just(1usize), Just(3), Just(60)];
    let gets_at_once = prop_oneof![Just(0usize), Just(400), Just(1000)];
    let can_get = (any::<bool>(), gets_at_once);
    (bodies, depths, 0u64..6, 0u64..8, 0u64..16, can_get, gets).prop_map(
        |(max_body, depth, delay, full, late, (can_get, gets_at_once), gets)| Manner {
            limits: Limits {
                max_body,
                eager: 300,
                eager_if_fetched: 150,
                can_get,
                gets_at_once,
                guaranteed_body: max_body.min(100),
                sync_placement: true,
                max_write: 0,
                max_in_writes: 0,
                max_short_read: 700,
            },
            depth,
            delay,
            full,
            late,
            keeps: full * 2,
            poor: late,
            no_lanes: false,
            sooner_sent: delay * 3,
            held_up: delay * 2,
            came_late: delay * 2,
            gets,
            copies: [0; 3],
            recalls: [0; 2],
        },
    )
}

fn bit(how: u8, bit: u8) -> bool {
    how >> bit & 1 == 1
}

/// Claims that were made and not yet used, with their node.
type Claims = Vec<(PeerId, Recv)>;

fn act<T: Connected>(bed: &mut Bed<T>, claims: &mut Claims, step: Step) {
    let Step {
        what,
        node,
        peer,
        tag,
        len,
        how,
    } = step;
    let kind = if bit(how, 0) {
        MessageKind::Untagged
    } else {
        MessageKind::Tagged
    };
    match what {
        0..5 => {
            let level = [
                CompletionLevel::Inject,
                CompletionLevel::Transmit,
                CompletionLevel::Delivery,
                CompletionLevel::Delivery,
            ][usize::from(how >> 6)];
            let sent = bed.send(Letter {
                kind,
                data: bit(how, 1).then_some(u64::from(how)),
                inject: bit(how, 2),
                fence: how & 0b11_1000 == 0,
                level,
                ..letter(node, peer, tag, len)
            });
            assert!(sent.is_ok() || sent == Err(Refused::Again));
        }
        5..9 => {
            let recv = recv(kind, peer, tag, how);
            let multi = (how >> 5 == 0).then_some(usize::from(how) * 4);
            let room = if multi.is_some() { len * 4 } else { len };
            bed.recv(node, &[room / 4, room - room / 4], Recv { multi, ..recv });
        }
        9 => {
            let recvs = bed.world.borrow().received.len();
            if recvs > 0 {
                bed.cancel(node, usize::from(how) % recvs);
            }
        }
        10 => {
            let (peek, number) = (how >> 6, bed.world.borrow().peeks.len());
            let recv = Recv {
                context: PEEK + number,
                ..recv(kind, peer, tag, how)
            };
            let peek = [Peek::Only, Peek::Claim, Peek::Claim, Peek::Discard][usize::from(peek)];
            bed.peek(node, peek, recv).unwrap();
            let answer = bed.ends(node).into_iter().find(|end| end.context == recv.context);
            let found = answer.is_some_and(|end| end.failure.is_none());
            if peek == Peek::Claim && found {
                claims.push((node, recv));
            }
        }
        11 => {
            if let Some((node, recv)) = claims.pop() {
                if bit(how, 1) {
                    bed.peek(node, Peek::DiscardClaimed, recv).unwrap();
                } else {
                    bed.take(node, len, recv);
                }
            }
        }
        12 => {
            let sends: Vec<PeerId> = bed.world.borrow().sent.iter().map(|sent| sent.from).collect();
            // One of the last, as all others have left.
            if let Some(number) = sends.len().checked_sub(1 + usize::from(how) % 4) {
                bed.cancel_send(sends[number], number);
            }
        }
        _ => {
            bed.world.borrow_mut().now += u64::from(how & 3);
            bed.progress(node);
        }
    }
}

fn recv(kind: MessageKind, peer: PeerId, tag: u64, how: u8) -> Recv {
    Recv {
        kind,
        from: bit(how, 1).then_some(peer),
        ignore: if bit(how, 2) { u64::from(how >> 3) } else { 0 },
        ..tagged(tag)
    }
}

/// Receives all that is still coming, and cancels what has got nothing.
fn finish<T: Connected>(bed: &mut Bed<T>, claims: Claims) {
    bed.settle();
    for (node, claim) in claims {
        bed.peek(node, Peek::DiscardClaimed, claim).unwrap();
    }
    let sent: Vec<Send> = bed.world.borrow().sent.iter().map(|sent| sent.send).collect();
    for send in sent {
        let recv = Recv {
            kind: send.kind,
            ignore: u64::MAX,
            ..tagged(0)
        };
        if !bed.world.borrow().dead.contains(&send.to) {
            bed.recv(send.to, &[700], recv);
        }
        bed.settle();
    }
    let recvs: Vec<PeerId> = bed
        .world
        .borrow()
        .received
        .iter()
        .map(|received| received.node)
        .collect();
    for (context, node) in recvs.into_iter().enumerate() {
        if !bed.world.borrow().dead.contains(&node) {
            bed.cancel(node, context);
        }
    }
    bed.settle();
}

pub(crate) fn every_operation_ends_once<T: Connected>(seed: u64, manner: Manner, steps: &[Step]) {
    let mut bed: Bed<T> = Bed::over(NODES, seed, manner, config());
    bed.world.borrow_mut().canaries = true;
    let mut claims = Claims::new();
    for step in steps {
        act(&mut bed, &mut claims, *step);
    }
    finish(&mut bed, claims);
    judge(&bed);
    check_nothing_left(&bed);
    bed.check_canaries();
}

/// Node 2 dies at a time; before and after that, connections break if they can.
pub(crate) fn whoever_lives_is_served<T: Connected>(seed: u64, manner: Manner, steps: &[Step], when: usize) {
    let mut bed: Bed<T> = Bed::over(NODES, seed, manner, config());
    bed.world.borrow_mut().canaries = true;
    for (time, step) in steps.iter().enumerate() {
        if time == when {
            bed.kill(2);
        }
        if bed.world.borrow().dead.contains(&step.node) {
            continue;
        }
        // Tags are names here: every message has its own, and every receive takes any.
        let tag = bed.world.borrow().sent.len() as u64;
        let levels = [
            CompletionLevel::Delivery,
            CompletionLevel::Inject,
            CompletionLevel::Transmit,
        ];
        match step.what {
            0..5 => drop(bed.send(Letter {
                level: levels[usize::from(step.how >> 2) % 3],
                inject: bit(step.how, 1),
                ..letter(step.node, step.peer, tag, step.len)
            })),
            5..9 => {
                let from = bit(step.how, 0).then_some(step.peer);
                let ignore = u64::MAX;
                bed.recv(
                    step.node,
                    &[step.len],
                    Recv {
                        from,
                        ignore,
                        ..tagged(0)
                    },
                );
            }
            9 if T::BREAKS && step.how < 100 => bed.break_off(step.node, step.peer),
            9 if T::BREAKS && step.how < 130 => bed.talk_nonsense(step.node, step.peer),
            12 => {
                let last = bed.world.borrow().sent.last().map(|sent| sent.from);
                if let Some(from) = last.filter(|from| !bed.world.borrow().dead.contains(from)) {
                    bed.cancel_send(from, tag as usize - 1);
                }
            }
            _ => drop(bed.progress(step.node)),
        }
    }
    if when < 80 {
        bed.kill(2);
    }
    finish(&mut bed, Claims::new());
    judge_survivors(&bed);
    check_nothing_left(&bed);
    bed.check_canaries();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_ends_once_as_the_rules_say(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..80)
    ) {
        every_operation_ends_once::<Wire>(seed, manner, &steps);
    }

    #[test]
    fn whoever_lives_is_served_when_another_dies(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..80), when in 0usize..80
    ) {
        whoever_lives_is_served::<Wire>(seed, manner, &steps, when);
    }
}
