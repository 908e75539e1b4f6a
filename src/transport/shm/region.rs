//! The life of an endpoint's own file: made whole before anyone sees it, locked while the owner lives, removed after.
//!
//! A file is made under a name of no meaning, locked, filled, and only then linked to its real name, so every region
//! that can be seen was locked at first; one whose lock nobody holds is dead for ever, and may be removed by whoever
//! finds it. Removers exclude each other by a second lock and see that the name still means the file they looked at.
//!
//! The locks are the kernel's record locks on open files and not flock(2): they can be asked about without being taken,
//! so a peer that looks does not disturb one that starts, and a file has as many as it has bytes, so that claiming a
//! ring is undone by the kernel too when the claimer dies.

use super::layout::{self, Header, Owner};
use super::name;
use super::{Config, OpenError};
use crate::sys::forks::{self, ParentFd};
use crate::sys::shared::Map;
use crate::sys::{clock, process_vm, shared};
use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub struct Region {
    pub header: Header,
    pub instance: u64,
    pub pid: u32,
    /// Whether a barrier of the kernel's reaches this process, so that its senders need not fence.
    pub in_barrier: bool,
    /// Where peers prove that they read the right process.
    probe: Box<AtomicU64>,
    slots: Arc<Map>,
    file: Arc<ParentFd>,
    pipe: ParentFd,
    path: PathBuf,
    address: String,
}

impl Region {
    pub fn open(address: &str, config: &Config) -> Result<Region, OpenError> {
        if name::normal(address.as_bytes()) != Some(address.as_bytes()) {
            return Err(OpenError::Address);
        }
        sweep_now_and_then(&config.dir);
        let failed = |what| move |error| OpenError::from_io(what, error, &config.dir);
        let instance = shared::random().map_err(failed("getrandom"))?;
        let probe = Box::new(AtomicU64::new(instance));
        let in_barrier = process_vm::join_barrier();
        let owner = Owner {
            address: address.as_bytes(),
            instance,
            pid: std::process::id(),
            probe: (&raw const *probe) as u64,
            fence: !in_barrier || !process_vm::barrier_everywhere(),
        };
        let path = name::region(&config.dir, owner.address);
        let (file, header, slots) = publish(&path, config, &owner)?;
        let pipe_path = name::pipe_of(&path);
        // A pipe that is there is a dead owner's: the name is ours now.
        let _ = std::fs::remove_file(&pipe_path);
        let pipe = shared::make_fifo(&pipe_path).map_err(|error| {
            let _ = std::fs::remove_file(&path);
            OpenError::from_io("mkfifo", error, &config.dir)
        })?;
        Ok(Region {
            header,
            instance,
            pid: owner.pid,
            in_barrier,
            probe,
            slots,
            file: Arc::new(file),
            pipe: ParentFd::new(pipe),
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

    /// The slots of all senders.
    pub fn slots(&self) -> &Arc<Map> {
        &self.slots
    }

    /// The file for somebody else who holds it open.
    pub fn hold_file(&self) -> Arc<ParentFd> {
        self.file.clone()
    }

    pub fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    pub fn pipe_number(&self) -> RawFd {
        self.pipe.as_fd().as_raw_fd()
    }

    /// False in a child of fork, where nothing of it may be touched.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.file.is_ours()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        self.probe.store(0, Ordering::Relaxed);
        self.header.attention().fetch_or(layout::CLOSED, Ordering::Release);
        let named = shared::status_of(&self.path);
        if let (Ok(mine), Ok(named)) = (shared::status(self.file()), named) {
            if mine.is_same_file(&named) {
                let _ = std::fs::remove_file(name::pipe_of(&self.path));
                let _ = std::fs::remove_file(&self.path);
            }
        }
    }
}

/// Tries, and naps, before a name that others are busy with counts as taken.
const TRIES: u32 = 200;
const NAP: Duration = Duration::from_millis(1);

/// An endpoint's file, its header and its slots.
type Made = (ParentFd, Header, Arc<Map>);

/// Makes the file and gives it its name.
fn publish(path: &Path, config: &Config, owner: &Owner<'_>) -> Result<Made, OpenError> {
    let failed = |what| move |error| OpenError::from_io(what, error, &config.dir);
    for tries_left in (0..TRIES).rev() {
        let number = shared::random().map_err(failed("getrandom"))?;
        let draft = name::unfinished(&config.dir, number);
        let mark = forks::mark();
        let fd = shared::create(&draft).map_err(failed("open"))?;
        let made = fill(fd, owner);
        let named = match made {
            // A child that another thread made meanwhile may hold the lock, and seem to be us after our death.
            Ok(Some(_)) if tries_left > 0 && !mark.undisturbed() => Ok(false),
            Ok(Some(_)) => take_name(&draft, path),
            // A sweep found it before it was locked.
            Ok(None) => Ok(false),
            Err(_) => Ok(false),
        };
        let _ = std::fs::remove_file(&draft);
        if let (Some(made), true) = (made.map_err(failed("posix_fallocate"))?, named?) {
            return Ok(made);
        }
    }
    Err(OpenError::InUse)
}

fn fill(fd: OwnedFd, owner: &Owner<'_>) -> io::Result<Option<Made>> {
    // Before it is locked: a child that had the descriptor would keep us alive.
    let fd = ParentFd::new(fd);
    let locked = shared::try_lock(fd.as_fd(), layout::LOCK_LIFE)?;
    if !locked || shared::status(&fd)?.links == 0 {
        return Ok(None);
    }
    layout::allocate_header(fd.as_fd())?;
    let header = Header::map(fd.as_fd())?;
    let slots = layout::map_slots(fd.as_fd())?;
    header.init(owner);
    Ok(Some((fd, header, slots)))
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
            Found::Alive => return Err(OpenError::InUse),
            Found::Removed => {}
            Found::Busy => std::thread::sleep(NAP),
        }
    }
    Err(OpenError::InUse)
}

/// What became of a file looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Alive,
    Removed,
    /// Somebody else is about to remove it, or has just done so.
    Busy,
}

/// Removes a region whose owner is dead. One that is not ours to judge counts as alive.
pub fn remove_if_dead(path: &Path) -> Found {
    let fd = match shared::open(path) {
        Ok(fd) => fd,
        Err(error) if error.kind() == ErrorKind::NotFound => return Found::Removed,
        Err(_) => return Found::Alive,
    };
    let Ok(status) = shared::status(&fd) else {
        return Found::Alive;
    };
    let ours = status.kind == libc::S_IFREG && status.owner == shared::own_uid();
    if !ours || shared::is_locked(fd.as_fd(), layout::LOCK_LIFE).unwrap_or(true) {
        return Found::Alive;
    }
    if !shared::try_lock(fd.as_fd(), layout::LOCK_REMOVE).unwrap_or(false) {
        return Found::Busy;
    }
    if !shared::status_of(path).is_ok_and(|named| named.is_same_file(&status)) {
        return Found::Busy;
    }
    // The pipe first: while the region has its name, nobody else can make a pipe of that name.
    let _ = std::fs::remove_file(name::pipe_of(path));
    match std::fs::remove_file(path) {
        Ok(()) => Found::Removed,
        Err(_) => Found::Busy,
    }
}

/// The most files a sweep looks at.
const SWEEP_MOST: usize = 1024;
const SWEEP_EVERY_MS: u64 = 1000;

/// Endpoints are often opened many at a time; one sweep does for all of them.
fn sweep_now_and_then(dir: &Path) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = clock::monotonic_ms().max(1);
    let last = LAST.load(Ordering::Relaxed);
    let due = last == 0 || now.saturating_sub(last) >= SWEEP_EVERY_MS;
    if due
        && LAST
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    {
        sweep(dir);
    }
}

/// Removes what dead owners left.
pub fn sweep(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let regions = entries
        .flatten()
        .filter(|entry| name::is_region(entry.file_name().as_bytes()));
    for entry in regions.take(SWEEP_MOST) {
        remove_if_dead(&entry.path());
    }
}
