//! What file lies behind another process's memory, and that file mapped here too.
//!
//! Only shared mappings of regular files have one: a file, memory of memfd_create or of /dev/shm. The kernel says which it
//! is (/proc/PID/maps), and opening it is tried by its name, by the mapping's own link, and by the process's descriptors;
//! whatever opens must be the very same file. Knows nothing of who the process is. Called by transports.

use super::forks::Process;
use super::shared;
use core::ffi::{c_int, c_uint, c_ulong};
use core::ptr::{self, NonNull};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Which file a mapping is of, as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    major: u32,
    minor: u32,
    inode: u64,
}

impl FileId {
    pub fn new(device: u64, inode: u64) -> FileId {
        FileId {
            major: libc::major(device),
            minor: libc::minor(device),
            inode,
        }
    }

    fn of(file: &std::fs::Metadata) -> FileId {
        FileId::new(file.dev(), file.ino())
    }
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Area {
    start: u64,
    end: u64,
    shared: bool,
    writable: bool,
    offset: u64,
    /// What offsets of its file must be multiples of.
    page: u64,
    file: FileId,
    name: OsString,
}

/// A file behind a range of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    pub file: FileId,
    pub writable: bool,
    /// Where in the file the range begins.
    offset: u64,
    page: u64,
    name: PathBuf,
    /// The range of the mapping in which it begins.
    area: (u64, u64),
}

/// The maps of a process, open to be asked.
struct Maps {
    pid: u32,
    file: File,
}

/// What PROCMAP_QUERY fills in; the kernel's `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    addr: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name_addr: u64,
    build_id_addr: u64,
}

const PROCMAP_QUERY: c_ulong = 3 << 30 | (size_of::<Query>() as c_ulong) << 16 | (b'f' as c_ulong) << 8 | 17;
const VMA_WRITABLE: u64 = 2;
const VMA_SHARED: u64 = 8;
const NAME_MOST: usize = libc::PATH_MAX as usize;

impl Maps {
    fn open(pid: u32) -> io::Result<Maps> {
        let file = File::open(format!("/proc/{pid}/maps"))?;
        Ok(Maps { pid, file })
    }

    /// The mapping that an address is in.
    fn area(&self, addr: u64) -> Option<Area> {
        match self.ask(addr) {
            Ok(area) => Some(area),
            // A kernel before 6.11.
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => self.search(addr),
            Err(_) => None,
        }
    }

    fn ask(&self, addr: u64) -> io::Result<Area> {
        let mut name = vec![0u8; NAME_MOST];
        let mut query = Query {
            size: size_of::<Query>() as u64,
            addr,
            name_size: NAME_MOST as u32,
            name_addr: name.as_mut_ptr() as u64,
            ..Query::default()
        };
        // SAFETY: an open descriptor, a whole query, and the room for the name that it tells of.
        if unsafe { libc::ioctl(self.file.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) } < 0 {
            return Err(io::Error::last_os_error());
        }
        name.truncate((query.name_size as usize).saturating_sub(1).min(NAME_MOST));
        Ok(Area {
            start: query.start,
            end: query.end,
            shared: query.vma_flags & VMA_SHARED != 0,
            writable: query.vma_flags & VMA_WRITABLE != 0,
            offset: query.offset,
            page: query.page_size.max(1),
            file: FileId {
                major: query.major,
                minor: query.minor,
                inode: query.inode,
            },
            name: OsString::from_vec(name),
        })
    }

    fn search(&self, addr: u64) -> Option<Area> {
        let file = File::open(format!("/proc/{}/maps", self.pid)).ok()?;
        let lines = BufReader::new(file).split(b'\n');
        let mut areas = lines.map_while(|line| line.ok()).filter_map(|line| parse(&line));
        areas.find(|area| (area.start..area.end).contains(&addr))
    }
}

/// A line of /proc/PID/maps.
fn parse(line: &[u8]) -> Option<Area> {
    let mut rest = line;
    let mut word = || {
        let start = rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
        let text = rest.get(start..)?;
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let (word, left) = text.split_at(end);
        rest = left;
        std::str::from_utf8(word).ok()
    };
    let (start, end) = word()?.split_once('-')?;
    let flags = word()?.as_bytes();
    let offset = word()?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?;
    let name = rest.iter().position(|byte| *byte != b' ');
    let name = name.and_then(|at| rest.get(at..)).unwrap_or_default();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let hex32 = |text| u32::from_str_radix(text, 16).ok();
    Some(Area {
        start: hex(start)?,
        end: hex(end)?,
        shared: flags.get(3) == Some(&b's'),
        writable: flags.get(1) == Some(&b'w'),
        offset: hex(offset)?,
        page: shared::page_size() as u64,
        file: FileId {
            major: hex32(major)?,
            minor: hex32(minor)?,
            inode: inode.parse().ok()?,
        },
        name: OsString::from_vec(name.to_vec()),
    })
}

/// The file behind `len` bytes of a process's memory: None unless all of them are one file's, shared. An error if the
/// process may not be asked.
pub fn backing(pid: u32, addr: u64, len: u64) -> io::Result<Option<Backing>> {
    let maps = Maps::open(pid)?;
    Ok(backing_in(&maps, addr, len))
}

/// The most parts in which a range may be mapped: a process decides by itself how many its memory has.
const AREAS_MOST: usize = 256;

fn backing_in(maps: &Maps, addr: u64, len: u64) -> Option<Backing> {
    let first = maps.area(addr).filter(Area::is_shared_file)?;
    let end = addr.checked_add(len)?;
    let mut found = Backing {
        file: first.file,
        writable: first.writable,
        offset: first.offset.checked_add(addr.checked_sub(first.start)?)?,
        page: first.page,
        area: (first.start, first.end),
        name: first.name.clone().into(),
    };
    let (mut last, mut areas) = (first, 1);
    // A file may be mapped in parts, with rights that differ.
    while last.end < end {
        areas += 1;
        if areas > AREAS_MOST {
            return None;
        }
        let next = maps.area(last.end).filter(Area::is_shared_file)?;
        let follows = next.file == last.file && next.start == last.end;
        let offset = last.offset.checked_add(last.end.checked_sub(last.start)?)?;
        if !follows || next.offset != offset || next.end <= next.start {
            return None;
        }
        found.writable &= next.writable;
        last = next;
    }
    Some(found)
}

impl Area {
    fn is_shared_file(&self) -> bool {
        self.shared && self.file.inode != 0
    }
}

/// The most descriptors of a process that are looked at.
const FDS_MOST: usize = 4096;

impl Backing {
    /// Where in the file the range begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Opens the file, whatever way there is.
    pub fn open(&self, pid: u32, write: bool) -> Option<File> {
        let (start, end) = self.area;
        let named = self.name.is_absolute().then_some(self.name.as_path());
        let link = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
        named
            .and_then(|path| self.open_at(path, write))
            .or_else(|| self.open_at(&link, write))
            .or_else(|| self.open_descriptor(pid, write))
    }

    fn open_descriptor(&self, pid: u32, write: bool) -> Option<File> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let mut entries = entries.take(FDS_MOST).flatten();
        entries.find_map(|entry| self.open_at(&entry.path(), write))
    }

    /// Looks before it opens: opening what is not a file may do something.
    fn open_at(&self, path: &Path, write: bool) -> Option<File> {
        let same = |found: &std::fs::Metadata| found.is_file() && FileId::of(found) == self.file;
        std::fs::metadata(path).ok().filter(same)?;
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(flags)
            .open(path);
        let file = file.ok()?;
        file.metadata().ok().filter(same)?;
        Some(file)
    }

    /// Maps `len` bytes from where the range begins. Fails where the file ends before.
    pub fn map(&self, file: &File, len: u64, write: bool) -> io::Result<Mapping> {
        let lead = self.offset % self.page;
        let from = self.offset - lead;
        let whole = lead
            .checked_add(len)
            .and_then(|whole| whole.checked_next_multiple_of(self.page));
        let whole = whole.ok_or(io::ErrorKind::InvalidInput)?;
        if file.metadata()?.len() < self.offset.saturating_add(len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let whole = usize::try_from(whole).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut mapping = Mapping::new(file, from, whole, write)?;
        (mapping.lead, mapping.len) = (lead as usize, len as usize);
        Ok(mapping)
    }
}

/// A file's memory as a process has it mapped, mapped here too. Children of fork do not have it.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    whole: usize,
    /// Bytes before the first that was asked for, and how many were.
    lead: usize,
    len: usize,
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
    fn new(file: &File, offset: u64, whole: usize, write: bool) -> io::Result<Mapping> {
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

    /// Sees that bytes have pages, which touching them then finds: a file system that is full, or a file that has become
    /// shorter, is an error here, where touching is the end of the process.
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

const _: () = assert!(size_of::<Query>() == 104 && size_of::<c_uint>() == 4);

#[cfg(test)]
mod tests {
    use super::*;
    use core::slice;
    use std::os::fd::{FromRawFd, OwnedFd};

    fn behind(pid: u32, addr: u64, len: u64) -> Option<Backing> {
        backing(pid, addr, len).unwrap()
    }

    /// Mapped memory of this process.
    struct Own {
        at: *mut u8,
        len: usize,
    }

    impl Own {
        fn new(fd: c_int, len: usize, flags: c_int) -> Own {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping at a place of the kernel's choice.
            let at = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, fd, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            Own { at: at.cast(), len }
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: the mapping's own bytes, in a test that uses them in turn.
            unsafe { slice::from_raw_parts_mut(self.at, self.len) }
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            // SAFETY: mapped by `new`.
            unsafe { libc::munmap(self.at.cast(), self.len) };
        }
    }

    const LEN: usize = 5 * 4096;

    fn memfd() -> OwnedFd {
        // SAFETY: a C string; the descriptor is new.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"backing".as_ptr(), libc::MFD_CLOEXEC)) };
        File::from(fd.try_clone().unwrap()).set_len(LEN as u64).unwrap();
        fd
    }

    fn check(own: &mut Own, name: &str) {
        let pid = std::process::id();
        let at = own.at as u64 + 100;
        let found = behind(pid, at, 9000).unwrap_or_else(|| panic!("{name}: not found"));
        let file = found.open(pid, true).unwrap_or_else(|| panic!("{name}: not opened"));
        let mapping = found.map(&file, 9000, true).unwrap();
        assert_eq!((mapping.len(), found.writable), (9000, true));
        mapping.populate(0, 9000, true).unwrap();
        own.bytes()[100 + 8999] = 7;
        // SAFETY: the mapping's bytes.
        let theirs = unsafe { slice::from_raw_parts_mut(mapping.address(0) as *mut u8, 9000) };
        assert_eq!(theirs[8999], 7, "{name}");
        theirs[0] = 8;
        assert_eq!(own.bytes()[100], 8, "{name}");
    }

    #[test]
    fn shared_memory_of_every_kind_is_found() {
        let fd = memfd();
        check(&mut Own::new(fd.as_raw_fd(), LEN, libc::MAP_SHARED), "memfd");
        let path = format!("/dev/shm/lfab-test-backing-{:x}", shared::random().unwrap());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        file.set_len(LEN as u64).unwrap();
        let mut own = Own::new(file.as_raw_fd(), LEN, libc::MAP_SHARED);
        check(&mut own, "a file");
        std::fs::remove_file(&path).unwrap();
        check(&mut own, "a file without a name");
    }

    #[test]
    fn what_is_not_all_shared_is_not() {
        let pid = std::process::id();
        let fd = memfd();
        let shared = Own::new(fd.as_raw_fd(), LEN, libc::MAP_SHARED);
        let private = Own::new(fd.as_raw_fd(), LEN, libc::MAP_PRIVATE);
        let heap = Box::new([0u8; 100]);
        assert_eq!(behind(pid, private.at as u64, 10), None);
        assert_eq!(behind(pid, heap.as_ptr() as u64, 100), None);
        assert_eq!(behind(pid, shared.at as u64, u64::MAX), None);
        assert_eq!(behind(pid, 0, 10), None);
        // A page of another mapping in the middle.
        let hole = shared.at as u64 + 4096;
        // SAFETY: a page of this test's own mapping.
        let other = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(hole as *mut libc::c_void, 4096, libc::PROT_READ, flags, -1, 0)
        };
        assert_eq!(other as u64, hole);
        assert!(behind(pid, shared.at as u64, 4096).is_some());
        assert_eq!(behind(pid, shared.at as u64, 4097), None);
        // Rights that differ are fine, if one does not want to write.
        // SAFETY: as above.
        unsafe { libc::mprotect((hole + 4096) as *mut libc::c_void, 4096, libc::PROT_READ) };
        let rest = behind(pid, hole + 4096, 2 * 4096).unwrap();
        assert!(!rest.writable);
        assert!(behind(pid, hole + 2 * 4096, 2 * 4096).unwrap().writable);
    }

    #[test]
    fn both_ways_of_asking_say_the_same() {
        let fd = memfd();
        let own = Own::new(fd.as_raw_fd(), LEN, libc::MAP_SHARED);
        let maps = Maps::open(std::process::id()).unwrap();
        let searched = maps.search(own.at as u64 + 5000).unwrap();
        assert_eq!((searched.start, searched.shared), (own.at as u64, true));
        assert_eq!(searched.name, "/memfd:backing (deleted)");
        match maps.ask(own.at as u64 + 5000) {
            Ok(asked) => assert_eq!(asked, searched),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTTY)),
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let pid = std::process::id();
        let fd = memfd();
        let own = Own::new(fd.as_raw_fd(), LEN, libc::MAP_SHARED);
        let found = behind(pid, own.at as u64, LEN as u64).unwrap();
        let file = found.open(pid, false).unwrap();
        let mapping = found.map(&file, LEN as u64, false).unwrap();
        File::from(fd.try_clone().unwrap()).set_len(4096).unwrap();
        mapping.populate(0, 4096, false).unwrap();
        assert!(mapping.populate(4096, 10, false).is_err());
        assert!(found.map(&file, LEN as u64, false).is_err());
    }
}
