//! Shared receive contexts: one set of posted receives that several endpoints take their messages to.
//!
//! The endpoints share one engine over a lane for each (`lanes`), so matching is exact across all of them and an
//! endpoint that shares nothing pays nothing. The price is one lock for all that share. A message's end is told to the
//! queues of the endpoint it was sent to; what belongs to no endpoint (a cancelled receive, a look that finds nothing)
//! to the context's own queue if it has one, else to the first endpoint's.

mod endpoint;

use super::EndpointTransport;
use super::lanes::Lanes;
use super::ops::{EndpointOps, stop};
use super::state::{EndpointState, PendingCompletions, refused};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::collective::run::Runner;
use crate::api::cq::Cq;
use crate::api::domain::{Domain, unused};
use crate::api::driver::Driver;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, RxAttr};
use crate::api::messaging::{Messaging, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Context, Kind, Refused};
use crate::engine::port::{Limits, PeerId, Transport};
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use std::collections::HashSet;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use endpoint::SharedRxEndpoint;

/// The number that regions know all by who share a context, as they are one engine: a region that is bound to one of them
/// is reached through the others too.
const SHARED_NUMBER: u64 = 0;

/// A shared receive context.
pub struct SharedRx<T: EndpointTransport> {
    domain: Arc<Domain>,
    /// Endpoints bound to it.
    users: Refs,
    pub(super) core: Closable<Core<T>>,
}

type SharedEngine<T> = Engine<Lanes<T>>;

/// What an engine says of an operation that it was given.
type Begun = core::result::Result<(), Refused>;

pub struct Core<T: EndpointTransport> {
    pub(super) engine: SharedEngine<T>,
    /// The context's own.
    state: EndpointState,
    /// By lane; None: closed.
    pub(super) members: Vec<Option<EndpointState>>,
    /// Somebody sleeps who was told that nothing is unfinished.
    deep_sleep: bool,
    /// One of the members is a target for peers; somebody counts what they do.
    target: bool,
    counted: bool,
    /// After the engine, which may still use its memory. Owners are lanes.
    pub(super) runner: Runner,
    /// Empty between calls, kept for its memory.
    pub(super) pending: PendingCompletions,
}

impl<T: EndpointTransport + 'static> SharedRx<T> {
    pub fn open(domain: &Arc<Domain>, caps: u64, rx: &RxAttr, limits: Limits) -> Arc<SharedRx<T>> {
        domain.users.acquire();
        let info = Info {
            caps: caps & !FI_SEND | FI_RECV,
            rx: Some(rx.clone()),
            ..Info::default()
        };
        let mut state = EndpointState::new(domain.provider, &info);
        state.enabled = true;
        state.deferred = Some(domain.deferred.clone());
        let core = Core {
            engine: Engine::new(Lanes::new(limits)),
            state,
            members: Vec::new(),
            deep_sleep: false,
            target: false,
            counted: false,
            runner: Runner::default(),
            pending: PendingCompletions::default(),
        };
        Arc::new(SharedRx {
            domain: domain.clone(),
            users: Refs::default(),
            core: Closable::new(core, domain.crossed),
        })
    }
}

impl<T: EndpointTransport> SharedRx<T> {
    /// Lets peers of all who share it at the domain's memory, if one of them is to be a target; those who meet it on this
    /// lane by themselves, unless what they do is counted.
    fn open_memory(&self, lane: usize, target: bool, counted: bool) {
        let Some(mut core) = self.core.enter() else { return };
        core.target |= target;
        core.counted |= counted;
        let (any_counted, regions) = (core.counted, &self.domain.memory.regions);
        if core.target {
            core.engine.open(regions.clone(), SHARED_NUMBER, any_counted);
        }
        if target && !counted {
            core.engine.transport_mut().show_by(lane, regions, SHARED_NUMBER);
        }
    }
}

impl<T: EndpointTransport> SharedRx<T> {
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_, Core<T>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// Drives all who share it. False: it is closed, or another thread is at it.
    fn drive(&self) -> bool {
        self.core.poll().map(|mut core| core.progress()).is_some()
    }

    /// Ends all that is unfinished, and lets go of the address vector and the domain.
    fn end(&self) {
        if self.core.close() {
            self.domain.users.release();
        }
    }
}

impl<T: EndpointTransport> Drop for SharedRx<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: EndpointTransport> Core<T> {
    pub(super) fn report(&mut self) {
        if !self.pending.completions.is_empty() {
            self.report_pending();
        }
        if self.runner.is_ready() {
            self.report_collectives();
        }
    }

    pub(super) fn report_pending(&mut self) {
        let lanes = self.engine.transport();
        for end in self.pending.completions.drain(..) {
            if end.kind == Kind::Collective {
                self.runner.ended(&end);
                continue;
            }
            let lane = end.source.map(|peer| lanes.lane_of(peer));
            let state = match lane {
                Some(Some(lane)) => self.members.get_mut(lane).and_then(Option::as_mut),
                Some(None) | None if self.state.bindings.hears_receives() => Some(&mut self.state),
                Some(None) | None => self.members.iter_mut().flatten().next(),
            };
            if let Some(state) = state {
                state.report::<T>(&end, |peer| lanes.address_of(peer));
            }
        }
    }

    /// Lets go of peers that are gone and that nobody means to meet again.
    #[cold]
    fn forget_peers(&mut self) {
        let states = self.members.iter_mut().flatten().chain([&mut self.state]);
        let known: HashSet<PeerId> = states.flat_map(|state| state.peers.held()).collect();
        let runner = &self.runner;
        let gone = self
            .engine
            .forget_peers(|peer| known.contains(&peer) || runner.names(peer));
        for state in self.members.iter_mut().flatten().chain([&mut self.state]) {
            state.peers.reuse(&gone);
        }
    }

    fn progress(&mut self) {
        self.engine.progress(&mut self.pending);
        self.runner.retry();
        self.report();
        let lanes = self.engine.transport();
        for refusal in self.pending.refusals.drain(..) {
            refusal.log(self.state.provider, lanes.address_of(refusal.from));
        }
        if std::mem::take(&mut self.pending.has_rare) && lanes.is_crowded() {
            self.forget_peers();
        }
    }

    /// Whether something waits for a peer.
    fn unfinished(&self) -> bool {
        self.engine.unfinished() || self.runner.is_stalled()
    }

    /// An operation was begun, and somebody sleeps who may have to end it: see `Endpoint`.
    pub(super) fn begun(&mut self, driver: Option<&Driver>) {
        if !(self.deep_sleep || driver.is_some()) || !self.unfinished() {
            return;
        }
        self.deep_sleep = false;
        match driver {
            Some(driver) => driver.watch(),
            None => self.engine.transport().wake(),
        }
    }
}

impl<T: EndpointTransport + 'static> EndpointOps for Arc<SharedRx<T>> {
    type Transport = T;
    type Base = Self;

    fn base(&self) -> &Self {
        self
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R {
        match self.core.enter() {
            Some(mut core) => use_it(&mut core.state),
            None => use_it(&mut EndpointState::new(self.domain.provider, &Info::default())), // closed; nobody calls then
        }
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn unfinished(&self) -> (usize, usize) {
        (0, self.core.enter().map_or(0, |core| core.engine.posted()))
    }

    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    /// It works from the beginning.
    fn enable(&self) -> Result<()> {
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let found = core.engine.cancel(context, &mut core.pending);
        core.report();
        drop(guard);
        self.domain.deferred.run();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }

    /// Programs may bind a queue, though nothing is told to it but what belongs to no endpoint.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.with_state(|state| state.bindings.bind_cq(cq, flags))
    }

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.with_state(|state| state.bind_av(av))
    }

    fn close(&self) -> Result<()> {
        unused(&self.users)?;
        self.with_state(|state| unused(&state.aliases))?;
        stop(self);
        self.end();
        Ok(())
    }
}

impl<T: EndpointTransport> Messaging for SharedRx<T> {
    fn send(&self, _: &SendCall, _: &UserIov) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let lanes = core.engine.transport_mut();
        let (recv, look) = core.state.recv_op::<T>(call, body, |address| lanes.peer(address))?;
        let result = match look {
            None => core.engine.recv(&recv, &mut core.pending),
            Some(look) => core.engine.look(look, &recv, &mut core.pending),
        };
        core.report();
        core.begun(self.domain.driver.as_ref());
        drop(guard);
        self.domain.deferred.run();
        result.map_err(refused)
    }
}

impl<T: EndpointTransport> Rma for SharedRx<T> {
    fn rma(&self, _: &RmaCall) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

impl<T: EndpointTransport> Atomics for SharedRx<T> {
    fn atomic(&self, _: &AtomicCall) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

impl<T: EndpointTransport> Progress for SharedRx<T> {
    fn progress(&self) {
        if self.drive() {
            self.domain.deferred.run();
        }
    }

    /// Nobody can wake who sleeps on the context's own queue.
    fn arm(&self) -> bool {
        self.core.is_closed()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}
