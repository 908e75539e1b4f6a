//! Messages and answers of several packets, which are turns of several parts.

use super::*;
use crate::engine::port::Around;
use crate::transport::shm::config::MAX_IN_RING;
use crate::transport::shm::copy_speed::SpeedClass;

/// One has the turn, and each part is there for the other as soon as it is written.
#[test]
fn a_message_of_several_packets_is_one_turn() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (begun, before) = (pair.turns(0), pair.positions());
    let mut turn = 0;
    let mut who = pair.speaker();
    for parts in [2, 3, 4, 8, LONGEST_TURN / MAX_BODY] {
        for last in [1, 24, 25, 400, MAX_BODY] {
            let total = (parts - 1) * MAX_BODY + last;
            for at in (0..total).step_by(MAX_BODY) {
                assert_eq!(pair.turns(1 - who), begun + turn);
                assert_eq!(pair.push_part(who, at, total), Push::Done);
                assert!(!pair.out(who).is_heard());
                pair.read_all(1 - who);
                assert!(pair.out(who).is_heard());
            }
            turn += 1;
            assert_eq!([pair.turns(0), pair.turns(1)], [begun + turn; 2]);
            who = 1 - who;
            // The other reads it at once.
            pair.poll(who, 64);
            pair.push_message(who, total);
            pair.read_all(1 - who);
            turn += 1;
            who = 1 - who;
            pair.poll(who, 64);
        }
    }
    assert_eq!(pair.positions(), before, "nothing went through the rings");
}

/// All parts are there before the first is read, and each where no other one is, wherever the answer before was put.
#[test]
fn an_answer_of_several_packets_is_one_turn() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (who, mut begun, before) = (pair.speaker(), pair.turns(0), pair.positions());
    let lens = [
        8,
        100,
        4096,
        MAX_BODY,
        MAX_BODY + 1,
        2 * MAX_BODY,
        5 * MAX_BODY + 99,
        LONGEST_TURN,
    ];
    for len in lens.into_iter().flat_map(|len| [4096, len, len]) {
        pair.push_question(who, len);
        pair.read_all(1 - who);
        pair.push_answer(1 - who, len);
        begun += 2;
        assert_eq!(pair.turns(1 - who), begun, "{len}");
        pair.read_all(who);
        (0..2).for_each(|who| pair.poll(who, 1));
        assert_eq!([pair.turns(0), pair.turns(1)], [begun; 2], "{len}");
    }
    assert_eq!(pair.positions(), before, "nothing went through the rings");
    // One that may be longer than a turn is not asked for by a turn, nor answered by one alone.
    pair.push_question(who, LONGEST_TURN + 1);
    assert_eq!(pair.turns(who), begun);
}

/// The first goes by a turn, and its parts say nothing of those that follow.
#[test]
fn of_several_answers_in_a_row_one_is_a_turn() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (who, begun, before) = (pair.speaker(), pair.turns(0), pair.positions());
    pair.push_answer(who, 3 * MAX_BODY);
    assert!(!pair.out(who).may_answer(pair.ends[who].polls));
    pair.push_answer(who, 3 * MAX_BODY);
    assert_eq!(pair.turns(who), begun + 1);
    assert!(pair.positions()[who] > before[who]);
    pair.read_all(1 - who);
    // What is pushed alone may be a turn again.
    pair.poll(1 - who, 1);
    assert_eq!(pair.push(1 - who), Push::Done);
    pair.read_all(who);
    pair.poll(who, 1);
    pair.push_question(who, 8);
    pair.read_all(1 - who);
    pair.push_answer(1 - who, 2 * MAX_BODY);
    pair.poll(1 - who, 1);
    assert!(pair.out(1 - who).may_answer(pair.ends[1 - who].polls));
    pair.read_all(who);
}

/// What comes between the parts of an answer goes behind those that were written, and the rest behind it.
#[test]
fn an_answer_that_is_broken_off_goes_on_in_order() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (who, total) = (pair.speaker(), 4 * MAX_BODY);
    for between in [Packet::Credit, Packet::Eager, Packet::First, Packet::Reply] {
        assert_eq!(pair.push_answer_part(who, 0, total), Push::Done);
        let header = Header {
            total: 100,
            ..Header::new(between, 0)
        };
        assert_eq!(pair.push_packet(who, header, vec![1; 8]), Push::Done);
        for at in [1, 2, 3] {
            assert_eq!(pair.push_answer_part(who, at * MAX_BODY, total), Push::Done);
        }
        pair.read_all(1 - who);
        for who in [1 - who, who] {
            pair.poll(who, 64);
            assert_eq!(pair.push(who), Push::Done);
            pair.read_all(1 - who);
            pair.poll(who, 64);
        }
        while pair.speaker() != who {
            assert_eq!(pair.push(1 - who), Push::Done);
            pair.read_all(who);
            (0..2).for_each(|who| pair.poll(who, 64));
        }
    }
}

/// As only that shows how quickly the kernel does it. One that the peer's cross is not tried, nor one of a single part.
#[test]
fn some_of_many_turns_are_fetched_all_the_same() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let who = pair.speaker();
    // As if no copy had been timed.
    let speed = pair.out(who).lane.dialogue_speed();
    speed.store(SpeedClass::Unknown as u64, Ordering::Relaxed);
    let mut fetched = |len: usize, crossing: bool| {
        let around = Around {
            crossing,
            ..Around::default()
        };
        let to = pair.to[who];
        (0..64)
            .filter(|_| !pair.ends[who].is_sooner_sent(to, len, around))
            .count()
    };
    assert_eq!((fetched(MAX_BODY, false), fetched(MAX_IN_RING, false)), (0, 8));
    for len in [16 << 10, MAX_IN_RING] {
        assert_eq!(fetched(len, true), 0, "{len}: what the peer's crosses ends no round");
    }
}

/// Its lines would be the other side's, which no speed shows. Where long ones answer each other they come back.
#[test]
fn a_long_message_is_a_turn_where_long_ones_answer_each_other() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let is_sent = |pair: &mut Pair, who: usize, len: usize| {
        pair.poll(who, 1);
        let quick = SpeedClass::BeatsDualCopy as u64;
        pair.out(who).lane.dialogue_speed().store(quick, Ordering::Relaxed);
        let to = pair.to[who];
        pair.ends[who].is_sooner_sent(to, len, Around::default())
    };
    let who = pair.speaker();
    for who in [who, 1 - who] {
        pair.poll(who, 1);
        assert_eq!(pair.push(who), Push::Done);
        pair.read_all(1 - who);
    }
    assert!(is_sent(&mut pair, who, MAX_IN_RING) && !is_sent(&mut pair, who, LONGEST_TURN));
    pair.push_message(who, LONGEST_TURN);
    pair.read_all(1 - who);
    assert!(is_sent(&mut pair, 1 - who, LONGEST_TURN));
    pair.push_message(1 - who, LONGEST_TURN);
    pair.read_all(who);
    assert!(is_sent(&mut pair, who, LONGEST_TURN));
    pair.push_message(who, LONGEST_TURN);
    pair.read_all(1 - who);
    pair.poll(1 - who, 1);
    assert_eq!(pair.push(1 - who), Push::Done);
    pair.read_all(who);
    assert!(
        is_sent(&mut pair, who, MAX_IN_RING) && !is_sent(&mut pair, who, LONGEST_TURN),
        "answered briefly"
    );
}
