//! fid_stx: a shared transmit context. Nothing can be done with it but bind it to endpoints, and close it.

use super::{Object, domain, head};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::endpoint::stx::Stx;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

static FID: fi_ops = fi_ops {
    close: Some(close),
    ..lacking::FID
};

static OPS: fi_ops_ep = lacking::EP;

/// # Safety
/// The arguments are as fi_stx_context of fi_endpoint(3) asks.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    _attr: *mut fi_tx_attr,
    out: *mut *mut fid_stx,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours, and a place for a pointer.
    unsafe {
        let c = fid_stx {
            fid: head(FI_CLASS_STX_CTX, context, &FID),
            ops: (&raw const OPS).cast_mut(),
        };
        out.write(Object::give(c, Stx::open(domain::opened(domain.cast()))));
    }
    FI_SUCCESS
}

/// # Safety
/// A live shared transmit context of ours.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Stx> {
    // SAFETY: a live shared transmit context of ours has this behind its fid.
    unsafe { Object::<fid_stx, _>::value(fid.cast()) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only contexts made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_stx, Arc<Stx>>::close(fid, |stx| stx.close()) }
}
