//! What a domain opens of a provider with connected endpoints: those, besides all that `on_engine` opens.
//!
//! One op table for each provider. Called by C.

use super::on_engine::{DomainOf, give_endpoint};
use super::opening::{Openings, open_endpoint, open_endpoint2};
use super::{pep, request};
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::connection::Connection;
use crate::api::errno::Result;
use crate::api::info::model::{Info, Opaque};
use crate::provider::connected::Connected;
use core::ffi::c_void;
use core::marker::PhantomData;
use std::sync::Arc;

/// The op table of a provider's domains.
pub struct ConnectedDomainOf<P>(PhantomData<P>);

impl<P> ConnectedDomainOf<P>
where
    P: Connected<ConnectedTransport: EndpointTransport>,
{
    pub const OPS: fi_ops_domain = fi_ops_domain {
        endpoint: Some(open_endpoint::<Self>),
        endpoint2: Some(open_endpoint2::<Self>),
        ..DomainOf::<P>::OPS
    };
}

impl<P> Openings for ConnectedDomainOf<P>
where
    P: Connected<ConnectedTransport: EndpointTransport>,
{
    unsafe fn open(domain: &Arc<Domain>, info: Info, context: *mut c_void) -> Result<*mut fid_ep> {
        // SAFETY: forwarded.
        unsafe {
            if info.ep_type() != FI_EP_MSG {
                return DomainOf::<P>::open(domain, info, context);
            }
            let (info, transport, connection) = open_connected::<P>(domain, info)?;
            Ok(give_endpoint(domain, &info, transport, Some(connection), context))
        }
    }
}

/// What a connected endpoint is made of, with its address in the info.
///
/// # Safety
/// As for `Openings::open`.
pub(super) unsafe fn open_connected<P: Connected>(
    domain: &Arc<Domain>,
    mut info: Info,
) -> Result<(Info, P::ConnectedTransport, Connection)> {
    let shared = domain.shared()?;
    // SAFETY: forwarded.
    let handle = unsafe { request_in::<P>(&mut info) }?;
    let transport = match handle {
        None => P::open_connected(&shared, &info)?,
        Some(handle) => request::answer(handle, |request| P::answer(&shared, &info, request))?,
    };
    let connection = Connection::new(handle.is_some(), P::DATA_SIZE, P::address_kind(domain.addr_format));
    Ok((info, transport, connection))
}

/// The handle of the request that an endpoint is opened for. None: for nobody; then it may get the address of a passive
/// endpoint.
///
/// # Safety
/// As for `Openings::open`.
unsafe fn request_in<P: Connected>(info: &mut Info) -> Result<Option<usize>> {
    let Opaque(handle) = info.handle;
    if handle == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    match unsafe { pep::give_up_address::<P>(handle) } {
        Some(address) => {
            info.src_addr = Some(address?);
            Ok(None)
        }
        None => Ok(Some(handle)),
    }
}
