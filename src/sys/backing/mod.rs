//! Which file is behind another process's memory, and that file mapped here too.
//!
//! - `maps`: what the kernel says of a process's mappings.
//! - `mapping`: a file's memory, mapped here.
//! - here: the file behind a range of memory, and how it is opened.
//!
//! Only shared mappings of regular files count: files, memory of memfd_create and of /dev/shm. Such a file is opened by
//! its name, by the mapping's own link in /proc, or by one of the process's descriptors; whatever opens must be the
//! very file of the mapping. Knows nothing of who the process is. Called by transports.

mod mapping;
mod maps;
#[cfg(test)]
mod tests;

use maps::{Area, Maps};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use mapping::Mapping;

/// A file, as /proc/PID/maps names it.
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

/// A file behind a range of a process's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    pub file: FileId,
    pub writable: bool,
    /// Where in the file the range begins.
    offset: u64,
    page: u64,
    name: PathBuf,
    /// Start and end of the mapping in which the range begins.
    area: (u64, u64),
}

/// The file behind `len` bytes of a process's memory; None unless all of them are one file's, mapped shared, without a
/// gap. An error if the caller may not ask about the process.
pub fn backing(pid: u32, addr: u64, len: u64) -> io::Result<Option<Backing>> {
    let maps = Maps::open(pid)?;
    Ok(backing_in(&maps, addr, len))
}

/// The most mappings that a range may consist of, as the process could make very many.
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
    // A range may consist of several mappings, whose rights differ.
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

/// The most descriptors of a process that are looked at.
const FDS_MOST: usize = 4096;

impl Backing {
    /// Where in the file the range begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Opens the file, by any of the three ways.
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

    /// Opens the path if it is this file. Checks that before opening too, as opening a device may have an effect.
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

    /// Maps `len` bytes from the beginning of the range. Fails if the file is shorter.
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
