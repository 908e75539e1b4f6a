//! What a domain of provider `shm` opens: endpoints over shared memory, and vectors of their names.

use super::{av, cntr, cq, domain, lacking, poll_set};
use crate::abi::layout::CURRENT;
use crate::abi::types::*;
use crate::abi::{info_read, object};
use crate::api::av::string::StringAddr;
use crate::api::endpoint::Endpoint;
use crate::provider::shm;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

pub static OPS: fi_ops_domain = fi_ops_domain {
    av_open: Some(av_open),
    cq_open: Some(cq::open),
    cntr_open: Some(cntr::open),
    poll_open: Some(poll_set::open),
    endpoint: Some(open_endpoint),
    endpoint2: Some(open_endpoint2),
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
                let endpoint = Endpoint::new(domain::opened(domain.cast()), &info, transport);
                out.write(object::endpoint::give(endpoint, context));
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
