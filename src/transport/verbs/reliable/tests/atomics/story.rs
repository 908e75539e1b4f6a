//! Generated runs: several endpoints work on words of each other and of their own, while connections break.

use super::*;

const NODES: usize = 3;
/// Each adds a bit of its own.
const SUMS: usize = 60;

struct Asked {
    node: usize,
    target: usize,
    result: Lent,
    /// None: compares, expecting and writing these.
    swaps: Option<(u64, u64)>,
    end: Option<Completion>,
}

/// All endpoints work on two words of each, their own too: on one each adds a bit, on the other they take numbers.
struct Story {
    net: Net,
    places: Vec<SocketAddr>,
    nodes: Vec<Node>,
    memory: [Lent; NODES],
    asked: Vec<Asked>,
    die: u64,
}

impl Story {
    fn new(seed: u64) -> Story {
        let net = Net::new(seed, Manner::default());
        let memory: [Lent; NODES] = core::array::from_fn(|_| Lent::new(&[16], 0));
        let ends = wholes(&net, &memory);
        let places = ends.iter().map(Reliable::place).collect();
        let nodes = ends.into_iter().zip(&memory).map(|(end, memory)| {
            let mut engine = Engine::with(end, Settings::default());
            engine.expose_regions(regions_of(memory, Rights::BOTH), 0, false);
            Node::new(engine)
        });
        Story {
            places,
            nodes: nodes.collect(),
            net,
            memory,
            asked: Vec::new(),
            die: seed,
        }
    }

    fn roll(&mut self, below: usize) -> usize {
        self.die = self
            .die
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.die >> 33) as usize % below
    }

    fn ask(&mut self, swaps: bool) {
        let (node, target) = (self.roll(NODES), self.roll(NODES));
        let (number, result) = (self.asked.len(), Lent::new(&[8], 0));
        let mut atomic = sum(target as PeerId, 0, 1 << (number % SUMS), &result, number);
        let mut guess = None;
        if swaps {
            let expected = self.roll(4) as u64;
            atomic = Atomic {
                op: AtomicOp::new(Form::Compare, Op::Cswap, Datatype::Uint64).unwrap(),
                target: AtomicTarget::Memory(RemoteIov::one(word(8, KEY))),
                operand: lent(expected + 1).iov(),
                compare: lent(expected).iov(),
                ..atomic
            };
            guess = Some((expected, expected + 1));
        }
        let begun = &mut self.nodes[node];
        assert_eq!(begun.engine.atomic(&atomic, &mut begun.ends), Ok(()));
        self.asked.push(Asked {
            node,
            target,
            result,
            swaps: guess,
            end: None,
        });
    }

    fn progress(&mut self) {
        for node in &mut self.nodes {
            node.progress();
            for end in node.ends.drain(..) {
                let asked = &mut self.asked[end.context].end;
                assert!(asked.replace(end).is_none(), "ended twice");
            }
        }
    }

    fn break_some(&mut self) {
        let (a, b) = (self.roll(NODES), self.roll(NODES));
        self.net.break_off(self.places[a], self.places[b]);
    }

    /// Those that ended well on one word of a target, with what was there before.
    fn done(&self, target: usize, swaps: bool) -> impl Iterator<Item = (usize, &Asked, u64)> {
        let all = self.asked.iter().enumerate();
        let wanted = all.filter(move |(_, asked)| asked.target == target && asked.swaps.is_some() == swaps);
        let done = wanted.filter(|(_, asked)| asked.end.as_ref().is_some_and(|end| end.failure.is_none()));
        done.map(|(at, asked)| (at, asked, number(&asked.result.bytes())))
    }

    fn judge(&self, breaks: bool) {
        for asked in &self.asked {
            let error = error(asked.end.as_ref().unwrap());
            let may = breaks && error == Some(Error::Broken);
            assert!(error.is_none() || may, "{} to {}: {error:?}", asked.node, asked.target);
        }
        for target in 0..NODES {
            let bytes = self.memory[target].bytes();
            let (total, last) = (number(&bytes[..8]), number(&bytes[8..]));
            let sums: Vec<_> = self
                .done(target, false)
                .map(|(at, _, before)| (1u64 << (at % SUMS), before))
                .collect();
            for (bit, before) in &sums {
                assert_eq!((before & bit, total & bit), (0, *bit), "added once");
            }
            // Of two, the later one saw the earlier one, and not the other way round.
            for (number, (bit, before)) in sums.iter().enumerate() {
                for (other, seen) in &sums[number + 1..] {
                    assert!((before & other == 0) != (seen & bit == 0), "neither or both came first");
                }
            }
            let all: u64 = sums.iter().map(|(bit, _)| bit).sum();
            assert!(breaks || total == all, "what nobody added");
            let won = self
                .done(target, true)
                .filter(|(_, asked, before)| asked.swaps.unwrap().0 == *before);
            let mut won: Vec<u64> = won.map(|(_, _, before)| before).collect();
            won.sort_unstable();
            assert!(won.windows(2).all(|two| two[0] != two[1]), "a number was taken twice");
            assert!(breaks || last == won.len() as u64, "what nobody took");
        }
    }
}

/// Whoever asks, and however connections break, each atomic is done once or ends with an error, and one after the
/// other.
#[test]
fn each_atomic_is_done_once() {
    for seed in 0..40 {
        let breaks = seed % 2 == 1;
        let mut story = Story::new(seed);
        for number in 0..SUMS {
            story.ask(number % 3 == 2);
            for _ in 0..story.roll(4) {
                story.progress();
            }
            if breaks && story.roll(12) == 0 {
                story.break_some();
            }
        }
        until("the end of all", || {
            story.progress();
            story.asked.iter().all(|asked| asked.end.is_some())
        });
        story.judge(breaks);
        let devices = story.net.counts().atomics;
        assert!(
            breaks || devices == SUMS,
            "{devices}: by devices alone, on one's own memory too"
        );
    }
}
