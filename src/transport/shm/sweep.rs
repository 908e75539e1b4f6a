//! Removes what dead processes left in the directory: endpoints' files, sockets, drafts, and named address vectors.
//!
//! There may be any number of files, so a process looks at a few at a time and goes on where it was: when it opens an
//! endpoint (`endpoint_file`), and when an endpoint checks its peers (`housekeeping`).

use super::endpoint_file::remove_if_dead;
use super::name::{self, File};
use crate::sys::forks::Process;
use crate::sys::lock::{Held, Lock};
use crate::sys::{clock, datagram, shared_table};
use std::fs::ReadDir;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that are looked at when an endpoint opens, in less than a millisecond, and when it checks its peers.
pub(super) const AT_OPENING: usize = 64;
pub(super) const AT_CHECK: usize = 16;
/// How soon after the last a new sweep may begin, as many endpoints are often opened at once.
const EVERY_MS: u64 = 1000;

/// How far this process's sweep has come.
struct Sweep {
    dir: PathBuf,
    process: Process,
    begun: u64,
    /// None when all names have been looked at.
    names: Option<ReadDir>,
}

static SWEEP: Lock<Option<Sweep>> = Lock::new(None);

/// Held across fork, so that a child can sweep.
pub static LOCK: &dyn Held = &SWEEP;

/// Goes on with the sweep of this directory, or begins one if the last was not begun just now.
pub(super) fn begin(dir: &Path) {
    with_sweep(|sweep| {
        let now = clock::monotonic_ms();
        let recent = |sweep: &Sweep| sweep.dir == dir && now.saturating_sub(sweep.begun) < EVERY_MS;
        let goes_on = |sweep: &Sweep| sweep.dir == dir && sweep.names.is_some();
        if !sweep.as_ref().is_some_and(|sweep| goes_on(sweep) || recent(sweep)) {
            *sweep = Some(Sweep {
                dir: dir.to_owned(),
                process: Process::this(),
                begun: now,
                names: std::fs::read_dir(dir).ok(),
            });
        }
        look_at(sweep, AT_OPENING);
    });
}

/// Goes on with the sweep, if it has not come to the end of the directory.
pub(super) fn go_on() {
    with_sweep(|sweep| look_at(sweep, AT_CHECK));
}

/// Does nothing while another thread sweeps.
fn with_sweep(work: impl FnOnce(&mut Option<Sweep>)) {
    let Some(mut sweep) = SWEEP.try_lock() else { return };
    if sweep.as_ref().is_some_and(|sweep| !sweep.process.is_this()) {
        *sweep = None;
    }
    work(&mut sweep);
}

fn look_at(sweep: &mut Option<Sweep>, most: usize) {
    let Some(sweep) = sweep else { return };
    for _ in 0..most {
        let Some(names) = &mut sweep.names else { return };
        match names.next() {
            Some(Ok(entry)) => remove_what_is_dead(&sweep.dir, &entry.path()),
            Some(Err(_)) => {}
            None => sweep.names = None,
        }
    }
}

/// Looks at all files.
#[cfg(test)]
pub fn sweep(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        remove_what_is_dead(dir, &entry.unwrap().path());
    }
}

fn remove_what_is_dead(dir: &Path, path: &Path) {
    match name::file(path.file_name().unwrap_or_default().as_bytes()) {
        File::Endpoint => drop(remove_if_dead(path)),
        File::Doorbell(instance) => remove_doorbell_if_dead(dir, instance),
        File::Table => shared_table::sweep(path),
        File::Other => {}
    }
}

/// Removes a socket whose owner is dead, and whose endpoint's file never got its name or was removed without the
/// socket.
fn remove_doorbell_if_dead(dir: &Path, instance: u64) {
    // A socket has its name a moment before it is bound, but its owner has a draft then.
    let is_draft = name::unfinished(dir, instance).symlink_metadata().is_ok();
    let socket = name::doorbell(dir, instance);
    if !is_draft && datagram::is_bound(&socket) == Some(false) {
        let _ = std::fs::remove_file(socket);
    }
}
