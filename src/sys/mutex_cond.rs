//! A pthread mutex with its condition variable, at fixed addresses, for a program in C to wait on (FI_WAIT_MUTEX_COND).
//! Knows nothing of what the program waits for. Called by `api`.

use super::forks::Process;
use core::cell::UnsafeCell;
use core::fmt;

/// The pair. It is on the heap, so that the addresses that a program was given stay valid when its owner moves.
pub struct MutexCond(Box<Pair>);

struct Pair {
    process: Process,
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    cond: UnsafeCell<libc::pthread_cond_t>,
}

// SAFETY: both are made to be used from several threads, and are only ever handed to pthread calls.
unsafe impl Sync for Pair {}
// SAFETY: as above; moving the box does not move them.
unsafe impl Send for Pair {}

impl MutexCond {
    pub fn new() -> MutexCond {
        MutexCond(Box::new(Pair {
            process: Process::this(),
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            cond: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
        }))
    }

    /// Wakes all who wait on the condition. Waits for the mutex first, so that nobody who holds it on the way into its
    /// wait is missed: call it from a thread that holds nothing else.
    pub fn broadcast(&self) {
        // SAFETY: both were made by their initializers and stay where they are as long as `self`.
        unsafe {
            libc::pthread_mutex_lock(self.mutex());
            libc::pthread_cond_broadcast(self.cond());
            libc::pthread_mutex_unlock(self.mutex());
        }
    }

    pub fn mutex(&self) -> *mut libc::pthread_mutex_t {
        self.0.mutex.get()
    }

    pub fn cond(&self) -> *mut libc::pthread_cond_t {
        self.0.cond.get()
    }

    /// Takes the mutex, as a program does, and waits on the condition while `until` says no.
    #[cfg(test)]
    pub fn wait(&self, mut until: impl FnMut() -> bool) {
        // SAFETY: as in `broadcast`.
        unsafe { libc::pthread_mutex_lock(self.mutex()) };
        while !until() {
            // SAFETY: as in `broadcast`; this thread holds the mutex.
            unsafe { libc::pthread_cond_wait(self.cond(), self.mutex()) };
        }
        // SAFETY: as in `broadcast`.
        unsafe { libc::pthread_mutex_unlock(self.mutex()) };
    }
}

impl Default for MutexCond {
    fn default() -> Self {
        MutexCond::new()
    }
}

impl fmt::Debug for MutexCond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MutexCond({:p}, {:p})", self.mutex(), self.cond())
    }
}

impl Drop for MutexCond {
    fn drop(&mut self) {
        // In a child of fork there may be waiters whose threads it does not have: destroying would wait for them for
        // ever.
        if !self.0.process.is_this() {
            return;
        }
        // SAFETY: nobody may wait any more: the object that the pair belongs to is closed.
        unsafe {
            libc::pthread_cond_destroy(self.cond());
            libc::pthread_mutex_destroy(self.mutex());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_broadcast_wakes_who_waits() {
        let (pair, done) = (MutexCond::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| pair.wait(|| done.load(Ordering::SeqCst)));
            done.store(true, Ordering::SeqCst);
            pair.broadcast();
        });
    }
    #[test]
    fn a_child_leaves_it_though_others_wait() {
        let (pair, waits, done) = (MutexCond::new(), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pair.wait(|| {
                    waits.store(true, Ordering::SeqCst);
                    done.load(Ordering::SeqCst)
                });
            });
            while !waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // It had the mutex when it said so, and gives it up only to wait.
            // SAFETY: as in `broadcast`.
            unsafe {
                libc::pthread_mutex_lock(pair.mutex());
                libc::pthread_mutex_unlock(pair.mutex());
            }
            // SAFETY: the child's copy, which nobody uses after this.
            let child = Child::run(|| drop(unsafe { core::ptr::read(&pair) }));
            done.store(true, Ordering::SeqCst);
            pair.broadcast();
            assert_eq!(child.wait(), 0);
        });
    }
}
