//! Sleeping on the epoll instance until something comes. Part of `TcpTransport`.
//!
//! Called by `provider` for wait objects. Sockets tell once when something has come, so whoever has seen that keeps it
//! in mind until it is read; then nobody sleeps.

use super::{TcpTransport, key};
use crate::engine::port::PeerId;
use crate::sys::epoll::Events;
use std::os::fd::RawFd;

impl TcpTransport {
    /// The descriptor that becomes readable when there may be something to poll, after `arm` returned true.
    pub fn wake_fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// Makes that descriptor readable.
    pub fn wake(&self) {
        self.desk.wake();
    }

    /// Sends what was gathered, and looks whether there is something to poll. From now on nothing is gathered.
    pub fn arm(&mut self) -> bool {
        if !self.is_ours() {
            return true;
        }
        self.armed = true;
        self.desk.quieten();
        self.timer.clear();
        self.flush_links();
        let mut events = Events::new();
        self.epoll.look(&mut events);
        let mut quiet = !events.is_full();
        for event in events.iter() {
            match event.key {
                key::LOBBY | key::BELL | key::TIMER => quiet = false,
                _ if event.key & 1 == key::LINK => self.link_has_news(event),
                _ => self.news_of_ways.push((event.key >> 1) as PeerId),
            }
        }
        self.set_timer() && quiet && !self.has_left_something()
    }
}
