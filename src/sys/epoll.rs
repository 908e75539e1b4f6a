//! An epoll instance: one descriptor that is readable while one of several others is. Knows nothing of what they are.
//! Called by `api` and `transport`.

use core::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What became of a descriptor that was added with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub key: u64,
    /// It can be read, or the other side has ended.
    pub readable: bool,
    /// It can be written, or writing fails.
    pub writable: bool,
    /// The other side sends no more.
    pub ended: bool,
}

/// Room for the events of one call.
pub struct Events {
    raw: [libc::epoll_event; Events::ROOM],
    count: usize,
}

impl Events {
    pub const ROOM: usize = 64;

    pub fn new() -> Events {
        Events {
            raw: [libc::epoll_event { events: 0, u64: 0 }; Events::ROOM],
            count: 0,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Event> + '_ {
        let ended = (libc::EPOLLHUP | libc::EPOLLERR) as u32;
        let of = move |raw: &libc::epoll_event| Event {
            key: raw.u64,
            readable: raw.events & (ended | (libc::EPOLLIN | libc::EPOLLRDHUP) as u32) != 0,
            writable: raw.events & (ended | libc::EPOLLOUT as u32) != 0,
            ended: raw.events & (ended | libc::EPOLLRDHUP as u32) != 0,
        };
        self.raw.iter().take(self.count).map(of)
    }

    /// Whether there was no room for more.
    pub fn is_full(&self) -> bool {
        self.count == Events::ROOM
    }
}

impl Default for Events {
    fn default() -> Events {
        Events::new()
    }
}

/// A set of descriptors to wait for together, in any number of threads.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: a call without pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds `fd`, which must not be in the set.
    pub fn add(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, fd as u64)
    }

    /// Adds `fd`, whose events carry `key` as long as it can be read.
    pub fn add_with_key(&self, fd: RawFd, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN, key)
    }

    /// Adds a socket, whose events carry `key`: one when it becomes readable or writable, and when more comes.
    pub fn add_edges(&self, fd: RawFd, key: u64) -> io::Result<()> {
        let edges = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        self.control(libc::EPOLL_CTL_ADD, fd, edges, key)
    }

    /// Gives a socket of `add_edges` another key.
    pub fn rename(&self, fd: RawFd, key: u64) -> io::Result<()> {
        let edges = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        self.control(libc::EPOLL_CTL_MOD, fd, edges, key)
    }

    /// Removes `fd`.
    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// The events there are now, as many as there is room for.
    #[inline]
    pub fn look(&self, events: &mut Events) {
        let (place, room) = (events.raw.as_mut_ptr(), Events::ROOM as c_int);
        // SAFETY: room for that many events, filled by the call.
        let found = unsafe { libc::epoll_wait(self.fd(), place, room, 0) };
        events.count = usize::try_from(found).unwrap_or(0);
    }

    /// Sleeps until a descriptor is readable, `timeout` milliseconds are over (negative: never) or a signal came.
    /// Returns 1 if one is readable, else 0.
    pub fn wait(&self, timeout: c_int) -> io::Result<usize> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, filled by the call.
        let ready = unsafe { libc::epoll_wait(self.fd(), &mut event, 1, timeout) };
        usize::try_from(ready).map_err(|_| io::Error::last_os_error())
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn control(&self, operation: c_int, fd: RawFd, events: c_int, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: key,
        };
        // SAFETY: `event` is read by the call and not kept; a wrong descriptor is an error, not a hazard.
        match unsafe { libc::epoll_ctl(self.fd(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::eventfd::EventFd;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_what_was_added_wakes() {
        let (epoll, outer) = (Epoll::new().unwrap(), Epoll::new().unwrap());
        let (one, two) = (EventFd::new().unwrap(), EventFd::new().unwrap());
        epoll.add(one.fd()).unwrap();
        epoll.add(two.fd()).unwrap();
        outer.add(epoll.fd()).unwrap();
        assert!(epoll.add(one.fd()).is_err());
        one.set();
        assert_eq!((epoll.wait(0).unwrap(), outer.wait(0).unwrap()), (1, 1));
        epoll.remove(one.fd()).unwrap();
        assert!(epoll.remove(one.fd()).is_err());
        assert_eq!((epoll.wait(0).unwrap(), outer.wait(0).unwrap()), (0, 0));
        two.set();
        assert_eq!((epoll.wait(-1).unwrap(), outer.wait(-1).unwrap()), (1, 1));
    }

    #[test]
    fn edges_are_told_once_and_under_the_key() {
        let (epoll, mut events) = (Epoll::new().unwrap(), Events::new());
        let (mut a, b) = UnixStream::pair().unwrap();
        let mut look = || {
            epoll.look(&mut events);
            events.iter().collect::<Vec<Event>>()
        };
        let event = |key, readable| Event {
            key,
            readable,
            writable: true,
            ended: false,
        };
        epoll.add_edges(b.as_raw_fd(), 7).unwrap();
        assert_eq!((look(), look()), (vec![event(7, false)], vec![]));
        a.write_all(b"x").unwrap();
        assert_eq!((look(), look()), (vec![event(7, true)], vec![]));
        a.write_all(b"y").unwrap();
        assert_eq!((look(), look()), (vec![event(7, true)], vec![]));
        epoll.rename(b.as_raw_fd(), 8).unwrap();
        assert_eq!((look(), look()), (vec![event(8, true)], vec![]));
        drop(a);
        let ended = Event {
            ended: true,
            ..event(8, true)
        };
        assert_eq!((look(), look()), (vec![ended], vec![]));
    }
}
