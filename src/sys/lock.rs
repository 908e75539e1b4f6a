//! A lock for statics that a child of fork can take, whatever the parent's other threads were doing.
//!
//! A `std::sync::Mutex` stays locked for ever in the child if another thread held it at the fork. All these locks are
//! taken just before a fork and released on both sides after it (`hold_across_fork`), so the child finds what they
//! guard whole. Called by `api` and `abi`, which lists the locks in the order in which they are nested.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A mutual-exclusion lock for a `static`: it must not move once it is used.
pub struct Lock<T> {
    raw: Raw,
    value: UnsafeCell<T>,
}

/// The bare lock. Public only because it is named in `Held`; nobody outside can lock or unlock it.
pub struct Raw(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made to be used from several threads.
unsafe impl Sync for Raw {}

// SAFETY: `value` is reached only through a guard, and only one guard lives at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl Raw {
    fn acquire(&self) {
        // SAFETY: the mutex was made by PTHREAD_MUTEX_INITIALIZER and does not move.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn release(&self) {
        // SAFETY: as above; only the holder calls this.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl<T> Lock<T> {
    pub const fn new(value: T) -> Self {
        Self {
            raw: Raw(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock. Taking it twice in one thread waits for ever: never call out while holding it.
    pub fn lock(&self) -> Guard<'_, T> {
        self.raw.acquire();
        Guard {
            lock: self,
            _here: PhantomData,
        }
    }
}

/// The right to use what the lock guards.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// Makes it not Send: the thread that locked a pthread mutex must unlock it.
    _here: PhantomData<*const T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so nobody else has a reference.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` keeps this guard from giving a second one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.release();
    }
}

/// A lock of any type, in the list of locks to hold across fork.
pub trait Held: Sync {
    fn raw(&self) -> &Raw;
}

impl<T: Send> Held for Lock<T> {
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

/// The list handed to `hold_across_fork`, as a thin pointer.
static HELD: AtomicPtr<&'static [&'static dyn Held]> = AtomicPtr::new(core::ptr::null_mut());

/// From now on every fork of the process waits for these locks, outermost first. Only the first call counts.
pub fn hold_across_fork(locks: &'static &'static [&'static dyn Held]) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    HELD.store((&raw const *locks).cast_mut(), Ordering::Release);
    // SAFETY: the handlers are functions of this library; glibc forgets them when the library is unloaded.
    unsafe { libc::pthread_atfork(Some(acquire_all), Some(release_all), Some(release_all)) };
}

fn held() -> &'static [&'static dyn Held] {
    let list = HELD.load(Ordering::Acquire);
    // SAFETY: null or the 'static list stored by `hold_across_fork`, which nobody writes.
    unsafe { list.as_ref() }.map_or(&[], |locks| locks)
}

extern "C" fn acquire_all() {
    held().iter().for_each(|lock| lock.raw().acquire());
}

extern "C" fn release_all() {
    held().iter().rev().for_each(|lock| lock.raw().release());
}

#[cfg(test)]
mod tests {
    use super::*;

    static COUNT: Lock<u64> = Lock::new(0);

    #[test]
    fn one_guard_at_a_time() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..10_000 {
                        *COUNT.lock() += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(*COUNT.lock(), 40_000);
    }
}
