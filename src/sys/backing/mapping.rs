//! A file's memory, mapped here as another process has it mapped.

use crate::sys::forks::Process;
use crate::sys::shared;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A file's memory as a process has it mapped, mapped here too. Children of fork do not have it.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    whole: usize,
    /// Bytes before the first that was asked for, and how many were.
    pub(super) lead: usize,
    pub(super) len: usize,
    process: Process,
    /// Where it is used instead, for ThreadSanitizer: see `shared::tsan`.
    #[cfg(tsan)]
    seen: Option<usize>,
}

// SAFETY: memory of the process; nothing about it belongs to a thread.
unsafe impl Send for Mapping {}

const POPULATE_READ: c_int = 22;
const POPULATE_WRITE: c_int = 23;

impl Mapping {
    pub(super) fn new(file: &File, offset: u64, whole: usize, write: bool) -> io::Result<Mapping> {
        let access = if write {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at a place of the kernel's choice; it touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                whole,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping made above.
        unsafe { libc::madvise(base, whole, libc::MADV_DONTFORK) };
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Mapping {
            base,
            whole,
            lead: 0,
            len: whole,
            process: Process::this(),
            #[cfg(tsan)]
            seen: None,
        })
    }

    /// The same memory where its owner has it, if that is this process.
    #[cfg(tsan)]
    pub fn at_home(mut self, pid: u32, addr: u64) -> Mapping {
        self.seen = (pid == std::process::id()).then_some(addr as usize);
        self
    }

    /// How many bytes there are of what was asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address here of byte `at` of what was asked for.
    #[inline(always)]
    pub fn address(&self, at: usize) -> usize {
        #[cfg(tsan)]
        if let Some(seen) = self.seen {
            return seen + at;
        }
        self.base.as_ptr() as usize + self.lead + at
    }

    /// Sees that bytes have pages, which touching them then finds: a file system that is full, or a file that has
    /// become shorter, is an error here, where touching is the end of the process.
    pub fn populate(&self, at: usize, len: usize, write: bool) -> io::Result<()> {
        let page = shared::page_size();
        let from = self.lead.saturating_add(at) & !(page - 1);
        let to = self
            .lead
            .saturating_add(at)
            .saturating_add(len)
            .min(self.lead + self.len);
        let advice = if write { POPULATE_WRITE } else { POPULATE_READ };
        if from >= to {
            return Ok(());
        }
        // SAFETY: within the mapping, of which it changes nothing but whether pages are there.
        let done = unsafe { libc::madvise(self.base.as_ptr().add(from).cast(), to - from, advice) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In a child it is not there, and something else may be.
        if self.process.is_this() {
            // SAFETY: mapped by `new`; whoever used it is done.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.whole) };
        }
    }
}
