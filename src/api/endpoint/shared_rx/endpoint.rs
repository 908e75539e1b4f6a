//! Endpoints of a shared receive context: each has a name, queues and a lane of its own, and the engine of the context.
//!
//! Before it is bound to the context, an endpoint only has its state and its transport. From then on every call goes to
//! the context, under its lock, with the lane's number. Knows nothing of matching. Opened by `abi::object`, as other
//! endpoints are.

use super::{SHARED_NUMBER, SharedRx, Sharers};
use crate::abi::types::*;
use crate::api::collective::Collectives;
use crate::api::domain::{Domain, unused};
use crate::api::endpoint::bindings::Bindings;
use crate::api::endpoint::engine_core::EndpointCore;
use crate::api::endpoint::ops::{ByThread, EndpointOps, OnConnection, Sleeper, TransportFacts, lacks_srx, start, stop};
use crate::api::endpoint::state::{EndpointState, StateGuard};
use crate::api::endpoint::{EndpointTransport, watch_of};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::{Progress, Watch};
use crate::engine::op::{OperationOf, Refused};
use crate::util::closable::Entered;
use crate::util::lock::{Guard, OptLock};
use crate::util::user::UserIov;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};

/// An endpoint made for a shared receive context, and bound to one before it is enabled.
pub struct SharedRxEndpoint<T: EndpointTransport> {
    pub(in crate::api::endpoint) domain: Arc<Domain>,
    address: Vec<u8>,
    before: OptLock<Option<(EndpointState, T)>>,
    /// The bound context, and this endpoint's lane there.
    joined: OnceLock<(Arc<SharedRx<T>>, usize)>,
    closed: AtomicBool,
    /// Of a transport that need not be polled, from fi_enable on.
    watch: OnceLock<Watch>,
}

impl<T: EndpointTransport + 'static> SharedRxEndpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<SharedRxEndpoint<T>> {
        domain.users.acquire();
        let address = transport.local_address();
        Arc::new(SharedRxEndpoint {
            domain: domain.clone(),
            address,
            before: OptLock::new(Some((EndpointState::new(domain.provider, info), transport)), true),
            joined: OnceLock::new(),
            closed: AtomicBool::new(false),
            watch: OnceLock::new(),
        })
    }

    #[inline]
    pub(in crate::api::endpoint) fn shared_rx(&self) -> Result<&(Arc<SharedRx<T>>, usize)> {
        self.joined.get().ok_or(Errno(FI_EOPBADSTATE as i32))
    }
}

impl<T: EndpointTransport> SharedRxEndpoint<T> {
    fn let_go(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.domain.users.release();
        }
    }
}

impl<T: EndpointTransport> Drop for SharedRxEndpoint<T> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl<T: EndpointTransport + 'static> EndpointOps for Arc<SharedRxEndpoint<T>> {
    fn base(&self) -> Arc<dyn EndpointOps> {
        Arc::new(self.clone())
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn lock_state(&self) -> StateGuard<'_> {
        match Guard::try_map(self.before.lock(), |before| Some(&mut before.as_mut()?.0)) {
            Ok(state) => return StateGuard::Open(state),
            // Bound since, so that the context's lock is the one.
            Err(before) => drop(before),
        }
        let shared = self.joined.get();
        let entered = shared.and_then(|(shared, lane)| Some((shared.host.try_enter()?, *lane)));
        let state = entered.map(|(core, lane)| Entered::try_map(core, |core| core.owners.endpoint(lane).ok()));
        StateGuard::of(state.and_then(core::result::Result::ok), self.domain.provider)
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

    /// Counts the sends of all that share the context.
    fn unfinished(&self) -> (usize, usize) {
        self.joined
            .get()
            .and_then(|(shared, _)| shared.host.try_enter())
            .map_or((0, 0), |core| (core.engine.in_flight(), 0))
    }

    fn local_address(&self) -> Vec<u8> {
        let core = self.joined.get().map(|(shared, lane)| (shared.host.try_enter(), *lane));
        match core {
            Some((Some(core), lane)) => core.engine.transport().transport(lane).map(T::local_address),
            Some((None, _)) => None,
            None => self
                .before
                .lock()
                .as_ref()
                .map(|(_, transport)| transport.local_address()),
        }
        .unwrap_or_else(|| self.address.clone())
    }

    fn with_connection(&self, use_it: &mut OnConnection) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        shared.host.with_core(|core| {
            let transport = core.engine.transport_mut().transport_mut(*lane);
            let connection = transport.and_then(T::connection).ok_or(Errno(FI_ENOSYS))?;
            let result = use_it(connection, core.owners.endpoint(*lane)?);
            core.engine.transport().look_at(*lane);
            result
        })
    }

    /// Receives are posted to the shared context, and cancelled there.
    fn cancel(&self, _: OperationOf) -> Result<()> {
        Err(Errno(FI_ENOENT))
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        Some(self.clone())
    }

    fn bind_srx(&self, context: &(dyn Any + Send + Sync)) -> Result<()> {
        let srx: &Arc<SharedRx<T>> = context.downcast_ref().ok_or(Errno(FI_EINVAL))?;
        if !Arc::ptr_eq(&self.domain, &srx.host.domain) {
            return Err(Errno(FI_EINVAL));
        }
        let mut before = self.before.lock();
        let mut core = srx.host.enter()?;
        let (state, transport) = before.take().ok_or(Errno(FI_EINVAL))?;
        srx.users.acquire();
        let lane = core.engine.transport_mut().add(transport);
        let endpoints = &mut core.owners.endpoints;
        match endpoints.get_mut(lane) {
            Some(closed) => *closed = Some(state),
            None => endpoints.push(Some(state)),
        }
        // `before` was still there, so `joined` is empty.
        let _ = self.joined.set((srx.clone(), lane));
        Ok(())
    }

    fn number(&self) -> u64 {
        SHARED_NUMBER
    }

    fn enable(&self) -> Result<()> {
        let Some((shared, lane)) = self.joined.get() else {
            return Err(lacks_srx(self.domain.provider));
        };
        // All that share a context must have one address vector, as the context looks sources up in it.
        let own = self.with_state(|state| state.peers.av());
        let others = shared.with_state(|state| state.peers.av());
        let differ = matches!((&own, &others), (Some(own), Some(others)) if !Arc::ptr_eq(own, others));
        if differ {
            log!(
                by self.domain.provider;
                Warn,
                EpCtrl,
                "fi_enable: the shared receive context has another address vector"
            );
            return Err(Errno(FI_EINVAL));
        }
        // Before the memory is opened: an endpoint that is refused may bind more and try again, but whether peers are
        // counted is settled when its memory is opened.
        let counter = shared.with_state(|state| state.bindings.recv_counter());
        self.with_state(|state| {
            state.check()?;
            state.bindings.count_receives_with(counter);
            Ok(())
        })?;
        let bound =
            |state: &mut EndpointState| (state.settings.is_target, state.bindings.counts_peers(), state.enabled);
        let (target, counted, enabled) = self.with_state(bound);
        if !enabled {
            shared.open_memory(*lane, target, counted);
        }
        self.begin_watch(shared, *lane);
        start(self)?;
        shared.with_state(|state| {
            if let Some(av) = own.filter(|_| !state.peers.is_bound()) {
                state.peers.bind(av.hold());
            }
        });
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        let bindings = self.with_state(|state| state.bindings.for_receives());
        stop(self, || match self.joined.get() {
            Some((shared, lane)) => {
                if let Some(mut core) = shared.host.try_enter() {
                    core.part(*lane, bindings);
                }
                shared.users.release();
            }
            None => drop(self.before.lock().take()),
        });
        self.let_go();
        Ok(())
    }
}

impl<T: EndpointTransport> EndpointCore<Sharers<T>> {
    /// fi_close of a lane's endpoint. `bindings`: what hears of the receives that it was filling.
    fn part(&mut self, lane: usize, bindings: Bindings) {
        self.abandon(lane);
        self.engine.transport_mut().close(lane);
        let closed = self.owners.endpoints.get_mut(lane).and_then(Option::take);
        self.owners.parting = closed.map(|state| EndpointState { bindings, ..state });
        if let Some(mark) = self.owners.marks.get_mut(lane) {
            *mark = None;
        }
        self.progress();
        self.owners.parting = None;
        // The lane's peers are gone, so nothing touches the collectives' memory any more.
        let _ = self.runner.forget(lane);
        if self.owners.endpoints.iter().all(Option::is_none) {
            self.owners.state.peers = Default::default(); // lets the address vector go
        }
    }
}

impl<T: EndpointTransport + 'static> SharedRxEndpoint<T> {
    /// Asks the lane's transport whether it says itself when there is something to do. The thread of FI_PROGRESS_AUTO
    /// polls all lanes.
    fn begin_watch(&self, shared: &SharedRx<T>, lane: usize) {
        if self.domain.driver.is_some() || self.watch.get().is_some() {
            return;
        }
        let Some(mut core) = shared.host.try_enter() else {
            return;
        };
        let transport = core.engine.transport_mut().transport_mut(lane);
        let Some(watch) = transport.and_then(watch_of) else {
            return;
        };
        core.engine.transport_mut().watch(lane, &watch.mark);
        let marks = &mut core.owners.marks;
        if marks.len() <= lane {
            marks.resize(lane + 1, None);
        }
        if let Some(place) = marks.get_mut(lane) {
            *place = Some(watch.mark.clone());
        }
        let _ = self.watch.set(watch);
    }

    /// Runs `begin`, which gives the shared engine an operation on this endpoint's lane.
    fn begin(
        &self,
        begin: impl FnOnce(&mut EndpointCore<Sharers<T>>, usize) -> Result<core::result::Result<(), Refused>, NotBegun>,
    ) -> Result<(), NotBegun> {
        let (shared, lane) = self.shared_rx()?;
        let mut core = shared.host.enter()?;
        let result = begin(&mut core, *lane)?;
        if let Some(watch) = self.watch.get().filter(|_| core.has_work()) {
            watch.mark.set();
        }
        shared.host.finish(core, result)
    }
}

impl<T: EndpointTransport + 'static> Rma for SharedRxEndpoint<T> {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        self.begin(|core, lane| {
            let lanes = core.engine.transport_mut();
            let state = core.owners.endpoint(lane)?;
            let rma = state.rma_op::<T>(call, |address| lanes.peer_by(lane, address))?;
            let (engine, mut reporter) = core.parts();
            Ok(engine.rma(&rma, &mut reporter))
        })
    }
}

impl<T: EndpointTransport + 'static> Atomics for SharedRxEndpoint<T> {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        self.begin(|core, lane| {
            let lanes = core.engine.transport_mut();
            let state = core.owners.endpoint(lane)?;
            let atomic = state.atomic_op::<T>(call, |address| lanes.peer_by(lane, address))?;
            let (engine, mut reporter) = core.parts();
            Ok(engine.atomic(&atomic, &mut reporter))
        })
    }
}

impl<T: EndpointTransport + 'static> Messaging for SharedRxEndpoint<T> {
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        self.begin(|core, lane| {
            let lanes = core.engine.transport_mut();
            let state = core.owners.endpoint(lane)?;
            let send = state.send_op::<T>(call, body, |address| lanes.peer_by(lane, address))?;
            let (engine, mut reporter) = core.parts();
            Ok(engine.send(&send, &mut reporter))
        })
    }

    fn recv(&self, _: &RecvCall, _: &UserIov) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

impl<T: EndpointTransport + 'static> Progress for SharedRxEndpoint<T> {
    fn settle(&self) {
        if let Some((shared, _)) = self.joined.get() {
            shared.host.settle();
        }
    }

    fn progress(&self) {
        if let Some((shared, lane)) = self.joined.get() {
            shared.host.progress_after(|lanes| {
                if self.watch.get().is_some() {
                    lanes.look_at(*lane);
                }
            });
        }
    }

    fn arm(&self) -> bool {
        self.arm_for_readers(&self.domain)
    }

    fn unfinished(&self) -> bool {
        self.joined.get().is_some_and(|(shared, _)| shared.host.must_watch())
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.fd_for_readers(&self.domain)
    }

    fn watch(&self) -> Option<Watch> {
        self.watch.get().cloned()
    }

    /// What remains to be done may be another lane's: whoever reads next shall do it.
    fn turn(&self) -> bool {
        let Some((shared, lane)) = self.joined.get() else {
            return false;
        };
        let again = shared.host.turn_after(|lanes| lanes.look_at(*lane));
        if again {
            if let Some(core) = shared.host.try_enter() {
                core.owners.mark_all();
            }
        }
        again
    }
}

impl<T: EndpointTransport + 'static> Sleeper for SharedRxEndpoint<T> {
    fn arm_self(&self) -> bool {
        let Some((shared, lane)) = self.joined.get() else {
            return false;
        };
        // A closed lane never has work, so its sleeper may sleep.
        shared.host.arm(|lanes| lanes.transport_mut(*lane).is_none_or(T::arm))
    }

    fn own_fd(&self) -> Option<RawFd> {
        let (shared, lane) = self.joined.get()?;
        shared.host.try_enter()?.engine.transport().wake_fd(*lane)
    }
}
