//! An endpoint that nobody polls until it has something to do. Part of `TcpTransport`.
//!
//! What the kernel knows makes the epoll instance readable: what comes, room in a socket, a deadline, for which the
//! timer is kept set. What only the endpoint knows sets its mark: what a push has gathered, or what a poll has left.
//! Called by `provider`, and after each push and poll.

use super::TcpTransport;
use crate::util::ready::Ready;
use core::sync::atomic::Ordering;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Watched {
    mark: Option<Arc<Ready>>,
    /// The mark was set since the last poll began.
    is_marked: bool,
}

impl Watched {
    #[inline]
    pub(super) fn is_watched(&self) -> bool {
        self.mark.is_some()
    }

    /// A poll begins. Whether it has to ask epoll.
    #[inline]
    pub(super) fn begin_poll(&mut self) -> bool {
        self.is_marked = false;
        self.mark.as_ref().is_some_and(|mark| mark.take_readable())
    }

    /// There is something to do that the kernel does not tell of.
    #[inline]
    pub(super) fn mark(&mut self) {
        if let Some(mark) = self.mark.as_ref().filter(|_| !self.is_marked) {
            mark.set();
            self.is_marked = true;
        }
    }
}

impl TcpTransport {
    /// From now on the endpoint is polled when this mark is set or its descriptor is readable.
    pub fn be_watched(&mut self, mark: &Arc<Ready>) {
        self.watched.mark = Some(mark.clone());
        self.after_watched_poll();
    }

    /// The next poll is called when it is needed, as none may come before.
    #[cold]
    pub(super) fn after_watched_poll(&mut self) {
        if self.has_left_something() {
            self.watched.mark();
        }
        let next = self.next_deadline();
        if next != self.timed_for {
            self.time(next);
        }
    }

    /// Whether a poll would find something without asking the kernel.
    pub(super) fn has_left_something(&mut self) -> bool {
        let peers = &mut self.peers;
        let mut active = self.active.iter();
        active.any(|number| peers.link(*number).is_some_and(|link| link.has_news()))
            || !(self.unsent.is_empty() && self.peers.ended.is_empty() && self.self_queue.is_empty())
            || !self.news_of_ways.is_empty()
            || self.desk.has_arrivals.load(Ordering::Acquire)
    }
}
