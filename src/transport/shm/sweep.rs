//! Removes what dead processes left in the directory: regions, sockets, drafts, and named address vectors.
//!
//! There may be any number of files, so a process looks at a few at a time, and goes on later where it was: when it opens
//! an endpoint, and when an endpoint looks at its peers. Called by `endpoint_file` and `housekeeping`.

use super::endpoint_file::remove_if_dead;
use super::name::{self, File};
use crate::sys::forks::Process;
use crate::sys::{clock, datagram, shared_table};
use std::fs::ReadDir;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files that are looked at when an endpoint opens, which takes below a millisecond, and when it looks at its peers.
pub const AT_OPENING: usize = 64;
pub const AT_CHECK: usize = 16;
/// Endpoints are often opened many at a time; one sweep does for all of them.
const EVERY_MS: u64 = 1000;

/// How far this process has come.
struct Round {
    dir: PathBuf,
    process: Process,
    begun: u64,
    /// None when all names have been looked at.
    names: Option<ReadDir>,
}

static ROUND: Mutex<Option<Round>> = Mutex::new(None);

/// Begins to look through the directory, if that was not done lately, or goes on.
pub fn begin(dir: &Path) {
    with_round(|round| {
        let now = clock::monotonic_ms();
        let recent = |round: &Round| round.dir == dir && now.saturating_sub(round.begun) < EVERY_MS;
        let goes_on = |round: &Round| round.dir == dir && round.names.is_some();
        if !round.as_ref().is_some_and(|round| goes_on(round) || recent(round)) {
            *round = Some(Round {
                dir: dir.to_owned(),
                process: Process::this(),
                begun: now,
                names: std::fs::read_dir(dir).ok(),
            });
        }
        look_at(round, AT_OPENING);
    });
}

/// Goes on where the last one ended, if that was before the end of the directory.
pub fn go_on() {
    with_round(|round| look_at(round, AT_CHECK));
}

/// Nobody waits for another thread's sweep, nor for one that was in the parent's when a child was made.
fn with_round(work: impl FnOnce(&mut Option<Round>)) {
    let Ok(mut round) = ROUND.try_lock() else { return };
    if round.as_ref().is_some_and(|round| !round.process.is_this()) {
        *round = None;
    }
    work(&mut round);
}

fn look_at(round: &mut Option<Round>, most: usize) {
    let Some(round) = round else { return };
    for _ in 0..most {
        let Some(names) = &mut round.names else { return };
        match names.next() {
            Some(Ok(entry)) => remove_what_is_dead(&round.dir, &entry.path()),
            Some(Err(_)) => {}
            None => round.names = None,
        }
    }
}

/// Looks at all there is now.
#[cfg(test)]
pub fn sweep(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        remove_what_is_dead(dir, &entry.unwrap().path());
    }
}

fn remove_what_is_dead(dir: &Path, path: &Path) {
    match name::file(path.file_name().unwrap_or_default().as_bytes()) {
        File::Endpoint => drop(remove_if_dead(path)),
        File::Bell(instance) => remove_bell_if_dead(dir, instance),
        File::Table => shared_table::sweep(path),
        File::Other => {}
    }
}

/// Removes a socket whose owner died before its region had a name, or whose region was removed without it.
fn remove_bell_if_dead(dir: &Path, instance: u64) {
    // A socket may have its name a moment before it is bound; its owner has the draft until then, and longer.
    let is_draft = name::unfinished(dir, instance).symlink_metadata().is_ok();
    let bell = name::bell(dir, instance);
    if !is_draft && datagram::is_bound(&bell) == Some(false) {
        let _ = std::fs::remove_file(bell);
    }
}
