//! When the far way is polled. A poll of it is a system call, as long as ten or twenty polls of the near way.
//!
//! While something went or came the far way lately, it is polled whenever the near way has nothing. Otherwise it is
//! looked at now and then. Called by `Join` only.

/// Polls of the near way that find something between two looks.
const BUSY: u32 = 1024;
/// The same while the far way is in use.
const BUSY_IN_USE: u32 = 8;
/// Looks that find nothing until the far way counts as not in use.
const LATELY: u32 = 4096;

#[derive(Debug)]
pub(super) struct Turns {
    /// Polls of the near way that find nothing between two looks.
    most_empty: u32,
    empty: u32,
    busy: u32,
    /// Looks for which the far way still counts as in use.
    in_use: u32,
}

impl Turns {
    pub(super) fn new(most_empty: u32) -> Turns {
        Turns {
            most_empty,
            empty: 0,
            busy: 0,
            in_use: 0,
        }
    }

    /// The near way was polled and had so many packets: whether the far way is next.
    #[inline]
    pub(super) fn is_far_due(&mut self, near: usize) -> bool {
        if near > 0 {
            self.empty = 0;
            self.busy += 1;
            return self.busy >= if self.in_use > 0 { BUSY_IN_USE } else { BUSY };
        }
        self.empty += 1;
        self.in_use > 0 || self.empty >= self.most_empty
    }

    /// It was polled, and had so many packets.
    pub(super) fn far_was_polled(&mut self, far: usize) {
        (self.empty, self.busy) = (0, 0);
        self.in_use = if far > 0 { LATELY } else { self.in_use.saturating_sub(1) };
    }

    /// Something goes that way.
    pub(super) fn far_is_used(&mut self) {
        self.in_use = LATELY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: u32 = 256;

    /// How many of these polls of the near way, of which each had so many packets, are followed by one of the far way.
    fn looks(turns: &mut Turns, polls: u32, near: usize) -> u32 {
        let mut looks = 0;
        for _ in 0..polls {
            if turns.is_far_due(near) {
                turns.far_was_polled(0);
                looks += 1;
            }
        }
        looks
    }

    #[test]
    fn a_far_way_that_is_not_in_use_is_looked_at_now_and_then() {
        let mut turns = Turns::new(EMPTY);
        assert_eq!(looks(&mut turns, 100 * EMPTY, 0), 100);
        assert_eq!(looks(&mut turns, 100 * BUSY, 1), 100);
        // A near peer that answers soon leaves no time to look.
        for _ in 0..BUSY - 1 {
            assert_eq!((looks(&mut turns, EMPTY / 2, 0), looks(&mut turns, 1, 1)), (0, 0));
        }
    }

    #[test]
    fn one_in_use_is_polled_whenever_the_near_way_has_nothing() {
        let mut turns = Turns::new(EMPTY);
        turns.far_is_used();
        assert_eq!(looks(&mut turns, 100, 0), 100);
        assert_eq!(looks(&mut turns, 10 * BUSY_IN_USE, 1), 10);
        assert!(
            looks(&mut turns, 2 * LATELY, 0) < 2 * LATELY,
            "it is not in use any more"
        );
    }
}
