//! RMA and atomics that the transport does in the peer's memory without the peer.
//!
//! The transport knows whether it can; this file decides when it may: no earlier operation to the peer may be queued or
//! long and in flight, and the target must not have to report anything. They are complete when the call returns, except
//! long copies, which may go on.

use super::endpoint::Engine;
use super::kernel::Kernel;
use super::op::{Access, Atomic, AtomicTarget, CompletedOp, Completion, RemotePart, Report, Rma};
use super::outgoing::{Holds, Outgoing, Stage};
use super::port::{CopyOp, Get, Local, PeerId, Transport};
use super::rma_peer::rma_completion;
use super::state::{Core, GetOwner};
use crate::util::regions::Rights;
use crate::util::slab::Id;
use crate::util::user::{UserBuf, UserIov};

impl Rma {
    /// The completion of an operation that was done directly.
    pub(super) fn done(&self) -> Completion {
        Completion {
            len: self.local.len(),
            ..rma_completion(CompletedOp::Rma(self.access), self.to, self.context, self.tell)
        }
    }
}

impl Atomic {
    pub(super) fn done(&self) -> Completion {
        Completion {
            len: self.len,
            ..rma_completion(CompletedOp::Atomic(self.op.form()), self.to, self.context, self.tell)
        }
    }
}

/// The piece of a buffer that has at most one; an empty one if it has none.
#[inline(always)]
fn only(iov: &UserIov) -> Option<UserBuf> {
    if iov.is_empty() {
        Some(UserBuf::default())
    } else {
        iov.only()
    }
}

impl Core {
    /// Whether an operation may be done before any packet: nothing to this peer is queued or long. With a fence,
    /// nothing is in flight at all.
    #[inline(always)]
    fn nothing_pending(&self, to: PeerId, fence: bool) -> bool {
        let Some(peer) = self.peers.get(to as usize) else {
            return true;
        };
        peer.queue.is_empty() && !peer.is_off_fast_path() && !(fence && peer.unfinished > 0)
    }

    /// A copy goes on after the call that started it: it counts as a long operation.
    #[cold]
    fn copying(&mut self, id: Id) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        outgoing.stage = Stage::Fetching;
        let to = outgoing.to;
        self.peer(to).unfinished += 1;
        self.hold(to, id, Holds::MESSAGES);
    }
}

impl<T: Transport> Engine<T> {
    /// Does a read or write of one remote piece, if it is mapped here.
    #[inline(always)]
    pub(super) fn rma_direct(&mut self, rma: &Rma) -> bool {
        if rma.data.is_some() || !self.core.nothing_pending(rma.to, rma.fence) {
            return false;
        }
        let Some(part) = rma.remote.only() else { return false };
        let local = &rma.local;
        match rma.access {
            Access::Write => self.transport.reach(
                rma.to,
                &part,
                Rights::WRITE,
                #[inline(always)]
                |memory| memory.fill(local),
            ),
            Access::Read => self.transport.reach(
                rma.to,
                &part,
                Rights::READ,
                #[inline(always)]
                |memory| memory.pour(local),
            ),
        }
        .is_some()
    }

    /// As `rma_direct`, for several remote pieces.
    #[cold]
    pub(super) fn rma_direct_pieces(&mut self, rma: &Rma) -> bool {
        if rma.data.is_some() || !self.core.nothing_pending(rma.to, rma.fence) {
            return false;
        }
        let (parts, local) = (rma.remote.parts(), &rma.local);
        let done = match rma.access {
            Access::Write => self
                .transport
                .reach_all(rma.to, parts, Rights::WRITE, |memory| local.copy_to(memory)),
            Access::Read => self
                .transport
                .reach_all(rma.to, parts, Rights::READ, |memory| memory.copy_to(local)),
        };
        done.is_some()
    }

    /// Has the transport copy one remote piece that is not mapped. True: it is done, or its completion will follow.
    pub(super) fn rma_copied(&mut self, rma: &Rma, part: &RemotePart, report: &mut impl Report) -> bool {
        let room = self.core.outgoing.len() < Id::SHORT_MAX;
        // An injected buffer may be reused when the call returns, and a long copy may go on after that.
        let gone = rma.inject && rma.local.len() >= self.small_to(rma.to);
        if gone || rma.data.is_some() || !room || !self.core.nothing_pending(rma.to, rma.fence) {
            return false;
        }
        // Most copies are over when the call returns: only for one that is not is there anything to keep.
        let token = GetOwner::Read(self.core.outgoing.next_id()).token();
        let copy = CopyOp {
            access: rma.access,
            parts: core::slice::from_ref(part),
            local: Local::User(&rma.local),
            data: None,
        };
        match self.transport.copy(rma.to, &copy, token) {
            Get::Later => {
                let id = self.core.outgoing.insert(Outgoing::rma(rma));
                self.core.copying(id);
            }
            Get::Done => report.report(rma.done()),
            _ => return false,
        }
        true
    }

    /// The kernel for an atomic that may be done directly. None: the target is to be asked.
    #[inline(always)]
    fn kernel(&self, atomic: &Atomic) -> Option<Kernel> {
        if atomic.data.is_some() || !self.core.nothing_pending(atomic.to, atomic.fence) {
            return None;
        }
        Some(Kernel(atomic.op))
    }

    /// Does an atomic whose buffers are all in one piece, if the target is mapped and the processor is atomic on such
    /// elements.
    #[inline(always)]
    pub(super) fn atomic_direct(&mut self, atomic: &Atomic) -> bool {
        let AtomicTarget::Memory(remote) = &atomic.target else {
            return false;
        };
        let (operand, compare, result) = (only(&atomic.operand), only(&atomic.compare), only(&atomic.result));
        let (Some(part), Some(operand), Some(compare), Some(result)) = (remote.only(), operand, compare, result) else {
            return false;
        };
        let Some(kernel) = self.kernel(atomic) else {
            return false;
        };
        let done = self.transport.reach(
            atomic.to,
            &part,
            kernel.rights(),
            #[inline(always)]
            |memory| kernel.execute_shared(memory, operand, compare, result),
        );
        done == Some(true)
    }

    /// As `atomic_direct`, for buffers in any number of pieces.
    #[cold]
    pub(super) fn atomic_direct_pieces(&mut self, atomic: &Atomic) -> bool {
        let AtomicTarget::Memory(remote) = &atomic.target else {
            return false;
        };
        let Some(kernel) = self.kernel(atomic) else {
            return false;
        };
        let done = self
            .transport
            .reach_all(atomic.to, remote.parts(), kernel.rights(), |memory| {
                kernel.execute_shared_pieces(memory, &atomic.operand, &atomic.compare, &atomic.result)
            });
        done == Some(true)
    }
}
