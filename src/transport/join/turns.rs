//! When the far way is polled. A poll of it is a system call, as long as ten or twenty polls of the near way.
//!
//! While something went or came the far way lately, it is polled whenever the near way has nothing. Otherwise it is
//! looked at now and then, by the number of polls, or by the clock if a program polls seldom. Called by `Join` only.
//! All times are in milliseconds, by a clock that is quick to read.

/// Polls that find something, from one that is of the far way too to the next.
const BUSY: u32 = 1024;
/// The same while the far way is in use: so a program that has found something finds, with one more poll, whatever has
/// come.
const BUSY_IN_USE: u32 = 2;
/// The far way counts as in use for so long after its last news. That is longer than one turn of a processor, so that
/// it does not end only because others had their turn.
const LATELY_MS: u64 = 100;
/// Polls from one look at the clock to the next.
const CLOCK_EVERY: u32 = 8;

#[derive(Debug)]
pub(super) struct Turns {
    /// Polls of the near way that find nothing between two looks.
    most_empty: u32,
    /// Polls of the near way until it is next considered whether the far way is due.
    until_considered: u32,
    /// Polls that have found something since the far way was polled, up to the last `consider`.
    busy: u32,
    /// The same since then.
    newly_busy: u32,
    /// Polls that found nothing, in a row, as far as they were considered.
    empty: u32,
    in_use: bool,
    /// Something went the far way since it was polled.
    sent: bool,
    /// When it had news last, and when it was polled last.
    used_at: u64,
    polled_at: u64,
}

impl Turns {
    pub(super) fn new(most_empty: u32) -> Turns {
        Turns {
            most_empty,
            until_considered: CLOCK_EVERY,
            busy: 0,
            newly_busy: 0,
            empty: 0,
            in_use: false,
            sent: false,
            used_at: 0,
            polled_at: 0,
        }
    }

    /// The near way was polled and had so many packets: whether the far way is next.
    #[inline(always)]
    pub(super) fn is_far_due(&mut self, near: usize, clock: impl FnOnce() -> u64) -> bool {
        if near > 0 {
            self.newly_busy += 1;
        }
        self.until_considered -= 1;
        self.until_considered == 0 && self.consider(clock)
    }

    #[cold]
    fn consider(&mut self, clock: impl FnOnce() -> u64) -> bool {
        let polls = self.polls_to_consider();
        self.until_considered = polls;
        let busy = core::mem::take(&mut self.newly_busy);
        self.busy += busy;
        self.empty = if busy == 0 { self.empty + polls } else { 0 };
        if self.in_use {
            return self.empty > 0 || self.busy >= BUSY_IN_USE;
        }
        self.empty >= self.most_empty || self.busy >= BUSY || clock() != self.polled_at
    }

    /// One after the other while the far way is in use.
    fn polls_to_consider(&self) -> u32 {
        if self.in_use { 1 } else { CLOCK_EVERY }
    }

    /// It was polled at this time, and had so many packets.
    pub(super) fn far_was_polled(&mut self, far: usize, now: u64) {
        if far > 0 || core::mem::take(&mut self.sent) {
            (self.in_use, self.used_at) = (true, now);
        } else if now.saturating_sub(self.used_at) > LATELY_MS {
            self.in_use = false;
        }
        (self.busy, self.newly_busy, self.empty) = (u32::from(far > 0), 0, 0);
        (self.until_considered, self.polled_at) = (self.polls_to_consider(), now);
    }

    /// Whether any poll has found something, from the last one of the far way on.
    pub(super) fn has_found(&self) -> bool {
        self.busy + self.newly_busy > 0
    }

    /// It is polled next, whatever the near way has.
    pub(super) fn far_is_next(&mut self) {
        (self.until_considered, self.busy) = (1, BUSY);
    }

    /// Something goes that way.
    pub(super) fn far_is_used(&mut self) {
        (self.in_use, self.sent, self.until_considered) = (true, true, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: u32 = 256;

    /// How many of these polls of the near way, of which each had so many packets, are followed by one of the far way.
    fn looks(turns: &mut Turns, polls: u32, near: usize, now: u64) -> u32 {
        let mut looks = 0;
        for _ in 0..polls {
            if turns.is_far_due(near, || now) {
                turns.far_was_polled(0, now);
                looks += 1;
            }
        }
        looks
    }

    #[test]
    fn a_far_way_that_is_not_in_use_is_looked_at_now_and_then() {
        let mut turns = Turns::new(EMPTY);
        assert_eq!(looks(&mut turns, 100 * EMPTY, 0, 0), 100);
        assert_eq!(looks(&mut turns, 100 * BUSY, 1, 0), 100);
        // A near peer that answers soon leaves no time to look.
        for _ in 0..BUSY - 1 {
            assert_eq!((looks(&mut turns, EMPTY / 2, 0, 0), looks(&mut turns, 1, 1, 0)), (0, 0));
        }
    }

    #[test]
    fn one_in_use_is_polled_whenever_the_near_way_has_nothing() {
        let mut turns = Turns::new(EMPTY);
        turns.far_is_used();
        assert_eq!(looks(&mut turns, 100_000, 0, 7), 100_000);
        assert_eq!(looks(&mut turns, 10 * BUSY_IN_USE, 1, 7), 10);
        assert_eq!(looks(&mut turns, 100, 0, 7 + LATELY_MS), 100);
        let later = 8 + LATELY_MS;
        assert_eq!(looks(&mut turns, 1, 0, later), 1);
        assert_eq!(looks(&mut turns, EMPTY - 1, 0, later), 0, "it is not in use any more");
        turns.far_was_polled(1, later);
        assert_eq!(looks(&mut turns, 1, 1, later), 1, "something else was found before");
        assert_eq!(looks(&mut turns, 1, 1, later), 0);
        assert_eq!(looks(&mut turns, 100, 0, later), 100);
    }

    #[test]
    fn a_program_that_polls_seldom_looks_soon() {
        for near in [0, 1] {
            let mut turns = Turns::new(EMPTY);
            let polls = (1..=100).filter(|poll| looks(&mut turns, 1, near, *poll) > 0);
            assert_eq!(polls.count(), 100 / CLOCK_EVERY as usize);
        }
    }
}
