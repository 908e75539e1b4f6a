//! Reads and writes of a peer's memory, as their initiator sees them.
//!
//! A short write is one packet with its bytes, and is acknowledged by count (`short_op`). A long write is several such
//! packets, or offered, and then goes on like a message whose receive is a region (`rendezvous`). A read has a number
//! and is answered with the bytes, or with leave to fetch them (`replies`). The target performs short operations in
//! order. Messages and atomics wait until the long operations before them have completed. What cannot be pushed at once
//! is queued, and its packets are made by `rma_packets`.

use super::endpoint::Engine;
use super::next_packet::NextPacket;
use super::op::{
    Access, CompletedOp, Completion, CompletionLevel, Error, Failure, Refused, RemoteIov, RemotePart, Report, Rma,
    Tell, untold,
};
use super::outgoing::{LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, RemoteSide};
use super::pieces::{LIST, RegionMemory};
use super::port::{Body, Notice, PeerId, Push, Remote, Transport};
use super::rma_peer::rma_completion;
use super::short_op::{ShortKind, ShortOp};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use crate::util::slab::Id;

impl Outgoing {
    pub(super) fn rma(rma: &Rma) -> Outgoing {
        let (tag, remote_side) = RemoteSide::of(&rma.remote);
        let op = match rma.access {
            Access::Write => OutgoingOp::Write(remote_side),
            Access::Read => OutgoingOp::Read(remote_side),
        };
        let inject = rma.inject && rma.access == Access::Write;
        let level = CompletionLevel::Delivery;
        Outgoing {
            tag,
            data: rma.data,
            local: LocalBuffer::new(&rma.local, inject),
            ends_when_left: rma.access == Access::Write && rma.level == CompletionLevel::Inject,
            fence: rma.fence,
            ..Outgoing::bare(rma.to, op, rma.local.len(), level, rma.tell, rma.context)
        }
    }
}

/// Adds the remote side to a header: one piece, or the number of pieces in the body's list.
pub(super) fn with_remote(header: Header, remote: &RemoteIov) -> Header {
    match remote.parts() {
        [part] => Header {
            tag: part.addr,
            data: part.key,
            ..header
        },
        parts => Header {
            flags: header.flags | flag::LIST,
            tag: parts.len() as u64,
            ..header
        },
    }
}

impl<T: Transport> Engine<T> {
    /// Starts a read or write of a peer's memory. Its completion may be reported before this returns.
    pub fn rma(&mut self, rma: &Rma, report: &mut impl Report) -> Result<(), Refused> {
        if let Some(done) = self.try_direct_rma(rma) {
            report.report(done);
            return Ok(());
        }
        self.start_rma(rma, report)
    }

    /// Does the operation directly in the target's memory, if the transport can. The caller reports its completion.
    /// None: nothing happened.
    #[inline(always)]
    pub fn try_direct_rma(&mut self, rma: &Rma) -> Option<Completion> {
        let done = rma.local.len() == rma.remote.len() && self.rma_direct(rma);
        done.then(|| rma.done())
    }

    /// Starts an operation that `try_direct_rma` could not do.
    #[inline(always)]
    pub fn start_rma(&mut self, rma: &Rma, report: &mut impl Report) -> Result<(), Refused> {
        self.rma_asked(*rma, report)
    }

    /// Sends packets, or has the transport copy. Takes the operation by value, for the reason that `send_long` does.
    #[inline(never)]
    fn rma_asked(&mut self, rma: Rma, report: &mut impl Report) -> Result<(), Refused> {
        if rma.local.len() != rma.remote.len() {
            return Err(Refused::Invalid);
        }
        let rma = &rma;
        self.note_way(rma.to);
        if self.copies_natively() {
            return self.rma_native(rma, report);
        }
        let len = rma.local.len();
        let Some(part) = rma.remote.only() else {
            return self.rma_in_pieces(rma, report);
        };
        if !T::ONE_SIDED && self.may_be_copied(rma.to, len) {
            if self.rma_copied(rma, &part, report) {
                return Ok(());
            }
            if len < self.small_to(rma.to) {
                self.polls_again(rma.to);
            }
        }
        let short = len <= self.short_to(rma.to, rma.access) && !rma.fence && self.core.may_start_short(rma.to);
        let in_parts = || rma.access == Access::Write && len <= self.core.limits_to(rma.to).in_short_writes();
        if !short && in_parts() && self.transport.takes_writes(rma.to, &part) {
            self.core.peer(rma.to).rma_mut().known_memory.add(&part);
        }
        match (rma.access, short) {
            (Access::Write, true) => self.write_short(rma, &part, report),
            (Access::Read, true) => self.read_short(rma, &part, report),
            (_, false) => self.rma_queued(rma, report),
        }
    }

    /// The longest read or write of this peer's memory that takes the fast path.
    #[inline(always)]
    fn short_to(&self, to: PeerId, access: Access) -> usize {
        match access {
            Access::Write => self.core.limits_to(to).short_write(),
            Access::Read => self.core.limits_to(to).short_read(),
        }
    }

    #[inline(never)]
    fn rma_in_pieces(&mut self, rma: &Rma, report: &mut impl Report) -> Result<(), Refused> {
        if rma.remote.parts().len() > 1 && self.rma_direct_pieces(rma) {
            report.report(rma.done());
            return Ok(());
        }
        self.rma_queued(rma, report)
    }

    fn write_short(&mut self, rma: &Rma, part: &RemotePart, report: &mut impl Report) -> Result<(), Refused> {
        let len = rma.local.len();
        let kind = match rma.level {
            CompletionLevel::Inject => self.core.kind_of_write(rma.to, part),
            _ => ShortKind::Write,
        };
        let unheard = matches!(kind, ShortKind::UnheardWrite { .. });
        let acks = self.acks_along(rma.to);
        let header = Header {
            flags: if rma.data.is_some() { flag::DATA } else { 0 } | if unheard { 0 } else { flag::ACK },
            tag: part.addr,
            data: part.key,
            total: rma.data.unwrap_or(0),
            ..Header::new(Packet::Write, acks)
        };
        let body = Body::User {
            iov: &rma.local,
            at: 0,
            len,
        };
        let short = ShortOp {
            context: rma.context,
            len,
            tell: rma.tell,
            kind,
        };
        // Inlined like the push of a short message: a header that goes through memory is written in words and read in
        // vectors, for which the processor stalls.
        match self
            .transport
            .push(rma.to, &header, body, answered(rma.inject, rma.tell))
        {
            Push::Later => {
                if acks > 0 {
                    self.core.acks_given(rma.to, u64::from(acks));
                }
                self.core.short_op_gathered(rma.to, short);
                Ok(())
            }
            Push::Done => {
                if acks > 0 {
                    self.core.acks_given(rma.to, u64::from(acks));
                }
                self.core.short_op_started(rma.to, short);
                if unheard {
                    report.report(rma.done());
                }
                Ok(())
            }
            Push::Full | Push::TooLong => self.rma_queued(rma, report),
            push => Self::not_started(push, short.end(rma.to, Some(Error::PeerGone)), report),
        }
    }

    /// How many of the peer's operations a write to it acknowledges along. All, where an `Acked` of its own would cost
    /// a call of the system; none, where packets may be taken back, as by shared memory.
    #[inline(always)]
    fn acks_along(&self, to: PeerId) -> u32 {
        if !T::PUSHES_LATER {
            return 0;
        }
        let far = self.core.peers.get(to as usize).filter(|peer| peer.far || !T::TWO_WAYS);
        // A refusal that waits to be pushed counts the operations before it, so those must not be acknowledged
        // separately.
        let far = far.filter(|peer| peer.control.is_empty());
        let rma = far.and_then(|peer| peer.rma.as_ref()).filter(|rma| !rma.acks_each);
        let acks = rma.map_or(0, |rma| rma.acks);
        u32::try_from(acks).unwrap_or(u32::MAX)
    }

    fn read_short(&mut self, rma: &Rma, part: &RemotePart, report: &mut impl Report) -> Result<(), Refused> {
        if self.core.outgoing.len() >= Id::SHORT_MAX {
            return Err(Refused::Again);
        }
        let id = self.core.outgoing.insert(Outgoing {
            stage: Stage::Sent,
            ..Outgoing::rma(rma)
        });
        let header = Header {
            tag: part.addr,
            data: part.key,
            total: rma.local.len() as u64,
            ..Header::new(Packet::Read, id.short())
        };
        let notice = Some(Notice::ANSWERED);
        match Self::push_to_be_answered(&mut self.transport, rma.to, &header, Body::Empty, notice) {
            Push::Done => {
                self.core.op_started(rma.to);
                self.core.await_answer(rma.to);
                Ok(())
            }
            push => {
                self.core.outgoing.remove(id);
                if push == Push::Full {
                    return self.rma_queued(rma, report);
                }
                let failure = Some(Failure {
                    error: Error::PeerGone,
                    overflow: 0,
                });
                let end = Completion {
                    failure,
                    ..rma_completion(CompletedOp::Rma(Access::Read), rma.to, rma.context, rma.tell)
                };
                Self::not_started(push, end, report)
            }
        }
    }

    #[cold]
    fn rma_queued(&mut self, rma: &Rma, report: &mut impl Report) -> Result<(), Refused> {
        if rma.remote.parts().len() != 1 && self.core.limits.max_body < LIST + Remote::MAX {
            return Err(Refused::Unsupported);
        }
        self.queue(rma.to, untold(rma.inject, rma.tell), || Outgoing::rma(rma), report)
    }

    /// `push` for all but messages and short writes, which inline it. The body is copied by what is not sent at once.
    #[inline(never)]
    pub(super) fn push_out_of_line(transport: &mut T, to: PeerId, header: &Header, body: Body<'_>) -> Push {
        transport.push(to, header, body, None)
    }

    /// The same for a packet that may be gathered with others until the engine polls for the answer.
    #[inline(never)]
    pub(super) fn push_to_be_answered(
        transport: &mut T,
        to: PeerId,
        header: &Header,
        body: Body<'_>,
        notice: Option<Notice>,
    ) -> Push {
        match transport.push(to, header, body, notice) {
            Push::Later => Push::Done,
            push => push,
        }
    }

    /// Pushes the next part of the oldest reply to a peer's short read or atomic.
    pub(super) fn push_reply(&mut self, to: PeerId, packet: &NextPacket) -> Push {
        let Some(reply) = self.core.first_reply(to) else {
            return Push::Full;
        };
        let body = Body::of(reply.bytes(packet.len));
        Self::push_out_of_line(&mut self.transport, to, &packet.header, body)
    }

    /// Pushes the next part of a peer's long read, leave to fetch it, or its refusal. None: this packet cannot go any
    /// more, as the region was closed since `next` or the transport does not expose it.
    pub(super) fn push_served(&mut self, to: PeerId, packet: &NextPacket) -> Option<Push> {
        if packet.header.packet == Packet::Done {
            return Some(Self::push_out_of_line(
                &mut self.transport,
                to,
                &packet.header,
                Body::Empty,
            ));
        }
        let found = self.core.served_memory(to, packet)?;
        let memory = found.one();
        if packet.header.packet == Packet::Exposed {
            return self.push_exposed(to, packet, &memory?, found.name());
        }
        let (at, len) = (0, packet.len);
        if let Some(iov) = &memory {
            let body = Body::User { iov, at, len };
            return Some(Self::push_out_of_line(&mut self.transport, to, &packet.header, body));
        }
        let mut body = self.core.buffers.take(len);
        found.read(&mut body);
        let push = Self::push_out_of_line(&mut self.transport, to, &packet.header, Body::Bytes(&body));
        self.core.buffers.give_back(body);
        Some(push)
    }

    /// The first packet of an operation that was not queued could not be pushed.
    #[cold]
    pub(super) fn not_started(push: Push, end: Completion, report: &mut impl Report) -> Result<(), Refused> {
        match push {
            Push::Unreachable(why) => Err(Refused::Unreachable(why)),
            Push::NoMemory | Push::TooLong => Err(Refused::NoMemory),
            Push::Done | Push::Later | Push::Full | Push::Gone => {
                report.report(end);
                Ok(())
            }
        }
    }
}

/// The notice for the packet of a short operation, by which it may be gathered with others until the engine polls.
/// None: nobody is told of the operation's end, so nobody may poll, and the packet must not wait for that.
#[inline(always)]
pub(super) fn answered(inject: bool, tell: Tell) -> Option<Notice> {
    (!untold(inject, tell)).then_some(Notice::ANSWERED)
}

impl Core {
    /// Whether a short operation may be pushed to a peer without being queued.
    #[inline]
    pub(super) fn may_start_short(&self, to: PeerId) -> bool {
        let most = self.config.in_flight;
        let peer = self.peers.get(to as usize);
        peer.is_some_and(|peer| peer.queue.is_empty() && !peer.is_off_fast_path() && (peer.unfinished as usize) < most)
    }

    /// Counts an operation that was pushed without being queued.
    #[inline]
    pub(super) fn op_started(&mut self, to: PeerId) {
        self.peer(to).unfinished += 1;
    }

    /// The memory that a packet for a peer's long read exposes or carries.
    pub(super) fn served_memory(&self, to: PeerId, packet: &NextPacket) -> Option<RegionMemory> {
        let serve = self.peers.get(to as usize)?.rma.as_ref()?.served_reads.front()?;
        let (at, len) = match packet.header.packet {
            Packet::Exposed => (0, serve.remote.len()),
            _ => (serve.at, packet.len),
        };
        self.find_regions(&serve.remote, at, len, Rights::READ).ok()
    }
}
