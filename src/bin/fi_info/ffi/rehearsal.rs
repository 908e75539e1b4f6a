//! Calls of the library tried out in a child first, with its log: code of plug-ins that never returns, or ends the
//! process, does so there.
//!
//! Decides nothing. Called by `check::rehearsal`.

use core::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    Well,
    /// It stood still, and was ended.
    Hung,
    /// The process ended in the middle of it: by a signal, or by itself.
    Died(Option<c_int>),
}

/// How long it may take.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Without a new line in the log.
    pub still: Duration,
    pub whole: Duration,
}

/// What a child ends with that has done its work; exit() in the middle of it has hardly this status.
const DONE: c_int = 0x5e;
const NAP: Duration = Duration::from_millis(5);

/// Does the work in a child, with these variables set. Returns how that ended, and what it wrote, to either stream.
/// To be called while this process has one thread.
pub fn rehearse(variables: &[(&str, &str)], patience: Patience, work: impl FnOnce()) -> io::Result<(Ended, String)> {
    // SAFETY: a string; the descriptor is ours alone.
    let log = unsafe { libc::memfd_create(c"log".as_ptr(), libc::MFD_CLOEXEC) };
    if log < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened.
    let log = unsafe { File::from_raw_fd(log) };
    // SAFETY: there is no other thread whose locks the child would miss; it leaves by _exit.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: descriptors that are open, and no thread that reads the environment.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::dup2(log.as_raw_fd(), libc::STDOUT_FILENO);
                libc::dup2(log.as_raw_fd(), libc::STDERR_FILENO);
                for (name, value) in variables {
                    std::env::set_var(name, value);
                }
            }
            work();
            // SAFETY: takes a number and does not return.
            unsafe { libc::_exit(DONE) }
        }
        child => {
            let ended = watched(child, &log, patience);
            let mut text = vec![0; log.metadata()?.len() as usize];
            log.read_exact_at(&mut text, 0)?;
            Ok((ended, String::from_utf8_lossy(&text).into_owned()))
        }
    }
}

fn watched(child: libc::pid_t, log: &File, patience: Patience) -> Ended {
    let begin = Instant::now();
    let (mut written, mut since) = (0, begin);
    loop {
        if let Some(ended) = ended(child, libc::WNOHANG) {
            return ended;
        }
        let len = log.metadata().map_or(written, |file| file.len());
        if len != written {
            (written, since) = (len, Instant::now());
        }
        if since.elapsed() > patience.still || begin.elapsed() > patience.whole {
            // SAFETY: a child of ours that nobody has waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
            ended(child, 0);
            return Ended::Hung;
        }
        thread::sleep(NAP);
    }
}

/// None: it still runs.
fn ended(child: libc::pid_t, flags: c_int) -> Option<Ended> {
    let mut status = 0;
    // SAFETY: a child of ours, and a place for its status.
    match unsafe { libc::waitpid(child, &mut status, flags) } {
        0 => None,
        -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => None,
        -1 => Some(Ended::Died(None)),
        _ if libc::WIFSIGNALED(status) => Some(Ended::Died(Some(libc::WTERMSIG(status)))),
        _ if libc::WEXITSTATUS(status) == DONE => Some(Ended::Well),
        _ => Some(Ended::Died(None)),
    }
}

/// Sets a variable for the library, before it is first called.
pub fn set(name: &str, value: &str) {
    // SAFETY: this process has one thread, as for `rehearse`.
    unsafe { std::env::set_var(name, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes and nothing else, as a child of a process with threads may.
    fn say(words: &str) {
        // SAFETY: bytes and their number.
        unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    }

    fn tried(still: Duration, work: impl FnOnce()) -> (Ended, String) {
        let patience = Patience {
            still,
            whole: Duration::from_secs(600),
        };
        rehearse(&[], patience, work).unwrap()
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn the_end_is_told_with_what_was_written() {
        let told = |ended, words: &str| (ended, words.to_owned());
        assert_eq!(tried(LONG, || say("all")), told(Ended::Well, "all"));
        let killed = tried(LONG, || {
            say("half");
            // SAFETY: ends this child.
            unsafe { libc::raise(libc::SIGKILL) };
        });
        assert_eq!(killed, told(Ended::Died(Some(libc::SIGKILL)), "half"));
        // SAFETY: ends this child.
        let left = tried(LONG, || unsafe { libc::_exit(0) });
        assert_eq!(left, told(Ended::Died(None), ""));
    }

    #[test]
    fn who_stands_still_is_ended() {
        let hung = tried(Duration::from_millis(1), || {
            loop {
                // SAFETY: takes nothing.
                unsafe { libc::pause() };
            }
        });
        assert_eq!(hung.0, Ended::Hung);
    }
}
