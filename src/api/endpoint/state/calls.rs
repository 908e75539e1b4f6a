//! How the calls of a program become operations of an engine: flags and settings are looked up, peers found, and what
//! cannot be is refused.
//!
//! Knows no transport: the owner of a state has the engine too, and lends a closure that finds a peer. Called by the
//! endpoints.

use super::EndpointState;
use super::settings::TxFlags;
use crate::abi::types::*;
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::connection;
use crate::api::endpoint::errno;
use crate::api::errno::{Errno, Result};
use crate::api::log::Speaker;
use crate::api::messaging::{Flags, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, RmaCall};
use crate::engine::op::{
    Access, Atomic, AtomicTarget, CompletionLevel, Error, Form, MessageKind, Peek, Recv, Refused, Rma, Send, Tell,
};
use crate::engine::port::PeerId;
use crate::util::user::UserIov;

impl EndpointState {
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
        if flags.bits & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags.bits));
        }
        let inject = flags.bits & FI_INJECT != 0;
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
            level: self.send_level(call.flags, flags.level),
            fence: flags.bits & FI_FENCE != 0,
            context: call.context,
            tell,
        })
    }

    /// The level of a send. The default one is for those who wait for a completion: MPICH's is delivery, and each of
    /// its injected messages would be acknowledged for nobody.
    #[inline(always)]
    fn send_level(&self, call: Flags, asked: CompletionLevel) -> CompletionLevel {
        match asked {
            CompletionLevel::Inject => CompletionLevel::Inject,
            _ if call.is_inject() && !self.bindings.counts_sends() => CompletionLevel::Inject,
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
        if flags.bits & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags.bits));
        }
        // A read has no source buffer that injecting could give back early.
        let inject = write && flags.bits & FI_INJECT != 0;
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
            level: flags.level,
            fence: flags.bits & FI_FENCE != 0,
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
        if flags.bits & (FI_TRIGGER | FI_COMMIT_COMPLETE) != 0 {
            return Err(not_now(self.provider, flags.bits));
        }
        check_arrays(call)?;
        let inject = flags.bits & FI_INJECT != 0;
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
            fence: flags.bits & FI_FENCE != 0,
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
            multi: (flags & FI_MULTI_RECV != 0 && self.may_be_multi(call)).then_some(self.settings.min_multi_recv),
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
    pub(in crate::api::endpoint) fn send_flags(&self, flags: Flags) -> (TxFlags, Tell) {
        let selective = self.bindings.tx_selective();
        match flags {
            Flags::Endpoint => {
                let flags = self.settings.tx_flags;
                (flags, tell_for(selective, flags.bits))
            }
            Flags::Call(flags) | Flags::Alias(flags) => (TxFlags::of(flags), tell_for(selective, flags)),
            Flags::Own(flags) => (TxFlags::of(flags), Tell::Own),
            Flags::Inject => (self.settings.tx_flags.injected(), Tell::Counters),
            Flags::AliasInject(flags) => (TxFlags::of(flags).injected(), Tell::Counters),
        }
    }

    /// FI_MULTI_RECV among an endpoint's default flags is for the kinds of receives that its capabilities name.
    #[cold]
    fn may_be_multi(&self, call: &RecvCall) -> bool {
        let is_default = matches!(call.flags, Flags::Endpoint | Flags::Alias(_));
        !is_default || call.kind != MessageKind::Tagged || self.settings.tagged_multi
    }

    #[inline]
    fn recv_flags(&self, flags: Flags) -> (u64, Tell) {
        let selective = self.bindings.rx_selective();
        let flags = match flags {
            Flags::Endpoint => self.settings.rx_flags,
            Flags::Call(flags) | Flags::Alias(flags) => flags,
            Flags::Own(flags) => return (flags, Tell::Own),
            Flags::Inject | Flags::AliasInject(_) => 0,
        };
        if self.settings.shared_receives && flags & FI_COMPLETION == 0 {
            return (flags, Tell::ByQueue);
        }
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

pub(in crate::api::endpoint) fn refused(refused: Refused) -> NotBegun {
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
