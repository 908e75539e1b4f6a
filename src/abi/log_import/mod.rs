//! fi_open("logging"): an application's own log callbacks in place of the default ones.
//!
//! Owns the opened fid, the table of imported callbacks, and the bridge by which the core's own lines reach them.
//! Called by `open` for fi_open, and by `abi::log` at each line.
//!
//! No lock is held while a callback runs, and nothing of ours is freed when an import ends: a callback may run in one
//! thread while another closes the import, and the application must bear with that as it does with the C library.

#[cfg(test)]
mod tests;

use super::lacking;
use super::log::{self, Line};
use super::types::*;
use crate::api::log::{Level, Sink, Speaker, Subsys, set_sink};
use crate::sys::lock::{Held, Lock};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

type Enabled = unsafe extern "C" fn(*const fi_provider, fi_log_level, fi_log_subsys, u64) -> c_int;
type Ready = unsafe extern "C" fn(*const fi_provider, fi_log_level, fi_log_subsys, u64, *mut u64) -> c_int;
type Log = unsafe extern "C" fn(*const fi_provider, fi_log_level, fi_log_subsys, *const c_char, c_int, *const c_char);

/// The imported callbacks, null where the default holds. SYNC POINT: the Release of a store pairs with the Acquire of
/// the load before a call, so that a callback sees what its owner wrote before the import.
static ENABLED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static READY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static LOG: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The address of the fid_logging that is imported now, 0 for none. Its lock orders opening, binding and closing.
static IMPORTED: Lock<usize> = Lock::new(0);

/// For the list of locks that fork waits for.
pub(super) static LOCK: &dyn Held = &IMPORTED;

pub(super) fn enabled() -> Option<Enabled> {
    // SAFETY: null, or an Enabled stored by `put_in`; Option of a function pointer has null for None.
    unsafe { transmute(ENABLED.load(Ordering::Acquire)) }
}

pub(super) fn ready() -> Option<Ready> {
    // SAFETY: as above, a Ready.
    unsafe { transmute(READY.load(Ordering::Acquire)) }
}

pub(super) fn log() -> Option<Log> {
    // SAFETY: as above, a Log.
    unsafe { transmute(LOG.load(Ordering::Acquire)) }
}

/// Takes a callback table as it stands now; a missing member leaves the default.
fn put_in(ops: &fi_ops_log) {
    let address = |function: Option<*mut c_void>| function.unwrap_or(null_mut());
    // `log` first: a line that the new `enabled` wants must not go to the default output.
    LOG.store(address(ops.log.map(|f| f as *mut c_void)), Ordering::Release);
    READY.store(address(ops.ready.map(|f| f as *mut c_void)), Ordering::Release);
    ENABLED.store(address(ops.enabled.map(|f| f as *mut c_void)), Ordering::Release);
}

/// Back to the defaults, `enabled` first, for the same reason.
fn take_out() {
    ENABLED.store(null_mut(), Ordering::Release);
    READY.store(null_mut(), Ordering::Release);
    LOG.store(null_mut(), Ordering::Release);
}

/// Lines of the core and of our own providers, on their way to imported callbacks.
struct Imported;

impl Sink for Imported {
    fn enabled(&self, speaker: Speaker, level: Level, subsys: Subsys) -> Option<bool> {
        enabled()?;
        // SAFETY: a provider that stays.
        Some(
            unsafe {
                log::log_enabled(
                    log::provider_of(speaker),
                    level as fi_log_level,
                    subsys as fi_log_subsys,
                )
            } != 0,
        )
    }

    fn write(&self, speaker: Speaker, level: Level, subsys: Subsys, func: &str, line: u32, text: &str) -> bool {
        if log().is_none() {
            return false;
        }
        let func = log::c_text(func);
        let line = Line {
            provider: log::provider_of(speaker),
            level,
            subsys,
            func: &func,
            number: line,
        };
        // SAFETY: a provider that stays.
        unsafe { log::say_anyway(&line, text.strip_suffix('\n').unwrap_or(text)) };
        true
    }
}

/// The callbacks of the opened fid: the defaults, whatever is imported, so that an import can pass lines on to them.
static DEFAULT_OPS: fi_ops_log = fi_ops_log {
    size: size_of::<fi_ops_log>(),
    enabled: Some(log::default_enabled),
    ready: Some(log::default_ready),
    log: Some(log::default_log),
};

/// Operations of the fid that fi_open gives.
static OPENED_OPS: fi_ops = fi_ops {
    close: Some(close_opened),
    bind: Some(bind),
    ..lacking::FID
};

/// Operations put into the application's fid while it is imported.
static IMPORTED_OPS: fi_ops = fi_ops {
    close: Some(close_imported),
    ..lacking::FID
};

/// The one fid that fi_open("logging") gives. C writes its context, hence the cell.
struct OpenLog(UnsafeCell<fid_logging>);

// SAFETY: written only under the lock of IMPORTED; what C does with its own context is C's affair.
unsafe impl Sync for OpenLog {}

static OPENED: OpenLog = OpenLog(UnsafeCell::new(fid_logging {
    fid: fid {
        fclass: FI_CLASS_LOG as usize,
        context: null_mut(),
        ops: (&raw const OPENED_OPS).cast_mut(),
    },
    ops: (&raw const DEFAULT_OPS).cast_mut(),
}));

/// fi_open for "logging".
///
/// # Safety
/// `fid` is null or writable.
pub unsafe fn open_log(
    version: u32,
    _attr: *mut c_void,
    attr_len: usize,
    flags: u64,
    fid: *mut *mut fid,
    context: *mut c_void,
) -> c_int {
    const FIRST_VERSION: u32 = 1 << 16 | 13;
    if version < FIRST_VERSION || attr_len != 0 || fid.is_null() {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    super::process::at_fork();
    let imported = IMPORTED.lock();
    if *imported != 0 {
        return -FI_EALREADY;
    }
    // SAFETY: the lock is held, and `fid` is writable, says the caller.
    unsafe {
        (*OPENED.0.get()).fid.context = context;
        *fid = OPENED.0.get().cast();
    }
    FI_SUCCESS
}

/// fi_import_fid: takes the callbacks of `bfid`. A second import takes the place of the first.
unsafe extern "C" fn bind(_fid: *mut fid, bfid: *mut fid, flags: u64) -> c_int {
    // SAFETY: a fid is the application's, readable as far as its class says.
    unsafe {
        if flags != 0 || bfid.is_null() || (*bfid).fclass != FI_CLASS_LOG as usize {
            return -FI_EINVAL;
        }
        let ops = (*bfid.cast::<fid_logging>()).ops;
        if ops.is_null() || (*ops).size < size_of::<fi_ops_log>() {
            return -FI_EINVAL;
        }
        let mut imported = IMPORTED.lock();
        set_sink(&Imported);
        put_in(&*ops);
        (*bfid).ops = (&raw const IMPORTED_OPS).cast_mut();
        *imported = bfid.addr();
    }
    FI_SUCCESS
}

/// Closing the opened fid ends nothing: an import outlives it.
unsafe extern "C" fn close_opened(_fid: *mut fid) -> c_int {
    FI_SUCCESS
}

/// Ends an import, unless a later one has taken its place already.
unsafe extern "C" fn close_imported(fid: *mut fid) -> c_int {
    let mut imported = IMPORTED.lock();
    if *imported == fid.addr() {
        take_out();
        *imported = 0;
    }
    FI_SUCCESS
}
