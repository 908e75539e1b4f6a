//! Claiming a lane in a peer's file.
//!
//! The peer need only be alive: it may be asleep or busy for as long as it likes. A claim is a kernel lock on a byte of
//! the peer's file that stands for the lane. The sender's mapping of the lane keeps the open file, and so the lock, for
//! as long as its process lives. A claimer that dies before it writes the state leaves the lane free. Called by
//! `Outbound::connect`.

use super::super::Config;
use super::super::access_mark::AccessMark;
use super::super::endpoint_file::{self, EndpointFile};
use super::super::lane::{self, Lane};
use super::super::layout::{self, FileHeader, MAX_LANES, Unfit};
use super::ConnectError;
use crate::sys::forks::{self, ParentFd};
use crate::sys::open_files;
use crate::sys::shared::{self, Status};
use core::sync::atomic::Ordering;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Opens a peer's file, if its owner lives; removes it if not.
fn open_alive(path: &Path, config: &Config) -> Result<(ParentFd, Status), ConnectError> {
    let opened = match shared::open_own(path) {
        Err(error) if open_files::has_raised_limit(&error, config.debug) => shared::open_own(path),
        opened => opened,
    };
    // A child of fork that inherited the descriptor would hold the lock of our claim for as long as it lives.
    let (fd, status) = opened.map_err(|error| no_way_in(path, &error, config))?;
    let fd = ParentFd::new(fd);
    if status.size < layout::header_bytes() as u64 {
        return Err(ConnectError::Nobody);
    }
    let locked = shared::is_locked(fd.as_fd(), layout::LOCK_LIFE);
    if !locked.map_err(|error| no_way_in(path, &error, config))? {
        drop(fd);
        endpoint_file::remove_if_dead(path);
        return Err(ConnectError::Nobody);
    }
    Ok((fd, status))
}

/// What it means that a peer's file cannot be used: what this process lacks says nothing of the peer.
fn no_way_in(path: &Path, error: &io::Error, config: &Config) -> ConnectError {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOLCK) => {
            (config.warn)(&format!(
                "{}: cannot be opened now ({error}): look at the limits of this process (ulimit -n, ulimit -v, vm.max_map_count)",
                path.display()
            ));
            ConnectError::NoLane
        }
        _ => ConnectError::Nobody,
    }
}

fn warn_unfit(path: &Path, unfit: Unfit, config: &Config) {
    let path = path.display();
    match unfit {
        Unfit::NotAnEndpoint => (config.warn)(&format!("{path} is no endpoint's file")),
        Unfit::OtherVersion(version) => (config.warn)(&format!(
            "{path} has version {}.{}: the peer uses another version of this library",
            version >> 16,
            version & 0xffff
        )),
        Unfit::OtherAddress => (config.warn)(&format!("{path} belongs to another address")),
    }
}

/// A lane of our own in a peer's file; None when all are taken.
type Claimed = io::Result<Option<(usize, Lane, AccessMark)>>;

/// How often a claim is tried anew because another thread forked meanwhile; after that the fork is put up with.
const TRIES: u32 = 200;

/// Opens a peer's file and claims a lane in it. If another thread forks meanwhile, the child may have the open file,
/// and would hold the lock of the claim after our death: then all is done again, with a file opened after the fork.
pub(super) fn open_and_claim(
    path: &Path,
    address: &[u8],
    known: u64,
    own: &EndpointFile,
    config: &Config,
) -> Result<(FileHeader, Status, Claimed), ConnectError> {
    for tries_left in (0..TRIES).rev() {
        let checkpoint = forks::checkpoint();
        let (fd, status) = open_alive(path, config)?;
        let header = FileHeader::map_for_sender(fd.as_fd()).map_err(|error| no_way_in(path, &error, config))?;
        if let Err(unfit) = header.check(address) {
            warn_unfit(path, unfit, config);
            return Err(ConnectError::Nobody);
        }
        if known != 0 && known != header.instance() {
            return Err(ConnectError::OtherInstance);
        }
        let found = match find_lane(&header, fd.as_fd()) {
            Ok(Some(found)) => found,
            other => return Ok((header, status, other)),
        };
        if !checkpoint.no_fork_since() && tries_left > 0 {
            // The child shares the lock: unlocking gives it up for both processes.
            let lock = layout::LOCK_LANES + found.0 as i64;
            shared::unlock(fd.as_fd(), lock).map_err(|_| ConnectError::Nobody)?;
            std::thread::yield_now();
            continue;
        }
        drop(fd);
        // A child that was made before the drop may hold the lock still: then this lane is lost, and another is
        // claimed.
        if checkpoint.no_fork_since() || tries_left == 0 {
            take_lane(&header, &found, own);
            return Ok((header, status, Ok(Some(found))));
        }
    }
    Err(ConnectError::Nobody)
}

/// What was claimed. If that is nothing, the administrator is told why.
pub(super) fn claimed_or_warn(
    claimed: Claimed,
    path: &Path,
    config: &Config,
) -> Result<(usize, Lane, AccessMark), ConnectError> {
    let path = path.display();
    match claimed {
        Ok(Some(claimed)) => return Ok(claimed),
        Ok(None) => (config.warn)(&format!("{path}: its {MAX_LANES} rings are all taken")),
        Err(error) => {
            let need = 2 * shared::page_size();
            (config.warn)(&format!(
                "{path}: no memory for a ring, which needs {need} bytes ({error}): make {} larger, or have fewer \
                 processes send to each other",
                config.dir.display()
            ));
        }
    }
    Err(ConnectError::NoLane)
}

/// Completes the claim of a lane that we have locked, for the peer to see.
fn take_lane(header: &FileHeader, (index, lane, _): &(usize, Lane, AccessMark), own: &EndpointFile) {
    lane.init(own.instance, own.address().as_bytes());
    if header.wants_fence() || own.header.wants_fence() {
        lane.sender().store(lane::FENCED, Ordering::Relaxed);
    }
    header.raise_used(index + 1);
    header.set_claimed(*index);
    header.ring_bell(*index);
}

/// Finds a lane that is free, locks and maps it.
fn find_lane(header: &FileHeader, fd: BorrowedFd<'_>) -> Claimed {
    for index in header.first_free()..MAX_LANES {
        header.allocate_state(fd, index)?;
        if header.claim(index).is_some() {
            continue;
        }
        // The lane's mapping keeps the lock.
        let lock = layout::LOCK_LANES + index as i64;
        if !shared::try_lock(fd, lock)? {
            continue;
        }
        if header.claim(index).is_some() {
            // It was claimed meanwhile by a process that is dead already: our lock would make that look alive.
            shared::unlock(fd, lock)?;
            continue;
        }
        let mark = AccessMark::map(fd, index)?;
        return Ok(Some((index, Lane::map(fd, index)?, mark)));
    }
    Ok(None)
}
