//! fi_endpoint, fi_endpoint2 and fi_srx_context, for the domains of every provider.
//!
//! Checks and reads what the program gave; what an endpoint is made of stands in `Openings`. Called by C.

use super::{domain, endpoint, status};
use crate::abi::info_read;
use crate::abi::layout::CURRENT;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::Result;
use crate::api::info::model::{Info, RxAttr};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

/// What fi_endpoint opens in a domain. Implemented by the op tables: `on_engine`, `connected`, `direct`.
pub(super) trait Openings {
    /// # Safety
    /// The info's handle is none, a request, or a passive endpoint of this provider that is not closed meanwhile.
    unsafe fn open(domain: &Arc<Domain>, info: Info, context: *mut c_void) -> Result<*mut fid_ep>;
}

pub(super) unsafe extern "C" fn open_endpoint<O: Openings>(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: forwarded; by the manual page a handle of the info is what `Openings::open` wants.
    unsafe { opened(domain, info, out, |domain, info| O::open(domain, info, context)) }
}

pub(super) unsafe extern "C" fn open_endpoint2<O: Openings>(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    // SAFETY: forwarded.
    unsafe { open_endpoint::<O>(domain, info, out, context) }
}

/// Gives C what `open` makes for an info.
///
/// # Safety
/// A live domain of ours, an info of fi_getinfo's or of an event's, and a place for a pointer; each pointer may be
/// null.
pub(super) unsafe fn opened(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    open: impl FnOnce(&Arc<Domain>, Info) -> Result<*mut fid_ep>,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller's promise; neither info nor place is null.
    unsafe {
        let info = info_read::read(info, &CURRENT);
        status(open(domain::opened(domain.cast()), info).map(|endpoint| out.write(endpoint)))
    }
}

/// Gives C the shared receive context that `open` makes for attributes.
///
/// # Safety
/// A live domain of ours, attributes of receives, and a place for a pointer; each of the last two may be null.
pub(super) unsafe fn opened_srx<S: EndpointOps>(
    domain: *mut fid_domain,
    attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
    open: impl FnOnce(&Arc<Domain>, &RxAttr) -> Result<S>,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller's promise; the place is not null.
    unsafe {
        let rx = attr.as_ref().map(info_read::rx).unwrap_or_default();
        let opened = open(domain::opened(domain.cast()), &rx);
        status(opened.map(|pool| out.write(endpoint::give(pool, FI_CLASS_SRX_CTX, context))))
    }
}
