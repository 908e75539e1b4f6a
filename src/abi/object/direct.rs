//! What a domain opens of a provider whose connected endpoints have no engine.
//!
//! One op table for each provider. Called by C.

use super::atomic;
use super::connected::open_connected;
use super::on_engine::{DomainOf, give_connected};
use super::opening::{Openings, open_endpoint, open_endpoint2, opened_srx};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::direct::{DirectEndpoint, DirectSharedRx};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::provider::direct::Direct;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

/// The op table of a provider's domains. There is nothing that only an engine can do.
pub struct DirectDomainOf<P>(PhantomData<P>);

impl<P: Direct> DirectDomainOf<P> {
    pub const OPS: fi_ops_domain = fi_ops_domain {
        endpoint: Some(open_endpoint::<Self>),
        endpoint2: Some(open_endpoint2::<Self>),
        scalable_ep: lacking::DOMAIN.scalable_ep,
        stx_ctx: lacking::DOMAIN.stx_ctx,
        srx_ctx: Some(open_srx::<P>),
        query_atomic: Some(atomic::query_card::<P>),
        query_collective: lacking::DOMAIN.query_collective,
        ..DomainOf::<P>::OPS
    };
}

unsafe extern "C" fn open_srx<P: Direct>(
    domain: *mut fid_domain,
    attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: forwarded.
    unsafe {
        opened_srx(domain, attr, out, context, |domain, rx| {
            let receives = P::shared_receives(&domain.shared()?, rx)?;
            Ok(DirectSharedRx::new(domain, rx, receives))
        })
    }
}

impl<P: Direct> Openings for DirectDomainOf<P> {
    unsafe fn open(domain: &Arc<Domain>, info: Info, context: *mut c_void) -> Result<*mut fid_ep> {
        if info.ep_type() != FI_EP_MSG {
            return Err(Errno(FI_EINVAL));
        }
        // SAFETY: forwarded.
        let (info, transport, connection) = unsafe { open_connected::<P>(domain, info) }?;
        let endpoint = DirectEndpoint::new(domain, &info, transport);
        Ok(give_connected(endpoint, Some(connection), context))
    }
}
