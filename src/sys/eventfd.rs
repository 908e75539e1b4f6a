//! An eventfd: a descriptor that one thread makes readable to wake others. Knows nothing of who sleeps. Called by
//! `api`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable while it is set.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: a call without pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable. It cannot fail: a full count is readable already.
    pub fn set(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of ours, read by the call.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Makes it unreadable. It cannot fail: an empty count is what is wanted.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes of ours, filled by the call.
        unsafe { libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::epoll::Epoll;

    #[test]
    fn it_is_readable_from_set_to_clear() {
        let event = EventFd::new().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(event.fd()).unwrap();
        assert_eq!(epoll.wait(0).unwrap(), 0);
        event.set();
        event.set();
        assert_eq!((epoll.wait(-1).unwrap(), epoll.wait(0).unwrap()), (1, 1));
        event.clear();
        assert_eq!(epoll.wait(0).unwrap(), 0);
        event.clear();
        assert_eq!(epoll.wait(0).unwrap(), 0);
    }
}
