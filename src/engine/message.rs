//! An incoming message, from its first packet until it is delivered or discarded.
//!
//! A message of one packet whose receive is posted needs only a `Delivery` while the transport places its body. All
//! others are a `Message`, matched or unexpected. Long writes and tagged atomics use `Message` too.

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

/// What the completion of a matched message reports.
#[derive(Debug)]
pub(super) struct Delivery {
    pub from: PeerId,
    pub kind: MessageKind,
    pub tell: Tell,
    pub tag: u64,
    pub data: Option<u64>,
    pub total: usize,
    /// The size of the receive's buffer.
    pub room: usize,
    /// The sender's number for it, if the sender waits for `Done`.
    pub answer: Option<u32>,
    pub context: Context,
    pub multi: Option<Id>,
    pub buf: usize,
}

/// What a body belongs to that the transport is moving to its place. Its name is the transport's token.
#[derive(Debug)]
pub(super) enum Landing {
    /// A whole message, straight into its receive.
    Direct(Delivery),
    /// A message's bytes from offset `at` on.
    Part { message: Id, at: usize },
    /// The `Remote` of an offered message.
    Remote { message: Id },
    /// A peer's short write that is to be reported here.
    Write { from: PeerId, header: Header, len: usize },
    /// A peer's short write into a region, over several polls.
    LeasedWrite {
        from: PeerId,
        header: Header,
        len: usize,
        counted: bool,
    },
    /// A peer's operation that is executed when its whole packet is here.
    Packet { from: PeerId, header: Header },
    /// A part of the result of our read or atomic.
    Reply { operation: Id, len: usize },
    /// The `Remote` for our long read.
    Exposed { operation: Id, notify: Option<GotNotice> },
}

#[derive(Debug)]
pub(super) enum Phase {
    /// Eager: its bytes come unasked.
    Coming,
    /// Rendezvous: its sender waits for `Done` or `Request`.
    Offered(Option<Box<Remote>>),
    /// Its bytes were requested with `Request`.
    Requested,
}

#[derive(Debug)]
pub(super) struct Message {
    pub from: PeerId,
    pub kind: MessageKind,
    /// The sender waits for `Done` when it is delivered.
    pub ack: bool,
    /// It will not be received: drop what still comes.
    pub discarded: bool,
    /// The sender's number for it.
    pub number: u32,
    pub tag: u64,
    pub data: Option<u64>,
    pub phase: Phase,
    pub total: usize,
    /// How many bytes will come: fewer than `total` if the receive is shorter.
    pub goal: usize,
    /// Bytes that were given a place so far.
    pub next: usize,
    /// Bodies that the transport is still moving to their place.
    pub moving: u32,
    /// Bytes that came before it was matched: the first part, and later ones with their offsets.
    pub head: Vec<u8>,
    pub rest: Vec<(usize, Vec<u8>)>,
    /// What it costs as an unexpected message (`credit`).
    pub kept: usize,
    /// Its name in the matcher while it is unexpected.
    pub unexpected_id: Option<Id>,
    pub matched: Option<MatchedRecv>,
    /// For a peer's long write: the region it goes to, instead of a receive.
    pub long_write: Option<Box<LongWrite>>,
    /// For a tagged atomic: what to do to the receive's buffer. `head` has the operands.
    pub tagged_atomic: Option<Box<TaggedAtomic>>,
}

impl Message {
    /// From the header of its first packet; no bytes have come yet.
    pub(super) fn new(from: PeerId, header: &Header, phase: Phase, total: usize) -> Message {
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

    /// All bytes that it waits for are in place.
    pub(super) fn complete(&self) -> bool {
        self.moving == 0 && self.next >= self.goal && !matches!(self.phase, Phase::Offered(_))
    }

    fn answer(&self) -> Option<u32> {
        let due = match self.phase {
            Phase::Coming | Phase::Requested => self.ack,
            Phase::Offered(_) => true,
        };
        due.then_some(self.number)
    }

    pub(super) fn delivery(&self, matched: &MatchedRecv) -> Delivery {
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

impl Delivery {
    /// Of a message that has no entry in `arrivals`.
    #[inline]
    pub(super) fn of_header(
        from: PeerId,
        header: &Header,
        total: usize,
        matched: &MatchedRecv,
        answer: Option<u32>,
    ) -> Delivery {
        Delivery {
            from,
            kind: kind(header),
            tell: matched.tell,
            tag: tag(header),
            data: data(header),
            total,
            room: matched.iov.len(),
            answer,
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

/// The tag that matching compares: 0 for untagged messages.
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

/// The answer that message or operation `number` is complete.
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
    /// Where the next `len` bytes of a message go, which belong at offset `at`.
    pub(super) fn place_part(&mut self, id: Id, at: usize, len: usize, report: &mut impl Report) -> Placement {
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
                buffer: self.buffers.take(len),
                token,
            },
        }
    }

    /// The transport has placed bytes of a message, or hands them over in `buffer`.
    pub(super) fn part_landed(&mut self, id: Id, at: usize, buffer: Option<Vec<u8>>, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        message.moving = message.moving.saturating_sub(1);
        if message.long_write.is_some() {
            return self.landed_in_region(id, at, buffer, report);
        }
        match (buffer, &message.matched) {
            // The message was matched while the transport filled the buffer.
            (Some(bytes), Some(matched)) => {
                matched.iov.write(at, &bytes);
                self.buffers.give_back_message(bytes);
            }
            (Some(bytes), None) if at == 0 => message.head = bytes,
            (Some(bytes), None) => message.rest.push((at, bytes)),
            (None, _) => {}
        }
        self.finish_if_complete(id, report);
    }

    /// Finishes a message that is complete and was matched or discarded.
    pub(super) fn finish_if_complete(&mut self, id: Id, report: &mut impl Report) {
        let over = |message: &Message| {
            message.complete() && (message.matched.is_some() || message.discarded || message.long_write.is_some())
        };
        if self.arrivals.get(id).is_some_and(over) {
            self.finish(id, report);
        }
    }

    /// Reports a message as delivered, or drops it if it was discarded.
    pub(super) fn finish(&mut self, id: Id, report: &mut impl Report) {
        let Some(message) = self.arrivals.remove(id) else {
            return;
        };
        if let Some(long_write) = &message.long_write {
            return self.long_write_done(&message, long_write, report);
        }
        match &message.matched {
            Some(matched) => self.report_message(&message.delivery(matched), None, report),
            None => self.answer(message.from, message.answer()),
        }
    }

    pub(super) fn answer(&mut self, to: PeerId, number: Option<u32>) {
        if let Some(number) = number {
            self.send_control(to, done_header(number));
        }
    }

    /// Matches an unexpected message with a receive.
    pub(super) fn attach(&mut self, id: Id, matched: MatchedRecv, report: &mut impl Report) {
        self.leave_unexpected(id);
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        if message.tagged_atomic.is_some() {
            return self.tagged_atomic_attached(id, matched, report);
        }
        let head = std::mem::take(&mut message.head);
        matched.iov.write(0, &head);
        self.buffers.give_back_message(head);
        for (at, bytes) in std::mem::take(&mut message.rest) {
            matched.iov.write(at, &bytes);
            self.buffers.give_back_message(bytes);
        }
        if message.complete() {
            let delivery = message.delivery(&matched);
            self.arrivals.remove(id);
            return self.report_message(&delivery, None, report);
        }
        message.matched = Some(matched);
        match message.phase {
            Phase::Offered(_) if message.moving == 0 => self.accept(id, report),
            // More is to come, or `remote_landed` goes on.
            Phase::Coming | Phase::Requested | Phase::Offered(_) => {}
        }
    }

    /// Discards an unexpected message.
    pub(super) fn discard(&mut self, id: Id, report: &mut impl Report) {
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

    /// A message is no longer unexpected: returns the credit that it cost.
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

    /// Puts a message that matched no posted receive among the unexpected ones.
    pub(super) fn hold_unexpected(&mut self, id: Id) {
        let Some(message) = self.arrivals.get(id) else { return };
        let (kind, from, tag) = (message.kind, message.from, message.tag);
        let source = self.source(from);
        let held = self.matcher(kind).add_unexpected(source, tag, id);
        if let Some(message) = self.arrivals.get_mut(id) {
            message.unexpected_id = Some(held);
        }
    }
}
