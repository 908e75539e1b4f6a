//! Waiting politely: whoever looks for something again and again lets others run, as often as that is of use.
//!
//! More threads than processors is every laptop and container: what a thread waits for may then be made by one that only
//! runs when this one stops looking. A yield tells by its time whether anybody wanted the processor. If so, the next
//! of the same wait comes sooner; if not, later, so that with a processor for each thread hardly any is made. Each wait
//! begins with many looks: what comes soon is not worth a time slice, which is the price of a yield among others.
//!
//! Knows nobody; each queue, counter and the like has one. Threads that look at the same one at once may lose each
//! other's counts, which only moves a yield.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Looks in vain between two yields: the first of a wait, where others want the processor, and where nobody does. A look
/// takes 20 to 100 ns, so that with the most a yield to nobody takes less than a hundredth of the time, and so that a
/// waiting thread still gives up the processor long before its time slice ends: some schedulers answer a yield only now
/// and then. Measured with 4 ranks of mpi4py on 2 processors: its messages took 19 s with a first of 1000, 4 s with 200 or
/// with 50.
const FIRST: u32 = 200;
const LEAST: u32 = 16;
const MOST: u32 = 4000;
/// A yield to nobody takes less. Measured: 0.3 to 0.6 us, and 2 us and more if another thread ran.
const NOBODY: Duration = Duration::from_nanos(1500);

#[derive(Debug)]
pub struct Patience {
    /// Looks until the next yield, and in the upper half how many there were after the last one.
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
    /// There was something.
    #[inline]
    pub fn found(&self) {
        self.looks.store(looks(FIRST, FIRST), Ordering::Relaxed);
    }

    /// There was nothing. To be called without locks: others may run now.
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

/// Lets others run, and says how long that took.
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
