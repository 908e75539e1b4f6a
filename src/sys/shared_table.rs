//! A named file of 64-bit words that several processes map, and that exists as long as one of them has it open.
//!
//! Each holds a lock that the kernel drops with its process. So a killed process leaves a file without a lock, which
//! the next one to open it replaces. Knows nothing of what the words mean. Called by `api::av`, and by `transport::shm`
//! to remove dead ones.

use super::{home, shared};
use core::ffi::{c_int, c_short};
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The bytes of the file that are locked. What they hold does not matter.
#[derive(Clone, Copy)]
enum LockByte {
    /// Read-locked by all that have the file open, write-locked by the one that removes it.
    Life = 0,
    /// Held by the process that writes.
    Write = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The file must exist, and a process have it open.
    Read,
    /// The file is made if there is none, or only a dead one.
    Write,
}

/// The names of tables begin with this.
pub const TABLE_PREFIX: &str = "fi_av.";

const WORD: usize = size_of::<u64>();

/// How often a table is tried to be opened that other processes remove and make meanwhile.
const TRIES: u32 = 1000;

/// The file, open and mapped as a whole. Room must be reserved before words are used.
pub struct SharedTable {
    file: File,
    path: PathBuf,
    words: *const AtomicU64,
    len: usize,
    access: Access,
    /// The process that opened it: a child of fork must not remove the file.
    process: u32,
}

// SAFETY: the mapping belongs to this value until its drop, and is only touched atomically.
unsafe impl Send for SharedTable {}
// SAFETY: as above.
unsafe impl Sync for SharedTable {}

impl SharedTable {
    /// Opens the table of this name, or makes one of `words` words, which `make` fills before anybody sees it. A file
    /// that others may write to is refused.
    pub fn open(
        path: &Path,
        access: Access,
        words: usize,
        make: impl Fn(&SharedTable) -> io::Result<()>,
    ) -> io::Result<SharedTable> {
        for _ in 0..TRIES {
            let file = match shared::open_own(path) {
                Ok((fd, _)) => File::from(fd),
                Err(error) if error.kind() == io::ErrorKind::NotFound && access == Access::Write => {
                    match make_new(path, words, &make)? {
                        Some(table) => return Ok(table),
                        None => continue,
                    }
                }
                Err(error) => return Err(error),
            };
            if remove_dead(&file, path)? {
                continue;
            }
            lock(&file, LockByte::Life, libc::F_RDLCK)?;
            if !is_at(&file, path) {
                continue;
            }
            let len = usize::try_from(file.metadata()?.len()).unwrap_or(0) / WORD;
            if len == 0 {
                // An empty file, which some process has locked: no table of ours.
                return Err(io::ErrorKind::InvalidData.into());
            }
            let at = map(&file, len, access)?;
            return Ok(SharedTable::new(file, path, at, len, access));
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn new(file: File, path: &Path, words: *const AtomicU64, len: usize, access: Access) -> SharedTable {
        SharedTable {
            file,
            path: path.to_owned(),
            words,
            len,
            access,
            process: std::process::id(),
        }
    }

    /// How many words the table has, used or not.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of a word in this process.
    pub fn address_of(&self, word: usize) -> usize {
        (self.words as usize).wrapping_add(word.saturating_mul(WORD))
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        // SAFETY: the mapping has `len` words and lives as long as this value. Other processes write words atomically.
        (at < self.len).then(|| unsafe { &*self.words.add(at) })
    }

    /// A word, 0 past the end. Relaxed, as only that is sure to work on memory mapped for reading; fences make the
    /// order.
    #[inline]
    pub fn load(&self, at: usize) -> u64 {
        self.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// A word, and all that was written before it was published.
    #[inline]
    pub fn load_published(&self, at: usize) -> u64 {
        let word = self.load(at);
        // SYNC POINT: meets the fence in `publish`.
        fence(Ordering::Acquire);
        word
    }

    /// Writes a word; does nothing past the end or on a table opened for reading.
    #[inline]
    pub fn store(&self, at: usize, value: u64) {
        if let (Some(word), Access::Write) = (self.word(at), self.access) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writes a word after all that was written before.
    #[inline]
    pub fn publish(&self, at: usize, value: u64) {
        // SYNC POINT: meets the fence in `load_published`.
        fence(Ordering::Release);
        self.store(at, value);
    }

    /// Allocates memory for some words, so that using them does not raise SIGBUS if the file system is full.
    pub fn reserve(&self, from: usize, count: usize) -> io::Result<()> {
        let bytes = |words: usize| libc::off_t::try_from(words.saturating_mul(WORD));
        let (Ok(at), Ok(len)) = (bytes(from), bytes(count)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        shared::may_be_so_long(at.saturating_add(len) as u64)?;
        loop {
            // SAFETY: plain numbers and a descriptor that is open. The answer is the error, errno is left alone.
            match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), at, len) } {
                0 => return Ok(()),
                libc::EINTR => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Waits for the lock of the writer. Released by `unlock`, or by the kernel when this process dies.
    pub fn lock(&self) -> io::Result<()> {
        lock(&self.file, LockByte::Write, libc::F_WRLCK)
    }

    pub fn unlock(&self) {
        // Unlocking does not fail.
        let _ = lock(&self.file, LockByte::Write, libc::F_UNLCK);
    }
}

/// Makes the file under a draft's name, and then links it to its own. None: another process was quicker, or a sweep
/// removed the draft.
fn make_new(
    path: &Path,
    words: usize,
    make: impl Fn(&SharedTable) -> io::Result<()>,
) -> io::Result<Option<SharedTable>> {
    let draft = home::draft(path.parent().unwrap_or(Path::new("/")), shared::random()?);
    let file = File::from(shared::create(&draft)?);
    let made = finish(file, path, words, make).and_then(|table| match shared::link(&draft, path) {
        Ok(()) => Ok(Some(table)),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    });
    let _ = std::fs::remove_file(&draft);
    made
}

/// Locks the file, and makes it a whole table.
fn finish(
    file: File,
    path: &Path,
    words: usize,
    make: impl Fn(&SharedTable) -> io::Result<()>,
) -> io::Result<SharedTable> {
    lock(&file, LockByte::Life, libc::F_RDLCK)?;
    set_words(&file, words)?;
    let at = map(&file, words, Access::Write)?;
    let table = SharedTable::new(file, path, at, words, Access::Write);
    make(&table)?;
    Ok(table)
}

/// Removes a table that no process has open. It is not used again, as a child of fork may still have it mapped. False:
/// some process has it open.
fn remove_dead(file: &File, path: &Path) -> io::Result<bool> {
    if !try_lock(file, LockByte::Life, libc::F_WRLCK)? {
        return Ok(false);
    }
    if is_at(file, path) {
        std::fs::remove_file(path)?;
    }
    Ok(true)
}

/// Removes the table of this name if no process has it open.
pub fn sweep(path: &Path) {
    if let Ok((fd, _)) = shared::open_own(path) {
        let _ = remove_dead(&File::from(fd), path);
    }
}

fn set_words(file: &File, words: usize) -> io::Result<()> {
    let bytes = words.checked_mul(WORD).ok_or(io::ErrorKind::InvalidInput)?;
    shared::may_be_so_long(bytes as u64)?;
    file.set_len(bytes as u64)
}

fn map(file: &File, len: usize, access: Access) -> io::Result<*const AtomicU64> {
    let bytes = len.checked_mul(WORD).ok_or(io::ErrorKind::InvalidInput)?;
    let rights = match access {
        Access::Read => libc::PROT_READ,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE,
    };
    // SAFETY: a new mapping at a place of the kernel's choosing, of a file that is open.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(at.cast::<AtomicU64>().cast_const())
}

impl Drop for SharedTable {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, unmapped once; no reference outlives `self`.
        unsafe { libc::munmap(self.words.cast_mut().cast(), self.len * WORD) };
        // A child of fork shares the lock with its parent, so unlocking would unlock it for the parent.
        if self.process != std::process::id() {
            return;
        }
        // Unlocked explicitly: closing is not enough while a child of another thread has the descriptor, until its
        // exec.
        let _ = lock(&self.file, LockByte::Life, libc::F_UNLCK);
        let last = try_lock(&self.file, LockByte::Life, libc::F_WRLCK).unwrap_or(false);
        if last && is_at(&self.file, &self.path) {
            // If it cannot be removed, the next process that opens it finds it dead.
            let _ = std::fs::remove_file(&self.path);
            self.path.parent().inspect(|dir| home::leave(dir));
        }
        let _ = lock(&self.file, LockByte::Life, libc::F_UNLCK);
    }
}

/// Whether a path still leads to this file: another process may have removed it while we waited.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

fn lock(file: &File, byte: LockByte, kind: c_int) -> io::Result<()> {
    loop {
        match set_lock(file, byte, kind, libc::F_OFD_SETLKW) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn try_lock(file: &File, byte: LockByte, kind: c_int) -> io::Result<bool> {
    match set_lock(file, byte, kind, libc::F_OFD_SETLK) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets a lock of the open file (F_OFD_*), not of the process: one process that opens it twice is two owners.
fn set_lock(file: &File, byte: LockByte, kind: c_int, command: c_int) -> io::Result<()> {
    let wish = libc::flock {
        l_type: kind as c_short,
        l_whence: libc::SEEK_SET as c_short,
        l_start: byte as libc::off_t,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: `wish` is a whole flock that outlives the call; the descriptor is open.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &wish) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn path(test: &str) -> PathBuf {
        let number = crate::sys::shared::random().unwrap();
        home::base().join(format!("fi_test.{number:x}.{test}"))
    }

    fn open(path: &Path, access: Access) -> io::Result<SharedTable> {
        SharedTable::open(path, access, 1024, |table| {
            table.reserve(0, 1024)?;
            table.store(0, 1);
            Ok(())
        })
    }

    #[test]
    fn a_table_lives_as_long_as_somebody_has_it() {
        let path = path("life");
        assert_eq!(
            open(&path, Access::Read).err().map(|error| error.kind()),
            Some(io::ErrorKind::NotFound)
        );
        let first = open(&path, Access::Write).unwrap();
        let second = open(&path, Access::Write).unwrap();
        let reader = open(&path, Access::Read).unwrap();
        first.publish(7, 70);
        assert_eq!(
            (second.load_published(7), reader.load_published(7), reader.len()),
            (70, 70, 1024)
        );
        drop(first);
        drop(second);
        let writer = open(&path, Access::Write).unwrap();
        assert_eq!(writer.load(7), 70, "the reader kept it alive");
        drop(reader);
        drop(writer);
        assert!(!path.exists());
    }

    /// A file under a name of ours that is not a table.
    fn left(path: &Path, mode: u32) {
        std::fs::write(path, [7u8; 8192]).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Other users that may write to a file may truncate it, which kills all processes that have it mapped.
    #[test]
    fn what_others_may_write_to_is_not_joined() {
        let path = path("strange");
        let refused = |access| open(&path, access).err().map(|error| error.kind());
        left(&path, 0o666);
        let holder = File::options().read(true).write(true).open(&path).unwrap();
        lock(&holder, LockByte::Life, libc::F_RDLCK).unwrap();
        let denied = Some(io::ErrorKind::PermissionDenied);
        assert_eq!((refused(Access::Write), refused(Access::Read)), (denied, denied));
        std::fs::remove_file(&path).unwrap();
        // A link to a file of our own.
        let other = path.with_extension("other");
        left(&other, 0o600);
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(refused(Access::Write).is_some() && refused(Access::Read).is_some());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&other).unwrap();
        // One that lives and is empty.
        left(&path, 0o600);
        let holder = File::options().read(true).write(true).open(&path).unwrap();
        lock(&holder, LockByte::Life, libc::F_RDLCK).unwrap();
        holder.set_len(0).unwrap();
        assert_eq!(refused(Access::Write), Some(io::ErrorKind::InvalidData));
        drop(holder);
        drop(open(&path, Access::Write).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn of_many_who_make_one_all_have_the_same() {
        let path = path("many");
        for _ in 0..50 {
            let tables: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| open(&path, Access::Write).unwrap()))
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            tables[0].publish(9, 9);
            assert!(tables.iter().all(|table| table.load_published(9) == 9));
        }
        assert!(!path.exists());
    }

    #[test]
    fn what_the_dead_left_is_thrown_away() {
        let path = path("dead");
        left(&path, 0o600);
        let table = open(&path, Access::Write).unwrap();
        assert_eq!((table.load(0), table.load(1), table.len()), (1, 0, 1024));
        drop(table);
        left(&path, 0o600);
        assert_eq!(
            open(&path, Access::Read).err().map(|error| error.kind()),
            Some(io::ErrorKind::NotFound)
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_table_that_cannot_be_made_is_not_there() {
        let path = path("failed");
        let made = SharedTable::open(&path, Access::Write, 8, |_| Err(io::ErrorKind::OutOfMemory.into()));
        assert!(made.is_err() && !path.exists());
        assert!(SharedTable::open(&path, Access::Write, usize::MAX, |_| Ok(())).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn words_outside_and_words_of_readers_are_left_alone() {
        let path = path("bounds");
        let writer = open(&path, Access::Write).unwrap();
        let reader = open(&path, Access::Read).unwrap();
        reader.store(5, 1);
        writer.store(1024, 1);
        assert_eq!((reader.load(5), writer.load(1024), writer.load(usize::MAX)), (0, 0, 0));
        assert_eq!(writer.address_of(3) - writer.address_of(0), 24);
    }
}
