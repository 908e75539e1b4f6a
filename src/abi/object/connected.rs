//! What a domain opens of a provider with connected endpoints: those, besides all that `on_engine` opens.
//!
//! One op table for each provider. Called by C.

use super::on_engine::{DomainOf, give_endpoint, open_endpoint};
use super::{domain, pep, request, status};
use crate::abi::info_read;
use crate::abi::layout::CURRENT;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::connection::Connection;
use crate::api::errno::Result;
use crate::api::info::model::{Info, Opaque};
use crate::provider::connected::Connected;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

/// The op table of a provider's domains.
pub struct ConnectedDomainOf<P>(PhantomData<P>);

impl<P: Connected> ConnectedDomainOf<P> {
    pub const OPS: fi_ops_domain = fi_ops_domain {
        endpoint: Some(open_any::<P>),
        endpoint2: Some(open_any2::<P>),
        ..DomainOf::<P>::OPS
    };
}

unsafe extern "C" fn open_any<P: Connected>(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours, an info of fi_getinfo's or of an event's, and a place for a pointer.
    unsafe {
        let read = info_read::read(info, &CURRENT);
        if read.ep_type() != FI_EP_MSG {
            return open_endpoint::<P>(domain, info, out, context);
        }
        status(open::<P>(domain::opened(domain.cast()), read, context).map(|endpoint| out.write(endpoint)))
    }
}

/// A connected endpoint: for a request, or with a passive endpoint's address, or neither, as the info's handle says.
///
/// # Safety
/// A handle that is a passive endpoint of this provider is not closed meanwhile.
unsafe fn open<P: Connected>(domain: &Arc<Domain>, mut info: Info, context: *mut c_void) -> Result<*mut fid_ep> {
    let shared = domain.shared()?;
    let Opaque(handle) = info.handle;
    let given = match handle {
        0 => None,
        // SAFETY: the caller's promise.
        _ => unsafe { pep::give_up_address::<P>(handle) },
    };
    let (transport, requested) = match given {
        Some(address) => {
            info.src_addr = Some(address?);
            (P::open(&shared, &info)?, false)
        }
        None if handle == 0 => (P::open(&shared, &info)?, false),
        None => (P::answer(&shared, &info, request::take(handle, None)?)?, true),
    };
    let connection = Connection::new(requested, P::DATA_SIZE, P::address_kind(domain.addr_format));
    Ok(give_endpoint(domain, &info, transport, Some(connection), context))
}

unsafe extern "C" fn open_any2<P: Connected>(
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
    unsafe { open_any::<P>(domain, info, out, context) }
}
