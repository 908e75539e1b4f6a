//! How an object is waited for: the wait object it was opened with, and what FI_GETWAIT returns.
//!
//! Knows nothing of what queues and counters hold. Called by `cq`, `cntr` and `eq`.
//!
//! - `bell`: what threads sleep on; `block`: waiting and fi_trywait, written once; `look_out`: how long a wait goes on
//!   looking before it sleeps;
//! - `marks`: what each thread has seen; `set`: wait sets of several objects; `ringer`: the thread behind
//!   FI_WAIT_MUTEX_COND.

pub mod bell;
pub mod block;
mod look_out;
pub mod marks;
mod ringer;
pub mod set;

use super::errno::{Errno, Result};
use super::progress::Attached;
use crate::abi::types::{FI_EAGAIN, FI_EINVAL, FI_ENODATA, FI_ENOSYS, fi_wait_obj};
use crate::abi::types::{FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_NONE, FI_WAIT_POLLFD, FI_WAIT_SET};
use bell::Bell;
use core::sync::atomic::{AtomicBool, Ordering};
use ringer::Ringer;
use set::WaitSet;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What one wait set or poll set has already seen of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub value: u64,
    pub errors: u64,
}

/// What can be put into wait sets and poll sets: completion queues, counters, event queues.
pub trait Waitable: Send + Sync {
    /// Whether the object was closed. A thread that looks at a set may have a reference a moment longer.
    fn is_closed(&self) -> bool;

    /// Drives the attached endpoints.
    fn progress(&self);

    /// Whether there is something to read. A counter is ready when it has changed since `mark`, which is then moved.
    fn ready(&self, mark: &mut Mark) -> bool;

    /// The same for poll sets, where a counter is not ready for a change that the program made itself.
    fn polled(&self, mark: &mut Mark) -> bool {
        self.ready(mark)
    }

    /// Announces a sleep on the bell. False: there is something to read, or an endpoint has work.
    fn announce(&self, mark: &Mark) -> bool;
}

/// The low-level wait object, as FI_GETWAIT gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handle {
    /// FI_WAIT_FD: an `int`.
    Fd(RawFd),
    /// FI_WAIT_POLLFD: a `struct fi_wait_pollfd`, each descriptor for POLLIN.
    PollFds { change_index: u64, fds: Vec<RawFd> },
    /// FI_WAIT_MUTEX_COND: a `struct fi_mutex_cond`.
    MutexCond {
        mutex: *mut libc::pthread_mutex_t,
        cond: *mut libc::pthread_cond_t,
    },
}

/// The wait object of one queue, counter or wait set.
pub struct Wait {
    bell: Option<Arc<Bell>>,
    set: Option<Arc<WaitSet>>,
    ringer: Option<Ringer>,
    closed: AtomicBool,
}

impl Wait {
    /// `set` is looked at for FI_WAIT_SET only.
    pub fn open(object: fi_wait_obj, set: Option<&Arc<WaitSet>>) -> Result<Wait> {
        let (bell, set) = match object {
            FI_WAIT_NONE => (None, None),
            FI_WAIT_SET => {
                let set = set.ok_or(Errno(FI_EINVAL))?;
                set.acquire();
                (Some(set.bell().clone()), Some(set.clone()))
            }
            _ => (Some(Arc::new(Bell::new(object)?)), None),
        };
        let native = bell
            .iter()
            .find(|bell| set.is_none() && bell.object() == FI_WAIT_MUTEX_COND);
        let ringer = native.map(|bell| Ringer::new(bell.clone()));
        Ok(Wait {
            bell,
            set,
            ringer,
            closed: AtomicBool::new(false),
        })
    }

    /// Makes an object opened with FI_WAIT_SET a member of its set.
    pub fn join(&self, member: &Arc<dyn Waitable>) {
        if let Some(set) = &self.set {
            set.join(member);
        }
    }

    /// Takes a closed object, `me`, out of its set, which may then be closed.
    pub fn close(&self, me: &dyn Waitable) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            if let Some(set) = &self.set {
                set.leave(me);
            }
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The bell to ring when there is something to read; None for FI_WAIT_NONE.
    pub fn bell(&self) -> Option<&Arc<Bell>> {
        self.bell.as_ref()
    }

    /// The bell, for a call that blocks. -FI_ENOSYS with FI_WAIT_NONE and FI_WAIT_SET.
    pub fn blocking(&self) -> Result<&Bell> {
        match (&self.bell, &self.set) {
            (Some(bell), None) => Ok(bell),
            _ => Err(Errno(FI_ENOSYS)),
        }
    }

    #[cold]
    pub fn raise(&self) {
        if let Some(bell) = &self.bell {
            bell.raise();
        }
    }

    /// FI_GETWAITOBJ. UNSPEC has become FD.
    pub fn object(&self) -> Result<fi_wait_obj> {
        match (&self.bell, &self.set) {
            (_, Some(set)) => set.object(),
            (Some(bell), None) => Ok(bell.object()),
            (None, None) => Ok(FI_WAIT_NONE),
        }
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        if let Some(set) = &self.set {
            return set.handle();
        }
        let bell = self.bell.as_ref().ok_or(Errno(FI_ENODATA))?;
        match (bell.object(), bell.fd(), &self.ringer) {
            (FI_WAIT_FD, Some(fd), _) => Ok(Handle::Fd(fd)),
            (FI_WAIT_POLLFD, ..) => {
                let (change_index, fds) = bell.pollfds();
                Ok(Handle::PollFds { change_index, fds })
            }
            (FI_WAIT_MUTEX_COND, _, Some(ringer)) => Ok(ringer.handle()?),
            _ => Err(Errno(FI_ENODATA)),
        }
    }

    /// fi_trywait on an object. An object of a wait set is tried with its set.
    pub fn trywait(&self, ready: impl FnMut() -> bool, announce: impl FnOnce() -> bool) -> Result<()> {
        if let Some(set) = &self.set {
            return set.trywait();
        }
        let bell = self.bell.as_ref().ok_or(Errno(FI_EINVAL))?;
        if bell.fd().is_none() {
            // FI_WAIT_YIELD has no descriptor, so nothing would wake the program.
            return Err(Errno(FI_EAGAIN));
        }
        block::trywait(bell, ready, announce)?;
        if let Some(ringer) = &self.ringer {
            ringer.listen();
        }
        Ok(())
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(set) = self.set.as_ref().filter(|_| !self.is_closed()) {
            set.release();
        }
    }
}

/// The attachments of an object that is waited for through `wait`.
pub fn endpoints(wait: &Wait, locked: bool) -> Attached {
    Attached::new(wait.bell().cloned(), locked)
}

#[cfg(test)]
mod tests;
