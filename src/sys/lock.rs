//! A lock for statics that a child of fork can take, whatever the parent's other threads were doing.
//!
//! A `std::sync::Mutex` stays locked for ever in the child if another thread held it at the fork. All these locks are
//! taken just before a fork and released on both sides after it (`hold_across_fork`), so the child finds what they
//! guard whole. Called by `api` and `abi`, which lists the locks in the order in which they are nested.

use super::forks::at_least_once;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use lock_api::{GuardNoSend, Mutex, MutexGuard, RawMutex};

/// A mutual-exclusion lock for a `static`: it must not move once it is used. Taking it twice in one thread waits for
/// ever: never call out while holding it.
pub type Lock<T> = Mutex<Raw, T>;

/// The right to use what the lock guards.
pub type Guard<'a, T> = MutexGuard<'a, Raw, T>;

/// The bare lock: a mutex of the C library, which threads sleep on and which can be held across fork.
pub struct Raw(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made to be used from several threads.
unsafe impl Sync for Raw {}

// SAFETY: a pthread mutex is held by one thread at a time.
unsafe impl RawMutex for Raw {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: Raw = Raw(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
    /// The thread that took a pthread mutex gives it back.
    type GuardMarker = GuardNoSend;

    fn lock(&self) {
        // SAFETY: the mutex was made by PTHREAD_MUTEX_INITIALIZER and does not move.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    fn try_lock(&self) -> bool {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    unsafe fn unlock(&self) {
        // SAFETY: as in `lock`; only the holder calls this.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// A lock of any type, for the list of locks to hold across fork.
pub trait Held: Sync {
    fn raw(&self) -> &Raw;
}

impl<T: Send> Held for Lock<T> {
    fn raw(&self) -> &Raw {
        // SAFETY: only the handlers of fork unlock it, after they have taken it.
        unsafe { Mutex::raw(self) }
    }
}

/// The list handed to `hold_across_fork`, as a thin pointer.
static HELD: AtomicPtr<&'static [&'static dyn Held]> = AtomicPtr::new(core::ptr::null_mut());

/// The thread that is forking and holds them, and how often it was asked to beyond the first time.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
static AGAIN: AtomicU32 = AtomicU32::new(0);

/// From now on every fork of the process waits for these locks, outermost first. It is the same list in every call.
pub fn hold_across_fork(locks: &'static &'static [&'static dyn Held]) {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Nobody returns from here, and takes a lock, before the handlers are there.
    at_least_once(&DONE, || {
        HELD.store((&raw const *locks).cast_mut(), Ordering::Release);
        install();
    });
}

/// Installs the handlers, once or several times.
fn install() {
    // SAFETY: the handlers are functions of this library; glibc forgets them when the library is unloaded.
    unsafe { libc::pthread_atfork(Some(acquire_all), Some(release_all), Some(release_all)) };
}

fn held() -> &'static [&'static dyn Held] {
    let list = HELD.load(Ordering::Acquire);
    // SAFETY: null or the 'static list stored by `hold_across_fork`, which nobody writes.
    unsafe { list.as_ref() }.map_or(&[], |locks| locks)
}

/// Only the thread that holds the locks finds itself there, and only it changes what is there.
extern "C" fn acquire_all() {
    // SAFETY: has no conditions. The name of a thread is the same in a child.
    let me = unsafe { libc::pthread_self() } as usize;
    if HOLDER.load(Ordering::Relaxed) == me {
        AGAIN.fetch_add(1, Ordering::Relaxed);
        return;
    }
    held().iter().for_each(|lock| lock.raw().lock());
    HOLDER.store(me, Ordering::Relaxed);
}

extern "C" fn release_all() {
    if AGAIN.load(Ordering::Relaxed) > 0 {
        AGAIN.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    HOLDER.store(0, Ordering::Relaxed);
    // SAFETY: this thread took them in `acquire_all`; in a child it is the only one.
    held().iter().rev().for_each(|lock| unsafe { lock.raw().unlock() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;

    static COUNT: Lock<u64> = Lock::new(0);

    /// As by several threads that begin to use the library at once.
    #[test]
    fn handlers_that_are_installed_twice_hold_the_locks_once() {
        crate::abi::process::at_fork();
        install();
        let take_all = || held().iter().for_each(|lock| assert!(lock.raw().try_lock()));
        assert_eq!(Child::run(take_all).wait(), 0);
    }

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
