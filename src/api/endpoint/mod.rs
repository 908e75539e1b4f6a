//! Endpoints: an engine, the transport under it, and the queues, counters and addresses it is bound to.
//!
//! Provider-independent: `T` is the transport, everything else is here once. An endpoint is bound, then enabled, then
//! used; reading a queue it is bound to drives it. Called by `abi::object`.

pub mod alias;
mod bindings;
mod peers;

use super::av::Av;
use super::cntr::Cntr;
use super::cq::Cq;
use super::domain::{Domain, unused};
use super::eq::Eq;
use super::errno::{Errno, Result};
use super::info::model::Info;
use super::messaging::{Flags, Messaging, RecvCall, SendCall};
use super::progress::Progress;
use super::refs::Refs;
use crate::abi::types::*;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Completion, Context, Level, Look, Recv, Refused, Send};
use crate::engine::port::{PeerId, Transport};
use crate::util::lock::OptLock;
use bindings::Bindings;
use peers::Peers;
use std::os::fd::RawFd;
use std::sync::Arc;

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
    /// Announces that this end goes to sleep, having made `wake_fd` unreadable; false: there is work, but the
    /// announcement stands, since others may sleep.
    fn arm(&mut self) -> bool;
    /// What becomes readable when something has come for a sleeper.
    fn wake_fd(&self) -> Option<RawFd>;
}

/// What the attributes and options of an endpoint come down to.
#[derive(Clone, Debug)]
struct Settings {
    tx_flags: u64,
    rx_flags: u64,
    tx_size: usize,
    rx_size: usize,
    inject_size: usize,
    max_msg_size: usize,
    /// FI_OPT_MIN_MULTI_RECV.
    min_multi_recv: usize,
    directed: bool,
    sourced: bool,
    can_send: bool,
    can_recv: bool,
}

const DEFAULT_MIN_MULTI_RECV: usize = 64;

impl Settings {
    fn of(info: &Info) -> Settings {
        let tx = info.tx.clone().unwrap_or_default();
        let rx = info.rx.clone().unwrap_or_default();
        let either = info.caps & (FI_SEND | FI_RECV) == 0;
        Settings {
            tx_flags: tx.op_flags,
            rx_flags: rx.op_flags,
            tx_size: tx.size,
            rx_size: rx.size,
            inject_size: if tx.inject_size == 0 {
                usize::MAX
            } else {
                tx.inject_size
            },
            max_msg_size: info.ep.as_ref().map_or(usize::MAX, |ep| ep.max_msg_size).max(1),
            min_multi_recv: DEFAULT_MIN_MULTI_RECV,
            directed: info.caps & FI_DIRECTED_RECV != 0,
            sourced: info.caps & FI_SOURCE != 0,
            can_send: either || info.caps & FI_SEND != 0,
            can_recv: either || info.caps & FI_RECV != 0,
        }
    }
}

pub struct Endpoint<T: Wire> {
    pub domain: Arc<Domain>,
    /// How many aliases are open.
    aliases: Refs,
    core: OptLock<Core<T>>,
}

struct Core<T: Wire> {
    engine: Engine<T>,
    peers: Peers,
    bindings: Bindings,
    settings: Settings,
    enabled: bool,
    /// What fi_setname gave it.
    name: Option<Vec<u8>>,
    /// Known by this to the domain's thread.
    driven: Option<u64>,
    /// Ends that the engine has told of and the queues have not; empty between calls, kept for its memory.
    ended: Vec<Completion>,
}

impl<T: Wire + 'static> Endpoint<T> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: T) -> Arc<Endpoint<T>> {
        domain.users.take();
        let core = Core {
            engine: Engine::new(transport),
            peers: Peers::default(),
            bindings: Bindings::default(),
            settings: Settings::of(info),
            enabled: false,
            name: None,
            driven: None,
            ended: Vec::new(),
        };
        Arc::new(Endpoint {
            domain: domain.clone(),
            aliases: Refs::default(),
            core: OptLock::new(core, domain.locked),
        })
    }

    pub fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        let mut core = self.core.lock();
        core.not_enabled()?;
        if core.peers.is_bound() {
            return Err(Errno(FI_EINVAL));
        }
        core.peers.bind(av.hold());
        Ok(())
    }

    /// Nothing is told to it, but programs bind one.
    pub fn bind_eq(&self, eq: &Arc<Eq>) {
        self.core.lock().bindings.bind_eq(eq);
    }

    /// `flags`: FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION.
    pub fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        let mut core = self.core.lock();
        core.not_enabled()?;
        core.bindings.bind_cq(cq, flags)
    }

    /// `flags`: the operations it counts.
    pub fn bind_cntr(&self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        let mut core = self.core.lock();
        core.not_enabled()?;
        core.bindings.bind_cntr(cntr, flags)
    }

    /// fi_enable: an endpoint without what it needs is told what is missing.
    pub fn enable(self: &Arc<Self>) -> Result<()> {
        let mut core = self.core.lock();
        if core.enabled {
            return Ok(());
        }
        core.check()?;
        core.enabled = true;
        core.bindings.attach(self.clone() as Arc<dyn Progress>);
        drop(core);
        self.drive()
    }

    /// With FI_PROGRESS_AUTO, hands the endpoint to the domain's thread. Not under the lock, which the thread takes.
    fn drive(self: &Arc<Self>) -> Result<()> {
        let Some(driver) = &self.domain.driver else {
            return Ok(());
        };
        match driver.attach(Arc::new(ByThread(self.clone()))) {
            Ok(id) => {
                self.core.lock().driven = Some(id);
                Ok(())
            }
            Err(error) => {
                log!(Warn, EpCtrl, "fi_enable: no thread for FI_PROGRESS_AUTO");
                let me = self.clone() as Arc<dyn Progress>;
                let mut core = self.core.lock();
                core.enabled = false;
                core.bindings.stop(&me);
                Err(error)
            }
        }
    }

    /// To be called before the endpoint is let go: queues must not drive it any more.
    pub fn close(self: &Arc<Self>) {
        let me = self.clone() as Arc<dyn Progress>;
        let driven = self.core.lock().driven.take();
        if let (Some(id), Some(driver)) = (driven, &self.domain.driver) {
            driver.detach(id);
        }
        let bindings = core::mem::take(&mut self.core.lock().bindings);
        bindings.detach(&me);
    }

    /// -FI_EBUSY while an alias is open.
    pub fn unused(&self) -> Result<()> {
        unused(&self.aliases)
    }

    /// fi_getname.
    pub fn local_address(&self) -> Vec<u8> {
        let core = self.core.lock();
        match &core.name {
            Some(name) => name.clone(),
            None => core.engine.transport().local_address(),
        }
    }

    /// fi_setname, with the address without its end. -FI_EBUSY once enabled: peers may know the old one.
    pub fn set_address(&self, address: &[u8]) -> Result<()> {
        let mut core = self.core.lock();
        if core.enabled {
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

    /// fi_tx_size_left: sends that will not be refused.
    pub fn tx_size_left(&self) -> Result<usize> {
        let core = self.core.lock();
        core.must_be_enabled()?;
        Ok(core.settings.tx_size.saturating_sub(core.engine.sending()))
    }

    /// fi_rx_size_left: the same for receives. More than that are taken, but programs count on the size they were told.
    pub fn rx_size_left(&self) -> Result<usize> {
        let core = self.core.lock();
        core.must_be_enabled()?;
        Ok(core.settings.rx_size.saturating_sub(core.engine.posted()))
    }

    /// fi_cancel.
    pub fn cancel(&self, context: Context) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        let found = core.engine.cancel(context, &mut core.ended);
        core.tell();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }

    pub fn min_multi_recv(&self) -> usize {
        self.core.lock().settings.min_multi_recv
    }

    pub fn set_min_multi_recv(&self, size: usize) {
        self.core.lock().settings.min_multi_recv = size;
    }

    /// FI_GETOPSFLAG: `flags` says of which direction.
    pub fn op_flags(&self, direction: u64) -> Result<u64> {
        let (tx, rx) = self.both_flags();
        Ok(if is_transmit(direction)? { tx } else { rx })
    }

    /// The flags of both directions, for an alias.
    pub fn both_flags(&self) -> (u64, u64) {
        let core = self.core.lock();
        (core.settings.tx_flags, core.settings.rx_flags)
    }

    /// FI_SETOPSFLAG.
    pub fn set_op_flags(&self, flags: u64) -> Result<()> {
        let mut core = self.core.lock();
        if is_transmit(flags)? {
            core.settings.tx_flags = wanted(flags);
        } else {
            core.settings.rx_flags = wanted(flags);
        }
        Ok(())
    }
}

/// Which direction's flags are meant: it must be one of the two.
fn is_transmit(flags: u64) -> Result<bool> {
    match flags & (FI_TRANSMIT | FI_RECV) {
        FI_TRANSMIT => Ok(true),
        FI_RECV => Ok(false),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// The flags without their direction.
fn wanted(flags: u64) -> u64 {
    flags & !(FI_TRANSMIT | FI_RECV)
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

impl<T: Wire> Core<T> {
    /// Whether it may be enabled: one without what it needs is told what is missing.
    fn check(&self) -> Result<()> {
        self.bindings.check(self.settings.can_send, self.settings.can_recv)?;
        if !self.peers.is_bound() {
            log!(Warn, EpCtrl, "fi_enable: no address vector is bound");
            return Err(Errno(FI_ENOAV as i32));
        }
        Ok(())
    }

    fn not_enabled(&self) -> Result<()> {
        if self.enabled {
            Err(Errno(FI_EOPBADSTATE as i32))
        } else {
            Ok(())
        }
    }

    fn must_be_enabled(&self) -> Result<()> {
        if self.enabled {
            Ok(())
        } else {
            Err(Errno(FI_EOPBADSTATE as i32))
        }
    }

    fn arm(&mut self) -> bool {
        self.engine.transport_mut().arm() && !self.engine.has_work()
    }

    /// Passes on what the engine has told, with sources as the application knows them.
    #[inline]
    fn tell(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        for completion in self.ended.drain(..) {
            let source = match completion.source {
                Some(peer) if self.settings.sourced => self.peers.source(peer, self.engine.transport()),
                _ => FI_ADDR_NOTAVAIL,
            };
            self.bindings.tell(&completion, source);
        }
    }

    /// How a send is reported, and how far it must have come: by its own flags, or the endpoint's.
    #[inline]
    fn send_flags(&self, flags: Flags) -> (u64, bool) {
        let selective = self.bindings.tx_selective();
        match flags {
            Flags::Endpoint => {
                let flags = self.settings.tx_flags;
                (flags, !selective || flags & FI_COMPLETION != 0)
            }
            Flags::Call(flags) | Flags::Alias(flags) => (flags, !selective || flags & FI_COMPLETION != 0),
            Flags::Inject => (self.settings.tx_flags | FI_INJECT, false),
        }
    }

    #[inline]
    fn recv_flags(&self, flags: Flags) -> (u64, bool) {
        let selective = self.bindings.rx_selective();
        let flags = match flags {
            Flags::Endpoint => self.settings.rx_flags,
            Flags::Call(flags) | Flags::Alias(flags) => flags,
            Flags::Inject => 0,
        };
        (flags, !selective || flags & FI_COMPLETION != 0)
    }
}

/// The level that flags ask for.
fn level(flags: u64) -> Level {
    if flags & FI_DELIVERY_COMPLETE != 0 {
        Level::Delivery
    } else if flags & (FI_TRANSMIT_COMPLETE | FI_COMMIT_COMPLETE) != 0 {
        Level::Transmit
    } else {
        Level::Inject
    }
}

fn look(flags: u64) -> Option<Look> {
    match flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) {
        0 => None,
        FI_PEEK => Some(Look::Peek),
        FI_CLAIM => Some(Look::Take),
        both if both == FI_PEEK | FI_CLAIM => Some(Look::Claim),
        both if both == FI_CLAIM | FI_DISCARD => Some(Look::Drop),
        _ => Some(Look::Discard),
    }
}

fn refused(refused: Refused) -> Errno {
    Errno(match refused {
        Refused::Again => FI_EAGAIN,
        Refused::TooLong => FI_EMSGSIZE,
        Refused::Invalid => FI_EINVAL,
        Refused::Unsupported => FI_EOPNOTSUPP,
        Refused::Unreachable => FI_EHOSTUNREACH,
        Refused::NoMemory => FI_ENOMEM,
    })
}

impl<T: Wire> Messaging for Endpoint<T> {
    #[inline]
    fn send(&self, call: SendCall) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        if !core.enabled {
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        let (flags, report) = core.send_flags(call.flags);
        let inject = match call.flags {
            Flags::Inject => true,
            Flags::Call(flags) => flags & FI_INJECT != 0,
            Flags::Endpoint | Flags::Alias(_) => false,
        };
        if call.body.len() > core.settings.max_msg_size || inject && call.body.len() > core.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE));
        }
        let to = core
            .peers
            .peer(call.dest, core.engine.transport_mut())
            .ok_or(Errno(FI_EINVAL))?;
        let send = Send {
            kind: call.kind,
            to,
            tag: call.tag,
            data: call.data,
            body: call.body,
            inject,
            level: level(flags),
            fence: flags & FI_FENCE != 0,
            context: call.context,
            report,
        };
        let result = core.engine.send(&send, &mut core.ended);
        core.tell();
        if core.driven.is_some() {
            self.begun(core);
        }
        result.map_err(refused)
    }

    #[inline]
    fn recv(&self, call: RecvCall) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        if !core.enabled {
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        let (flags, report) = core.recv_flags(call.flags);
        let from = match call.source {
            FI_ADDR_UNSPEC => None,
            _ if !core.settings.directed => None,
            source => Some(
                core.peers
                    .peer(source, core.engine.transport_mut())
                    .ok_or(Errno(FI_EINVAL))?,
            ),
        };
        let recv = Recv {
            kind: call.kind,
            from,
            tag: call.tag,
            ignore: call.ignore,
            body: call.body,
            multi: (flags & FI_MULTI_RECV != 0).then_some(core.settings.min_multi_recv),
            context: call.context,
            report,
        };
        let result = match look(flags) {
            None => core.engine.recv(&recv, &mut core.ended),
            Some(look) => core.engine.look(look, &recv, &mut core.ended),
        };
        core.tell();
        if core.driven.is_some() {
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
        core.engine.progress(&mut core.ended);
        core.tell();
    }

    /// With FI_PROGRESS_AUTO the thread is woken, and wakes whoever waits for what it has done.
    fn arm(&self) -> bool {
        self.domain.driver.is_some() || self.core.lock().arm()
    }

    fn unfinished(&self) -> bool {
        self.core.lock().engine.unfinished()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        match self.domain.driver {
            Some(_) => None,
            None => self.core.lock().engine.transport().wake_fd(),
        }
    }
}

/// An endpoint as the thread of FI_PROGRESS_AUTO has it.
struct ByThread<T: Wire>(Arc<Endpoint<T>>);

impl<T: Wire + 'static> Progress for ByThread<T> {
    fn progress(&self) {
        self.0.progress();
    }

    fn arm(&self) -> bool {
        self.0.core.lock().arm()
    }

    fn unfinished(&self) -> bool {
        self.0.unfinished()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.0.core.lock().engine.transport().wake_fd()
    }
}
