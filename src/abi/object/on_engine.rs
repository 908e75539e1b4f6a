//! What a domain opens of a provider on the engine: address vectors, endpoints of each kind, shared contexts.
//!
//! One op table for each provider, as endpoints know their transport when they are compiled. Called by C.

use super::opening::{Openings, open_endpoint, open_endpoint2, opened, opened_srx};
use super::{atomic, av, cntr, collective, cq, domain, poll_set, stx};
use crate::abi::types::*;
use crate::abi::{lacking, object};
use crate::api::domain::Domain;
use crate::api::endpoint::connection::Connection;
use crate::api::endpoint::scalable::Scalable;
use crate::api::endpoint::shared_rx::{SharedRx, SharedRxEndpoint};
use crate::api::endpoint::{Endpoint, EndpointOps, EndpointTransport};
use crate::api::errno::Result;
use crate::api::info::model::Info;
use crate::provider::on_engine::OnEngine;
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

/// The op table of a provider's domains.
pub struct DomainOf<P>(PhantomData<P>);

impl<P: OnEngine> DomainOf<P> {
    pub const OPS: fi_ops_domain = fi_ops_domain {
        av_open: Some(av_open::<P>),
        cq_open: Some(cq::open),
        cntr_open: Some(cntr::open),
        poll_open: Some(poll_set::open),
        endpoint: Some(open_endpoint::<Self>),
        endpoint2: Some(open_endpoint2::<Self>),
        scalable_ep: Some(open_scalable::<P>),
        stx_ctx: Some(stx::open),
        srx_ctx: Some(open_srx::<P>),
        query_atomic: Some(atomic::query::<P>),
        query_collective: Some(collective::query),
        ..lacking::DOMAIN
    };
}

pub(super) unsafe extern "C" fn av_open<P: OnEngine>(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    out: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live domain of ours and its arguments, by the manual page.
    unsafe {
        let domain = domain::opened(domain.cast());
        av::open(domain, P::address_kind(domain.addr_format), attr, out, context)
    }
}

impl<P: OnEngine> Openings for DomainOf<P> {
    unsafe fn open(domain: &Arc<Domain>, info: Info, context: *mut c_void) -> Result<*mut fid_ep> {
        let transport = P::open(&domain.shared()?, &info)?;
        Ok(give_endpoint(domain, &info, transport, None, context))
    }
}

/// Gives C an endpoint with a transport of its own, and a connection if it is one of FI_EP_MSG.
pub(super) fn give_endpoint<T: EndpointTransport + 'static>(
    domain: &Arc<Domain>,
    info: &Info,
    transport: T,
    connection: Option<Connection>,
    context: *mut c_void,
) -> *mut fid_ep {
    let shares = info.ep.as_ref().is_some_and(|ep| ep.rx_ctx_cnt == FI_SHARED_CONTEXT);
    if shares {
        let endpoint = SharedRxEndpoint::new(domain, info, transport);
        give_connected(endpoint, connection, context)
    } else {
        give_connected(Endpoint::new(domain, info, transport), connection, context)
    }
}

pub(super) fn give_connected<V: EndpointOps + Clone>(
    endpoint: V,
    connection: Option<Connection>,
    context: *mut c_void,
) -> *mut fid_ep {
    let given = object::endpoint::give(endpoint.clone(), FI_CLASS_EP, context);
    if let Some(mut connection) = connection {
        connection.named(given as usize, context as usize);
        endpoint.with_state(|state| state.be_connected(connection));
    }
    given
}

unsafe extern "C" fn open_scalable<P: OnEngine>(
    domain: *mut fid_domain,
    info: *mut fi_info,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: forwarded.
    unsafe {
        opened(domain, info, out, |domain, info| {
            let shared = domain.shared()?;
            let first = P::open(&shared, &info)?;
            let open_context = Box::new(move |address: &[u8]| P::open_context(&shared, address));
            let whole = Scalable::open(domain, &info, first, open_context)?;
            Ok(object::scalable::give(whole, context))
        })
    }
}

unsafe extern "C" fn open_srx<P: OnEngine>(
    domain: *mut fid_domain,
    attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: forwarded.
    unsafe {
        opened_srx(domain, attr, out, context, |domain, rx| {
            Ok(SharedRx::<P::Transport>::open(domain, rx, P::limits(), P::far_limits()))
        })
    }
}
