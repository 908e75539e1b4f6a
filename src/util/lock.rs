//! A lock that is there only when the threading level asks for it: a value behind a `Latch`.
//!
//! Knows nobody; used by every object behind a fid.

use super::latch::Latch;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// A value with a lock around it, or with the application's promise that none is needed.
pub struct OptLock<T> {
    latch: Latch,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is reached only through a guard. When `locked`, one guard lives at a time, whatever the threads; when
// not, the application orders its calls, and the latch still refuses a second guard to whoever comes in the middle of a
// call.
unsafe impl<T: Send> Sync for OptLock<T> {}

impl<T> OptLock<T> {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(value: T, locked: bool) -> Self {
        OptLock {
            latch: Latch::new(locked),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock. Taking it twice in one thread waits for ever: never call out while holding it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if !self.latch.try_in_turn() {
            self.latch.wait(|| false);
        }
        self.guard()
    }

    /// The lock, if nobody has it now.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.latch.try_take().then(|| self.guard())
    }

    /// The lock, for a thread that can as well come again later: not while others have it or wait for it.
    #[inline]
    pub fn poll(&self) -> Option<Guard<'_, T>> {
        (self.latch.try_in_turn() || self.latch.stand_back(|| false)).then(|| self.guard())
    }

    /// The guard of who has taken the latch: dropping it gives the latch back.
    #[inline]
    fn guard(&self) -> Guard<'_, T> {
        Guard {
            lock: self,
            _here: PhantomData,
        }
    }

    /// Whether calls from several threads at once are kept apart.
    pub fn is_locked(&self) -> bool {
        self.latch.is_locked()
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
        self.lock.latch.give();
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
