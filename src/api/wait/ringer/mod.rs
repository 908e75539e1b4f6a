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
use once_cell::sync::OnceCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Ringer {
    shared: Arc<RingerShared>,
    thread: OnceCell<Thread>,
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
    pub(super) fn new(bell: Arc<Bell>) -> Ringer {
        Ringer {
            shared: Arc::new(RingerShared {
                bell,
                pair: MutexCond::new(),
                wanted: Mutex::new(Wanted::Nothing),
                changed: Condvar::new(),
            }),
            thread: OnceCell::new(),
        }
    }

    /// The mutex and condition for the program. Starts the thread.
    pub(super) fn handle(&self) -> Result<Handle> {
        self.thread.get_or_try_init(|| {
            let shared = self.shared.clone();
            Thread::start("fi_wait", move || shared.run()).map_err(|_| Errno(FI_EAGAIN))
        })?;
        Ok(Handle::MutexCond {
            mutex: self.shared.pair.mutex(),
            cond: self.shared.pair.cond(),
        })
    }

    /// fi_trywait: the next ring of the bell wakes the program that sleeps on the pair.
    pub(super) fn listen(&self) {
        self.shared.want(Wanted::Ring);
    }
}

impl Drop for Ringer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
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
mod tests;
