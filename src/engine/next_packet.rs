//! The order in which packets to one peer leave.
//!
//! `next` chooses the next packet for a peer, `pushing` pushes it, and `pushed` records that it has gone. Answers go
//! first, but for one packet after many replies; then queued operations and requested bytes take turns. A message
//! starts only after all earlier ones to the same peer have started, which is all that matching order needs.

use super::credit;
use super::op::{CompletionLevel, Error, Report};
use super::outgoing::{LocalBuffer, Stage};
use super::outgoing_op::OutgoingOp;
use super::peer::Detours;
use super::port::PeerId;
use super::state::Core;
use super::wire::{Header, Packet};
use crate::util::slab::Id;

/// While packets wait for long, longer messages are offered: in a ring of 64 KiB there is room for few of them.
const EAGER_IF_HELD_UP: usize = 1 << 10;

/// What a `NextPacket` is for: `pushed` acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Control,
    Credit,
    /// Acknowledges the peer's short operations.
    Acks,
    /// The result of a short read or atomic.
    Reply,
    ServedRead,
    /// Starts the operation at the front of the queue.
    Start(Id),
    /// The next segment of the message at the front of the queue.
    Segment(Id),
    /// Bytes that the peer requested, or a read that is asked for again.
    Requested(Id),
    /// The operation at the front of the queue, which is the transport's: no packet.
    Native(Id),
}

/// The packet that goes to a peer next.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextPacket {
    pub purpose: Purpose,
    pub header: Header,
    /// Which part of the operation's bytes is its body.
    pub at: usize,
    pub len: usize,
}

impl NextPacket {
    pub(super) fn bare(purpose: Purpose, header: Header) -> NextPacket {
        NextPacket {
            purpose,
            header,
            at: 0,
            len: 0,
        }
    }
}

impl Core {
    /// The next packet for a peer, if one can go.
    pub(super) fn next(&self, to: PeerId) -> Option<NextPacket> {
        let peer = self.peers.get(to as usize)?;
        if let Some(header) = peer.control.front() {
            return Some(NextPacket::bare(Purpose::Control, *header));
        }
        if let Some(header) = self.credit_due(to) {
            return Some(NextPacket::bare(Purpose::Credit, header));
        }
        if peer.rma.is_some() {
            if let Some(header) = self.ack_due(to) {
                return Some(NextPacket::bare(Purpose::Acks, header));
            }
            if let Some(reply) = self.first_reply(to) {
                let others = self.had_many_replies(to).then(|| self.next_of_others(to)).flatten();
                return others.or_else(|| {
                    let (header, len) = reply.next(self.max_body_to(to));
                    Some(NextPacket {
                        len,
                        ..NextPacket::bare(Purpose::Reply, header)
                    })
                });
            }
        }
        self.next_of_others(to)
    }

    /// What is no answer, or the bytes of a long read.
    #[inline]
    fn next_of_others(&self, to: PeerId) -> Option<NextPacket> {
        if self.peers.get(to as usize)?.requested_next {
            self.next_requested(to).or_else(|| self.next_queued(to))
        } else {
            self.next_queued(to).or_else(|| self.next_requested(to))
        }
    }

    fn next_requested(&self, to: PeerId) -> Option<NextPacket> {
        let peer = self.peers.get(to as usize)?;
        let serves = peer.rma.as_ref().is_some_and(|rma| rma.serve_next);
        if let Some((header, len)) = (serves || peer.requested.is_empty())
            .then(|| self.next_served(to))
            .flatten()
        {
            return Some(NextPacket {
                purpose: Purpose::ServedRead,
                header,
                at: 0,
                len,
            });
        }
        let id = *peer.requested.front()?;
        let outgoing = self.outgoing.get(id)?;
        if let OutgoingOp::Read(remote) = &outgoing.op {
            return Some(NextPacket::bare(
                Purpose::Requested(id),
                self.read_header(id, outgoing, remote, false),
            ));
        }
        let (header, len) = outgoing.segment(id, self.max_body_to(to));
        Some(NextPacket {
            purpose: Purpose::Requested(id),
            header,
            at: outgoing.at,
            len,
        })
    }

    /// The length of the first message to a peer, if it is not begun and could be fetched.
    pub(super) fn first_to_judge(&self, to: PeerId) -> Option<usize> {
        let id = *self.peers.get(to as usize)?.queue.front()?;
        let outgoing = self.outgoing.get(id)?;
        let is_new = outgoing.stage == Stage::Queued && matches!(outgoing.op, OutgoingOp::Message);
        (is_new && outgoing.len > self.limits.eager_if_fetched).then_some(outgoing.len)
    }

    fn next_queued(&self, to: PeerId) -> Option<NextPacket> {
        let peer = self.peers.get(to as usize)?;
        let id = *peer.queue.front()?;
        let outgoing = self.outgoing.get(id)?;
        if outgoing.stage == Stage::Started {
            let (header, len) = outgoing.segment(id, self.max_body_to(to));
            return Some(NextPacket {
                purpose: Purpose::Segment(id),
                header,
                at: outgoing.at,
                len,
            });
        }
        // Of a write in parts the first waits for what is before it; the others would wait for that one.
        if outgoing.fence && outgoing.at == 0 && self.fenced(to) {
            return None;
        }
        if !matches!(outgoing.op, OutgoingOp::Message) {
            return self.next_operation(to, id, outgoing);
        }
        if peer.detours.has(Detours::LONG_OPS) {
            return None; // a message must not overtake long reads and writes before it
        }
        let lacks_credit = credit::cost(outgoing.len) > peer.credit;
        let is_offered_unpaid = lacks_credit && peer.unpaid_offers > 0 && !peer.cannot_fetch;
        let fetched = matches!(outgoing.local, LocalBuffer::User(_)) && (peer.is_to_fetch() || is_offered_unpaid);
        let limits = self.limits_to(to);
        let eager = match fetched {
            true if peer.held_up && limits.can_get => limits.eager_if_fetched.min(EAGER_IF_HELD_UP),
            true => limits.eager_if_fetched,
            false => limits.eager,
        };
        // A message that would go in many small packets is better fetched.
        let asks = outgoing.len > eager || peer.small_packets_only && outgoing.len > limits.guaranteed_body;
        if !asks && lacks_credit && !peer.withholds_credit {
            return None; // the receiver returns credit without being asked
        }
        if asks || lacks_credit {
            return Some(NextPacket::bare(
                Purpose::Start(id),
                outgoing.start(Packet::Rendezvous, id),
            ));
        }
        let (packet, len) = if outgoing.len <= limits.small() {
            (Packet::Eager, outgoing.len)
        } else {
            (Packet::First, limits.max_body)
        };
        Some(NextPacket {
            purpose: Purpose::Start(id),
            header: outgoing.start(packet, id),
            at: 0,
            len,
        })
    }

    /// Records that a packet from `next` was pushed.
    pub(super) fn pushed(&mut self, to: PeerId, packet: &NextPacket, report: &mut impl Report) {
        self.note_turn(to, packet.purpose);
        match packet.purpose {
            Purpose::Control => {
                self.peer(to).control.pop_front();
            }
            Purpose::Credit => self.credit_given(to, &packet.header),
            Purpose::Acks => self.acks_given(to, packet.header.total),
            Purpose::Reply => self.replied(to, packet.len),
            Purpose::ServedRead => self.served(to, &packet.header, packet.len, report),
            Purpose::Native(_) => {}
            Purpose::Start(id) => self.started(to, id, packet, report),
            Purpose::Segment(id) => {
                self.peer(to).requested_next = true;
                if self.advance(id, packet.len) {
                    self.peer(to).queue.pop_front();
                    self.sent(id, report);
                }
            }
            Purpose::Requested(id) if packet.header.packet == Packet::Read => self.read_requested_again(to, id),
            Purpose::Requested(id) => {
                let done = self.advance(id, packet.len);
                let peer = self.peer(to);
                peer.requested_next = false;
                peer.requested.pop_front();
                if let Some(rma) = &mut peer.rma {
                    rma.serve_next = true;
                }
                if done {
                    self.sent(id, report);
                } else {
                    self.peer(to).requested.push_back(id);
                }
            }
        }
    }

    /// The transport will say when it is done with this packet, which was pushed.
    #[cold]
    pub(super) fn kept_by_transport(&mut self, packet: &NextPacket) {
        let (Purpose::Start(id) | Purpose::Segment(id) | Purpose::Requested(id)) = packet.purpose else {
            return;
        };
        if let Some(outgoing) = self.outgoing.get_mut(id) {
            outgoing.held += 1;
        }
    }

    /// The transport is done with a packet.
    #[cold]
    pub(super) fn packet_sent(&mut self, id: Id, result: Result<(), Error>, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        outgoing.held = outgoing.held.saturating_sub(1);
        let acknowledged = outgoing.level == CompletionLevel::Delivery;
        match (outgoing.stage, result) {
            (Stage::Ended(None), Err(error)) if !acknowledged => outgoing.stage = Stage::Ended(Some(error)),
            (Stage::Ended(_), _) | (_, Ok(())) => {}
            (_, Err(error)) => {
                outgoing.stage = Stage::Ended(Some(error));
                let peer = outgoing.to;
                let peer = self.peer(peer);
                peer.ending = true;
                peer.queue.retain(|queued| *queued != id);
                peer.requested.retain(|queued| *queued != id);
            }
        }
        self.end_if_let_go(id, report);
    }

    fn started(&mut self, to: PeerId, id: Id, packet: &NextPacket, report: &mut impl Report) {
        if self
            .outgoing
            .get(id)
            .is_some_and(|outgoing| !matches!(outgoing.op, OutgoingOp::Message))
        {
            return self.operation_started(to, id, packet, report);
        }
        let peer = self.peer(to);
        peer.requested_next = true;
        match packet.header.packet {
            Packet::Rendezvous => {
                peer.queue.pop_front();
                peer.last_offered = packet.header.id;
                peer.unpaid_offers = peer.unpaid_offers.saturating_sub(1);
                if let Some(outgoing) = self.outgoing.get_mut(id) {
                    outgoing.stage = Stage::Offered;
                }
                return;
            }
            Packet::First => {
                if let Some(outgoing) = self.outgoing.get_mut(id) {
                    outgoing.stage = Stage::Started;
                }
            }
            _ => {}
        }
        // `total` is the length of our own message, for which `next_queued` has checked the credit.
        let peer = self.peer(to);
        peer.credit = peer.credit.saturating_sub(credit::cost(packet.header.total as usize));
        if self.advance(id, packet.len) {
            self.peer(to).queue.pop_front();
            self.sent(id, report);
        }
    }

    /// Counts bytes as pushed. Returns whether they were the last.
    fn advance(&mut self, id: Id, len: usize) -> bool {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return true;
        };
        outgoing.at += len;
        outgoing.at >= outgoing.until
    }
}
