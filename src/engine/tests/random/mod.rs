//! Generated runs of messages, judged by the matching rules of MPI.
//!
//! The log of a run says in which order receives were posted and first packets arrived. `rules` replays it on two plain
//! lists to find which message belongs to which receive, and so every completion that must be reported, exactly once.
//! `proptest` shrinks a failing run.

mod rules;

use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::port::*;
use crate::engine::receive::want;
use crate::engine::tests::sim::*;
use crate::engine::wire::{Header, flag};
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
        sends: 6,
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

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let lens = prop_oneof![0usize..20, 80usize..130, 290usize..310, 300usize..700];
    (0u8..14, 0..NODES, 0..NODES, 0u64..3, lens, any::<u8>()).prop_map(|(what, node, peer, tag, len, how)| Step {
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
    (bodies, depths, 0u64..6, 0u64..8, 0u64..16, any::<bool>(), gets).prop_map(
        |(max_body, depth, delay, full, late, can_get, gets)| Manner {
            limits: Limits {
                max_body,
                eager: 300,
                can_get,
                guaranteed_body: max_body.min(100),
                sync_placement: true,
            },
            depth,
            delay,
            full,
            late,
            keeps: full * 2,
            poor: late,
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

// ---- what must have come of it ----

/// The messages from one node to another, in the order of their sends.
fn lanes(world: &World) -> HashMap<(PeerId, PeerId), Vec<usize>> {
    let mut lanes: HashMap<_, Vec<usize>> = HashMap::new();
    for (number, sent) in world.sent.iter().enumerate() {
        lanes.entry((sent.from, sent.send.to)).or_default().push(number);
    }
    lanes
}

fn check_header(header: &Header, sent: &Sent) {
    let tagged = sent.send.kind == MessageKind::Tagged;
    let data = (header.flags & flag::DATA != 0).then_some(header.data);
    let told = (header.flags & flag::TAGGED != 0, header.total, data, header.tag);
    let tag = if tagged { sent.send.tag } else { 0 };
    assert_eq!(
        told,
        (tagged, sent.bytes.len() as u64, sent.send.data, tag),
        "out of order"
    );
}

/// Replays the log, and compares what each node's application was told with what it should have been.
fn judge<T: Connected>(bed: &Bed<T>) {
    let world = bed.world.borrow();
    let lanes = lanes(&world);
    let mut arrived: HashMap<(PeerId, PeerId), usize> = HashMap::new();
    let mut rules: Vec<Rules> = (0..NODES).map(|_| Rules::default()).collect();
    let mut arrivals = HashMap::new();
    for (time, event) in world.log.iter().enumerate() {
        match *event {
            Event::Arrive { from, to, header } => {
                let nth = arrived.entry((from, to)).or_default();
                let message = lanes[&(from, to)][*nth];
                *nth += 1;
                check_header(&header, &world.sent[message]);
                arrivals.insert(message, time);
                rules[to as usize].arrive(&world, message);
            }
            Event::Post { recv } => {
                let received = &world.received[recv];
                rules[received.node as usize].post(&world, received.recv);
            }
            Event::Cancel { node, context } => {
                let rules = &mut rules[node as usize];
                if let Some(place) = rules.posted.iter().position(|posted| posted.recv.context == context) {
                    let posted = rules.posted.remove(place);
                    rules.fail(&posted.recv, Error::Canceled);
                }
            }
            Event::Peek { peek } => {
                let (node, peek, recv) = &world.peeks[peek];
                rules[*node as usize].peek(&world, *peek, recv);
            }
            Event::CompletedOp(..) => {}
        }
    }
    for (node, rules) in rules.iter().enumerate() {
        check_receives(bed, node as PeerId, &rules.ends);
    }
    check_bytes(&world, &rules);
    check_sends(&world, &rules, &arrivals, &lanes);
}

fn check_receives<T: Connected>(bed: &Bed<T>, node: PeerId, expected: &[Completion]) {
    let sort = |ends: &mut Vec<Completion>| ends.sort_by_key(|end| (end.context, end.buf, end.len, format!("{end:?}")));
    let mut told: Vec<Completion> = bed
        .ends(node)
        .into_iter()
        .filter(|end| end.op == CompletedOp::Recv)
        .collect();
    told.iter_mut().for_each(|end| end.released = false);
    let mut expected = expected.to_vec();
    sort(&mut told);
    sort(&mut expected);
    assert_eq!(told, expected, "node {node}");
}

fn check_bytes(world: &World, rules: &[Rules]) {
    for (context, received) in world.received.iter().enumerate() {
        let rules = &rules[received.node as usize];
        let mut came: Vec<(usize, usize)> = rules
            .went
            .iter()
            .filter(|(_, (c, _))| *c == context)
            .map(|(m, (_, b))| (*b, *m))
            .collect();
        came.sort_unstable();
        for (buf, message) in came {
            let bytes = &world.sent[message].bytes;
            let fits = |(end, found): &(Completion, Vec<u8>)| end.buf == buf && bytes.starts_with(found) && !end.peeked;
            assert!(
                received.found.iter().any(fits),
                "receive {context} has other bytes than send {message}"
            );
        }
        // A buffer of many goes back exactly once, and last.
        let released: Vec<bool> = received.found.iter().map(|(end, _)| end.released).collect();
        let last = received.recv.multi.is_some() && !released.is_empty();
        let expected: Vec<bool> = (1..=released.len()).map(|n| last && n == released.len()).collect();
        assert_eq!(released, expected, "receive {context}");
    }
}

fn check_sends(
    world: &World,
    rules: &[Rules],
    arrivals: &HashMap<usize, usize>,
    lanes: &HashMap<(PeerId, PeerId), Vec<usize>>,
) {
    let when = |meant: &dyn Fn(PeerId, &Completion) -> bool| -> Vec<usize> {
        let at = |(time, event): (usize, &Event)| match event {
            Event::CompletedOp(node, end) if meant(*node, end) => Some(time),
            _ => None,
        };
        world.log.iter().enumerate().filter_map(at).collect()
    };
    let ended = |number: usize| when(&|_, end| end.op == CompletedOp::Send && end.context == number);
    for (number, sent) in world.sent.iter().enumerate() {
        let times = ended(number);
        assert_eq!(times.len(), 1, "ends of send {number}");
        let Event::CompletedOp(node, end) = world.log[times[0]] else {
            panic!()
        };
        assert_eq!(
            (node, end.failure, end.len),
            (sent.from, None, sent.bytes.len()),
            "send {number}"
        );
        let went = rules[sent.send.to as usize].went.get(&number);
        if let Some((context, buf)) = went.filter(|_| sent.send.level == CompletionLevel::Delivery) {
            let there = |node, end: &Completion| {
                (node, end.op, end.context, end.buf, end.peeked)
                    == (sent.send.to, CompletedOp::Recv, *context, *buf, false)
            };
            assert!(when(&there)[0] < times[0], "send {number} ended before its delivery");
        }
        if sent.send.fence {
            let before = lanes[&(sent.from, sent.send.to)]
                .iter()
                .take_while(|other| **other < number);
            for other in before {
                assert!(ended(*other)[0] < arrivals[&number], "send {number} passed its fence");
            }
        }
    }
}

fn check_nothing_left<T: Connected>(bed: &Bed<T>) {
    let dead = bed.world.borrow().dead.clone();
    let living = || (0..NODES).filter(|node| !dead.contains(node));
    for (from, to) in living().flat_map(|from| living().map(move |to| (from, to))) {
        let (credit, ..) = bed.nodes[from as usize].engine.credit(to);
        let (_, allowed, due) = bed.nodes[to as usize].engine.credit(from);
        assert_eq!(
            (allowed, credit + due),
            (credit, config().window),
            "credit of {from} at {to}"
        );
    }
    for (node, end) in bed
        .nodes
        .iter()
        .enumerate()
        .filter(|(node, _)| !dead.contains(&(*node as PeerId)))
    {
        assert_eq!(end.engine.leftovers(), [0; 5], "node {node}");
        let nonsense = bed.world.borrow().nonsense.len() as u64;
        assert!(end.engine.malformed() <= nonsense, "node {node}");
    }
}

/// With a node killed or connections broken: every operation ends once, whoever lives is served as if nothing had
/// happened, and between two that lost their connection nothing is doubled, and nothing lost that was acknowledged.
fn judge_survivors<T: Connected>(bed: &Bed<T>) {
    let world = bed.world.borrow();
    let dead = |node: PeerId| world.dead.contains(&node);
    let allowed = |a, b, error| bed.torn(a, b).contains(&Some(error));
    let mut sends: HashMap<usize, Vec<Completion>> = HashMap::new();
    let mut recvs: HashMap<usize, Vec<Completion>> = HashMap::new();
    let mut last: HashMap<(PeerId, PeerId), u64> = HashMap::new();
    for event in &world.log {
        match *event {
            Event::CompletedOp(node, end) if !dead(node) => {
                let ends = if end.op == CompletedOp::Send {
                    &mut sends
                } else {
                    &mut recvs
                };
                ends.entry(end.context).or_default().push(end);
            }
            Event::Arrive { from, to, header } => {
                let before = last.insert((from, to), header.tag);
                assert!(
                    before.is_none_or(|before| before < header.tag),
                    "{from} to {to}: out of order"
                );
            }
            _ => {}
        }
    }
    let mut came: HashMap<u64, usize> = HashMap::new();
    let living = |received: &&Received| !dead(received.node);
    for (context, received) in world.received.iter().enumerate().filter(|(_, it)| living(it)) {
        assert_eq!(recvs.get(&context).map_or(0, Vec::len), 1, "ends of receive {context}");
        let (end, found) = &received.found[0];
        match end.failure.map(|failure| failure.error) {
            Some(Error::Canceled) => {}
            None | Some(Error::Truncated) => {
                *came.entry(end.tag).or_default() += 1;
                assert!(world.sent[end.tag as usize].bytes.starts_with(found));
            }
            Some(error) => {
                // A receive that no message has begun to fill outlives a connection, but not its peer.
                let known = received.recv.from.filter(|_| error != Error::Broken);
                let peer = end.source.or(known);
                assert!(peer.is_some_and(|peer| allowed(peer, received.node, error)), "{end:?}");
            }
        }
    }
    for (number, sent) in world.sent.iter().enumerate().filter(|(_, sent)| !dead(sent.from)) {
        let (from, to) = (sent.from, sent.send.to);
        let ends = &sends[&number];
        let failure = ends[0].failure.map(|failure| failure.error);
        assert!(
            ends.len() == 1 && failure.is_none_or(|error| allowed(from, to, error)),
            "send {number}: {ends:?}"
        );
        let times = came.get(&(number as u64)).copied().unwrap_or(0);
        let acknowledged = failure.is_none() && sent.send.level == CompletionLevel::Delivery && !dead(to);
        let torn = bed.torn(from, to) != [None; 3] && !acknowledged;
        assert!(times == 1 || times == 0 && torn, "send {number} came {times} times");
    }
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
