//! The application's side of an endpoint: what it is bound to, its options, and how calls become operations of an engine.
//!
//! Knows no transport; whoever owns a side also has the engine. Called by the endpoints of this folder.

use super::Wire;
use super::bindings::Bindings;
use super::peers::Peers;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::deferred::work::Call;
use crate::api::deferred::{Deferred, TRIGGERED};
use crate::api::errno::{Errno, Result};
use crate::api::info::caps::is_rma_target;
use crate::api::info::model::Info;
use crate::api::log::Speaker;
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::api::mr::memory::Memory;
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::api::refs::Refs;
use crate::engine::Config;
use crate::engine::op::{
    Access, Atomic, AtomicTarget, Completion, Ended, Error, Failure, Form, Kind, Level, Look, Recv, Refused,
    RemotePart, Report, Rma, Send, Tell,
};
use crate::engine::port::PeerId;
use crate::util::user::UserIov;
use std::sync::Arc;

/// What the attributes and options of an endpoint come down to.
#[derive(Clone, Debug)]
pub struct Settings {
    pub tx_flags: u64,
    pub rx_flags: u64,
    pub tx_size: usize,
    pub rx_size: usize,
    pub inject_size: usize,
    pub max_msg_size: usize,
    /// FI_OPT_MIN_MULTI_RECV.
    pub min_multi_recv: usize,
    pub directed: Directed,
    pub sourced: bool,
    /// FI_SOURCE_ERR: messages from an address that the vector does not have are reported with the address itself.
    pub names_strangers: bool,
    pub can_send: bool,
    pub can_recv: bool,
    pub can_read: bool,
    pub can_write: bool,
    pub can_atomic: bool,
    /// FI_TRIGGER: its operations may wait for counters.
    pub can_trigger: bool,
    /// Peers may do something with memory of ours.
    pub is_target: bool,
    /// FI_COLLECTIVE is among its capabilities.
    pub collective: bool,
    /// ep_attr.tx_ctx_cnt is FI_SHARED_CONTEXT.
    pub shares_tx: bool,
    /// As if the queue for receives were bound with FI_SELECTIVE_COMPLETION.
    pub rx_selective: bool,
}

const DEFAULT_MIN_MULTI_RECV: usize = 64;

/// Which receives may name the one peer that they take messages from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directed {
    messages: bool,
    tagged: bool,
    /// They must.
    exact: bool,
}

impl Directed {
    fn of(caps: u64) -> Directed {
        let exact = caps & FI_EXACT_DIRECTED_RECV != 0;
        let all = caps & FI_DIRECTED_RECV != 0 || exact && caps & FI_TAGGED_DIRECTED_RECV == 0;
        Directed {
            messages: all,
            tagged: all || caps & FI_TAGGED_DIRECTED_RECV != 0,
            exact,
        }
    }

    #[inline]
    fn is(self, kind: Kind) -> bool {
        match kind {
            Kind::Message => self.messages,
            Kind::Tagged => self.tagged,
            Kind::Collective => true,
        }
    }
}

impl Settings {
    pub fn of(info: &Info) -> Settings {
        let tx = info.tx.clone().unwrap_or_default();
        let rx = info.rx.clone().unwrap_or_default();
        let has = |caps: u64| info.caps & caps != 0;
        let (rma, atomic) = (has(FI_RMA), has(FI_ATOMIC));
        // Who names neither direction has both; an endpoint for memory alone has neither.
        let either = !has(FI_SEND | FI_RECV) && (has(FI_MSG | FI_TAGGED) || !(rma || atomic));
        let directions = has(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
        let moves = |direction: u64| !directions || has(direction);
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
            directed: Directed::of(info.caps),
            sourced: info.caps & FI_SOURCE != 0,
            names_strangers: has(FI_SOURCE) && has(FI_SOURCE_ERR),
            can_send: either || has(FI_SEND),
            can_recv: either || has(FI_RECV),
            can_read: rma && moves(FI_READ),
            can_write: rma && moves(FI_WRITE),
            can_atomic: atomic && moves(FI_READ | FI_WRITE),
            can_trigger: has(FI_TRIGGER),
            is_target: is_rma_target(info.caps),
            collective: has(FI_COLLECTIVE),
            shares_tx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == FI_SHARED_CONTEXT),
            rx_selective: false,
        }
    }
}

/// An engine for an endpoint with these attributes: tx_attr.size sends are never refused for want of room.
pub fn engine_config(info: &Info) -> Config {
    let default = Config::default();
    let sends = info.tx.as_ref().map_or(0, |tx| tx.size);
    Config {
        sends: default.sends.max(sends),
        ..default
    }
}

/// What the engine tells: ends, which the queues are then told of, and refusals, which the log is.
#[derive(Default)]
pub struct Told {
    pub ends: Vec<Completion>,
    pub refusals: Vec<Refusal>,
}

/// A peer may not do what it wanted with memory of ours. It has been told so.
pub struct Refusal {
    pub from: PeerId,
    part: RemotePart,
    error: Error,
}

impl Report for Told {
    #[inline(always)]
    fn report(&mut self, completion: Completion) {
        self.ends.push(completion);
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        let part = *part;
        self.refusals.push(Refusal { from, part, error });
    }
}

impl Refusal {
    /// The line that an administrator looks for. `address` is the peer's.
    pub fn log(&self, provider: Speaker, address: Option<&[u8]>) {
        let peer = String::from_utf8_lossy(address.unwrap_or_default());
        let why = match self.error {
            Error::NoKey => "no such key",
            Error::NoRights => "the region was not registered for it",
            Error::OutOfRange => "outside the region",
            _ => "not possible",
        };
        let RemotePart { addr, len, key } = self.part;
        log!(
            by provider;
            Info,
            Mr,
            "refused {peer} access to {len} bytes at {addr:#x} with key {key:#x}: {why}"
        );
    }
}

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
    pub fn outgoing<'a, T: Wire>(
        &mut self,
        call: &SendCall,
        body: &'a UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<Send<'a>> {
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
            body,
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
            form: call.kind.form,
            op: call.kind.op,
            datatype: call.kind.datatype,
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
    pub fn incoming<'a, T: Wire>(
        &mut self,
        call: &RecvCall,
        body: &'a UserIov,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<(Recv<'a>, Option<Look>)> {
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
            body,
            multi: (flags & FI_MULTI_RECV != 0).then_some(self.settings.min_multi_recv),
            context: call.context,
            tell,
        };
        Ok((recv, look(flags)))
    }

    /// What an end's entry says of its source; None: it must be looked up.
    #[inline]
    pub fn known_source(&self, end: &Completion) -> Option<fi_addr_t> {
        match (end.ended, end.source) {
            // Not the queues' and counters' alone.
            _ if end.kind == Kind::Collective || end.tell == Tell::Own => None,
            (Ended::Target { .. }, _) => None,
            (Ended::Recv, Some(peer)) if self.settings.sourced => {
                let known = self.peers.known_source(peer);
                known.filter(|source| *source != FI_ADDR_NOTAVAIL || !self.settings.names_strangers)
            }
            _ => Some(FI_ADDR_NOTAVAIL),
        }
    }

    /// Tells queues and counters of an end. `address` is that of a peer.
    #[inline]
    pub fn tell<'a, T: Wire>(&mut self, end: &Completion, address: impl Fn(PeerId) -> Option<&'a [u8]>) {
        if end.tell == Tell::Own {
            return self.tell_own(end);
        }
        let named = match end.ended {
            Ended::Recv => true,
            Ended::Target { .. } => end.tell == Tell::Queue,
            Ended::Send | Ended::Rma(_) | Ended::Atomic(_) => false,
        };
        let source = match end.source {
            Some(peer) if named && self.settings.sourced => {
                let source = self.peers.source::<T>(peer, || address(peer));
                let stranger = source == FI_ADDR_NOTAVAIL && end.ended == Ended::Recv && !end.peeked;
                if stranger && self.settings.names_strangers && end.failure.is_none() {
                    let raw = T::raw_address(T::base_address(address(peer).unwrap_or_default()));
                    return self.bindings.tell_of_stranger(end, raw);
                }
                source
            }
            _ => FI_ADDR_NOTAVAIL,
        };
        if let (Ended::Target { access, key, atomic }, Some(memory)) = (end.ended, &self.memory) {
            memory.touched(key, access, atomic, end.len);
        }
        self.bindings.tell(end, source);
    }

    /// Tells the counter of a deferred operation, and queue and counter of the endpoint only if it asked for that.
    #[cold]
    fn tell_own(&self, end: &Completion) {
        let Some(landed) = self.deferred.as_ref().and_then(|deferred| deferred.landed(end)) else {
            return;
        };
        if let Some(context) = landed.entry {
            let end = Completion {
                context,
                tell: Tell::Queue,
                ..*end
            };
            self.bindings.tell(&end, FI_ADDR_NOTAVAIL);
        }
        let Some(counted) = &landed.counted else { return };
        // A counter that the endpoint has counted with already counts an operation once.
        let twice = landed.entry.is_some() && self.bindings.counts_with(end.ended, counted.cntr());
        match end.failure {
            _ if twice => {}
            None => counted.cntr().advance(1),
            Some(_) => counted.cntr().fail(),
        }
    }

    /// An operation with FI_TRIGGER was cancelled before it began.
    #[cold]
    pub fn tell_canceled(&self, call: &Call) {
        let (ended, kind) = match call {
            Call::Send(call, _) => (Ended::Send, call.kind),
            Call::Recv(call, _) => (Ended::Recv, call.kind),
            Call::Rma(call) => (Ended::Rma(call.access), Kind::Message),
            Call::Atomic(call) => (Ended::Atomic(call.kind.form), Kind::Message),
        };
        let end = Completion {
            ended,
            kind,
            context: call.context(),
            tell: Tell::Queue,
            len: 0,
            buf: 0,
            tag: 0,
            data: None,
            source: None,
            released: false,
            peeked: false,
            failure: Some(Failure {
                error: Error::Canceled,
                overflow: 0,
            }),
        };
        self.bindings.tell(&end, FI_ADDR_NOTAVAIL);
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
fn level(flags: u64) -> Level {
    if flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) != 0 {
        Level::Delivery
    } else if flags & FI_TRANSMIT_COMPLETE != 0 {
        Level::Transmit
    } else {
        Level::Inject
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
