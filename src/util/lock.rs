//! A lock that is there only when the threading level asks for it.
//!
//! An object is told at its making whether calls may come from several threads at once (FI_THREAD_SAFE and the like) or
//! whether the application promised to make them one after the other (FI_THREAD_DOMAIN, FI_THREAD_COMPLETION). With the
//! promise, taking the lock costs a plain load and a plain store, no atomic read-modify-write. The promise is the
//! application's: calls that overlap in spite of it are a data race of the application's own making, as they are in C.
//!
//! Waiters spin a little and then give the processor away. Knows nobody; used by every object behind a fid.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// How often a waiter looks before it lets others run. The holder's work is short, so looking mostly pays.
const SPINS: u32 = 100;

/// A value with a lock around it, or with the application's promise that none is needed.
pub struct OptLock<T> {
    held: AtomicBool,
    locked: bool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is reached only through a guard. When `locked`, one guard lives at a time, whatever the threads; when
// not, the application orders its calls, and `held` still refuses a second guard to whoever comes in the middle of a call.
unsafe impl<T: Send> Sync for OptLock<T> {}

impl<T> OptLock<T> {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(value: T, locked: bool) -> Self {
        OptLock {
            held: AtomicBool::new(false),
            locked,
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock. Taking it twice in one thread waits for ever: never call out while holding it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// The lock, if nobody has it now.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // SYNC POINT: the acquire meets the release in the guard's drop.
        let taken = if self.locked {
            self.held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        } else {
            let free = !self.held.load(Ordering::Acquire);
            if free {
                self.held.store(true, Ordering::Relaxed);
            }
            free
        };
        // A guard may only be made once the lock is had: dropping it gives the lock back.
        taken.then(|| Guard {
            lock: self,
            _here: PhantomData,
        })
    }

    /// Waits until nobody has the lock, without taking it: who had it when this was called has given it back.
    pub fn pass(&self) {
        // SYNC POINT: the acquire meets the release in the guard's drop.
        let mut tries = 0u32;
        while self.held.load(Ordering::Acquire) {
            tries = tries.wrapping_add(1);
            if tries % SPINS == 0 {
                std::thread::yield_now();
            }
            core::hint::spin_loop();
        }
    }

    #[cold]
    fn wait(&self) -> Guard<'_, T> {
        loop {
            for _ in 0..SPINS {
                // Looks before it tries: a failed try would take the cache line away from the holder.
                let free = !self.held.load(Ordering::Relaxed);
                if let Some(guard) = free.then(|| self.try_lock()).flatten() {
                    return guard;
                }
                core::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }

    /// Whether calls from several threads at once are kept apart.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// The value, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// The right to use what the lock guards.
pub struct Guard<'a, T> {
    lock: &'a OptLock<T>,
    /// Not Send: what is done under the lock is done by the thread that took it.
    _here: PhantomData<*const T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so nobody else has a reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` keeps this guard from giving a second one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SYNC POINT: the release meets the acquire in `try_lock`.
        self.lock.held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_kept_apart_when_locked() {
        let lock = OptLock::new(0u64, true);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        // Reads and writes in two steps, so that an overlap would lose a count.
                        let mut count = lock.lock();
                        let seen = *count;
                        core::hint::black_box(&mut *count);
                        *count = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 40_000);
    }

    #[test]
    fn passing_waits_for_the_holder() {
        for locked in [true, false] {
            let lock = OptLock::new(0, locked);
            lock.pass();
            let mut guard = lock.lock();
            std::thread::scope(|scope| {
                let passing = scope.spawn(|| {
                    lock.pass();
                    *lock.lock()
                });
                *guard += 1;
                drop(guard);
                assert_eq!(passing.join().unwrap(), 1);
            });
        }
    }

    #[test]
    fn one_guard_at_a_time_with_and_without_threads() {
        for locked in [true, false] {
            let mut lock = OptLock::new(1, locked);
            let guard = lock.lock();
            assert!(lock.try_lock().is_none());
            assert!(lock.try_lock().is_none(), "a failed try must not give the lock back");
            drop(guard);
            *lock.try_lock().expect("free again") += 1;
            assert_eq!((*lock.lock(), lock.is_locked()), (2, locked));
            assert_eq!(*lock.get_mut(), 2);
        }
    }

    #[test]
    fn work_handed_from_thread_to_thread_is_seen_without_a_lock() {
        let lock = OptLock::new(Vec::new(), false);
        for turn in 0..10 {
            std::thread::scope(|scope| {
                scope.spawn(|| lock.lock().push(turn));
            });
        }
        assert_eq!(*lock.lock(), (0..10).collect::<Vec<_>>());
    }
}
