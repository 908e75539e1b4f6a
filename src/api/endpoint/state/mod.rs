//! What the application made of an endpoint (bindings, options), and how its calls become operations of an engine.
//!
//! Knows no transport: the owner of a state has the engine too, and lends a closure that finds a peer. Called by the
//! endpoints of this folder.
//!
//! - `guard`: the state under its lock; `settings`: what the attributes come down to;
//! - `report`: the way back, from the engine's completions to queues, counters, regions and the log.

mod guard;
mod report;
mod settings;

use super::EndpointTransport;
use super::bindings::{Bindings, errno};
use super::connection::{self, Connection};
use super::peers::Peers;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::deferred::Deferred;
use crate::api::deferred::work::Call;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, RxAttr};
use crate::api::log::Speaker;
use crate::api::messaging::{Flags, NotBegun, RecvCall, SendCall};
use crate::api::mr::memory::Memory;
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::api::refs::Refs;
use crate::engine::op::{
    Access, Atomic, AtomicOp, AtomicTarget, CompletionLevel, Error, Form, Peek, Recv, Refused, Rma, Send, Tell,
};
use crate::engine::port::PeerId;
use crate::util::user::UserIov;
use std::sync::Arc;

pub use guard::StateGuard;
pub(super) use report::PendingCompletions;
use settings::Directed;
pub(super) use settings::{Settings, engine_config};

pub struct EndpointState {
    /// The provider's name, for the log.
    pub provider: Speaker,
    pub peers: Peers,
    pub bindings: Bindings,
    pub settings: Settings,
    pub enabled: bool,
    /// The atomics that the endpoint's card does, and then it does no others; None: the engine does all.
    pub amos: Option<&'static [AtomicOp]>,
    /// The number by which memory regions know the endpoint, once asked for.
    pub number: Option<u64>,
    /// The domain's regions, from fi_enable on: completions at the target may count on a region's counter.
    pub memory: Option<Arc<Memory>>,
    /// The domain's deferred work, from fi_enable on: completions of deferred operations go there.
    pub deferred: Option<Arc<Deferred>>,
    /// The bound shared transmit context.
    pub stx: Option<Arc<Stx>>,
    /// Its number at the domain's thread, while the thread drives it.
    pub driven: Option<u64>,
    /// It carries the collectives of its scalable endpoint's transmit contexts, enabled or not.
    pub collective_carrier: bool,
    /// Open aliases.
    pub aliases: Arc<Refs>,
    /// Of an FI_EP_MSG endpoint.
    pub connection: Option<Box<Connection>>,
}

impl EndpointState {
    pub fn new(provider: Speaker, info: &Info) -> EndpointState {
        EndpointState {
            provider,
            peers: Peers::default(),
            bindings: Bindings::default(),
            settings: Settings::of(info),
            enabled: false,
            amos: None,
            number: None,
            memory: None,
            deferred: None,
            stx: None,
            driven: None,
            collective_carrier: false,
            aliases: Arc::default(),
            connection: None,
        }
    }

    /// The state of a shared receive context, which is enabled from the start.
    pub fn of_shared_rx(domain: &Domain, rx: &RxAttr) -> EndpointState {
        let info = Info {
            caps: rx.caps & !FI_SEND | FI_RECV,
            rx: Some(rx.clone()),
            ..Info::default()
        };
        EndpointState {
            enabled: true,
            deferred: Some(domain.deferred.clone()),
            ..EndpointState::new(domain.provider, &info)
        }
    }

    /// What a thread gets that comes after fi_close: a state that nobody else sees. The application does not call then.
    pub fn closed(provider: Speaker) -> EndpointState {
        EndpointState::new(provider, &Info::default())
    }

    /// The endpoint is one of FI_EP_MSG.
    pub fn be_connected(&mut self, connection: Connection) {
        self.connection = Some(Box::new(connection));
        self.settings.directed = Directed::ONLY;
        self.bindings.connected();
    }

    pub fn not_enabled(&self) -> Result<()> {
        if self.enabled {
            Err(Errno(FI_EOPBADSTATE as i32))
        } else {
            Ok(())
        }
    }

    /// An endpoint has one address vector.
    pub fn bind_av(&mut self, av: &Arc<Av>) -> Result<()> {
        if let Some(connection) = &mut self.connection {
            return connection.bind_av(av);
        }
        if self.peers.is_bound() {
            return Err(Errno(FI_EINVAL));
        }
        self.peers.bind(av.hold());
        Ok(())
    }

    /// An endpoint that was made with a context of its own keeps that, and nothing of this one, which may be closed before
    /// it: Sandia OpenSHMEM does both, and binds it to an endpoint that is enabled.
    pub fn bind_stx(&mut self, stx: &Arc<Stx>) -> Result<()> {
        if !self.settings.shares_tx {
            return Ok(());
        }
        self.not_enabled()?;
        if self.stx.is_some() {
            return Err(Errno(FI_EINVAL));
        }
        stx.users.acquire();
        self.stx = Some(stx.clone());
        Ok(())
    }

    pub fn must_be_enabled(&self) -> Result<()> {
        if self.enabled {
            Ok(())
        } else {
            Err(Errno(FI_EOPBADSTATE as i32))
        }
    }

    /// Whether the endpoint can do this deferred operation: it must be enabled, have the capability, and FI_TRIGGER.
    pub fn can_wait(&self, call: &Call) -> Result<()> {
        self.must_be_enabled()?;
        let settings = &self.settings;
        let able = match call {
            Call::Send(..) => settings.can_send,
            Call::Recv(..) => settings.can_recv,
            Call::Rma(call) if call.access == Access::Read => settings.can_read,
            Call::Rma(_) => settings.can_write,
            Call::Atomic(_) => settings.can_atomic,
        };
        if able && settings.can_trigger {
            Ok(())
        } else {
            log!(
                by self.provider;
                Warn,
                EpCtrl,
                "the endpoint is not one of FI_TRIGGER and this kind of operation"
            );
            Err(Errno(FI_EOPNOTSUPP))
        }
    }

    /// Whether it may be enabled. The log says what is not bound yet.
    pub fn check(&self) -> Result<()> {
        let settings = &self.settings;
        let initiates = settings.can_read || settings.can_write || settings.can_atomic;
        self.bindings
            .check(settings.can_send || initiates, settings.can_recv)
            .inspect_err(|_| {
                let text = "fi_enable: a completion queue or counter is missing, for sends or for receives";
                log!(by self.provider; Warn, EpCtrl, "{text}");
            })?;
        if !self.peers.is_bound() && self.connection.is_none() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no address vector is bound");
            return Err(Errno(FI_ENOAV as i32));
        }
        if self.settings.shares_tx && self.stx.is_none() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no shared transmit context is bound");
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        Ok(())
    }

    /// Why an endpoint refuses an operation: it is not enabled, or lacks the capability.
    #[cold]
    fn unable(&self) -> NotBegun {
        NotBegun::Refused(Errno(if self.enabled {
            FI_EOPNOTSUPP
        } else {
            FI_EOPBADSTATE as i32
        }))
    }

    /// Why nothing can be sent: the address names nobody, or there is no connection.
    #[cold]
    fn no_peer(&self) -> Errno {
        Errno(match self.connection {
            Some(_) => FI_ENOTCONN,
            None => FI_EINVAL,
        })
    }

    /// Whether nothing more can come, as the connection has ended.
    fn is_over(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.is_over())
    }

    /// Makes an engine's send of a call. `find` is the transport's: it numbers a peer by address.
    #[inline(always)]
    pub fn send_op<T: EndpointTransport>(
        &mut self,
        call: &SendCall,
        body: &UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Send, NotBegun> {
        if !(self.enabled && self.settings.can_send) {
            return Err(self.unable());
        }
        let (flags, tell) = self.send_flags(call.flags);
        if flags & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags));
        }
        let inject = flags & FI_INJECT != 0;
        if body.len() > self.settings.max_msg_size || inject && body.len() > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE).into());
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or_else(|| self.no_peer())?;
        Ok(Send {
            kind: call.kind,
            to,
            tag: call.tag,
            data: call.data,
            body: *body,
            inject,
            level: self.send_level(call.flags, flags),
            fence: flags & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// The level of a send. The default one is for those who wait for a completion: MPICH's is delivery, and each of its
    /// injected messages would be acknowledged for nobody.
    #[inline(always)]
    fn send_level(&self, call: Flags, flags: u64) -> CompletionLevel {
        match level(flags) {
            CompletionLevel::Inject => CompletionLevel::Inject,
            _ if matches!(call, Flags::Inject) && !self.bindings.counts_sends() => CompletionLevel::Inject,
            level => level,
        }
    }

    /// Makes an engine's read or write of a call.
    #[inline(always)]
    pub fn rma_op<T: EndpointTransport>(
        &mut self,
        call: &RmaCall,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Rma, NotBegun> {
        let write = call.access == Access::Write;
        let able = if write {
            self.settings.can_write
        } else {
            self.settings.can_read
        };
        if !(self.enabled && able) {
            return Err(self.unable());
        }
        let (flags, tell) = self.send_flags(call.flags);
        if flags & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags));
        }
        // A read has no source buffer that injecting could give back early.
        let inject = write && flags & FI_INJECT != 0;
        let len = call.local.len();
        if len != call.remote.len() {
            return Err(Errno(FI_EINVAL).into());
        }
        if len > self.settings.max_msg_size || inject && len > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE).into());
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or_else(|| self.no_peer())?;
        Ok(Rma {
            access: call.access,
            to,
            local: call.local,
            remote: call.remote,
            data: call.data,
            inject,
            level: level(flags),
            fence: flags & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// Makes an engine's atomic operation of a call.
    #[inline(always)]
    pub fn atomic_op<T: EndpointTransport>(
        &mut self,
        call: &AtomicCall,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Atomic, NotBegun> {
        if !(self.enabled && self.settings.can_atomic) {
            return Err(self.unable());
        }
        let (flags, tell) = self.send_flags(call.flags);
        if flags & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags));
        }
        check_arrays(call)?;
        let inject = flags & FI_INJECT != 0;
        if inject && call.operand.len() + call.compare.len() > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE).into());
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or_else(|| self.no_peer())?;
        Ok(Atomic {
            op: call.kind.op,
            to,
            target: call.target,
            len: call.len,
            operand: call.operand,
            compare: call.compare,
            result: call.result,
            data: call.data,
            inject,
            fence: flags & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// Makes an engine's receive of a call, and says which peek or claim it is, if any.
    #[inline(always)]
    pub fn recv_op<T: EndpointTransport>(
        &mut self,
        call: &RecvCall,
        body: &UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<(Recv, Option<Peek>), NotBegun> {
        if !(self.enabled && self.settings.can_recv) {
            return Err(self.unable());
        }
        let (flags, tell) = self.recv_flags(call.flags);
        if flags & FI_TRIGGER != 0 {
            return Err(NotBegun::Triggered);
        }
        let directed = self.settings.directed;
        let mut is_over = false;
        let from = match call.source {
            _ if !directed.is(call.kind) => None,
            _ if directed.only => {
                is_over = self.is_over();
                Some(connection::PEER)
            }
            FI_ADDR_UNSPEC if directed.exact => return Err(Errno(FI_EINVAL).into()),
            FI_ADDR_UNSPEC => None,
            source => Some(self.peers.sender::<T>(source, find).ok_or(Errno(FI_EINVAL))?),
        };
        let recv = Recv {
            kind: call.kind,
            from,
            tag: call.tag,
            ignore: call.ignore,
            body: *body,
            multi: (flags & FI_MULTI_RECV != 0).then_some(self.settings.min_multi_recv),
            context: call.context,
            tell,
        };
        let look = match look(flags) {
            // What has come before can still be received.
            None if is_over => Some(Peek::Arrived),
            look => look,
        };
        Ok((recv, look))
    }

    /// The flags of a transmitting call, its own or the endpoint's defaults, and where its success is reported.
    #[inline]
    pub(super) fn send_flags(&self, flags: Flags) -> (u64, Tell) {
        let selective = self.bindings.tx_selective();
        match flags {
            Flags::Endpoint => {
                let flags = self.settings.tx_flags;
                (flags, tell_for(selective, flags))
            }
            Flags::Call(flags) | Flags::Alias(flags) => (flags, tell_for(selective, flags)),
            Flags::Own(flags) => (flags, Tell::Own),
            Flags::Inject => (self.settings.tx_flags & !FI_TRIGGER | FI_INJECT, Tell::Counters),
        }
    }

    #[inline]
    fn recv_flags(&self, flags: Flags) -> (u64, Tell) {
        let selective = self.bindings.rx_selective() || self.settings.rx_selective;
        let flags = match flags {
            Flags::Endpoint => self.settings.rx_flags,
            Flags::Call(flags) | Flags::Alias(flags) => flags,
            Flags::Own(flags) => return (flags, Tell::Own),
            Flags::Inject => 0,
        };
        (flags, tell_for(selective, flags))
    }
}

/// Where the success of an operation with these flags is reported.
#[inline]
fn tell_for(selective: bool, flags: u64) -> Tell {
    if !selective || flags & FI_COMPLETION != 0 {
        Tell::Queue
    } else {
        Tell::Counters
    }
}

/// Why an operation cannot start: it waits for a counter (FI_TRIGGER), or asks for FI_COMMIT_COMPLETE. There is no
/// persistent memory here, so no completion may claim to have reached it.
#[cold]
fn not_now(provider: Speaker, flags: u64) -> NotBegun {
    if flags & FI_COMMIT_COMPLETE == 0 {
        return NotBegun::Triggered;
    }
    log!(by provider; Warn, EpData, "FI_COMMIT_COMPLETE: there is no persistent memory here");
    NotBegun::Refused(Errno(FI_EOPNOTSUPP))
}

/// The completion level that flags ask for. FI_MATCH_COMPLETE is served as delivery: both complete when a receive has
/// the message or a peer discards it.
#[inline]
fn level(flags: u64) -> CompletionLevel {
    if flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) != 0 {
        CompletionLevel::Delivery
    } else if flags & FI_TRANSMIT_COMPLETE != 0 {
        CompletionLevel::Transmit
    } else {
        CompletionLevel::Inject
    }
}

/// -FI_EINVAL unless all buffers of the operation have one length, and not 0; -FI_EMSGSIZE for too many bytes.
#[inline(always)]
fn check_arrays(call: &AtomicCall) -> Result<()> {
    let len = call.len;
    if len > call.kind.most_bytes() {
        return Err(Errno(FI_EMSGSIZE));
    }
    let remote = match &call.target {
        AtomicTarget::Memory(remote) => remote.len(),
        AtomicTarget::Tagged { .. } => len,
    };
    let form = call.kind.form;
    let fits = remote == len
        && (call.kind.reads || call.operand.len() == len)
        && (form != Form::Compare || call.compare.len() == len)
        && (form == Form::Base || call.result.len() == len);
    if len == 0 || !fits {
        return Err(Errno(FI_EINVAL));
    }
    // A fetching atomic's reply is its acknowledgement, and carries no remote CQ data to the target.
    if form != Form::Base && call.data.is_some() {
        return Err(Errno(FI_EOPNOTSUPP));
    }
    Ok(())
}

#[inline]
fn look(flags: u64) -> Option<Peek> {
    let looks = flags & (FI_PEEK | FI_CLAIM | FI_DISCARD);
    if looks == 0 {
        return None;
    }
    match looks {
        FI_PEEK => Some(Peek::Only),
        FI_CLAIM => Some(Peek::ReceiveClaimed),
        both if both == FI_PEEK | FI_CLAIM => Some(Peek::Claim),
        both if both == FI_CLAIM | FI_DISCARD => Some(Peek::DiscardClaimed),
        _ => Some(Peek::Discard),
    }
}

pub(super) fn refused(refused: Refused) -> NotBegun {
    NotBegun::Refused(Errno(match refused {
        Refused::Again => FI_EAGAIN,
        Refused::TooLong => FI_EMSGSIZE,
        Refused::Invalid => FI_EINVAL,
        Refused::Unsupported => FI_EOPNOTSUPP,
        Refused::Unreachable(why) => errno(Error::Unreachable(why)),
        Refused::NotConnected => FI_ENOTCONN,
        Refused::NoMemory => FI_ENOMEM,
    }))
}
