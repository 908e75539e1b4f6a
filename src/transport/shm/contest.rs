//! Whether long messages that a peer answers go quicker by turns or fetched, found by trying both for some rounds.
//!
//! What copies take (`copy_speed`) tells that only where the two processors share a cache. Where they do not, a store is
//! over long before its line has come, and a fetch leaves the lines of the message with the receiver, which the sender
//! waits for when it writes the next one. On an Intel with lines of 190 ns 64 KiB took 12 us by turns and 7 fetched, but
//! 15 and 24 if each was written anew. What both cost shows only in the time from one message to the next, so rounds of
//! one way are held against rounds of the other, for messages of about the same length. Of two that send at the same time
//! each would time what the other chooses, so nothing is asked of theirs. Called by `ring_or_kernel`, whose guess holds until
//! then. Knows nothing of how messages go.

use super::config::MAX_BODY;
use super::ring_or_kernel::ONE_CLASS_TO;
use std::time::{Duration, Instant};

/// Messages are alike from one of these lengths, excluded, to the next. Shorter ones are one part, and longer ones are held
/// against a dual copy by the class of their speed.
const LENGTHS: [usize; 4] = [MAX_BODY, 16 << 10, 32 << 10, ONE_CLASS_TO];
/// So many messages in a row are timed of each way. The quickest counts, as others may have been disturbed, or be the
/// first that go this way.
const TIMED: u16 = 8;
/// At first both ways are timed at the end of so many messages.
const FIRST: u16 = 64;
/// After each comparison that changes nothing it is twice as many, up to this: a program that has changed, or was moved,
/// is noticed, and one message of 128 goes the slower way.
const MOST: u16 = 1024;
/// The other way is taken if it was quicker by this percentage, and twice in a row.
const CLEARLY: u128 = 105;
const IN_A_ROW: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    Turn,
    Fetch,
}

impl Rival {
    fn other(self) -> Rival {
        match self {
            Rival::Turn => Rival::Fetch,
            Rival::Fetch => Rival::Turn,
        }
    }
}

/// Messages to one peer of about the same length.
#[derive(Debug)]
struct Group {
    /// The way that was found to be quicker. None: the guess holds.
    found: Option<Rival>,
    /// How many messages have gone since the last comparison, and how many there are from one to the next.
    gone: u16,
    each: u16,
    /// The quickest round of each way since.
    quickest: [Duration; 2],
    /// How often in a row the other was quicker.
    wins: u8,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            found: None,
            gone: 0,
            each: FIRST,
            quickest: [Duration::MAX; 2],
            wins: 0,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Contest {
    groups: [Group; LENGTHS.len() - 1],
    /// The last message, if it was timed.
    last: Option<Timed>,
}

#[derive(Debug)]
struct Timed {
    number: u64,
    /// Which of `groups` it belongs to.
    group: usize,
    way: Rival,
    began: Instant,
}

impl Contest {
    /// How the next message of this length goes. `number`: its number among all messages to this peer that could be
    /// fetched, asked about here or not, as only two in a row make a round. `guess`: which way is taken to be quicker as
    /// long as nothing was found.
    pub(super) fn way_of(&mut self, number: u64, len: usize, guess: Rival) -> Rival {
        self.way_at(number, len, guess, Instant::now)
    }

    fn way_at(&mut self, number: u64, len: usize, guess: Rival, now: impl FnOnce() -> Instant) -> Rival {
        let last = self.last.take();
        let Some((which, group)) = group_of(len).and_then(|which| Some((which, self.groups.get_mut(which)?))) else {
            return guess;
        };
        let usual = group.found.unwrap_or(guess);
        let left = group.each - group.gone;
        let way = if left <= TIMED { usual.other() } else { usual };
        if left <= 2 * TIMED {
            let now = now();
            if let Some(last) = last.filter(|last| (last.number + 1, last.group, last.way) == (number, which, way)) {
                group.took(way, now - last.began);
            }
            self.last = Some(Timed {
                number,
                group: which,
                way,
                began: now,
            });
        }
        group.gone += 1;
        if group.gone == group.each {
            group.compare(usual);
        }
        way
    }
}

impl Group {
    fn took(&mut self, way: Rival, round: Duration) {
        let quickest = self.quickest_of(way);
        *quickest = round.min(*quickest);
    }

    fn quickest_of(&mut self, way: Rival) -> &mut Duration {
        let [turn, fetch] = &mut self.quickest;
        match way {
            Rival::Turn => turn,
            Rival::Fetch => fetch,
        }
    }

    #[cold]
    fn compare(&mut self, usual: Rival) {
        let [ours, others] = [usual, usual.other()].map(|way| *self.quickest_of(way));
        let both_are_known = ours.max(others) < Duration::MAX;
        let is_quicker = both_are_known && others.as_nanos() * CLEARLY < ours.as_nanos() * 100;
        let wins = if is_quicker { self.wins + 1 } else { 0 };
        let each = if is_quicker { FIRST } else { (2 * self.each).min(MOST) };
        *self = match wins == IN_A_ROW {
            true => Group {
                found: Some(usual.other()),
                ..Group::default()
            },
            false => Group {
                found: self.found,
                each,
                wins,
                ..Group::default()
            },
        };
    }
}

fn group_of(len: usize) -> Option<usize> {
    let reached = LENGTHS.iter().filter(|border| len > **border).count();
    reached.checked_sub(1).filter(|group| *group < LENGTHS.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose rounds take so many microseconds by turns, and fetched.
    struct Rounds {
        contest: Contest,
        now: Instant,
        number: u64,
    }

    impl Rounds {
        fn new() -> Rounds {
            Rounds {
                contest: Contest::default(),
                now: Instant::now(),
                number: 0,
            }
        }

        /// The ways of so many messages.
        fn go(&mut self, count: u16, len: usize, guess: Rival, micros: [u64; 2]) -> Vec<Rival> {
            let mut go = |_| {
                let way = self.contest.way_at(self.number, len, guess, || self.now);
                self.now += Duration::from_micros(micros[way as usize]);
                self.number += 1;
                way
            };
            (0..count).map(&mut go).collect()
        }

        /// How many of so many messages are turns.
        fn turns(&mut self, count: u16, len: usize, guess: Rival, micros: [u64; 2]) -> usize {
            let ways = self.go(count, len, guess, micros);
            ways.iter().filter(|way| **way == Rival::Turn).count()
        }
    }

    #[test]
    fn the_quicker_way_is_found_whatever_was_guessed() {
        for guess in [Rival::Turn, Rival::Fetch] {
            for (micros, quicker) in [([12, 7], Rival::Fetch), ([15, 24], Rival::Turn)] {
                let mut rounds = Rounds::new();
                rounds.go(2 * FIRST, 64 << 10, guess, micros);
                let ways = rounds.go(FIRST - TIMED, 64 << 10, guess, micros);
                assert!(ways.iter().all(|way| *way == quicker), "{guess:?} {micros:?}");
            }
        }
    }

    #[test]
    fn a_program_that_changes_is_noticed_and_both_ways_are_tried_ever_less() {
        let (mut rounds, len) = (Rounds::new(), 32 << 10);
        rounds.go(10 * MOST, len, Rival::Turn, [15, 24]);
        let tried = MOST - rounds.turns(MOST, len, Rival::Turn, [15, 24]) as u16;
        assert_eq!(tried, TIMED);
        rounds.go(2 * MOST, len, Rival::Turn, [12, 7]);
        assert_eq!(rounds.turns(FIRST / 2, len, Rival::Turn, [12, 7]), 0);
    }

    #[test]
    fn what_is_hardly_quicker_changes_nothing_nor_what_was_so_once() {
        let mut rounds = Rounds::new();
        let turns = rounds.turns(FIRST, 64 << 10, Rival::Turn, [100, 96]);
        assert_eq!(turns, usize::from(FIRST - TIMED));
        // Twice as many now.
        rounds.go(2 * FIRST, 64 << 10, Rival::Turn, [100, 50]);
        let turns = rounds.turns(FIRST, 64 << 10, Rival::Turn, [100, 100]);
        assert_eq!(turns, usize::from(FIRST - TIMED));
        let turns = rounds.turns(2 * FIRST - TIMED, 64 << 10, Rival::Turn, [100, 100]);
        assert_eq!(turns, usize::from(2 * FIRST - TIMED));
    }

    /// One round of each way is enough that nothing has disturbed.
    #[test]
    fn rounds_that_were_disturbed_do_not_count() {
        let mut rounds = Rounds::new();
        for message in 0..2 * FIRST {
            let slow = if message % 7 == 3 { 1 } else { 100 };
            rounds.go(1, 16 << 10, Rival::Turn, [slow * 12, slow * 7]);
        }
        assert_eq!(rounds.turns(FIRST - TIMED, 16 << 10, Rival::Turn, [12, 7]), 0);
    }

    /// Of two that send at the same time one may go by turns and the next through the ring.
    #[test]
    fn what_goes_another_way_in_between_makes_no_round_longer() {
        let (mut rounds, len, micros) = (Rounds::new(), 16 << 10, [10, 12]);
        for _ in 0..8 * FIRST {
            if rounds.go(1, len, Rival::Turn, micros) == [Rival::Turn] {
                rounds.now += Duration::from_micros(10);
                rounds.number += 1;
            }
        }
        assert_eq!(rounds.turns(FIRST, len, Rival::Turn, micros), usize::from(FIRST));
    }

    #[test]
    fn lengths_are_held_apart_and_others_go_as_was_guessed() {
        let mut rounds = Rounds::new();
        for _ in 0..2 * FIRST {
            rounds.go(1, 64 << 10, Rival::Turn, [12, 7]);
            rounds.go(1, 16 << 10, Rival::Turn, [12, 7]);
        }
        // From a message to one of another length is no round of either.
        for len in [64 << 10, 16 << 10] {
            assert_eq!(rounds.turns(8, len, Rival::Turn, [12, 7]), 8, "{len}");
        }
        for len in [0, MAX_BODY, (64 << 10) + 1, usize::MAX] {
            for guess in [Rival::Turn, Rival::Fetch] {
                let ways = rounds.go(2 * FIRST, len, guess, [12, 7]);
                assert!(ways.iter().all(|way| *way == guess), "{len}");
            }
        }
    }
}
