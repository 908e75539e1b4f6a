//! Outgoing operations that need more than one push: what is kept of one, and how far it has come.
//!
//! Knows no order among operations: `next_packet` has that. Used by all files that queue, push or complete operations.

use super::next_packet::NextPacket;
use super::op::{CompletionLevel, Context, Error, MessageKind, Send, Tell};
use super::outgoing_op::OutgoingOp;
use super::port::{Notice, PeerId, When};
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
    /// A write that may be reported once it has left. `level` says nothing of operations on memory, which are all
    /// acknowledged.
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

    /// Whether it is in the queue and nothing of it has left.
    pub(super) fn has_not_begun(&self) -> bool {
        self.stage == Stage::Queued && self.at == 0
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

    pub(super) fn segment(&self, id: Id, most: usize) -> (Header, usize) {
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
