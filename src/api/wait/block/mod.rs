//! Waiting, written once: look for a while, announce, sleep, look again, until there is an answer or the time is over.
//!
//! Knows bells, not what is looked for, which comes in closures. Called by queues, counters and wait sets.

use super::bell::{Bell, Slept};
use crate::abi::types::FI_EAGAIN;
use crate::api::errno::{Errno, Result};
use core::ffi::c_int;
use std::time::{Duration, Instant};

/// Why a wait ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    TimedOut,
    /// A signal of the system came.
    Interrupted,
    Failed(Errno),
}

/// After so many refused announcements in a row a waiter yields the processor before it looks again.
const REFUSALS: u32 = 16;

/// Waits until `look` returns an answer. `look` is told whether the bell was rung since its last call. `announce`
/// announces a sleep; false: there is news already.
pub fn block<R>(
    bell: &Bell,
    timeout: c_int,
    mut look: impl FnMut(bool) -> Option<R>,
    mut announce: impl FnMut() -> bool,
) -> core::result::Result<R, Stopped> {
    let end = deadline(timeout);
    let mut sleeper = bell.enter();
    let mut look_out = None;
    let mut refused = 0;
    loop {
        let rung = sleeper.notice();
        if let Some(answer) = look(rung) {
            return Ok(answer);
        }
        let left = left(end).ok_or(Stopped::TimedOut)?;
        // Not before the first look: an answer that is there already says nothing of how long waits are.
        if look_out.get_or_insert_with(|| bell.look_outs.begin()).goes_on() {
            continue;
        }
        bell.quiet();
        if !announce() {
            refused += 1;
            if refused > REFUSALS {
                std::thread::yield_now();
            }
            continue;
        }
        refused = 0;
        match sleeper.sleep(left) {
            Ok(Slept::Woken) => {}
            Ok(Slept::Interrupted) => return Err(Stopped::Interrupted),
            Err(errno) => return Err(Stopped::Failed(errno)),
        }
    }
}

/// fi_trywait: whether the program may now sleep on the bell's descriptor. -FI_EAGAIN: it must read what is there
/// first.
pub fn trywait(bell: &Bell, mut ready: impl FnMut() -> bool, announce: impl FnOnce() -> bool) -> Result<()> {
    if ready() {
        return Err(Errno(FI_EAGAIN));
    }
    bell.quiet();
    bell.begin_poll();
    if announce() {
        return Ok(());
    }
    // The ring that `quiet` took away may have been for another sleeper.
    bell.raise();
    Err(Errno(FI_EAGAIN))
}

/// When a timeout is over; None: never.
fn deadline(timeout: c_int) -> Option<Instant> {
    let timeout = u64::try_from(timeout).ok()?;
    Instant::now().checked_add(Duration::from_millis(timeout))
}

/// Milliseconds that are left, rounded up; negative: for ever. None: it is over.
fn left(end: Option<Instant>) -> Option<c_int> {
    let Some(end) = end else { return Some(-1) };
    let left = end.checked_duration_since(Instant::now())?;
    let ms = left.as_nanos().div_ceil(1_000_000);
    (ms > 0).then(|| c_int::try_from(ms).unwrap_or(c_int::MAX))
}

#[cfg(test)]
mod tests;
