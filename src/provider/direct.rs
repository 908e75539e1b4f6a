//! What a provider is whose connected endpoints have no engine: a card matches their receives itself.
//!
//! It says no more than `connected`; `OnEngine::open` is never called. `abi::built_in` makes C objects of it.

use super::connected::Connected;
use crate::api::endpoint::direct::{DirectTransport, NoEngine};

pub trait Direct: Connected<Transport = NoEngine, ConnectedTransport: DirectTransport> {}

impl<P> Direct for P where P: Connected<Transport = NoEngine, ConnectedTransport: DirectTransport> {}
