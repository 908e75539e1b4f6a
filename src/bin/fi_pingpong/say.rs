//! What the program says on stderr: failures, and with -v each step. Results go to stdout and are not made here.
//!
//! Knows the shape of the lines, nothing of what they tell. Called by all modules.

use crate::ffi;
use core::ffi::c_int;
use core::fmt::Arguments;
use core::panic::Location;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// A failure that has been told to the user; the number becomes the exit status.
#[derive(Debug, PartialEq)]
pub struct Fail(pub c_int);

static VERBOSE: AtomicBool = AtomicBool::new(false);

pub fn be_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// A step, told only with -v.
#[track_caller]
pub fn debug(text: Arguments) {
    if VERBOSE.load(Ordering::Relaxed) {
        line("debug", text);
    }
}

/// A failure in words of our own.
#[track_caller]
pub fn error(code: c_int, text: Arguments) -> Fail {
    line("error", text);
    Fail(code)
}

/// A call that returned a negative number.
#[track_caller]
pub fn failed(call: &str, code: c_int) -> Fail {
    let (at, reason) = (Location::caller(), ffi::strerror(code.saturating_neg()));
    write(format_args!(
        "{call}(): {}:{:<4}, ret={code} ({reason})\n",
        at.file(),
        at.line()
    ));
    Fail(code)
}

/// A system call that failed.
#[track_caller]
pub fn failed_io(call: &str, error: &io::Error) -> Fail {
    match error.raw_os_error() {
        Some(code) => failed(call, -code),
        None => self::error(-libc::EIO, format_args!("{call}: {error}")),
    }
}

#[track_caller]
fn line(kind: &str, text: Arguments) {
    let at = Location::caller();
    write(format_args!("[{kind}] {}:{:<4}: {text}\n", at.file(), at.line()));
}

/// A stderr that is closed is no reason to stop.
pub fn write(text: Arguments) {
    let _ = io::stderr().write_fmt(text);
}
