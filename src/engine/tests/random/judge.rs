//! What must have come of a run: its completions are held against the rules, and nothing is left in the engines.

use super::*;

/// The messages from one node to another that were not taken back, in the order of their sends.
fn lanes(world: &World) -> HashMap<(PeerId, PeerId), Vec<usize>> {
    let mut lanes: HashMap<_, Vec<usize>> = HashMap::new();
    let sent = world.sent.iter().enumerate();
    for (number, sent) in sent.filter(|(number, _)| !world.canceled.contains(number)) {
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
pub(super) fn judge<T: Connected>(bed: &Bed<T>) {
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
        let canceled = world.canceled.contains(&number);
        let (failure, len) = if canceled {
            (Some(Error::Canceled), 0)
        } else {
            (None, sent.bytes.len())
        };
        let told = (node, end.failure.map(|failure| failure.error), end.len);
        assert_eq!(told, (sent.from, failure, len), "send {number}");
        if canceled {
            continue;
        }
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

pub(super) fn check_nothing_left<T: Connected>(bed: &Bed<T>) {
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
pub(super) fn judge_survivors<T: Connected>(bed: &Bed<T>) {
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
        let canceled = world.canceled.contains(&number);
        let as_allowed = |error| allowed(from, to, error) || canceled && error == Error::Canceled;
        assert!(
            ends.len() == 1 && failure.is_none_or(as_allowed),
            "send {number}: {ends:?}"
        );
        let times = came.get(&(number as u64)).copied().unwrap_or(0);
        assert!(!canceled || failure == Some(Error::Canceled), "send {number}: {ends:?}");
        let acknowledged = failure.is_none() && sent.send.level == CompletionLevel::Delivery && !dead(to);
        let torn = bed.torn(from, to) != [None; 3] && !acknowledged;
        let as_often = if canceled {
            times == 0
        } else {
            times == 1 || times == 0 && torn
        };
        assert!(as_often, "send {number} came {times} times");
    }
}
