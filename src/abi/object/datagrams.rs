//! What a domain opens of a provider whose card sends datagrams: endpoints of FI_EP_DGRAM, and vectors of which the
//! card must know the addresses, besides all that `direct` opens.
//!
//! One op table for each provider. Called by C.

use super::direct::DirectDomainOf;
use super::on_engine::give_connected;
use super::opening::{Openings, open_endpoint, open_endpoint2};
use super::{av, domain};
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::direct::DirectEndpoint;
use crate::api::errno::Result;
use crate::api::info::model::Info;
use crate::provider::datagrams::Datagrams;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

/// The op table of a provider's domains.
pub struct DatagramDomainOf<P>(PhantomData<P>);

impl<P: Datagrams> DatagramDomainOf<P> {
    pub const OPS: fi_ops_domain = fi_ops_domain {
        av_open: Some(open_av::<P>),
        endpoint: Some(open_endpoint::<Self>),
        endpoint2: Some(open_endpoint2::<Self>),
        ..DirectDomainOf::<P>::OPS
    };
}

impl<P: Datagrams> Openings for DatagramDomainOf<P> {
    unsafe fn open(domain: &Arc<Domain>, info: Info, context: *mut c_void) -> Result<*mut fid_ep> {
        if info.ep_type() != FI_EP_DGRAM {
            // SAFETY: forwarded.
            return unsafe { DirectDomainOf::<P>::open(domain, info, context) };
        }
        let transport = P::open_datagram(&domain.shared()?, &info)?;
        Ok(give_connected(
            DirectEndpoint::new(domain, &info, transport),
            None,
            context,
        ))
    }
}

unsafe extern "C" fn open_av<P: Datagrams>(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    out: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live domain of ours and its arguments, by the manual page.
    unsafe {
        let domain = domain::opened(domain.cast());
        match domain.shared() {
            Ok(shared) => av::open(domain, P::vector_kind(&shared, domain.addr_format), attr, out, context),
            Err(error) => error.code(),
        }
    }
}
