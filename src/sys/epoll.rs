//! An epoll instance: one descriptor that is readable while one of several others is. Knows nothing of what they are.
//! Called by `api`.

use core::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

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
        self.control(libc::EPOLL_CTL_ADD, fd)
    }

    /// Removes `fd`.
    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd)
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

    fn control(&self, operation: c_int, fd: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: fd as u64,
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
}
