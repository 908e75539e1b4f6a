//! Two that send at the same time, so that a turn of each is under way.

use super::*;
use crate::engine::port::Around;
use crate::transport::shm::copy_speed::SpeedClass;

/// Nothing of theirs goes through the rings, whoever is quicker, and each poll takes one turn: what is said next is no
/// answer to it.
#[test]
fn two_that_speak_at_the_same_time_change_dialogues() {
    let mut pair = Pair::meet();
    pair.enlarge();
    let (begun, before) = (pair.turns(0), pair.positions());
    // Whoever has both turns speaks once more.
    let both = (0..2).find(|who| {
        let out = pair.out(*who);
        [BegunBy::Us, BegunBy::Peer]
            .iter()
            .all(|by| out.dialogue(*by).may_say(0))
    });
    let mut said = 0;
    if let Some(who) = both {
        assert_eq!(pair.push(who), Push::Done);
        pair.read_all(1 - who);
        pair.poll(who, 1);
        said = 1;
    }
    for round in 0..32 {
        for who in [round % 2, 1 - round % 2] {
            assert_eq!(pair.push(who), Push::Done);
        }
        let quick = round / 2 % 2;
        pair.read_all(quick);
        // One may be a turn ahead.
        let ahead = round % 3 == 0 && quick == 0;
        if ahead {
            assert_eq!(pair.push(quick), Push::Done);
            let sent = std::mem::take(&mut pair.sent[quick]);
            for one in sent {
                pair.poll(1 - quick, 64);
                pair.compare(1 - quick, &[one]);
            }
            // The other catches up.
            assert_eq!(pair.push(1 - quick), Push::Done);
            pair.poll(1 - quick, 1);
            pair.read_all(quick);
        } else {
            pair.read_all(1 - quick);
        }
        said += 2 + 2 * u64::from(ahead);
        assert_eq!([pair.turns(0), pair.turns(1)], [begun + said; 2], "round {round}");
    }
    assert_eq!(pair.positions(), before);
}

/// Each side copies what it says and what it hears, so long ones are offered unless that is quick, and short ones are not.
#[test]
fn long_messages_that_cross_are_turns_only_where_those_are_quick() {
    let mut pair = Pair::meet();
    pair.enlarge();
    for who in 0..2 {
        pair.push_message(who, LONGEST_TURN);
    }
    for who in 0..2 {
        pair.read_all(who);
        pair.poll(who, 1);
    }
    // Neither has answered what the other said.
    let mut is_sent = |who: usize, copies: SpeedClass, len: usize| {
        pair.out(who)
            .lane
            .dialogue_speed()
            .store(copies as u64, Ordering::Relaxed);
        let to = pair.to[who];
        pair.ends[who].is_sooner_sent(to, len, Around::default())
    };
    for who in 0..2 {
        for (copies, most) in [
            (SpeedClass::BeatsFetchOf32K, 16 << 10),
            (SpeedClass::BeatsFetchOf64K, LONGEST_TURN),
            (SpeedClass::Unknown, LONGEST_TURN),
        ] {
            for len in [16 << 10, (16 << 10) + 1, 64 << 10, LONGEST_TURN, LONGEST_TURN + 1] {
                assert_eq!(is_sent(who, copies, len), len <= most, "{copies:?} {len}");
            }
        }
        let tried = (0..64).filter(|_| !is_sent(who, SpeedClass::Unknown, 16 << 10));
        assert_eq!(tried.count(), 0, "the next one ends no round");
    }
}

/// Whoever has the turn in both dialogues speaks in both, before the peer has answered, but not behind what went through
/// the ring.
#[test]
fn long_messages_are_turns_while_the_ring_is_read() {
    let mut pair = Pair::meet();
    pair.enlarge();
    for who in [0, 1, 0, 1] {
        let both = [BegunBy::Us, BegunBy::Peer];
        while !both.iter().all(|by| pair.out(who).dialogue(*by).may_say(0)) {
            pair.poll(1 - who, 1);
            assert_eq!(pair.push(1 - who), Push::Done);
            pair.read_all(who);
            pair.poll(who, 1);
        }
        // As if none had been timed.
        let speed = pair.out(who).lane.dialogue_speed();
        speed.store(SpeedClass::Unknown as u64, Ordering::Relaxed);
        let turns = pair.turns(who);
        let in_ring_first = who == 1;
        if in_ring_first {
            let offer = pair.push_packet(who, Header::new(Packet::Rendezvous, 7), Vec::new());
            assert_eq!(offer, Push::Done);
        }
        let mut said = 0;
        for before in 0..3 {
            let is_turn = !in_ring_first && before < 2;
            let to = pair.to[who];
            let is_sent = pair.ends[who].is_sooner_sent(to, LONGEST_TURN, Around::default());
            assert_eq!(is_sent, is_turn, "which would be too long for the ring");
            pair.push_message(who, 2 * MAX_BODY);
            said += u64::from(is_turn);
            assert_eq!(pair.turns(who), turns + said);
        }
        pair.read_all(1 - who);
    }
}
