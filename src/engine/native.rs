//! Reads, writes and atomics that the transport does in a peer's memory, as a card does (`port::OneSided`).
//!
//! Whether an endpoint works so is settled when it is made: `Core::one_sided` says which operations are the
//! transport's, and it gets every one of them. They go through the peer's queue like everything else, so that they keep
//! their place among messages; the transport takes them from its front, as many as it likes at once. A peer that cannot
//! be reached so (`Get::Unsupported`) is asked with packets, by the ways of `rma` and `atomic`.
//!
//! Atomics that the target's processor executes are in order with copies only once they are answered, so copies wait
//! for them (`Holds::COPIES`). Called by `rma`, `atomic`, `outgoing` and `pushing`, and by `deliver` for what has
//! completed.

use super::endpoint::Engine;
use super::next_packet::{NextPacket, Purpose};
use super::op::{Access, Atomic, AtomicOp, AtomicTarget, Error, Failure, Form, Refused, Report, Rma, untold};
use super::outgoing::{Holds, LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, QueuedAtomic};
use super::peer::Detours;
use super::port::{Amo, CopyOp, Get, Local, NotDone, PeerId, Push, Transport};
use super::rma_target::target_completion;
use super::state::{Core, GetOwner};
use super::wire::{Header, Packet};
use crate::util::slab::Id;

/// The size of the elements that cards work on.
const ELEMENT: usize = 8;

/// The key in the report of a peer's write that only says its remote CQ data: no region has it.
const NO_KEY: u64 = u64::MAX;

impl<T: Transport> Engine<T> {
    /// The atomics that are the transport's: then there are no others. None: the targets' engines do all.
    pub fn amos(&self) -> &'static [AtomicOp] {
        self.core.one_sided.atomics
    }

    /// Whether reads and writes are the transport's.
    #[inline(always)]
    pub(super) fn copies_natively(&self) -> bool {
        T::ONE_SIDED && self.core.one_sided.copies
    }

    /// Whether atomics on memory are the transport's.
    #[inline(always)]
    pub(super) fn has_amos(&self) -> bool {
        T::ONE_SIDED && !self.core.one_sided.atomics.is_empty()
    }

    /// Queues a read or write, which begins at once if nothing is queued before it.
    #[inline(never)]
    pub(super) fn rma_native(&mut self, rma: &Rma, report: &mut impl Report) -> Result<(), Refused> {
        self.queue(rma.to, untold(rma.inject, rma.tell), || Outgoing::rma(rma), report)
    }

    /// Queues an atomic. Only those of the transport: any other would have to be executed by the target's processor,
    /// which is not atomic against the card.
    #[inline(never)]
    pub(super) fn atomic_native(&mut self, atomic: &Atomic, report: &mut impl Report) -> Result<(), Refused> {
        if atomic.len != ELEMENT {
            return Err(Refused::TooLong);
        }
        let one_piece = match &atomic.target {
            AtomicTarget::Memory(remote) => remote.only().is_some(),
            AtomicTarget::Tagged { .. } => false,
        };
        if !one_piece || atomic.data.is_some() || !self.core.one_sided.atomics.contains(&atomic.op) {
            return Err(Refused::Unsupported);
        }
        self.queue(
            atomic.to,
            untold(atomic.inject, atomic.tell),
            || Outgoing::atomic(atomic),
            report,
        )
    }

    /// Has the transport begin the operation at the front of the queue.
    #[cold]
    pub(super) fn begin_native(&mut self, to: PeerId, id: Id, report: &mut impl Report) -> Push {
        let got = match self.core.outgoing.get(id) {
            Some(outgoing) => begin(&mut self.transport, outgoing, GetOwner::Read(id)),
            None => return Push::Full,
        };
        let end = match got {
            Get::Full => return Push::Full,
            Get::Gone => return Push::Gone,
            Get::Unsupported => {
                if let Some(outgoing) = self.core.outgoing.get_mut(id) {
                    outgoing.stage = Stage::AskPeer;
                }
                return Push::Done;
            }
            Get::Later => None,
            Get::Done => Some(None),
            Get::Failed(error) => Some(Some(error)),
        };
        self.core.peer(to).queue.pop_front();
        match end {
            None => self.core.native_begun(id),
            Some(error) => self.core.end_outgoing(id, error.map(failed), report),
        }
        Push::Done
    }
}

fn failed(error: Error) -> Failure {
    Failure { error, overflow: 0 }
}

fn begin<T: Transport>(transport: &mut T, outgoing: &Outgoing, owner: GetOwner) -> Get {
    let (access, remote_side) = match &outgoing.op {
        OutgoingOp::Write(remote_side) => (Access::Write, remote_side),
        OutgoingOp::Read(remote_side) => (Access::Read, remote_side),
        OutgoingOp::Atomic(operation) => return begin_amo(transport, outgoing, operation, owner),
        OutgoingOp::Message | OutgoingOp::PulledRead(_) | OutgoingOp::AtomicSent(_) => return Get::Unsupported,
    };
    let remote = remote_side.iov(outgoing.tag, outgoing.len);
    let copy = CopyOp {
        access,
        parts: remote.parts(),
        local: match &outgoing.local {
            LocalBuffer::User(iov) => Local::User(iov),
            LocalBuffer::Copy(bytes) => Local::Bytes(bytes),
        },
        data: outgoing.data,
    };
    transport.copy(outgoing.to, &copy, owner.token())
}

fn begin_amo<T: Transport>(transport: &mut T, outgoing: &Outgoing, operation: &QueuedAtomic, owner: GetOwner) -> Get {
    let (AtomicTarget::Memory(remote), LocalBuffer::Copy(operands)) = (&operation.target, &outgoing.local) else {
        return Get::Unsupported;
    };
    let Some(part) = remote.only() else {
        return Get::Unsupported;
    };
    let compares = operation.op.form() == Form::Compare;
    let at = operands.len() - if compares { outgoing.len } else { 0 };
    let (operand, compare) = operands.split_at_checked(at).unwrap_or_default();
    let amo = Amo {
        op: operation.op,
        part,
        operand,
        compare,
        result: &operation.result,
    };
    transport.amo(outgoing.to, &amo, owner.token())
}

impl Outgoing {
    /// What must wait until the transport has completed it.
    fn holds_natively(&self, core: &Core) -> Holds {
        let ordered = match self.op {
            OutgoingOp::Write(_) => core.one_sided.ordered_after_write,
            _ => core.one_sided.ordered_after_read,
        };
        if ordered { Holds::NOTHING } else { Holds::MESSAGES }
    }
}

impl Core {
    /// The operation at the front of the queue, if it is the transport's. The outer None: it is not; the inner: it must
    /// wait.
    pub(super) fn next_native(&self, to: PeerId, id: Id, outgoing: &Outgoing) -> Option<Option<NextPacket>> {
        let native = match &outgoing.op {
            OutgoingOp::Write(_) | OutgoingOp::Read(_) => self.one_sided.copies,
            OutgoingOp::Atomic(operation) => {
                matches!(operation.target, AtomicTarget::Memory(_)) && !self.one_sided.atomics.is_empty()
            }
            OutgoingOp::Message | OutgoingOp::PulledRead(_) | OutgoingOp::AtomicSent(_) => false,
        };
        if !native || outgoing.stage == Stage::AskPeer {
            return None;
        }
        let rma = self.peers.get(to as usize).and_then(|peer| peer.rma.as_ref());
        if rma.is_some_and(|rma| rma.unanswered_atomics > 0 || !rma.unacked.is_empty()) {
            return Some(None); // the target's processor is still at an atomic before it
        }
        let header = Header::new(Packet::Write, 0);
        Some(Some(NextPacket::bare(Purpose::Native(id), header)))
    }

    /// The transport has begun it and will say when it is over.
    fn native_begun(&mut self, id: Id) {
        let Some(outgoing) = self.outgoing.get(id) else { return };
        let (to, holds) = (outgoing.to, outgoing.holds_natively(self));
        if let Some(outgoing) = self.outgoing.get_mut(id) {
            outgoing.stage = Stage::Fetching;
        }
        self.hold(to, id, holds);
    }

    /// From now until the operation ends, these operations to its peer wait.
    pub(super) fn hold(&mut self, to: PeerId, id: Id, holds: Holds) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        outgoing.holds.add(holds);
        if holds.has(Holds::COPIES) {
            self.peer(to).rma_mut().unanswered_atomics += 1;
        }
        if holds.has(Holds::MESSAGES) {
            self.peer(to).count_long_op(true);
        }
    }

    /// A copy or atomic that the transport began, natively or for `direct`, is over.
    #[cold]
    pub(super) fn copied(&mut self, id: Id, result: Result<(), NotDone>, report: &mut impl Report) {
        match result {
            Ok(()) => self.end_outgoing(id, None, report),
            Err(NotDone::Failed(error)) => self.end_outgoing(id, Some(failed(error)), report),
            Err(NotDone::AskPeer) => self.ask_peer(id),
        }
    }

    /// The transport could not do it after all. It goes to the front of the queue, since everything that must not
    /// overtake it has waited.
    fn ask_peer(&mut self, id: Id) {
        let native = self.one_sided.copies;
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        outgoing.stage = if native { Stage::AskPeer } else { Stage::Queued };
        let (to, holds) = (outgoing.to, std::mem::replace(&mut outgoing.holds, Holds::NOTHING));
        self.release(to, id, holds);
        self.peer(to).queue.push_front(id);
        self.wake(to);
    }

    /// What an operation held need not wait for it any more.
    #[inline(never)]
    pub(super) fn release(&mut self, to: PeerId, id: Id, holds: Holds) {
        if holds.has(Holds::EXPOSURE) {
            self.end_exposure(to, id);
        }
        let peer = self.peer(to);
        if let Some(rma) = peer.rma.as_mut().filter(|_| holds.has(Holds::COPIES)) {
            rma.unanswered_atomics = rma.unanswered_atomics.saturating_sub(1);
        }
        if peer.rma.is_some() && holds.has(Holds::MESSAGES) {
            peer.count_long_op(false);
        }
    }

    /// A peer's card has written to our memory and gave us its remote CQ data.
    pub(super) fn written(&mut self, from: PeerId, len: usize, data: u64, report: &mut impl Report) {
        if !self.peer(from).detours.has(Detours::SHUNNED) {
            report.report(target_completion(from, Access::Write, NO_KEY, false, len, Some(data)));
        }
    }
}
