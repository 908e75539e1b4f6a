//! What a provider says to have connected endpoints (FI_EP_MSG) and passive ones besides.
//!
//! The rest, as events, states and errors, is in `api::endpoint::connection` and `api::passive`, for all of them. A
//! provider without it says nothing of it. Implemented by providers; `abi::built_in` makes C objects of it.

use super::on_engine::OnEngine;
use crate::api::errno::Result;
use crate::api::info::model::Info;
use crate::api::passive::Listener;
use std::sync::Arc;

/// A provider with connected endpoints. Their transports have a `connection` that is never none.
pub trait Connected: OnEngine {
    type Listener: Listener;

    /// An `EndpointTransport`, which the engine works over, or a `DirectTransport`, which needs none.
    type ConnectedTransport: 'static;

    /// The most bytes that a program's data may have, in each direction (FI_OPT_CM_DATA_SIZE). Longer data is cut off.
    const DATA_SIZE: usize;

    /// The listener of a passive endpoint, at `info.src_addr` if that is given.
    fn listener(info: &Info) -> Result<Self::Listener>;

    /// The transport of an endpoint that waits for `Connects::connect`.
    fn open_connected(shared: &Arc<Self::Shared>, info: &Info) -> Result<Self::ConnectedTransport>;

    /// The transport of an endpoint that was opened for a request, which it takes; it waits for `Connects::accept`. An
    /// error leaves the request, to be answered another time.
    fn answer(
        shared: &Arc<Self::Shared>,
        info: &Info,
        request: &mut Option<<Self::Listener as Listener>::Request>,
    ) -> Result<Self::ConnectedTransport>;
}
