//! fid_wait: a wait set of a fabric, which queues and counters join by being opened with FI_WAIT_SET.

use super::{Object, head, not_if, status, wait};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::Fabric;
use crate::api::errno::{Errno, Result};
use crate::api::wait::set::WaitSet;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::sync::Arc;

static OPS: fi_ops_wait = fi_ops_wait {
    size: size_of::<fi_ops_wait>(),
    wait: Some(wait_for),
};

static WAIT_OPS: fi_ops = fi_ops {
    close: Some(close),
    control: Some(control),
    ..lacking::FID
};

struct Opened {
    set: Arc<WaitSet>,
    fabric: Arc<Fabric>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.fabric.users.release();
    }
}

/// # Safety
/// A live wait set of ours, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<WaitSet> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_wait, Opened>::value(fid.cast()).set }
}

/// The wait set that an attribute names, looked at for FI_WAIT_SET only.
///
/// # Safety
/// `set` is NULL or a live wait set of the same fabric.
pub unsafe fn named(object: fi_wait_obj, set: *const fid_wait) -> Result<Option<Arc<WaitSet>>> {
    if object != FI_WAIT_SET {
        return Ok(None);
    }
    // SAFETY: by contract; a fid tells its class.
    unsafe {
        if set.is_null() || (*set).fid.fclass != FI_CLASS_WAIT as usize {
            return Err(Errno(FI_EINVAL));
        }
        Ok(Some(of(&raw const (*set).fid).clone()))
    }
}

/// # Safety
/// The arguments are as fi_wait_open of fi_poll(3) asks.
pub unsafe extern "C" fn open(fabric: *mut fid_fabric, attr: *mut fi_wait_attr, out: *mut *mut fid_wait) -> c_int {
    if attr.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live fabric of ours and its arguments, by the manual page.
    unsafe {
        let fabric = super::fabric::opened(fabric);
        match WaitSet::open((*attr).wait_obj, (*attr).flags) {
            Ok(set) => {
                fabric.users.acquire();
                let c = fid_wait {
                    fid: head(FI_CLASS_WAIT, null_mut(), &WAIT_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                let fabric = fabric.clone();
                out.write(Object::give(c, Opened { set, fabric }));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only wait sets made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_wait, Opened>::close(fid, |_| not_if(of(fid).refs() > 0)) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live wait set of ours; the command says what its argument is.
    unsafe {
        let set = of(fid);
        wait::control(command, arg, || set.handle(), || set.object()).unwrap_or(-FI_ENOSYS)
    }
}

unsafe extern "C" fn wait_for(set: *mut fid_wait, timeout: c_int) -> c_int {
    // SAFETY: a live wait set of ours.
    status(unsafe { of(set.cast()) }.wait(timeout))
}
