//! The packets of reads, writes and atomics that are queued: which goes next, what it carries, and what it means that
//! it has gone. A write goes in one packet, in several, or is offered.
//!
//! Called by `outgoing` and `pushing`, which know when a packet may go; what is not queued is pushed by `rma`.

use super::endpoint::Engine;
use super::next_packet::{NextPacket, Purpose};
use super::op::{AtomicTarget, RemoteIov, Report};
use super::outgoing::{Holds, LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, RemoteSide};
use super::pieces;
use super::port::{Body, PeerId, Push, Transport};
use super::rma::with_remote;
use super::short_op::{ShortKind, ShortOp};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;

impl<T: Transport> Engine<T> {
    /// Pushes the first packet of an RMA or atomic operation, or asks again for a read that could not be fetched.
    pub(super) fn push_operation(&mut self, to: PeerId, packet: &NextPacket, id: Id) -> Push {
        let mut body = std::mem::take(&mut self.core.scratch);
        body.clear();
        let push = self.push_built(to, packet, id, &mut body);
        self.core.scratch = body;
        push
    }

    fn push_built(&mut self, to: PeerId, packet: &NextPacket, id: Id, body: &mut Vec<u8>) -> Push {
        let Some(outgoing) = self.core.outgoing.get(id) else {
            return Push::Full;
        };
        // Of a write `packet` says which part goes; all else goes whole.
        let (at, len) = match packet.header.packet {
            Packet::Write => (packet.at, packet.len),
            _ => (0, outgoing.len),
        };
        let header = &packet.header;
        if let Some(list) = list(outgoing, header) {
            pieces::write_list(&list, body);
        }
        match (&outgoing.local, header.packet) {
            (_, Packet::Read) => {}
            (_, Packet::OfferWrite | Packet::Rendezvous) => return self.push_offer(to, header, id, body),
            (LocalBuffer::User(iov), _) if body.is_empty() && len > 0 => {
                return Self::push_out_of_line(&mut self.transport, to, header, Body::User { iov, at, len });
            }
            (LocalBuffer::User(iov), _) => {
                let behind = body.len();
                body.resize(behind + len, 0);
                iov.read(at, body.get_mut(behind..).unwrap_or_default());
            }
            (LocalBuffer::Copy(bytes), Packet::Write) => {
                body.extend_from_slice(bytes.get(at..at + len).unwrap_or_default());
            }
            (LocalBuffer::Copy(bytes), _) => body.extend_from_slice(bytes),
        }
        Self::push_out_of_line(&mut self.transport, to, header, Body::of(body))
    }
}

/// The list of remote pieces that a packet's body begins with, if it does.
fn list(outgoing: &Outgoing, header: &Header) -> Option<RemoteIov> {
    if header.flags & flag::LIST == 0 {
        return None;
    }
    match &outgoing.op {
        OutgoingOp::Write(remote_side) | OutgoingOp::Read(remote_side) => {
            Some(remote_side.iov(outgoing.tag, outgoing.len))
        }
        OutgoingOp::Atomic(operation) => match operation.target {
            AtomicTarget::Memory(remote) => Some(remote),
            AtomicTarget::Tagged { .. } => None,
        },
        OutgoingOp::Message | OutgoingOp::PulledRead(_) | OutgoingOp::AtomicSent(_) => None,
    }
}

impl Core {
    /// The first packet of the RMA or atomic operation at the front of the queue, if it may go.
    pub(super) fn next_operation(&self, to: PeerId, id: Id, outgoing: &Outgoing) -> Option<NextPacket> {
        if let Some(native) = self.next_native(to, id, outgoing) {
            return native;
        }
        let header = match &outgoing.op {
            OutgoingOp::Write(remote_side) => return Some(self.write_packet(to, id, outgoing, remote_side)),
            OutgoingOp::Read(remote_side) => {
                let limits = self.limits_to(to);
                self.read_header(
                    id,
                    outgoing,
                    remote_side,
                    limits.can_get && outgoing.len > limits.short_read(),
                )
            }
            OutgoingOp::Atomic(operation) => self.atomic_header(to, id, outgoing, operation)?,
            OutgoingOp::Message | OutgoingOp::PulledRead(_) | OutgoingOp::AtomicSent(_) => return None,
        };
        Some(NextPacket::bare(Purpose::Start(id), header))
    }

    /// The next packet of a write: the whole of it, a part, or an offer.
    fn write_packet(&self, to: PeerId, id: Id, outgoing: &Outgoing, remote_side: &RemoteSide) -> NextPacket {
        let purpose = Purpose::Start(id);
        let (flags, data) = (
            if outgoing.data.is_some() { flag::DATA } else { 0 },
            outgoing.data.unwrap_or(0),
        );
        let Some(len) = self.next_part(to, outgoing, remote_side) else {
            let header = Header {
                flags: flags | flag::LIST,
                tag: remote_side.count(),
                data,
                total: outgoing.len as u64,
                ..Header::new(Packet::OfferWrite, id.short())
            };
            return NextPacket::bare(purpose, header);
        };
        let at = outgoing.at;
        let behind = outgoing.len - (at + len);
        let (flags, total) = if behind == 0 { (flags, data) } else { (0, behind as u64) };
        let ack = if self.is_told_unheard(to, outgoing) {
            0
        } else {
            flag::ACK
        };
        let header = Header {
            flags: flags | ack,
            total,
            ..Header::new(Packet::Write, 0)
        };
        let header = with_remote(header, &remote_side.iov(outgoing.tag.wrapping_add(at as u64), len));
        NextPacket {
            purpose,
            header,
            at,
            len,
        }
    }

    /// Whether a write that was queued is reported when its last packet has left. Not if a part was refused, though its
    /// memory may be known again by now.
    fn is_told_unheard(&self, to: PeerId, outgoing: &Outgoing) -> bool {
        let OutgoingOp::Write(remote_side) = &outgoing.op else {
            return false;
        };
        let remote = remote_side.iov(outgoing.tag, outgoing.len);
        let is_known = || remote.only().is_some_and(|part| self.knows(to, &part));
        let leaves_at_once = self.limits_to(to).writes_leave_at_once();
        outgoing.ends_when_left && leaves_at_once && is_known() && !self.has_refused_part(to)
    }

    fn has_refused_part(&self, to: PeerId) -> bool {
        let rma = self.peers.get(to as usize).and_then(|peer| peer.rma.as_ref());
        rma.is_some_and(|rma| rma.refused_part.is_some())
    }

    /// How many bytes of a write go with its next packet, behind a list of its remote pieces. None: they are offered. A
    /// write goes in parts only to known memory, so that one that is refused has written nothing; only if its target is
    /// not to report it; and not while packets wait for long, as the target fetches it sooner.
    fn next_part(&self, to: PeerId, outgoing: &Outgoing, remote_side: &RemoteSide) -> Option<usize> {
        let (limits, list) = (self.limits_to(to), remote_side.list());
        let peer = self.peers.get(to as usize);
        let small_only = peer.is_some_and(|peer| peer.small_packets_only);
        let held_up = peer.is_some_and(|peer| peer.held_up);
        if outgoing.at == 0 && (list > 0 || small_only) {
            let fits = outgoing.len <= limits.small() && list + outgoing.len <= self.max_body_to(to);
            return fits.then_some(outgoing.len);
        }
        let most = if small_only {
            limits.guaranteed_body
        } else {
            limits.short_write()
        };
        let remote = remote_side.iov(outgoing.tag, outgoing.len);
        let is_known = || outgoing.data.is_none() && remote.only().is_some_and(|part| self.knows(to, &part));
        let in_parts = outgoing.at > 0 || outgoing.len <= limits.in_short_writes() && !held_up && is_known();
        (outgoing.len <= most || in_parts).then(|| (outgoing.len - outgoing.at).min(most))
    }

    pub(super) fn read_header(&self, id: Id, outgoing: &Outgoing, remote_side: &RemoteSide, get: bool) -> Header {
        let header = Header {
            flags: if get { flag::GET } else { 0 },
            total: outgoing.len as u64,
            ..Header::new(Packet::Read, id.short())
        };
        with_remote(header, &remote_side.iov(outgoing.tag, outgoing.len))
    }

    /// A packet of the RMA or atomic operation at the front of the queue was pushed: the only one, or a part of a
    /// write.
    pub(super) fn operation_started(&mut self, to: PeerId, id: Id, packet: &NextPacket, report: &mut impl Report) {
        let (header, short_read) = (&packet.header, self.limits_to(to).short_read());
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        if header.packet == Packet::Write {
            outgoing.at += packet.len;
            if outgoing.at < outgoing.len {
                let context = outgoing.context;
                return self.part_started(to, context);
            }
        }
        let long = match header.packet {
            Packet::OfferWrite => true,
            Packet::Read => outgoing.len > short_read,
            _ => false,
        };
        outgoing.stage = if header.packet == Packet::OfferWrite {
            Stage::Offered
        } else {
            Stage::Sent
        };
        if matches!(outgoing.op, OutgoingOp::Atomic(_)) {
            self.atomic_started(to, id, header);
        }
        let peer = self.peer(to);
        peer.requested_next = true;
        peer.queue.pop_front();
        if long {
            self.hold(to, id, Holds::MESSAGES);
        } else if self.one_sided.copies && matches!(header.packet, Packet::FetchAtomic | Packet::CompareAtomic) {
            self.hold(to, id, Holds::COPIES);
        }
        let short = match header.packet {
            Packet::Write => true,
            Packet::Atomic => header.flags & flag::TAGGED == 0,
            _ => false,
        };
        if header.packet == Packet::Read && !long {
            self.await_answer(to);
        }
        if short {
            self.short_operation_left(to, id, report);
        }
    }

    /// The packet of an atomic was pushed: its operands are no longer needed, and one on a tagged receive has cost
    /// credit.
    fn atomic_started(&mut self, to: PeerId, id: Id, header: &Header) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        let OutgoingOp::Atomic(operation) = &outgoing.op else {
            return;
        };
        let (form, result) = (operation.op.form(), operation.result);
        let costs = matches!(operation.target, AtomicTarget::Tagged { .. }) && header.flags & flag::WITHHELD == 0;
        let cost = if costs {
            super::credit::cost(outgoing.local.len())
        } else {
            0
        };
        outgoing.op = OutgoingOp::AtomicSent(form);
        outgoing.local = LocalBuffer::User(result);
        let peer = self.peer(to);
        peer.credit = peer.credit.saturating_sub(cost);
    }

    /// All of a write or base atomic was pushed, which the target acknowledges with `Acked`.
    fn short_operation_left(&mut self, to: PeerId, id: Id, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.remove(id) else {
            return;
        };
        // An offer of it may have exposed its memory, and found no room, before the target's memory was known.
        self.release(to, id, outgoing.holds);
        let addr = outgoing.tag;
        let kind = match outgoing.op {
            OutgoingOp::AtomicSent(_) => ShortKind::Atomic,
            OutgoingOp::Write(RemoteSide::One { key }) if self.is_told_unheard(to, &outgoing) => {
                ShortKind::UnheardWrite { addr, key }
            }
            OutgoingOp::Write(RemoteSide::One { key }) => ShortKind::FirstWrite { addr, key },
            _ => ShortKind::Write,
        };
        let short = ShortOp {
            context: outgoing.context,
            len: outgoing.len,
            tell: outgoing.tell,
            kind,
        };
        if matches!(kind, ShortKind::UnheardWrite { .. }) {
            report.report(short.end(to, None));
        }
        self.expect_ack(to, short);
    }
}
