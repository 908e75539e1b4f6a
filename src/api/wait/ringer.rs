//! FI_WAIT_MUTEX_COND for programs that wait on the condition themselves: a thread that sleeps on the bell in their
//! place and then wakes them.
//!
//! Whatever brings news holds internal locks, and a program may hold the mutex while it calls us, so the news cannot
//! take the mutex itself. The thread starts when a program first asks for the pair, and sleeps between one fi_trywait
//! and the next. Knows bells only. Called by `wait`.

use super::Handle;
use super::bell::Bell;
use crate::abi::types::FI_EAGAIN;
use crate::api::errno::{Errno, Result};
use crate::sys::mutex_cond::MutexCond;
use crate::sys::thread::Thread;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub struct Ringer {
    shared: Arc<RingerShared>,
    thread: Mutex<Option<Thread>>,
}

struct RingerShared {
    bell: Arc<Bell>,
    pair: MutexCond,
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

/// What the thread is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Nothing,
    /// A program goes to sleep on the pair: wake it at the next ring.
    Ring,
    End,
}

impl Ringer {
    pub fn new(bell: Arc<Bell>) -> Ringer {
        Ringer {
            shared: Arc::new(RingerShared {
                bell,
                pair: MutexCond::new(),
                wanted: Mutex::new(Wanted::Nothing),
                changed: Condvar::new(),
            }),
            thread: Mutex::new(None),
        }
    }

    /// The mutex and condition for the program. Starts the thread.
    pub fn handle(&self) -> Result<Handle> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Some(Thread::start("fi_wait", move || shared.run()).map_err(|_| Errno(FI_EAGAIN))?);
        }
        Ok(Handle::MutexCond {
            mutex: self.shared.pair.mutex(),
            cond: self.shared.pair.cond(),
        })
    }

    /// fi_trywait: the next ring of the bell wakes the program that sleeps on the pair.
    pub fn listen(&self) {
        self.shared.want(Wanted::Ring);
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        // A child of fork has no such thread, and its locks may be held for ever.
        if thread.is_here() {
            self.shared.want(Wanted::End);
            self.shared.bell.raise();
        }
        thread.join();
    }
}

impl RingerShared {
    fn want(&self, what: Wanted) {
        *self.wanted() = what;
        self.changed.notify_one();
    }

    fn run(&self) {
        loop {
            let mut wanted = self.wanted();
            while *wanted == Wanted::Nothing {
                wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
            }
            if *wanted == Wanted::End {
                return;
            }
            // Reset before the sleep, so that a request during it is seen after it.
            *wanted = Wanted::Nothing;
            drop(wanted);
            self.bell.listen();
            self.pair.broadcast();
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::types::FI_WAIT_MUTEX_COND;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// A program that holds the mutex from fi_trywait to its wait is woken by every piece of news.
    #[test]
    fn every_ring_reaches_who_waits_on_the_condition() {
        const ROUNDS: u32 = 200;
        let bell = Arc::new(Bell::new(FI_WAIT_MUTEX_COND).unwrap());
        let ringer = Ringer::new(bell.clone());
        ringer.handle().unwrap();
        let (news, armed) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    ringer.shared.pair.wait(|| {
                        let there = || news.load(Ordering::SeqCst) >= round;
                        let announce = || {
                            armed.store(true, Ordering::SeqCst);
                            !there()
                        };
                        if super::super::block::trywait(&bell, there, announce).is_err() {
                            return true;
                        }
                        ringer.listen();
                        false
                    });
                    while news.load(Ordering::SeqCst) < round {
                        std::thread::yield_now();
                    }
                }
            });
            for _ in 0..ROUNDS {
                news.fetch_add(1, Ordering::SeqCst);
                if armed.swap(false, Ordering::SeqCst) {
                    bell.raise();
                }
                std::thread::yield_now();
            }
        });
    }
}
