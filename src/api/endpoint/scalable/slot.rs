//! The contexts of a scalable endpoint, opened by the program or not. Part of `Scalable`.

use super::Direction;
use super::sibling::Sibling;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::collective::contexts::{CarrierTurn, ContextCollectives, ScalableEq};
use crate::api::endpoint::ops::EndpointOps;
use crate::api::endpoint::state::Settings;
use crate::api::endpoint::{Endpoint, EndpointTransport};
use crate::api::info::model::Info;
use core::sync::atomic::AtomicBool;
use std::sync::Arc;

pub(super) struct ContextSlot<T: EndpointTransport> {
    pub(super) endpoint: Arc<Endpoint<T>>,
    /// Only of transmit contexts.
    pub(super) collectives: Option<Arc<ContextCollectives<T>>>,
    /// Likewise.
    pub(super) sibling: Option<Arc<Sibling<T>>>,
    pub(super) open: AtomicBool,
}

impl<T: EndpointTransport + 'static> ContextSlot<T> {
    pub(super) fn is_left_alone(&self) -> bool {
        self.endpoint
            .with_state(|state| state.enabled && !state.bindings.drives())
    }
}

pub(super) fn receive_contexts<T: EndpointTransport + 'static>(
    domain: &Arc<Domain>,
    info: &Info,
    number: u64,
    transports: Vec<T>,
) -> Vec<ContextSlot<T>> {
    let info = only(info, Direction::Receive);
    // Context 0 carries the collectives of all contexts, so their threads meet in it.
    let carries = info.caps & FI_COLLECTIVE != 0 && domain.crossed;
    // One without a queue is driven by the queues of all transmit contexts, so their threads meet in it.
    let may_be_left_alone = domain.crossed && !Settings::of(&info).can_recv;
    let slot = |(index, transport)| {
        let locked = domain.locked || carries && index == 0 || may_be_left_alone;
        ContextSlot {
            endpoint: numbered(Endpoint::with_lock(domain, &info, transport, locked), number),
            collectives: None,
            sibling: None,
            open: AtomicBool::new(false),
        }
    };
    transports.into_iter().enumerate().map(slot).collect()
}

/// `carrier`: the receive context that carries their collectives.
pub(super) fn transmit_contexts<T: EndpointTransport + 'static>(
    domain: &Arc<Domain>,
    info: &Info,
    number: u64,
    transports: Vec<T>,
    carrier: &Arc<Endpoint<T>>,
    eq: &ScalableEq,
    turn: &CarrierTurn,
) -> Vec<ContextSlot<T>> {
    let info = only(info, Direction::Transmit);
    // A thread of FI_PROGRESS_AUTO drives all. Without locks, contexts of several threads cannot drive one another.
    let shares = domain.driver.is_none() && (domain.locked || !domain.crossed);
    let slot = |(index, transport)| {
        let endpoint = numbered(Endpoint::with_lock(domain, &info, transport, domain.locked), number);
        ContextSlot {
            collectives: Some(ContextCollectives::new(&endpoint, carrier, index, eq, turn)),
            sibling: shares.then(|| Sibling::new(&endpoint)),
            endpoint,
            open: AtomicBool::new(false),
        }
    };
    transports.into_iter().enumerate().map(slot).collect()
}

fn numbered<T: EndpointTransport + 'static>(endpoint: Arc<Endpoint<T>>, number: u64) -> Arc<Endpoint<T>> {
    endpoint.with_state(|state| state.number = Some(number));
    endpoint
}

/// The attributes of a context of one direction, without the capabilities of the other.
pub(super) fn only(info: &Info, direction: Direction) -> Info {
    const TRANSMIT: u64 = FI_SEND | FI_READ | FI_WRITE;
    const RECEIVE: u64 = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
    let with_all = |families: u64, directions: u64| match info.caps & families {
        0 => 0,
        _ if info.caps & directions == 0 => directions,
        _ => info.caps & directions,
    };
    let memory = with_all(
        FI_RMA | FI_ATOMIC,
        FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
    );
    // An endpoint of RMA and atomics alone has such contexts: they need no queue for messages.
    let messages = match info.caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV) {
        0 if memory != 0 => 0,
        _ => FI_SEND | FI_RECV,
    };
    let caps = info.caps & !(TRANSMIT | RECEIVE) | messages | memory;
    let mut info = info.clone();
    info.caps = match direction {
        Direction::Transmit => caps & !RECEIVE,
        Direction::Receive => caps & !TRANSMIT,
    };
    if info.caps & memory == 0 {
        info.caps &= !(FI_RMA | FI_ATOMIC); // no direction would mean all
    }
    info
}
