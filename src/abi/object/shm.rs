//! What a domain of provider `shm` opens: endpoints over shared memory, and vectors of their names.

use super::{atomic, av, cntr, collective, cq, domain, poll_set, status, stx};
use crate::abi::lacking;
use crate::abi::layout::CURRENT;
use crate::abi::types::*;
use crate::abi::{info_read, object};
use crate::api::av::string::StringAddr;
use crate::api::endpoint::Endpoint;
use crate::api::endpoint::scalable::Scalable;
use crate::api::endpoint::shared_rx::{SharedRx, SharedRxEndpoint};
use crate::provider::shm;
use crate::transport::shm::ShmTransport;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

pub static OPS: fi_ops_domain = fi_ops_domain {
    av_open: Some(av_open),
    cq_open: Some(cq::open),
    cntr_open: Some(cntr::open),
    poll_open: Some(poll_set::open),
    endpoint: Some(open_endpoint),
    endpoint2: Some(open_endpoint2),
    scalable_ep: Some(open_scalable),
    stx_ctx: Some(stx::open),
    srx_ctx: Some(open_srx),
    query_atomic: Some(atomic::query),
    query_collective: Some(collective::query),
    ..lacking::DOMAIN
};

unsafe extern "C" fn av_open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    out: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live domain of ours and its arguments, by the manual page.
    unsafe { av::open(domain::opened(domain.cast()), Arc::new(StringAddr), attr, out, context) }
}

unsafe extern "C" fn open_endpoint(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours and an info of fi_getinfo's.
    unsafe {
        let info = info_read::read(info, &CURRENT);
        match shm::open_transport(&info) {
            Ok(transport) => {
                let domain = domain::opened(domain.cast());
                let shares = info.ep.as_ref().is_some_and(|ep| ep.rx_ctx_cnt == FI_SHARED_CONTEXT);
                out.write(if shares {
                    object::endpoint::give(SharedRxEndpoint::new(domain, &info, transport), FI_CLASS_EP, context)
                } else {
                    object::endpoint::give(Endpoint::new(domain, &info, transport), FI_CLASS_EP, context)
                });
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn open_endpoint2(
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
    unsafe { open_endpoint(domain, info, out, context) }
}

unsafe extern "C" fn open_scalable(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours and an info of fi_getinfo's.
    unsafe {
        let info = info_read::read(info, &CURRENT);
        let opened = shm::open_transport(&info)
            .and_then(|first| Scalable::open(domain::opened(domain.cast()), &info, first, shm::open_named));
        status(opened.map(|whole| out.write(object::scalable::give(whole, context))))
    }
}

unsafe extern "C" fn open_srx(
    domain: *mut fid_domain,
    attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours; attributes may be left out.
    unsafe {
        let rx = attr.as_ref().map(info_read::rx).unwrap_or_default();
        let pool: Arc<SharedRx<ShmTransport>> =
            SharedRx::open(domain::opened(domain.cast()), rx.caps, &rx, shm::limits());
        out.write(object::srx::give(pool, context));
    }
    FI_SUCCESS
}
