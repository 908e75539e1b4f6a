//! Turns in both dialogues that a target has not begun to read, taken back and carried out without it.

use super::recall::{recall, write_header};
use super::recalled_turns::{bytes, out, pair_with_room, pair_with_turn, push_said, say_parts};
use super::*;

/// One in each dialogue, as both have said something at the same time. The target has read none, one, or a part of one.
#[test]
fn turns_in_both_dialogues_are_taken_back() {
    for (first, read) in [(1, 0), (1, 1), (3, 0), (3, 2), (3, 3), (3, 4)] {
        let memory = Memory::private();
        let (mut p, back) = pair_with_room(&memory);
        let (mut at_target, mut at_end) = (Kept::default(), Kept::default());
        p.end.poll(&mut at_end, 64);
        say_parts(&mut p, first, MAX_BODY);
        let by = out(&p).last_said();
        // Whatever the target says is in the other one.
        while !out(&p).may_say(8) {
            p.target.poll(&mut at_target, 0);
            push(&mut p.target, back, &header(1), &body(1));
            p.end.poll(&mut at_end, 64);
        }
        p.end.poll(&mut at_end, 64);
        let at = first * MAX_BODY;
        let next = |part: usize| Header {
            total: (2 - part) as u64 * 100,
            ..write_header(at + part * 100)
        };
        (0..3).for_each(|part| push(&mut p.end, p.to, &next(part), &[part as u8 + 50; 100]));
        assert!(out(&p).last_said() != by && !out(&p).is_speaking());
        let turns = out(&p).turns();
        for _ in 0..read {
            assert_eq!(p.target.poll(&mut at_target, 1), 1);
        }
        assert_eq!(recall(&mut p.end, p.to), Some(first + 3 - read), "{first} {read}");
        for (number, place) in (0..first)
            .map(|part| part * MAX_BODY)
            .chain([at, at + 100, at + 200])
            .enumerate()
        {
            let is_done = memory.byte(place).load(Ordering::Relaxed) != 0;
            assert_eq!(is_done, number >= read, "{first} {read} {number}");
        }
        assert!(out(&p).is_heard() && out(&p).may_go_ahead());
        let ended = usize::from(read >= first);
        assert_eq!(out(&p).turns(), turns - (2 - ended) as u64);
        assert_eq!(
            out(&p).is_speaking(),
            read % first > 0 || read > first,
            "{first} {read}"
        );
        // What is said next is heard, behind what was read.
        for id in 2..4 {
            p.end.poll(&mut at_end, 64);
            push(&mut p.end, p.to, &header(id), &body(id));
        }
        poll_until(&mut p.target, &mut at_target, |sink| sink.packets.len() == read + 2);
        assert_whole(&at_target.packets[read], 2);
        assert_whole(&at_target.packets[read + 1], 3);
    }
}

/// The first can be done without the target and the second not: both stay where they are, and the target goes over the
/// first.
#[test]
fn of_turns_in_both_dialogues_the_first_alone_is_carried_out() {
    let memory = Memory::private();
    let (mut p, back) = pair_with_turn(&memory);
    let (mut at_target, mut at_end) = (Kept::default(), Kept::default());
    push_said(&mut p, &write_header(0), &[1; 8], true);
    while !out(&p).may_say(8) {
        p.target.poll(&mut at_target, 0);
        push(&mut p.target, back, &header(1), &body(1));
        p.end.poll(&mut at_end, 64);
    }
    p.end.poll(&mut at_end, 64);
    push_said(&mut p, &header(2), &body(2), true);
    assert_eq!(recall(&mut p.end, p.to), Some(1));
    assert_eq!(bytes(&memory, [0]), [1]);
    assert!(!out(&p).may_go_ahead());
    poll_until(&mut p.target, &mut at_target, |sink| !sink.packets.is_empty());
    assert_whole(&at_target.packets[0], 2);
    assert!(out(&p).may_go_ahead());
}
