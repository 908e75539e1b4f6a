//! Generated runs on cards whose requests fail, at once or later, and with an endpoint that does nothing by its card:
//! what the stories for all transports (`engine::tests::random::over`) can't say, as an operation that failed may have
//! been done or not.
//!
//! Every operation has memory of its own at its target, so what it did can be told: nothing, or all of it. Its buffer
//! is overwritten as soon as it has ended, and looked at again in the end.

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
    let some = || prop_oneof![Just(0u64), 0u64..8];
    (some(), prop_oneof![some(), Just(16)], 0u64..8, any::<bool>()).prop_map(
        |(failing, refusing, full, loose_writes)| Manner {
            failing,
            refusing,
            full,
            loose_writes,
            ..Manner::default()
        },
    )
}

/// An operation that was begun.
struct Asked {
    step: Step,
    op: CompletedOp,
    key: u64,
    slot: usize,
    local: Lent,
    data: Option<u64>,
    /// How it has ended.
    end: Option<Completion>,
}

struct Node {
    at: PeerId,
    engine: Engine<QueuePair>,
    ends: Vec<Completion>,
    memory: Lent,
    /// FI_RMA_EVENT: it does nothing by its card, and lets nobody else.
    counts: bool,
}

struct Story {
    nodes: Vec<Node>,
    asked: Vec<Asked>,
    /// Data that targets were told.
    told: Vec<(PeerId, Completion)>,
    fails: bool,
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
            let memory = Lent::new(&[1000, SLOTS * SLOT - 1000], 0);
            for (key, rights) in [(OPEN, Rights::BOTH), (SHUT, Rights::READ)] {
                let region = Region {
                    memory: memory.iov(),
                    rights,
                    base: 0,
                    enabled: true,
                    endpoint: None,
                    counted: false,
                };
                regions.add(region, key).unwrap();
            }
            engine.expose_regions(regions, 0, counts);
            Node {
                at: node,
                engine,
                ends: Vec::new(),
                memory,
                counts,
            }
        });
        Story {
            nodes: nodes.collect(),
            asked: Vec::new(),
            told: Vec::new(),
            fails: manner.failing + manner.refusing > 0,
        }
    }

    fn act(&mut self, step: &Step) {
        if step.what < 12 && self.asked.len() == SLOTS {
            return;
        }
        match step.what {
            0..8 => self.access(step),
            8..11 => self.add(step),
            11 => self.message(step),
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
        let access = if step.what < 4 { Access::Write } else { Access::Read };
        let key = if step.how & 7 == 0 { SHUT } else { OPEN };
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
            level: CompletionLevel::Delivery,
            fence: step.how & 0xc0 == 0,
            context: number,
            tell: Tell::Queue,
        };
        if access == Access::Read {
            let memory = &self.nodes[step.peer as usize].memory;
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

    /// A get that fails ends no message.
    fn message(&mut self, step: &Step) {
        let number = self.asked.len();
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
        let node = &mut self.nodes[to];
        node.engine.recv(&recv, &mut node.ends).unwrap();
    }

    fn note(&mut self, step: &Step, op: CompletedOp, key: u64, local: Lent, data: Option<u64>) {
        self.asked.push(Asked {
            step: *step,
            op,
            key,
            slot: self.asked.len(),
            local,
            data,
            end: None,
        });
    }

    fn progress(&mut self, at: PeerId) {
        let node = &mut self.nodes[at as usize];
        node.engine.progress(&mut node.ends);
        let counts = node.counts;
        for end in node.ends.drain(..) {
            match end.op {
                CompletedOp::Target { .. } => self.told.push((at, end)),
                CompletedOp::Recv => assert_eq!(end.failure, None),
                _ => self.asked[end.context].ended(at, end, self.fails, counts),
            }
        }
    }

    fn finish(&mut self) {
        for _ in 0..3000 {
            (0..NODES).for_each(|node| self.progress(node));
            let done = |engine: &Engine<QueuePair>| engine.leftovers() == [0; 5] && engine.transport().is_quiet();
            if self.nodes.iter().all(|node| done(&node.engine)) {
                break;
            }
        }
        for node in &self.nodes {
            let left = (node.engine.leftovers(), node.engine.malformed());
            assert_eq!(left, ([0; 5], 0), "node {}", node.at);
            assert_eq!(
                node.engine.transport().exposed(),
                0,
                "node {} still exposes memory",
                node.at
            );
        }
        for asked in &self.asked {
            let end = asked.end.unwrap_or_else(|| panic!("{:?} has no end", asked.step));
            self.judge_memory(asked, end.failure.is_none());
            self.judge_data(asked, end.failure.is_none());
        }
    }

    /// All of each write or atomic, if it has ended well; else all, or nothing.
    fn judge_memory(&self, asked: &Asked, well: bool) {
        let Step { peer, len, .. } = asked.step;
        let number = asked.slot as u64 + 1;
        let (all, nothing) = match asked.op {
            CompletedOp::Rma(Access::Write) => (vec![fill(asked.slot); len], vec![0; len]),
            CompletedOp::Rma(Access::Read) => (vec![fill(asked.slot); len], vec![fill(asked.slot); len]),
            CompletedOp::Atomic(_) => (number.to_le_bytes().to_vec(), vec![0; 8]),
            _ => (Vec::new(), Vec::new()),
        };
        let mut found = vec![0; SLOT];
        self.nodes[peer as usize]
            .memory
            .iov()
            .read(asked.slot * SLOT, &mut found);
        let (found, behind) = found.split_at(all.len());
        assert!(behind.iter().all(|byte| *byte == 0), "{:?}: too much", asked.step);
        assert!(
            found == all || found == nothing && !well,
            "{:?} {:?} in {:?}",
            asked.end,
            found,
            asked.step
        );
    }

    /// Each datum comes once if its write has ended well, and else not at all.
    fn judge_data(&self, asked: &Asked, well: bool) {
        if let Some(data) = asked.data {
            let told = self.told.iter().filter(|(_, end)| end.data == Some(data));
            let expected = [(asked.step.peer, asked.step.len)];
            let told: Vec<_> = told.map(|(at, end)| (*at, end.len)).collect();
            assert_eq!(told, expected[..usize::from(well)], "{:?}", asked.step);
        }
    }
}

impl Asked {
    /// It has ended: once, with an error that it may have, and with its bytes in place. Its buffer is overwritten.
    fn ended(&mut self, at: PeerId, end: Completion, fails: bool, counts: bool) {
        let Step { node, len, .. } = self.step;
        assert!(self.end.replace(end).is_none(), "two ends of {:?}", self.step);
        assert_eq!((at, end.op), (node, self.op), "{:?}", self.step);
        let refused = self.key == SHUT && self.op == CompletedOp::Rma(Access::Write);
        match end.failure.map(|failure| failure.error) {
            None => {
                assert!(!refused, "{:?}", self.step);
                let expected = match self.op {
                    CompletedOp::Rma(Access::Read) => Some(vec![fill(self.slot); len]),
                    CompletedOp::Atomic(Form::Fetch | Form::Compare) => Some(vec![0; 8]),
                    _ => None,
                };
                assert!(
                    expected.is_none_or(|bytes| bytes == self.local.bytes()),
                    "{:?}",
                    self.step
                );
            }
            Some(Error::NoMemory) => assert!(fails && self.op != CompletedOp::Send, "{:?}", self.step),
            Some(Error::NoRights) => assert!(refused, "{:?}", self.step),
            // A processor's atomics and a card's do not mix.
            Some(Error::NoSuchAtomic) => assert!(counts && matches!(self.op, CompletedOp::Atomic(_))),
            other => panic!("{other:?} {:?}", self.step),
        }
        self.local.set(&vec![0xee; self.local.iov().len()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_operation_ends_once_whatever_fails(
        seed: u64, manner in manner(), counting: u8, steps in proptest::collection::vec(step(), 0..160)
    ) {
        let mut story = Story::new(seed, manner, counting);
        steps.iter().for_each(|step| story.act(step));
        story.finish();
        for asked in &story.asked {
            let whole = asked.local.bytes().iter().all(|byte| *byte == 0xee);
            prop_assert!(whole, "a buffer was written to after the end of its operation");
        }
    }
}
