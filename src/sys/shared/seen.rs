//! For ThreadSanitizer only (cfg tsan: build.rs), which knows memory by its address: a range of a file that a process maps
//! twice is used at one address, so that two endpoints in one process are seen to meet.
//!
//! Every mapping is made as ever, for it holds its own open file and its locks. What is used in its place is made once,
//! from a file opened anew, and goes with the last who uses it. Called by `super::Map`.

use super::{Process, status};
use core::ptr::{self, NonNull};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device, inode, offset, length, and the process, as a child of fork has none of its parent's.
type Range = (u64, u64, u64, usize, Process);

struct Users {
    base: usize,
    count: usize,
}

static RANGES: Mutex<Option<HashMap<Range, Users>>> = Mutex::new(None);

fn ranges() -> MutexGuard<'static, Option<HashMap<Range, Users>>> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one address of a range.
pub fn share(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<NonNull<u8>> {
    let file = status(fd)?;
    let range = (file.device, file.inode, offset, len, Process::this());
    let mut ranges = ranges();
    let users = match ranges.get_or_insert_default().entry(range) {
        std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
        std::collections::hash_map::Entry::Vacant(place) => place.insert(Users {
            base: map(fd, offset, len)?,
            count: 0,
        }),
    };
    users.count += 1;
    NonNull::new(users.base as *mut u8).ok_or_else(io::Error::last_os_error)
}

/// One who used it is gone.
pub fn leave(base: NonNull<u8>) {
    let mut ranges = ranges();
    let Some(ranges) = ranges.as_mut() else { return };
    let here = |users: &Users| users.base == base.as_ptr() as usize;
    let found = ranges
        .iter_mut()
        .find(|(range, users)| range.4.is_this() && here(users));
    let Some((range, users)) = found else { return };
    users.count -= 1;
    if users.count == 0 {
        let range = *range;
        // SAFETY: made by `map`, and the last who used it is gone.
        unsafe { libc::munmap(base.as_ptr().cast(), range.3) };
        ranges.remove(&range);
    }
}

fn map(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<usize> {
    let anew = std::fs::File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice; it touches no memory of ours.
    let base = unsafe {
        let base = libc::mmap(
            ptr::null_mut(),
            len,
            access,
            libc::MAP_SHARED,
            anew.as_raw_fd(),
            offset as i64,
        );
        libc::madvise(base, len, libc::MADV_DONTFORK);
        base
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base as usize)
}
