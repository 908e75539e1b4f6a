//! Reads that are answered out of the memory itself: when, and that nothing behind them changes what they give.

use super::atomic::{bytes, words};
use super::*;
use crate::engine::read_at_hand::ReadAtHand;

const KEY: u64 = 7;

/// The target knows the initiator.
fn bed(manner: Manner, seed: u64, memory: &Lent) -> Bed {
    let mut bed = Bed::new(2, seed, manner, small());
    bed.node(1).engine.core.peer(0);
    register(&bed, 1, KEY, memory, Rights::BOTH);
    bed
}

fn word(kind: Access, local: &Lent) -> Rma {
    access(kind, 1, local, remote(&[(0, 8, KEY)]))
}

/// The wire has half of the packets taken while they lie in it. The others are placed, and reads among them are copied.
#[test]
fn a_read_that_comes_alone_is_answered_in_the_same_turn_without_a_copy() {
    let copied = (0..40).filter(|seed| {
        let memory = words(&[5]);
        let mut bed = bed(manners()[0], *seed, &memory);
        let into = words(&[0]);
        bed.rma(0, &word(Access::Read, &into)).unwrap();
        bed.progress(1);
        assert_eq!(bed.world.borrow().count(Packet::Reply), 1);
        let copied = bed.node(1).engine.core.buffers.kept() > 0;
        bed.settle();
        assert_eq!(into.bytes(), bytes(&[5]));
        bed.check_nothing_left();
        copied
    });
    let copied = copied.count();
    assert!((10..30).contains(&copied), "{copied}");
}

/// Three come in one poll.
#[test]
fn so_are_several_that_nothing_follows() {
    let copied = (0..80).filter(|seed| {
        let memory = words(&[5, 6, 7]);
        let mut bed = bed(manners()[0], *seed, &memory);
        let into = [0; 3].map(|_| words(&[0]));
        for (at, into) in (0..).zip(&into) {
            let part = remote(&[(at * 8, 8, KEY)]);
            bed.rma(0, &access(Access::Read, 1, into, part)).unwrap();
        }
        bed.progress(1);
        assert_eq!(bed.world.borrow().count(Packet::Reply), 3);
        let copied = bed.node(1).engine.core.buffers.kept() > 0;
        bed.settle();
        assert_eq!(into.map(|into| into.bytes()), [5, 6, 7].map(|word| bytes(&[word])));
        bed.check_nothing_left();
        copied
    });
    // Each is taken in half of the runs.
    let copied = copied.count();
    assert!((60..78).contains(&copied), "{copied}");
}

/// As many as a poll takes.
#[test]
fn so_are_all_reads_of_a_poll() {
    let memory = words(&[5]);
    let mut bed = bed(manners()[0], 1, &memory);
    let engine = &mut bed.node(1).engine;
    let memory = memory.iov().only().unwrap();
    (0..64).for_each(|number| engine.core.answer_after_poll(0, ReadAtHand { number, memory }));
    engine.answer_reads_at_hand();
    assert_eq!(engine.core.peer(0).rma_mut().replies.len(), 0);
    assert_eq!(bed.world.borrow().count(Packet::Reply), 64);
}

/// One is longer than a packet, and another comes behind it. Where the wire is full, a copy goes on where the packets
/// ended.
#[test]
fn a_longer_one_is_answered_in_several_packets() {
    let limits = Limits {
        max_in_writes: 1000,
        max_short_read: 1000,
        ..manners()[0].limits
    };
    for full in [0, 2] {
        let manner = Manner {
            limits,
            full,
            ..manners()[0]
        };
        let copied = (0..80).filter(|seed| {
            let content = core::array::from_fn::<u64, 110, _>(|at| at as u64);
            let memory = words(&content);
            let mut bed = bed(manner, *seed, &memory);
            let (long, short) = (words(&[0; 100]), words(&[0]));
            let behind = remote(&[(872, 8, KEY)]);
            bed.rma(0, &access(Access::Read, 1, &long, remote(&[(0, 800, KEY)])))
                .unwrap();
            bed.rma(0, &access(Access::Read, 1, &short, behind)).unwrap();
            bed.progress(1);
            let copied = bed.node(1).engine.core.buffers.kept() > 0;
            assert!(copied || full > 0 || bed.world.borrow().count(Packet::Reply) == 4);
            check_what_comes_behind(&bed);
            bed.settle();
            assert_eq!(long.bytes(), bytes(&content[..100]));
            assert_eq!(short.bytes(), bytes(&[109]));
            assert_eq!(bed.world.borrow().count(Packet::Reply), 4);
            assert_eq!(bed.done(0).len(), 2);
            bed.check_nothing_left();
            copied
        });
        let copied = copied.count();
        assert!((40..80).contains(&copied), "{copied}");
    }
}

/// Each packet of an answer of 800 bytes, or of 8, tells how many more come.
fn check_what_comes_behind(bed: &Bed) {
    let world = bed.world.borrow();
    let answers = world
        .under_way(1, 0)
        .filter(|(header, _)| header.packet == Packet::Reply);
    for (header, len) in answers {
        let all = header.total + len as u64 + header.data;
        assert!(all == 800 || all == 8, "{header:?}");
    }
}

/// All of it comes in one poll: a write, a message into the memory that was read, and other reads.
#[test]
fn what_comes_behind_a_read_in_the_same_poll_does_not_change_it() {
    for (manner, seed) in manners()
        .into_iter()
        .flat_map(|manner| (0..20).map(move |seed| (manner, seed)))
    {
        let memory = words(&[1]);
        let mut bed = bed(manner, seed, &memory);
        let recv = bed.recv(1, &[8], tagged(3));
        let buffer = bed.world.borrow().received[recv].memory.iov();
        let region = Region {
            memory: buffer,
            rights: Rights::BOTH,
            base: 0,
            enabled: true,
            endpoint: None,
            counted: false,
        };
        bed.nodes[1].regions.add(region, 9).unwrap();
        let (new, read) = (words(&[10]), [0; 5].map(|_| words(&[7])));
        let of_buffer = |into: &Lent| access(Access::Read, 1, into, remote(&[(0, 8, 9)]));
        bed.rma(0, &word(Access::Read, &read[0])).unwrap();
        bed.rma(0, &word(Access::Read, &read[4])).unwrap();
        bed.rma(0, &word(Access::Write, &new)).unwrap();
        bed.rma(0, &word(Access::Read, &read[1])).unwrap();
        bed.rma(0, &of_buffer(&read[2])).unwrap();
        bed.send(letter(0, 1, 3, 8)).unwrap();
        bed.settle();
        bed.rma(0, &of_buffer(&read[3])).unwrap();
        bed.settle();
        let [first, second, before, after, next] = read.map(|read| read.bytes());
        assert_eq!(
            [first, next, second, before],
            [1, 1, 10, 0].map(|word| bytes(&[word])),
            "{manner:?}"
        );
        assert!(after != bytes(&[0]), "{manner:?}: the message came");
        bed.check_nothing_left();
    }
}

/// The answer finds no room: it follows.
#[test]
fn an_answer_that_cannot_go_at_once_goes_later() {
    let memory = words(&[5]);
    let manner = Manner {
        full: 12,
        ..manners()[0]
    };
    for seed in 0..20 {
        let mut bed = bed(manner, seed, &memory);
        let into = words(&[0]);
        bed.rma(0, &word(Access::Read, &into)).unwrap();
        bed.settle();
        assert_eq!((into.bytes(), bed.done(0).len()), (bytes(&[5]), 1));
        bed.check_nothing_left();
    }
}
