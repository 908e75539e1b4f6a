//! A timer as a descriptor: readable now and again while it runs. Knows nothing of who sleeps on it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// One that does not run.
    pub fn new() -> io::Result<TimerFd> {
        // SAFETY: a call without pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// From now on it becomes readable once in every such time. Zero stops it, and makes it unreadable. It cannot fail:
    /// the descriptor is a timer, and the times are sound.
    pub fn set(&self, every: Duration) {
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(every.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: every.subsec_nanos().into(),
        };
        let both = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: a structure of ours, read by the call, and no place for the old one.
        unsafe { libc::timerfd_settime(self.fd(), 0, &both, core::ptr::null_mut()) };
    }

    /// Makes it unreadable until the next time.
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
    fn it_is_readable_again_and_again_until_stopped() {
        let timer = TimerFd::new().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(timer.fd()).unwrap();
        assert_eq!(epoll.wait(0).unwrap(), 0);
        timer.set(Duration::from_millis(2));
        for _ in 0..3 {
            assert_eq!(epoll.wait(-1).unwrap(), 1);
            timer.clear();
        }
        assert_eq!(epoll.wait(-1).unwrap(), 1);
        timer.set(Duration::ZERO);
        assert_eq!(epoll.wait(0).unwrap(), 0);
        timer.clear();
    }
}
