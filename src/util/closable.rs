//! A value that ends before the references to it do, behind a `Latch` as `lock` has it.
//!
//! A thread that drives an endpoint may still have a reference to it when another thread closes it. So closing drops the
//! value under its lock and never gives the lock back: whoever comes later finds nothing to enter, and whoever is inside
//! is waited for. As the lock of a closed value looks like one that is held, the way of a call that gets in is not one
//! instruction longer for it. Knows nobody; used by endpoints.

use super::latch::Latch;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

pub struct Closable<T> {
    latch: Latch,
    /// The value is gone, and the latch is held by nobody. Written by who has the latch.
    closed: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: `value` is reached only by who has taken the latch, as in `OptLock`, and by who has changed `closed` back.
unsafe impl<T: Send> Sync for Closable<T> {}

impl<T> Closable<T> {
    /// `locked`: calls may come from several threads at once.
    pub const fn new(value: T, locked: bool) -> Self {
        Closable {
            latch: Latch::new(locked),
            closed: AtomicBool::new(false),
            value: UnsafeCell::new(Some(value)),
        }
    }

    pub fn is_closed(&self) -> bool {
        // SYNC POINT: the acquire meets the release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Waits for the lock. None: the value is closed. Taking it twice in one thread waits for ever.
    #[inline]
    pub fn enter(&self) -> Option<Entered<'_, T>> {
        (self.latch.try_in_turn() || self.latch.wait(|| self.is_closed())).then(|| self.entered())
    }

    /// The same for a thread that can as well come again later: not while others are inside or wait.
    #[inline]
    pub fn poll(&self) -> Option<Entered<'_, T>> {
        (self.latch.try_in_turn() || self.latch.stand_back(|| self.is_closed())).then(|| self.entered())
    }

    /// Waits until who was inside when this was called has left.
    pub fn pass(&self) {
        self.latch.pass(|| self.is_closed());
    }

    /// Drops the value, after who is inside. When this returns nobody is inside, and nobody ever comes. False: it was
    /// closed before.
    pub fn close(&self) -> bool {
        let Some(inside) = self.enter() else { return false };
        // Dropping the guard would give the latch back.
        let _kept = ManuallyDrop::new(inside);
        // SAFETY: the latch is held, by a guard that opens nothing any more.
        drop(unsafe { (*self.value.get()).take() });
        // SYNC POINT: the release meets the acquires in `is_closed` and `reopen`.
        self.closed.store(true, Ordering::Release);
        true
    }

    /// Puts another value in place of one that was closed; else the new one comes back.
    pub fn reopen(&self, value: T) -> Result<(), T> {
        // Of several that come at once, one gets the latch that `close` kept.
        let closed = self
            .closed
            .compare_exchange(true, false, Ordering::Acquire, Ordering::Relaxed);
        if closed.is_err() {
            return Err(value);
        }
        let _inside = self.entered();
        // SAFETY: the latch is held, and was ours to take; there is no guard but this one, which opens nothing.
        unsafe { *self.value.get() = Some(value) };
        Ok(())
    }

    /// The guard of who has taken the latch: dropping it gives the latch back.
    #[inline]
    fn entered(&self) -> Entered<'_, T> {
        Entered {
            closable: self,
            _here: PhantomData,
        }
    }
}

/// The right to use the value.
pub struct Entered<'a, T> {
    closable: &'a Closable<T>,
    /// Not Send: what is done under the lock is done by the thread that took it.
    _here: PhantomData<*const T>,
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard has the latch, so nobody else has a reference; and there is a value, as `close` keeps
        // the latch when it has taken that out.
        unsafe { (*self.closable.value.get()).as_ref().unwrap_unchecked() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` keeps this guard from giving a second one.
        unsafe { (*self.closable.value.get()).as_mut().unwrap_unchecked() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.closable.latch.give();
    }
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
