//! Generated runs of messages, reads, writes and atomics, judged by a model of every target's memory.
//!
//! Each node has, for each initiator, short cells and long slots that only this initiator writes; and a counter to
//! which all add. Written values only grow, so the memory shows which writes had arrived at any time.
//!
//! - here: what is generated, and the story of one run;
//! - `steps`: what a node does in one step;
//! - `judge`: whether all is as it must be.

mod judge;
mod steps;

use super::*;
use crate::engine::tests::rma::atomic::{SUM, on_u64, words};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const NODES: PeerId = 3;
const KEY: u64 = 1;
/// Reading only.
const SHUT: u64 = 2;
/// Closed now and then, and opened again with other memory.
const FLEETING: u64 = 3;
const FLEETING_SIZE: usize = 3000;

const CELLS: usize = 4;
const COUNTER: u64 = 3 * 32;
const SLOTS: usize = 3;
const SLOT: usize = 400;
const LONGS: u64 = 128;
const SIZE: usize = LONGS as usize + 3 * SLOTS * SLOT;

fn cell(initiator: PeerId, cell: usize) -> u64 {
    u64::from(initiator) * 32 + cell as u64 * 8
}

fn slot(initiator: PeerId, slot: usize) -> u64 {
    LONGS + (initiator as usize * SLOTS + slot) as u64 * SLOT as u64
}

/// What one initiator has done to one target, as it must look when all is done up to now.
#[derive(Clone, Default)]
struct Model {
    cells: [u64; CELLS],
    slots: [u64; SLOTS],
    /// Operations on a slot that may be under way.
    users: [Vec<usize>; SLOTS],
    /// Operations on cells that may be under way, and that copies begun after them may overtake.
    loose: Vec<usize>,
}

/// An operation and what must come of it.
struct Asked {
    from: PeerId,
    to: PeerId,
    op: CompletedOp,
    len: usize,
    error: Option<Error>,
    /// What its local memory must hold in the end, if it was read into.
    expected: Option<Vec<u8>>,
    /// It added one to the counter, and what was there is in its local memory.
    counted: bool,
    /// Its region may have been closed.
    fleeting: bool,
}

fn open_fleeting<T: Connected>(bed: &Bed<T>, node: PeerId) -> Lent {
    let memory = Lent::new(&[FLEETING_SIZE], 0);
    register(bed, node, FLEETING, &memory, Rights::BOTH);
    memory
}

struct Story<T: Connected> {
    bed: Bed<T>,
    memories: Vec<Lent>,
    fleeting: Vec<Lent>,
    models: HashMap<(PeerId, PeerId), Model>,
    asked: Vec<Asked>,
    /// Of each message sent: the model at that time.
    sent: Vec<(PeerId, PeerId, Model)>,
    added: [u64; NODES as usize],
    received: [usize; NODES as usize],
    clock: u64,
    /// Connections may break.
    torn: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    what: u8,
    node: PeerId,
    peer: PeerId,
    place: usize,
    how: u8,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    (0u8..20, 0..NODES, 0..NODES, 0usize..CELLS, any::<u8>()).prop_map(|(what, node, peer, place, how)| Step {
        what,
        node,
        peer,
        place,
        how,
    })
}

fn manner() -> impl Strategy<Value = Manner> {
    let gets = prop_oneof![Just([0, 0, 16]), Just([16, 0, 0]), Just([3, 3, 5]), Just([2, 6, 8])];
    let depths = prop_oneof![Just(1usize), Just(3), Just(60)];
    let late = prop_oneof![Just(0u64), Just(0), 0u64..16];
    let flags = (any::<bool>(), any::<bool>(), prop_oneof![Just(0usize), Just(400)]);
    let copies = prop_oneof![Just([0; 3]), Just([4, 5, 4]), Just([0, 16, 0]), Just([0, 8, 8])];
    let recalls = prop_oneof![Just([0; 2]), Just([16, 16]), Just([12, 12]), Just([16, 8])];
    let max_short_read = prop_oneof![Just(usize::MAX), Just(100)];
    let max_write = prop_oneof![Just((0usize, 0usize)), Just((500, 0)), Just((310, 900))];
    let bytes = (gets, copies, recalls, max_short_read, max_write);
    (depths, 0u64..6, 0u64..8, late, flags, bytes).prop_map(|(depth, delay, full, late, flags, bytes)| {
        let (can_get, at_once, gets_at_once) = flags;
        let (gets, copies, recalls, max_short_read, max_write) = bytes;
        Manner {
            limits: Limits {
                max_body: 700,
                eager: 300,
                eager_if_fetched: 200,
                can_get,
                gets_at_once,
                guaranteed_body: 256,
                sync_placement: at_once,
                max_write: max_write.0,
                max_in_writes: max_write.1,
                max_short_read,
            },
            depth,
            delay,
            full,
            late,
            keeps: full * 2,
            poor: full,
            no_lanes: false,
            sooner_sent: delay * 3,
            held_up: delay * 2,
            came_late: delay * 2,
            gets,
            copies,
            recalls,
        }
    })
}

fn config() -> Config {
    Config {
        window: 4096,
        room: 40_000,
        share: 1000,
        in_flight: 12,
        ..Config::default()
    }
}

impl<T: Connected> Story<T> {
    fn new(seed: u64, manner: Manner) -> Story<T> {
        let bed: Bed<T> = Bed::over(NODES, seed, manner, config());
        let memories: Vec<Lent> = (0..NODES).map(|_| Lent::new(&[40, SIZE - 40], 0)).collect();
        for node in 0..NODES {
            register(&bed, node, KEY, &memories[node as usize], Rights::BOTH);
            register(&bed, node, SHUT, &Lent::new(&[1000], 7), Rights::READ);
        }
        let fleeting = (0..NODES).map(|node| open_fleeting(&bed, node)).collect();
        bed.world.borrow_mut().watched = memories.clone();
        bed.world.borrow_mut().canaries = true;
        Story {
            bed,
            memories,
            fleeting,
            models: HashMap::new(),
            asked: Vec::new(),
            sent: Vec::new(),
            added: [0; NODES as usize],
            received: [0; NODES as usize],
            clock: 0,
            torn: false,
        }
    }

    fn dead(&self, node: PeerId) -> bool {
        self.bed.world.borrow().dead.contains(&node)
    }

    fn is_torn(&self, a: PeerId, b: PeerId) -> bool {
        self.bed.torn(a, b) != [None; 3]
    }

    fn model(&mut self, from: PeerId, to: PeerId) -> &mut Model {
        self.models.entry((from, to)).or_default()
    }

    /// A number that is larger than all before, with room for sums.
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock << 16
    }

    /// Starts a read or write; says whether it was taken.
    fn access(
        &mut self,
        step: &Step,
        kind: Access,
        parts: &[(u64, usize, u64)],
        local: Lent,
        error: Option<Error>,
    ) -> bool {
        let fence = self.must_wait(step, kind, parts) || step.how & 0x38 == 0;
        let begun = Rma {
            fence,
            inject: step.how & 1 == 1,
            level: [CompletionLevel::Inject, CompletionLevel::Delivery][usize::from(step.how & 2 == 0)],
            context: self.asked.len(),
            ..access(kind, step.peer, &local, remote(parts))
        };
        self.bed.world.borrow_mut().locals.insert(begun.context, local);
        if self.bed.rma(step.node, &begun).is_err() {
            return false;
        }
        if begun.inject && kind == Access::Write {
            scribble(&local);
        }
        self.note(step, CompletedOp::Rma(kind), local, error);
        true
    }

    fn note(&mut self, step: &Step, op: CompletedOp, local: Lent, error: Option<Error>) {
        self.asked.push(Asked {
            from: step.node,
            to: step.peer,
            op,
            len: local.iov().len(),
            error,
            expected: None,
            counted: false,
            fleeting: false,
        });
    }

    /// Whether only a fence keeps an access in order with what may be under way. Long operations on the same slot have
    /// no other order; nor have the transport's own copies, after what it lets them overtake (`OneSided`).
    fn must_wait(&mut self, step: &Step, kind: Access, parts: &[(u64, usize, u64)]) -> bool {
        if parts[0].2 != KEY {
            return false;
        }
        let ended: HashSet<usize> = self
            .bed
            .world
            .borrow()
            .done
            .iter()
            .map(|(_, end)| end.context)
            .collect();
        let number = self.asked.len();
        let does = self.bed.node(step.node).engine.transport().one_sided();
        let loose = match kind {
            Access::Read => !does.ordered_after_read,
            Access::Write => !does.ordered_after_write,
        };
        let short = parts[0].0 < LONGS;
        let model = self.model(step.node, step.peer);
        let users = match short {
            true => &mut model.loose,
            false => &mut model.users[step.place % SLOTS],
        };
        users.retain(|user| !ended.contains(user));
        let wait = !users.is_empty();
        if !short || does.copies && loose {
            users.push(number);
        }
        wait
    }

    fn finish(&mut self) {
        self.bed.settle();
        for node in (0..NODES).filter(|node| !self.dead(*node)).collect::<Vec<_>>() {
            let sent = self.sent.iter().filter(|(_, to, _)| *to == node).count();
            while self.received[node as usize] < sent {
                self.receive(node);
            }
        }
        self.bed.settle();
    }
}

pub(crate) fn memory_becomes_what_the_calls_say<T: Connected>(seed: u64, manner: Manner, steps: &[Step]) {
    let mut story: Story<T> = Story::new(seed, manner);
    steps.iter().for_each(|step| story.act(step));
    story.finish();
    story.judge();
}

/// Node 2 dies at a time; before and after that, connections break if they can.
pub(crate) fn whoever_lives_finds_memory_right<T: Connected>(seed: u64, manner: Manner, steps: &[Step], when: usize) {
    let mut story: Story<T> = Story::new(seed, manner);
    story.torn = true;
    for (time, step) in steps.iter().enumerate() {
        if time == when {
            story.bed.kill(2);
        }
        if !story.dead(step.node) {
            story.act(step);
        }
    }
    if !story.dead(2) && when < 120 {
        story.bed.kill(2);
    }
    story.finish();
    story.judge();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_what_the_calls_say(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..120)
    ) {
        memory_becomes_what_the_calls_say::<Wire>(seed, manner, &steps);
    }

    #[test]
    fn whoever_lives_finds_memory_right_when_another_dies(
        seed: u64, manner in manner(), steps in proptest::collection::vec(step(), 0..120), when in 0usize..120
    ) {
        whoever_lives_finds_memory_right::<Wire>(seed, manner, &steps, when);
    }
}
