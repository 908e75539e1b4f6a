//! How quickly the receiver copies out of a ring, from which its sender learns whether a message that could be fetched is
//! better sent through the ring.
//!
//! Each line of a ring goes from the sender's cache to the receiver's. Where both share a cache that is twice as quick as
//! a fetch by the kernel, and where they do not, a fetch is quicker. A hypervisor or the scheduler may move a process at
//! any time, so it is measured all the time. Called by `inbound`. Knows nothing of rings and records.

use std::time::{Duration, Instant};

/// Shorter copies say little, as the clock takes as long as some lines.
const TIMED_FROM: usize = 2 << 10;
/// Of so many copies one is timed.
const TIMED_EACH: u8 = 4;
/// Picoseconds for a byte: copies are quick below the one, and no longer so above the other. Seen were 22 to 40 where a
/// cache is shared; where none is, 135 to 160 on Intel's, and on AMD's 100 for 4 KiB and 60 to 75 for 8.
const QUICK: u64 = 50;
const SLOW: u64 = 60;

#[derive(Debug)]
pub(super) struct CopySpeed {
    copies: u8,
    /// What the last timed copy took, in picoseconds for a byte.
    last: u64,
    quick: bool,
}

impl Default for CopySpeed {
    fn default() -> CopySpeed {
        CopySpeed {
            copies: 0,
            last: u64::MAX,
            quick: false,
        }
    }
}

impl CopySpeed {
    /// Before a copy of so many bytes: the time, if it is to be timed.
    #[inline(always)]
    pub(super) fn start(&mut self, len: usize) -> Option<Instant> {
        if len < TIMED_FROM {
            return None;
        }
        self.copies = (self.copies + 1) % TIMED_EACH;
        (self.copies == 0).then(Instant::now)
    }

    /// A copy that was to be timed is over. Returns whether copies are quick, if they were not before, or no longer are.
    /// The quicker of two counts: one may have been disturbed, or have touched new memory.
    pub(super) fn took(&mut self, len: usize, time: Duration) -> Option<bool> {
        let now = u64::try_from(time.as_nanos() * 1000 / len.max(1) as u128).unwrap_or(u64::MAX);
        let better = now.min(self.last);
        self.last = now;
        let before = self.quick;
        self.quick = better < if before { SLOW } else { QUICK };
        (self.quick != before).then_some(self.quick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 4096;

    /// The verdicts of copies that take so many picoseconds for a byte.
    fn verdicts(speeds: &[u64]) -> Vec<Option<bool>> {
        let mut speed = CopySpeed::default();
        let time = |each: &u64| Duration::from_nanos(each * LEN as u64 / 1000);
        speeds.iter().map(|each| speed.took(LEN, time(each))).collect()
    }

    #[test]
    fn two_copies_decide() {
        assert_eq!(verdicts(&[QUICK / 2; 3]), [Some(true), None, None]);
        assert_eq!(verdicts(&[SLOW * 2; 3]), [None; 3]);
        // One that was disturbed changes nothing.
        let quick = QUICK / 2;
        assert_eq!(
            verdicts(&[quick, 9999, quick, 9999, 9999]),
            [Some(true), None, None, None, Some(false)]
        );
        let between = (QUICK + SLOW) / 2;
        assert_eq!(
            verdicts(&[between, between, quick, between, between]),
            [None, None, Some(true), None, None]
        );
    }

    #[test]
    fn a_copy_may_take_no_time_or_for_ever_and_be_of_nothing() {
        let mut speed = CopySpeed::default();
        for (len, time) in [(0, Duration::ZERO), (0, Duration::MAX), (usize::MAX, Duration::MAX)] {
            speed.took(len, time);
        }
    }

    #[test]
    fn short_copies_are_not_timed_and_of_the_others_a_part() {
        let mut speed = CopySpeed::default();
        assert!((0..100).all(|_| speed.start(TIMED_FROM - 1).is_none()));
        let timed = (0..100).filter(|_| speed.start(TIMED_FROM).is_some());
        assert_eq!(timed.count(), 100 / usize::from(TIMED_EACH));
    }
}
