//! When a thread that polls in vain yields its processor: as often as that is of use.
//!
//! With more threads than processors, as on every laptop and in containers, the thread that would make progress may
//! only run when the polling one yields. How long a yield took tells whether another thread wanted the processor. If
//! so, the next yield of the same wait comes sooner; if not, later, so that with a processor for each thread there are
//! hardly any. Each wait begins with many polls, as a yield to others costs a time slice.
//!
//! Each queue, counter and the like has one. Threads that poll the same one at once may lose each other's counts, which
//! only moves a yield.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Polls in vain between two yields: at the start of a wait, the fewest where others want the processor, the most where
/// nobody does. A poll takes 20 to 100 ns, so with the most, yields cost less than a hundredth of the time, and a
/// waiting thread still yields long before its time slice ends: some schedulers heed a yield only now and then.
/// Measured with 4 ranks of mpi4py on 2 processors: the run took 19 s with FIRST = 1000, 4 s with 200 or with 50.
const FIRST: u32 = 200;
const LEAST: u32 = 16;
const MOST: u32 = 4000;
/// A yield that takes less let nobody run. Measured: 0.3 to 0.6 us for those, 2 us and more if another thread ran.
const NOBODY: Duration = Duration::from_nanos(1500);

#[derive(Debug)]
pub struct Patience {
    /// Lower half: polls until the next yield. Upper half: what that count started from.
    looks: AtomicU64,
}

const fn looks(left: u32, pace: u32) -> u64 {
    left as u64 | (pace as u64) << 32
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            looks: AtomicU64::new(looks(FIRST, FIRST)),
        }
    }
}

impl Patience {
    /// A poll found something: the wait is over.
    #[inline]
    pub fn found(&self) {
        self.looks.store(looks(FIRST, FIRST), Ordering::Relaxed);
    }

    /// A poll found nothing. May yield, so the caller holds no lock.
    #[inline]
    pub fn nothing(&self) {
        let now = self.looks.load(Ordering::Relaxed);
        if now as u32 > 0 {
            self.looks.store(now - 1, Ordering::Relaxed);
        } else {
            self.let_others_run(yield_now);
        }
    }

    #[cold]
    fn let_others_run(&self, yield_now: impl FnOnce() -> Duration) {
        let pace = (self.looks.load(Ordering::Relaxed) >> 32) as u32;
        let pace = if yield_now() < NOBODY {
            (pace * 2).min(MOST)
        } else {
            (pace / 8).max(LEAST)
        };
        self.looks.store(looks(pace, pace), Ordering::Relaxed);
    }
}

/// Yields, and returns how long that took.
fn yield_now() -> Duration {
    let begin = Instant::now();
    std::thread::yield_now();
    begin.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHERS: Duration = Duration::from_millis(3);

    /// How many looks in vain come before the next yield, which takes so long.
    fn looks(patience: &Patience, yield_takes: Duration) -> u32 {
        let mut looks = 1;
        while patience.looks.load(Ordering::Relaxed) as u32 > 0 {
            patience.nothing();
            looks += 1;
        }
        patience.let_others_run(|| yield_takes);
        looks
    }

    #[test]
    fn yields_come_sooner_where_others_run_and_later_where_nobody_does() {
        let patience = Patience::default();
        let mut last = looks(&patience, OTHERS);
        assert_eq!(last, FIRST + 1);
        for yield_takes in [OTHERS; 5] {
            let now = looks(&patience, yield_takes);
            assert!(now < last || now == LEAST + 1, "{now} after {last}");
            last = now;
        }
        assert_eq!(last, LEAST + 1);
        for yield_takes in [Duration::ZERO; 12] {
            let now = looks(&patience, yield_takes);
            assert!(now >= last && now <= MOST + 1, "{now} after {last}");
            last = now;
        }
        assert_eq!(last, MOST + 1);
    }

    #[test]
    fn what_is_found_begins_the_count_again() {
        let patience = Patience::default();
        for _ in 0..3 * FIRST {
            patience.nothing();
            patience.found();
        }
        assert_eq!(looks(&patience, OTHERS), FIRST + 1);
        assert!(looks(&patience, OTHERS) < FIRST);
        patience.found();
        assert_eq!(looks(&patience, OTHERS), FIRST + 1, "another wait");
    }
}
