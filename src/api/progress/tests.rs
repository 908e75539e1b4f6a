//! `Worker`, the endpoint of all tests of `api` that need something to drive; and who is driven how often.

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
