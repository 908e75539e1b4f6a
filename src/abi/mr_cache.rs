//! fi_open("mr_cache"): an application's own memory monitor, offered to the registration cache.
//!
//! The kernel tells this core's cache what memory goes (`transport::verbs::cache`), and plug-ins bring caches of their
//! own. So a monitor is accepted, never started, and what it reports goes nowhere. Open MPI offers one and takes a
//! refusal for a fault. Called by `open`.

use super::lacking;
use super::layout::version;
use super::memory::{self, NoMemory};
use super::types::*;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The first API version with fi_open("mr_cache").
const SINCE: u32 = version(1, 13);

/// The monitor that is imported now.
static IMPORTED: AtomicPtr<fid> = AtomicPtr::new(null_mut());

/// Operations of the fid that fi_open gives.
static CACHE_OPS: fi_ops = fi_ops {
    close: Some(close_cache),
    bind: Some(import),
    ..lacking::FID
};

/// Operations put into the application's monitor while it is imported.
static MONITOR_OPS: fi_ops = fi_ops {
    close: Some(close_monitor),
    ..lacking::FID
};

static NOTIFY_OPS: fi_ops_mem_notify = fi_ops_mem_notify {
    size: size_of::<fi_ops_mem_notify>(),
    notify: Some(notify),
};

/// # Safety
/// `out` is NULL or a place for a pointer.
pub(super) unsafe fn open(api: u32, attr_len: usize, flags: u64, out: *mut *mut fid, context: *mut c_void) -> c_int {
    if api < SINCE || attr_len != 0 || out.is_null() {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    let new = memory::boxed(fid {
        fclass: FI_CLASS_MR_CACHE as usize,
        context,
        ops: (&raw const CACHE_OPS).cast_mut(),
    });
    match new {
        Ok(new) => {
            // SAFETY: `out` is the caller's place for a pointer.
            unsafe { out.write(new) };
            FI_SUCCESS
        }
        Err(NoMemory) => -FI_ENOMEM,
    }
}

unsafe extern "C" fn close_cache(cache: *mut fid) -> c_int {
    // SAFETY: only fids made by `open` have this operation, and closing ends their life.
    unsafe { memory::free(cache) };
    FI_SUCCESS
}

unsafe extern "C" fn import(_: *mut fid, monitor: *mut fid, flags: u64) -> c_int {
    // SAFETY: a fid is the application's and tells its class; the class promises the rest.
    unsafe {
        if flags != 0 || monitor.is_null() || (*monitor).fclass != FI_CLASS_MEM_MONITOR as usize {
            return -FI_EINVAL;
        }
        let whole = monitor.cast::<fid_mem_monitor>();
        let ops = (*whole).export_ops;
        if ops.is_null() || (*ops).size < size_of::<fi_ops_mem_monitor>() {
            return -FI_EINVAL;
        }
        if IMPORTED
            .compare_exchange(null_mut(), monitor, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            log!(Warn, Mr, "a memory monitor is imported already: close it first");
            return -FI_EBUSY;
        }
        (*monitor).ops = (&raw const MONITOR_OPS).cast_mut();
        (*whole).import_ops = (&raw const NOTIFY_OPS).cast_mut();
    }
    FI_SUCCESS
}

unsafe extern "C" fn close_monitor(monitor: *mut fid) -> c_int {
    let _ = IMPORTED.compare_exchange(monitor, null_mut(), Ordering::AcqRel, Ordering::Relaxed);
    FI_SUCCESS
}

unsafe extern "C" fn notify(_: *mut fid_mem_monitor, _: *const c_void, _: usize) {}

#[cfg(test)]
mod tests {
    use super::super::wrappers::{fi_close, fi_import_fid};
    use super::*;

    fn cache() -> *mut fid {
        let mut cache = null_mut();
        // SAFETY: a place for a pointer.
        assert_eq!(unsafe { open(SINCE, 0, 0, &mut cache, null_mut()) }, FI_SUCCESS);
        cache
    }

    #[test]
    fn arguments_are_checked() {
        let mut out = null_mut();
        let rows = [
            (SINCE - 1, 0, 0, -FI_EINVAL),
            (SINCE, 1, 0, -FI_EINVAL),
            (SINCE, 0, 1, -(FI_EBADFLAGS as c_int)),
        ];
        for (api, attr_len, flags, expected) in rows {
            // SAFETY: a place for a pointer.
            assert_eq!(unsafe { open(api, attr_len, flags, &mut out, null_mut()) }, expected);
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { open(SINCE, 0, 0, null_mut(), null_mut()) }, -FI_EINVAL);
    }

    #[test]
    fn one_monitor_at_a_time() {
        // SAFETY: all zeros is a table of empty slots, and a fid without operations; objects outlive their use.
        unsafe {
            let mut ops = fi_ops_mem_monitor {
                size: size_of::<fi_ops_mem_monitor>(),
                ..core::mem::zeroed()
            };
            let mut first: fid_mem_monitor = core::mem::zeroed();
            (first.fid.fclass, first.export_ops) = (FI_CLASS_MEM_MONITOR as usize, &mut ops);
            let mut second = first;
            let mut other = fid {
                fclass: FI_CLASS_LOG as usize,
                ..first.fid
            };
            let cache = cache();
            assert_eq!(fi_import_fid(cache, &mut other, 0), -FI_EINVAL);
            assert_eq!(fi_import_fid(cache, &mut first.fid, 1), -FI_EINVAL);
            assert_eq!(fi_import_fid(cache, &mut first.fid, 0), FI_SUCCESS);
            ((*first.import_ops).notify.unwrap())(&mut first, null_mut(), 4096);
            assert_eq!(fi_import_fid(cache, &mut second.fid, 0), -FI_EBUSY);
            assert_eq!(fi_close(&mut first.fid), FI_SUCCESS);
            assert_eq!(fi_import_fid(cache, &mut second.fid, 0), FI_SUCCESS);
            assert_eq!((fi_close(&mut second.fid), fi_close(cache)), (FI_SUCCESS, FI_SUCCESS));
        }
    }
}
