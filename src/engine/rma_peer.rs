//! RMA state of a peer: our short operations that it has not acknowledged, and what we owe it as a target. Made with
//! the first such operation, so a peer that only exchanges messages has none.
//!
//! Short writes and base atomics complete in the order they were started. So they have no number: the target counts
//! them, and one `Acked` at the end of a poll completes many.

use super::exposure::Exposure;
use super::known_memory::KnownMemory;
use super::op::{
    Access, CompletedOp, Completion, Context, Error, Failure, Form, MessageKind, RemoteIov, RemotePart, Report, Tell,
};
use super::peer::{Malformed, Peer};
use super::pieces::{Refusal, done_failed, refusal_code, refusal_error};
use super::port::PeerId;
use super::recall::AnswerWatch;
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use std::collections::VecDeque;

/// So many acknowledgements that nobody waits for go at once, for their number is limited by what a peer may have in
/// flight (`Config::sends`).
const ACKS_LATER: u64 = 64;

/// A short write or base atomic that waits for `Acked`.
#[derive(Debug)]
pub(super) struct ShortOp {
    pub context: Context,
    pub len: usize,
    pub tell: Tell,
    pub kind: ShortKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShortKind {
    Atomic,
    Write,
    /// When it is acknowledged, this is known memory.
    FirstWrite { addr: u64, key: u64 },
    /// A write to known memory. Its completion was reported when it had left.
    UnheardWrite { addr: u64, key: u64 },
    /// The same before that: the transport has gathered it.
    GatheredWrite { addr: u64, key: u64 },
}

/// The result of a peer's short read or atomic, as the memory was when the request was executed.
#[derive(Debug)]
pub(super) struct Reply {
    /// Of the next packet: `total` is the number of bytes pushed so far.
    pub header: Header,
    pub body: Vec<u8>,
}

impl Reply {
    /// Bytes pushed.
    fn at(&self) -> usize {
        self.header.total as usize
    }

    /// Bytes not yet pushed.
    pub(super) fn left(&self) -> usize {
        self.body.len().saturating_sub(self.at())
    }

    /// The next `len` bytes.
    pub(super) fn next(&self, len: usize) -> &[u8] {
        let from = self.body.get(self.at()..).unwrap_or_default();
        from.get(..len).unwrap_or(from)
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

#[derive(Debug, Default)]
pub(super) struct RmaPeer {
    pub unacked: VecDeque<ShortOp>,
    pub known_memory: KnownMemory,
    /// How many of `unacked` are `GatheredWrite`.
    pub gathered: usize,
    /// Successes to be acknowledged with the next `Acked`.
    pub acks: u64,
    /// It is in `Core::acks_later`.
    pub acks_later: bool,
    /// Among them are writes to memory of which each further write is to be waited for.
    pub acks_each: bool,
    pub replies: VecDeque<Reply>,
    /// The bytes in `replies`.
    pub reply_bytes: usize,
    pub served_reads: VecDeque<ServedRead>,
    pub exposed_reads: Vec<ExposedRead>,
    /// `served_reads` goes before `Peer::requested` next: they take turns.
    pub serve_next: bool,
    /// Our long reads and writes in flight. Messages and atomics to the peer wait for them.
    pub long_ops: u32,
    /// Our atomics at the target's processor that it has not answered. Copies by the transport wait for them.
    pub answers: u32,
    /// The peer's operations that are still landing. Its later packets wait for them.
    pub landing: u32,
    pub watch: AnswerWatch,
}

impl RmaPeer {
    /// A short operation was pushed. Returns whether the caller must add the peer to `Core::awaiting_answers`.
    #[inline]
    fn expect(&mut self, short: ShortOp) -> bool {
        self.unacked.push_back(short);
        self.watch.begin()
    }

    #[cfg(test)]
    pub fn left(&self) -> usize {
        let owed = self.acks as usize
            + self.replies.len()
            + self.reply_bytes
            + self.served_reads.len()
            + self.exposed_reads.len();
        self.unacked.len() + owed + self.long_ops as usize + self.landing as usize + self.answers as usize
    }
}

impl Peer {
    pub(super) fn rma_mut(&mut self) -> &mut RmaPeer {
        self.rma.get_or_insert_default()
    }

    /// Whether our long operations are in flight, so that messages and atomics wait.
    pub(super) fn has_long_rma(&self) -> bool {
        self.rma.as_ref().is_some_and(|rma| rma.long_ops > 0)
    }

    pub(super) fn has_landing_rma(&self) -> bool {
        self.rma.as_ref().is_some_and(|rma| rma.landing > 0)
    }

    /// To be called when `shunned`, `long_ops` or `landing` has changed.
    pub(super) fn update_fast_path(&mut self) {
        self.off_fast_path = self.shunned || self.has_long_rma() || self.has_landing_rma();
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

impl ShortOp {
    pub(super) fn end(&self, to: PeerId, error: Option<Error>) -> Completion {
        let op = match self.kind {
            ShortKind::Atomic => CompletedOp::Atomic(Form::Base),
            _ => CompletedOp::Rma(Access::Write),
        };
        Completion {
            len: if error.is_none() { self.len } else { 0 },
            failure: error.map(|error| Failure { error, overflow: 0 }),
            ..rma_completion(op, to, self.context, self.tell)
        }
    }

    /// What the completion of it says to the program, if that was not told yet.
    fn tell(&self, to: PeerId, error: Option<Error>, report: &mut impl Report) {
        if !matches!(self.kind, ShortKind::UnheardWrite { .. }) {
            report.report(self.end(to, error));
        }
    }
}

impl RmaPeer {
    /// The target has done one of our short operations, or refused it.
    #[inline]
    pub(super) fn ended(&mut self, to: PeerId, short: &ShortOp, error: Option<Error>, report: &mut impl Report) {
        let len = short.len;
        match (short.kind, error) {
            (ShortKind::FirstWrite { addr, key }, None) => self.known_memory.add(&RemotePart { addr, len, key }),
            (ShortKind::UnheardWrite { addr, key }, Some(error)) => {
                report.refused_unheard(to, &RemotePart { addr, len, key }, error);
            }
            (ShortKind::GatheredWrite { .. }, _) => self.gathered = self.gathered.saturating_sub(1),
            _ => {}
        }
        if error.is_some() {
            self.known_memory.forget();
        }
        short.tell(to, error, report);
    }

    /// What the transport had gathered has left.
    fn have_left(&mut self, to: PeerId, report: &mut impl Report) {
        for short in self.unacked.iter_mut().rev() {
            if self.gathered == 0 {
                break;
            }
            if let ShortKind::GatheredWrite { addr, key } = short.kind {
                self.gathered -= 1;
                report.report(short.end(to, None));
                short.kind = ShortKind::UnheardWrite { addr, key };
            }
        }
    }
}

impl Core {
    // ---- as initiator ----

    /// What a write is that need not be delivered to be reported.
    #[inline]
    pub(super) fn kind_of_write(&self, to: PeerId, part: &RemotePart) -> ShortKind {
        let RemotePart { addr, key, .. } = *part;
        let rma = self.peers.get(to as usize).and_then(|peer| peer.rma.as_ref());
        match rma.is_some_and(|rma| rma.known_memory.has(part)) {
            true => ShortKind::UnheardWrite { addr, key },
            false => ShortKind::FirstWrite { addr, key },
        }
    }

    /// A queued short operation was pushed.
    pub(super) fn expect_ack(&mut self, to: PeerId, short: ShortOp) {
        self.unacked += 1;
        if self.peer(to).rma_mut().expect(short) {
            self.awaiting_answers.push(to);
        }
    }

    /// A short operation was pushed without being queued: it is counted as in flight only here.
    #[inline(always)]
    pub(super) fn short_op_started(&mut self, to: PeerId, short: ShortOp) {
        self.unacked += 1;
        let peer = self.peer(to);
        peer.unfinished += 1;
        if peer.rma_mut().expect(short) {
            self.awaiting_answers.push(to);
        }
    }

    /// The same, and the transport has gathered it.
    #[cold]
    pub(super) fn short_op_gathered(&mut self, to: PeerId, mut short: ShortOp) {
        if let ShortKind::UnheardWrite { addr, key } = short.kind {
            short.kind = ShortKind::GatheredWrite { addr, key };
            let rma = self.peer(to).rma_mut();
            rma.gathered += 1;
            if rma.gathered == 1 {
                self.gathered.push(to);
            }
        }
        self.short_op_started(to, short);
    }

    /// The transport has flushed: writes to known memory, that it had gathered, have left.
    #[cold]
    pub(super) fn all_have_left(&mut self, report: &mut impl Report) {
        for to in self.gathered.drain(..) {
            // None: the peer was lost meanwhile, and its operations have failed.
            if let Some(rma) = self.peers.get_mut(to as usize).and_then(|peer| peer.rma.as_mut()) {
                rma.have_left(to, report);
            }
        }
    }

    /// The peer acknowledges short operations with `Acked`.
    pub(super) fn acked(&mut self, from: PeerId, header: &Header, report: &mut impl Report) -> Result<(), Malformed> {
        let refused = (header.flags & flag::FAILED != 0).then(|| refusal_error(header.data));
        let many = usize::try_from(header.total).map_err(|_| Malformed)?;
        self.ends_short(from, many, refused, report)?;
        if header.flags & flag::ACK != 0 {
            self.peer(from).rma_mut().known_memory.forget();
        }
        Ok(())
    }

    /// The peer acknowledges short operations with a write.
    #[cold]
    pub(super) fn acked_along(&mut self, from: PeerId, many: u32, report: &mut impl Report) -> Result<(), Malformed> {
        self.ends_short(from, many as usize, None, report)
    }

    /// The oldest `many` operations are done; the one after them was refused, if there is an error.
    #[inline]
    fn ends_short(
        &mut self,
        from: PeerId,
        many: usize,
        refused: Option<Error>,
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let ends = many.checked_add(usize::from(refused.is_some())).ok_or(Malformed)?;
        let peer = self.peer(from);
        let rma = peer.rma_mut();
        rma.watch.heard = rma.watch.heard.wrapping_add(1);
        if ends > rma.unacked.len() {
            return Err(Malformed);
        }
        for end in 0..ends {
            let Some(short) = rma.unacked.pop_front() else { break };
            rma.ended(from, &short, if end < many { None } else { refused }, report);
        }
        peer.unfinished = peer.unfinished.saturating_sub(ends as u32);
        let waited_for = !peer.queue.is_empty();
        self.unacked = self.unacked.saturating_sub(ends);
        if waited_for {
            self.wake(from);
        }
        Ok(())
    }

    /// Fails all short operations to a peer that is gone, whose state was already reset.
    pub(super) fn end_short_ops(
        &mut self,
        peer: PeerId,
        rma: Option<Box<RmaPeer>>,
        error: Error,
        report: &mut impl Report,
    ) {
        let Some(rma) = rma else { return };
        self.end_exposed_reads(peer, rma.exposed_reads, rma.served_reads);
        for short in rma.unacked {
            self.unacked = self.unacked.saturating_sub(1);
            short.tell(peer, Some(error), report);
        }
    }

    // ---- as target ----

    /// Whether a peer has so many results waiting that its next request is to be refused for now.
    pub(super) fn has_many_replies(&mut self, to: PeerId, most: usize) -> bool {
        let room = self.config.room;
        let rma = self.peer(to).rma.as_ref();
        rma.is_some_and(|rma| rma.replies.len() + rma.served_reads.len() >= most || rma.reply_bytes > room)
    }

    /// A peer's short write or base atomic is done.
    #[inline]
    pub(super) fn ack(&mut self, to: PeerId) {
        self.peer(to).rma_mut().acks += 1;
        self.wake(to);
    }

    /// A peer's short write is done. If nobody waits for the acknowledgement, it goes with other packets, or with the first
    /// poll that finds nothing.
    /// `counted`: somebody hears of each access to that region, and may close it then (FI_MR_SINGLE_USE).
    #[inline]
    pub(super) fn ack_write(&mut self, to: PeerId, header: &Header, counted: bool) {
        let rma = self.peer(to).rma_mut();
        rma.acks_each |= counted;
        if header.flags & flag::ACK != 0 {
            return self.ack(to);
        }
        rma.acks += 1;
        let many = rma.acks >= ACKS_LATER;
        if !core::mem::replace(&mut rma.acks_later, true) {
            self.acks_later.push(to);
        }
        if many {
            self.wake(to);
        }
    }

    /// A poll has found nothing, so what nobody waits for may go.
    #[cold]
    pub(super) fn push_acks_later(&mut self) {
        while let Some(to) = self.acks_later.pop() {
            // None: the peer was lost meanwhile.
            let Some(rma) = self.peers.get_mut(to as usize).and_then(|peer| peer.rma.as_mut()) else {
                continue;
            };
            rma.acks_later = false;
            if rma.acks > 0 {
                self.wake(to);
            }
        }
    }

    /// A peer's short write or base atomic is refused. The same `Acked` counts those before it, so the right one fails.
    #[cold]
    pub(super) fn refuse_short(&mut self, refusal: &Refusal, report: &mut impl Report) {
        let before = std::mem::take(&mut self.peer(refusal.from).rma_mut().acks);
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
        let rma = self.peer(to).rma_mut();
        rma.reply_bytes += body.len();
        let header = Header::new(Packet::Reply, number);
        rma.replies.push_back(Reply { header, body });
        self.wake(to);
    }

    pub(super) fn serve(&mut self, to: PeerId, serve: ServedRead) {
        self.peer(to).rma_mut().served_reads.push_back(serve);
        self.wake(to);
    }

    /// The `Acked` that is due.
    pub(super) fn ack_due(&self, to: PeerId) -> Option<Header> {
        let rma = self.peers.get(to as usize)?.rma.as_ref()?;
        (rma.acks > 0).then(|| Header {
            flags: if rma.acks_each { flag::ACK } else { 0 },
            total: rma.acks,
            ..Header::new(Packet::Acked, 0)
        })
    }

    /// The same, if nothing else is to go to this peer.
    pub(super) fn only_ack_due(&self, to: PeerId) -> Option<Header> {
        let peer = self.peers.get(to as usize)?;
        let rma = peer.rma.as_ref()?;
        let answers = peer.control.len() + rma.replies.len() + rma.served_reads.len();
        let alone = answers + peer.queue.len() + peer.requested.len() == 0 && self.credit_due(to).is_none();
        self.ack_due(to).filter(|_| alone)
    }

    /// That packet was pushed.
    pub(super) fn acks_given(&mut self, to: PeerId, acks: u64) {
        let rma = self.peer(to).rma_mut();
        rma.acks = rma.acks.saturating_sub(acks);
        rma.acks_each = false;
    }

    pub(super) fn first_reply(&self, to: PeerId) -> Option<&Reply> {
        self.peers.get(to as usize)?.rma.as_ref()?.replies.front()
    }

    /// The next `len` bytes of the first reply were pushed.
    pub(super) fn replied(&mut self, to: PeerId, len: usize) {
        let rma = self.peer(to).rma_mut();
        if let Some(reply) = rma.replies.front_mut().filter(|reply| reply.left() > len) {
            reply.header.total += len as u64;
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
        let header = Header {
            total: serve.at as u64,
            ..Header::new(Packet::Reply, serve.number)
        };
        Some((header, self.max_body_to(to).min(len.saturating_sub(serve.at))))
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
