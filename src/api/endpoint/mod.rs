//! Endpoints: an engine, the transport under it, and the queues, counters and addresses it is bound to.
//!
//! Provider-independent: `T` is the transport, everything else is here once. An endpoint is bound, then enabled, then
//! used; reading a queue it is bound to drives it. Called by `abi::object`.

pub mod alias;
mod bindings;
mod collective;
mod lanes;
mod managed;
mod peers;
pub mod pool;
pub mod scalable;
mod side;
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
use crate::engine::op::{Completion, Context, Error, MessageKind, RemotePart, Report};
use crate::engine::port::{PeerId, Transport};
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use collective::contexts::Listener;
use managed::{ByThread, Sleeper};
use side::{Told, refused};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Arc;

pub use bindings::errno;
pub use managed::Managed;
pub use side::Side;

/// What an endpoint asks of its transport besides carrying packets.
pub trait Wire: Transport + core::marker::Send {
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

pub struct Endpoint<T: Wire> {
    pub domain: Arc<Domain>,
    deferred: Arc<Deferred>,
    /// Closed with the endpoint, which other threads may still have references to.
    core: Closable<Core<T>>,
}

struct Core<T: Wire> {
    engine: Engine<T>,
    side: Side,
    /// Somebody sleeps who was told that nothing is unfinished.
    deep: bool,
    /// After the engine, which may still use its memory: fields go in this order.
    runner: Runner,
    /// Contexts whose collectives it carries, by their owner there.
    listeners: HashMap<usize, Listener>,
    /// What fi_setname gave it.
    name: Option<Vec<u8>>,
    /// Ends that the engine has told of and the queues have not; empty between calls, kept for its memory.
    ended: Told,
}

impl<T: Wire + 'static> Endpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<Endpoint<T>> {
        Endpoint::with_lock(domain, info, transport, domain.locked)
    }

    /// `locked`: whether calls may meet in it.
    fn with_lock(domain: &Arc<Domain>, info: &Info, transport: T, locked: bool) -> Arc<Endpoint<T>> {
        domain.users.take();
        Arc::new(Endpoint {
            domain: domain.clone(),
            deferred: domain.deferred.clone(),
            core: Closable::new(Core::new(domain.provider, info, transport), locked),
        })
    }
}

impl<T: Wire> Endpoint<T> {
    /// Everything that the endpoint has, for a call. An application does not call what it has closed.
    #[inline(always)]
    fn enter(&self) -> Result<Entered<'_, Core<T>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// Ends the transport and all that is unfinished, and lets go of the address vector and the domain.
    fn end(&self) {
        if self.core.close() {
            self.domain.users.give();
        }
    }

    /// Begins anew, after `end`.
    fn renew(&self, info: &Info, transport: T) {
        self.domain.users.take();
        let core = Core::new(self.domain.provider, info, transport);
        if self.core.reopen(core).is_err() {
            self.domain.users.give();
        }
    }
}

impl<T: Wire + 'static> Managed for Arc<Endpoint<T>> {
    type Wire = T;
    type Base = Self;

    fn base(&self) -> &Self {
        self
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn side<R>(&self, use_it: impl FnOnce(&mut Side) -> R) -> R {
        match self.core.enter() {
            Some(mut core) => use_it(&mut core.side),
            None => use_it(&mut Side::new(self.domain.provider, &Info::default())), // closed; nobody calls then
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
        if core.side.enabled {
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
        self.side(|side| side.check())?;
        self.open_memory(self.number());
        managed::start(self)
    }

    fn close(&self) -> Result<()> {
        self.side(|side| unused(&side.aliases))?;
        if self.side(|side| side.hub) {
            return self.close_to_application();
        }
        managed::stop(self);
        self.end();
        Ok(())
    }

    fn cancel(&self, context: Context) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let found = core.engine.cancel(context, &mut core.ended);
        core.tell();
        drop(guard);
        self.deferred.run();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }
}

impl<T: Wire + 'static> Endpoint<T> {
    /// Lets peers at the domain's memory, if the endpoint was asked to be a target of theirs.
    fn open_memory(&self, number: u64) {
        let Some(mut guard) = self.core.enter() else { return };
        let core = &mut *guard;
        if core.side.settings.is_target && !core.side.enabled {
            let counted = core.side.bindings.counts_peers();
            core.engine
                .expose_regions(self.domain.memory.regions.clone(), number, counted);
        }
    }
}

impl<T: Wire> Endpoint<T> {
    /// An operation was begun, and somebody sleeps who may have to end it: the thread of FI_PROGRESS_AUTO, or a caller.
    /// From now on he must look at the peers now and then.
    #[cold]
    fn begun(&self, core: &mut Core<T>) {
        if !core.unfinished() {
            return;
        }
        core.deep = false;
        match &self.domain.driver {
            Some(driver) => driver.watch(),
            None => core.engine.transport().wake(),
        }
    }
}

impl<T: Wire> Drop for Endpoint<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells ends to queues and counters as the engine reports them. One whose source must be looked up waits in `ended`
/// until the engine has returned, and those after it too.
struct Teller<'a> {
    side: &'a mut Side,
    ended: &'a mut Told,
}

impl Report for Teller<'_> {
    #[inline(always)]
    fn report(&mut self, end: Completion) {
        match self.side.known_source(&end) {
            Some(source) if self.ended.ends.is_empty() => self.side.bindings.tell(&end, source),
            _ => self.wait(end),
        }
    }

    #[cold]
    fn met(&mut self) {
        self.ended.met();
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        self.ended.refused(from, part, error);
    }
}

impl Teller<'_> {
    #[cold]
    fn wait(&mut self, end: Completion) {
        self.ended.ends.push(end);
    }
}

impl<T: Wire> Core<T> {
    fn new(provider: Speaker, info: &Info, transport: T) -> Core<T> {
        Core {
            engine: Engine::with(transport, side::engine_config(info)),
            side: Side::new(provider, info),
            deep: false,
            runner: Runner::default(),
            listeners: HashMap::new(),
            name: None,
            ended: Told::default(),
        }
    }

    /// Whether something waits for a peer.
    fn unfinished(&self) -> bool {
        self.engine.unfinished() || self.runner.is_stalled()
    }

    /// The engine, and whom it reports to.
    #[inline]
    fn parts(&mut self) -> (&mut Engine<T>, Teller<'_>) {
        let (side, ended) = (&mut self.side, &mut self.ended);
        (&mut self.engine, Teller { side, ended })
    }

    /// Passes on what the engine has told, with sources as the application knows them.
    #[inline]
    fn tell(&mut self) {
        if !self.ended.ends.is_empty() {
            self.tell_ended();
        }
        if self.runner.is_ready() {
            self.tell_collectives();
        }
    }

    #[cold]
    fn tell_ended(&mut self) {
        let transport = self.engine.transport();
        for completion in self.ended.ends.drain(..) {
            if completion.kind == MessageKind::Collective {
                self.runner.ended(&completion);
            } else {
                self.side.tell::<T>(&completion, |peer| transport.address_of(peer));
            }
        }
    }

    /// Lets go of peers that are gone and that nobody means to meet again.
    #[cold]
    fn forget_peers(&mut self) {
        let (known, runner) = (self.side.peers.held(), &self.runner);
        let gone = self
            .engine
            .forget_peers(|peer| known.contains(&peer) || runner.names(peer));
        self.side.peers.reuse(&gone);
    }
}

impl<T: Wire> Core<T> {
    #[cold]
    fn audit(&mut self) {
        let transport = self.engine.transport();
        for refusal in self.ended.refusals.drain(..) {
            refusal.log(self.side.provider, transport.address_of(refusal.from));
        }
        self.ended.seldom = false;
        if transport.is_crowded() {
            self.forget_peers();
        }
    }
}

impl<T: Wire> Messaging for Endpoint<T> {
    // Into each shim, so that a call is taken apart in registers: what is written in words and then copied in vectors
    // stalls the processor.
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let send = core.side.outgoing::<T>(call, body, |address| transport.peer(address))?;
        let (engine, mut teller) = core.parts();
        let result = engine.send(&send, &mut teller);
        core.tell();
        if core.deep || core.side.driven.is_some() {
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
        let (recv, look) = core.side.incoming::<T>(call, body, |address| transport.peer(address))?;
        let result = match look {
            None => {
                let (engine, mut teller) = core.parts();
                engine.recv(&recv, &mut teller)
            }
            Some(look) => core.engine.peek(look, &recv, &mut core.ended),
        };
        core.tell();
        if core.deep || core.side.driven.is_some() {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: Wire> Rma for Endpoint<T> {
    #[inline(always)]
    fn rma(&self, call: &RmaCall) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let rma = core.side.reaching::<T>(call, |address| transport.peer(address))?;
        let (engine, mut teller) = core.parts();
        let done = engine.try_direct_rma(&rma, &mut teller);
        let result = if done {
            Ok(())
        } else {
            engine.start_rma(&rma, &mut teller)
        };
        // What is done at once may be deferred work, whose end starts the next.
        core.tell();
        if !done && (core.deep || core.side.driven.is_some()) {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: Wire> Atomics for Endpoint<T> {
    #[inline(always)]
    fn atomic(&self, call: &AtomicCall) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = core.engine.transport_mut();
        let atomic = core.side.operating::<T>(call, |address| transport.peer(address))?;
        let (engine, mut teller) = core.parts();
        let done = engine.try_direct_atomic(&atomic, &mut teller);
        let result = if done {
            Ok(())
        } else {
            engine.start_atomic(&atomic, &mut teller)
        };
        // What is done at once may be deferred work, whose end starts the next.
        core.tell();
        if !done && (core.deep || core.side.driven.is_some()) {
            self.begun(core);
        }
        drop(guard);
        self.deferred.run();
        result.map_err(refused)
    }
}

impl<T: Wire> Progress for Endpoint<T> {
    fn settle(&self) {
        self.core.pass();
    }

    #[inline]
    fn progress(&self) {
        let Some(mut guard) = self.core.poll() else { return };
        let core = &mut *guard;
        let (engine, mut teller) = core.parts();
        engine.progress(&mut teller);
        core.runner.retry();
        core.tell();
        if core.ended.seldom {
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
        core.deep = !unfinished;
        unfinished
    }

    fn wake_fd(&self) -> Option<RawFd> {
        match self.domain.driver {
            Some(_) => None,
            None => self.own_fd(),
        }
    }
}

impl<T: Wire> Sleeper for Endpoint<T> {
    fn arm_self(&self) -> bool {
        let Some(mut entered) = self.core.enter() else {
            return true; // it will never have news
        };
        let core = &mut *entered;
        let (engine, mut teller) = core.parts();
        let settled = engine.may_sleep(&mut teller);
        core.tell();
        core.engine.transport_mut().arm() && settled && !core.engine.has_work() && !self.deferred.is_due()
    }

    fn own_fd(&self) -> Option<RawFd> {
        self.core.enter()?.engine.transport().wake_fd()
    }
}
