//! A peer's memory worked on without the peer: this file is the bed, a target with one region and an initiator.
//!
//! - `access`: what is reached, and what is left to the target.
//! - `ways`: which way goes what may go several.
//! - `changes`: regions, files and processes that come and go.
//! - `closing`: a region that is closed while a peer works on it.
//! - `recall`: records taken back from a target that does not poll; `recalled_turns`: and what was said by turns;
//!   `recalled_dialogues`: in both dialogues;
//!   `order`: of all that.

mod access;
mod changes;
mod closing;
mod order;
mod recall;
mod recalled_dialogues;
mod recalled_turns;
mod ways;

use super::*;
use crate::transport::shm::direct_access::ALIVE_CHECK_EVERY;
use crate::transport::shm::region_table::{IN_SEVERAL, VISIT, mark_in_entry};
use crate::util::regions::{Busy, Region as Registered};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::ffi::CStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

const LEN: usize = 300_000;
const KEY: u64 = 77;
/// Remote addresses count from here.
const BASE: u64 = 0x1000;
const NAME: &CStr = c"reached";

/// Mapped memory, and its file if it has one.
struct Memory {
    at: *mut u8,
    file: Option<OwnedFd>,
}

// SAFETY: memory of the process, which tests touch through atomics and copies.
unsafe impl Sync for Memory {}

impl Memory {
    fn map(file: Option<OwnedFd>, flags: i32) -> Memory {
        use std::os::fd::AsRawFd;
        let fd = file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), LEN, access, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Memory { at: at.cast(), file }
    }

    fn shared() -> Memory {
        // SAFETY: a C string; the descriptor is new.
        let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC)) };
        std::fs::File::from(file.try_clone().unwrap())
            .set_len(LEN as u64)
            .unwrap();
        Memory::map(Some(file), libc::MAP_SHARED)
    }

    fn private() -> Memory {
        Memory::map(None, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn buf(&self) -> UserBuf {
        // SAFETY: mapped until this is dropped, and tests close what they registered before.
        unsafe { UserBuf::new(self.at, LEN) }
    }

    fn byte(&self, at: usize) -> &AtomicU8 {
        assert!(at < LEN);
        // SAFETY: within the mapping.
        unsafe { AtomicU8::from_ptr(self.at.add(at)) }
    }

    fn region(&self, rights: Rights) -> Registered {
        Registered {
            memory: UserIov::one(self.buf()),
            rights,
            base: BASE,
            enabled: true,
            endpoint: None,
            counted: false,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`.
        unsafe { libc::munmap(self.at.cast(), LEN) };
    }
}

fn own(bytes: &mut [u8]) -> UserIov {
    // SAFETY: the test keeps the bytes until the call that it makes next has returned.
    UserIov::one(unsafe { UserBuf::new(bytes.as_mut_ptr(), bytes.len()) })
}

fn part(at: usize, len: usize) -> RemotePart {
    RemotePart {
        addr: BASE + at as u64,
        len,
        key: KEY,
    }
}

fn write(end: &mut ShmTransport, to: PeerId, part: &RemotePart, bytes: &mut [u8]) -> bool {
    let local = own(bytes);
    end.reach(to, part, Rights::WRITE, |memory| memory.fill(&local))
        .is_some()
}

fn read(end: &mut ShmTransport, to: PeerId, part: &RemotePart, bytes: &mut [u8]) -> bool {
    let local = own(bytes);
    end.reach(to, part, Rights::READ, |memory| memory.pour(&local))
        .is_some()
}

fn copy(end: &mut ShmTransport, to: PeerId, part: &RemotePart, local: &UserIov, access: Access) -> bool {
    end.copy(to, &copy_op(part, local, access), 9) == port::Get::Done
}

/// A target with one region, and an initiator.
struct Pair {
    dir: Dir,
    regions: Arc<Regions>,
    target: ShmTransport,
    end: ShmTransport,
    to: PeerId,
}

fn pair(region: Registered) -> Pair {
    let dir = Dir::new();
    let regions = Arc::new(Regions::new(false, true));
    assert_eq!(regions.add(region, KEY), Some(KEY));
    let (mut target, mut end) = (dir.open("target"), dir.open("end"));
    target.publish_regions(&regions, 3);
    let to = end.peer(b"target").unwrap();
    Pair {
        dir,
        regions,
        target,
        end,
        to,
    }
}

fn push(end: &mut ShmTransport, to: PeerId, header: &Header, body: &[u8]) {
    assert_eq!(end.push(to, header, Body::Bytes(body), None), Push::Done);
}
