//! Who is told when memory of this process is unmapped, moved or emptied: a userfaultfd (userfaultfd(2)).
//!
//! Memory is watched by registering it for write protection and protecting nothing, so no access to it ever waits. What
//! waits is a call that takes pages away: munmap, mremap, brk, a mapping over it, madvise with MADV_DONTNEED, MADV_FREE
//! or MADV_REMOVE returns when somebody has read of it here. So **who reads must not do any of these**, nor wait for
//! anybody who may: neither allocate nor free. The kernel does not tell of MADV_GUARD_INSTALL (Linux 6.13), nor of a
//! file that is shortened; so watch what `mappings::is_private_anonymous` says yes to.
//!
//! Children of fork have no descriptor, and nothing of theirs is watched. Called by `transport`.

use super::eventfd::EventFd;
use super::forks::ParentFd;
use super::shared::page_size;
use core::ffi::c_int;
use core::ops::Range;
use core::ptr::null_mut;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Of linux/userfaultfd.h, as are the names below.
const UFFD_API: u64 = 0xaa;
const UFFD_USER_MODE_ONLY: c_int = 1;
const UFFD_FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
const UFFD_FEATURE_EVENT_REMAP: u64 = 1 << 2;
const UFFD_FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const UFFD_FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFD_EVENT_REMAP: u8 = 0x14;
const UFFD_EVENT_REMOVE: u8 = 0x15;
const UFFD_EVENT_UNMAP: u8 = 0x16;

const UFFDIO_API: libc::Ioctl = libc::_IOWR::<UffdioApi>(0xaa, 0x3f);
const UFFDIO_REGISTER: libc::Ioctl = libc::_IOWR::<UffdioRegister>(0xaa, 0x00);
const UFFDIO_UNREGISTER: libc::Ioctl = libc::_IOR::<UffdioRange>(0xaa, 0x01);
const UFFDIO_WRITEPROTECT: libc::Ioctl = libc::_IOWR::<UffdioWriteprotect>(0xaa, 0x06);

#[repr(C)]
struct UffdioApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct UffdioRange {
    start: u64,
    len: u64,
}

#[repr(C)]
struct UffdioRegister {
    range: UffdioRange,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct UffdioWriteprotect {
    range: UffdioRange,
    mode: u64,
}

/// The event, and its arguments: from, to and length of UFFD_EVENT_REMAP, start and end of the others.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UffdMsg {
    event: u8,
    reserved: [u8; 7],
    arguments: [u64; 3],
}

impl From<&Range<usize>> for UffdioRange {
    fn from(memory: &Range<usize>) -> UffdioRange {
        UffdioRange {
            start: memory.start as u64,
            len: memory.len() as u64,
        }
    }
}

/// The whole pages that memory lies in.
pub fn pages(memory: &Range<usize>) -> Range<usize> {
    let page = page_size();
    memory.start / page * page..memory.end.div_ceil(page).saturating_mul(page)
}

/// Memory whose pages have gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub memory: Range<usize>,
    /// The addresses are still mapped, and watched: only what was there has gone.
    pub is_mapped: bool,
}

pub struct Userfaultfd {
    fd: ParentFd,
    probe: Probe,
}

impl Userfaultfd {
    /// Needs no privilege from Linux 5.11 on, unless a sandbox forbids the call. Machines on which it can't protect
    /// against writing (before 5.7, or 6.10 on ARM) have none.
    pub fn open() -> io::Result<Userfaultfd> {
        // Faults within system calls would need a privilege; here no access ever faults. Before 5.11 there is no such
        // flag.
        let opened = open(UFFD_USER_MODE_ONLY).or_else(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => open(0),
            _ => Err(error),
        })?;
        let mut api = UffdioApi {
            api: UFFD_API,
            features: UFFD_FEATURE_PAGEFAULT_FLAG_WP
                | UFFD_FEATURE_EVENT_REMAP
                | UFFD_FEATURE_EVENT_REMOVE
                | UFFD_FEATURE_EVENT_UNMAP,
            ioctls: 0,
        };
        // SAFETY: the struct that the call reads and fills.
        told(unsafe { libc::ioctl(opened.as_raw_fd(), UFFDIO_API, &raw mut api) })?;
        let made = Userfaultfd {
            fd: ParentFd::new(opened),
            probe: Probe::new()?,
        };
        made.watch(&made.probe.memory())?;
        Ok(made)
    }

    /// Whole pages are watched from now on. An error: some of it is not mapped, of a file, or watched by another.
    pub fn watch(&self, pages: &Range<usize>) -> io::Result<()> {
        let mut register = UffdioRegister {
            range: pages.into(),
            mode: UFFDIO_REGISTER_MODE_WP,
            ioctls: 0,
        };
        // SAFETY: the struct that the call reads and fills. Memory stays as it is, as nothing in it is protected.
        told(unsafe { libc::ioctl(self.raw(), UFFDIO_REGISTER, &raw mut register) })
    }

    /// Whole pages are watched no more. Nothing can be done about an error, which leaves them watched.
    pub fn unwatch(&self, pages: &Range<usize>) {
        let mut range = UffdioRange::from(pages);
        // SAFETY: the struct that the call reads.
        unsafe { libc::ioctl(self.raw(), UFFDIO_UNREGISTER, &raw mut range) };
    }

    /// Whether everything that had gone when this was called has been read of.
    ///
    /// munmap makes addresses free for other threads before it is read of, so having read all that there is to read
    /// does not say it. But the kernel protects nothing while memory is changing (EAGAIN), from before the first page
    /// goes until it has been read of; so this asks for something that changes nothing, of a page of our own.
    pub fn is_settled(&self) -> bool {
        let mut nothing = UffdioWriteprotect {
            range: (&self.probe.memory()).into(),
            mode: 0,
        };
        // SAFETY: the struct that the call reads; the page is never touched.
        unsafe { libc::ioctl(self.raw(), UFFDIO_WRITEPROTECT, &raw mut nothing) == 0 }
    }

    /// For whoever reads. While it lives, calls that take watched memory away wait until they were read of.
    pub fn reader(&self) -> io::Result<Reader> {
        let fd = self.fd.as_fd().try_clone_to_owned()?;
        Ok(Reader(ParentFd::new(fd)))
    }

    fn raw(&self) -> RawFd {
        self.fd.as_fd().as_raw_fd()
    }
}

impl Drop for Userfaultfd {
    fn drop(&mut self) {
        // Who still reads need not read of the page of our own.
        if self.fd.is_ours() {
            self.unwatch(&self.probe.memory());
        }
    }
}

fn open(flags: c_int) -> io::Result<OwnedFd> {
    // SAFETY: a call without pointers.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK | flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn told(code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A page that nobody touches.
struct Probe(usize);

impl Probe {
    fn new() -> io::Result<Probe> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let page = unsafe { libc::mmap(null_mut(), page_size(), libc::PROT_NONE, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Probe(page as usize))
    }

    fn memory(&self) -> Range<usize> {
        self.0..self.0 + page_size()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and used by nobody.
        unsafe { libc::munmap(self.0 as *mut _, page_size()) };
    }
}

/// Neither allocates nor frees.
pub struct Reader(ParentFd);

impl Reader {
    /// How many are read at once.
    pub const ROOM: usize = 16;

    fn raw(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }

    /// Sleeps until there is something to read. False: there is nothing, and `end` is set.
    pub fn wait(&self, end: &EventFd) -> bool {
        let entry = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        loop {
            let mut both = [entry(self.raw()), entry(end.fd())];
            // SAFETY: two entries of ours, filled by the call.
            let found = unsafe { libc::poll(both.as_mut_ptr(), 2, -1) };
            let [news, end] = both.map(|entry| found > 0 && entry.revents != 0);
            if news || end {
                return news;
            }
        }
    }

    /// What there is to read, each `Gone` to `tell`. Who took it away goes on meanwhile.
    pub fn read(&self, mut tell: impl FnMut(Gone)) {
        let mut messages = [UffdMsg::default(); Reader::ROOM];
        // SAFETY: room for so many messages, filled by the call.
        let read = unsafe { libc::read(self.raw(), messages.as_mut_ptr().cast(), size_of_val(&messages)) };
        let read = usize::try_from(read).unwrap_or(0) / size_of::<UffdMsg>();
        for message in messages.iter().take(read) {
            let [first, second, third] = message.arguments.map(|number| number as usize);
            let (memory, is_mapped) = match message.event {
                UFFD_EVENT_UNMAP => (first..second, false),
                UFFD_EVENT_REMOVE => (first..second, true),
                UFFD_EVENT_REMAP => (first..first.saturating_add(third), false),
                _ => continue,
            };
            tell(Gone { memory, is_mapped });
        }
    }
}

#[cfg(test)]
mod tests;
