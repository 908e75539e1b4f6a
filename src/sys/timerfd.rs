//! A timer as a descriptor that becomes readable periodically. Knows nothing of who sleeps on it. Called by `api`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is stopped.
    pub fn new() -> io::Result<TimerFd> {
        // SAFETY: a call without pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(TimerFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Starts the timer anew, to become readable once in every `every`. Zero stops it and makes it unreadable. It
    /// cannot fail, as the descriptor is a timer and the time is valid.
    pub fn set(&self, every: Duration) {
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(every.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: every.subsec_nanos().into(),
        };
        let both = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: a structure of ours, read by the call; the old setting is not asked for.
        unsafe { libc::timerfd_settime(self.fd(), 0, &both, core::ptr::null_mut()) };
    }

    /// Makes it unreadable until the next period ends.
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
