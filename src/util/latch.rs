//! The lock under `lock` and `closable`: who has it, and whether somebody waits for it.
//!
//! An object is told at its making whether calls may come from several threads at once (FI_THREAD_SAFE and the like) or
//! whether the application promised to make them one after the other (FI_THREAD_DOMAIN, FI_THREAD_COMPLETION). With the
//! promise, taking the lock costs a plain load and a plain store, no atomic read-modify-write. The promise is the
//! application's: calls that overlap in spite of it are a data race of the application's own making, as they are in C.
//!
//! A thread that polls takes the lock again a moment after it gave it back, so that a waiter on another processor would
//! hardly ever find it free. Therefore waiters are counted, and whoever comes while there are any lets them go first.
//! The count is a hint: who has the lock is decided by `held` alone. Knows no value; used by the two modules above.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How often a waiter looks before it lets other threads have the processor. The holder's work is short, so looking
/// mostly pays.
const SPINS: u32 = 100;
/// How often a newcomer lets those look who have waited longer, before it tries itself.
const GRACE: u32 = 16;

pub(super) struct Latch {
    held: AtomicBool,
    locked: bool,
    /// Threads in `wait`.
    wanted: AtomicU32,
}

impl Latch {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(locked: bool) -> Latch {
        Latch {
            held: AtomicBool::new(false),
            locked,
            wanted: AtomicU32::new(0),
        }
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Takes the lock if nobody has it now.
    #[inline]
    pub fn try_take(&self) -> bool {
        if self.locked {
            self.exchange()
        } else {
            self.take_alone()
        }
    }

    /// Takes the lock if nobody has it now or waits for it.
    #[inline]
    pub fn try_in_turn(&self) -> bool {
        if self.locked {
            self.wanted.load(Ordering::Relaxed) == 0 && self.exchange()
        } else {
            self.take_alone()
        }
    }

    /// SYNC POINT: the acquire meets the release in `give`.
    #[inline]
    fn exchange(&self) -> bool {
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// The same where the application orders its calls.
    #[inline]
    fn take_alone(&self) -> bool {
        let free = !self.held.load(Ordering::Acquire);
        if free {
            self.held.store(true, Ordering::Relaxed);
        }
        free
    }

    /// Waits for the lock. False: `over` says that there is nothing to wait for any more.
    #[cold]
    pub fn wait(&self, over: impl Fn() -> bool) -> bool {
        let others = self.wanted.fetch_add(1, Ordering::Relaxed) > 0;
        let taken = self.look(if others { GRACE } else { 0 }, &over);
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        taken
    }

    fn look(&self, grace: u32, over: &impl Fn() -> bool) -> bool {
        for _ in 0..grace {
            core::hint::spin_loop();
        }
        loop {
            for _ in 0..SPINS {
                // Looks before it tries: a failed try would take the cache line away from the holder.
                if !self.held.load(Ordering::Relaxed) && self.try_take() {
                    return true;
                }
                core::hint::spin_loop();
            }
            if over() {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// For a thread that can as well come again later: gives others a moment, and its processor if that is not enough.
    #[cold]
    pub fn stand_back(&self, over: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            if over() {
                return false;
            }
            core::hint::spin_loop();
            if !self.held.load(Ordering::Relaxed) && self.try_in_turn() {
                return true;
            }
        }
        std::thread::yield_now();
        false
    }

    /// Waits until nobody has the lock, without taking it: who had it when this was called has given it back. Returns as
    /// well when `over` says so.
    pub fn pass(&self, over: impl Fn() -> bool) {
        // SYNC POINT: the acquire meets the release in `give`.
        let mut tries = 0u32;
        while self.held.load(Ordering::Acquire) && !over() {
            tries = tries.wrapping_add(1);
            if tries % SPINS == 0 {
                std::thread::yield_now();
            }
            core::hint::spin_loop();
        }
    }

    /// Gives the lock back. Only for who has it.
    #[inline]
    pub fn give(&self) {
        // SYNC POINT: the release meets the acquire in `try_take`.
        self.held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_later_lets_waiters_go_first() {
        let latch = Latch::new(true);
        latch.wanted.store(1, Ordering::Relaxed);
        assert!(!latch.try_in_turn() && !latch.stand_back(|| false), "somebody waits");
        assert!(latch.wait(|| false), "one of those who wait has it");
        assert_eq!(latch.wanted.load(Ordering::Relaxed), 1);
        latch.give();
        latch.wanted.store(0, Ordering::Relaxed);
        assert!(latch.try_in_turn() && !latch.try_in_turn());
    }

    #[test]
    fn passing_waits_for_the_holder() {
        for locked in [true, false] {
            let latch = Latch::new(locked);
            latch.pass(|| false);
            assert!(latch.try_take());
            latch.pass(|| true);
            std::thread::scope(|scope| {
                let passing = scope.spawn(|| latch.pass(|| false));
                assert!(!passing.is_finished());
                latch.give();
                passing.join().unwrap();
            });
        }
    }

    #[test]
    fn a_wait_for_nothing_ends() {
        let latch = Latch::new(true);
        assert!(latch.try_take());
        assert!(!latch.wait(|| true) && !latch.stand_back(|| true));
        assert_eq!(latch.wanted.load(Ordering::Relaxed), 0);
    }
}
