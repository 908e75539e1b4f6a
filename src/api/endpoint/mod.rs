//! Endpoints: an engine, the transport under it, and the queues, counters and addresses it is bound to.
//!
//! Provider-independent: `T` is the transport, everything else is here once. An endpoint is bound, then enabled, then
//! used; reading a queue it is bound to drives it. Called by `abi::object`.

pub mod alias;
mod bindings;
mod lanes;
mod managed;
mod peers;
pub mod pool;
pub mod scalable;
mod side;
pub mod stx;

use super::domain::Domain;
use super::errno::{Errno, Result};
use super::info::model::Info;
use super::messaging::{Messaging, RecvCall, SendCall};
use super::progress::Progress;
use crate::abi::types::*;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Completion, Context, Report};
use crate::engine::port::{PeerId, Transport};
use crate::util::lock::OptLock;
use managed::{ByThread, Sleeper};
use side::refused;
use std::os::fd::RawFd;
use std::sync::Arc;

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
    /// Announces that this end goes to sleep, having made `wake_fd` unreadable; false: there is work, but the
    /// announcement stands, since others may sleep.
    fn arm(&mut self) -> bool;
    /// What becomes readable when something has come for a sleeper.
    fn wake_fd(&self) -> Option<RawFd>;
}

pub struct Endpoint<T: Wire> {
    pub domain: Arc<Domain>,
    core: OptLock<Core<T>>,
}

struct Core<T: Wire> {
    engine: Engine<T>,
    side: Side,
    /// What fi_setname gave it.
    name: Option<Vec<u8>>,
    /// Ends that the engine has told of and the queues have not; empty between calls, kept for its memory.
    ended: Vec<Completion>,
}

impl<T: Wire + 'static> Endpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<Endpoint<T>> {
        domain.users.take();
        let core = Core {
            engine: Engine::new(transport),
            side: Side::new(info),
            name: None,
            ended: Vec::new(),
        };
        Arc::new(Endpoint {
            domain: domain.clone(),
            core: OptLock::new(core, domain.locked),
        })
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
        use_it(&mut self.core.lock().side)
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        Arc::new(ByThread(self.clone()))
    }

    fn local_address(&self) -> Vec<u8> {
        let core = self.core.lock();
        match &core.name {
            Some(name) => name.clone(),
            None => core.engine.transport().local_address(),
        }
    }

    fn set_address(&self, address: &[u8]) -> Result<()> {
        let mut core = self.core.lock();
        if core.side.enabled {
            log!(Warn, EpCtrl, "fi_setname: the endpoint is enabled already");
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
        let core = self.core.lock();
        (core.engine.sending(), core.engine.posted())
    }

    fn cancel(&self, context: Context) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        let found = core.engine.cancel(context, &mut core.ended);
        core.tell();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }
}

impl<T: Wire> Endpoint<T> {
    /// An operation was begun that the thread of FI_PROGRESS_AUTO may have to end.
    #[cold]
    fn begun(&self, core: &Core<T>) {
        if let Some(driver) = self.domain.driver.as_ref().filter(|_| core.engine.unfinished()) {
            driver.watch();
        }
    }
}

impl<T: Wire> Drop for Endpoint<T> {
    fn drop(&mut self) {
        self.domain.users.give();
    }
}

/// Tells ends to queues and counters as the engine reports them. One whose source must be looked up waits in `ended`
/// until the engine has returned, and those after it too.
struct Teller<'a> {
    side: &'a mut Side,
    ended: &'a mut Vec<Completion>,
}

impl Report for Teller<'_> {
    #[inline(always)]
    fn report(&mut self, end: Completion) {
        match self.side.known_source(&end) {
            Some(source) if self.ended.is_empty() => self.side.bindings.tell(&end, source),
            _ => self.wait(end),
        }
    }
}

impl Teller<'_> {
    #[cold]
    fn wait(&mut self, end: Completion) {
        self.ended.push(end);
    }
}

impl<T: Wire> Core<T> {
    /// The engine, and whom it reports to.
    #[inline]
    fn parts(&mut self) -> (&mut Engine<T>, Teller<'_>) {
        let (side, ended) = (&mut self.side, &mut self.ended);
        (&mut self.engine, Teller { side, ended })
    }

    /// Passes on what the engine has told, with sources as the application knows them.
    #[inline]
    fn tell(&mut self) {
        if !self.ended.is_empty() {
            self.tell_all();
        }
    }

    #[cold]
    fn tell_all(&mut self) {
        let transport = self.engine.transport();
        for completion in self.ended.drain(..) {
            self.side.tell::<T>(&completion, |peer| transport.address_of(peer));
        }
    }
}

impl<T: Wire> Messaging for Endpoint<T> {
    // Into each shim, so that a call is taken apart in registers: what is written in words and then copied in vectors
    // stalls the processor.
    #[inline(always)]
    fn send(&self, call: SendCall) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        let transport = core.engine.transport_mut();
        let send = core.side.outgoing::<T>(&call, |address| transport.peer(address))?;
        let (engine, mut teller) = core.parts();
        let result = engine.send(&send, &mut teller);
        core.tell();
        if core.side.driven.is_some() {
            self.begun(core);
        }
        result.map_err(refused)
    }

    #[inline(always)]
    fn recv(&self, call: RecvCall) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        let transport = core.engine.transport_mut();
        let (recv, look) = core.side.incoming::<T>(&call, |address| transport.peer(address))?;
        let result = match look {
            None => {
                let (engine, mut teller) = core.parts();
                engine.recv(&recv, &mut teller)
            }
            Some(look) => core.engine.look(look, &recv, &mut core.ended),
        };
        core.tell();
        if core.side.driven.is_some() {
            self.begun(core);
        }
        result.map_err(refused)
    }
}

impl<T: Wire> Progress for Endpoint<T> {
    #[inline]
    fn progress(&self) {
        let mut core = self.core.lock();
        let core = &mut *core;
        let (engine, mut teller) = core.parts();
        engine.progress(&mut teller);
        core.tell();
    }

    /// With FI_PROGRESS_AUTO the thread is woken, and wakes whoever waits for what it has done.
    fn arm(&self) -> bool {
        self.domain.driver.is_some() || self.arm_self()
    }

    fn unfinished(&self) -> bool {
        self.core.lock().engine.unfinished()
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
        let mut core = self.core.lock();
        core.engine.transport_mut().arm() && !core.engine.has_work()
    }

    fn own_fd(&self) -> Option<RawFd> {
        self.core.lock().engine.transport().wake_fd()
    }
}
