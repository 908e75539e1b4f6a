//! All members' plans carried out on plain memory, as late and as mixed up as the rules allow, against direct formulas.

use super::*;
use std::collections::{HashMap, VecDeque};

const ELEMENT: usize = 4;

/// Neither commutative nor associative: who combines what with what, in which order, shows in the result.
fn strange(left: u32, right: u32) -> u32 {
    left.wrapping_mul(31).wrapping_add(right ^ 0x5bd1).rotate_left(5)
}

struct Member {
    plan: Plan,
    at: usize,
    /// Sends and receives that have not ended.
    open: usize,
    memory: [Vec<u8>; 3],
}

impl Member {
    fn bytes(&mut self, span: Span) -> &mut [u8] {
        &mut self.memory[span.buffer as usize][span.at..span.at + span.len]
    }

    fn local(&mut self, from: Span, into: Span, op: impl Fn(u32, u32) -> u32) {
        assert_eq!(from.len, into.len);
        let source = self.bytes(from).to_vec();
        let target = self.bytes(into);
        for (target, source) in target.chunks_exact_mut(ELEMENT).zip(source.chunks_exact(ELEMENT)) {
            let value = op(
                u32::from_ne_bytes(target.try_into().unwrap()),
                u32::from_ne_bytes(source.try_into().unwrap()),
            );
            target.copy_from_slice(&value.to_ne_bytes());
        }
    }
}

/// Spans by sender and receiver.
type Lane = HashMap<(Rank, Rank), VecDeque<Span>>;

struct World {
    members: Vec<Member>,
    sends: Lane,
    recvs: Lane,
    die: u64,
    op: fn(u32, u32) -> u32,
}

impl World {
    fn roll(&mut self, sides: usize) -> usize {
        self.die ^= self.die << 13;
        self.die ^= self.die >> 7;
        self.die ^= self.die << 17;
        (self.die % sides as u64) as usize
    }

    /// The next step of a member, if it need not wait.
    fn step(&mut self, rank: Rank) -> bool {
        let member = &mut self.members[rank];
        let Some(step) = member.plan.steps.get(member.at).copied() else {
            return false;
        };
        match step {
            Step::Wait if member.open > 0 => return false,
            Step::Wait => {}
            Step::Send { to, span } => {
                assert_ne!(to, rank, "to itself");
                member.open += 1;
                self.sends.entry((rank, to)).or_default().push_back(span);
            }
            Step::Recv { from, span } => {
                assert_ne!(from, rank);
                assert_ne!(span.buffer, Buffer::Input);
                member.open += 1;
                self.recvs.entry((from, rank)).or_default().push_back(span);
            }
            Step::Copy { from, into } => member.local(from, into, |_, source| source),
            Step::Combine { from, into } => member.local(from, into, self.op),
        }
        self.members[rank].at += 1;
        true
    }

    /// Moves a message whose both ends are there: read and written only now, as a get would.
    fn deliver(&mut self) -> bool {
        let mut ready: Vec<(Rank, Rank)> = self
            .sends
            .iter()
            .filter(|(_, s)| !s.is_empty())
            .map(|(k, _)| *k)
            .collect();
        ready.retain(|lane| self.recvs.get(lane).is_some_and(|recvs| !recvs.is_empty()));
        ready.sort_unstable();
        if ready.is_empty() {
            return false;
        }
        let (from, to) = ready[self.roll(ready.len())];
        let span = self.sends.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        let into = self.recvs.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        assert_eq!(span.len, into.len, "{from} to {to}");
        let bytes = self.members[from].bytes(span).to_vec();
        self.members[to].bytes(into).copy_from_slice(&bytes);
        self.members[from].open -= 1;
        self.members[to].open -= 1;
        true
    }

    fn run(&mut self) {
        loop {
            let first = self.roll(self.members.len());
            let n = self.members.len();
            let stepped = (0..n).any(|offset| self.step((first + offset) % n));
            // What is sent is delivered late, but at the latest when nobody can go on without it.
            let delivers = !stepped || self.roll(3) == 0;
            let delivered = delivers && self.deliver();
            if !stepped && !delivered {
                break;
            }
        }
        assert!(self.sends.values().chain(self.recvs.values()).all(VecDeque::is_empty));
        for member in &self.members {
            assert_eq!((member.at, member.open), (member.plan.steps.len(), 0));
        }
    }
}

fn input(rank: Rank, index: usize) -> u32 {
    (rank * 1009 + index * 7 + 3) as u32
}

/// The result buffers of all members.
fn carry_out(
    operation: Operation,
    n: usize,
    count: usize,
    long: usize,
    seed: u64,
    op: fn(u32, u32) -> u32,
) -> Vec<Vec<u32>> {
    let members = (0..n).map(|rank| {
        let team = Team { rank, size: n, long };
        let plan = Plan::new(operation, team, count, ELEMENT);
        let (reads, writes) = lengths(operation, team, count * ELEMENT);
        let given = (0..reads / ELEMENT)
            .flat_map(|index| input(rank, index).to_ne_bytes())
            .collect();
        let mut result = vec![0xee; writes];
        if operation == (Operation::Broadcast { root: rank }) {
            result = (0..count).flat_map(|index| input(rank, index).to_ne_bytes()).collect();
        }
        let scratch = vec![0xdd; plan.scratch];
        Member {
            plan,
            at: 0,
            open: 0,
            memory: [given, result, scratch],
        }
    });
    let mut world = World {
        members: members.collect(),
        sends: HashMap::new(),
        recvs: HashMap::new(),
        die: seed | 1,
        op,
    };
    world.run();
    let words = |bytes: &Vec<u8>| {
        bytes
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect()
    };
    world.members.iter().map(|member| words(&member.memory[1])).collect()
}

/// What the page says each member gets.
fn expected(operation: Operation, n: usize, count: usize, rank: Rank) -> Vec<u32> {
    let sum = |index: usize| (0..n).fold(0u32, |sum, from| sum.wrapping_add(input(from, index)));
    let at = |root: Rank, values: Vec<u32>| if root == rank { values } else { Vec::new() };
    let pieces = |piece: &dyn Fn(Rank, usize) -> u32| -> Vec<u32> {
        (0..n)
            .flat_map(|from| (0..count).map(move |index| (from, index)))
            .map(|(from, index)| piece(from, index))
            .collect()
    };
    match operation {
        Operation::Barrier => Vec::new(),
        Operation::Broadcast { root } => (0..count).map(|index| input(root, index)).collect(),
        Operation::Alltoall => pieces(&|from, index| input(from, rank * count + index)),
        Operation::Allreduce => (0..count).map(sum).collect(),
        Operation::Allgather => pieces(&input),
        Operation::ReduceScatter => (0..count).map(|index| sum(rank * count + index)).collect(),
        Operation::Reduce { root } => at(root, (0..count).map(sum).collect()),
        Operation::Scatter { root } => (0..count).map(|index| input(root, rank * count + index)).collect(),
        Operation::Gather { root } => at(root, pieces(&input)),
    }
}

fn operations(n: usize) -> Vec<Operation> {
    let rooted = |root| {
        [
            Operation::Broadcast { root },
            Operation::Reduce { root },
            Operation::Scatter { root },
            Operation::Gather { root },
        ]
    };
    let mut all = vec![
        Operation::Barrier,
        Operation::Alltoall,
        Operation::Allreduce,
        Operation::Allgather,
        Operation::ReduceScatter,
    ];
    let mut roots = vec![0, n / 2, n - 1];
    roots.dedup();
    all.extend(roots.into_iter().flat_map(rooted));
    all
}

#[test]
fn every_operation_gives_every_member_what_the_page_says() {
    let mut seed = 88_172_645_463_325_252;
    for n in 1..=17 {
        for count in [0, 1, 5, 2 * n + 1] {
            for long in [0, usize::MAX] {
                for operation in operations(n) {
                    seed += 1;
                    let results = carry_out(operation, n, count, long, seed, u32::wrapping_add);
                    for (rank, result) in results.iter().enumerate() {
                        let expected = expected(operation, n, count, rank);
                        assert_eq!(*result, expected, "{operation:?} {n} {count} {long} at {rank}");
                    }
                }
            }
        }
    }
}

#[test]
fn all_members_of_an_allreduce_get_the_same_bits_whatever_the_operation() {
    for n in 1..=17 {
        for long in [0, usize::MAX] {
            let results = carry_out(Operation::Allreduce, n, 2 * n + 1, long, n as u64, strange);
            assert!(results.iter().all(|result| *result == results[0]), "{n} {long}");
            let again = carry_out(Operation::Allreduce, n, 2 * n + 1, long, 99 + n as u64, strange);
            assert_eq!(results, again, "the same, whatever comes first");
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    for n in 2..=17 {
        for late in 0..n {
            let members = (0..n).map(|rank| Member {
                plan: Plan::new(Operation::Barrier, Team::new(rank, n), 0, 0),
                at: 0,
                open: 0,
                memory: Default::default(),
            });
            let mut world = World {
                members: members.collect(),
                sends: HashMap::new(),
                recvs: HashMap::new(),
                die: 1,
                op: strange,
            };
            while (0..n).filter(|rank| *rank != late).any(|rank| world.step(rank)) || world.deliver() {}
            for (rank, member) in world.members.iter().enumerate().filter(|(rank, _)| *rank != late) {
                assert!(
                    member.at < member.plan.steps.len(),
                    "{rank} of {n} did not wait for {late}"
                );
            }
            world.run();
        }
    }
}

#[test]
fn short_data_takes_few_rounds() {
    let rounds = |operation, n: usize| {
        let plan = Plan::new(operation, Team::new(n / 3, n), 1, ELEMENT);
        plan.steps.iter().filter(|step| **step == Step::Wait).count()
    };
    for operation in operations(1000) {
        let most = if operation == Operation::Alltoall {
            1000 / 16 + 2
        } else {
            2 * 10 + 2
        };
        assert!(rounds(operation, 1000) <= most, "{operation:?}");
    }
}
