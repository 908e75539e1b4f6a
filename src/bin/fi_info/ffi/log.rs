//! The library's log, led to this program for a while through `fi_open("logging")`.

use crate::abi::types::*;
use crate::common::library::{api_version, bytes};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::sync::Mutex;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_open(
        version: u32,
        name: *const c_char,
        attr: *mut c_void,
        attr_len: usize,
        flags: u64,
        fid: *mut *mut fid,
        context: *mut c_void,
    ) -> c_int;
}

/// One line of the library's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub provider: Vec<u8>,
    pub level: fi_log_level,
    pub func: Vec<u8>,
    pub text: Vec<u8>,
}

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

extern "C" fn log_enabled(_: *const fi_provider, level: fi_log_level, _: fi_log_subsys, _: u64) -> c_int {
    (level <= FI_LOG_INFO).into()
}

extern "C" fn log_ready(
    prov: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    flags: u64,
    _show_time: *mut u64,
) -> c_int {
    log_enabled(prov, level, subsys, flags)
}

unsafe extern "C" fn log_line(
    prov: *const fi_provider,
    level: fi_log_level,
    _subsys: fi_log_subsys,
    func: *const c_char,
    _line: c_int,
    text: *const c_char,
) {
    // SAFETY: the library hands NULL or a provider, and NULL or strings, good until we return.
    let line = unsafe {
        Line {
            provider: prov.as_ref().and_then(|p| bytes(p.name)).unwrap_or_default().to_vec(),
            level,
            func: bytes(func).unwrap_or_default().to_vec(),
            text: bytes(text).unwrap_or_default().trim_ascii().to_vec(),
        }
    };
    if let Ok(mut lines) = LINES.lock() {
        lines.push(line);
    }
}

/// The library's log is led to this program as long as this lives; the library keeps pointers to it meanwhile.
pub struct Capture {
    import: *mut fid_logging,
}

impl Capture {
    /// An error is the negative number that the library returned.
    pub fn start() -> Result<Capture, c_int> {
        let ops = fi_ops_log {
            size: size_of::<fi_ops_log>(),
            enabled: Some(log_enabled),
            ready: Some(log_ready),
            log: Some(log_line),
        };
        let import = fid_logging {
            fid: fid {
                fclass: FI_CLASS_LOG as usize,
                context: ptr::null_mut(),
                ops: ptr::null_mut(),
            },
            ops: Box::into_raw(Box::new(ops)),
        };
        let capture = Capture {
            import: Box::into_raw(Box::new(import)),
        };
        let mut log = ptr::null_mut();
        // SAFETY: `log` is a place to write to; attributes and context may be NULL.
        match unsafe {
            fi_open(
                api_version(),
                c"logging".as_ptr(),
                ptr::null_mut(),
                0,
                0,
                &mut log,
                ptr::null_mut(),
            )
        } {
            0 => {}
            error => return Err(error),
        }
        // SAFETY: the fid just opened has an op table; what is bound lives until `drop` closes it.
        unsafe {
            let ret = match log.as_ref().and_then(|log| log.ops.as_ref()).and_then(|ops| ops.bind) {
                Some(bind) => bind(log, capture.import.cast(), 0),
                None => -FI_ENOSYS,
            };
            close(log);
            if ret == 0 { Ok(capture) } else { Err(ret) }
        }
    }

    /// Ends the import, and returns the lines that were logged meanwhile.
    pub fn finish(self) -> Vec<Line> {
        drop(self);
        LINES
            .lock()
            .map(|mut lines| std::mem::take(&mut *lines))
            .unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // SAFETY: ours since `start`; closing takes it out of the library, and then nobody else knows the two boxes.
        unsafe {
            close(self.import.cast());
            let import = Box::from_raw(self.import);
            drop(Box::from_raw(import.ops));
        }
    }
}

/// fi_close.
///
/// # Safety
/// `fid` is NULL or an open fid.
unsafe fn close(fid: *mut fid) {
    // SAFETY: not NULL means open, with an op table or without.
    unsafe {
        if let Some(close) = fid.as_ref().and_then(|f| f.ops.as_ref()).and_then(|ops| ops.close) {
            close(fid);
        }
    }
}
