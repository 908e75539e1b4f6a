//! What a queue or counter drives when it is read: the endpoints attached to it.
//!
//! Knows nothing of what an endpoint does. Called by `cq`, `cntr` and `eq`; implemented by endpoints.

use super::errno::{Errno, Result};
use super::refs::Refs;
use super::wait::bell::Bell;
use crate::abi::types::FI_EINVAL;
use crate::util::lock::OptLock;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that moves when it is called, and that can wake a sleeper when it should be called.
///
/// No lock of a queue or counter is held while these are called, so they may post.
pub trait Progress: Send + Sync {
    /// Moves on what can be moved; not what another thread moves already. Once closed it does nothing, though a thread
    /// that was about to call it may still do so.
    fn progress(&self);

    /// Somebody is going to sleep: what comes from now on makes `wake_fd` readable, once. Drains `wake_fd` (which must
    /// be done here and nowhere else: others may be about to look at it), announces, and only then looks whether
    /// something came before. False: there is work, so call `progress` instead; the announcement stands all the same,
    /// since another sleeper may depend on it.
    fn arm(&self) -> bool;

    /// A sleeper that `arm` was called for is awake. Only a hint: others may still sleep (sleeps that fi_trywait
    /// announced are never taken back), so an endpoint that does not count them does nothing here, and rings once in
    /// vain.
    fn disarm(&self) {}

    /// Asked after `arm` said true: whether an operation waits for a peer. Then a sleeper should wake now and then, for
    /// peers that die do not ring. If not, one that begins later makes `wake_fd` readable.
    fn unfinished(&self) -> bool {
        false
    }

    /// Waits until no other thread is in the middle of a call.
    fn settle(&self) {}

    /// What becomes readable when there is something to do; it stays the same until the endpoint is detached. None:
    /// somebody else (a thread) drives this endpoint, or it cannot wake anyone and `arm` is always false.
    fn wake_fd(&self) -> Option<RawFd>;
}

type Attachments = Arc<[Arc<Attachment>]>;

/// The endpoints attached to one queue or counter.
pub struct Attached {
    /// Replaced, never changed. The lock is not for holding while endpoints work: those may attach and detach others.
    attachments: OptLock<Attachments>,
    /// Who drives has this lock and drives the attachments in this list: a copy, brought up to date before each use. Another
    /// thread that comes meanwhile has nothing to add. An endpoint that was detached may be in the copy until the next
    /// use; once closed, it does nothing.
    driving: OptLock<Attachments>,
    /// The copy is out of date. Changed under the lock of `attachments`.
    changed: AtomicBool,
    bell: Option<Arc<Bell>>,
    /// Whether we have wound the bell.
    watchful: Mutex<bool>,
    refs: Refs,
}

struct Attachment {
    endpoint: Arc<dyn Progress>,
    /// How often it was attached: an endpoint may use one queue for sending and receiving.
    times: Refs,
    watched: Mutex<Watched>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    NotYet,
    At(RawFd),
    /// Detached: its descriptor is none of ours any more.
    Gone,
}

impl Attached {
    /// `bell`: what sleepers sleep on, if there can be any.
    pub fn new(bell: Option<Arc<Bell>>, locked: bool) -> Attached {
        let none: Attachments = Arc::from([]);
        Attached {
            attachments: OptLock::new(none.clone(), locked),
            driving: OptLock::new(none, locked),
            changed: AtomicBool::new(false),
            bell,
            watchful: Mutex::new(false),
            refs: Refs::default(),
        }
    }

    /// How many attachments there are.
    pub fn count(&self) -> usize {
        self.refs.count()
    }

    /// From now on the endpoint is driven from here. To be called again for each use of the same endpoint.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
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
        // Whoever sleeps now must announce it to the new endpoint too.
        if let Some(bell) = &self.bell {
            bell.raise();
        }
    }

    /// Takes back one `attach`. To be called before the endpoint closes its `wake_fd`.
    pub fn detach(&self, endpoint: &Arc<dyn Progress>) -> Result<()> {
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
        // SYNC POINT: meets the release of who attaches or detaches. Seeing it late is driving the new one late.
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

    /// Announces a sleep to all of them. False: one of them has work.
    pub fn arm(&self) -> bool {
        let Some(bell) = &self.bell else { return false };
        let mut all = true;
        self.each(|attachment| all = all && attachment.arm(bell));
        all && self.watch_peers(bell)
    }

    /// Has the bell ring now and then while an operation waits for a peer. Under a lock, so that of two threads that go
    /// to sleep the later one's answer counts. False: it does not ring, so there is no sleeping.
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

    /// A sleeper that was announced is awake.
    pub fn disarm(&self) {
        self.each(|attachment| attachment.endpoint.disarm());
    }

    fn each(&self, visit: impl FnMut(&Arc<Attachment>)) {
        let attachments = self.attachments.lock().clone();
        attachments.iter().for_each(visit);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The bell may outlive this object, in a wait set.
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
            watched: Mutex::new(Watched::NotYet),
        }
    }

    fn is(&self, endpoint: &Arc<dyn Progress>) -> bool {
        core::ptr::addr_eq(Arc::as_ptr(&self.endpoint), Arc::as_ptr(endpoint))
    }

    /// The descriptor is asked for here, not when attached: an endpoint has it when it is enabled.
    fn arm(&self, bell: &Bell) -> bool {
        let mut watched = self.watched();
        let fd = if *watched == Watched::NotYet {
            self.endpoint.wake_fd()
        } else {
            None
        };
        if let Some(fd) = fd {
            if bell.watch(fd).is_err() {
                // It would sleep for ever; looking again and again is slow but right.
                return false;
            }
            *watched = Watched::At(fd);
        }
        drop(watched);
        self.endpoint.arm()
    }

    /// Whether who sleeps here does so for this endpoint, and no thread of its own does.
    fn is_woken(&self) -> bool {
        matches!(*self.watched(), Watched::At(_))
    }

    fn unwatch(&self, bell: Option<&Bell>) {
        let old = core::mem::replace(&mut *self.watched(), Watched::Gone);
        if let (Some(bell), Watched::At(fd)) = (bell, old) {
            bell.unwatch(fd);
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::abi::types::FI_WAIT_POLLFD;
    use crate::sys::eventfd::EventFd;
    use core::sync::atomic::AtomicUsize;

    /// An endpoint for tests: work is handed in from any thread, and done by whoever calls `progress`.
    pub(crate) struct Worker<F: Fn() + Send + Sync> {
        pending: AtomicUsize,
        sleepers: std::sync::atomic::AtomicBool,
        wake: EventFd,
        work: F,
        pub(crate) calls: AtomicUsize,
    }

    impl<F: Fn() + Send + Sync> Worker<F> {
        pub(crate) fn new(work: F) -> Arc<Worker<F>> {
            Arc::new(Worker {
                pending: AtomicUsize::new(0),
                sleepers: false.into(),
                wake: EventFd::new().unwrap(),
                work,
                calls: AtomicUsize::new(0),
            })
        }

        /// As a peer would: leaves work, and rings if somebody sleeps.
        pub(crate) fn hand_in(&self, count: usize) {
            self.pending.fetch_add(count, Ordering::SeqCst);
            if self.sleepers.swap(false, Ordering::SeqCst) {
                self.wake.set();
            }
        }
    }

    impl<F: Fn() + Send + Sync> Progress for Worker<F> {
        fn progress(&self) {
            self.calls.fetch_add(1, Ordering::SeqCst);
            for _ in 0..self.pending.swap(0, Ordering::SeqCst) {
                (self.work)();
            }
        }

        fn arm(&self) -> bool {
            self.wake.clear();
            self.sleepers.store(true, Ordering::SeqCst);
            self.pending.load(Ordering::SeqCst) == 0
        }

        fn wake_fd(&self) -> Option<RawFd> {
            Some(self.wake.fd())
        }
    }

    #[test]
    fn an_endpoint_attached_twice_is_driven_once_and_leaves_with_its_last_use() {
        for locked in [true, false] {
            let bell = Arc::new(Bell::new(FI_WAIT_POLLFD).unwrap());
            let attached = Attached::new(Some(bell.clone()), locked);
            let (one, two) = (Worker::new(|| ()), Worker::new(|| ()));
            let (as_one, as_two): (Arc<dyn Progress>, Arc<dyn Progress>) = (one.clone(), two.clone());
            attached.attach(as_one.clone());
            attached.attach(as_two.clone());
            attached.attach(as_one.clone());
            assert_eq!((attached.count(), bell.pollfds().1.len()), (3, 1));
            attached.progress();
            assert_eq!(one.calls.load(Ordering::SeqCst), 1);
            assert!(attached.arm() && attached.arm());
            assert_eq!(bell.pollfds().1.len(), 3);
            two.hand_in(1);
            assert!(!attached.arm());
            assert_eq!(attached.detach(&as_one), Ok(()));
            assert_eq!(attached.detach(&as_two), Ok(()));
            assert_eq!(attached.detach(&as_two), Err(Errno(FI_EINVAL)));
            attached.progress();
            assert_eq!(
                (one.calls.load(Ordering::SeqCst), two.calls.load(Ordering::SeqCst)),
                (2, 1)
            );
            assert_eq!((attached.count(), bell.pollfds().1.len()), (1, 2));
            drop(attached);
            assert_eq!(bell.pollfds().1.len(), 1);
        }
    }
}
