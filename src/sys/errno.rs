//! The thread's `errno`, kept over calls that change it: an application may read it after a call of ours that succeeded
//! but logged meanwhile. Called by `api::log` and `abi`.

use core::ffi::c_int;

/// Puts `errno` back to what it was when this value was made.
pub struct Kept(c_int);

/// Remembers `errno` until the value goes out of scope.
pub fn keep() -> Kept {
    // SAFETY: __errno_location gives this thread's own errno, valid as long as the thread runs.
    Kept(unsafe { *libc::__errno_location() })
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: as in `keep`.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_survives_a_failing_call() {
        let set = |value| {
            // SAFETY: this thread's own errno.
            unsafe { *libc::__errno_location() = value };
        };
        set(77);
        {
            let _errno = keep();
            set(libc::EBADF);
        }
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(77));
    }
}
