//! A message on its way in: from its first packet until the application has it, or until it is let go.
//!
//! Messages of one packet whose receive is posted take a shorter way: they are only a `Delivery` while their body is
//! being placed. All others are a `Message`, whether or not they have met their receive yet.

use super::op::{Context, MessageKind, Tell};
use super::port::{PeerId, Placement, Remote};
use super::receive::MatchedRecv;
use super::replies::GotNotice;
use super::rma_target::LongWrite;
use super::state::Core;
use super::tagged_atomic::TaggedAtomic;
use super::wire::{Header, Packet, flag};
use crate::engine::op::Report;
use crate::util::slab::Id;

/// All there is to say to the application about a message that has met its receive.
#[derive(Debug)]
pub(super) struct Delivery {
    pub from: PeerId,
    pub kind: MessageKind,
    pub tell: Tell,
    pub tag: u64,
    pub data: Option<u64>,
    pub total: usize,
    /// How many bytes its receive can take.
    pub room: usize,
    /// The sender's number, if it waits for `Done`.
    pub answer: Option<u32>,
    pub context: Context,
    pub multi: Option<Id>,
    pub buf: usize,
}

/// What a body belongs to that the transport was given a place for.
#[derive(Debug)]
pub(super) enum Landing {
    /// A whole message, straight into its receive.
    Direct(Delivery),
    /// A message's bytes from `at` on.
    Part { message: Id, at: usize },
    /// What `get` needs for this message.
    Remote { message: Id },
    /// A short write of a peer's, which somebody is to be told of.
    Write {
        from: PeerId,
        key: u64,
        len: usize,
        data: Option<u64>,
    },
    /// An operation of a peer's that is looked at when all of it is here.
    Packet { from: PeerId, header: Header },
    /// Bytes that an operation of ours asked for.
    Reply { operation: Id, len: usize },
    /// What `get` needs for a read of ours.
    Exposed { operation: Id, notify: Option<GotNotice> },
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Its bytes come without being asked for.
    Coming,
    /// Its sender has it, and waits to hear what to do.
    Offered(Option<Box<Remote>>),
    /// Its sender was asked for it.
    Requested,
}

#[derive(Debug)]
pub(super) struct Message {
    pub from: PeerId,
    pub kind: MessageKind,
    /// The sender wants to know when it is delivered.
    pub ack: bool,
    /// Nobody will receive it: what still comes is dropped.
    pub discarded: bool,
    /// The sender's number for it.
    pub number: u32,
    pub tag: u64,
    pub data: Option<u64>,
    pub phase: Phase,
    pub total: usize,
    /// How many bytes will come.
    pub goal: usize,
    /// Bytes that a place was found for.
    pub next: usize,
    /// Places found that the transport has not finished with.
    pub moving: u32,
    /// Bytes that came before the receive: those at the beginning, and others by where they belong.
    pub head: Vec<u8>,
    pub rest: Vec<(usize, Vec<u8>)>,
    /// Credit that its being held costs.
    pub kept: usize,
    /// Its name in the matcher while no receive has taken it.
    pub unexpected_id: Option<Id>,
    pub matched: Option<MatchedRecv>,
    /// A long write of the peer's: where it goes, instead of to a receive.
    pub long_write: Option<Box<LongWrite>>,
    /// A tagged atomic: what is done to the receive's buffer. `head` has the operands.
    pub tagged_atomic: Option<Box<TaggedAtomic>>,
}

impl Message {
    /// As the header of its first packet tells; nothing has come yet.
    pub fn new(from: PeerId, header: &Header, phase: Phase, total: usize) -> Message {
        Message {
            from,
            kind: kind(header),
            ack: header.flags & flag::ACK != 0,
            discarded: false,
            number: header.id,
            tag: tag(header),
            data: data(header),
            phase,
            total,
            goal: total,
            next: 0,
            moving: 0,
            head: Vec::new(),
            rest: Vec::new(),
            kept: 0,
            unexpected_id: None,
            matched: None,
            long_write: None,
            tagged_atomic: None,
        }
    }

    /// All its bytes are here.
    pub fn complete(&self) -> bool {
        self.moving == 0 && self.next >= self.goal && !matches!(self.phase, Phase::Offered(_))
    }

    fn answer(&self) -> Option<u32> {
        let due = match self.phase {
            Phase::Coming | Phase::Requested => self.ack,
            Phase::Offered(_) => true,
        };
        due.then_some(self.number)
    }

    pub fn delivery(&self, matched: &MatchedRecv) -> Delivery {
        Delivery {
            from: self.from,
            kind: self.kind,
            tell: matched.tell,
            tag: self.tag,
            data: self.data,
            total: self.total,
            room: matched.iov.len(),
            answer: self.answer(),
            context: matched.context,
            multi: matched.multi,
            buf: matched.buf,
        }
    }
}

#[inline]
pub(super) fn kind(header: &Header) -> MessageKind {
    match header.flags & (flag::TAGGED | flag::COLLECTIVE) {
        0 => MessageKind::Untagged,
        flag::TAGGED => MessageKind::Tagged,
        _ => MessageKind::Collective,
    }
}

/// Untagged messages are matched by tag 0.
#[inline]
pub(super) fn tag(header: &Header) -> u64 {
    if header.flags & (flag::TAGGED | flag::COLLECTIVE) != 0 {
        header.tag
    } else {
        0
    }
}

#[inline]
pub(super) fn data(header: &Header) -> Option<u64> {
    (header.flags & flag::DATA != 0).then_some(header.data)
}

/// Tells a sender that its message is done with.
pub(super) fn done_header(number: u32) -> Header {
    Header {
        packet: Packet::Done,
        flags: 0,
        code: 0,
        id: number,
        tag: 0,
        data: 0,
        total: 0,
    }
}

impl Core {
    /// A place for the next `len` bytes of a message that `at` says where they belong.
    pub fn place_part(&mut self, id: Id, at: usize, len: usize, report: &mut impl Report) -> Placement {
        let Some(message) = self.arrivals.get_mut(id) else {
            return Placement::Drop;
        };
        message.next += len;
        if message.long_write.is_some() {
            return self.place_in_region(id, at, len, report);
        }
        let into = message.matched.as_ref().map(|matched| matched.iov);
        let unwanted = message.discarded || into.is_some_and(|iov| at >= iov.len());
        if unwanted || len == 0 {
            self.finish_if_complete(id, report);
            return Placement::Drop;
        }
        message.moving += 1;
        let token = self.landings.insert(Landing::Part { message: id, at }).bits();
        match into {
            Some(iov) => Placement::Into { iov, at, token },
            None => Placement::Keep {
                buffer: vec![0; len],
                token,
            },
        }
    }

    /// The transport has put bytes of a message where it was told, or brings them.
    pub fn part_landed(&mut self, id: Id, at: usize, buffer: Option<Vec<u8>>, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        message.moving = message.moving.saturating_sub(1);
        if message.long_write.is_some() {
            return self.landed_in_region(id, at, buffer, report);
        }
        match (buffer, &message.matched) {
            // The receive came while the transport was at it.
            (Some(bytes), Some(matched)) => {
                matched.iov.write(at, &bytes);
            }
            (Some(bytes), None) if at == 0 => message.head = bytes,
            (Some(bytes), None) => message.rest.push((at, bytes)),
            (None, _) => {}
        }
        self.finish_if_complete(id, report);
    }

    /// Ends a message that is complete, if somebody has received or dropped it.
    pub fn finish_if_complete(&mut self, id: Id, report: &mut impl Report) {
        let over = |message: &Message| {
            message.complete() && (message.matched.is_some() || message.discarded || message.long_write.is_some())
        };
        if self.arrivals.get(id).is_some_and(over) {
            self.finish(id, report);
        }
    }

    /// The application has the message, or dropped it.
    pub fn finish(&mut self, id: Id, report: &mut impl Report) {
        let Some(message) = self.arrivals.remove(id) else {
            return;
        };
        if let Some(long_write) = &message.long_write {
            return self.long_write_done(&message, long_write, report);
        }
        match &message.matched {
            Some(matched) => self.deliver(&message.delivery(matched), None, report),
            None => self.answer(message.from, message.answer()),
        }
    }

    pub fn answer(&mut self, to: PeerId, number: Option<u32>) {
        if let Some(number) = number {
            self.send_control(to, done_header(number));
        }
    }

    /// A receive takes a message that was held.
    pub fn attach(&mut self, id: Id, matched: MatchedRecv, report: &mut impl Report) {
        self.leave_unexpected(id);
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        if message.tagged_atomic.is_some() {
            return self.tagged_atomic_attached(id, matched, report);
        }
        matched.iov.write(0, &std::mem::take(&mut message.head));
        for (at, bytes) in std::mem::take(&mut message.rest) {
            matched.iov.write(at, &bytes);
        }
        message.matched = Some(matched);
        match message.phase {
            Phase::Coming | Phase::Requested => self.finish_if_complete(id, report),
            Phase::Offered(_) if message.moving == 0 => self.accept(id, report),
            Phase::Offered(_) => {} // goes on when the `Remote` is here
        }
    }

    /// A held message is not wanted.
    pub fn discard(&mut self, id: Id, report: &mut impl Report) {
        self.leave_unexpected(id);
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        if message.tagged_atomic.is_some() {
            return self.tagged_atomic_discarded(id);
        }
        message.discarded = true;
        message.head = Vec::new();
        message.rest = Vec::new();
        match message.phase {
            Phase::Coming | Phase::Requested => self.finish_if_complete(id, report),
            Phase::Offered(_) if message.moving == 0 => self.finish(id, report),
            Phase::Offered(_) => {}
        }
    }

    /// A message is no longer held: what that cost is given back.
    fn leave_unexpected(&mut self, id: Id) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        message.unexpected_id = None;
        let (from, kept) = (message.from, std::mem::take(&mut message.kept));
        if kept > 0 {
            self.release_kept(from, kept);
        }
    }

    /// A message that has met no receive.
    pub fn hold_unexpected(&mut self, id: Id) {
        let Some(message) = self.arrivals.get(id) else { return };
        let (kind, from, tag) = (message.kind, message.from, message.tag);
        let source = u64::from(self.source(from));
        let held = self.matcher(kind).add_unexpected(source, tag, id);
        if let Some(message) = self.arrivals.get_mut(id) {
            message.unexpected_id = Some(held);
        }
    }
}
