//! Short writes and base atomics, as their initiator sees them: from the push until the target has acknowledged them.
//!
//! They complete in the order they were started, so they have no number: the target counts them, and one `Acked` at the
//! end of a poll completes many. A write that need not be delivered is reported before that, once it has left, if it
//! goes to `known_memory`. Called by `rma`, `atomic`, `recall` and `deliver`; what the target does is in `rma_peer`.

use super::op::{Access, CompletedOp, Completion, Context, Error, Failure, Form, RemotePart, Report, Tell};
use super::peer::Malformed;
use super::pieces::refusal_error;
use super::port::PeerId;
use super::rma_peer::{RmaPeer, rma_completion};
use super::state::Core;
use super::wire::{Header, flag};

/// A short write or base atomic that waits for `Acked`.
#[derive(Debug)]
pub(super) struct ShortOp {
    pub context: Context,
    pub len: usize,
    pub tell: Tell,
    pub kind: ShortKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortKind {
    Atomic,
    Write,
    /// One of several packets of a write, but the last. It completes nothing; if it is refused, the write is.
    Part,
    /// A write that makes its memory known when it is acknowledged (`known_memory`).
    FirstWrite {
        addr: u64,
        key: u64,
    },
    /// A write to known memory, reported when it had left, without hearing from the target.
    UnheardWrite {
        addr: u64,
        key: u64,
    },
    /// A write to known memory that has not left: the transport has gathered it with others.
    GatheredWrite {
        addr: u64,
        key: u64,
    },
}

impl ShortOp {
    pub(super) fn end(&self, to: PeerId, error: Option<Error>) -> Completion {
        let op = match self.kind {
            ShortKind::Atomic => CompletedOp::Atomic(Form::Base),
            _ => CompletedOp::Rma(Access::Write),
        };
        Completion {
            len: if error.is_none() { self.len } else { 0 },
            failure: error.map(|error| Failure { error, overflow: 0 }),
            ..rma_completion(op, to, self.context, self.tell)
        }
    }

    /// Reports its completion, unless that was reported before or another packet's will be.
    fn tell(&self, to: PeerId, error: Option<Error>, report: &mut impl Report) {
        if !matches!(self.kind, ShortKind::UnheardWrite { .. } | ShortKind::Part) {
            report.report(self.end(to, error));
        }
    }
}

impl RmaPeer {
    /// A short operation was pushed. Returns whether the caller must add the peer to `Core::awaiting_answers`.
    #[inline]
    fn expect(&mut self, short: ShortOp) -> bool {
        self.unacked.push_back(short);
        self.watch.begin()
    }

    /// The target has done one of our short operations, or refused it.
    #[inline]
    pub(super) fn ended(&mut self, to: PeerId, short: &ShortOp, error: Option<Error>, report: &mut impl Report) {
        let len = short.len;
        // A write of several parts is refused with any of them.
        let error = self.refused_part.take().or(error);
        match (short.kind, error) {
            (ShortKind::Part, error) => self.refused_part = error,
            (ShortKind::FirstWrite { addr, key }, None) => self.known_memory.add(&RemotePart { addr, len, key }),
            (ShortKind::UnheardWrite { addr, key }, Some(error)) => {
                report.refused_unheard(to, &RemotePart { addr, len, key }, error);
            }
            (ShortKind::GatheredWrite { .. }, _) => self.gathered = self.gathered.saturating_sub(1),
            _ => {}
        }
        if error.is_some() {
            self.known_memory.forget();
        }
        short.tell(to, error, report);
    }

    /// A short operation was done without the target, and removed from this place.
    #[cold]
    pub(super) fn taken_back(&mut self, to: PeerId, short: ShortOp, place: usize, report: &mut impl Report) {
        let before = place.checked_sub(1).and_then(|before| self.unacked.get_mut(before));
        match before.filter(|before| before.kind == ShortKind::Part) {
            // An earlier part of the same write stays with the target, which may refuse it: its answer ends the write.
            Some(part) => *part = short,
            None if place == 0 => self.ended(to, &short, None, report),
            None => {
                // What was refused is a part of the oldest write, and this is none of it.
                let refused_part = self.refused_part.take();
                self.ended(to, &short, None, report);
                self.refused_part = refused_part;
            }
        }
    }

    /// What the transport had gathered has left.
    fn have_left(&mut self, to: PeerId, report: &mut impl Report) {
        for short in self.unacked.iter_mut().rev() {
            if self.gathered == 0 {
                break;
            }
            if let ShortKind::GatheredWrite { addr, key } = short.kind {
                self.gathered -= 1;
                report.report(short.end(to, None));
                short.kind = ShortKind::UnheardWrite { addr, key };
            }
        }
    }
}

impl Core {
    /// The kind of a write that may be reported before it is delivered.
    #[inline]
    pub(super) fn kind_of_write(&self, to: PeerId, part: &RemotePart) -> ShortKind {
        let RemotePart { addr, key, .. } = *part;
        match self.knows(to, part) {
            true => ShortKind::UnheardWrite { addr, key },
            false => ShortKind::FirstWrite { addr, key },
        }
    }

    /// Whether this memory of a peer's is known to be there.
    #[inline]
    pub(super) fn knows(&self, to: PeerId, part: &RemotePart) -> bool {
        let rma = self.peers.get(to as usize).and_then(|peer| peer.rma.as_ref());
        rma.is_some_and(|rma| rma.known_memory.has(part))
    }

    /// A queued short operation was pushed.
    pub(super) fn expect_ack(&mut self, to: PeerId, short: ShortOp) {
        self.unacked += 1;
        if self.peer(to).rma_mut().expect(short) {
            self.awaiting_answers.push(to);
        }
    }

    /// A part of a queued write was pushed, and not the last.
    pub(super) fn part_started(&mut self, to: PeerId, context: Context) {
        self.peer(to).requested_next = true;
        let part = ShortOp {
            context,
            len: 0,
            tell: Tell::Own,
            kind: ShortKind::Part,
        };
        self.short_op_started(to, part);
    }

    /// A short operation was pushed without being queued: it is counted as in flight only here.
    #[inline(always)]
    pub(super) fn short_op_started(&mut self, to: PeerId, short: ShortOp) {
        self.unacked += 1;
        let peer = self.peer(to);
        peer.unfinished += 1;
        if peer.rma_mut().expect(short) {
            self.awaiting_answers.push(to);
        }
    }

    /// The same, and the transport has gathered it.
    #[cold]
    pub(super) fn short_op_gathered(&mut self, to: PeerId, mut short: ShortOp) {
        if let ShortKind::UnheardWrite { addr, key } = short.kind {
            short.kind = ShortKind::GatheredWrite { addr, key };
            let rma = self.peer(to).rma_mut();
            rma.gathered += 1;
            if rma.gathered == 1 {
                self.gathered.push(to);
            }
        }
        self.short_op_started(to, short);
    }

    /// The transport has flushed: writes to known memory, that it had gathered, have left, but for those that it
    /// `holds_back`.
    #[cold]
    pub(super) fn have_left(&mut self, mut holds_back: impl FnMut(PeerId) -> bool, report: &mut impl Report) {
        let peers = &mut self.peers;
        self.gathered.retain(|to| {
            if holds_back(*to) {
                return true;
            }
            // None: the peer was lost meanwhile, and its operations have failed.
            if let Some(rma) = peers.get_mut(*to as usize).and_then(|peer| peer.rma.as_mut()) {
                rma.have_left(*to, report);
            }
            false
        });
    }

    /// The peer acknowledges short operations with `Acked`.
    pub(super) fn acked(&mut self, from: PeerId, header: &Header, report: &mut impl Report) -> Result<(), Malformed> {
        let refused = (header.flags & flag::FAILED != 0).then(|| refusal_error(header.data));
        let many = usize::try_from(header.total).map_err(|_| Malformed)?;
        self.ends_short(from, many, refused, report)?;
        if header.flags & flag::ACK != 0 {
            self.peer(from).rma_mut().known_memory.forget();
        }
        Ok(())
    }

    /// The peer acknowledges short operations with a write.
    #[cold]
    pub(super) fn acked_along(&mut self, from: PeerId, many: u32, report: &mut impl Report) -> Result<(), Malformed> {
        self.ends_short(from, many as usize, None, report)
    }

    /// The oldest `many` operations are done; the one after them was refused, if there is an error.
    #[inline]
    fn ends_short(
        &mut self,
        from: PeerId,
        many: usize,
        refused: Option<Error>,
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let ends = many.checked_add(usize::from(refused.is_some())).ok_or(Malformed)?;
        let peer = self.peer(from);
        let rma = peer.rma_mut();
        rma.watch.heard = rma.watch.heard.wrapping_add(1);
        if ends > rma.unacked.len() {
            return Err(Malformed);
        }
        for end in 0..ends {
            let Some(short) = rma.unacked.pop_front() else { break };
            rma.ended(from, &short, if end < many { None } else { refused }, report);
        }
        peer.unfinished = peer.unfinished.saturating_sub(ends as u32);
        let waited_for = !peer.queue.is_empty();
        self.unacked = self.unacked.saturating_sub(ends);
        if waited_for {
            self.wake(from);
        }
        Ok(())
    }

    /// Fails all short operations to a peer that is gone, whose state was already reset.
    pub(super) fn end_short_ops(
        &mut self,
        peer: PeerId,
        rma: Option<Box<RmaPeer>>,
        error: Error,
        report: &mut impl Report,
    ) {
        let Some(rma) = rma else { return };
        self.end_exposed_reads(peer, rma.exposed_reads, rma.served_reads);
        for short in rma.unacked {
            self.unacked = self.unacked.saturating_sub(1);
            short.tell(peer, Some(error), report);
        }
    }
}
