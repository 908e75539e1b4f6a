//! Generated runs of operations between cards that fail, judged by what each operation must come to.
//!
//! Every operation has memory of its own at its target, so what it did can be told whatever the order: nothing, or all
//! of it. Buffers and regions are overwritten as soon as their operation has ended or they are closed, and looked at again
//! in the end.

use super::*;
use crate::engine::op::*;
use crate::engine::{Config, Engine};
use crate::util::regions::{Region, Rights};
use crate::util::user::Lent;
use proptest::prelude::*;

const NODES: PeerId = 3;
/// Memory of one operation at its target, in a region of many.
const SLOT: usize = 3000;
const SLOTS: usize = 120;
const OPEN: u64 = 1;
/// Reading only.
const SHUT: u64 = 2;
/// Is closed in the middle.
const BRIEF: u64 = 3;

#[derive(Clone, Copy, Debug)]
struct Step {
    what: u8,
    node: PeerId,
    peer: PeerId,
    len: usize,
    how: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![Just(0usize), Just(8), 1usize..300, 1usize..SLOT];
    (0u8..16, 0..NODES, 1..NODES, len, any::<u8>()).prop_map(|(what, node, other, len, how)| Step {
        what,
        node,
        peer: (node + other) % NODES,
        len,
        how,
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    (prop_oneof![Just(0u64), 0u64..8], 0u64..8).prop_map(|(failing, full)| Manner {
        failing,
        full,
        local_keys: false,
    })
}

/// An operation that was begun.
struct Asked {
    step: Step,
    op: CompletedOp,
    key: u64,
    slot: usize,
    local: Lent,
    data: Option<u64>,
    ends: usize,
}

struct Node {
    at: PeerId,
    engine: Engine<QueuePair>,
    ends: Vec<Completion>,
    memory: Lent,
    brief: Lent,
    regions: Arc<Regions>,
    /// FI_RMA_EVENT: it does nothing by its card, and lets nobody else.
    counts: bool,
}

struct Story {
    fabric: Fabric,
    nodes: Vec<Node>,
    asked: Vec<Asked>,
    /// Data that targets were told.
    told: Vec<(PeerId, Completion)>,
    broken: Vec<(PeerId, PeerId)>,
    closed: bool,
    dead: Option<PeerId>,
    failing: bool,
}

fn fill(number: usize) -> u8 {
    1 + (number % 250) as u8
}

impl Story {
    fn new(seed: u64, manner: Manner, counting: u8) -> Story {
        let fabric = Fabric::new(seed, manner);
        let nodes = (0..NODES).map(|node| {
            let counts = counting & 3 == 3 && node == 0;
            let config = Config {
                one_sided: !counts,
                ..Config::default()
            };
            let mut engine = Engine::with(fabric.open(&[node as u8]), config);
            let regions = Arc::new(Regions::new(false, false));
            let (memory, brief) = (
                Lent::new(&[1000, SLOTS * SLOT - 1000], 0),
                Lent::new(&[SLOTS * SLOT], 0),
            );
            for (key, memory, rights) in [
                (OPEN, &memory, Rights::BOTH),
                (SHUT, &memory, Rights::READ),
                (BRIEF, &brief, Rights::BOTH),
            ] {
                let region = Region {
                    memory: memory.iov(),
                    rights,
                    base: 0,
                    enabled: true,
                    endpoint: None,
                    watched: false,
                };
                regions.add(region, key).unwrap();
            }
            engine.expose_regions(regions.clone(), 0, counts);
            Node {
                at: node,
                engine,
                ends: Vec::new(),
                memory,
                brief,
                regions,
                counts,
            }
        });
        Story {
            nodes: nodes.collect(),
            fabric,
            asked: Vec::new(),
            told: Vec::new(),
            broken: Vec::new(),
            closed: false,
            dead: None,
            failing: manner.failing > 0,
        }
    }

    fn act(&mut self, step: &Step) {
        if self.dead.is_some_and(|dead| dead == step.node) {
            return;
        }
        match step.what {
            0..7 => self.access(step),
            7..10 => self.add(step),
            10 => self.message(step),
            11 if step.how < 48 => {
                self.fabric.break_pair(step.node, step.peer);
                self.broken.push((step.node, step.peer));
            }
            12 if step.how < 40 && !self.closed => self.close(),
            13 if step.how < 16 && self.dead.is_none() => {
                // It ends as a program does that is killed: with operations under way.
                self.dead = Some(NODES - 1);
            }
            _ => (0..step.how % 8).for_each(|_| self.progress(step.node)),
        }
    }

    fn remote(&self, slot: usize, len: usize, key: u64, cut: bool) -> RemoteIov {
        let (at, first) = ((slot * SLOT) as u64, if cut { len / 3 } else { len });
        let part = |addr, len| RemotePart { addr, len, key };
        match cut {
            true => RemoteIov::new([part(at, first), part(at + first as u64, len - first)]).unwrap(),
            false => RemoteIov::one(part(at, len)),
        }
    }

    fn access(&mut self, step: &Step) {
        let number = self.asked.len();
        if number == SLOTS {
            return;
        }
        let access = if step.what < 4 { Access::Write } else { Access::Read };
        let key = match step.how & 7 {
            0 => SHUT,
            1 | 2 => BRIEF,
            _ => OPEN,
        };
        let byte = if access == Access::Write { fill(number) } else { 0 };
        let local = Lent::new(&[step.len / 2, step.len - step.len / 2], byte);
        let data = (access == Access::Write && step.how & 8 != 0).then_some(number as u64);
        let rma = Rma {
            access,
            to: step.peer,
            local: local.iov(),
            remote: self.remote(number, step.len, key, step.how & 16 != 0),
            data,
            inject: access == Access::Write && step.how & 32 != 0,
            fence: step.how & 0xc0 == 0,
            context: number,
            tell: Tell::Queue,
        };
        if access == Access::Read && !(key == BRIEF && self.closed) {
            let node = &self.nodes[step.peer as usize];
            let memory = if key == BRIEF { &node.brief } else { &node.memory };
            memory.iov().write(number * SLOT, &vec![fill(number); step.len]);
        }
        let node = &mut self.nodes[step.node as usize];
        if node.engine.rma(&rma, &mut node.ends).is_err() {
            return;
        }
        if rma.inject {
            local.set(&vec![0xee; step.len]);
        }
        self.note(step, CompletedOp::Rma(access), key, local, data);
    }

    /// Adds to a slot of its own, or swaps it.
    fn add(&mut self, step: &Step) {
        let number = self.asked.len();
        if number == SLOTS {
            return;
        }
        let word = |value: u64| {
            let lent = Lent::new(&[8], 0);
            lent.set(&value.to_le_bytes());
            lent
        };
        let (operand, compare, result) = (word(number as u64 + 1), word(0), word(9));
        let (form, op) = match step.how & 3 {
            0 => (Form::Base, Op::Sum),
            1 => (Form::Compare, Op::Cswap),
            _ => (Form::Fetch, Op::Sum),
        };
        let none = UserIov::default();
        let atomic = Atomic {
            op: AtomicOp::new(form, op, Datatype::Uint64).unwrap(),
            to: step.peer,
            target: AtomicTarget::Memory(self.remote(number, 8, OPEN, false)),
            len: 8,
            operand: operand.iov(),
            compare: if form == Form::Compare { compare.iov() } else { none },
            result: if form == Form::Base { none } else { result.iov() },
            data: None,
            inject: false,
            fence: step.how & 0xc0 == 0,
            context: number,
            tell: Tell::Queue,
        };
        let node = &mut self.nodes[step.node as usize];
        if node.engine.atomic(&atomic, &mut node.ends).is_ok() {
            self.note(step, CompletedOp::Atomic(form), OPEN, result, None);
        }
    }

    fn message(&mut self, step: &Step) {
        let number = self.asked.len();
        if number == SLOTS {
            return;
        }
        let memory = Lent::new(&[step.len], fill(number));
        let send = Send {
            kind: MessageKind::Tagged,
            to: step.peer,
            tag: number as u64,
            data: None,
            body: memory.iov(),
            inject: false,
            level: CompletionLevel::Delivery,
            fence: false,
            context: number,
            tell: Tell::Queue,
        };
        let recv = Recv {
            kind: MessageKind::Tagged,
            from: Some(step.node),
            tag: number as u64,
            ignore: 0,
            body: Lent::new(&[SLOT], 0).iov(),
            multi: None,
            context: usize::MAX,
            tell: Tell::Queue,
        };
        let [from, to] = [step.node, step.peer].map(|node| node as usize);
        let node = &mut self.nodes[from];
        if node.engine.send(&send, &mut node.ends).is_err() {
            return;
        }
        self.note(step, CompletedOp::Send, OPEN, memory, None);
        if self.dead != Some(step.peer) {
            let node = &mut self.nodes[to];
            node.engine.recv(&recv, &mut node.ends).unwrap();
        }
    }

    fn note(&mut self, step: &Step, op: CompletedOp, key: u64, local: Lent, data: Option<u64>) {
        self.asked.push(Asked {
            step: *step,
            op,
            key,
            slot: self.asked.len(),
            local,
            data,
            ends: 0,
        });
    }

    /// All nodes close a region. Its memory is the application's again.
    fn close(&mut self) {
        self.closed = true;
        for node in &self.nodes {
            node.regions.remove(BRIEF).expect("nobody is stopped");
            node.brief.set(&vec![0xaa; SLOTS * SLOT]);
        }
    }

    fn progress(&mut self, at: PeerId) {
        if self.dead == Some(at) {
            return;
        }
        let node = &mut self.nodes[at as usize];
        node.engine.progress(&mut node.ends);
        let counts = node.counts;
        for end in node.ends.drain(..) {
            match end.op {
                CompletedOp::Target { .. } => self.told.push((at, end)),
                CompletedOp::Recv => {}
                _ => {
                    let asked = &mut self.asked[end.context];
                    let (node, peer) = (asked.step.node, asked.step.peer);
                    let between = |pair: &(PeerId, PeerId)| [(node, peer), (peer, node)].contains(pair);
                    let circumstances = Circumstances {
                        failing: self.failing,
                        apart: self.broken.iter().any(between) || self.dead == Some(peer),
                        closed: self.closed,
                        asks: counts,
                    };
                    ended(asked, at, &end, &circumstances);
                }
            }
        }
    }

    fn living(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| Some(node.at) != self.dead)
    }

    fn finish(&mut self) {
        for _ in 0..3000 {
            (0..NODES).for_each(|node| self.progress(node));
            if self.living().all(|node| node.engine.leftovers() == [0; 5]) {
                break;
            }
        }
        for (at, asked) in self.asked.iter().enumerate() {
            let all = asked.ends == 1 || asked.ends == 0 && Some(asked.step.node) == self.dead;
            assert!(
                all,
                "operation {at}: {} ends of {:?} {:?}",
                asked.ends, asked.op, asked.step
            );
        }
        for node in self.living() {
            assert_eq!(
                (node.engine.leftovers(), node.engine.malformed()),
                ([0; 5], 0),
                "node {}",
                node.at
            );
            assert_eq!(self.fabric.exposed(node.at), 0, "node {} still exposes memory", node.at);
        }
        self.judge_memory();
        self.judge_data();
    }

    /// All of each write, or nothing; nothing that was not written; nothing in a region after it was closed.
    fn judge_memory(&self) {
        for asked in &self.asked {
            let node = &self.nodes[asked.step.peer as usize];
            let mut found = vec![0; SLOT];
            let memory = if asked.key == BRIEF { &node.brief } else { &node.memory };
            memory.iov().read(asked.slot * SLOT, &mut found);
            if asked.key == BRIEF && self.closed {
                assert!(found.iter().all(|byte| *byte == 0xaa), "a closed region was written to");
            }
            if asked.op == CompletedOp::Rma(Access::Write) && asked.key == SHUT {
                assert!(
                    found.iter().all(|byte| *byte == 0),
                    "a region was written to that is shut"
                );
            }
        }
    }

    /// Each datum comes at most once, and once if its write has ended well.
    fn judge_data(&self) {
        for (number, asked) in self.asked.iter().enumerate().filter(|(_, asked)| asked.data.is_some()) {
            let told = self
                .told
                .iter()
                .filter(|(at, end)| *at == asked.step.peer && end.data == asked.data);
            let many = told.count();
            assert!(many <= 1, "data of {number} came {many} times");
        }
    }
}

/// What may have gone wrong by the end of an operation.
struct Circumstances {
    failing: bool,
    /// Its peer is dead, or the connection is broken.
    apart: bool,
    closed: bool,
    /// Its initiator does nothing by its card.
    asks: bool,
}

/// An operation has ended: once, with an error that it may have, and with its bytes in place. Its buffer is overwritten.
fn ended(asked: &mut Asked, at: PeerId, end: &Completion, now: &Circumstances) {
    asked.ends += 1;
    let Step { node, len, .. } = asked.step;
    assert_eq!((asked.ends, at, end.op), (1, node, asked.op), "{:?}", asked.step);
    match end.failure.map(|failure| failure.error) {
        None => {
            assert!(asked.op != CompletedOp::Rma(Access::Write) || asked.key != SHUT);
            let expected = match asked.op {
                CompletedOp::Rma(Access::Read) => Some(vec![fill(asked.slot); len]),
                CompletedOp::Atomic(Form::Fetch | Form::Compare) => Some(vec![0; 8]),
                _ => None,
            };
            if let Some(expected) = expected {
                assert_eq!(asked.local.bytes(), expected, "{:?}", asked.step);
            }
        }
        Some(Error::PeerGone | Error::Broken) => assert!(now.apart, "{:?}", asked.step),
        Some(Error::NoMemory) => assert!(now.failing && asked.op != CompletedOp::Send, "{:?}", asked.step),
        Some(Error::NoRights) => assert!(asked.key == SHUT && asked.op == CompletedOp::Rma(Access::Write)),
        Some(Error::NoKey) => assert!(asked.key == BRIEF && now.closed),
        // A processor's atomics and a card's do not mix.
        Some(Error::NoSuchAtomic) => assert!(now.asks && matches!(asked.op, CompletedOp::Atomic(_))),
        other => panic!("{other:?} {:?}", asked.step),
    }
    asked.local.set(&vec![0xee; asked.local.iov().len()]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_operation_ends_once_whatever_fails(
        seed: u64, manner in manner(), counting: u8, steps in proptest::collection::vec(step(), 0..160)
    ) {
        let mut story = Story::new(seed, manner, counting);
        for step in &steps {
            let alive = story.dead;
            story.act(step);
            if let (None, Some(dead)) = (alive, story.dead) {
                let node = &mut story.nodes[dead as usize];
                let fresh = Fabric::default().open(b"nobody");
                drop(std::mem::replace(&mut node.engine, Engine::new(fresh)));
            }
        }
        story.finish();
        for asked in &story.asked {
            let found = asked.local.bytes();
            let whole = asked.ends == 0 || found.iter().all(|byte| *byte == 0xee);
            prop_assert!(whole, "a buffer was written to after the end of its operation");
        }
    }
}
