//! What threads sleep on and are woken by: one bell per object that can be waited for, or one for a whole wait set.
//!
//! A bell is an epoll descriptor over an eventfd (set by `raise`) and the descriptors of the attached endpoints. A
//! thread that finds nothing to do quiets the bell, announces its sleep to whatever may have news, and sleeps; news
//! ring only if a sleep was announced. Several threads may wait for different things on one bell (counters have
//! thresholds), so a ring stays on until each thread that was waiting has looked: `generation` and `behind` are for
//! that. A program that polls the descriptor itself is known by fi_trywait: its thread is a `poller`, and `owed` the
//! ring until it calls again. A peer that dies rings nobody, so while an operation waits for a peer the bell also rings
//! by itself (`wind`). A child of fork shares the descriptors with its parent, and leaves them alone. Knows nothing of
//! queues and counters. Called by `wait::block` and by whatever brings news.

use super::look_out::LookOuts;
use crate::abi::types::{FI_EINVAL, fi_wait_obj};
use crate::abi::types::{FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_POLLFD, FI_WAIT_UNSPEC, FI_WAIT_YIELD};
use crate::api::errno::{Errno, Result};
use crate::sys::epoll::Epoll;
use crate::sys::eventfd::EventFd;
use crate::sys::forks::Process;
use crate::sys::thread;
use crate::sys::timerfd::TimerFd;
use core::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a wound bell rings. A poll of shared memory checks a quarter of the peers, and all must be checked within
/// a second.
const EVERY: Duration = Duration::from_millis(220);

/// How long a ring stays on for a thread that went to poll the descriptor: it may be done with waiting, and never call
/// again.
const OWED: Duration = Duration::from_millis(100);

/// So many of them are remembered; those that have ended are forgotten with the next ring only.
const MOST_POLLERS: usize = 1024;

#[derive(Debug)]
pub struct Bell {
    object: fi_wait_obj,
    /// None for FI_WAIT_YIELD: its waiters poll, as those in a child of fork do.
    fds: Option<Fds>,
    state: Mutex<BellState>,
    /// How long waits go on looking before they sleep.
    pub(super) look_outs: LookOuts,
}

#[derive(Debug)]
struct Fds {
    epoll: Epoll,
    event: EventFd,
    process: Process,
}

#[derive(Debug, Default)]
struct BellState {
    /// The eventfd is set.
    raised: bool,
    /// How often the bell was rung.
    generation: u64,
    /// Threads inside a wait.
    inside: usize,
    /// Those of them that have not looked for news since the last ring.
    behind: usize,
    /// Threads that were told that they may poll the descriptor, and have not called since.
    pollers: Vec<u64>,
    /// Those that a ring has come for since, which each of them is to see, and when it came.
    owed: Vec<(u64, Instant)>,
    /// Descriptors of endpoints, and how many objects asked for each.
    watched: Vec<(RawFd, usize)>,
    /// How often `watched` has changed, for FI_WAIT_POLLFD.
    change_index: u64,
    /// Made by the first `wind`, and then watched.
    timer: Option<TimerFd>,
    /// How many `wind`s have not been taken back.
    wound: isize,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    Woken,
    /// A signal of the system came.
    Interrupted,
}

/// The fabric errno of a system error.
fn told(error: io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(FI_EINVAL))
}

impl Bell {
    /// A bell for a wait object; FI_WAIT_UNSPEC becomes FI_WAIT_FD.
    pub fn new(object: fi_wait_obj) -> Result<Bell> {
        let object = if object == FI_WAIT_UNSPEC { FI_WAIT_FD } else { object };
        let fds = match object {
            FI_WAIT_FD | FI_WAIT_POLLFD | FI_WAIT_MUTEX_COND => Some(Fds::new().map_err(told)?),
            FI_WAIT_YIELD => None,
            _ => return Err(Errno(FI_EINVAL)),
        };
        Ok(Bell {
            object,
            fds,
            state: Mutex::default(),
            look_outs: LookOuts::default(),
        })
    }

    /// The wait object, never FI_WAIT_UNSPEC.
    pub fn object(&self) -> fi_wait_obj {
        self.object
    }

    /// The descriptor that is readable when the bell was rung or an endpoint has news.
    pub fn fd(&self) -> Option<RawFd> {
        self.fds().map(|fds| fds.epoll.fd())
    }

    /// All the descriptors, for those who poll them one by one, and how often the list has changed.
    pub fn pollfds(&self) -> (u64, Vec<RawFd>) {
        let state = self.state();
        let Some(fds) = self.fds() else {
            return (state.change_index, Vec::new());
        };
        let watched = state.watched.iter().map(|watched| watched.0);
        (
            state.change_index,
            core::iter::once(fds.event.fd()).chain(watched).collect(),
        )
    }

    /// Wakes all who sleep.
    #[cold]
    pub fn raise(&self) {
        let mut state = self.state();
        state.generation = state.generation.wrapping_add(1);
        state.behind = state.inside;
        state.owe();
        match self.fds() {
            Some(fds) if !state.raised => {
                state.raised = true;
                fds.event.set();
            }
            _ => {}
        }
    }

    /// Takes the last ring away, unless a waiting thread has yet to look for its news. Then announce, look, and sleep.
    pub fn quiet(&self) {
        let mut state = self.state();
        let Some(fds) = self.fds() else { return };
        match &state.timer {
            Some(timer) if state.wound > 0 => timer.clear(),
            _ => {}
        }
        state.called();
        if state.raised && state.behind == 0 && !state.owes() {
            state.raised = false;
            fds.event.clear();
        }
    }

    /// The calling thread may be about to poll the descriptor. Before it announces that.
    pub fn begin_poll(&self) {
        if self.fds().is_none() {
            return;
        }
        let pollers = &mut self.state().pollers;
        if pollers.len() == MOST_POLLERS {
            pollers.remove(0);
        }
        pollers.push(thread::own_number());
    }

    /// Has `fd` wake sleepers too.
    pub fn watch(&self, fd: RawFd) -> Result<()> {
        let Some(fds) = self.fds() else { return Ok(()) };
        let mut state = self.state();
        if let Some(watched) = state.watched.iter_mut().find(|watched| watched.0 == fd) {
            watched.1 += 1;
            return Ok(());
        }
        fds.epoll.add(fd).map_err(told)?;
        state.watched.push((fd, 1));
        state.change_index += 1;
        Ok(())
    }

    /// Takes back one `watch`, before the descriptor is closed.
    pub fn unwatch(&self, fd: RawFd) {
        let Some(fds) = self.fds() else { return };
        let mut state = self.state();
        let Some(at) = state.watched.iter().position(|watched| watched.0 == fd) else {
            return;
        };
        state.watched[at].1 -= 1;
        if state.watched[at].1 == 0 {
            state.watched.swap_remove(at);
            state.change_index += 1;
            // Fails only for a descriptor that is closed already, which epoll has forgotten by itself.
            let _ = fds.epoll.remove(fd);
        }
    }

    /// Has the bell ring by itself every now and then, until `unwind`.
    pub fn wind(&self) -> Result<()> {
        let Some(fds) = self.fds() else { return Ok(()) };
        let mut state = self.state();
        if state.timer.is_none() {
            let timer = TimerFd::new().map_err(told)?;
            fds.epoll.add(timer.fd()).map_err(told)?;
            state.watched.push((timer.fd(), 1));
            state.change_index += 1;
            state.timer = Some(timer);
        }
        state.turn(1);
        Ok(())
    }

    /// Takes back one `wind`.
    pub fn unwind(&self) {
        if self.fds().is_some() {
            self.state().turn(-1);
        }
    }

    /// Begins a wait.
    pub fn enter(&self) -> Sleeper<'_> {
        let mut state = self.state();
        state.inside += 1;
        Sleeper {
            bell: self,
            seen: state.generation,
        }
    }

    /// Sleeps until the descriptor is readable. For the ringer's thread, which is no waiter.
    pub fn listen(&self) {
        if let Some(fds) = self.fds() {
            let _ = fds.epoll.wait(-1);
        }
    }

    /// None in a child of fork, which shares the descriptors with its parent and must not change them.
    fn fds(&self) -> Option<&Fds> {
        self.fds.as_ref().filter(|fds| fds.process.is_this())
    }

    fn state(&self) -> MutexGuard<'_, BellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BellState {
    /// Whether the bell was rung since a waiting thread has `seen` it last.
    fn notice(&mut self, seen: &mut u64) -> bool {
        let rung = *seen != self.generation;
        if rung {
            *seen = self.generation;
            self.behind -= 1;
        }
        rung
    }

    /// The calling thread polls no more.
    fn called(&mut self) {
        if !(self.pollers.is_empty() && self.owed.is_empty()) {
            let me = thread::own_number();
            self.pollers.retain(|poller| *poller != me);
            self.owed.retain(|(poller, _)| *poller != me);
        }
    }

    fn owe(&mut self) {
        if !self.pollers.is_empty() {
            let now = Instant::now();
            self.owed.extend(self.pollers.drain(..).map(|poller| (poller, now)));
        }
    }

    /// Whether the ring is still to be seen by a thread that polls.
    fn owes(&mut self) -> bool {
        self.owed.retain(|(_, since)| since.elapsed() <= OWED);
        !self.owed.is_empty()
    }

    fn turn(&mut self, by: isize) {
        let before = self.wound > 0;
        self.wound += by;
        let runs = self.wound > 0;
        if let Some(timer) = self.timer.as_ref().filter(|_| runs != before) {
            timer.set(if runs { EVERY } else { Duration::ZERO });
        }
    }
}

impl Fds {
    fn new() -> io::Result<Fds> {
        let (epoll, event) = (Epoll::new()?, EventFd::new()?);
        epoll.add(event.fd())?;
        let process = Process::this();
        Ok(Fds { epoll, event, process })
    }
}

/// A thread that waits.
#[derive(Debug)]
pub struct Sleeper<'a> {
    bell: &'a Bell,
    seen: u64,
}

impl Sleeper<'_> {
    /// Whether the bell was rung since the last call. Look for news after it, not before.
    pub fn notice(&mut self) -> bool {
        self.bell.state().notice(&mut self.seen)
    }

    /// Sleeps until there may be news, at most `timeout` milliseconds (negative: for ever).
    pub fn sleep(&self, timeout: c_int) -> Result<Slept> {
        let Some(fds) = self.bell.fds() else {
            std::thread::yield_now();
            return Ok(Slept::Woken);
        };
        let state = self.bell.state();
        let others = state.behind > 0 || !state.owed.is_empty();
        drop(state);
        if others {
            // The ring stays on for another thread, which may need this processor to look.
            std::thread::yield_now();
        }
        match fds.epoll.wait(timeout) {
            Ok(_) => Ok(Slept::Woken),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Slept::Interrupted),
            Err(error) => Err(told(error)),
        }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        // Under one lock: a ring in between would count this thread among those that are still to look.
        let mut state = self.bell.state();
        state.notice(&mut self.seen);
        state.inside -= 1;
    }
}

#[cfg(test)]
mod tests;
