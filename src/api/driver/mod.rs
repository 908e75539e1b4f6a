//! FI_PROGRESS_AUTO: the thread that drives a domain's endpoints, and sleeps while they have nothing to do.
//!
//! Those that need not be polled are found by one look (`progress::Marked`). Knows endpoints as `Progress` only. The
//! thread starts with the first endpoint that is enabled, and ends with the domain. Called by `domain` and `endpoint`.

use super::errno::{Errno, Result};
use super::progress::{Marked, Progress, Watch};
use crate::abi::types::{FI_EAGAIN, FI_EINVAL};
use crate::sys::epoll::Epoll;
use crate::sys::eventfd::EventFd;
use crate::sys::forks::Process;
use crate::sys::thread;
use crate::util::patience::Patience;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use once_cell::sync::OnceCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest sleep, in milliseconds, while an operation waits for a peer, whose death rings nobody: all peers must be
/// checked within a second, and each poll checks a quarter of them.
const WATCHFUL_MS: c_int = 220;
/// The longest sleep while an endpoint has no descriptor that could wake the thread.
const BLIND_MS: c_int = 1;
const FOR_EVER: c_int = -1;

/// The number of all that are driven when they have something to do, which is no endpoint's.
const THE_MARKED: u64 = 0;

#[derive(Default)]
pub struct Driver {
    thread: OnceCell<ProgressThread>,
}

struct ProgressThread {
    shared: Arc<DriverShared>,
    process: Process,
    /// None: the thread has ended.
    thread: Mutex<Option<thread::Thread>>,
}

struct DriverShared {
    epoll: Epoll,
    /// Ends the thread's sleep when the list has changed.
    changed: EventFd,
    state: Mutex<DriverState>,
    /// Callers that wait for the state. The thread lets them go first, as the mutex is not fair.
    callers: AtomicUsize,
    /// The thread sleeps without a liveness timer, as nothing was unfinished; `note_unfinished` must wake it.
    deep_sleep: AtomicBool,
}

#[derive(Default)]
struct DriverState {
    endpoints: Vec<Driven>,
    /// Those of them that are driven when they have something to do, by their numbers; to the thread they are one.
    watched: HashMap<u64, Arc<dyn Progress>>,
    marked: Option<Arc<Marked>>,
    attached: u64,
    end: bool,
}

struct Driven {
    id: u64,
    endpoint: Arc<dyn Progress>,
    /// What wakes the thread for it.
    fd: Option<RawFd>,
}

fn told(error: io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(FI_EINVAL))
}

impl Driver {
    /// Has the thread drive this endpoint. Returns the number for `detach`. The caller may hold no lock that `progress`
    /// takes, here and in `detach`.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) -> Result<u64> {
        let shared = &self.started()?.shared;
        let watch = endpoint.watch();
        let fd = match watch {
            Some(_) => None,
            None => endpoint.wake_fd().filter(|fd| shared.epoll.add(*fd).is_ok()),
        };
        let id = shared.change(|state| {
            state.attached += 1;
            let id = state.attached;
            match watch {
                Some(watch) if shared.drive_when_marked(state, &endpoint, &watch) => {
                    drop(state.watched.insert(id, endpoint))
                }
                _ => state.endpoints.push(Driven { id, endpoint, fd }),
            }
            id
        });
        Ok(id)
    }

    /// Takes `attach` back. When it returns, the thread has no reference to the endpoint.
    pub fn detach(&self, id: u64) {
        let Some(thread) = self.thread.get().filter(|own| own.process.is_this()) else {
            return;
        };
        let shared = &thread.shared;
        let gone = shared.change(|state| {
            if let (Some(endpoint), Some(marked)) = (state.watched.remove(&id), &state.marked) {
                marked.remove(&endpoint);
                return None;
            }
            let at = state.endpoints.iter().position(|driven| driven.id == id)?;
            Some(state.endpoints.swap_remove(at))
        });
        if let Some(fd) = gone.and_then(|driven| driven.fd) {
            let _ = shared.epoll.remove(fd);
        }
    }

    /// An attached endpoint began an operation that is unfinished: from now on the thread must check on peers.
    #[inline]
    pub fn note_unfinished(&self) {
        let Some(thread) = self.thread.get() else { return };
        if thread.shared.deep_sleep.load(Ordering::SeqCst) {
            thread.shared.deep_sleep.store(false, Ordering::SeqCst);
            thread.shared.changed.set();
        }
    }

    fn started(&self) -> Result<&ProgressThread> {
        self.thread.get_or_try_init(ProgressThread::start)
    }
}

impl Driver {
    /// Ends the thread, when the domain is closed, and waits for it.
    pub fn end(&self) {
        let Some(own) = self.thread.get() else { return };
        let thread = own.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        if own.process.is_this() {
            own.shared.change(|state| state.end = true);
        }
        thread.join();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

impl ProgressThread {
    fn start() -> Result<ProgressThread> {
        let shared = Arc::new(DriverShared {
            epoll: Epoll::new().map_err(told)?,
            changed: EventFd::new().map_err(told)?,
            state: Mutex::default(),
            callers: AtomicUsize::new(0),
            deep_sleep: AtomicBool::new(false),
        });
        shared.epoll.add(shared.changed.fd()).map_err(told)?;
        let inner = shared.clone();
        let thread = thread::Thread::start("fi_progress", move || inner.run()).map_err(|_| Errno(FI_EAGAIN))?;
        Ok(ProgressThread {
            shared,
            process: Process::this(),
            thread: Mutex::new(Some(thread)),
        })
    }
}

impl DriverShared {
    fn change<R>(&self, change: impl FnOnce(&mut DriverState) -> R) -> R {
        self.callers.fetch_add(1, Ordering::Relaxed);
        let result = change(&mut self.state());
        self.callers.fetch_sub(1, Ordering::Relaxed);
        self.changed.set();
        result
    }

    /// From now on the endpoint is driven when it has something to do. False: it must be polled.
    fn drive_when_marked(
        self: &Arc<Self>,
        state: &mut DriverState,
        endpoint: &Arc<dyn Progress>,
        watch: &Watch,
    ) -> bool {
        if let Some(marked) = &state.marked {
            return marked.add(endpoint, watch);
        }
        let shared = Arc::downgrade(self);
        let wake = move || shared.upgrade().iter().for_each(|shared| shared.changed.set());
        let Ok(marked) = Marked::waking(Some(Box::new(wake))).map(Arc::new) else {
            return false;
        };
        let fd = marked.fd();
        if self.epoll.add(fd).is_err() {
            return false;
        }
        state.marked = Some(marked.clone());
        state.endpoints.push(Driven {
            id: THE_MARKED,
            endpoint: marked.clone(),
            fd: Some(fd),
        });
        marked.add(endpoint, watch)
    }

    fn state(&self) -> MutexGuard<'_, DriverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let patience = Patience::default();
        loop {
            while self.callers.load(Ordering::Relaxed) > 0 {
                std::thread::yield_now();
            }
            // Cleared before the list is read, so that a later change ends the sleep.
            self.changed.clear();
            let state = self.state();
            if state.end {
                return;
            }
            // SYNC POINT: stored before the endpoints are asked what is unfinished. Whoever begins an operation after
            // that, under the endpoint's lock, sees it in `note_unfinished`.
            self.deep_sleep.store(true, Ordering::SeqCst);
            let sleep = state.pass();
            if sleep != Some(FOR_EVER) {
                self.deep_sleep.store(false, Ordering::SeqCst);
            }
            drop(state);
            if let Some(ms) = sleep {
                // A sleep that a signal interrupts only ends early.
                let _ = self.epoll.wait(ms);
                patience.found();
            } else {
                patience.nothing();
            }
        }
    }
}

impl DriverState {
    /// Drives every endpoint once. Returns how long to sleep then; None: there is more to do.
    fn pass(&self) -> Option<c_int> {
        self.endpoints.iter().for_each(|driven| driven.endpoint.progress());
        let mut sleep = FOR_EVER;
        for driven in &self.endpoints {
            if !driven.endpoint.arm() {
                return None;
            }
            let most = match driven.fd {
                None => BLIND_MS,
                Some(_) if driven.endpoint.unfinished() => WATCHFUL_MS,
                Some(_) => continue,
            };
            sleep = if sleep == FOR_EVER { most } else { most.min(sleep) };
        }
        Some(sleep)
    }
}

#[cfg(test)]
mod tests;
