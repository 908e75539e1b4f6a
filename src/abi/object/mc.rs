//! fid_mc: a collective group that an endpoint joined, and fi_join.
//!
//! What a group does is in `api::collective`. Called by C.

use super::endpoint::any;
use super::{Object, av_set, head, status};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::av_set::SetHold;
use crate::api::collective::group::new_address;
use crate::api::collective::{Collectives, JoinCall};
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use std::sync::{Arc, Weak};

static MC_OPS: fi_ops = fi_ops {
    close: Some(close),
    ..lacking::FID
};

struct OpenGroup {
    /// Weak: the endpoint may be closed before its groups.
    endpoint: Weak<dyn Collectives>,
    /// The set cannot be closed while a group of it is open.
    _set: SetHold,
}

/// fi_join: of collective groups only.
///
/// # Safety
/// As the manual page says.
pub unsafe extern "C" fn join(
    ep: *mut fid_ep,
    addr: *const c_void,
    flags: u64,
    out: *mut *mut fid_mc,
    context: *mut c_void,
) -> c_int {
    if flags & FI_COLLECTIVE == 0 {
        return -FI_ENOSYS;
    }
    if addr.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; the flag says what the address is.
    unsafe {
        let endpoint = any(ep.cast()).collectives().ok_or(Errno(FI_ENOSYS));
        let addr = &*addr.cast::<fi_collective_addr>();
        status(endpoint.and_then(|endpoint| enter(endpoint, addr, out, context)))
    }
}

/// # Safety
/// `addr` names a live set of ours or none; `out` is a place for a pointer.
unsafe fn enter(
    endpoint: Arc<dyn Collectives>,
    addr: &fi_collective_addr,
    out: *mut *mut fid_mc,
    context: *mut c_void,
) -> Result<()> {
    // SAFETY: fi_join's caller passes an address that names a live set of ours or none.
    let set = unsafe { av_set::of(addr.set) }?;
    let c = fid_mc {
        fid: head(FI_CLASS_MC, context, &MC_OPS),
        fi_addr: new_address(),
    };
    let mc = Object::give(
        c,
        OpenGroup {
            endpoint: Arc::downgrade(&endpoint),
            _set: set.hold(),
        },
    );
    let call = JoinCall {
        address: c.fi_addr,
        fid: mc as usize,
        set: set.clone(),
        coll_addr: addr.coll_addr,
        context: context as usize,
    };
    // SAFETY: `mc` was made above, and nobody knows it unless the join has begun; it is told first, since another
    // thread may read the event at once.
    unsafe {
        out.write(mc);
        endpoint.join(&call).inspect_err(|_| {
            out.write(core::ptr::null_mut());
            drop(Object::<fid_mc, OpenGroup>::take(mc));
        })
    }
}

/// -FI_EBUSY while an operation of the group goes on, unless its endpoint is closed.
unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only groups made here have this operation; closing ends their life unless they are in use.
    unsafe {
        let addr = (*fid.cast::<fid_mc>()).fi_addr;
        Object::<fid_mc, OpenGroup>::close(fid, |opened| match opened.endpoint.upgrade() {
            Some(endpoint) => endpoint.leave(addr, fid as usize),
            None => Ok(()),
        })
    }
}
