//! A file's memory, mapped here as another process has it mapped. Knows nothing of who the process is.

use crate::sys::forks::Process;
use crate::sys::shared;
use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A range of a file, mapped. Children of fork do not have it.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    whole: usize,
    /// Bytes that were mapped before the range, as offsets must be multiples of pages, and the length of the range.
    pub(super) lead: usize,
    pub(super) len: usize,
    process: Process,
    /// The address that is used instead, for ThreadSanitizer: see `shared::tsan`.
    #[cfg(tsan)]
    seen: Option<usize>,
}

// SAFETY: the mapping belongs to the process, not to a thread.
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

    /// Uses the owner's own address, if the owner is this process.
    #[cfg(tsan)]
    pub fn at_home(mut self, pid: u32, addr: u64) -> Mapping {
        self.seen = (pid == std::process::id()).then_some(addr as usize);
        self
    }

    /// The length of the range.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of byte `at` of the range.
    #[inline(always)]
    pub fn address(&self, at: usize) -> usize {
        #[cfg(tsan)]
        if let Some(seen) = self.seen {
            return seen + at;
        }
        self.base.as_ptr() as usize + self.lead + at
    }

    /// Populates the pages of some bytes. If the file system is full or the file has become shorter, that is an error
    /// here, where touching the bytes would raise SIGBUS.
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
        // SAFETY: within the mapping; populating pages changes none of its bytes.
        let done = unsafe { libc::madvise(self.base.as_ptr().add(from).cast(), to - from, advice) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A child of fork does not have the mapping, and may have another one at this address.
        if self.process.is_this() {
            // SAFETY: mapped by `new`; addresses were handed out on condition that this value outlives their use.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.whole) };
        }
    }
}
