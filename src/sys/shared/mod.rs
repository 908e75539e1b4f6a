//! Files as memory that several processes share: made, opened, locked, allocated, mapped.
//!
//! Locks are those of open files (F_OFD_*). They end with the last descriptor and mapping of the open file, and so with
//! the process however it dies; and others can ask for them without taking them. Knows nothing of what the files hold.
//! Called by `transport` and other files of `sys`. `tsan` stands in for mappings under ThreadSanitizer.

#[cfg(tsan)]
mod tsan;

use super::forks::Process;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU64;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

fn open_with(path: &Path, flags: libc::c_int) -> io::Result<OwnedFd> {
    let path = c_path(path)?;
    let common = libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: a C string that lives through the call.
    let fd = checked(unsafe { libc::open(path.as_ptr(), flags | common, 0o600) })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a file that must not exist yet, with mode 0600 whatever the process's umask is.
pub fn create(path: &Path) -> io::Result<OwnedFd> {
    let fd = open_with(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)?;
    // SAFETY: an open descriptor.
    checked(unsafe { libc::fchmod(fd.as_raw_fd(), 0o600) })?;
    Ok(fd)
}

/// Makes a directory, with mode 0700 whatever the process's umask is.
pub fn create_directory(path: &Path) -> io::Result<()> {
    const MODE: libc::mode_t = 0o700;
    let name = c_path(path)?;
    // SAFETY: a C string that lives through the call.
    checked(unsafe { libc::mkdir(name.as_ptr(), MODE) })?;
    if status_of(path)?.mode != MODE {
        // Not through a link: another process of this user may have removed the directory, and somebody put a link
        // there.
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: as above.
        checked(unsafe { libc::fchmodat(libc::AT_FDCWD, name.as_ptr(), MODE, flags) })?;
    }
    Ok(())
}

/// Opens a file that only this user's processes can have made or written to: a regular one, of this user, with no
/// rights for others. Does not follow symbolic links, and does not wait. EACCES for anything else.
pub fn open_own(path: &Path) -> io::Result<(OwnedFd, Status)> {
    let fd = open_with(path, libc::O_RDWR)?;
    let status = status(&fd)?;
    if !status.is_private(libc::S_IFREG) {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok((fd, status))
}

/// Whether at least half of the file system of this path is free.
pub fn is_half_free(path: &Path) -> bool {
    let Ok(path) = c_path(path) else {
        return false;
    };
    // SAFETY: plain data, all zero is one; a string, and a place for the answer.
    let (done, status) = unsafe {
        let mut status: libc::statvfs = core::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut status), status)
    };
    done == 0 && status.f_bavail >= status.f_blocks / 2
}

/// Gives a file a second name, which must be free.
pub fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)
}

/// What fstat says, as far as we need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub device: u64,
    pub inode: u64,
    pub links: u64,
    pub owner: u32,
    pub size: u64,
    /// S_IFREG, S_IFSOCK ...
    pub kind: u32,
    /// The permission bits.
    pub mode: u32,
}

impl Status {
    fn of(stat: &libc::stat) -> Status {
        Status {
            device: stat.st_dev,
            inode: stat.st_ino,
            links: u64::from(stat.st_nlink as u32),
            owner: stat.st_uid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            kind: stat.st_mode & libc::S_IFMT,
            mode: stat.st_mode & 0o777,
        }
    }

    /// Whether it is of this kind, of this user, and without rights for others.
    pub fn is_private(&self, kind: u32) -> bool {
        self.kind == kind && self.owner == own_uid() && self.mode & 0o077 == 0
    }

    pub fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

pub fn status(fd: impl AsFd) -> io::Result<Status> {
    // SAFETY: stat is plain data; all zero is one.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: an open descriptor, and a stat to fill.
    checked(unsafe { libc::fstat(fd.as_fd().as_raw_fd(), &mut stat) })?;
    Ok(Status::of(&stat))
}

pub fn status_of(path: &Path) -> io::Result<Status> {
    let path = c_path(path)?;
    // SAFETY: stat is plain data; all zero is one.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: a C string, and a stat to fill.
    checked(unsafe { libc::lstat(path.as_ptr(), &mut stat) })?;
    Ok(Status::of(&stat))
}

pub fn own_uid() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::geteuid() }
}

pub fn page_size() -> usize {
    // SAFETY: no memory is involved.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn byte_lock(kind: libc::c_int, byte: i64) -> libc::flock {
    // SAFETY: flock is plain data; all zero is one, and l_pid must be zero.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte;
    lock.l_len = 1;
    lock
}

/// Locks one byte of an open file, until its last descriptor and mapping are gone. False: another open file has the
/// lock.
pub fn try_lock(fd: BorrowedFd<'_>, byte: i64) -> io::Result<bool> {
    let lock = byte_lock(libc::F_WRLCK, byte);
    // SAFETY: an open descriptor and a whole flock.
    match checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock) }) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives up a lock that `try_lock` got.
pub fn unlock(fd: BorrowedFd<'_>, byte: i64) -> io::Result<()> {
    let lock = byte_lock(libc::F_UNLCK, byte);
    // SAFETY: an open descriptor and a whole flock.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock) }).map(drop)
}

/// Whether another open file has the lock of a byte.
pub fn is_locked(fd: BorrowedFd<'_>, byte: i64) -> io::Result<bool> {
    let mut lock = byte_lock(libc::F_WRLCK, byte);
    // SAFETY: an open descriptor and a flock to fill.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) })?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

/// A directory that nobody else can lock until this goes.
pub struct LockedDirectory(OwnedFd);

impl LockedDirectory {
    /// None: somebody else has it locked.
    pub fn try_new(path: &Path) -> io::Result<Option<LockedDirectory>> {
        let fd = open_with(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        // Record locks want a descriptor to write with, which no directory has.
        // SAFETY: an open descriptor; no memory is involved.
        match checked(unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
            Ok(_) => Ok(Some(LockedDirectory(fd))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for LockedDirectory {
    fn drop(&mut self) {
        // Said and not left to the descriptor's end, since a child of fork may have a copy of it.
        // SAFETY: an open descriptor; no memory is involved.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Allocates memory for a range of a file, which grows if need be. Writing to it then cannot fail.
pub fn allocate(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    may_be_so_long(offset.saturating_add(len))?;
    loop {
        // SAFETY: an open descriptor; no memory is involved.
        match unsafe { libc::posix_fallocate(fd.as_raw_fd(), offset as i64, len as i64) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Whether this process may make a file so long (ulimit -f). To be asked before, because exceeding the limit raises
/// SIGXFSZ.
pub fn may_be_so_long(len: u64) -> io::Result<()> {
    // SAFETY: rlimit is plain data; all zero is one.
    let mut limit: libc::rlimit = unsafe { core::mem::zeroed() };
    // SAFETY: an rlimit to fill.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) })?;
    match len > limit.rlim_cur {
        true => Err(io::Error::from_raw_os_error(libc::EFBIG)),
        false => Ok(()),
    }
}

/// Releases the memory of a range, which then reads as zero.
pub fn release(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: an open descriptor; no memory of ours is involved.
    checked(unsafe { libc::fallocate(fd.as_raw_fd(), mode, offset as i64, len as i64) }).map(drop)
}

/// Reads bytes of a file from its start on; false when it is shorter.
pub fn read_start(fd: BorrowedFd<'_>, bytes: &mut [u8]) -> bool {
    // SAFETY: `bytes` takes what is read.
    let read = unsafe { libc::pread(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    usize::try_from(read).is_ok_and(|read| read == bytes.len())
}

/// A random number that nobody can guess; never 0.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: `bytes` takes what comes.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match got {
            8 if bytes != [0; 8] => return Ok(u64::from_ne_bytes(bytes)),
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
                return Err(io::Error::last_os_error());
            }
            _ => {}
        }
    }
}

/// A part of a file, mapped shared. Children of fork do not have it.
#[derive(Debug)]
pub struct FileMap {
    base: NonNull<u8>,
    #[cfg(tsan)]
    own: NonNull<u8>,
    len: usize,
    process: Process,
}

// SAFETY: the mapping belongs to the process, not to a thread; it is reached through atomics and raw pointers.
unsafe impl Send for FileMap {}

// SAFETY: other threads use it as other processes do: through atomics, or checking whatever they read.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// `offset` is a multiple of the page size; the range has memory behind it (`allocate`).
    pub fn new(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<FileMap> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice; it touches no memory of ours.
        let base = unsafe {
            let fd = fd.as_raw_fd();
            libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, fd, offset as i64)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A mapping keeps its open file alive, and so the file's locks. In a child of fork it must not.
        // SAFETY: the mapping made above.
        unsafe { libc::madvise(base, len, libc::MADV_DONTFORK) };
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(FileMap {
            #[cfg(not(tsan))]
            base,
            #[cfg(tsan)]
            base: tsan::share(fd, offset, len)?,
            #[cfg(tsan)]
            own: base,
            len,
            process: Process::this(),
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// False in a child of fork, which does not have the memory.
    pub fn is_ours(&self) -> bool {
        self.process.is_this()
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// A word of it. `at` is one of the caller's constants, never a number from a peer.
    #[inline]
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at + 8 <= self.len);
        // SAFETY: within the mapping and aligned; other processes use it as an atomic too.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Copies bytes out. If a peer writes meanwhile they may be torn: callers check what they get.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at);
        // SAFETY: within the mapping, as asserted; `bytes` is other memory, the caller's own.
        unsafe { ptr::copy_nonoverlapping(self.base.as_ptr().add(at), bytes.as_mut_ptr(), bytes.len()) };
    }

    pub fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at);
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.as_ptr().add(at), bytes.len()) };
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // A child of fork does not have the mapping, and may have another one at this address.
        if self.is_ours() {
            #[cfg(not(tsan))]
            let own = self.base;
            #[cfg(tsan)]
            let own = self.own;
            #[cfg(tsan)]
            tsan::leave(self.base);
            // SAFETY: mapped by `new`; everything that borrowed from it is gone.
            unsafe { libc::munmap(own.as_ptr().cast(), self.len) };
        }
    }
}
