//! RMA state of a peer: our operations that it has not answered, and what we owe it as a target. Made with the first
//! such operation, so a peer that only exchanges messages has none.
//!
//! This file has what a target owes: acknowledgements, replies, and long reads that it serves. What an initiator waits
//! for is in `short_op` and `replies`.

use super::exposure::Exposure;
use super::known_memory::KnownMemory;
use super::next_packet::Purpose;
use super::op::{Access, CompletedOp, Completion, Context, Error, MessageKind, RemoteIov, RemotePart, Report, Tell};
use super::peer::{Detours, Peer};
use super::pieces::{Refusal, done_failed, refusal_code, refusal_error};
use super::port::PeerId;
use super::recall::AnswerWatch;
use super::short_op::ShortOp;
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use std::collections::VecDeque;

/// Acknowledgements that nobody waits for are put off until there are so many: a peer may have no more operations in
/// flight than `Config::in_flight`.
const MOST_PUT_OFF: u64 = 64;
/// They also go after so many polls in a row that have found nothing. A program that answers a write with a write has
/// written by then, which acknowledges along; and where each packet is a call of the system, many go in one.
const IDLE_POLLS: u32 = 32;
/// They go after so many polls in any case: a fence of the peer's may wait for them while others send all the time.
const MOST_POLLS: u32 = 1024;
/// After so many replies another packet goes first: a peer that reads without pause, and takes the answers no sooner
/// than they are written, would never let anything else through.
const MOST_REPLIES: u8 = 16;

/// The result of a peer's short read or atomic, as the memory was when the request was executed.
#[derive(Debug)]
pub(super) struct Reply {
    number: u32,
    /// Bytes pushed.
    at: usize,
    body: Vec<u8>,
}

impl Reply {
    /// Bytes not yet pushed.
    pub(super) fn left(&self) -> usize {
        self.body.len().saturating_sub(self.at)
    }

    /// The next packet, and the length of its body, which is at most `most`.
    pub(super) fn next(&self, most: usize) -> (Header, usize) {
        let len = self.left().min(most);
        (reply_header(self.number, self.at, self.left() - len), len)
    }

    /// The next `len` bytes.
    pub(super) fn bytes(&self, len: usize) -> &[u8] {
        let from = self.body.get(self.at..).unwrap_or_default();
        from.get(..len).unwrap_or(from)
    }
}

/// The header of a packet with bytes that a peer asked for, from `at` on. `behind`: how many come after this packet.
pub(super) fn reply_header(number: u32, at: usize, behind: usize) -> Header {
    Header {
        data: behind as u64,
        total: at as u64,
        ..Header::new(Packet::Reply, number)
    }
}

/// A peer's long read, answered packet by packet from the region.
#[derive(Debug)]
pub(super) struct ServedRead {
    pub number: u32,
    pub remote: RemoteIov,
    /// Bytes pushed.
    pub at: usize,
    /// The peer can fetch with `get`.
    pub get: bool,
    pub exposure: Exposure,
}

/// A long read that a peer may be fetching, of which the transport is to be told when it is over.
#[derive(Debug)]
pub(super) struct ExposedRead {
    pub number: u32,
    pub id: u64,
}

/// What has come of a write in parts whose target is told of it, which it is with the last part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToldParts {
    bytes: usize,
    /// Which part comes next: its key, its address, and the bytes from there to the end. By that it is known, as parts
    /// of a region that has stopped being counted are not told of, the last among them.
    next: (u64, u64, u64),
}

impl ToldParts {
    /// Another part has come, of `len` bytes, and `behind` are to come after it. Returns the bytes of the write if that
    /// is none.
    pub(super) fn add(&mut self, header: &Header, len: usize, behind: u64) -> Option<usize> {
        let (key, addr) = (header.data, header.tag);
        let is_next = self.next == (key, addr, behind.saturating_add(len as u64));
        let before = if is_next { self.bytes } else { 0 };
        let bytes = before.saturating_add(len);
        *self = match behind {
            0 => ToldParts::default(),
            _ => ToldParts {
                bytes,
                next: (key, addr.wrapping_add(len as u64), behind),
            },
        };
        (behind == 0).then_some(bytes)
    }
}

#[derive(Debug, Default)]
pub(super) struct RmaPeer {
    pub unacked: VecDeque<ShortOp>,
    pub known_memory: KnownMemory,
    /// Why the target refused a part of our oldest write, while other parts of it are still in `unacked`.
    pub refused_part: Option<Error>,
    /// How many of `unacked` are `GatheredWrite`.
    pub gathered: usize,
    /// Successes to be acknowledged with the next `Acked`.
    pub acks: u64,
    /// That packet is due: the peer waits for one of them, or they were put off for long enough, or are many.
    pub acks_due: bool,
    /// The peer is in `Core::acks_later`.
    pub acks_later: bool,
    /// One of them was a write to a region whose accesses are counted, which may be closed by whoever hears of it. So
    /// the peer must wait for the acknowledgement of each further write there.
    pub acks_each: bool,
    pub replies: VecDeque<Reply>,
    /// The bytes in `replies`.
    pub reply_bytes: usize,
    pub served_reads: VecDeque<ServedRead>,
    pub exposed_reads: Vec<ExposedRead>,
    /// Replies that were pushed since the last packet that was no answer.
    pub replies_in_a_row: u8,
    /// `served_reads` goes before `Peer::requested` next: they take turns.
    pub serve_next: bool,
    /// Our long reads and writes in flight. Messages and atomics to the peer wait for them.
    pub long_ops: u32,
    /// Our atomics at the target's processor that it has not answered. Copies by the transport wait for them.
    pub unanswered_atomics: u32,
    pub told_parts: ToldParts,
    /// The peer's operations that are still landing. Its later packets wait for them.
    pub landing: u32,
    pub watch: AnswerWatch,
}

impl RmaPeer {
    #[cfg(test)]
    pub fn left(&self) -> usize {
        let owed = self.acks as usize
            + self.replies.len()
            + self.reply_bytes
            + self.served_reads.len()
            + self.exposed_reads.len();
        let waited_for = self.long_ops + self.landing + self.unanswered_atomics;
        self.unacked.len() + owed + waited_for as usize
    }
}

/// One more, or one less. Returns whether there are any.
fn count(of: &mut u32, begins: bool) -> bool {
    *of = if begins { *of + 1 } else { of.saturating_sub(1) };
    *of > 0
}

impl Peer {
    pub(super) fn rma_mut(&mut self) -> &mut RmaPeer {
        self.rma.get_or_insert_default()
    }

    /// One more, or one less, of our long operations is in flight.
    pub(super) fn count_long_op(&mut self, begins: bool) {
        let any = count(&mut self.rma_mut().long_ops, begins);
        self.detours.set(Detours::LONG_OPS, any);
    }

    /// One more, or one less, of the peer's operations is landing.
    pub(super) fn count_landing(&mut self, begins: bool) {
        let any = count(&mut self.rma_mut().landing, begins);
        self.detours.set(Detours::LANDING, any);
    }

    /// Answers that wait to be pushed, but for acknowledgements.
    fn answers(&self) -> usize {
        let rma = self.rma.as_ref();
        self.control.len() + rma.map_or(0, |rma| rma.replies.len() + rma.served_reads.len())
    }
}

/// The completion of an RMA or atomic operation, to be filled in by the caller.
pub(super) fn rma_completion(op: CompletedOp, to: PeerId, context: Context, tell: Tell) -> Completion {
    Completion {
        op,
        kind: MessageKind::Untagged,
        context,
        tell,
        len: 0,
        buf: 0,
        tag: 0,
        data: None,
        source: Some(to),
        released: false,
        peeked: false,
        failure: None,
    }
}

impl Core {
    /// Whether a peer has so many results waiting that its next request is to be refused for now.
    pub(super) fn has_many_replies(&mut self, to: PeerId, most: usize) -> bool {
        let room = self.config.room;
        let rma = self.peer(to).rma.as_ref();
        rma.is_some_and(|rma| rma.replies.len() + rma.served_reads.len() >= most || rma.reply_bytes > room)
    }

    /// A peer's short write or base atomic is done.
    #[inline]
    pub(super) fn ack(&mut self, to: PeerId) {
        let rma = self.peer(to).rma_mut();
        rma.acks += 1;
        rma.acks_due = true;
        self.wake(to);
    }

    /// A peer's short write is done. An acknowledgement that nobody waits for is put off until one is waited for, or
    /// there is nothing else to do. `counted`: somebody hears of each access to that region, and may close it then
    /// (FI_MR_SINGLE_USE).
    #[inline]
    pub(super) fn ack_write(&mut self, to: PeerId, header: &Header, counted: bool) {
        let rma = self.peer(to).rma_mut();
        rma.acks_each |= counted;
        if header.flags & flag::ACK != 0 {
            return self.ack(to);
        }
        rma.acks += 1;
        let many = rma.acks >= MOST_PUT_OFF;
        rma.acks_due |= many;
        if !core::mem::replace(&mut rma.acks_later, true) {
            self.acks_later.push(to);
        }
        if many {
            self.wake(to);
        }
    }

    /// Called in each poll while acknowledgements are put off: makes them due when it is time.
    #[cold]
    pub(super) fn see_to_acks_later(&mut self, came: usize) {
        self.idle_polls = if came == 0 { self.idle_polls + 1 } else { 0 };
        self.polls_with_acks += 1;
        if self.idle_polls < IDLE_POLLS && self.polls_with_acks < MOST_POLLS {
            return;
        }
        self.idle_polls = 0;
        self.polls_with_acks = 0;
        while let Some(to) = self.acks_later.pop() {
            // None: the peer was lost meanwhile.
            let Some(rma) = self.peers.get_mut(to as usize).and_then(|peer| peer.rma.as_mut()) else {
                continue;
            };
            rma.acks_later = false;
            rma.acks_due |= rma.acks > 0;
            if rma.acks_due {
                self.wake(to);
            }
        }
    }

    /// A peer's short write or base atomic is refused. The same `Acked` counts those before it, so the right one fails.
    #[cold]
    pub(super) fn refuse_short(&mut self, refusal: &Refusal, report: &mut impl Report) {
        let rma = self.peer(refusal.from).rma_mut();
        rma.told_parts = ToldParts::default();
        rma.acks_due = false;
        let before = std::mem::take(&mut rma.acks);
        let header = Header {
            flags: flag::FAILED,
            data: refusal_code(refusal.error),
            total: before,
            ..Header::new(Packet::Acked, 0)
        };
        self.send_control(refusal.from, header);
        report.refused(refusal.from, &refusal.part, refusal.error);
    }

    /// A peer's operation with a number is refused.
    #[cold]
    pub(super) fn refuse(&mut self, number: u32, refusal: &Refusal, report: &mut impl Report) {
        self.send_control(refusal.from, done_failed(number, refusal.error));
        report.refused(refusal.from, &refusal.part, refusal.error);
    }

    pub(super) fn reply(&mut self, to: PeerId, number: u32, body: Vec<u8>) {
        self.reply_from(0, to, number, body);
    }

    /// So many bytes of the answer are on their way.
    pub(super) fn reply_from(&mut self, at: usize, to: PeerId, number: u32, body: Vec<u8>) {
        let rma = self.peer(to).rma_mut();
        rma.reply_bytes += body.len();
        rma.replies.push_back(Reply { number, at, body });
        self.wake(to);
    }

    pub(super) fn serve(&mut self, to: PeerId, serve: ServedRead) {
        self.peer(to).rma_mut().served_reads.push_back(serve);
        self.wake(to);
    }

    /// The `Acked` that is due.
    pub(super) fn ack_due(&self, to: PeerId) -> Option<Header> {
        let rma = self.peers.get(to as usize)?.rma.as_ref()?;
        rma.acks_due.then(|| Header {
            flags: if rma.acks_each { flag::ACK } else { 0 },
            total: rma.acks,
            ..Header::new(Packet::Acked, 0)
        })
    }

    /// Whether any answer is to go to this peer now.
    pub(super) fn owes_answers(&self, to: PeerId) -> bool {
        let owes = |peer: &Peer| peer.answers() > 0 || peer.rma.as_ref().is_some_and(|rma| rma.acks_due);
        self.peers.get(to as usize).is_some_and(owes)
    }

    /// The `Acked` that is due, if nothing else is to go to this peer.
    pub(super) fn only_ack_due(&self, to: PeerId) -> Option<Header> {
        let peer = self.peers.get(to as usize)?;
        let alone = peer.answers() + peer.queue.len() + peer.requested.len() == 0 && self.credit_due(to).is_none();
        self.ack_due(to).filter(|_| alone)
    }

    /// That packet was pushed.
    pub(super) fn acks_given(&mut self, to: PeerId, acks: u64) {
        let rma = self.peer(to).rma_mut();
        rma.acks = rma.acks.saturating_sub(acks);
        rma.acks_due &= rma.acks > 0;
        rma.acks_each = false;
    }

    /// Whether something else goes before the next reply.
    pub(super) fn had_many_replies(&self, to: PeerId) -> bool {
        let rma = self.peers.get(to as usize).and_then(|peer| peer.rma.as_ref());
        rma.is_some_and(|rma| rma.replies_in_a_row >= MOST_REPLIES)
    }

    /// A packet was pushed for this.
    #[inline]
    pub(super) fn note_turn(&mut self, to: PeerId, purpose: Purpose) {
        let Some(rma) = self.peers.get_mut(to as usize).and_then(|peer| peer.rma.as_mut()) else {
            return;
        };
        match purpose {
            Purpose::Reply => rma.replies_in_a_row = rma.replies_in_a_row.saturating_add(1),
            Purpose::Control | Purpose::Credit | Purpose::Acks => {}
            _ => rma.replies_in_a_row = 0,
        }
    }

    pub(super) fn first_reply(&self, to: PeerId) -> Option<&Reply> {
        self.peers.get(to as usize)?.rma.as_ref()?.replies.front()
    }

    /// The next `len` bytes of the first reply were pushed.
    pub(super) fn replied(&mut self, to: PeerId, len: usize) {
        let rma = self.peer(to).rma_mut();
        if let Some(reply) = rma.replies.front_mut().filter(|reply| reply.left() > len) {
            reply.at += len;
            return;
        }
        if let Some(reply) = rma.replies.pop_front() {
            rma.reply_bytes = rma.reply_bytes.saturating_sub(reply.body.len());
            self.buffers.give_back(reply.body);
        }
    }

    /// The next packet for the peer's oldest long read, and the length of its body.
    pub(super) fn next_served(&self, to: PeerId) -> Option<(Header, usize)> {
        let serve = self.peers.get(to as usize)?.rma.as_ref()?.served_reads.front()?;
        let len = serve.remote.len();
        // Looks up all of it for each packet, so that nothing is sent from a region that was closed meanwhile.
        let found = match self.find_regions(&serve.remote, 0, len, Rights::READ) {
            Err((_, error)) => return Some((done_failed(serve.number, error), 0)),
            Ok(found) => found,
        };
        if serve.get && found.one().is_some() {
            let flags = if found.counted { flag::ACK } else { 0 };
            let header = Header {
                flags,
                tag: found.part.addr,
                data: found.part.key,
                ..Header::new(Packet::Exposed, serve.number)
            };
            return Some((header, 0));
        }
        let left = len.saturating_sub(serve.at);
        let now = self.max_body_to(to).min(left);
        Some((reply_header(serve.number, serve.at, left - now), now))
    }

    /// That packet was pushed.
    pub(super) fn served(&mut self, to: PeerId, header: &Header, len: usize, report: &mut impl Report) {
        let rma = self.peer(to).rma_mut();
        rma.serve_next = false;
        let peer = self.peer(to);
        peer.requested_next = false;
        let rma = peer.rma_mut();
        let Some(serve) = rma.served_reads.front_mut() else {
            return;
        };
        serve.at += len;
        if header.packet == Packet::Reply && serve.at < serve.remote.len() {
            return;
        }
        let Some(serve) = rma.served_reads.pop_front() else {
            return;
        };
        let len = serve.remote.len();
        match header.packet {
            Packet::Reply => {
                if let Ok(found) = self.find_regions(&serve.remote, 0, len, Rights::READ) {
                    self.report_target(to, Access::Read, &found, len, None, report);
                }
            }
            Packet::Done => report.refused(to, &Self::some_part(&serve.remote), refusal_error(header.data)),
            _ => self.read_exposed(to, &serve), // the peer says with `Got` when it has fetched
        }
    }

    pub(super) fn some_part(remote: &RemoteIov) -> RemotePart {
        remote.parts().first().copied().unwrap_or_default()
    }
}
