//! The way back: what the engine reports goes to queues, counters, memory regions and the log.
//!
//! Knows nothing of how operations begin. Called by `engine_core`, during and after each call of the engine.

use super::EndpointState;
use crate::abi::types::*;
use crate::api::av::string::text;
use crate::api::cntr::Cntr;
use crate::api::deferred::work::Call;
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::bindings::Bindings;
use crate::api::errno::Errno;
use crate::api::log::Speaker;
use crate::engine::op::{CompletedOp, Completion, Error, MessageKind, RemotePart, Report, Tell};
use crate::engine::port::PeerId;
use crate::sys::resolve::from_bytes;
use std::sync::Arc;

/// Completions that the engine has reported and no queue has yet, and refusals that the log does not have yet.
#[derive(Default)]
pub struct PendingCompletions {
    pub completions: Vec<Completion>,
    pub refusals: Vec<Refusal>,
    /// There are refusals, or peers that came or went: looked at after the completions, and rarely.
    pub rare: bool,
}

/// A peer was refused access to memory here, and has been told so; or it has refused a write that was reported as done.
pub struct Refusal {
    pub peer: PeerId,
    part: RemotePart,
    error: Error,
    /// The peer has refused a write of ours, whose completion had been reported.
    unheard: bool,
}

impl Report for &mut PendingCompletions {
    #[inline(always)]
    fn report(&mut self, completion: Completion) {
        self.completions.push(completion);
    }

    fn has_told(&self) -> bool {
        !self.completions.is_empty()
    }

    #[cold]
    fn met(&mut self) {
        self.rare = true;
    }

    #[cold]
    fn refused(&mut self, from: PeerId, part: &RemotePart, error: Error) {
        self.keep_refusal(from, part, error, false);
    }

    #[cold]
    fn refused_unheard(&mut self, by: PeerId, part: &RemotePart, error: Error) {
        self.keep_refusal(by, part, error, true);
    }
}

impl PendingCompletions {
    /// Keeps a completion that cannot be reported at once, which is rare.
    #[cold]
    pub fn keep(&mut self, completion: Completion) {
        self.completions.push(completion);
    }

    fn keep_refusal(&mut self, peer: PeerId, part: &RemotePart, error: Error, unheard: bool) {
        self.rare = true;
        self.refusals.push(Refusal {
            peer,
            part: *part,
            error,
            unheard,
        });
    }
}

impl Refusal {
    /// Writes the log line that an administrator looks for. `address` is the peer's, in the form that programs have.
    pub fn log(&self, provider: Speaker, address: Option<&[u8]>) {
        let peer = address.map_or_else(|| "an unknown peer".into(), in_words);
        let why = match self.error {
            Error::NoKey => "no such key",
            Error::NoRights => "the region was not registered for it",
            Error::OutOfRange => "outside the region",
            _ => "not possible",
        };
        let RemotePart { addr, len, key } = self.part;
        if self.unheard {
            log!(
                by provider;
                Warn,
                EpData,
                "{peer} refused a write of {len} bytes to {addr:#x} with key {key:#x}, which was reported as done: {why}. With \
                 FI_DELIVERY_COMPLETE its completion says so"
            );
            return;
        }
        log!(
            by provider;
            Info,
            Mr,
            "refused {peer} access to {len} bytes at {addr:#x} with key {key:#x}: {why}"
        );
    }
}

/// An address as people write it: that of a socket, or a text.
fn in_words(address: &[u8]) -> String {
    match from_bytes(address) {
        Some(place) => place.to_string(),
        None => String::from_utf8_lossy(text(address)).into_owned(),
    }
}

impl EndpointState {
    /// The source address for a completion's entry; None: the transport must be asked, or more than queue and counter
    /// must hear of it, so it cannot be reported at once.
    #[inline(always)]
    pub fn known_source(&self, end: &Completion) -> Option<fi_addr_t> {
        match (end.op, end.source) {
            // The runner, deferred work or a region must hear of these.
            _ if end.kind == MessageKind::Collective || end.tell == Tell::Own => None,
            (CompletedOp::Target { .. }, _) => None,
            (CompletedOp::Recv, Some(peer)) if self.settings.sourced => {
                let known = self.peers.known_source(peer);
                known.filter(|source| *source != FI_ADDR_NOTAVAIL || !self.settings.names_strangers)
            }
            _ => Some(FI_ADDR_NOTAVAIL),
        }
    }

    /// Reports a completion to queues, counters and regions. `address` gives the address of a peer.
    #[inline]
    pub fn report<'a, T: EndpointTransport>(&mut self, end: &Completion, address: impl Fn(PeerId) -> Option<&'a [u8]>) {
        let named = match end.op {
            CompletedOp::Recv => true,
            CompletedOp::Target { .. } => end.tell == Tell::Queue,
            CompletedOp::Send | CompletedOp::Rma(_) | CompletedOp::Atomic(_) => false,
        };
        let source = match end.source {
            Some(peer) if named && self.settings.sourced => {
                let source = self.peers.source::<T>(peer, || address(peer));
                let stranger = source == FI_ADDR_NOTAVAIL && end.op == CompletedOp::Recv && !end.peeked;
                if stranger && self.settings.names_strangers && end.failure.is_none() {
                    let raw = T::raw_address(T::base_address(address(peer).unwrap_or_default()));
                    let (told, key) = (self.peers.told(raw), self.peers.key_of_strangers());
                    return match end.tell {
                        Tell::Own => self.report_own(end, |own, end| own.report_stranger(end, told, key)),
                        _ => self.bindings.report_stranger(end, told, key),
                    };
                }
                source
            }
            _ => FI_ADDR_NOTAVAIL,
        };
        if end.tell == Tell::Own {
            return self.report_own(end, |own, end| own.report(end, source));
        }
        if let (CompletedOp::Target { access, key, atomic }, Some(memory)) = (end.op, &self.memory) {
            memory.touched(key, access, atomic, end.len);
        }
        self.bindings.report(end, source);
    }

    /// Reports a deferred operation to the counter that it names, and to the endpoint's queue and counter only if the
    /// program asked for that.
    #[cold]
    fn report_own(&self, end: &Completion, report: impl FnOnce(&Bindings, &Completion)) {
        let Some(landed) = self.deferred.as_ref().and_then(|deferred| deferred.landed(end)) else {
            return;
        };
        if let Some(context) = landed.entry {
            let end = Completion {
                context,
                tell: Tell::Queue,
                ..*end
            };
            report(&self.bindings, &end);
        }
        let Some(counted) = &landed.counted else { return };
        // If it is the endpoint's counter too, `report` has counted the operation already.
        let twice = landed.entry.is_some() && self.bindings.counts_with(end.op, counted.cntr());
        match end.failure {
            _ if twice => {}
            None => counted.cntr().advance(1),
            Some(_) => counted.cntr().fail(),
        }
    }

    /// Reports an operation that waited for a counter and never began: it was cancelled, or refused for good.
    /// `counted`: a counter of its own, which it has failed too.
    #[cold]
    pub fn report_not_begun(&self, call: &Call, error: Errno, counted: Option<&Arc<Cntr>>) {
        let (op, kind) = match call {
            Call::Send(call, _) => (CompletedOp::Send, call.kind),
            Call::Recv(call, _) => (CompletedOp::Recv, call.kind),
            Call::Rma(call) => (CompletedOp::Rma(call.access), MessageKind::Untagged),
            Call::Atomic(call) => (CompletedOp::Atomic(call.kind.form), MessageKind::Untagged),
        };
        let end = Completion {
            op,
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
            failure: None,
        };
        self.bindings.report_not_begun(&end, error);
        // It may be the endpoint's, which has counted it already.
        if let Some(cntr) = counted.filter(|cntr| !self.bindings.counts_with(op, cntr)) {
            cntr.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use crate::sys::resolve::to_bytes;

    #[test]
    fn addresses_are_written_as_people_write_them() {
        let place = "192.0.2.7:99".parse().unwrap();
        assert_eq!(in_words(&to_bytes(&place)), "192.0.2.7:99");
        assert_eq!(in_words(b"name\0"), "name");
    }
}
