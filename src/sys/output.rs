//! Lines to a file descriptor, without a buffer or a lock, so that they work in any child of fork. Called by
//! `api::log`.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub const STDOUT: RawFd = 1;
pub const STDERR: RawFd = 2;

/// Opens a file that must not exist yet, to be written at its end.
pub fn create_new(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map(OwnedFd::from)
}

/// Writes all of `line`, by one write(2) unless the system takes less. A line that cannot be written is given up, as
/// there is nowhere to report it.
pub fn write(fd: RawFd, line: &[u8]) {
    let mut rest = line;
    while !rest.is_empty() {
        // SAFETY: `rest` is readable for its whole length; a bad descriptor is answered with EBADF.
        let wrote = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(wrote) {
            Ok(0) => return,
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
