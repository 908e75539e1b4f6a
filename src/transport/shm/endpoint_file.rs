//! The life of an endpoint's own file: made whole before anyone sees it, locked while the owner lives, removed after.
//!
//! A file is made under a name of no meaning, locked, filled, and only then linked to its real name, so every region
//! that can be seen was locked at first; one whose lock nobody holds is dead for ever, and may be removed by whoever
//! finds it. Removers exclude each other by a second lock and see that the name still means the file they looked at.
//!
//! Beside it lies the socket that wakes its owner (`doorbell`), named after the instance: made before the region is seen.
//!
//! The locks are the kernel's record locks on open files and not flock(2): they can be asked about without being taken,
//! so a peer that looks does not disturb one that starts, and a file has as many as it has bytes, so that claiming a
//! ring is undone by the kernel too when the claimer dies.

use super::doorbell::Doorbell;
use super::layout::{self, Header, Owner};
use super::name;
use super::{Config, OpenError, sweep};
use crate::sys::forks::{self, ParentFd};
use crate::sys::shared::FileMap;
use crate::sys::{barrier, shared};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub struct EndpointFile {
    pub header: Header,
    pub instance: u64,
    pub pid: u32,
    /// Whether a barrier of the kernel's reaches this process, so that its senders need not fence.
    pub in_barrier: bool,
    /// Where peers prove that they read the right process.
    probe: Box<AtomicU64>,
    lanes: Arc<FileMap>,
    file: Arc<ParentFd>,
    pub bell: Arc<Doorbell>,
    path: PathBuf,
    address: String,
}

impl EndpointFile {
    pub fn open(address: &str, config: &Config) -> Result<EndpointFile, OpenError> {
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
            pid: owner.pid,
            in_barrier,
            probe,
            lanes: made.lanes,
            file: Arc::new(made.file),
            bell: Arc::new(made.bell),
            path,
            address: address.to_owned(),
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The lanes of all senders.
    pub fn lanes(&self) -> &Arc<FileMap> {
        &self.lanes
    }

    /// The file for somebody else who holds it open.
    pub fn hold_file(&self) -> Arc<ParentFd> {
        self.file.clone()
    }

    /// False in a child of fork, where nothing of it may be touched.
    #[inline]
    pub fn is_ours(&self) -> bool {
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

/// Tries, and naps, before a name that others are busy with counts as taken.
const TRIES: u32 = 200;
const NAP: Duration = Duration::from_millis(1);

/// A file that is whole, and the socket beside it.
struct Made {
    file: ParentFd,
    header: Header,
    lanes: Arc<FileMap>,
    bell: Doorbell,
}

/// Makes the file and gives it its name. Draws the instance, which names what it is made of.
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
            // A child that another thread made meanwhile may hold the lock, and seem to be us after our death.
            Ok(Some(_)) if tries_left > 0 && !checkpoint.no_fork_since() => Ok(false),
            Ok(Some(_)) => take_name(&draft, path),
            // A sweep found it before it was locked.
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

/// None: somebody else removed it.
fn fill(fd: OwnedFd, owner: &Owner<'_>, dir: &Path) -> Result<Option<Made>, (&'static str, io::Error)> {
    let failed = |what| move |error| (what, error);
    // Before it is locked: a child that had the descriptor would keep us alive.
    let file = ParentFd::new(fd);
    let locked = shared::try_lock(file.as_fd(), layout::LOCK_LIFE).map_err(failed("fcntl"))?;
    if !locked || shared::status(&file).map_err(failed("fstat"))?.links == 0 {
        return Ok(None);
    }
    layout::allocate_header(file.as_fd()).map_err(failed("posix_fallocate"))?;
    let header = Header::map_own(file.as_fd()).map_err(failed("mmap"))?;
    let lanes = layout::map_lanes(file.as_fd()).map_err(failed("mmap"))?;
    header.init(owner);
    // While the draft has its name, a sweep leaves the socket alone.
    let bell = Doorbell::bind(dir, owner.instance).map_err(failed("bind"))?;
    Ok(Some(Made {
        file,
        header,
        lanes,
        bell,
    }))
}

/// Links the finished file to its name, in place of a dead one if need be. False when the draft is no longer there.
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
            Removal::Busy => std::thread::sleep(NAP),
        }
    }
    Err(OpenError::InUse)
}

/// What became of a file looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    Alive,
    Removed,
    /// Somebody else is about to remove it, or has just done so.
    Busy,
}

/// Removes a region whose owner is dead. One that is not ours to judge counts as alive.
pub fn remove_if_dead(path: &Path) -> Removal {
    let (fd, status) = match shared::open_own(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Removal::Removed,
        Err(_) => return Removal::Alive,
    };
    if shared::is_locked(fd.as_fd(), layout::LOCK_LIFE).unwrap_or(true) {
        return Removal::Alive;
    }
    if !shared::try_lock(fd.as_fd(), layout::LOCK_REMOVE).unwrap_or(false) {
        return Removal::Busy;
    }
    if !shared::status_of(path).is_ok_and(|named| named.is_same_file(&status)) {
        return Removal::Busy;
    }
    if let (Some(dir), Some(instance)) = (path.parent(), layout::instance_in(fd.as_fd())) {
        let _ = std::fs::remove_file(name::bell(dir, instance));
    }
    match std::fs::remove_file(path) {
        Ok(()) => Removal::Removed,
        Err(_) => Removal::Busy,
    }
}
