//! What an engine tells of, and who is told of it: queues, counters, regions of memory, the log.
//!
//! Knows nothing of how operations begin. Called by the endpoints, after each call of an engine.

use super::EndpointState;
use crate::abi::types::*;
use crate::api::deferred::work::Call;
use crate::api::endpoint::EndpointTransport;
use crate::api::log::Speaker;
use crate::engine::op::{Completion, Ended, Error, Failure, Kind, RemotePart, Report, Tell};
use crate::engine::port::PeerId;

/// What the engine tells: ends, which the queues are then told of, and refusals, which the log is.
#[derive(Default)]
pub struct PendingCompletions {
    pub completions: Vec<Completion>,
    pub refusals: Vec<Refusal>,
    /// There are refusals, or peers that came: what is seldom, and looked at after the ends.
    pub has_rare: bool,
}

/// A peer may not do what it wanted with memory of ours. It has been told so.
pub struct Refusal {
    pub from: PeerId,
    part: RemotePart,
    error: Error,
}

impl Report for PendingCompletions {
    #[inline(always)]
    fn report(&mut self, completion: Completion) {
        self.completions.push(completion);
    }

    #[cold]
    fn met(&mut self) {
        self.has_rare = true;
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        let part = *part;
        self.has_rare = true;
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

impl EndpointState {
    /// What an end's entry says of its source; None: it must be looked up.
    #[inline(always)]
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
    pub fn report<'a, T: EndpointTransport>(&mut self, end: &Completion, address: impl Fn(PeerId) -> Option<&'a [u8]>) {
        if end.tell == Tell::Own {
            return self.report_own(end);
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
                    return self.bindings.report_stranger(end, raw);
                }
                source
            }
            _ => FI_ADDR_NOTAVAIL,
        };
        if let (Ended::Target { access, key, atomic }, Some(memory)) = (end.ended, &self.memory) {
            memory.touched(key, access, atomic, end.len);
        }
        self.bindings.report(end, source);
    }

    /// Tells the counter of a deferred operation, and queue and counter of the endpoint only if it asked for that.
    #[cold]
    fn report_own(&self, end: &Completion) {
        let Some(landed) = self.deferred.as_ref().and_then(|deferred| deferred.landed(end)) else {
            return;
        };
        if let Some(context) = landed.entry {
            let end = Completion {
                context,
                tell: Tell::Queue,
                ..*end
            };
            self.bindings.report(&end, FI_ADDR_NOTAVAIL);
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
    pub fn report_canceled(&self, call: &Call) {
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
        self.bindings.report(&end, FI_ADDR_NOTAVAIL);
    }
}
