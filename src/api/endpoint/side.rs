//! The application's side of an endpoint: what it is bound to, its options, and how calls become operations of an engine.
//!
//! `settings` is what its attributes come down to, `telling` the way back: what an engine tells of. Knows no transport;
//! whoever owns a side also has the engine. Called by the endpoints of this folder.

mod settings;
mod telling;

use super::Wire;
use super::bindings::Bindings;
use super::peers::Peers;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::deferred::work::Call;
use crate::api::deferred::{Deferred, TRIGGERED};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::log::Speaker;
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::api::mr::memory::Memory;
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::api::refs::Refs;
use crate::engine::op::{Access, Atomic, AtomicTarget, CompletionLevel, Form, Peek, Recv, Refused, Rma, Send, Tell};
use crate::engine::port::PeerId;
use crate::util::user::UserIov;
use std::sync::Arc;

pub use settings::{Settings, engine_config};
pub use telling::Told;

pub struct Side {
    /// Whose endpoint it is, for the log.
    pub provider: Speaker,
    pub peers: Peers,
    pub bindings: Bindings,
    pub settings: Settings,
    pub enabled: bool,
    /// The number that regions of memory know it by, once asked for.
    pub number: Option<u64>,
    /// The domain's, from fi_enable on.
    pub memory: Option<Arc<Memory>>,
    /// The domain's, from fi_enable on: what its own operations end at.
    pub deferred: Option<Arc<Deferred>>,
    /// The transmit context that it shares with others.
    pub stx: Option<Arc<Stx>>,
    /// Known by this to the domain's thread.
    pub driven: Option<u64>,
    /// It carries collectives of the contexts of its scalable endpoint, enabled or not.
    pub hub: bool,
    /// How many aliases are open.
    pub aliases: Arc<Refs>,
}

impl Side {
    pub fn new(provider: Speaker, info: &Info) -> Side {
        Side {
            provider,
            peers: Peers::default(),
            bindings: Bindings::default(),
            settings: Settings::of(info),
            enabled: false,
            number: None,
            memory: None,
            deferred: None,
            stx: None,
            driven: None,
            hub: false,
            aliases: Arc::default(),
        }
    }

    pub fn not_enabled(&self) -> Result<()> {
        if self.enabled {
            Err(Errno(FI_EOPBADSTATE as i32))
        } else {
            Ok(())
        }
    }

    /// One address vector is all.
    pub fn bind_av(&mut self, av: &Arc<Av>) -> Result<()> {
        if self.peers.is_bound() {
            return Err(Errno(FI_EINVAL));
        }
        self.peers.bind(av.hold());
        Ok(())
    }

    pub fn bind_stx(&mut self, stx: &Arc<Stx>) -> Result<()> {
        self.not_enabled()?;
        if !self.settings.shares_tx || self.stx.is_some() {
            return Err(Errno(FI_EINVAL));
        }
        stx.users.take();
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

    /// Whether it can do an operation that waits for a counter.
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

    /// Whether it may be enabled: one without what it needs is told what is missing.
    pub fn check(&self) -> Result<()> {
        let settings = &self.settings;
        let initiates = settings.can_read || settings.can_write || settings.can_atomic;
        self.bindings
            .check(settings.can_send || initiates, settings.can_recv)
            .inspect_err(|_| {
                let text = "fi_enable: a completion queue or counter is missing, for sends or for receives";
                log!(by self.provider; Warn, EpCtrl, "{text}");
            })?;
        if !self.peers.is_bound() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no address vector is bound");
            return Err(Errno(FI_ENOAV as i32));
        }
        if self.settings.shares_tx && self.stx.is_none() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no shared transmit context is bound");
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        Ok(())
    }

    /// Why an endpoint does not send or receive: it is not enabled, or not of the kind that does.
    #[cold]
    fn unable(&self) -> Errno {
        Errno(if self.enabled {
            FI_EOPNOTSUPP
        } else {
            FI_EOPBADSTATE as i32
        })
    }

    /// The send that a call asks for. `find` numbers a peer by its address.
    #[inline(always)]
    pub fn outgoing<T: Wire>(
        &mut self,
        call: &SendCall,
        body: &UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Send> {
        if !(self.enabled && self.settings.can_send) {
            return Err(self.unable());
        }
        let (flags, tell) = self.send_flags(call.flags);
        if flags & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags));
        }
        let inject = flags & FI_INJECT != 0;
        if body.len() > self.settings.max_msg_size || inject && body.len() > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE));
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or(Errno(FI_EINVAL))?;
        Ok(Send {
            kind: call.kind,
            to,
            tag: call.tag,
            data: call.data,
            body: *body,
            inject,
            level: level(flags),
            fence: flags & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// The read or write that a call asks for.
    #[inline(always)]
    pub fn reaching<T: Wire>(&mut self, call: &RmaCall, find: impl FnOnce(&[u8]) -> Option<PeerId>) -> Result<Rma> {
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
        // What is read has no source buffer to be given back early.
        let inject = write && flags & FI_INJECT != 0;
        let len = call.local.len();
        if len != call.remote.len() {
            return Err(Errno(FI_EINVAL));
        }
        if len > self.settings.max_msg_size || inject && len > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE));
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or(Errno(FI_EINVAL))?;
        Ok(Rma {
            access: call.access,
            to,
            local: call.local,
            remote: call.remote,
            data: call.data,
            inject,
            fence: flags & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// The atomic operation that a call asks for.
    #[inline(always)]
    pub fn operating<T: Wire>(
        &mut self,
        call: &AtomicCall,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Atomic> {
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
            return Err(Errno(FI_EMSGSIZE));
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or(Errno(FI_EINVAL))?;
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

    /// The receive that a call asks for, or the look.
    #[inline(always)]
    pub fn incoming<T: Wire>(
        &mut self,
        call: &RecvCall,
        body: &UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<(Recv, Option<Peek>)> {
        if !(self.enabled && self.settings.can_recv) {
            return Err(self.unable());
        }
        let (flags, tell) = self.recv_flags(call.flags);
        if flags & FI_TRIGGER != 0 {
            return Err(TRIGGERED);
        }
        let directed = self.settings.directed;
        let from = match call.source {
            _ if !directed.is(call.kind) => None,
            FI_ADDR_UNSPEC if directed.exact => return Err(Errno(FI_EINVAL)),
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
        Ok((recv, look(flags)))
    }

    /// How a send is reported, and how far it must have come: by its own flags, or the endpoint's.
    #[inline]
    pub(super) fn send_flags(&self, flags: Flags) -> (u64, Tell) {
        let selective = self.bindings.tx_selective();
        match flags {
            Flags::Endpoint => {
                let flags = self.settings.tx_flags;
                (flags, told(selective, flags))
            }
            Flags::Call(flags) | Flags::Alias(flags) => (flags, told(selective, flags)),
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
        (flags, told(selective, flags))
    }
}

/// Whom an operation with these flags tells of success.
#[inline]
fn told(selective: bool, flags: u64) -> Tell {
    if !selective || flags & FI_COMPLETION != 0 {
        Tell::Queue
    } else {
        Tell::Counters
    }
}

/// An operation that waits for a counter, or one whose result is to outlast a power failure: no memory of ours does, and
/// to report less would be a lie.
#[cold]
fn not_now(provider: Speaker, flags: u64) -> Errno {
    if flags & FI_COMMIT_COMPLETE == 0 {
        return TRIGGERED;
    }
    log!(by provider; Warn, EpData, "FI_COMMIT_COMPLETE: there is no persistent memory here");
    Errno(FI_EOPNOTSUPP)
}

/// The level that flags ask for. Delivery is told of when a receive has the message, or somebody discards it: so is a
/// match.
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

/// All arrays that the operation has are of one length, which is neither nothing nor too much.
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
    // The answer already says that the operation is done, and has no room for the target's data.
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

pub fn refused(refused: Refused) -> Errno {
    Errno(match refused {
        Refused::Again => FI_EAGAIN,
        Refused::TooLong => FI_EMSGSIZE,
        Refused::Invalid => FI_EINVAL,
        Refused::Unsupported => FI_EOPNOTSUPP,
        Refused::Unreachable => FI_EHOSTUNREACH,
        Refused::NoMemory => FI_ENOMEM,
    })
}
