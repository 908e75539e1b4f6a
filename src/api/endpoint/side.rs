//! The application's side of an endpoint: what it is bound to, its options, and how calls become operations of an engine.
//!
//! Knows no transport; whoever owns a side also has the engine. Called by the endpoints of this folder.

use super::Wire;
use super::bindings::Bindings;
use super::peers::Peers;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::api::refs::Refs;
use crate::engine::op::{Completion, Ended, Level, Look, Recv, Refused, Send};
use crate::engine::port::PeerId;
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
    pub directed: bool,
    pub sourced: bool,
    pub can_send: bool,
    pub can_recv: bool,
    /// ep_attr.tx_ctx_cnt is FI_SHARED_CONTEXT.
    pub shares_tx: bool,
    /// As if the queue for receives were bound with FI_SELECTIVE_COMPLETION.
    pub rx_selective: bool,
}

const DEFAULT_MIN_MULTI_RECV: usize = 64;

impl Settings {
    pub fn of(info: &Info) -> Settings {
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
            shares_tx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == FI_SHARED_CONTEXT),
            rx_selective: false,
        }
    }
}

pub struct Side {
    pub peers: Peers,
    pub bindings: Bindings,
    pub settings: Settings,
    pub enabled: bool,
    /// The transmit context that it shares with others.
    pub stx: Option<Arc<Stx>>,
    /// Known by this to the domain's thread.
    pub driven: Option<u64>,
    /// How many aliases are open.
    pub aliases: Arc<Refs>,
}

impl Side {
    pub fn new(info: &Info) -> Side {
        Side {
            peers: Peers::default(),
            bindings: Bindings::default(),
            settings: Settings::of(info),
            enabled: false,
            stx: None,
            driven: None,
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

    /// Whether it may be enabled: one without what it needs is told what is missing.
    pub fn check(&self) -> Result<()> {
        self.bindings.check(self.settings.can_send, self.settings.can_recv)?;
        if !self.peers.is_bound() {
            log!(Warn, EpCtrl, "fi_enable: no address vector is bound");
            return Err(Errno(FI_ENOAV as i32));
        }
        if self.settings.shares_tx && self.stx.is_none() {
            log!(Warn, EpCtrl, "fi_enable: no shared transmit context is bound");
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
    pub fn outgoing<T: Wire>(&mut self, call: &SendCall, find: impl FnOnce(&[u8]) -> Option<PeerId>) -> Result<Send> {
        if !(self.enabled && self.settings.can_send) {
            return Err(self.unable());
        }
        let (flags, report) = self.send_flags(call.flags);
        let inject = match call.flags {
            Flags::Inject => true,
            Flags::Call(flags) => flags & FI_INJECT != 0,
            Flags::Endpoint | Flags::Alias(_) => false,
        };
        if call.body.len() > self.settings.max_msg_size || inject && call.body.len() > self.settings.inject_size {
            return Err(Errno(FI_EMSGSIZE));
        }
        let to = self.peers.peer::<T>(call.dest, find).ok_or(Errno(FI_EINVAL))?;
        Ok(Send {
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
        })
    }

    /// The receive that a call asks for, or the look.
    #[inline(always)]
    pub fn incoming<T: Wire>(
        &mut self,
        call: &RecvCall,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Result<(Recv, Option<Look>)> {
        if !(self.enabled && self.settings.can_recv) {
            return Err(self.unable());
        }
        let (flags, report) = self.recv_flags(call.flags);
        let from = match call.source {
            FI_ADDR_UNSPEC => None,
            _ if !self.settings.directed => None,
            source => Some(self.peers.sender::<T>(source, find).ok_or(Errno(FI_EINVAL))?),
        };
        let recv = Recv {
            kind: call.kind,
            from,
            tag: call.tag,
            ignore: call.ignore,
            body: call.body,
            multi: (flags & FI_MULTI_RECV != 0).then_some(self.settings.min_multi_recv),
            context: call.context,
            report,
        };
        Ok((recv, look(flags)))
    }

    /// What an end's entry says of its source; None: it must be looked up.
    #[inline]
    pub fn known_source(&self, end: &Completion) -> Option<fi_addr_t> {
        match end.source {
            Some(peer) if self.settings.sourced && end.ended == Ended::Recv => self.peers.known_source(peer),
            _ => Some(FI_ADDR_NOTAVAIL),
        }
    }

    /// Tells queues and counters of an end. `address` is that of a peer.
    #[inline]
    pub fn tell<'a, T: Wire>(&mut self, end: &Completion, address: impl FnOnce(PeerId) -> Option<&'a [u8]>) {
        let source = match end.source {
            Some(peer) if self.settings.sourced && end.ended == Ended::Recv => {
                self.peers.source::<T>(peer, || address(peer))
            }
            _ => FI_ADDR_NOTAVAIL,
        };
        self.bindings.tell(end, source);
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
        let selective = self.bindings.rx_selective() || self.settings.rx_selective;
        let flags = match flags {
            Flags::Endpoint => self.settings.rx_flags,
            Flags::Call(flags) | Flags::Alias(flags) => flags,
            Flags::Inject => 0,
        };
        (flags, !selective || flags & FI_COMPLETION != 0)
    }
}

/// The level that flags ask for.
#[inline]
fn level(flags: u64) -> Level {
    if flags & FI_DELIVERY_COMPLETE != 0 {
        Level::Delivery
    } else if flags & (FI_TRANSMIT_COMPLETE | FI_COMMIT_COMPLETE) != 0 {
        Level::Transmit
    } else {
        Level::Inject
    }
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
