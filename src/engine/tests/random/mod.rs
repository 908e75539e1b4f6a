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
struct Step {
    what: u8,
    node: PeerId,
    peer: PeerId,
    tag: u64,
    len: usize,
    how: u8,
}

fn step() -> impl Strategy<Value = Step> {
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

fn act(bed: &mut Bed, claims: &mut Claims, step: Step) {
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
fn finish(bed: &mut Bed, claims: Claims) {
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
fn judge(bed: &Bed) {
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

fn check_receives(bed: &Bed, node: PeerId, expected: &[Completion]) {
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

fn check_nothing_left(bed: &Bed) {
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
        assert_eq!(
            (end.engine.leftovers(), end.engine.malformed()),
            ([0; 5], 0),
            "node {node}"
        );
    }
}

/// With one node killed: every operation ends once, and whoever lives is served as if nothing had happened.
fn judge_survivors(bed: &Bed) {
    let world = bed.world.borrow();
    let dead = |node: PeerId| world.dead.contains(&node);
    let mut sends: HashMap<usize, Vec<Completion>> = HashMap::new();
    let mut recvs: HashMap<usize, Vec<Completion>> = HashMap::new();
    for event in &world.log {
        let Event::CompletedOp(node, end) = event else { continue };
        if !dead(*node) {
            let ends = if end.op == CompletedOp::Send {
                &mut sends
            } else {
                &mut recvs
            };
            ends.entry(end.context).or_default().push(*end);
        }
    }
    let mut came: HashMap<u64, usize> = HashMap::new();
    for (context, received) in world
        .received
        .iter()
        .enumerate()
        .filter(|(_, received)| !dead(received.node))
    {
        assert_eq!(recvs.get(&context).map_or(0, Vec::len), 1, "ends of receive {context}");
        let (end, found) = &received.found[0];
        match end.failure.map(|failure| failure.error) {
            Some(Error::Canceled) => {}
            Some(Error::PeerGone) => assert!(end.source.or(received.recv.from).is_some_and(dead)),
            None | Some(Error::Truncated) => {
                *came.entry(end.tag).or_default() += 1;
                assert!(world.sent[end.tag as usize].bytes.starts_with(found));
            }
            Some(other) => panic!("{other:?}"),
        }
    }
    for (number, sent) in world.sent.iter().enumerate().filter(|(_, sent)| !dead(sent.from)) {
        let ends = &sends[&number];
        let failure = ends[0].failure.map(|failure| failure.error);
        let allowed = failure.is_none() || dead(sent.send.to) && failure == Some(Error::PeerGone);
        assert!(ends.len() == 1 && allowed, "send {number}: {ends:?}");
        let times = came.get(&(number as u64)).copied().unwrap_or(0);
        assert!(
            times == 1 || times == 0 && dead(sent.send.to),
            "send {number} came {times} times"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_ends_once_as_the_rules_say(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..80)
    ) {
        let mut bed = Bed::new(NODES, seed, manner, config());
        let mut claims = Claims::new();
        for step in steps {
            act(&mut bed, &mut claims, step);
        }
        finish(&mut bed, claims);
        judge(&bed);
        check_nothing_left(&bed);
    }

    #[test]
    fn whoever_lives_is_served_when_another_dies(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..80), when in 0usize..80
    ) {
        let mut bed = Bed::new(NODES, seed, manner, config());
        for (time, step) in steps.into_iter().enumerate() {
            if time == when {
                bed.kill(2);
            }
            if bed.world.borrow().dead.contains(&step.node) {
                continue;
            }
            // Tags are names here: every message has its own, and every receive takes any.
            let tag = bed.world.borrow().sent.len() as u64;
            match step.what {
                0..5 => drop(bed.send(Letter {
                    level: if bit(step.how, 0) { CompletionLevel::Delivery } else { CompletionLevel::Inject },
                    inject: bit(step.how, 1),
                    ..letter(step.node, step.peer, tag, step.len)
                })),
                5..9 => {
                    let from = bit(step.how, 0).then_some(step.peer);
                    bed.recv(step.node, &[step.len], Recv { from, ignore: u64::MAX, ..tagged(0) });
                }
                _ => drop(bed.progress(step.node)),
            }
        }
        bed.kill(2);
        finish(&mut bed, Claims::new());
        judge_survivors(&bed);
        check_nothing_left(&bed);
    }
}
