//! Endpoints: an engine, the transport under it, and the queues, counters and addresses it is bound to.
//!
//! Provider-independent: `T` is the transport, everything else is here once. An endpoint is bound, then enabled, then
//! used; reading a queue it is bound to drives it. Called by `abi::object`.

pub mod alias;
mod bindings;
mod collective;
mod lanes;
mod ops;
mod peers;
pub mod scalable;
pub mod shared_rx;
mod state;
pub mod stx;

use super::collective::Collectives;
use super::collective::run::Runner;
use super::deferred::Deferred;
use super::domain::{Domain, unused};
use super::errno::{Errno, Result};
use super::info::model::Info;
use super::log::Speaker;
use super::messaging::{Messaging, RecvCall, SendCall};
use super::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use super::progress::Progress;
use crate::abi::types::*;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Completion, Context, Error, Kind, RemotePart, Report};
use crate::engine::port::{PeerId, Transport};
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use collective::contexts::Listener;
use ops::{ByThread, Sleeper};
use state::{PendingCompletions, refused};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use bindings::errno;
pub use ops::EndpointOps;
pub use state::EndpointState;

/// What an endpoint asks of its transport besides carrying packets.
pub trait EndpointTransport: Transport + core::marker::Send {
    /// The address of this end, as peers name it.
    fn local_address(&self) -> Vec<u8>;
    /// Another end in place of this one, with an address that the application chose; None: it is this one's.
    fn renamed(&self, address: &[u8]) -> Result<Option<Self>>
    where
        Self: Sized;
    /// The address behind a number.
    fn address_of(&self, peer: PeerId) -> Option<&[u8]>;
    /// The address of a context of the endpoint with this address; context 0 has the endpoint's own.
    fn context_address(address: &[u8], index: usize) -> Vec<u8>;
    /// The address that another is a context of; else itself.
    fn base_address(address: &[u8]) -> &[u8];
    /// The same in the form that fi_av_insert takes.
    fn raw_address(address: &[u8]) -> Vec<u8>;
    /// Announces that this end goes to sleep, having made `wake_fd` unreadable; false: there is work, but the
    /// announcement stands, since others may sleep.
    fn arm(&mut self) -> bool;
    /// What becomes readable when something has come for a sleeper.
    fn wake_fd(&self) -> Option<RawFd>;
    /// Makes it readable.
    fn wake(&self);
}

pub struct Endpoint<T: EndpointTransport> {
    pub domain: Arc<Domain>,
    deferred: Arc<Deferred>,
    /// Closed with the endpoint, which other threads may still have references to.
    core: Closable<Core<T>>,
}

struct Core<T: EndpointTransport> {
    engine: Engine<T>,
    state: EndpointState,
    /// Somebody sleeps who was told that nothing is unfinished.
    deep_sleep: bool,
    /// After the engine, which may still use its memory: fields go in this order.
    runner: Runner,
    /// Contexts whose collectives it carries, by their owner there.
    listeners: HashMap<usize, Listener>,
    /// What fi_setname gave it.
    name: Option<Vec<u8>>,
    /// Ends that the engine has told of and the queues have not; empty between calls, kept for its memory.
    pending: PendingCompletions,
}

impl<T: EndpointTransport + 'static> Endpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<Endpoint<T>> {
        Endpoint::with_lock(domain, info, transport, domain.locked)
    }

    /// `locked`: whether calls may meet in it.
    fn with_lock(domain: &Arc<Domain>, info: &Info, transport: T, locked: bool) -> Arc<Endpoint<T>> {
        domain.users.acquire();
        Arc::new(Endpoint {
            domain: domain.clone(),
            deferred: domain.deferred.clone(),
            core: Closable::new(Core::new(domain.provider, info, transport), locked),
        })
    }
}

impl<T: EndpointTransport> Endpoint<T> {
    /// Everything that the endpoint has, for a call. An application does not call what it has closed.
    #[inline(always)]
    fn enter(&self) -> Result<Entered<'_, Core<T>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// Ends the transport and all that is unfinished, and lets go of the address vector and the domain.
    fn end(&self) {
        if self.core.close() {
            self.domain.users.release();
        }
    }

    /// Begins anew, after `end`.
    fn renew(&self, info: &Info, transport: T) {
        self.domain.users.acquire();
        let core = Core::new(self.domain.provider, info, transport);
        if self.core.reopen(core).is_err() {
            self.domain.users.release();
        }
    }
}

impl<T: EndpointTransport + 'static> EndpointOps for Arc<Endpoint<T>> {
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
        Arc::new(ByThread(self.clone()))
    }

    fn local_address(&self) -> Vec<u8> {
        self.core.enter().map(|core| core.own_address()).unwrap_or_default()
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        Some(self.clone())
    }

    fn set_address(&self, address: &[u8]) -> Result<()> {
        let mut core = self.enter()?;
        if core.state.enabled {
            log!(by self.domain.provider; Warn, EpCtrl, "fi_setname: the endpoint is enabled already");
            return Err(Errno(FI_EBUSY));
        }
        if address.is_empty() {
            return Ok(());
        }
        if let Some(transport) = core.engine.transport().renamed(address)? {
            *core.engine.transport_mut() = transport;
        }
        core.name = Some([address, &[0]].concat());
        Ok(())
    }

    fn unfinished(&self) -> (usize, usize) {
        let core = self.core.enter();
        core.map_or((0, 0), |core| (core.engine.sending(), core.engine.posted()))
    }

    fn enable(&self) -> Result<()> {
        // First: who is refused may bind more and try again, and what was shown once is not shown otherwise.
        self.with_state(|state| state.check())?;
        self.open_memory(self.number());
        ops::start(self)
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        if self.with_state(|state| state.collective_carrier) {
            return self.close_to_application();
        }
        ops::stop(self);
        self.end();
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let found = core.engine.cancel(context, &mut core.pending);
        core.report();
        drop(guard);
        self.deferred.run();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }
}

impl<T: EndpointTransport + 'static> Endpoint<T> {
    /// Lets peers at the domain's memory, if the endpoint was asked to be a target of theirs.
    fn open_memory(&self, number: u64) {
        let Some(mut guard) = self.core.enter() else { return };
        let core = &mut *guard;
        if core.state.settings.is_target && !core.state.enabled {
            let counted = core.state.bindings.counts_peers();
            core.engine.open(self.domain.memory.regions.clone(), number, counted);
        }
    }
}

impl<T: EndpointTransport> Endpoint<T> {
    /// An operation was begun, and somebody sleeps who may have to end it: the thread of FI_PROGRESS_AUTO, or a caller.
    /// From now on he must look at the peers now and then.
    #[cold]
    fn begun(&self, core: &mut Core<T>) {
        if !core.unfinished() {
            return;
        }
        core.deep_sleep = false;
        match &self.domain.driver {
            Some(driver) => driver.watch(),
            None => core.engine.transport().wake(),
        }
    }
}

impl<T: EndpointTransport> Drop for Endpoint<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells ends to queues and counters as the engine reports them. One whose source must be looked up waits in `ended`
/// until the engine has returned, and those after it too.
struct Reporter<'a> {
    state: &'a mut EndpointState,
    pending: &'a mut PendingCompletions,
}

impl Report for Reporter<'_> {
    #[inline(always)]
    fn report(&mut self, end: Completion) {
        match self.state.known_source(&end) {
            Some(source) if self.pending.completions.is_empty() => self.state.bindings.report(&end, source),
            _ => self.wait(end),
        }
    }

    #[cold]
    fn met(&mut self) {
        self.pending.met();
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        self.pending.refused(from, part, error);
    }
}

impl Reporter<'_> {
    #[cold]
    fn wait(&mut self, end: Completion) {
        self.pending.completions.push(end);
    }
}

impl<T: EndpointTransport> Core<T> {
    fn new(provider: Speaker, info: &Info, transport: T) -> Core<T> {
        Core {
            engine: Engine::with(transport, state::engine_config(info)),
            state: EndpointState::new(provider, info),
            deep_sleep: false,
            runner: Runner::default(),
            listeners: HashMap::new(),
            name: None,
            pending: PendingCompletions::default(),
        }
    }

    /// Whether something waits for a peer.
    fn unfinished(&self) -> bool {
        self.engine.unfinished() || self.runner.is_stalled()
    }

    /// The engine, and whom it reports to.
    #[inline]
    fn parts(&mut self) -> (&mut Engine<T>, Reporter<'_>) {
        let (state, pending) = (&mut self.state, &mut self.pending);
        (&mut self.engine, Reporter { state, pending })
    }

    /// Passes on what the engine has told, with sources as the application knows them.
    #[inline]
    fn report(&mut self) {
        if !self.pending.completions.is_empty() {
            self.report_pending();
        }
        if self.runner.is_ready() {
            self.report_collectives();
        }
    }

    #[cold]
    fn report_pending(&mut self) {
        let transport = self.engine.transport();
        for completion in self.pending.completions.drain(..) {
            if completion.kind == Kind::Collective {
                self.runner.ended(&completion);
            } else {
                self.state.report::<T>(&completion, |peer| transport.address_of(peer));
            }
        }
    }

    /// Lets go of peers that are gone and that nobody means to meet again.
    #[cold]
    fn forget_peers(&mut self) {
        let (known, runner) = (self.state.peers.held(), &self.runner);
        let gone = self
            .engine
            .forget_peers(|peer| known.contains(&peer) || runner.names(peer));
        self.state.peers.reuse(&gone);
    }
}

impl<T: EndpointTransport> Core<T> {
    #[cold]
    fn audit(&mut self) {
        let transport = self.engine.transport();
        for refusal in self.pending.refusals.drain(..) {
            refusal.log(self.state.provider, transport.address_of(refusal.from));
        }
        self.pending.has_rare = false;
        if transport.is_crowded() {
            self.forget_peers();
        }
    }
}

impl<T: EndpointTransport> Messaging for Endpoint<T> {
    // Into each shim, so that a call is taken apart in registers: what is written in words and then copied in vectors
    // stalls the processor.
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let send = core.state.send_op::<T>(call, body, |address| transport.peer(address))?;
        let (engine, mut reporter) = core.parts();
        let result = engine.send(&send, &mut reporter);
        core.report();
        if core.deep_sleep || core.state.driven.is_some() {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }

    #[inline(always)]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let (recv, look) = core.state.recv_op::<T>(call, body, |address| transport.peer(address))?;
        let result = match look {
            None => {
                let (engine, mut reporter) = core.parts();
                engine.recv(&recv, &mut reporter)
            }
            Some(look) => core.engine.look(look, &recv, &mut core.pending),
        };
        core.report();
        if core.deep_sleep || core.state.driven.is_some() {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: EndpointTransport> Rma for Endpoint<T> {
    #[inline(always)]
    fn rma(&self, call: &RmaCall) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let rma = core.state.rma_op::<T>(call, |address| transport.peer(address))?;
        let (engine, mut reporter) = core.parts();
        let done = engine.rma_at_once(&rma, &mut reporter);
        let result = if done {
            Ok(())
        } else {
            engine.rma_begun(&rma, &mut reporter)
        };
        // What is done at once may be deferred work, whose end starts the next.
        core.report();
        if !done && (core.deep_sleep || core.state.driven.is_some()) {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: EndpointTransport> Atomics for Endpoint<T> {
    #[inline(always)]
    fn atomic(&self, call: &AtomicCall) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let atomic = core.state.atomic_op::<T>(call, |address| transport.peer(address))?;
        let (engine, mut reporter) = core.parts();
        let done = engine.atomic_at_once(&atomic, &mut reporter);
        let result = if done {
            Ok(())
        } else {
            engine.atomic_begun(&atomic, &mut reporter)
        };
        // What is done at once may be deferred work, whose end starts the next.
        core.report();
        if !done && (core.deep_sleep || core.state.driven.is_some()) {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: EndpointTransport> Progress for Endpoint<T> {
    fn settle(&self) {
        self.core.pass();
    }

    #[inline]
    fn progress(&self) {
        let Some(mut guard) = self.core.poll() else { return };
        let core = &mut *guard;
        let (engine, mut reporter) = core.parts();
        engine.progress(&mut reporter);
        core.runner.retry();
        core.report();
        if core.pending.has_rare {
            core.audit();
        }
        drop(guard);
        self.deferred.run();
    }

    /// With FI_PROGRESS_AUTO the thread is woken, and wakes whoever waits for what it has done.
    fn arm(&self) -> bool {
        self.domain.driver.is_some() || self.arm_self()
    }

    fn unfinished(&self) -> bool {
        let Some(mut core) = self.core.enter() else {
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

impl<T: EndpointTransport> Sleeper for Endpoint<T> {
    fn arm_self(&self) -> bool {
        let Some(mut entered) = self.core.enter() else {
            return true; // it will never have news
        };
        let core = &mut *entered;
        let (engine, mut reporter) = core.parts();
        let settled = engine.may_sleep(&mut reporter);
        core.report();
        core.engine.transport_mut().arm() && settled && !core.engine.has_work() && !self.deferred.is_due()
    }

    fn own_fd(&self) -> Option<RawFd> {
        self.core.enter()?.engine.transport().wake_fd()
    }
}
