//! Shared memory of every kind, found through this process's own maps.

use super::maps::Maps;
use super::*;
use crate::sys::shared;
use core::ffi::c_int;
use core::ptr;
use core::slice;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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
    // Mappings whose rights differ are one range, which is not writable.
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
