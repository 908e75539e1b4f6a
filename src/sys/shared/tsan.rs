//! For ThreadSanitizer only (cfg tsan: build.rs), which knows memory by its address: a file that a process maps several
//! times is used at one address, so that accesses of two endpoints in one process are seen as accesses of one memory.
//!
//! `FileMap` still makes its own mapping, as that keeps the open file and its locks. What is used in its place is made
//! once for each file, from a new open file, and unmapped with the last user. Called by `super::FileMap`.

use super::{Process, status};
use core::ptr::{self, NonNull};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device and inode, and the process, as a child of fork has no mapping of its parent's.
type File = (u64, u64, Process);

/// Longer than any file of ours. It costs addresses only.
const WHOLE: usize = 16 << 30;

struct Users {
    base: usize,
    count: usize,
}

static FILES: Mutex<Option<HashMap<File, Users>>> = Mutex::new(None);

fn files() -> MutexGuard<'static, Option<HashMap<File, Users>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The one address in this process for a part of a file.
pub fn share(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<NonNull<u8>> {
    let at = usize::try_from(offset).map_err(io::Error::other)?;
    if at.checked_add(len).is_none_or(|end| end > WHOLE) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let status = status(fd)?;
    let file = (status.device, status.inode, Process::this());
    let mut files = files();
    let users = match files.get_or_insert_default().entry(file) {
        std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
        std::collections::hash_map::Entry::Vacant(place) => place.insert(Users {
            base: map(fd)?,
            count: 0,
        }),
    };
    users.count += 1;
    NonNull::new((users.base + at) as *mut u8).ok_or_else(io::Error::last_os_error)
}

/// A user of the mapping is gone.
pub fn leave(place: NonNull<u8>) {
    let mut files = files();
    let Some(files) = files.as_mut() else { return };
    let at = place.as_ptr() as usize;
    let here = |users: &Users| (users.base..users.base + WHOLE).contains(&at);
    let found = files.iter_mut().find(|(file, users)| file.2.is_this() && here(users));
    let Some((file, users)) = found else { return };
    users.count -= 1;
    if users.count == 0 {
        let (file, base) = (*file, users.base);
        // SAFETY: made by `map`, and the last who used it is gone.
        unsafe { libc::munmap(base as *mut libc::c_void, WHOLE) };
        files.remove(&file);
    }
}

fn map(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let anew = std::fs::File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice; it touches no memory of ours.
    let base = unsafe {
        let base = libc::mmap(ptr::null_mut(), WHOLE, access, libc::MAP_SHARED, anew.as_raw_fd(), 0);
        libc::madvise(base, WHOLE, libc::MADV_DONTFORK);
        base
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base as usize)
}
