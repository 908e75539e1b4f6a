//! Endpoints: an engine, the transport under it, and the queues, counters and addresses it is bound to.
//!
//! Provider-independent: `T` is the transport, everything else is here once. An endpoint is bound, then enabled, then
//! used; reading a queue that it is bound to drives it. Knows no provider and no C type of an object. Called by
//! `abi::object`.
//!
//! - here: the plain endpoint, which has its engine to itself; `endpoint_transport`: what any asks of its transport;
//! - `ops`: what all kinds do besides data transfer (bind, enable, options, close);
//! - `host`, `engine_core`: the engine behind its lock, and how its completions are reported, for all kinds;
//! - `state`: what the application bound and set, and how a call becomes an operation of the engine;
//! - `bindings`: the queues and counters, `completion_entry`: what an entry says; `peers`: between fi_addr_t and the
//!   transport's numbers;
//! - `alias`, `stx`, `scalable`: fi_ep_alias, shared transmit contexts, scalable endpoints;
//! - `shared_rx`, `lanes`: shared receive contexts, and their several transports as one;
//! - `connection`: the one peer of an FI_EP_MSG endpoint; `direct`: endpoints whose card does what the engine would;
//! - `collective`: endpoints as members of groups.

pub mod alias;
mod bindings;
mod collective;
mod completion_entry;
pub mod connection;
pub mod direct;
mod endpoint_transport;
mod engine_core;
mod host;
mod lanes;
mod ops;
mod peers;
pub mod scalable;
pub mod shared_rx;
mod state;
pub mod stx;
#[cfg(test)]
pub(super) mod tests;

use super::collective::Collectives;
use super::domain::{Domain, unused};
use super::errno::{Errno, Result};
use super::info::model::Info;
use super::log::Speaker;
use super::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use super::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use super::progress::{Progress, Watch};
use crate::abi::types::*;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Completion, Error, OperationOf, RemotePart, Report};
use crate::engine::port::PeerId;
use crate::util::user::UserIov;
use collective::contexts::Listener;
use core::marker::PhantomData;
use endpoint_transport::watch_of;
use engine_core::{CollectiveQueues, EndpointCore, Owners};
use host::EngineHost;
use ops::{ByThread, OnConnection, Sleeper, TransportFacts};
use state::PendingCompletions;
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use completion_entry::errno;
pub use endpoint_transport::{EndpointTransport, Renamed};
pub use ops::EndpointOps;
pub use state::{EndpointState, StateGuard};

/// An endpoint with an engine of its own.
pub struct Endpoint<T: EndpointTransport> {
    /// Closed by fi_close, while other threads may still have references to the endpoint.
    host: EngineHost<OneEndpoint<T>>,
}

/// The only owner of an engine: one endpoint, and the contexts whose collectives it carries.
struct OneEndpoint<T> {
    state: EndpointState,
    /// Transmit contexts of the same scalable endpoint, by their owner number in the runner.
    listeners: HashMap<usize, Listener>,
    /// The name from fi_setname.
    name: Option<Vec<u8>>,
    transport: PhantomData<fn() -> T>,
}

impl<T: EndpointTransport> OneEndpoint<T> {
    fn core(provider: Speaker, info: &Info, transport: T) -> EndpointCore<OneEndpoint<T>> {
        let engine = Engine::with(transport, state::engine_config(info));
        let mut state = EndpointState::new(provider, info);
        state.amos = Some(engine.amos()).filter(|amos| !amos.is_empty());
        let owner = OneEndpoint {
            state,
            listeners: HashMap::new(),
            name: None,
            transport: PhantomData,
        };
        EndpointCore::new(engine, owner)
    }
}

/// Reports completions while the engine works, unless their source address must be looked up in the transport, which is
/// borrowed meanwhile. Such a completion stays pending, and so do those after it, to keep their order.
///
/// Each kind of transport has a reporter of its own, and with it the engine's code for a packet that has come: the
/// compiler inlines that where it has one caller, and not where several transports share it.
struct Reporter<'a, T> {
    state: &'a mut EndpointState,
    pending: &'a mut PendingCompletions,
    transport: PhantomData<fn() -> T>,
}

impl<T> Report for Reporter<'_, T> {
    #[inline(always)]
    fn report(&mut self, completion: Completion) {
        match self.state.known_source(&completion) {
            Some(source) if self.pending.completions.is_empty() => self.state.bindings.report(&completion, source),
            _ => self.pending.keep(completion),
        }
    }

    #[cold]
    fn has_told(&self) -> bool {
        !self.pending.completions.is_empty() || self.state.bindings.have_told()
    }

    #[cold]
    fn met(&mut self) {
        self.pending.met();
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        self.pending.refused(from, part, error);
    }

    #[cold]
    fn refused_unheard(&mut self, by: PeerId, part: &RemotePart, error: Error) {
        self.pending.refused_unheard(by, part, error);
    }
}

impl<T: EndpointTransport> Owners for OneEndpoint<T> {
    type Endpoint = T;
    type Transport = T;

    type Reporter<'a>
        = Reporter<'a, T>
    where
        T: 'a;

    #[inline]
    fn reporter<'a>(&'a mut self, pending: &'a mut PendingCompletions) -> Reporter<'a, T> {
        Reporter {
            state: &mut self.state,
            pending,
            transport: PhantomData,
        }
    }

    fn owner_of(&mut self, _: &Completion, _: &T) -> Option<&mut EndpointState> {
        Some(&mut self.state)
    }

    fn collective_queues(&self, owner: usize) -> Option<CollectiveQueues<'_>> {
        if owner == collective::OWN {
            let bindings = &self.state.bindings;
            return Some(CollectiveQueues {
                cq: bindings.tx_queue(),
                eq: bindings.eq(),
            });
        }
        self.listeners.get(&owner).map(Listener::queues)
    }

    fn state(&mut self) -> &mut EndpointState {
        &mut self.state
    }

    fn states(&mut self) -> impl Iterator<Item = &mut EndpointState> {
        core::iter::once(&mut self.state)
    }

    #[inline]
    fn is_driven(&self) -> bool {
        self.state.driven.is_some()
    }

    #[inline]
    fn hear_connections(&mut self, transport: &mut T) {
        if let Some(connection) = transport.connection() {
            self.state.hear_all(connection);
        }
    }

    fn address_of(transport: &T, peer: PeerId) -> Option<&[u8]> {
        transport.address_of(peer)
    }

    fn wake(transport: &T) {
        transport.wake();
    }
}

impl<T: EndpointTransport + 'static> Endpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<Endpoint<T>> {
        Endpoint::with_lock(domain, info, transport, domain.locked)
    }

    /// `locked`: whether several threads may call at once.
    fn with_lock(domain: &Arc<Domain>, info: &Info, transport: T, locked: bool) -> Arc<Endpoint<T>> {
        let core = OneEndpoint::core(domain.provider, info, transport);
        Arc::new(Endpoint {
            host: EngineHost::new(domain, core, locked),
        })
    }

    /// A new endpoint in place of one that was closed.
    fn renew(&self, info: &Info, transport: T) {
        self.host
            .reopen(OneEndpoint::core(self.host.domain.provider, info, transport));
    }

    /// Gives peers access to the domain's memory regions, if the endpoint is a target of RMA or atomics.
    fn open_memory(&self, number: u64) {
        let Some(mut guard) = self.host.try_enter() else { return };
        let core = &mut *guard;
        let state = &core.owners.state;
        if state.settings.is_target && !state.enabled {
            let regions = self.host.domain.memory.regions.clone();
            core.engine
                .expose_regions(regions, number, state.bindings.counts_peers());
        }
    }
}

impl<T: EndpointTransport + 'static> EndpointOps for Arc<Endpoint<T>> {
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
        Arc::new(ByThread(self.clone()))
    }

    fn local_address(&self) -> Vec<u8> {
        self.host.try_enter().map(|core| core.own_address()).unwrap_or_default()
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        Some(self.clone())
    }

    fn set_address(&self, address: &[u8]) -> Result<()> {
        let mut core = self.host.enter()?;
        if core.owners.state.enabled {
            log!(by self.host.domain.provider; Warn, EpCtrl, "fi_setname: the endpoint is enabled already");
            return Err(Errno(FI_EBUSY));
        }
        let renamed = core.engine.transport().renamed(address)?;
        if let Some(transport) = renamed.transport {
            core.engine.set_transport(transport);
        }
        if renamed.address.is_some() {
            core.owners.name = renamed.address;
        }
        Ok(())
    }

    fn unfinished(&self) -> (usize, usize) {
        let core = self.host.try_enter();
        core.map_or((0, 0), |core| (core.engine.in_flight(), core.engine.posted()))
    }

    fn enable(&self) -> Result<()> {
        // Before the memory is opened: an endpoint that is refused may bind more and try again, but whether peers are
        // counted is settled when its memory is opened.
        self.with_state(|state| state.check())?;
        self.open_memory(self.number());
        if !self.with_state(|state| state.enabled) {
            self.host.begin_watch(watch_of);
        }
        ops::start(self)
    }

    fn with_connection(&self, use_it: &mut OnConnection) -> Result<()> {
        self.host.with_core(|core| {
            let connection = core.engine.transport_mut().connection().ok_or(Errno(FI_ENOSYS))?;
            use_it(connection, &mut core.owners.state)
        })
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        if self.with_state(|state| state.collective_carrier) {
            return self.close_to_application();
        }
        ops::stop(self, || self.host.close());
        Ok(())
    }

    fn cancel(&self, operation: OperationOf) -> Result<()> {
        self.host.cancel(operation)
    }
}

impl<T: EndpointTransport> Messaging for Endpoint<T> {
    // Inlined into each shim, so that the call's fields stay in registers. Written to memory as words and copied from
    // it as vectors, they would stall the processor.
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut guard = self.host.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let send = core
            .owners
            .state
            .send_op::<T>(call, body, |address| transport.peer(address))?;
        let (engine, mut reporter) = core.parts();
        let begun = engine.send(&send, &mut reporter);
        self.host.finish(guard, begun)
    }

    #[inline(always)]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut guard = self.host.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let (recv, look) = core
            .owners
            .state
            .recv_op::<T>(call, body, |address| transport.peer(address))?;
        let begun = match look {
            None => {
                let (engine, mut reporter) = core.parts();
                engine.recv(&recv, &mut reporter)
            }
            // A peek drives the engine. Another reporter than `progress` has leaves that the only caller of the
            // engine's own, which is inlined into it.
            Some(look) => core.engine.peek(look, &recv, &mut &mut core.pending),
        };
        self.host.finish(guard, begun)
    }
}

impl<T: EndpointTransport> Rma for Endpoint<T> {
    #[inline(always)]
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        let mut guard = self.host.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let rma = core.owners.state.rma_op::<T>(call, |address| transport.peer(address))?;
        if let Some(done) = core.engine.try_direct_rma(&rma) {
            return self.host.finish_done(guard, done);
        }
        let (engine, mut reporter) = core.parts();
        let begun = engine.start_rma(&rma, &mut reporter);
        self.host.finish(guard, begun)
    }
}

impl<T: EndpointTransport> Atomics for Endpoint<T> {
    #[inline(always)]
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        let mut guard = self.host.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let atomic = core
            .owners
            .state
            .atomic_op::<T>(call, |address| transport.peer(address))?;
        if let Some(done) = core.engine.try_direct_atomic(&atomic) {
            return self.host.finish_done(guard, done);
        }
        let (engine, mut reporter) = core.parts();
        let begun = engine.start_atomic(&atomic, &mut reporter);
        self.host.finish(guard, begun)
    }
}

impl<T: EndpointTransport> Progress for Endpoint<T> {
    fn settle(&self) {
        self.host.settle();
    }

    #[inline]
    fn progress(&self) {
        self.host.progress();
    }

    fn arm(&self) -> bool {
        self.arm_for_readers(&self.host.domain)
    }

    fn unfinished(&self) -> bool {
        self.host.must_watch()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.fd_for_readers(&self.host.domain)
    }

    fn watch(&self) -> Option<Watch> {
        self.host.watch()
    }

    fn turn(&self) -> bool {
        self.host.turn_after(|_| ())
    }
}

impl<T: EndpointTransport> Sleeper for Endpoint<T> {
    fn arm_self(&self) -> bool {
        self.host.arm(T::arm)
    }

    fn own_fd(&self) -> Option<RawFd> {
        self.host.try_enter()?.engine.transport().wake_fd()
    }
}
