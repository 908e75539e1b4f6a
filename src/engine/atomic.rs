//! Atomic operations, as their initiator sees them: always one packet, which contains the operands.
//!
//! A base atomic is acknowledged like a short write; fetching and comparing ones have a number and are answered with
//! the old values.

use super::credit;
use super::endpoint::Engine;
use super::kernel::code;
use super::op::{
    Atomic, AtomicTarget, CompletedOp, Completion, CompletionLevel, Error, Failure, Form, MessageKind, Refused,
    RemotePart, Report, untold,
};
use super::outgoing::{LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, QueuedAtomic};
use super::peer::Detours;
use super::pieces::LIST;
use super::port::{Body, Notice, PeerId, Push, Transport};
use super::rma::{answered, with_remote};
use super::rma_peer::rma_completion;
use super::short_op::{ShortKind, ShortOp};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

fn packet(form: Form) -> Packet {
    match form {
        Form::Base => Packet::Atomic,
        Form::Fetch => Packet::FetchAtomic,
        Form::Compare => Packet::CompareAtomic,
    }
}

/// The header's `total` and its flag: remote CQ data of a base atomic, the length of all others.
fn total(form: Form, data: Option<u64>, len: usize) -> (u8, u64) {
    match (form, data) {
        (Form::Base, Some(data)) => (flag::DATA, data),
        (Form::Base, None) => (0, 0),
        (Form::Fetch | Form::Compare, _) => (0, len as u64),
    }
}

impl Outgoing {
    pub(super) fn atomic(atomic: &Atomic) -> Outgoing {
        let operand = atomic.operand.len();
        let compare = if atomic.op.form() == Form::Compare {
            atomic.len
        } else {
            0
        };
        let mut operands = vec![0; operand + compare].into_boxed_slice();
        let (first, second) = operands.split_at_mut(operand);
        atomic.operand.read(0, first);
        atomic.compare.read(0, second);
        let operation = QueuedAtomic {
            op: atomic.op,
            target: atomic.target,
            result: atomic.result,
        };
        let (kind, tag) = match atomic.target {
            AtomicTarget::Memory(_) => (MessageKind::Untagged, 0),
            AtomicTarget::Tagged { tag, .. } => (MessageKind::Tagged, tag),
        };
        let (op, level) = (OutgoingOp::Atomic(Box::new(operation)), CompletionLevel::Delivery);
        Outgoing {
            kind,
            tag,
            data: atomic.data,
            local: LocalBuffer::Copy(operands),
            fence: atomic.fence,
            ..Outgoing::bare(atomic.to, op, atomic.len, level, atomic.tell, atomic.context)
        }
    }
}

impl Atomic {
    /// Whether any of its buffers is in several pieces.
    fn in_pieces(&self) -> bool {
        let remote = match &self.target {
            AtomicTarget::Memory(remote) => remote.parts().len(),
            AtomicTarget::Tagged { .. } => 0,
        };
        let ours = [&self.operand, &self.compare, &self.result];
        remote > 1 || ours.iter().any(|iov| iov.parts().len() > 1)
    }
}

/// The header for a target in one piece.
fn one(atomic: &Atomic, part: &RemotePart, id: u32) -> Header {
    let (flags, total) = total(atomic.op.form(), atomic.data, atomic.len);
    Header {
        flags,
        code: code(atomic.op),
        tag: part.addr,
        data: part.key,
        total,
        ..Header::new(packet(atomic.op.form()), id)
    }
}

impl<T: Transport> Engine<T> {
    /// The most bytes that an atomic of this form can work on. It goes in one packet, also where messages of its length
    /// are offered.
    pub fn atomic_limit(&self, form: Form) -> usize {
        let most = self.core.limits.max_body.saturating_sub(LIST);
        match form {
            Form::Base | Form::Fetch => most,
            Form::Compare => most / 2,
        }
    }

    /// Starts an atomic operation on a peer's memory.
    pub fn atomic(&mut self, atomic: &Atomic, report: &mut impl Report) -> Result<(), Refused> {
        if let Some(done) = self.try_direct_atomic(atomic) {
            report.report(done);
            return Ok(());
        }
        self.start_atomic(atomic, report)
    }

    /// As `try_direct_rma`.
    #[inline(always)]
    pub fn try_direct_atomic(&mut self, atomic: &Atomic) -> Option<Completion> {
        let may = atomic.len <= self.atomic_limit(atomic.op.form()) && fits(atomic);
        (may && self.atomic_direct(atomic)).then(|| atomic.done())
    }

    /// As `start_rma`.
    #[inline(always)]
    pub fn start_atomic(&mut self, atomic: &Atomic, report: &mut impl Report) -> Result<(), Refused> {
        self.atomic_asked(*atomic, report)
    }

    /// Sends it to the target. Takes the operation by value, for the reason that `send_long` does.
    #[inline(never)]
    fn atomic_asked(&mut self, atomic: Atomic, report: &mut impl Report) -> Result<(), Refused> {
        if atomic.len > self.atomic_limit(atomic.op.form()) {
            return Err(Refused::TooLong);
        }
        if !fits(&atomic) {
            return Err(Refused::Invalid);
        }
        let atomic = &atomic;
        if self.has_amos() && matches!(atomic.target, AtomicTarget::Memory(_)) {
            return self.atomic_native(atomic, report);
        }
        if self.copies_natively() {
            return self.atomic_queued(atomic, report);
        }
        if atomic.in_pieces() && self.atomic_direct_pieces(atomic) {
            report.report(atomic.done());
            return Ok(());
        }
        let part = match &atomic.target {
            AtomicTarget::Memory(remote) if !atomic.fence => only(remote.parts()),
            _ => None,
        };
        if let (Some(part), Some(operands), true) = (part, operands(atomic), self.core.may_start_short(atomic.to)) {
            return match atomic.op.form() {
                Form::Base => self.atomic_base(atomic, part, &operands, report),
                Form::Fetch | Form::Compare => self.atomic_fetch(atomic, part, &operands, report),
            };
        }
        self.atomic_queued(atomic, report)
    }

    #[cold]
    fn atomic_queued(&mut self, atomic: &Atomic, report: &mut impl Report) -> Result<(), Refused> {
        self.queue(
            atomic.to,
            untold(atomic.inject, atomic.tell),
            || Outgoing::atomic(atomic),
            report,
        )
    }

    fn atomic_base(
        &mut self,
        atomic: &Atomic,
        part: &RemotePart,
        operands: &UserIov,
        report: &mut impl Report,
    ) -> Result<(), Refused> {
        let (header, notice) = (one(atomic, part, 0), answered(atomic.inject, atomic.tell));
        match Self::push_to_be_answered(&mut self.transport, atomic.to, &header, whole(operands), notice) {
            Push::Done => {
                let short = ShortOp {
                    context: atomic.context,
                    len: atomic.len,
                    tell: atomic.tell,
                    kind: ShortKind::Atomic,
                };
                self.core.short_op_started(atomic.to, short);
                Ok(())
            }
            Push::Full => self.atomic_queued(atomic, report),
            push => Self::not_started(push, broken(atomic), report),
        }
    }

    fn atomic_fetch(
        &mut self,
        atomic: &Atomic,
        part: &RemotePart,
        operands: &UserIov,
        report: &mut impl Report,
    ) -> Result<(), Refused> {
        if self.core.outgoing.len() >= Id::SHORT_MAX {
            return Err(Refused::Again);
        }
        let op = OutgoingOp::AtomicSent(atomic.op.form());
        let level = CompletionLevel::Delivery;
        let id = self.core.outgoing.insert(Outgoing {
            stage: Stage::Sent,
            local: LocalBuffer::User(atomic.result),
            ..Outgoing::bare(atomic.to, op, atomic.len, level, atomic.tell, atomic.context)
        });
        let (header, notice) = (one(atomic, part, id.short()), Some(Notice::ANSWERED));
        match Self::push_to_be_answered(&mut self.transport, atomic.to, &header, whole(operands), notice) {
            Push::Done => {
                self.core.op_started(atomic.to);
                Ok(())
            }
            push => {
                self.core.outgoing.remove(id);
                if push == Push::Full {
                    return self.atomic_queued(atomic, report);
                }
                Self::not_started(push, broken(atomic), report)
            }
        }
    }
}

/// Whether each buffer has the length that the operation needs.
#[inline(always)]
fn fits(atomic: &Atomic) -> bool {
    let len = atomic.len;
    let remote = match &atomic.target {
        AtomicTarget::Memory(remote) => remote.len() == len,
        AtomicTarget::Tagged { .. } => true,
    };
    // FI_ATOMIC_READ has no operand.
    let operand = atomic.operand.len() == len || atomic.op.form() == Form::Fetch && atomic.operand.is_empty();
    let compare = atomic.op.form() != Form::Compare || atomic.compare.len() == len;
    let result = atomic.op.form() == Form::Base || atomic.result.len() == len;
    remote && operand && compare && result
}

fn only(parts: &[RemotePart]) -> Option<&RemotePart> {
    match parts {
        [part] => Some(part),
        _ => None,
    }
}

/// Both operands as one buffer, if they are not too many pieces.
fn operands(atomic: &Atomic) -> Option<UserIov> {
    match atomic.op.form() {
        Form::Base | Form::Fetch => Some(atomic.operand),
        Form::Compare => UserIov::new(atomic.operand.parts().iter().chain(atomic.compare.parts()).copied()),
    }
}

fn whole(iov: &UserIov) -> Body<'_> {
    match iov.len() {
        0 => Body::Empty,
        len => Body::User { iov, at: 0, len },
    }
}

fn broken(atomic: &Atomic) -> Completion {
    let failure = Failure {
        error: Error::PeerGone,
        overflow: 0,
    };
    Completion {
        failure: Some(failure),
        ..rma_completion(
            CompletedOp::Atomic(atomic.op.form()),
            atomic.to,
            atomic.context,
            atomic.tell,
        )
    }
}

impl Core {
    /// The header of an atomic that was queued, if it may go now.
    pub(super) fn atomic_header(
        &self,
        to: PeerId,
        id: Id,
        outgoing: &Outgoing,
        operation: &QueuedAtomic,
    ) -> Option<Header> {
        let peer = self.peers.get(to as usize)?;
        if peer.detours.has(Detours::LONG_OPS) {
            return None; // an atomic must not overtake long reads and writes before it
        }
        let (flags, total) = total(operation.op.form(), outgoing.data, outgoing.len);
        let header = Header {
            flags,
            code: code(operation.op),
            total,
            ..Header::new(packet(operation.op.form()), id.short())
        };
        match &operation.target {
            AtomicTarget::Memory(remote) => Some(with_remote(header, remote)),
            AtomicTarget::Tagged { tag, at } => {
                // The target may keep it as an unexpected message, so it costs credit like one.
                let afford = credit::cost(outgoing.local.len()) <= peer.credit;
                let free = if afford { 0 } else { flag::WITHHELD };
                (afford || peer.withholds_credit).then_some(Header {
                    flags: flags | flag::TAGGED | free,
                    tag: *at,
                    data: *tag,
                    ..header
                })
            }
        }
    }
}
