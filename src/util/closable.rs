//! A value that ends before the references to it do.
//!
//! A thread that drives an endpoint may still have a reference to it when another thread closes it. So closing drops
//! the value under its lock and never releases the lock: a later caller finds nothing to enter, and whoever is inside
//! is waited for. As the lock of a closed value looks like one that is held, a call that gets in pays nothing for it.
//! Knows nobody; used by endpoints.

use super::raw_lock::{self, RawOptLock};
use core::sync::atomic::{AtomicBool, Ordering};
use lock_api::{MappedMutexGuard, Mutex, MutexGuard};

pub struct Closable<T> {
    /// The value is None only while the lock is kept by `close`.
    lock: Mutex<RawOptLock, Option<T>>,
    /// The value is being dropped, or is gone: nobody is inside. Written by whoever has the lock.
    ending: AtomicBool,
    /// The value is gone, and the lock is held by nobody. Written by whoever has the lock.
    closed: AtomicBool,
}

/// The right to use the value.
pub type Entered<'a, T> = MappedMutexGuard<'a, RawOptLock, T>;

impl<T> Closable<T> {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(value: T, locked: bool) -> Self {
        Closable {
            lock: Mutex::from_raw(RawOptLock::new(locked), Some(value)),
            ending: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub fn is_closed(&self) -> bool {
        // SYNC POINT: the acquire meets the release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Waits for the lock. None: the value is closed. Taking it twice in one thread waits for ever.
    #[inline]
    pub fn enter(&self) -> Option<Entered<'_, T>> {
        raw_lock::enter(&self.lock, || self.is_closed()).map(value)
    }

    /// The same for a thread that can as well come again later: not while others are inside or wait.
    #[inline]
    pub fn poll(&self) -> Option<Entered<'_, T>> {
        raw_lock::poll(&self.lock, || self.is_closed()).map(value)
    }

    /// Waits until whoever was inside when this was called has left. Not for the end of the value, which may take long.
    pub fn pass(&self) {
        // SYNC POINT: the acquire meets the release in `close`.
        raw_lock::pass(&self.lock, || self.ending.load(Ordering::Acquire));
    }

    /// Drops the value, once nobody is inside. When this returns nobody is inside, and nobody ever will be. False: it
    /// was closed before.
    pub fn close(&self) -> bool {
        let Some(inside) = raw_lock::enter(&self.lock, || self.is_closed()) else {
            return false;
        };
        // SYNC POINT: the release meets the acquire in `pass`.
        self.ending.store(true, Ordering::Release);
        drop(MutexGuard::leak(inside).take());
        // SYNC POINT: the release meets the acquires in `is_closed` and `reopen`.
        self.closed.store(true, Ordering::Release);
        true
    }

    /// Puts another value in place of one that was closed; else the new one comes back.
    pub fn reopen(&self, value: T) -> Result<(), T> {
        // Of several that come at once, one gets the lock that `close` kept.
        let closed = self
            .closed
            .compare_exchange(true, false, Ordering::Acquire, Ordering::Relaxed);
        if closed.is_err() {
            return Err(value);
        }
        // SAFETY: `close` kept the lock without a guard, and changing `closed` back made it ours.
        let mut inside = unsafe { self.lock.make_guard_unchecked() };
        self.ending.store(false, Ordering::Relaxed);
        *inside = Some(value);
        Ok(())
    }
}

/// The way from the lock to the value.
#[inline]
fn value<T>(inside: MutexGuard<'_, RawOptLock, Option<T>>) -> Entered<'_, T> {
    // SAFETY: there is a value, as `close` keeps the lock when it has taken that out.
    MutexGuard::map(inside, |value| unsafe { value.as_mut().unwrap_unchecked() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    /// Says when it is dropped.
    struct Counted<'a>(&'a AtomicUsize, u64);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_closed_value_is_gone_and_can_be_replaced() {
        for locked in [true, false] {
            let dropped = AtomicUsize::new(0);
            let count = || dropped.load(Ordering::SeqCst);
            let value = Closable::new(Counted(&dropped, 1), locked);
            value.enter().unwrap().1 += 1;
            assert_eq!((value.poll().unwrap().1, value.is_closed()), (2, false));
            drop(value.reopen(Counted(&dropped, 7)));
            assert_eq!(
                (count(), value.enter().unwrap().1),
                (1, 2),
                "an open one is not replaced"
            );
            assert!(value.close() && !value.close());
            assert_eq!((count(), value.is_closed()), (2, true));
            assert!(value.enter().is_none() && value.poll().is_none());
            value.pass();
            assert!(value.reopen(Counted(&dropped, 5)).is_ok());
            assert_eq!((count(), value.enter().unwrap().1), (2, 5));
            drop(value);
            assert_eq!(count(), 3);
        }
    }

    #[test]
    fn closing_waits_for_who_is_inside() {
        let value = Closable::new(0, true);
        let mut inside = value.enter().unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| value.close());
            let passing = scope.spawn(|| value.pass());
            *inside += 1;
            assert!(!closing.is_finished() && !passing.is_finished() && !value.is_closed());
            drop(inside);
            assert!(closing.join().unwrap());
            passing.join().unwrap();
        });
        assert!(value.is_closed());
    }

    /// Its end waits for something, as that of an endpoint does for what its peers have not taken.
    struct Lingering<'a>(&'a [AtomicBool; 3]);

    impl Drop for Lingering<'_> {
        fn drop(&mut self) {
            let [ending, passed, passed_before_the_end] = self.0;
            ending.store(true, Ordering::Release);
            let is_passed = (0..100_000).any(|_| {
                std::thread::yield_now();
                passed.load(Ordering::Acquire)
            });
            passed_before_the_end.store(is_passed, Ordering::Release);
        }
    }

    #[test]
    fn nobody_waits_for_the_end_of_a_value_who_waits_for_those_inside() {
        for locked in [true, false] {
            let flags = [const { AtomicBool::new(false) }; 3];
            let value = Closable::new(Lingering(&flags), locked);
            std::thread::scope(|scope| {
                let closing = scope.spawn(|| value.close());
                while !flags[0].load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                value.pass();
                flags[1].store(true, Ordering::Release);
                assert!(closing.join().unwrap());
            });
            assert!(flags[2].load(Ordering::Acquire));
        }
    }

    #[test]
    fn nobody_is_inside_after_closing() {
        for _ in 0..50 {
            let touched = AtomicUsize::new(0);
            let value = Closable::new(&touched, true);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        while !value.is_closed() {
                            if let Some(inside) = value.poll() {
                                inside.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    });
                }
                drop(value.enter());
                assert!(value.close());
                let last = touched.load(Ordering::Relaxed);
                assert!((0..1000).all(|_| touched.load(Ordering::Relaxed) == last));
            });
        }
    }
}
