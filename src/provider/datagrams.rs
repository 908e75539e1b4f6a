//! What a provider says whose card sends datagrams too: endpoints of FI_EP_DGRAM without an engine, besides connected
//! ones.
//!
//! Implemented by providers; `abi::built_in` makes C objects of it.

use super::direct::Direct;
use crate::api::av::AddressKind;
use crate::api::endpoint::direct::DirectTransport;
use crate::api::errno::Result;
use crate::api::info::model::Info;
use std::sync::Arc;

pub trait Datagrams: Direct {
    /// Its `connection` is always none; it numbers peers.
    type DatagramTransport: DirectTransport;

    fn open_datagram(shared: &Arc<Self::Shared>, info: &Info) -> Result<Self::DatagramTransport>;

    /// How the addresses of one vector look. It may hear of what the vector has, and find the way there.
    fn vector_kind(shared: &Arc<Self::Shared>, format: u32) -> Arc<dyn AddressKind>;
}
