//! What must have come of a story: the ends of its operations, the memory of every target, and the order of both.

use super::*;

impl<T: Connected> Story<T> {
    pub(super) fn judge(&self) {
        self.judge_ends();
        self.judge_memory();
        self.judge_arrivals();
        self.judge_messages();
        self.bed.check_canaries();
        for (node, end) in self
            .bed
            .nodes
            .iter()
            .enumerate()
            .filter(|(node, _)| !self.dead(*node as PeerId))
        {
            assert_eq!(end.engine.leftovers(), [0; 5], "node {node}");
            let nonsense = self.bed.world.borrow().nonsense.len() as u64;
            assert!(end.engine.malformed() <= nonsense, "node {node}");
            assert_eq!(
                end.engine.transport().inner.exposed(),
                0,
                "node {node} still exposes memory"
            );
        }
    }

    fn judge_ends(&self) {
        let mut ends: HashMap<usize, Vec<(PeerId, Completion)>> = HashMap::new();
        for (node, end) in &self.bed.world.borrow().done {
            ends.entry(end.context).or_default().push((*node, *end));
        }
        let mut counts: HashSet<(PeerId, Vec<u8>)> = HashSet::new();
        for (number, asked) in self
            .asked
            .iter()
            .enumerate()
            .filter(|(_, asked)| !self.dead(asked.from))
        {
            let [(node, end)] = ends.get(&number).map_or(&[][..], |ends| ends) else {
                panic!("operation {number} has ended {:?}", ends.get(&number));
            };
            let error = end.failure.map(|failure| failure.error);
            if error.is_some() && self.bed.torn(asked.from, asked.to).contains(&error) {
                continue;
            }
            if asked.fleeting && error == Some(Error::NoKey) {
                continue;
            }
            let len = if asked.error.is_none() { asked.len } else { 0 };
            assert_eq!((*node, end.op, error), (asked.from, asked.op, asked.error), "{number}");
            assert_eq!((end.len, end.source), (len, Some(asked.to)), "{number}");
            if self.is_torn(asked.from, asked.to) {
                continue;
            }
            let result = &self.bed.world.borrow().results[&number];
            if let Some(expected) = &asked.expected {
                assert_eq!(result, expected, "operation {number}");
            }
            if asked.counted {
                assert!(counts.insert((asked.to, result.clone())), "counted twice");
            }
        }
    }

    fn judge_memory(&self) {
        for to in (0..NODES).filter(|node| !self.dead(*node)) {
            let memory = self.memories[to as usize].bytes();
            let word = |at: u64| u64::from_le_bytes(memory[at as usize..][..8].try_into().unwrap());
            let added = self.added[to as usize];
            if !(0..NODES).any(|from| self.is_torn(from, to)) {
                assert_eq!(word(COUNTER), added, "counter of {to}");
            }
            for from in (0..NODES).filter(|node| !self.is_torn(*node, to)) {
                let model = self.models.get(&(from, to)).cloned().unwrap_or_default();
                for (place, value) in model.cells.iter().enumerate() {
                    assert_eq!(word(cell(from, place)), *value, "cell {place} of {from} at {to}");
                }
                for (place, value) in model.slots.iter().enumerate() {
                    let at = slot(from, place);
                    let same = (0..SLOT as u64).step_by(8).all(|offset| word(at + offset) == *value);
                    assert!(same, "slot {place} of {from} at {to}");
                }
            }
        }
    }

    /// When a message comes, nothing that was begun after it was sent may be there. That only holds where the processor
    /// that takes the message also executes the rest: what a card writes may be there before anybody looks at packets.
    fn judge_arrivals(&self) {
        if T::ONE_SIDED {
            return;
        }
        let world = self.bed.world.borrow();
        for (header, memory) in &world.offered {
            let (from, to, model) = &self.sent[header.tag as usize];
            if self.is_torn(*from, *to) {
                continue;
            }
            let word = |at: u64| u64::from_le_bytes(memory[at as usize..][..8].try_into().unwrap());
            for (place, value) in model.cells.iter().enumerate() {
                assert!(
                    word(cell(*from, place)) <= *value,
                    "a write passed message {}",
                    header.tag
                );
            }
            for (place, value) in model.slots.iter().enumerate() {
                let at = slot(*from, place);
                let passed = (0..SLOT as u64).step_by(8).any(|offset| word(at + offset) > *value);
                assert!(!passed, "a long write passed message {}", header.tag);
            }
        }
    }

    /// When a message is received, all that was begun before it was sent must be there.
    fn judge_messages(&self) {
        let world = self.bed.world.borrow();
        let mut came: HashSet<u64> = HashSet::new();
        for (node, end, memory) in world.shots.iter().filter(|(_, end, _)| end.failure.is_none()) {
            let (from, to, model) = &self.sent[end.tag as usize];
            assert_eq!((Some(*from), to), (end.source, node));
            assert!(came.insert(end.tag));
            if self.is_torn(*from, *to) {
                continue;
            }
            let word = |at: u64| u64::from_le_bytes(memory[at as usize..][..8].try_into().unwrap());
            for (place, value) in model.cells.iter().enumerate() {
                assert!(word(cell(*from, place)) >= *value, "message {} passed a write", end.tag);
            }
            for (place, value) in model.slots.iter().enumerate() {
                let at = slot(*from, place);
                let there = (0..SLOT as u64).step_by(8).all(|offset| word(at + offset) >= *value);
                assert!(there, "message {} passed a long write", end.tag);
            }
        }
        for (number, (from, to, _)) in self.sent.iter().enumerate() {
            assert!(
                self.is_torn(*from, *to) || came.contains(&(number as u64)),
                "message {number} is lost"
            );
        }
    }
}
