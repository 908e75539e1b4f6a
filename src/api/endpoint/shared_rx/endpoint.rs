//! Endpoints that share a receive context: each has a name, queues and a lane of its own, and the engine of the `shared_rx`.
//!
//! Until it is bound to the context an endpoint only has what it was given; from then on every call goes to the shared, under
//! its lock, with the lane's number. Knows nothing of matching. Made by the provider, as other endpoints are.

use super::{Begun, Core, SHARED_NUMBER, SharedEngine, SharedRx};
use crate::abi::types::*;
use crate::api::collective::Collectives;
use crate::api::domain::{Domain, unused};
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::ops::{ByThread, EndpointOps, Sleeper, start, stop};
use crate::api::endpoint::state::{EndpointState, PendingCompletions, refused};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::messaging::{Messaging, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::engine::op::Context;
use crate::util::lock::OptLock;
use crate::util::user::UserIov;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::RawFd;
use std::sync::{Arc, OnceLock};

/// An endpoint that shares its receives, once it is bound to the context that it shares.
pub struct SharedRxEndpoint<T: EndpointTransport> {
    pub(in crate::api::endpoint) domain: Arc<Domain>,
    address: Vec<u8>,
    before: OptLock<Option<(EndpointState, T)>>,
    /// The context and the lane there.
    joined: OnceLock<(Arc<SharedRx<T>>, usize)>,
    closed: AtomicBool,
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
    type Transport = T;
    type Base = Self;

    fn base(&self) -> &Self {
        self
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R {
        let mut before = self.before.lock();
        match (&mut *before, self.joined.get()) {
            (Some((state, _)), _) => use_it(state),
            (None, Some((shared, lane))) => {
                drop(before);
                let mut core = shared.core.enter();
                let members = core.as_mut().map(|core| &mut core.members);
                match members.and_then(|members| members.get_mut(*lane)) {
                    Some(Some(state)) => use_it(state),
                    _ => use_it(&mut EndpointState::new(self.domain.provider, &Info::default())), // closed; nobody calls then
                }
            }
            (None, None) => use_it(&mut EndpointState::new(self.domain.provider, &Info::default())),
        }
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        Arc::new(ByThread(self.clone()))
    }

    /// All sends of those that share are counted.
    fn unfinished(&self) -> (usize, usize) {
        self.joined
            .get()
            .and_then(|(shared, _)| shared.core.enter())
            .map_or((0, 0), |core| (core.engine.sending(), 0))
    }

    fn local_address(&self) -> Vec<u8> {
        self.address.clone()
    }

    /// Receives are posted to the context, and cancelled there.
    fn cancel(&self, _: Context) -> Result<()> {
        Err(Errno(FI_ENOENT))
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        Some(self.clone())
    }

    fn bind_srx(&self, srx: &Arc<SharedRx<T>>) -> Result<()> {
        if !Arc::ptr_eq(&self.domain, &srx.domain) {
            return Err(Errno(FI_EINVAL));
        }
        let mut before = self.before.lock();
        let mut core = srx.enter()?;
        let (state, transport) = before.take().ok_or(Errno(FI_EINVAL))?;
        srx.users.acquire();
        let lane = core.engine.transport_mut().add(transport);
        core.members.push(Some(state));
        // `before` was there, so nobody has joined.
        let _ = self.joined.set((srx.clone(), lane));
        Ok(())
    }

    fn number(&self) -> u64 {
        SHARED_NUMBER
    }

    fn enable(&self) -> Result<()> {
        let Some((shared, lane)) = self.joined.get() else {
            log!(by self.domain.provider; Warn, EpCtrl, "fi_enable: no shared receive context is bound");
            return Err(Errno(FI_EOPBADSTATE as i32));
        };
        // All endpoints that share have one address vector, by which the context knows sources too.
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
        // First: who is refused may bind more and try again, and what was shown once is not shown otherwise.
        self.with_state(|state| state.check())?;
        let bound =
            |state: &mut EndpointState| (state.settings.is_target, state.bindings.counts_peers(), state.enabled);
        let (target, counted, enabled) = self.with_state(bound);
        if !enabled {
            shared.open_memory(*lane, target, counted);
        }
        start(self)?;
        let selective = self.with_state(|state| state.bindings.rx_selective());
        let mut core = shared.enter()?;
        core.state.settings.rx_selective |= selective;
        if let Some(av) = own.filter(|_| !core.state.peers.is_bound()) {
            core.state.peers.bind(av.hold());
        }
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        stop(self);
        match self.joined.get() {
            Some((shared, lane)) => {
                if let Some(mut core) = shared.core.enter() {
                    core.part(*lane);
                }
                shared.users.release();
            }
            None => drop(self.before.lock().take()),
        }
        self.let_go();
        Ok(())
    }
}

impl<T: EndpointTransport> Core<T> {
    /// The endpoint of a lane is closed.
    fn part(&mut self, lane: usize) {
        self.abandon(lane);
        self.engine.transport_mut().close(lane);
        if let Some(state) = self.members.get_mut(lane) {
            *state = None;
        }
        self.progress();
        // The lane's peers are gone, and with them whatever touched its memory.
        let _ = self.runner.forget(lane);
        if self.members.iter().all(Option::is_none) {
            self.state.peers = Default::default(); // lets the address vector go
        }
    }
}

impl<T: EndpointTransport + 'static> SharedRxEndpoint<T> {
    /// Begins something on the shared engine: `begin` is told of the lane, and gets this endpoint's state.
    fn begin(
        &self,
        begin: impl FnOnce(&mut EndpointState, usize, &mut SharedEngine<T>, &mut PendingCompletions) -> Result<Begun>,
    ) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        let mut guard = shared.enter()?;
        let core = &mut *guard;
        let state = core.members.get_mut(*lane).and_then(Option::as_mut);
        let state = state.ok_or(Errno(FI_EOPBADSTATE as i32))?;
        let result = begin(state, *lane, &mut core.engine, &mut core.pending)?;
        core.report();
        core.begun(self.domain.driver.as_ref());
        drop(guard);
        self.domain.deferred.run();
        result.map_err(refused)
    }
}

impl<T: EndpointTransport + 'static> Rma for SharedRxEndpoint<T> {
    fn rma(&self, call: &RmaCall) -> Result<()> {
        self.begin(|state, lane, engine, pending| {
            let lanes = engine.transport_mut();
            let rma = state.rma_op::<T>(call, |address| lanes.peer_by(lane, address))?;
            Ok(engine.rma(&rma, pending))
        })
    }
}

impl<T: EndpointTransport + 'static> Atomics for SharedRxEndpoint<T> {
    fn atomic(&self, call: &AtomicCall) -> Result<()> {
        self.begin(|state, lane, engine, pending| {
            let lanes = engine.transport_mut();
            let atomic = state.atomic_op::<T>(call, |address| lanes.peer_by(lane, address))?;
            Ok(engine.atomic(&atomic, pending))
        })
    }
}

impl<T: EndpointTransport + 'static> Messaging for SharedRxEndpoint<T> {
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<()> {
        self.begin(|state, lane, engine, pending| {
            let lanes = engine.transport_mut();
            let send = state.send_op::<T>(call, body, |address| lanes.peer_by(lane, address))?;
            Ok(engine.send(&send, pending))
        })
    }

    fn recv(&self, _: &RecvCall, _: &UserIov) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

impl<T: EndpointTransport + 'static> Progress for SharedRxEndpoint<T> {
    fn settle(&self) {
        if let Some((shared, _)) = self.joined.get() {
            shared.core.pass();
        }
    }

    fn progress(&self) {
        if let Some((shared, _)) = self.joined.get() {
            shared.progress();
        }
    }

    fn arm(&self) -> bool {
        self.domain.driver.is_some() || self.arm_self()
    }

    fn unfinished(&self) -> bool {
        let Some((shared, _)) = self.joined.get() else {
            return false;
        };
        let Some(mut core) = shared.core.enter() else {
            return false;
        };
        let unfinished = core.unfinished();
        core.deep_sleep = !unfinished;
        unfinished
    }

    fn wake_fd(&self) -> Option<RawFd> {
        match self.domain.driver {
            Some(_) => None,
            None => self.own_fd(),
        }
    }
}

impl<T: EndpointTransport + 'static> Sleeper for SharedRxEndpoint<T> {
    fn arm_self(&self) -> bool {
        let Some((shared, lane)) = self.joined.get() else {
            return false;
        };
        let Some(mut core) = shared.core.enter() else {
            return true; // it will never have news
        };
        let core = &mut *core;
        let settled = core.engine.may_sleep(&mut core.pending);
        core.report();
        // Nor will a lane that is closed.
        let armed = core.engine.transport_mut().transport_mut(*lane).is_none_or(T::arm);
        armed && settled && !core.engine.has_work() && !self.domain.deferred.is_due()
    }

    fn own_fd(&self) -> Option<RawFd> {
        let (shared, lane) = self.joined.get()?;
        shared.core.enter()?.engine.transport().wake_fd(*lane)
    }
}
