//! An endpoint's own file: made whole before anyone sees it, locked while the owner is alive, removed after.
//!
//! A file is made as a draft, under a name that nobody looks for; it is locked, filled, and only then linked to its
//! real name. So a file that can be found was locked once, and if nobody holds its lock, its owner is dead and whoever
//! finds it may remove it. Removers exclude each other by a second lock, and check that the name still means the file
//! they opened.
//!
//! Beside it is the socket that wakes the owner (`doorbell`), which is named after the instance and made first.
//!
//! The locks are record locks of the open file (F_OFD_*) and not flock(2): others can ask for them without taking them,
//! so that a peer that asks does not disturb an owner that starts; and a file has one for each byte, so that the claim
//! of a lane ends with its claimer too.
//!
//! Called by `ShmTransport`, `outbound`, `peers` and `sweep`.

use super::doorbell::Doorbell;
use super::layout::{self, FileHeader, Owner};
use super::name;
use super::wide_rings::WideRings;
use super::{Config, OpenError, sweep};
use crate::sys::forks::{self, ParentFd};
use crate::sys::shared::FileMap;
use crate::sys::{barrier, identity, shared};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct EndpointFile {
    pub header: FileHeader,
    pub instance: u64,
    /// Whether other processes' membarrier reaches this one, so that it need not fence when it sends.
    pub in_barrier: bool,
    /// Holds the instance. Peers read it by the kernel, to prove that a pid is ours (`proof`).
    probe: Box<AtomicU64>,
    lanes: Arc<FileMap>,
    file: Arc<ParentFd>,
    pub doorbell: Arc<Doorbell>,
    pub wide_rings: WideRings,
    path: PathBuf,
    address: String,
}

impl EndpointFile {
    pub(super) fn open(address: &str, config: &Config) -> Result<EndpointFile, OpenError> {
        if name::normal(address.as_bytes()) != Some(address.as_bytes()) {
            return Err(OpenError::Address);
        }
        sweep::begin(&config.dir);
        let probe = Box::new(AtomicU64::new(0));
        let in_barrier = barrier::join();
        let mut owner = Owner {
            address: address.as_bytes(),
            instance: 0,
            pid: std::process::id(),
            probe: (&raw const *probe) as u64,
            fence: !in_barrier || !barrier::everywhere(),
        };
        let path = name::endpoint_file(&config.dir, owner.address);
        let made = publish(&path, config, &mut owner, &probe)?;
        Ok(EndpointFile {
            header: made.header,
            instance: owner.instance,
            in_barrier,
            probe,
            lanes: made.lanes,
            file: Arc::new(made.file),
            doorbell: Arc::new(made.doorbell),
            wide_rings: WideRings::default(),
            path,
            address: address.to_owned(),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The lanes of all senders.
    pub(super) fn lanes(&self) -> &Arc<FileMap> {
        &self.lanes
    }

    /// The file, to be held open for longer than the endpoint.
    pub(super) fn hold_file(&self) -> Arc<ParentFd> {
        self.file.clone()
    }

    /// False in a child of fork, where none of this may be touched.
    #[inline]
    pub(super) fn is_ours(&self) -> bool {
        self.file.is_ours()
    }
}

impl Drop for EndpointFile {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        self.probe.store(0, Ordering::Relaxed);
        self.header.attention().fetch_or(layout::CLOSED, Ordering::Release);
        let named = shared::status_of(&self.path);
        if let (Ok(mine), Ok(named)) = (shared::status(self.file()), named) {
            if mine.is_same_file(&named) {
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }
}

/// How often a name is tried that other processes are busy with, and the pause between, before it counts as taken.
pub(super) const TRIES: u32 = 200;
pub(super) const NAP: Duration = Duration::from_millis(1);

/// A finished file, and the socket beside it.
struct Made {
    file: ParentFd,
    header: FileHeader,
    lanes: Arc<FileMap>,
    doorbell: Doorbell,
}

/// Makes the file and links it to its name. Draws a new instance each time it tries.
fn publish(path: &Path, config: &Config, owner: &mut Owner<'_>, probe: &AtomicU64) -> Result<Made, OpenError> {
    let failed = |what| move |error| OpenError::from_io(what, error, &config.dir);
    for tries_left in (0..TRIES).rev() {
        owner.instance = shared::random().map_err(failed("getrandom"))?;
        probe.store(owner.instance, Ordering::Relaxed);
        let draft = name::unfinished(&config.dir, owner.instance);
        let checkpoint = forks::checkpoint();
        let fd = shared::create(&draft).map_err(failed("open"))?;
        let made = fill(fd, owner, &config.dir);
        let named = match made {
            // Another thread forked meanwhile: the child may hold the lock, and we would seem alive after our death.
            Ok(Some(_)) if tries_left > 0 && !checkpoint.no_fork_since() => Ok(false),
            Ok(Some(_)) => take_name(&draft, path),
            // A sweep removed the draft before it was locked.
            Ok(None) => Ok(false),
            Err(_) => Ok(false),
        };
        let _ = std::fs::remove_file(&draft);
        let made = made.map_err(|(what, error)| OpenError::from_io(what, error, &config.dir))?;
        if let (Some(made), true) = (made, named?) {
            return Ok(made);
        }
    }
    Err(OpenError::InUse)
}

/// Makes a draft of a new file whole. None: a sweep removed it.
fn fill(fd: OwnedFd, owner: &Owner<'_>, dir: &Path) -> Result<Option<Made>, (&'static str, io::Error)> {
    let failed = |what| move |error| (what, error);
    // Before it is locked, so that no child of fork has the descriptor and with it the lock.
    let file = ParentFd::new(fd);
    let locked = shared::try_lock(file.as_fd(), layout::LOCK_LIFE).map_err(failed("fcntl"))?;
    if !locked || shared::status(&file).map_err(failed("fstat"))?.links == 0 {
        return Ok(None);
    }
    layout::allocate_header(file.as_fd()).map_err(failed("posix_fallocate"))?;
    let header = FileHeader::map_own(file.as_fd()).map_err(failed("mmap"))?;
    let lanes = layout::map_lanes(file.as_fd()).map_err(failed("mmap"))?;
    header.init(owner);
    // A sweep leaves the socket alone while the draft of its instance exists.
    let doorbell = Doorbell::bind(dir, owner.instance).map_err(failed("bind"))?;
    Ok(Some(Made {
        file,
        header,
        lanes,
        doorbell,
    }))
}

/// Links the finished file to its name, after removing that of a dead endpoint. False: the draft was removed.
fn take_name(draft: &Path, path: &Path) -> Result<bool, OpenError> {
    for _ in 0..TRIES {
        match shared::link(draft, path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(OpenError::System("link", error)),
        }
        match remove_if_dead(path) {
            Removal::Alive => return Err(OpenError::InUse),
            Removal::Removed => {}
            Removal::Busy | Removal::Ending => std::thread::sleep(NAP),
        }
    }
    Err(OpenError::InUse)
}

/// What became of a file that was to be removed if dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    Alive,
    Removed,
    /// Another process is removing it, or has just done so.
    Busy,
    /// Its owner has ended, but a peer's call of process_vm_readv or process_vm_writev still has the memory, and with
    /// it the lock.
    Ending,
}

/// Removes an endpoint's file, and its socket, if the owner is dead. What cannot be opened counts as alive.
pub(super) fn remove_if_dead(path: &Path) -> Removal {
    let (fd, status) = match shared::open_own(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Removal::Removed,
        Err(_) => return Removal::Alive,
    };
    if shared::is_locked(fd.as_fd(), layout::LOCK_LIFE).unwrap_or(true) {
        let owner = layout::pid_in(fd.as_fd());
        return match owner.is_some_and(identity::has_ended) {
            true => Removal::Ending,
            false => Removal::Alive,
        };
    }
    if !shared::try_lock(fd.as_fd(), layout::LOCK_REMOVE).unwrap_or(false) {
        return Removal::Busy;
    }
    if !shared::status_of(path).is_ok_and(|named| named.is_same_file(&status)) {
        return Removal::Busy;
    }
    if let (Some(dir), Some(instance)) = (path.parent(), layout::instance_in(fd.as_fd())) {
        let _ = std::fs::remove_file(name::doorbell(dir, instance));
    }
    match std::fs::remove_file(path) {
        Ok(()) => Removal::Removed,
        Err(_) => Removal::Busy,
    }
}
