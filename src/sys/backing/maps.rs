//! The mappings of a process: asked by PROCMAP_QUERY, or read from the text of /proc/PID/maps on kernels without that.

use super::FileId;
use crate::sys::shared;
use core::ffi::{c_uint, c_ulong};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub start: u64,
    pub end: u64,
    pub shared: bool,
    pub writable: bool,
    pub offset: u64,
    /// The page size, of which offsets in the file must be multiples.
    pub page: u64,
    pub file: FileId,
    pub name: OsString,
}

impl Area {
    pub(super) fn is_shared_file(&self) -> bool {
        self.shared && self.file.inode != 0
    }
}

/// /proc/PID/maps, open.
pub(super) struct Maps {
    pid: u32,
    file: File,
}

/// The kernel's `struct procmap_query`.
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
const _: () = assert!(size_of::<Query>() == 104 && size_of::<c_uint>() == 4);

const VMA_WRITABLE: u64 = 2;
const VMA_SHARED: u64 = 8;
const NAME_MOST: usize = libc::PATH_MAX as usize;

impl Maps {
    pub(super) fn open(pid: u32) -> io::Result<Maps> {
        let file = File::open(format!("/proc/{pid}/maps"))?;
        Ok(Maps { pid, file })
    }

    /// The mapping that an address is in.
    pub(super) fn area(&self, addr: u64) -> Option<Area> {
        match self.ask(addr) {
            Ok(area) => Some(area),
            // Kernels before 6.11 do not know the query.
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => self.search(addr),
            Err(_) => None,
        }
    }

    pub(super) fn ask(&self, addr: u64) -> io::Result<Area> {
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

    pub(super) fn search(&self, addr: u64) -> Option<Area> {
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
