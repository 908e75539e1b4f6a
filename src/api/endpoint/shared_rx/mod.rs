//! Shared receive contexts: one set of posted receives for the messages of several endpoints.
//!
//! The endpoints share one engine over a lane for each (`lanes`), so matching is exact across all of them, and an
//! endpoint that shares nothing pays nothing. The price is one lock for all that share. A completion goes to the queues
//! of the endpoint that the message was sent to. Called by `abi::object`.
//!
//! - here: the context, and which endpoint a completion belongs to;
//! - `endpoint`: the endpoints that share it.

mod endpoint;

use super::EndpointTransport;
use super::engine_core::{CollectiveQueues, EndpointCore, Owners};
use super::host::EngineHost;
use super::lanes::Lanes;
use super::ops::{EndpointOps, TransportFacts, stop};
use super::state::{EndpointState, PendingCompletions, StateGuard};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::cq::Cq;
use crate::api::domain::{Domain, unused};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::RxAttr;
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::endpoint::Engine;
use crate::engine::op::{CompletedOp, Completion, OperationOf};
use crate::engine::port::{Limits, PeerId, Transport};
use crate::util::ready::Ready;
use crate::util::user::UserIov;
use core::any::Any;
use core::marker::PhantomData;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use endpoint::SharedRxEndpoint;

/// Memory regions know all endpoints of a shared context by one number, as they have one engine: a region bound to one
/// of them can be accessed through the others.
const SHARED_NUMBER: u64 = 0;

/// A shared receive context.
pub struct SharedRx<T: EndpointTransport> {
    /// Endpoints bound to the context.
    users: Refs,
    pub(super) host: EngineHost<Sharers<T>>,
}

/// The owners of a shared engine: the endpoints, and the context itself.
pub struct Sharers<T> {
    /// The state of the context itself, which receives are posted to.
    state: EndpointState,
    /// By lane; None: closed.
    endpoints: Vec<Option<EndpointState>>,
    /// The endpoint that is being closed: its queue and counter hear of receives that it was filling, if no other is
    /// open.
    parting: Option<EndpointState>,
    /// A thread of FI_PROGRESS_AUTO drives the engine.
    driven: bool,
    /// One of the endpoints is a target of RMA or atomics; one has a counter for what peers do.
    target: bool,
    counted: bool,
    /// By lane: the marks of transports that need not be polled.
    marks: Vec<Option<Arc<Ready>>>,
    transport: PhantomData<fn() -> T>,
}

impl<T> Sharers<T> {
    /// There is more to do for the engine that all share: whoever reads next shall do it.
    fn mark_all(&self) {
        self.marks.iter().flatten().for_each(|mark| mark.set());
    }

    /// The endpoint of a lane, unless it is closed.
    pub(super) fn endpoint(&mut self, lane: usize) -> Result<&mut EndpointState> {
        let state = self.endpoints.get_mut(lane).and_then(Option::as_mut);
        state.ok_or(Errno(FI_EOPBADSTATE as i32))
    }
}

impl<T: EndpointTransport> Owners for Sharers<T> {
    type Endpoint = T;
    type Transport = Lanes<T>;

    /// All are pending: which endpoint one belongs to is known by its lane, and the lanes are borrowed while the engine
    /// works.
    type Reporter<'a>
        = &'a mut PendingCompletions
    where
        T: 'a;

    #[inline]
    fn reporter<'a>(&'a mut self, pending: &'a mut PendingCompletions) -> &'a mut PendingCompletions {
        pending
    }

    /// A completion of no endpoint (a cancelled receive, a peek that found nothing), or a receive that an endpoint
    /// which is closed was filling, goes to the context's own queue if it has one, else to that of the first endpoint
    /// that has one. The last endpoint hears of its own.
    fn owner_of(&mut self, completion: &Completion, lanes: &Lanes<T>) -> Option<&mut EndpointState> {
        let lane = completion.source.and_then(|peer| lanes.lane_of(peer));
        let is_open = lane.is_some_and(|lane| self.endpoint(lane).is_ok());
        match lane {
            Some(lane) if is_open => self.endpoint(lane).ok(),
            // The buffer is the context's, so whoever posts the next one must hear of it.
            Some(_) if completion.op != CompletedOp::Recv => None,
            _ if self.state.bindings.hears_receives() => Some(&mut self.state),
            _ => {
                let hears = |state: &EndpointState| state.bindings.hears_receives();
                let best = self.endpoints.iter().flatten().any(hears);
                let mut open = self.endpoints.iter_mut().flatten();
                open.find(|state| !best || hears(state)).or(self.parting.as_mut())
            }
        }
    }

    /// Owners are lanes.
    fn collective_queues(&self, owner: usize) -> Option<CollectiveQueues<'_>> {
        let bindings = &self.endpoints.get(owner)?.as_ref()?.bindings;
        Some(CollectiveQueues {
            cq: bindings.tx_queue(),
            eq: bindings.eq(),
        })
    }

    fn state(&mut self) -> &mut EndpointState {
        &mut self.state
    }

    fn states(&mut self) -> impl Iterator<Item = &mut EndpointState> {
        self.endpoints.iter_mut().flatten().chain([&mut self.state])
    }

    #[inline]
    fn is_driven(&self) -> bool {
        self.driven
    }

    #[inline]
    fn hear_connections(&mut self, lanes: &mut Lanes<T>) {
        lanes.hear_connections(|lane, event, only| {
            if let Some(state) = self.endpoints.get_mut(lane).and_then(Option::as_mut) {
                state.hear(event, only);
            }
        });
    }

    fn address_of(lanes: &Lanes<T>, peer: PeerId) -> Option<&[u8]> {
        lanes.address_of(peer)
    }

    fn wake(lanes: &Lanes<T>) {
        lanes.wake();
    }
}

impl<T: EndpointTransport + 'static> SharedRx<T> {
    pub fn open(domain: &Arc<Domain>, rx: &RxAttr, limits: Limits, far_limits: Limits) -> Arc<SharedRx<T>> {
        let sharers = Sharers {
            state: EndpointState::of_shared_rx(domain, rx),
            endpoints: Vec::new(),
            parting: None,
            driven: domain.driver.is_some(),
            target: false,
            counted: false,
            marks: Vec::new(),
            transport: PhantomData,
        };
        let core = EndpointCore::new(Engine::new(Lanes::new(limits, far_limits)), sharers);
        Arc::new(SharedRx {
            users: Refs::default(),
            host: EngineHost::new(domain, core, domain.crossed),
        })
    }
}

impl<T: EndpointTransport> SharedRx<T> {
    /// Gives peers access to the domain's memory regions, if one endpoint is a target; direct access on this lane,
    /// unless peers' operations are counted.
    fn open_memory(&self, lane: usize, target: bool, counted: bool) {
        let Some(mut guard) = self.host.try_enter() else { return };
        let core = &mut *guard;
        let sharers = &mut core.owners;
        sharers.target |= target;
        sharers.counted |= counted;
        let regions = &self.host.domain.memory.regions;
        if sharers.target {
            core.engine
                .expose_regions(regions.clone(), SHARED_NUMBER, sharers.counted);
        }
        if target && !counted {
            core.engine.transport_mut().show_by(lane, regions, SHARED_NUMBER);
        }
    }
}

impl<T: EndpointTransport + 'static> EndpointOps for Arc<SharedRx<T>> {
    fn base(&self) -> Arc<dyn EndpointOps> {
        Arc::new(self.clone())
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.host.domain
    }

    fn lock_state(&self) -> StateGuard<'_> {
        self.host.lock_state()
    }

    #[inline(always)]
    fn transport(&self) -> TransportFacts {
        TransportFacts::of::<T>()
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn unfinished(&self) -> (usize, usize) {
        (0, self.host.try_enter().map_or(0, |core| core.engine.posted()))
    }

    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    fn as_shared_rx(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self)
    }

    /// A shared context works from the moment it is opened.
    fn enable(&self) -> Result<()> {
        Ok(())
    }

    fn cancel(&self, operation: OperationOf) -> Result<()> {
        self.host.cancel_receive(operation)
    }

    /// Programs may bind a queue; it only gets completions that belong to no endpoint.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.with_state(|state| state.bindings.bind_cq(cq, flags))
    }

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.with_state(|state| state.bind_av(av))
    }

    fn close(&self) -> Result<()> {
        unused(&self.users)?;
        self.with_state(|state| unused(&state.aliases))?;
        stop(self, || self.host.close());
        Ok(())
    }
}

impl<T: EndpointTransport> Messaging for SharedRx<T> {
    fn send(&self, _: &SendCall, _: &UserIov) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }

    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut guard = self.host.enter()?;
        let core = &mut *guard;
        let lanes = core.engine.transport_mut();
        let (recv, look) = core
            .owners
            .state
            .recv_op::<T>(call, body, |address| lanes.peer(address))?;
        let (engine, mut reporter) = core.parts();
        let begun = match look {
            None => engine.recv(&recv, &mut reporter),
            Some(look) => engine.peek(look, &recv, &mut reporter),
        };
        if core.has_work() {
            core.owners.mark_all();
        }
        self.host.finish(guard, begun)
    }
}

impl<T: EndpointTransport> Rma for SharedRx<T> {
    fn rma(&self, _: &RmaCall) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

impl<T: EndpointTransport> Atomics for SharedRx<T> {
    fn atomic(&self, _: &AtomicCall) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

impl<T: EndpointTransport> Progress for SharedRx<T> {
    fn progress(&self) {
        self.host.progress();
    }

    /// The context has no descriptor, so nothing could wake a sleeper on its own queue.
    fn arm(&self) -> bool {
        self.host.is_closed()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}
