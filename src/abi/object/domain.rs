//! fid_domain of a provider of ours.

use super::{Object, deferred, head, mr, raw_key};
use crate::abi::types::*;
use crate::abi::{built_in, lacking};
use crate::api::domain::Domain;
use crate::api::info::model::Info;
use crate::api::instances;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

static DOMAIN_OPS: fi_ops = fi_ops {
    close: Some(close),
    bind: Some(bind),
    control: Some(control),
    ..lacking::FID
};

/// # Safety
/// A live fabric of ours; `out` is a place for a pointer.
pub unsafe fn open(fabric: *const fid_fabric, info: &Info, out: *mut *mut fid_domain, context: *mut c_void) -> c_int {
    // SAFETY: the caller has a live fabric of ours.
    let fabric_value = unsafe { super::fabric::opened(fabric) };
    let Some(built_in) = built_in::find(fabric_value.provider) else {
        return -FI_ENODEV;
    };
    match Domain::sharing(fabric_value, info, built_in.share) {
        Ok(domain) => {
            let c = fid_domain {
                fid: head(FI_CLASS_DOMAIN, context, &DOMAIN_OPS),
                ops: (&raw const *built_in.domain_ops).cast_mut(),
                mr: (&raw const mr::OPS).cast_mut(),
            };
            let given = Object::give(c, domain);
            instances::domain_opened(given as usize, fabric as usize, info.domain_name().unwrap_or_default());
            // SAFETY: fi_domain's caller passes a place for a pointer.
            unsafe { out.write(given) };
            FI_SUCCESS
        }
        Err(error) => error.code(),
    }
}

/// # Safety
/// A live domain of ours.
pub unsafe fn opened<'a>(domain: *const fid) -> &'a Arc<Domain> {
    // SAFETY: the caller's fid is of a live domain of ours.
    unsafe { Object::<fid_domain, _>::value(domain.cast()) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only domains made here have this operation; closing ends their life unless they are in use.
    unsafe {
        Object::<fid_domain, Arc<Domain>>::close(fid, |domain| {
            domain.close()?;
            instances::closed(fid as usize);
            Ok(())
        })
    }
}

/// Raw keys of peers, and deferred work.
unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: the command says what its argument is; a live domain of ours.
    unsafe {
        match command as u32 {
            FI_QUEUE_WORK | FI_CANCEL_WORK | FI_FLUSH_WORK => deferred::control(opened(fid), command, arg),
            _ => raw_key::control(command, arg).unwrap_or(-FI_ENOSYS),
        }
    }
}

/// An event queue for asynchronous events of the domain.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    if flags & !FI_REG_MR != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    // SAFETY: a live domain of ours; a fid tells its class.
    unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_EQ => {
                opened(fid).bind_eq(super::eq::of(other), flags & FI_REG_MR != 0);
                FI_SUCCESS
            }
            _ => -FI_EINVAL,
        }
    }
}
