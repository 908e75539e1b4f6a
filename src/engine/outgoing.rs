//! Outgoing operations that need more than one push, and the order in which packets to one peer leave.
//!
//! `next` chooses the next packet for a peer, `pushing` pushes it, and `pushed` records that it has gone. Answers go
//! first; then queued operations and requested bytes take turns. A message starts only after all earlier ones to the
//! same peer have started, which is all that matching order needs.

use super::credit;
use super::op::{CompletionLevel, Context, Error, MessageKind, Report, Send, Tell};
use super::outgoing_op::OutgoingOp;
use super::peer::Detours;
use super::port::{Notice, PeerId, When};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// The local side of an outgoing operation: what is sent, or where the result of a read or atomic goes.
#[derive(Debug)]
pub(super) enum LocalBuffer {
    User(UserIov),
    /// A copy, because of FI_INJECT or because an atomic's operands are kept together.
    Copy(Box<[u8]>),
}

impl LocalBuffer {
    pub(super) fn new(iov: &UserIov, inject: bool) -> LocalBuffer {
        if !inject {
            return LocalBuffer::User(*iov);
        }
        let mut bytes = vec![0; iov.len()].into_boxed_slice();
        iov.read(0, &mut bytes);
        LocalBuffer::Copy(bytes)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            LocalBuffer::User(iov) => iov.len(),
            LocalBuffer::Copy(bytes) => bytes.len(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the queue; of a write some parts may have gone (`at`), of all else nothing has.
    Queued,
    /// In the queue, first packet sent.
    Started,
    /// Offered by rendezvous: the peer will fetch the bytes or request them.
    Offered,
    /// The peer has requested the bytes.
    Requested,
    /// All pushed. The peer is to acknowledge it or send the result.
    Sent,
    /// A get or copy by the transport is in flight.
    Fetching,
    /// The get failed: the peer is to be asked to send the bytes.
    AskAgain,
    /// In the queue: the transport cannot do it with this peer, so it is asked with packets.
    AskPeer,
    /// It has failed, but the transport still writes some of the reply to our memory.
    Failed(Error),
    /// It has ended, but the transport still has packets of it: `Outgoing::held`.
    Ended(Option<Error>),
}

/// What an operation holds until it ends: a set, so that an operation that holds nothing costs one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holds(u8);

impl Holds {
    pub(super) const NOTHING: Holds = Holds(0);
    /// Copies by the transport to its peer: it counts in `RmaPeer::unanswered_atomics`.
    pub(super) const COPIES: Holds = Holds(1);
    /// Messages and atomics to its peer: it counts in `RmaPeer::long_ops`.
    pub(super) const MESSAGES: Holds = Holds(2);
    /// An entry of `Core::exposures`.
    pub(super) const EXPOSURE: Holds = Holds(4);

    pub(super) fn has(self, what: Holds) -> bool {
        self.0 & what.0 != 0
    }

    pub(super) fn add(&mut self, what: Holds) {
        self.0 |= what.0;
    }
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub to: PeerId,
    pub op: OutgoingOp,
    pub kind: MessageKind,
    pub stage: Stage,
    pub level: CompletionLevel,
    /// A write that may be reported once it has left. `level` says nothing of operations on memory, which are all acknowledged.
    pub ends_when_left: bool,
    pub fence: bool,
    pub tell: Tell,
    pub holds: Holds,
    /// The tag; of an operation on one remote piece, its address.
    pub tag: u64,
    pub data: Option<u64>,
    pub context: Context,
    pub local: LocalBuffer,
    pub len: usize,
    /// Bytes pushed; of a read, bytes that have arrived and were given a place.
    pub at: usize,
    /// Bytes to push: less than `len` if the receiver requested less. Of a read, bytes not yet in place.
    pub until: usize,
    /// Its packets whose push was `Later` and that are not yet `sent`.
    pub held: u32,
}

impl Outgoing {
    pub(super) fn new(send: &Send) -> Outgoing {
        let len = send.body.len();
        Outgoing {
            kind: send.kind,
            fence: send.fence,
            tag: send.tag,
            data: send.data,
            local: LocalBuffer::new(&send.body, send.inject),
            ..Outgoing::bare(send.to, OutgoingOp::Message, len, send.level, send.tell, send.context)
        }
    }

    /// What all kinds of operations have in common.
    pub(super) fn bare(
        to: PeerId,
        op: OutgoingOp,
        len: usize,
        level: CompletionLevel,
        tell: Tell,
        context: Context,
    ) -> Outgoing {
        Outgoing {
            to,
            op,
            kind: MessageKind::Untagged,
            stage: Stage::Queued,
            level,
            ends_when_left: false,
            fence: false,
            tell,
            holds: Holds::NOTHING,
            tag: 0,
            data: None,
            context,
            local: LocalBuffer::User(UserIov::default()),
            len,
            at: 0,
            until: len,
            held: 0,
        }
    }

    /// A message that was pushed in one packet, which the transport still has.
    #[cold]
    pub(super) fn all_pushed(send: &Send) -> Outgoing {
        Outgoing {
            stage: Stage::Ended(None),
            held: 1,
            ..Outgoing::new(send)
        }
    }

    /// What the transport is asked to tell of a packet of this operation. None for its own copies and answers.
    pub(super) fn notice(&self, id: Id, packet: &NextPacket) -> Option<Notice> {
        let kept = matches!(self.local, LocalBuffer::User(_)) && packet.len > 0;
        (kept || self.level == CompletionLevel::Transmit).then(|| notice(self.level, id))
    }

    pub(super) fn start(&self, packet: Packet, id: Id) -> Header {
        let ack = if self.level == CompletionLevel::Delivery {
            flag::ACK
        } else {
            0
        };
        let mut header = message(packet, self.kind, self.tag, self.data, self.len);
        header.flags |= ack;
        header.id = id.short();
        header
    }

    fn segment(&self, id: Id, most: usize) -> (Header, usize) {
        let header = Header {
            packet: Packet::Segment,
            flags: 0,
            code: 0,
            id: id.short(),
            tag: 0,
            data: 0,
            total: self.at as u64,
        };
        (header, most.min(self.until.saturating_sub(self.at)))
    }
}

/// What the transport is asked to tell of the packets of an operation. That it was delivered, its target will say.
#[inline]
pub(super) fn notice(level: CompletionLevel, id: Id) -> Notice {
    let when = match level {
        CompletionLevel::Inject | CompletionLevel::Delivery => When::Released,
        CompletionLevel::Transmit => When::Transmitted,
    };
    Notice { token: id.bits(), when }
}

/// The header that begins a message.
#[inline]
pub(super) fn message(packet: Packet, kind: MessageKind, tag: u64, data: Option<u64>, len: usize) -> Header {
    let (tagged, tag) = match kind {
        MessageKind::Untagged => (0, 0),
        MessageKind::Tagged => (flag::TAGGED, tag),
        MessageKind::Collective => (flag::COLLECTIVE, tag),
    };
    let with_data = if data.is_some() { flag::DATA } else { 0 };
    Header {
        packet,
        flags: tagged | with_data,
        code: 0,
        id: 0,
        tag,
        data: data.unwrap_or(0),
        total: len as u64,
    }
}

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
                let (header, len) = reply.next(self.max_body_to(to));
                return Some(NextPacket {
                    len,
                    ..NextPacket::bare(Purpose::Reply, header)
                });
            }
        }
        if peer.requested_next {
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
        let fetched = matches!(outgoing.local, LocalBuffer::User(_)) && peer.is_to_fetch();
        let limits = self.limits_to(to);
        let eager = if fetched { limits.eager_if_fetched } else { limits.eager };
        // A message that would go in many small packets is better fetched.
        let asks = outgoing.len > eager || peer.small_packets_only && outgoing.len > limits.guaranteed_body;
        if !asks && credit::cost(outgoing.len) > peer.credit && !peer.withholds_credit {
            return None; // the receiver returns credit without being asked
        }
        if asks || credit::cost(outgoing.len) > peer.credit {
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
