//! One import from fi_open to fi_close: what its callbacks are asked and told, and which calls are refused. It is one
//! test, as a process has one import.

use super::*;
use crate::api::log::{core_enabled, core_write};
use core::ffi::CStr;
use core::ptr::null;
use std::sync::Mutex;

unsafe extern "C" {
    // In cbits/variadic.c.
    fn fi_log(
        prov: *const fi_provider,
        level: fi_log_level,
        subsys: fi_log_subsys,
        func: *const c_char,
        line: c_int,
        fmt: *const c_char,
        ...
    );
}

/// provider, level, subsys, func, line, text
type Heard = (String, u32, u32, String, c_int, String);
static HEARD: Mutex<Vec<Heard>> = Mutex::new(Vec::new());

const ONLY: (fi_log_level, fi_log_subsys) = (FI_LOG_TRACE, FI_LOG_MR);

unsafe extern "C" fn only_trace_mr(_: *const fi_provider, l: fi_log_level, s: fi_log_subsys, flags: u64) -> c_int {
    c_int::from((l, s) == ONLY && flags == 0)
}

unsafe extern "C" fn never_ready(
    _: *const fi_provider,
    _: fi_log_level,
    _: fi_log_subsys,
    _: u64,
    _: *mut u64,
) -> c_int {
    0
}

unsafe extern "C" fn hear(
    prov: *const fi_provider,
    level: fi_log_level,
    subsys: fi_log_subsys,
    func: *const c_char,
    line: c_int,
    msg: *const c_char,
) {
    let text = |string: *const c_char| match string.is_null() {
        true => "(null)".to_string(),
        // SAFETY: a C string, while the call runs.
        false => unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned(),
    };
    // SAFETY: the library never shows NULL for a provider.
    let name = unsafe { (*prov).name };
    HEARD
        .lock()
        .expect("no panic")
        .push((text(name), level, subsys, text(func), line, text(msg)));
}

fn table(enabled: Option<Enabled>, ready: Option<Ready>, log: Option<Log>) -> fi_ops_log {
    fi_ops_log {
        size: size_of::<fi_ops_log>(),
        enabled,
        ready,
        log,
    }
}

fn log_fid(ops: &mut fi_ops_log) -> fid_logging {
    fid_logging {
        fid: fid {
            fclass: FI_CLASS_LOG as usize,
            context: null_mut(),
            ops: null_mut(),
        },
        ops,
    }
}

fn open() -> Result<*mut fid, c_int> {
    let mut opened = null_mut();
    // SAFETY: a writable variable.
    let code = unsafe { open_log(1 << 16 | 13, null_mut(), 0, 0, &mut opened, null_mut()) };
    if code == FI_SUCCESS { Ok(opened) } else { Err(code) }
}

fn import(opened: *mut fid, log: &mut fid_logging) -> c_int {
    // SAFETY: a fid of ours and one of the test's.
    unsafe { ((*(*opened).ops).bind.expect("has bind"))(opened, &raw mut log.fid, 0) }
}

fn close(log: &mut fid_logging) -> c_int {
    // SAFETY: imported, so it has our operations.
    unsafe { ((*log.fid.ops).close.expect("has close"))(&raw mut log.fid) }
}

/// One test, for there is one import in the process.
#[test]
fn imports() {
    refuses_what_the_page_forbids();

    let mut ops = table(Some(only_trace_mr), Some(never_ready), Some(hear));
    let mut all = log_fid(&mut ops);
    let opened = open().expect("nothing imported yet");
    assert_eq!(import(opened, &mut all), FI_SUCCESS);
    assert_eq!(open(), Err(-FI_EALREADY));
    assert!(
        core_enabled(Level::Trace, Subsys::Mr),
        "the imported rules hold for the core"
    );
    assert!(!core_enabled(Level::Warn, Subsys::Mr));
    hears_what_is_said();

    // A second import takes over, and closing the first then changes nothing. Its NULL members are the defaults:
    // without FI_LOG_LEVEL, silence.
    let mut ops = table(None, None, Some(hear));
    let mut partial = log_fid(&mut ops);
    assert_eq!(import(opened, &mut partial), FI_SUCCESS);
    assert_eq!(close(&mut all), FI_SUCCESS);
    assert_eq!(open(), Err(-FI_EALREADY));
    assert!(log().is_some() && enabled().is_none());

    assert_eq!(close(&mut partial), FI_SUCCESS);
    assert!(log().is_none());
    assert_eq!(close(&mut partial), FI_SUCCESS, "closing twice is harmless");
    assert!(open().is_ok());
}

fn refuses_what_the_page_forbids() {
    let mut out = null_mut();
    let version = 2 << 16 | 6;
    // SAFETY: null or writable.
    unsafe {
        assert_eq!(
            open_log(1 << 16 | 12, null_mut(), 0, 0, &mut out, null_mut()),
            -FI_EINVAL
        );
        assert_eq!(open_log(version, null_mut(), 8, 0, &mut out, null_mut()), -FI_EINVAL);
        assert_eq!(
            open_log(version, null_mut(), 0, 1, &mut out, null_mut()),
            -(FI_EBADFLAGS as c_int)
        );
        assert_eq!(open_log(version, null_mut(), 0, 0, null_mut(), null_mut()), -FI_EINVAL);
    }
    let opened = open().expect("nothing imported yet");
    let mut ops = table(None, None, None);
    let mut good = log_fid(&mut ops);
    // SAFETY: the fids are null or structs of this test.
    unsafe {
        let bind = (*(*opened).ops).bind.expect("has bind");
        assert_eq!(bind(opened, null_mut(), 0), -FI_EINVAL);
        assert_eq!(bind(opened, &raw mut good.fid, 1), -FI_EINVAL);
        good.fid.fclass = FI_CLASS_CQ as usize;
        assert_eq!(bind(opened, &raw mut good.fid, 0), -FI_EINVAL);
        good.fid.fclass = FI_CLASS_LOG as usize;
        good.ops = null_mut();
        assert_eq!(bind(opened, &raw mut good.fid, 0), -FI_EINVAL);
        let mut short = fi_ops_log {
            size: 8,
            ..table(None, None, None)
        };
        good.ops = &mut short;
        assert_eq!(bind(opened, &raw mut good.fid, 0), -FI_EINVAL);
    }
}

fn hears_what_is_said() {
    let (level, subsys) = ONLY;
    let name = "unit-log";
    let prov = fi_provider {
        version: 1,
        fi_version: 1,
        context: fi_context {
            internal: [null_mut(); 4],
        },
        name: c"unit-log".as_ptr(),
        getinfo: None,
        fabric: None,
        cleanup: None,
    };
    let long = "x".repeat(5000) + "\n";
    let c_long = log::c_text(&long);
    let mut showtime = 0;
    // SAFETY: a provider, C strings, and arguments that fit the formats.
    unsafe {
        assert_eq!(log::log_enabled(&prov, level, subsys), 1);
        assert_eq!(
            log::log_ready(&prov, level, subsys, &mut showtime),
            0,
            "the imported callback decides"
        );
        *libc::__errno_location() = 55;
        fi_log(
            &prov,
            level,
            subsys,
            c"here".as_ptr(),
            7,
            c"%d %s %g\n".as_ptr(),
            42,
            c"two".as_ptr(),
            0.5f64,
        );
        fi_log(&prov, 99, 98, null(), -1, c"%s".as_ptr(), c_long.as_ptr());
        assert_eq!(*libc::__errno_location(), 55);
        fi_log(null(), level, subsys, c"here".as_ptr(), 8, c"core by NULL".as_ptr());
    }
    core_write(
        Level::Trace,
        Subsys::Mr,
        "fabric::unit::there",
        9,
        format_args!("{} words", 2),
    );
    let heard = core::mem::take(&mut *HEARD.lock().expect("no panic"));
    let find = |line: c_int| heard.iter().find(|row| row.4 == line).cloned();
    let row = |name: &str, level, subsys, func: &str, line, text: &str| {
        Some((
            name.to_string(),
            level,
            subsys,
            func.to_string(),
            line,
            text.to_string(),
        ))
    };
    assert_eq!(find(7), row(name, level, subsys, "here", 7, "42 two 0.5\n"));
    assert_eq!(find(-1), row(name, 99, 98, "(null)", -1, &long), "nothing is cut");
    assert_eq!(find(8), row("core", level, subsys, "here", 8, "core by NULL"));
    assert_eq!(find(9), row("core", level, subsys, "there", 9, "2 words\n"));
}
