//! Generated runs of messages, reads, writes and atomics, judged by a model of every target's memory.
//!
//! Each node has, for each initiator, short cells and long slots that only this initiator writes; and a counter to
//! which all add. Written values only grow, so the memory shows which writes had arrived at any time.

mod judge;

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
    let flags = (any::<bool>(), any::<bool>());
    let copies = prop_oneof![Just([0; 3]), Just([4, 5, 4]), Just([0, 16, 0]), Just([0, 8, 8])];
    let recalls = prop_oneof![Just([0; 2]), Just([16, 16]), Just([12, 12]), Just([16, 8])];
    let bytes = (gets, copies, recalls);
    (depths, 0u64..6, 0u64..8, late, flags, bytes).prop_map(|(depth, delay, full, late, flags, bytes)| {
        let (can_get, at_once) = flags;
        let (gets, copies, recalls) = bytes;
        Manner {
            limits: Limits {
                max_body: 700,
                eager: 300,
                can_get,
                guaranteed_body: 256,
                sync_placement: at_once,
            },
            depth,
            delay,
            full,
            late,
            keeps: full * 2,
            poor: full,
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
        sends: 12,
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
        let fence = self.must_wait(step, parts) || step.how & 0x38 == 0;
        let begun = Rma {
            fence,
            inject: step.how & 1 == 1,
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

    /// Whether something on the same slot may not have ended: only a fence orders long operations.
    fn must_wait(&mut self, step: &Step, parts: &[(u64, usize, u64)]) -> bool {
        if parts[0].0 < LONGS || parts[0].2 != KEY {
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
        let users = &mut self.model(step.node, step.peer).users[step.place % SLOTS];
        users.retain(|user| !ended.contains(user));
        let wait = !users.is_empty();
        users.push(number);
        wait
    }

    fn act(&mut self, step: &Step) {
        let Step {
            node, peer, place, how, ..
        } = *step;
        match step.what {
            0..3 => self.write_cells(step),
            3 | 4 => self.read_cells(step),
            5 => self.add(step, cell(node, place), false),
            6 | 7 => self.add(step, COUNTER, true),
            8 | 9 => self.long(step),
            10 | 11 => {
                let tag = self.sent.len() as u64;
                let model = self.model(node, peer).clone();
                let len = [8, 100, 280, 500][place];
                if self.bed.send(letter(node, peer, tag, len)).is_ok() {
                    self.sent.push((node, peer, model));
                }
            }
            12 => self.receive(node),
            13 => self.wrong(step),
            14 | 15 => self.wait(step),
            16 => self.fleeting(step),
            17 if how < 100 => self.close(node),
            17 if how < 150 && T::BREAKS && self.torn => self.bed.break_off(node, peer),
            17 if how < 180 && T::BREAKS && self.torn => self.bed.talk_nonsense(node, peer),
            _ => {
                self.bed.world.borrow_mut().now += u64::from(how & 3);
                self.bed.progress(node);
            }
        }
    }

    /// A node waits for what others do not do, or is about to sleep.
    fn wait(&mut self, step: &Step) {
        for _ in 0..step.how >> 4 {
            if step.how & 1 == 1 {
                let Node { engine, reporter, .. } = self.bed.node(step.node);
                engine.may_sleep(reporter);
                continue;
            }
            for _ in 0..32 {
                self.bed.progress(step.node);
            }
        }
    }

    fn receive(&mut self, node: PeerId) {
        let ignore = u64::MAX;
        self.bed.recv(node, &[500], Recv { ignore, ..tagged(0) });
        self.received[node as usize] += 1;
    }

    fn write_cells(&mut self, step: &Step) {
        let (value, other) = (self.tick(), (step.place + 1) % CELLS);
        let (first, second) = (cell(step.node, step.place), cell(step.node, other));
        let two = step.how & 2 == 2;
        let (parts, local) = if two {
            (vec![(first, 8, KEY), (second, 8, KEY)], words(&[value, value]))
        } else {
            (vec![(first, 8, KEY)], words(&[value]))
        };
        if self.access(step, Access::Write, &parts, local, None) {
            let model = self.model(step.node, step.peer);
            model.cells[step.place] = value;
            if two {
                model.cells[other] = value;
            }
        }
    }

    fn read_cells(&mut self, step: &Step) {
        let at = cell(step.node, 0);
        let cut = step.how as usize >> 3;
        let parts = [(at, cut, KEY), (at + cut as u64, 32 - cut, KEY)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(at, 32, KEY)]
        };
        if self.access(step, Access::Read, parts, words(&[0; CELLS]), None) {
            let cells = self.model(step.node, step.peer).cells;
            self.expect(&cells);
        }
    }

    fn expect(&mut self, words: &[u64]) {
        self.asked.last_mut().unwrap().expected = Some(super::atomic::bytes(words));
    }

    fn add(&mut self, step: &Step, at: u64, shared: bool) {
        let form = if step.how & 2 == 2 { Form::Fetch } else { Form::Base };
        let (one, result) = (words(&[1]), words(&[0]));
        let atomic = Atomic {
            op: on_u64(form, SUM),
            to: step.peer,
            target: AtomicTarget::Memory(remote(&[(at, 8, KEY)])),
            len: 8,
            operand: one.iov(),
            compare: UserIov::default(),
            result: if form == Form::Fetch {
                result.iov()
            } else {
                UserIov::default()
            },
            data: None,
            inject: step.how & 1 == 1,
            fence: step.how & 0x38 == 0,
            context: self.asked.len(),
            tell: Tell::Queue,
        };
        self.bed.world.borrow_mut().locals.insert(atomic.context, result);
        if self.bed.atomic(step.node, &atomic).is_err() {
            return;
        }
        self.note(step, CompletedOp::Atomic(form), result, None);
        if shared {
            self.added[step.peer as usize] += 1;
            self.asked.last_mut().unwrap().counted = form == Form::Fetch;
            return;
        }
        let cell = &mut self.model(step.node, step.peer).cells[step.place];
        let was = *cell;
        *cell += 1;
        if form == Form::Fetch {
            self.expect(&[was]);
        }
    }

    fn long(&mut self, step: &Step) {
        let place = step.place % SLOTS;
        let at = slot(step.node, place);
        let cut = step.how as usize;
        let parts = [(at, cut, KEY), (at + cut as u64, SLOT - cut, KEY)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(at, SLOT, KEY)]
        };
        if step.how & 4 == 4 {
            let value = self.model(step.node, step.peer).slots[place];
            if self.access(step, Access::Read, parts, words(&[0; SLOT / 8]), None) {
                self.expect(&[value; SLOT / 8]);
            }
            return;
        }
        let value = self.tick();
        if self.access(step, Access::Write, parts, words(&[value; SLOT / 8]), None) {
            self.model(step.node, step.peer).slots[place] = value;
        }
    }

    /// What a target does not allow. What is read into keeps what it held.
    fn wrong(&mut self, step: &Step) {
        let len = [8, 300][step.place % 2];
        let rows = [
            (Access::Write, (0, len, SHUT), Error::NoRights),
            (Access::Read, (0, len, 99), Error::NoKey),
            (Access::Write, (SIZE as u64 - 7, len, KEY), Error::OutOfRange),
            (Access::Read, (1000, len, SHUT), Error::OutOfRange),
        ];
        let (kind, part, error) = rows[usize::from(step.how >> 6)];
        let parts = [(cell(step.node, 0), 8, KEY), part];
        let parts = if step.how & 2 == 2 { &parts[..] } else { &parts[1..] };
        let all = parts.iter().map(|(_, len, _)| len).sum();
        let local = Lent::new(&[all], 3);
        if self.access(step, kind, parts, local, Some(error)) && kind == Access::Read {
            self.asked.last_mut().unwrap().expected = Some(vec![3; all]);
        }
    }

    /// Accesses a region that may be closed meanwhile.
    fn fleeting(&mut self, step: &Step) {
        let len = [40, 300, 700, 2000][step.place];
        let (kind, local) = match step.how & 4 {
            0 => (Access::Write, Lent::new(&[len / 3, len - len / 3], 4)),
            _ => (Access::Read, Lent::new(&[len], 4)),
        };
        let cut = step.how as usize / 8;
        let parts = [(7, cut, FLEETING), (900, len - cut, FLEETING)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(7, len, FLEETING)]
        };
        if self.access(step, kind, parts, local, None) {
            self.asked.last_mut().unwrap().fleeting = true;
        }
    }

    /// Closes that region of a node, after which nobody may touch it, and opens another.
    fn close(&mut self, node: PeerId) {
        let closed = self.bed.nodes[node as usize].regions.remove(FLEETING);
        closed.expect("nobody reaches it by himself");
        let memory = open_fleeting(&self.bed, node);
        let memory = std::mem::replace(&mut self.fleeting[node as usize], memory);
        scribble(&memory);
        self.bed.world.borrow_mut().closed.push(memory);
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
