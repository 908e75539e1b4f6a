//! What a queue or counter drives when it is read: the endpoints attached to it.
//!
//! Knows nothing of what an endpoint does. Called by `cq`, `cntr` and `eq`; endpoints implement `Progress`.
//!
//! - here: the list of all, each of which is driven in each read;
//! - `watched`: those of them that could be found by one look, and go from this list to that set when they are many;
//! - `marked`: that set, of which a read drives those that have something to do. To the list it is one member.

mod marked;
mod watched;

pub(super) use marked::Marked;

use super::errno::{Errno, Result};
use super::refs::Refs;
use super::wait::bell::Bell;
use crate::abi::types::FI_EINVAL;
use crate::util::lock::OptLock;
use crate::util::ready::Ready;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use watched::WatchedEndpoints;

/// What reading a queue or counter drives: an endpoint, which makes progress when called, and can wake a sleeper when
/// it should be called.
///
/// No lock of a queue or counter is held during these calls, so the endpoint may post to them.
pub trait Progress: Send + Sync {
    /// Makes progress, unless another thread is at it. Does nothing once the endpoint is closed, as a thread may be
    /// about to call it when that happens.
    fn progress(&self);

    /// A thread is going to sleep: what comes from then on makes `wake_fd` readable, once. Drains `wake_fd` (only here,
    /// as others may be about to look at it), announces the sleep to peers, and then checks for work that came before.
    /// False: there is work, so call `progress` instead; the announcement stands, since another sleeper may depend on
    /// it. It is never taken back, so a sleeper that has woken by itself is rung once in vain.
    fn arm(&self) -> bool;

    /// After `arm` returned true: whether an operation waits for a peer. Then the sleeper needs a liveness timer, as a
    /// peer that dies rings nobody. If not, an operation that begins later makes `wake_fd` readable.
    fn unfinished(&self) -> bool {
        false
    }

    /// Waits until every thread that was inside a call has left it.
    fn settle(&self) {}

    /// Becomes readable when there is something to do; stays the same until the endpoint is detached. None: a thread
    /// drives this endpoint, or it cannot wake anyone and `arm` is always false.
    fn wake_fd(&self) -> Option<RawFd>;

    /// How it is found out that there is something to do; stays the same while attached. None: by `progress`, in each
    /// read. Else `turn` may be called in its place, and `arm` not at all.
    fn watch(&self) -> Option<Watch> {
        None
    }

    /// `progress` of one that was found. True: it must be driven again, as another thread is at it or there is more.
    fn turn(&self) -> bool {
        self.progress();
        false
    }
}

/// How it is found out that an endpoint which need not be polled has something to do.
#[derive(Clone)]
pub struct Watch {
    /// Set when there may be something to do that `fd` does not tell of.
    pub mark: Arc<Ready>,
    /// Readable when something has come or it is time for something, whether or not somebody sleeps. None: the mark
    /// tells of everything.
    pub fd: Option<RawFd>,
}

type Attachments = Arc<[Arc<Attachment>]>;

/// The endpoints attached to one queue or counter.
pub struct Attached {
    /// Replaced, never changed. Not to be locked while endpoints make progress: they may attach and detach others.
    attachments: OptLock<Attachments>,
    /// The lock of the thread that drives, and its copy of the list, brought up to date before each use. Other threads
    /// that come meanwhile leave. A detached endpoint may stay in the copy until the next use; once closed, it does
    /// nothing.
    driving: OptLock<Attachments>,
    /// The copy is out of date. Written under the lock of `attachments`.
    changed: AtomicBool,
    bell: Option<Arc<Bell>>,
    /// Those that need not be polled.
    watched: Mutex<WatchedEndpoints>,
    /// Whether this object has wound the bell (`watch_peers`).
    watchful: Mutex<bool>,
    refs: Refs,
}

struct Attachment {
    endpoint: Arc<dyn Progress>,
    /// How often the endpoint was attached: it may use one queue for sending and receiving.
    times: Refs,
    rings: Mutex<Rings>,
}

/// Whether the descriptor of an attached endpoint rings the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rings {
    NotYet,
    By(RawFd),
    /// Detached: its descriptor must not be used any more.
    NoMore,
}

impl Attached {
    /// `bell`: what threads sleep on; None: the object cannot be waited for.
    pub fn new(bell: Option<Arc<Bell>>, locked: bool) -> Attached {
        let none: Attachments = Arc::from([]);
        Attached {
            attachments: OptLock::new(none.clone(), locked),
            driving: OptLock::new(none, locked),
            changed: AtomicBool::new(false),
            bell,
            watched: Mutex::default(),
            watchful: Mutex::new(false),
            refs: Refs::default(),
        }
    }

    /// How many attachments there are.
    pub fn count(&self) -> usize {
        self.refs.count()
    }

    /// Has reading drive the endpoint. Called once for each use that the endpoint makes of the object.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
        match endpoint.watch() {
            Some(watch) => self.attach_watched(endpoint, watch),
            None => self.attach_polled(endpoint),
        }
    }

    fn attach_polled(&self, endpoint: Arc<dyn Progress>) {
        let mut attachments = self.attachments.lock();
        if let Some(attachment) = attachments.iter().find(|attachment| attachment.is(&endpoint)) {
            attachment.times.acquire();
        } else {
            let attachment = Arc::new(Attachment::new(endpoint));
            *attachments = attachments.iter().cloned().chain([attachment]).collect();
            self.changed.store(true, Ordering::Release);
        }
        drop(attachments);
        self.refs.acquire();
        // Wakes sleepers, so that they announce their sleep to the new endpoint too.
        if let Some(bell) = &self.bell {
            bell.raise();
        }
    }

    /// Takes back one `attach`, before the endpoint closes its `wake_fd`.
    pub fn detach(&self, endpoint: &Arc<dyn Progress>) -> Result<()> {
        if self.detach_watched(endpoint)? {
            return Ok(());
        }
        self.detach_polled(endpoint)
    }

    fn detach_polled(&self, endpoint: &Arc<dyn Progress>) -> Result<()> {
        let mut attachments = self.attachments.lock();
        let found = attachments.iter().find(|attachment| attachment.is(endpoint)).cloned();
        let attachment = found.ok_or(Errno(FI_EINVAL))?;
        attachment.times.release();
        let gone = attachment.times.count() == 0;
        if gone {
            *attachments = attachments
                .iter()
                .filter(|attachment| !attachment.is(endpoint))
                .cloned()
                .collect();
            self.changed.store(true, Ordering::Release);
        }
        drop(attachments);
        self.refs.release();
        if let Some(mut driving) = self.driving.try_lock() {
            self.update(&mut driving); // so that an endpoint that is closed does not stay in memory
        }
        if gone {
            attachment.unwatch(self.bell.as_deref());
        }
        Ok(())
    }

    /// Drives all of them, unless another thread is at it.
    #[inline]
    pub fn progress(&self) {
        let Some(mut driving) = self.driving.poll() else { return };
        // SYNC POINT: meets the release in `attach` and `detach`. Seen late, a new endpoint is driven late.
        if self.changed.load(Ordering::Acquire) {
            self.update(&mut driving);
        }
        driving.iter().for_each(|attachment| attachment.endpoint.progress());
    }

    #[cold]
    fn update(&self, driving: &mut Attachments) {
        let attachments = self.attachments.lock();
        self.changed.store(false, Ordering::Relaxed);
        let before = core::mem::replace(driving, attachments.clone());
        drop(attachments);
        drop(before); // perhaps the last reference to an endpoint
    }

    /// Announces a sleep to all endpoints. False: one has work.
    pub fn arm(&self) -> bool {
        let Some(bell) = &self.bell else { return false };
        let mut all = true;
        self.each(|attachment| all = all && attachment.arm(bell));
        all && self.watch_peers(bell)
    }

    /// Has the bell ring now and then while an operation waits for a peer. Locked, so that of two threads that go to
    /// sleep the later one decides. False: no timer could be had, so there is no sleeping.
    fn watch_peers(&self, bell: &Bell) -> bool {
        let mut watchful = self.watchful.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unfinished = false;
        self.each(|attachment| unfinished = unfinished || attachment.is_woken() && attachment.endpoint.unfinished());
        if unfinished != *watchful {
            if !unfinished {
                bell.unwind();
            } else if bell.wind().is_err() {
                return false;
            }
            *watchful = unfinished;
        }
        true
    }

    fn each(&self, visit: impl FnMut(&Arc<Attachment>)) {
        let attachments = self.attachments.lock().clone();
        attachments.iter().for_each(visit);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The bell may belong to a wait set and outlive this object.
        for attachment in self.attachments.get_mut().iter() {
            attachment.unwatch(self.bell.as_deref());
        }
        let watchful = self.watchful.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = self.bell.as_ref().filter(|_| *watchful) {
            bell.unwind();
        }
    }
}

impl Attachment {
    fn new(endpoint: Arc<dyn Progress>) -> Attachment {
        let times = Refs::default();
        times.acquire();
        Attachment {
            endpoint,
            times,
            rings: Mutex::new(Rings::NotYet),
        }
    }

    fn is(&self, endpoint: &Arc<dyn Progress>) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.endpoint), Arc::as_ptr(endpoint))
    }

    /// Asks for the descriptor here and not in `attach`, as an endpoint has one from fi_enable on. Not under the lock
    /// of `rings`, as the endpoint may wait for its own, whose holder may be about to `unwatch`.
    fn arm(&self, bell: &Bell) -> bool {
        let before = *self.rings();
        if before == Rings::NotYet
            && let Some(fd) = self.endpoint.wake_fd()
            && !self.watch(bell, fd)
        {
            // Without its descriptor the sleeper might never wake; polling is slow but right.
            return false;
        }
        self.endpoint.arm()
    }

    fn watch(&self, bell: &Bell, fd: RawFd) -> bool {
        let mut rings = self.rings();
        if *rings != Rings::NotYet {
            return true;
        }
        if bell.watch(fd).is_err() {
            return false;
        }
        *rings = Rings::By(fd);
        true
    }

    /// Whether this endpoint wakes the sleepers itself, and no thread does it in its place.
    fn is_woken(&self) -> bool {
        matches!(*self.rings(), Rings::By(_))
    }

    fn unwatch(&self, bell: Option<&Bell>) {
        let old = core::mem::replace(&mut *self.rings(), Rings::NoMore);
        if let (Some(bell), Rings::By(fd)) = (bell, old) {
            bell.unwatch(fd);
        }
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests;
