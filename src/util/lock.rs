//! A lock that is there only when the threading level asks for it.
//!
//! lock_api's mutex around `RawOptLock`. Knows nobody; used by every object behind a fid.

use super::raw_lock::{self, RawOptLock};
use lock_api::{Mutex, MutexGuard};

/// A value with a lock around it, or with the application's promise that none is needed.
pub struct OptLock<T>(Mutex<RawOptLock, T>);

/// The right to use what the lock guards.
pub type Guard<'a, T> = MutexGuard<'a, RawOptLock, T>;

impl<T> OptLock<T> {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(value: T, locked: bool) -> Self {
        OptLock(Mutex::from_raw(RawOptLock::new(locked), value))
    }

    /// Waits for the lock. Taking it twice in one thread waits for ever: never call out while holding it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        self.0.lock()
    }

    /// The lock, if nobody has it now.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.0.try_lock()
    }

    /// The lock, for a thread that can as well come again later: not while others have it or wait for it.
    #[inline]
    pub fn poll(&self) -> Option<Guard<'_, T>> {
        raw_lock::poll(&self.0, || false)
    }

    /// The value, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
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
            assert_eq!(*lock.lock(), 2);
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
