//! Which operations wait for which, and what fails when a region is closed or a peer dies.

use super::*;
use crate::engine::deliver::ANSWERS;
use crate::engine::rma_peer::ExposedRead;
use crate::engine::wire::{Header, flag};

const WRITE: CompletedOp = CompletedOp::Rma(Access::Write);
const READ: CompletedOp = CompletedOp::Rma(Access::Read);

fn ended(bed: &mut Bed, node: PeerId) -> Vec<(CompletedOp, Option<Error>)> {
    let row = |end: Completion| (end.op, end.failure.map(|failure| failure.error));
    bed.done(node).into_iter().map(row).collect()
}

/// A message behind a long write or read is received when that is over; short operations need not wait.
#[test]
fn messages_and_atomics_wait_for_long_operations_and_short_ones_do_not() {
    for manner in manners() {
        for kind in [Access::Write, Access::Read] {
            let mut bed = Bed::new(2, 5, manner, small());
            let memory = Lent::new(&[3000], 1);
            register(&bed, 1, 1, &memory, Rights::BOTH);
            let (long, short) = (Lent::new(&[2900], 2), Lent::new(&[8], 3));
            let recv = bed.recv(1, &[8], tagged(4));
            let begun = access(kind, 1, &long, remote(&[(0, 2900, 1)]));
            bed.rma(0, &begun).unwrap();
            bed.send(letter(0, 1, 4, 8)).unwrap();
            let mut rounds = 0;
            while bed.found(recv).is_empty() {
                assert_eq!(ended(&mut bed, 0), [], "{manner:?}");
                bed.world.borrow_mut().now += 1;
                bed.progress(1);
                if bed.found(recv).is_empty() {
                    bed.progress(0);
                    let done = bed.world.borrow().done.len();
                    if done > 0 {
                        break;
                    }
                }
                rounds += 1;
                assert!(rounds < 1000);
            }
            // The end of the long one came first.
            assert_eq!(ended(&mut bed, 0), [(CompletedOp::Rma(kind), None)], "{manner:?}");
            bed.settle();
            assert_eq!(bed.found(recv).len(), 1);
            // Behind another long one, a short write is done at once; an atomic waits.
            bed.rma(0, &begun).unwrap();
            let word = atomic::words(&[5]);
            let target = AtomicTarget::Memory(remote(&[(2992, 8, 1)]));
            let add = atomic::operation(Form::Base, atomic::SUM, target, &word);
            bed.rma(0, &access(Access::Write, 1, &short, remote(&[(2950, 8, 1)])))
                .unwrap();
            bed.atomic(0, &add).unwrap();
            bed.settle();
            let done = ended(&mut bed, 0);
            let place = |wanted| done.iter().rposition(|(ended, _)| *ended == wanted).unwrap();
            assert!(
                place(CompletedOp::Rma(kind)) < place(CompletedOp::Atomic(Form::Base)) || kind == Access::Write,
                "{done:?}"
            );
            assert_eq!(done.len(), 3);
            bed.check_nothing_left();
        }
    }
}

#[test]
fn a_fence_waits_for_all_operations_before_it() {
    for manner in manners() {
        let mut bed = Bed::new(2, 5, manner, small());
        let memory = Lent::new(&[3000], 1);
        register(&bed, 1, 1, &memory, Rights::BOTH);
        let (long, short, into) = (Lent::new(&[2900], 2), Lent::new(&[8], 3), Lent::new(&[8], 0));
        let begin = |kind, local: &Lent, context, fence| {
            let remote = remote(&[(0, local.iov().len(), 1)]);
            let begun = access(kind, 1, local, remote);
            Rma {
                context,
                fence,
                ..begun
            }
        };
        bed.rma(0, &begin(Access::Write, &short, 0, false)).unwrap();
        bed.rma(0, &begin(Access::Read, &long, 1, false)).unwrap();
        bed.rma(0, &begin(Access::Write, &long, 2, true)).unwrap();
        bed.rma(0, &begin(Access::Write, &short, 3, true)).unwrap();
        bed.rma(0, &begin(Access::Read, &into, 4, false)).unwrap();
        bed.settle();
        let contexts: Vec<usize> = bed.done(0).iter().map(|end| end.context).collect();
        assert_eq!(contexts[2..4], [2, 3], "{manner:?}");
        assert_eq!(into.bytes(), [3; 8]);
        bed.check_nothing_left();
    }
}

/// Short operations to one peer see each other in the order of their calls, on lanes that delay and fill up.
#[test]
fn short_operations_are_done_in_order() {
    for seed in 0..20 {
        for manner in manners() {
            let manner = Manner { depth: 3, ..manner };
            let mut bed = Bed::new(2, seed, manner, Config::default());
            let memory = atomic::words(&[0]);
            register(&bed, 1, 1, &memory, Rights::BOTH);
            let mut expected = Vec::new();
            for round in 0..10u64 {
                let (set, add) = (atomic::words(&[round * 100]), atomic::words(&[1]));
                let [before, after] = [0; 2].map(|_| atomic::words(&[0]));
                let target = remote(&[(0, 8, 1)]);
                bed.rma(0, &access(Access::Write, 1, &set, target)).unwrap();
                let fetch = Atomic {
                    result: before.iov(),
                    ..atomic::operation(Form::Fetch, atomic::SUM, AtomicTarget::Memory(target), &add)
                };
                bed.atomic(0, &fetch).unwrap();
                bed.rma(0, &access(Access::Read, 1, &after, target)).unwrap();
                expected.push((round, before, after));
            }
            bed.settle();
            for (round, before, after) in expected {
                assert_eq!(before.bytes(), atomic::bytes(&[round * 100]), "{manner:?}");
                assert_eq!(after.bytes(), atomic::bytes(&[round * 100 + 1]), "{manner:?}");
            }
            assert_eq!(bed.done(0).len(), 30);
            bed.check_nothing_left();
        }
    }
}

/// However far a long transfer has come when its region is closed, it ends, and nothing is touched after the closing.
#[test]
fn a_region_may_be_closed_in_the_middle() {
    let mut outcomes = [0, 0];
    for manner in manners() {
        for kind in [Access::Write, Access::Read] {
            for when in 0..30 {
                let manner = Manner { depth: 2, ..manner };
                let mut bed = Bed::new(2, when, manner, small());
                let memory = Lent::new(&[1500, 1500], 1);
                register(&bed, 1, 1, &memory, Rights::BOTH);
                let long = Lent::new(&[3000], 2);
                bed.rma(0, &access(kind, 1, &long, remote(&[(0, 3000, 1)]))).unwrap();
                for _ in 0..when {
                    bed.world.borrow_mut().now += 1;
                    bed.progress(1);
                    bed.progress(0);
                }
                bed.nodes[1].regions.remove(1).unwrap();
                let before = memory.bytes();
                bed.settle();
                assert_eq!(memory.bytes(), before, "{manner:?} {when}");
                let whole = match kind {
                    Access::Write => before == [2; 3000],
                    Access::Read => long.bytes() == [1; 3000],
                };
                let done = ended(&mut bed, 0);
                match done[..] {
                    [(_, None)] => assert!(whole, "{manner:?} {when}"),
                    [(_, Some(error))] => assert_eq!(error, Error::NoKey),
                    _ => panic!("{done:?}"),
                }
                outcomes[usize::from(done[0].1.is_some())] += 1;
                bed.check_nothing_left();
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 20), "{outcomes:?}");
}

#[test]
fn all_operations_end_when_the_peer_does() {
    for manner in manners() {
        for when in 0..12 {
            let manner = Manner { depth: 4, ..manner };
            let mut bed = Bed::new(3, when, manner, Config::default());
            for node in [0, 1] {
                register(&bed, node, 1, &Lent::new(&[3000], 1), Rights::BOTH);
            }
            let (long, short) = (Lent::new(&[3000], 2), Lent::new(&[8], 2));
            let word = atomic::words(&[1]);
            for (from, to) in [(0, 1), (1, 0)] {
                for local in [&short, &long] {
                    for kind in [Access::Write, Access::Read] {
                        let target = remote(&[(0, local.iov().len(), 1)]);
                        bed.rma(from, &access(kind, to, local, target)).unwrap();
                    }
                }
                for form in [Form::Base, Form::Fetch] {
                    let target = AtomicTarget::Memory(remote(&[(0, 8, 1)]));
                    let operation = atomic::operation(form, atomic::SUM, target, &word);
                    let result = word.iov();
                    bed.atomic(
                        from,
                        &Atomic {
                            to,
                            result,
                            ..operation
                        },
                    )
                    .unwrap();
                }
            }
            for _ in 0..when {
                bed.world.borrow_mut().now += 1;
                bed.progress(1);
                bed.progress(0);
            }
            bed.kill(1);
            bed.settle();
            let done = bed.done(0);
            assert_eq!(done.len(), 6, "{manner:?} {when}: {done:?}");
            let fine = |end: &Completion| end.failure.is_none_or(|failure| failure.error == Error::PeerGone);
            assert!(done.iter().all(fine), "{done:?}");
            assert_eq!(bed.nodes[0].engine.leftovers(), [0; 5]);
        }
    }
}

/// A peer that never says that it has fetched is answered with bytes before long, as each leave to fetch takes memory.
#[test]
fn a_peer_that_says_nothing_of_its_fetches_is_let_fetch_no_more() {
    let mut bed = Bed::new(2, 5, manners()[0], small());
    let memory = Lent::new(&[3000], 1);
    register(&bed, 1, 1, &memory, Rights::BOTH);
    let earlier = (1..ANSWERS as u32).map(|number| ExposedRead { number, id: 0 });
    bed.node(1).engine.core.peer(0).rma_mut().exposed_reads.extend(earlier);
    for number in [1 << 20, 2 << 20] {
        let header = Header {
            flags: flag::GET,
            data: 1,
            total: 2900,
            ..Header::new(Packet::Read, number)
        };
        bed.world.borrow_mut().put(0, 1, header, &[]);
        for _ in 0..20 {
            bed.progress(1);
        }
    }
    let world = bed.world.borrow();
    assert_eq!((world.exposed.len(), world.count(Packet::Exposed)), (1, 1));
    assert_eq!(world.count(Packet::Reply), 2900usize.div_ceil(300));
}

/// Packets that no engine writes are their sender's end, and touch nothing.
#[test]
fn nonsense_is_not_believed() {
    let plain = Header::new(Packet::Write, 0);
    let with = |packet, flags, tag, total| Header {
        packet,
        flags,
        tag,
        data: 1,
        total,
        ..plain
    };
    let code = 0x0702;
    let rows: Vec<(Header, usize)> = vec![
        (with(Packet::Write, flag::LIST, 5, 0), 120),
        (with(Packet::Write, flag::LIST, 1, 0), 23),
        (with(Packet::Write, flag::LIST, 1, 0), 30),
        (with(Packet::Write, flag::LIST, u64::MAX, 0), 30),
        (with(Packet::OfferWrite, flag::LIST, 1, 100), 24 + 97),
        (with(Packet::OfferWrite, 0, 0, 64), 97),
        (with(Packet::Read, 0, 0, 8), 8),
        (with(Packet::Read, flag::LIST, 1, 8), 24),
        (with(Packet::Reply, 0, 0, 0), 8),
        (with(Packet::Exposed, 0, 0, 0), 97),
        (with(Packet::Acked, 0, 0, 1), 0),
        (with(Packet::Acked, 0, 0, u64::MAX), 0),
        (with(Packet::Acked, flag::FAILED, 0, u64::MAX), 0),
        (with(Packet::Acked, flag::FAILED, 0, 0), 0),
        (with(Packet::FetchAtomic, 0, 0, u64::MAX), 0),
        (
            Header {
                code,
                ..with(Packet::FetchAtomic, 0, 0, 8)
            },
            7,
        ),
        (
            Header {
                code,
                ..with(Packet::CompareAtomic, 0, 0, 8)
            },
            8,
        ),
        (
            Header {
                code,
                ..with(Packet::CompareAtomic, 0, 0, 8)
            },
            17,
        ),
        (
            Header {
                code,
                ..with(Packet::CompareAtomic, flag::TAGGED, 0, 8)
            },
            17,
        ),
        (with(Packet::Got, 0, 0, 0), 1),
        (with(Packet::Write, 1 << 7, 0, 0), 8),
    ];
    for manner in manners() {
        for (header, len) in &rows {
            let mut bed = Bed::new(2, 5, manner, small());
            let memory = Lent::new(&[64], 1);
            register(&bed, 1, 1, &memory, Rights::BOTH);
            bed.world.borrow_mut().put(0, 1, *header, &vec![0; *len]);
            bed.settle();
            assert_eq!(bed.nodes[1].engine.malformed(), 1, "{header:?} {len}");
            assert_eq!(memory.bytes(), [1; 64]);
            assert_eq!(bed.nodes[1].engine.leftovers(), [0; 5]);
        }
    }
}

#[test]
fn each_operation_is_told_once_where_somebody_counts() {
    for manner in manners() {
        let mut bed = Bed::new(2, 5, manner, small());
        for key in [1, 2] {
            register(&bed, 1, key, &Lent::new(&[3000], 1), Rights::BOTH);
        }
        bed.nodes[1].regions.change(2, |region| region.counted = true);
        let pieces = |key| {
            [
                remote(&[(0, 8, key)]),
                remote(&[(0, 3000, key)]),
                remote(&[(0, 1000, 1), (9, 99, key)]),
            ]
        };
        for (counted, key, expected) in [(false, 1, 0), (false, 2, 1), (true, 1, 1)] {
            let regions = bed.nodes[1].regions.clone();
            bed.node(1).engine.expose_regions(regions, 0, counted);
            for remote in pieces(key) {
                for kind in [Access::Write, Access::Read] {
                    let earlier = bed.told(1).len();
                    let local = Lent::new(&[remote.len()], 0);
                    bed.rma(0, &access(kind, 1, &local, remote)).unwrap();
                    bed.settle();
                    let told = bed.told(1).split_off(earlier);
                    assert_eq!(told.len(), expected, "{manner:?} {kind:?} {remote:?}");
                    let seen = CompletedOp::Target {
                        access: kind,
                        key,
                        atomic: false,
                    };
                    let as_told =
                        |end: &Completion| (end.op, end.len, end.tell) == (seen, remote.len(), Tell::Counters);
                    assert!(told.iter().all(as_told), "{told:?}");
                }
            }
        }
        assert!(
            ended(&mut bed, 0)
                .iter()
                .all(|(kind, error)| [WRITE, READ].contains(kind) && error.is_none())
        );
    }
}

#[test]
fn a_node_reaches_itself() {
    for manner in manners() {
        let mut bed = Bed::new(1, 5, manner, small());
        let memory = Lent::new(&[3000], 1);
        register(&bed, 0, 1, &memory, Rights::BOTH);
        for len in [8, 3000] {
            let (local, back) = (Lent::new(&[len], 7), Lent::new(&[len], 0));
            bed.rma(0, &access(Access::Write, 0, &local, remote(&[(0, len, 1)])))
                .unwrap();
            bed.settle();
            bed.rma(0, &access(Access::Read, 0, &back, remote(&[(0, len, 1)])))
                .unwrap();
            bed.settle();
            assert_eq!(ended(&mut bed, 0), [(WRITE, None), (READ, None)]);
            assert_eq!(back.bytes(), vec![7; len]);
        }
        bed.check_nothing_left();
    }
}

/// A peer that reads without pause, each answer in several packets, and takes them no sooner than they are written, leaves
/// room for nothing but answers.
#[test]
fn who_is_read_from_without_pause_writes_all_the_same() {
    let mut manner = manners()[0];
    manner.depth = 2;
    (manner.limits.max_in_writes, manner.limits.max_short_read) = (3000, 3000);
    let mut bed = Bed::new(2, 4, manner, small());
    let memory = [0, 1].map(|_| Lent::new(&[3000], 0));
    (0..)
        .zip(&memory)
        .for_each(|(node, memory)| register(&bed, node, 1, memory, Rights::BOTH));
    let (long, short) = (Lent::new(&[2900], 0), Lent::new(&[8], 0));
    let read = access(Access::Read, 0, &long, remote(&[(0, 2900, 1)]));
    let (mut asked, mut answered) = (0, 0);
    for round in 0..200 {
        while asked < answered + 8 && bed.rma(1, &read).is_ok() {
            asked += 1;
        }
        bed.progress(0);
        if round == 0 {
            bed.rma(0, &access(Access::Write, 1, &short, remote(&[(100, 8, 1)])))
                .unwrap();
        }
        bed.progress(1);
        answered += bed.done(1).len();
        if !bed.done(0).is_empty() {
            return bed.settle();
        }
    }
    panic!("{answered} reads were answered, and nothing was written");
}
