//! How long a thread that waits goes on looking before it sleeps.
//!
//! To sleep and to be woken takes 10 to 20 us, and costs whoever wakes a call of the system. An answer often comes
//! sooner: by shared memory after less than one, over tcp after some ten. So a wait begins with a look-out of about
//! what a sleep costs. With each wait that takes longer the next look-out is shorter, and soon there is none, until a
//! wait ends soon again.
//!
//! Called by `wait::block`; each bell has one. Knows nothing of what is waited for.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// The longest look-out: about what a sleep and being woken take, so that one in vain doubles the cost of a wait at
/// most.
const LONGEST: Duration = Duration::from_micros(20);
/// A wait of up to this time would have ended within the longest look-out, or soon after: the rest is what its sleep
/// cost.
const SOON: Duration = Duration::from_micros(40);
/// A shorter look-out is none: the looks around a sleep take as long.
const LEAST: Duration = Duration::from_micros(1);

/// What the waits on one bell have shown.
#[derive(Debug)]
pub(super) struct LookOuts {
    /// How long the next look-out is, in nanoseconds.
    next: AtomicU64,
}

impl Default for LookOuts {
    fn default() -> LookOuts {
        LookOuts::of(LONGEST)
    }
}

impl LookOuts {
    fn of(time: Duration) -> LookOuts {
        LookOuts {
            next: AtomicU64::new(time.as_nanos() as u64),
        }
    }

    /// A wait has looked once, in vain.
    pub(super) fn begin(&self) -> LookOut<'_> {
        LookOut {
            of: self,
            began: Instant::now(),
            time: self.next(),
        }
    }

    fn next(&self) -> Duration {
        Duration::from_nanos(self.next.load(Ordering::Relaxed))
    }

    /// A wait took so long. If two threads end waits at once, one result is lost: the next look-out is a little too
    /// long or too short.
    fn learn(&self, took: Duration) {
        let next = if took <= SOON { LONGEST } else { self.next() / 2 };
        let next = if next < LEAST { Duration::ZERO } else { next };
        self.next.store(next.as_nanos() as u64, Ordering::Relaxed);
    }
}

/// One wait, until it is dropped.
#[derive(Debug)]
pub(super) struct LookOut<'a> {
    of: &'a LookOuts,
    began: Instant,
    time: Duration,
}

impl LookOut<'_> {
    /// Whether to look again before sleeping.
    pub(super) fn goes_on(&self) -> bool {
        !self.time.is_zero() && self.began.elapsed() < self.time
    }
}

impl Drop for LookOut<'_> {
    fn drop(&mut self) {
        self.of.learn(self.began.elapsed());
    }
}

#[cfg(test)]
impl LookOuts {
    const ENDLESS: Duration = Duration::from_secs(1 << 30);

    /// The next look-out has no end, until a wait is learnt from.
    pub(super) fn endless() -> LookOuts {
        LookOuts::of(LookOuts::ENDLESS)
    }

    pub(super) fn are_endless(&self) -> bool {
        self.next() == LookOuts::ENDLESS
    }

    /// There is no next look-out.
    pub(super) fn none() -> LookOuts {
        LookOuts::of(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_end_late_are_looked_out_for_less_and_one_that_ends_soon_fully_again() {
        let waits = LookOuts::default();
        let late = SOON + Duration::from_nanos(1);
        let mut times = vec![waits.next()];
        while times.len() < 8 {
            waits.learn(late);
            times.push(waits.next());
        }
        assert_eq!(times[0], LONGEST);
        assert!(
            times.windows(2).all(|two| two[1] < two[0] || two[1].is_zero()),
            "{times:?}"
        );
        assert_eq!(times[7], Duration::ZERO, "{times:?}");
        waits.learn(SOON);
        assert_eq!(waits.next(), LONGEST);
        assert!(LookOuts::endless().begin().goes_on());
        assert!(!LookOuts::none().begin().goes_on());
    }
}
