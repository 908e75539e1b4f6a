//! Transports on simulated streams, which break: the suites that all transports pass, the engine's random stories, and
//! what becomes of messages and writes when a connection breaks in the middle.

use super::*;
use crate::engine::Config;
use crate::engine::op::{Access, CompletedOp, CompletionLevel, MessageKind, Recv};
use crate::engine::tests::random;
use crate::engine::tests::rma::{access, register, remote};
use crate::engine::tests::sim::*;
use crate::transport::tests::suite::{Ends, Pair};
use crate::util::regions::Rights;
use crate::util::user::Lent;

impl Pair for Stream {
    fn pair() -> Ends<Stream> {
        let [a, b] = <[Stream; 2]>::try_from(Stream::connected(2, 7)).unwrap_or_else(|_| unreachable!());
        Ends {
            a,
            b,
            b_of_a: 1,
            a_of_b: 0,
            keep: Box::new(()),
        }
    }
}

impl Connected for Stream {
    const BREAKS: bool = true;

    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Stream> {
        Stream::connected(nodes, world.borrow_mut().roll(u64::MAX))
    }

    fn is_quiet(&self) -> bool {
        Stream::is_quiet(self)
    }

    fn die(&mut self) {
        Stream::die(self);
    }

    fn break_off(&mut self, peer: PeerId) {
        Stream::break_off(self, peer);
    }
}

crate::transport::tests::suite::tests!(Stream);
crate::engine::tests::random::over!(Stream);

/// A message that the transport says may not have arrived has, and its sender hears so before the peer is reported
/// gone.
#[test]
fn what_has_failed_may_be_answered_all_the_same() {
    let steps = [
        [5, 2, 0, 0, 0, 0],
        [0, 0, 1, 0, 1, 2],
        [10, 0, 0, 0, 0, 0],
        [0, 0, 2, 0, 1, 36],
        [9, 2, 0, 0, 0, 130],
        [0, 0, 0, 0, 80, 0],
    ];
    random::whoever_lives_is_served::<Stream>(2679696809517758677, Manner::default(), &steps.map(random::Step::of), 5);
}

fn bed(seed: u64) -> Bed<Stream> {
    Bed::over(2, seed, Manner::default(), Config::default())
}

fn check_nothing_left(bed: &Bed<Stream>) {
    for (node, peer) in [(0, 1), (1, 0)] {
        let engine = &bed.nodes[node].engine;
        assert_eq!((engine.leftovers(), engine.malformed()), ([0; 5], 0));
        let (credit, ..) = engine.credit(peer);
        let (_, allowed, due) = bed.nodes[peer as usize].engine.credit(node as PeerId);
        assert_eq!((allowed, credit + due), (credit, Config::default().window));
    }
}

/// A message is coming when the connection breaks. What is whole stays, what nobody has begun waits on, the rest fails;
/// and another connection carries what comes next.
#[test]
fn a_broken_connection_is_not_the_end_of_a_peer() {
    let mut broken = 0;
    for seed in 0..20 {
        for by in [0, 1] {
            let mut bed = bed(seed);
            let waiting = bed.recv(
                1,
                &[50],
                Recv {
                    from: Some(0),
                    ..tagged(1)
                },
            );
            let filling = bed.recv(1, &[4900], tagged(2));
            let kind = MessageKind::Collective;
            let collective = bed.recv(
                1,
                &[8],
                Recv {
                    from: Some(0),
                    kind,
                    ..tagged(1)
                },
            );
            let kept = bed.send(letter(0, 1, 3, 700)).unwrap();
            bed.settle();
            let level = CompletionLevel::Delivery;
            let cut = bed
                .send(Letter {
                    level,
                    ..letter(0, 1, 2, 4900)
                })
                .unwrap();
            let arriving = |bed: &Bed<Stream>| bed.nodes[1].engine.leftovers()[1];
            for _ in 0..100 {
                if arriving(&bed) == 2 {
                    break;
                }
                bed.progress(0);
                bed.progress(1);
            }
            if arriving(&bed) < 2 {
                continue; // all of it came in one poll
            }
            broken += 1;
            bed.break_off(by, 1 - by);
            bed.settle();
            let why = |end: &crate::engine::op::Completion| (end.context, end.failure.map(|failure| failure.error));
            let sends = bed.ends(0);
            assert_eq!(
                sends.iter().map(why).collect::<Vec<_>>(),
                [(kept, None), (cut, Some(Error::Broken))]
            );
            // The receiver may have had all of it, when the sender hung up.
            let [(first, came), last] = bed.ends(1).iter().map(why).collect::<Vec<_>>()[..] else {
                panic!("{:?}", bed.ends(1));
            };
            assert!(first == filling && (came == Some(Error::Broken) || came.is_none() && by == 0));
            assert_eq!(last, (collective, Some(Error::Broken)));
            assert!([0, 1].iter().all(|node| {
                let losses = bed.nodes[*node as usize].engine.losses(1 - node);
                losses == (1, Error::Broken)
            }));
            let after = bed.recv(1, &[700], tagged(3));
            let next = bed
                .send(Letter {
                    level,
                    ..letter(0, 1, 1, 50)
                })
                .unwrap();
            bed.settle();
            for (recv, sent) in [(after, kept), (waiting, next)] {
                let found = bed.found(recv);
                assert_eq!(
                    (found.len(), found[0].0.failure, &found[0].1),
                    (1, None, &bed.bytes(sent))
                );
            }
            check_nothing_left(&bed);
        }
    }
    assert!(broken > 20);
}

/// A write goes straight into a region until that is closed, and not a byte further.
#[test]
fn a_region_may_be_closed_in_the_middle_of_a_write() {
    let mut outcomes = [[0; 2]; 2];
    for (kind, (len, rounds)) in [(600, 4), (7000, 60)].into_iter().enumerate() {
        for seed in 0..200 {
            let when = seed % rounds;
            let mut bed = bed(seed);
            let memory = Lent::new(&[len], 0);
            register(&bed, 1, 5, &memory, Rights::BOTH);
            let local = Lent::new(&[len / 3, len - len / 3], 7);
            let write = access(Access::Write, 1, &local, remote(&[(0, len, 5)]));
            bed.rma(0, &write).unwrap();
            for _ in 0..when {
                bed.progress(0);
                bed.progress(1);
            }
            let begun = memory.bytes().contains(&7);
            bed.nodes[1].regions.remove(5).unwrap();
            scribble(&memory);
            bed.settle();
            assert!(is_untouched(&memory), "{len} {seed}");
            let done = bed.done(0);
            let error = done[0].failure.map(|failure| failure.error);
            assert_eq!((done.len(), done[0].op), (1, CompletedOp::Rma(Access::Write)));
            assert!(error.is_none_or(|error| error == Error::NoKey));
            let cut = bed.world.borrow().cuts;
            assert!(cut == 0 || error.is_some());
            outcomes[kind][0] += usize::from(begun && cut > 0);
            outcomes[kind][1] += usize::from(error.is_none());
            check_nothing_left(&bed);
        }
    }
    assert!(outcomes.iter().flatten().all(|count| *count > 0), "{outcomes:?}");
}
