//! What the system only tells by a call: the room of a file system, whether the kernel copies between processes, and what
//! another program says of itself.
//!
//! Decides nothing. Called by `check::machine`.

use core::ffi::{c_int, c_void};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file system, as statvfs(3) and access(2) tell it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    pub size: u64,
    pub free: u64,
    /// Files can be made there by this user.
    pub writable: bool,
}

pub fn room(path: &Path) -> io::Result<Room> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a structure of numbers, of zeroes; it is filled by the call.
    let mut told = unsafe { core::mem::zeroed::<libc::statvfs>() };
    // SAFETY: a string, and the structure.
    if unsafe { libc::statvfs(path.as_ptr(), &mut told) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a string.
    let writable = unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0;
    Ok(Room {
        size: told.f_blocks * told.f_frsize,
        free: told.f_bavail * told.f_frsize,
        writable,
    })
}

/// Whether a process may read and write another one's memory: a child does it to us. None: it may; else what the kernel
/// answered. We are no child of our child, so it is to us as another process of a job is.
pub fn copying_is_refused() -> Option<io::Error> {
    let mut word: u64 = 0x5eed;
    let place = libc::iovec {
        iov_base: (&raw mut word).cast::<c_void>(),
        iov_len: size_of::<u64>(),
    };
    // SAFETY: takes nothing and only answers.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child makes system calls alone, on its own stack, and leaves by _exit.
    match unsafe { libc::fork() } {
        // SAFETY: in the child, which an alarm ends if it hangs; what it does is one function, which returns.
        0 => unsafe {
            libc::alarm(10);
            libc::_exit(copy(parent, place))
        },
        -1 => Some(io::Error::last_os_error()),
        child => match waited(child) {
            // SAFETY: our own word, which the child may have written behind the compiler's back.
            _ if unsafe { (&raw const word).read_volatile() } == 0x5eee => None,
            Some(errno) if errno != 0 => Some(io::Error::from_raw_os_error(errno)),
            _ => Some(io::Error::other("the process that tried was ended")),
        },
    }
}

/// Reads a word of a process, and writes it back with one more. The errno of what was refused.
fn copy(pid: libc::pid_t, remote: libc::iovec) -> c_int {
    let mut word: u64 = 0;
    let own = &raw mut word;
    let local = libc::iovec {
        iov_base: own.cast::<c_void>(),
        iov_len: size_of::<u64>(),
    };
    // SAFETY: the local word is ours; the other process waits meanwhile, and lends its word.
    unsafe {
        if libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 {
            return *libc::__errno_location();
        }
        own.write(own.read() + 1);
        if libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 {
            return *libc::__errno_location();
        }
    }
    0
}

/// The exit status of a child; None: a signal ended it.
fn waited(child: libc::pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: a child of ours, and a place for its status.
    while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_of_folders_that_are_there() {
        let room = room(Path::new("/")).unwrap();
        assert!(room.size > 0 && room.free <= room.size);
        assert!(super::room(Path::new("/no such folder")).is_err());
    }

    /// What is refused to a process is told by its number, and memory that is not there is refused to all.
    #[test]
    fn a_refusal_has_a_number() {
        let nowhere = libc::iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 8,
        };
        let (errno, own) = (copy(i32::MAX, nowhere), copy(std::process::id() as i32, nowhere));
        assert!(errno != 0 && own != 0, "{errno} {own}");
    }
}
