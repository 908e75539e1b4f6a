//! What a provider says whose connected endpoints have no engine: a card matches their receives itself.
//!
//! `OnEngine::open` is never called for one. Implemented by providers; `abi::built_in` makes C objects of it.

use super::connected::Connected;
use crate::abi::types::FI_ENOSYS;
use crate::api::endpoint::direct::{CardReceives, DirectTransport, NoEngine};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::RxAttr;
use std::sync::Arc;

pub trait Direct: Connected<Transport = NoEngine, ConnectedTransport: DirectTransport> {
    /// The receives of a shared context. -FI_ENOSYS: the card has none to share.
    fn shared_receives(_: &Arc<Self::Shared>, _: &RxAttr) -> Result<CardReceives> {
        Err(Errno(FI_ENOSYS))
    }
}
