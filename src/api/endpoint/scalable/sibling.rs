//! A transmit context as the other contexts of its scalable endpoint drive it: while it has begun something.
//!
//! A program that has sent a question reads the queue that the answer comes to, and perhaps no other. So reading any
//! queue of a scalable endpoint moves on what its transmit contexts have begun. A context that is idle costs a look at
//! its flag. Called by `scalable`, and by the queues it is attached to.

use crate::api::endpoint::{Endpoint, EndpointTransport};
use crate::api::progress::Progress;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::Arc;

pub(super) struct Sibling<T: EndpointTransport> {
    endpoint: Arc<Endpoint<T>>,
    /// Something may be unfinished. Set and taken back under the endpoint's lock, and set by who is going to sleep.
    busy: Arc<AtomicBool>,
}

impl<T: EndpointTransport + 'static> Sibling<T> {
    pub(super) fn new(endpoint: &Arc<Endpoint<T>>) -> Arc<Sibling<T>> {
        Arc::new(Sibling {
            endpoint: endpoint.clone(),
            busy: Arc::default(),
        })
    }

    /// Has the endpoint say when it is busy, beginning now: it may be already. To be called anew when it is made anew.
    pub(super) fn begin(&self) {
        self.endpoint.host.share(&self.busy);
        self.busy.store(true, Ordering::Relaxed);
    }
}

impl<T: EndpointTransport + 'static> Progress for Sibling<T> {
    #[inline]
    fn progress(&self) {
        if self.busy.load(Ordering::Relaxed) {
            self.endpoint.host.progress_shared();
        }
    }

    /// What it wakes a sleeper for may be nothing that it has begun; it is driven all the same, or nobody would sleep.
    fn arm(&self) -> bool {
        let armed = self.endpoint.arm();
        if !armed {
            self.busy.store(true, Ordering::Relaxed);
        }
        armed
    }

    fn unfinished(&self) -> bool {
        self.endpoint.unfinished()
    }

    fn settle(&self) {
        self.endpoint.settle();
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.endpoint.wake_fd()
    }
}
