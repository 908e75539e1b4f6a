//! The raw lock behind `lock` and `closable`: spin's mutex, made optional and fair to waiters.
//!
//! An object is told when it is made whether calls may come from several threads at once (FI_THREAD_SAFE and the like)
//! or whether the application promised to make them one after the other (FI_THREAD_DOMAIN, FI_THREAD_COMPLETION). With
//! the promise, taking the lock costs a plain load and a plain store, no atomic read-modify-write. Calls that overlap
//! in spite of it are a data race of the application's own making, as they are in C.
//!
//! A thread that polls takes the lock again a moment after it released it, so a waiter on another processor would
//! hardly ever find it free. Therefore waiters are counted, and a newcomer lets them go first. The count is a hint: who
//! has the lock is decided by `Held` alone. lock_api puts the value and its guards around it; the three functions are
//! the ways to wait that lock_api does not have.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use lock_api::{GuardNoSend, Mutex, MutexGuard, RawMutex};
use spin::mutex::SpinMutex;

/// How often a waiter looks before it yields its processor. The holder's work is short, so looking mostly pays.
const SPINS: u32 = 100;
/// How often a new waiter spins before its first try, so that those who have waited longer come first.
const GRACE: u32 = 16;

pub struct RawOptLock {
    held: Held,
    /// Threads in `wait`.
    wanted: AtomicU32,
}

/// Whether a thread has the lock.
enum Held {
    /// The application makes its calls one after the other.
    Ordered(AtomicBool),
    /// Calls may come from several threads at once.
    Threads(SpinMutex<()>),
}

impl RawOptLock {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(locked: bool) -> RawOptLock {
        RawOptLock {
            held: if locked {
                Held::Threads(SpinMutex::INIT)
            } else {
                Held::Ordered(AtomicBool::new(false))
            },
            wanted: AtomicU32::new(0),
        }
    }

    /// Takes the lock if nobody has it or waits for it.
    #[inline]
    fn try_in_turn(&self) -> bool {
        match &self.held {
            Held::Threads(raw) => self.wanted.load(Ordering::Relaxed) == 0 && RawMutex::try_lock(raw),
            Held::Ordered(held) => take_ordered(held),
        }
    }

    /// Waits for the lock. False: `over` says that there is nothing to wait for any more.
    #[cold]
    fn wait(&self, over: impl Fn() -> bool) -> bool {
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
                if !self.is_locked() && self.try_lock() {
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

    /// For a thread that can as well come again later: gives the holder a moment, and its processor if that is not
    /// enough.
    #[cold]
    fn stand_back(&self, over: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            if over() {
                return false;
            }
            core::hint::spin_loop();
            if !self.is_locked() && self.try_in_turn() {
                return true;
            }
        }
        std::thread::yield_now();
        false
    }

    /// Waits until whoever had the lock when this was called has released it, or `over` says so.
    fn pass(&self, over: impl Fn() -> bool) {
        match &self.held {
            // Taking it orders what follows behind the holder's work.
            Held::Threads(raw) => {
                if self.wait(over) {
                    // SAFETY: `wait` took the lock.
                    unsafe { raw.unlock() };
                }
            }
            // It is only looked at: taking it beside a holder would let two in.
            Held::Ordered(held) => {
                while held.load(Ordering::Acquire) && !over() {
                    std::thread::yield_now();
                }
            }
        }
    }
}

/// Waits for the lock. None: `over` says that there is nothing to wait for any more.
#[inline]
pub(super) fn enter<T>(mutex: &Mutex<RawOptLock, T>, over: impl Fn() -> bool) -> Option<MutexGuard<'_, RawOptLock, T>> {
    guard(mutex, |raw| raw.try_in_turn() || raw.wait(over))
}

/// The lock, for a thread that can as well come again later: not while others have it or wait for it.
#[inline]
pub(super) fn poll<T>(mutex: &Mutex<RawOptLock, T>, over: impl Fn() -> bool) -> Option<MutexGuard<'_, RawOptLock, T>> {
    guard(mutex, |raw| raw.try_in_turn() || raw.stand_back(over))
}

/// Waits until whoever had the lock when this was called has released it, or `over` says so.
pub(super) fn pass<T>(mutex: &Mutex<RawOptLock, T>, over: impl Fn() -> bool) {
    // SAFETY: `pass` unlocks only what it has taken itself.
    unsafe { mutex.raw() }.pass(over);
}

/// The guard, if `take` has taken the lock.
#[inline]
fn guard<T>(
    mutex: &Mutex<RawOptLock, T>,
    take: impl FnOnce(&RawOptLock) -> bool,
) -> Option<MutexGuard<'_, RawOptLock, T>> {
    // SAFETY: `take` unlocks nothing.
    let taken = take(unsafe { mutex.raw() });
    // SAFETY: the lock was taken just now, and this is its only guard.
    taken.then(|| unsafe { mutex.make_guard_unchecked() })
}

/// Takes the lock of an application that orders its calls. The acquire meets the release in `unlock`, so work that
/// it hands from one thread to another is seen.
#[inline]
fn take_ordered(held: &AtomicBool) -> bool {
    let free = !held.load(Ordering::Acquire);
    if free {
        held.store(true, Ordering::Relaxed);
    }
    free
}

// SAFETY: of threads, spin's mutex lets one in at a time. With ordered calls one thread comes at a time, and is refused
// while `held` is set: so nobody gets in twice, as by a call from inside a callback.
unsafe impl RawMutex for RawOptLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: RawOptLock = RawOptLock::new(true);
    /// What is done under the lock is done by the thread that took it.
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.try_in_turn() {
            self.wait(|| false);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        match &self.held {
            Held::Threads(raw) => RawMutex::try_lock(raw),
            Held::Ordered(held) => take_ordered(held),
        }
    }

    #[inline]
    unsafe fn unlock(&self) {
        match &self.held {
            // SAFETY: the caller has the lock, as the trait asks.
            Held::Threads(raw) => unsafe { raw.unlock() },
            Held::Ordered(held) => held.store(false, Ordering::Release),
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        match &self.held {
            Held::Threads(raw) => raw.is_locked(),
            Held::Ordered(held) => held.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RawOptLock {
        fn give(&self) {
            // SAFETY: the tests give back what they have taken.
            unsafe { self.unlock() };
        }
    }

    #[test]
    fn who_comes_later_lets_waiters_go_first() {
        let lock = RawOptLock::new(true);
        lock.wanted.store(1, Ordering::Relaxed);
        assert!(!lock.try_in_turn() && !lock.stand_back(|| false), "somebody waits");
        assert!(lock.wait(|| false), "one of those who wait has it");
        assert_eq!(lock.wanted.load(Ordering::Relaxed), 1);
        lock.give();
        lock.wanted.store(0, Ordering::Relaxed);
        assert!(lock.try_in_turn() && !lock.try_in_turn());
    }

    #[test]
    fn passing_waits_for_the_holder() {
        for locked in [true, false] {
            let lock = RawOptLock::new(locked);
            lock.pass(|| false);
            assert!(lock.try_lock());
            lock.pass(|| true);
            std::thread::scope(|scope| {
                let passing = scope.spawn(|| lock.pass(|| false));
                assert!(!passing.is_finished());
                lock.give();
                passing.join().unwrap();
            });
        }
    }

    #[test]
    fn a_wait_for_nothing_ends() {
        let lock = RawOptLock::new(true);
        assert!(lock.try_lock());
        assert!(!lock.wait(|| true) && !lock.stand_back(|| true));
        assert_eq!(lock.wanted.load(Ordering::Relaxed), 0);
    }
}
