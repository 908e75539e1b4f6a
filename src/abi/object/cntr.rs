//! fid_cntr.

use super::{Object, head, status, wait, wait_set};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::cntr::{Cntr, CntrAttr};
use crate::api::domain::Domain;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

static OPS: fi_ops_cntr = fi_ops_cntr {
    size: size_of::<fi_ops_cntr>(),
    read: Some(read),
    readerr: Some(readerr),
    add: Some(add),
    set: Some(set),
    wait: Some(wait_for),
    adderr: Some(adderr),
    seterr: Some(seterr),
};

static CNTR_OPS: fi_ops = fi_ops {
    close: Some(close),
    control: Some(control),
    ..lacking::FID
};

struct Opened {
    cntr: Arc<Cntr>,
    domain: Arc<Domain>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.domain.users.release();
    }
}

/// # Safety
/// A live counter of ours, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Cntr> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_cntr, Opened>::value(fid.cast()).cntr }
}

/// # Safety
/// As `of`.
pub unsafe fn domain_of<'a>(fid: *const fid) -> &'a Arc<Domain> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_cntr, Opened>::value(fid.cast()).domain }
}

/// # Safety
/// The arguments are as fi_cntr_open of fi_cntr(3) asks.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    out: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours and its arguments, by the manual page; no attributes mean all defaults.
    unsafe {
        let domain = super::domain::opened(domain.cast());
        let attr = attr.as_ref().copied().unwrap_or(core::mem::zeroed());
        let wait_set = match wait_set::named(attr.wait_obj, attr.wait_set) {
            Ok(set) => set,
            Err(error) => return error.code(),
        };
        let opened = Cntr::open(&CntrAttr {
            events: attr.events,
            wait_obj: attr.wait_obj,
            wait_set,
            flags: attr.flags,
            locked: domain.locked,
        });
        match opened {
            Ok(cntr) => {
                domain.users.acquire();
                let c = fid_cntr {
                    fid: head(FI_CLASS_CNTR, context, &CNTR_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(
                    c,
                    Opened {
                        cntr,
                        domain: domain.clone(),
                    },
                ));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only counters made here have this operation; closing ends their life unless they are in use.
    unsafe {
        Object::<fid_cntr, Opened>::close(fid, |opened| {
            opened.domain.deferred.let_go(&opened.cntr);
            opened.cntr.close()
        })
    }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live counter of ours; the command says what its argument is.
    unsafe {
        let cntr = of(fid);
        if let Some(answer) = wait::control(command, arg, || cntr.handle(), || cntr.wait_obj()) {
            return answer;
        }
        match command as u32 {
            FI_GETOPSFLAG | FI_SETOPSFLAG if arg.is_null() => -FI_EINVAL,
            FI_GETOPSFLAG => {
                arg.cast::<u64>().write(cntr.ops_flags());
                FI_SUCCESS
            }
            FI_SETOPSFLAG => {
                cntr.set_ops_flags(arg.cast::<u64>().read());
                FI_SUCCESS
            }
            // What waits for this counter.
            FI_FLUSH_WORK => {
                domain_of(fid).deferred.flush(Some(cntr));
                FI_SUCCESS
            }
            _ => -FI_ENOSYS,
        }
    }
}

/// Changes a number, by which work may be due.
///
/// # Safety
/// A live counter of ours.
unsafe fn change(cntr: *mut fid_cntr, change: impl FnOnce(&Cntr)) -> c_int {
    // SAFETY: by contract.
    unsafe {
        change(of(cntr.cast()));
        domain_of(cntr.cast()).deferred.run();
    }
    FI_SUCCESS
}

// SAFETY of the calls below: C makes them with a live counter of ours.

unsafe extern "C" fn read(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: see above.
    unsafe { of(cntr.cast()) }.read()
}

unsafe extern "C" fn readerr(cntr: *mut fid_cntr) -> u64 {
    // SAFETY: see above.
    unsafe { of(cntr.cast()) }.read_errors()
}

unsafe extern "C" fn add(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe { change(cntr, |cntr| cntr.add(value)) }
}

unsafe extern "C" fn set(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe { change(cntr, |cntr| cntr.set(value)) }
}

unsafe extern "C" fn adderr(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe { change(cntr, |cntr| cntr.add_errors(value)) }
}

unsafe extern "C" fn seterr(cntr: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe { change(cntr, |cntr| cntr.set_errors(value)) }
}

unsafe extern "C" fn wait_for(cntr: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: see above.
    status(unsafe { of(cntr.cast()) }.wait(threshold, timeout))
}
