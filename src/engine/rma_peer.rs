//! What an engine knows of a peer with which it works on memory: what that peer has not acknowledged, and what it is
//! owed. Made with the first such operation, so that peers who only exchange messages have none.
//!
//! Short writes and atomics that give nothing back end in the order they began. So they have no number: the target
//! counts them, and one `Acked` at the end of a poll ends many.

use super::op::{
    Access, CompletedOp, Completion, Context, Error, Failure, Form, MessageKind, RemoteIov, RemotePart, Report, Tell,
};
use super::peer::{Malformed, Peer};
use super::pieces::{Refusal, code, error, failed};
use super::port::PeerId;
use super::recall::Watch;
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use std::collections::VecDeque;

/// Buffers kept for the next packet, and the largest that is.
const SPARE: usize = 64;
const SPARE_MOST: usize = 64 << 10;

/// A short write or atomic whose end the peer will tell.
#[derive(Debug)]
pub(super) struct Short {
    pub context: Context,
    pub len: usize,
    pub tell: Tell,
    pub atomic: bool,
}

/// Bytes of ours that a peer waits for, read when it asked.
#[derive(Debug)]
pub(super) struct Reply {
    /// `total` counts what has gone of it.
    pub header: Header,
    pub body: Vec<u8>,
}

impl Reply {
    /// Bytes of it that have gone.
    fn at(&self) -> usize {
        self.header.total as usize
    }

    /// Bytes of it that have not.
    pub fn left(&self) -> usize {
        self.body.len().saturating_sub(self.at())
    }

    /// The next so many.
    pub fn next(&self, len: usize) -> &[u8] {
        let from = self.body.get(self.at()..).unwrap_or_default();
        from.get(..len).unwrap_or(from)
    }
}

/// A long read of a peer's, answered bit by bit from the region.
#[derive(Debug)]
pub(super) struct Serve {
    pub number: u32,
    pub remote: RemoteIov,
    /// Bytes sent.
    pub at: usize,
    /// The peer can fetch.
    pub get: bool,
}

#[derive(Debug, Default)]
pub(super) struct Side {
    pub unacked: VecDeque<Short>,
    /// Successes to be told with the next `Acked`.
    pub acks: u64,
    pub replies: VecDeque<Reply>,
    /// The bytes of `replies`.
    pub weight: usize,
    pub serving: VecDeque<Serve>,
    /// Serving goes before sending what was asked for, in turns.
    pub serve_next: bool,
    /// Long reads and writes of ours that have started and not ended: messages and atomics wait for them.
    pub longs: u32,
    /// Operations of the peer's that are still coming: what is behind them waits.
    pub landing: u32,
    pub watch: Watch,
}

impl Side {
    /// A short operation is on its way. True: the peer is to be put into `Core::asked`.
    #[inline]
    fn expect(&mut self, short: Short) -> bool {
        self.unacked.push_back(short);
        self.watch.begin()
    }

    #[cfg(test)]
    pub fn left(&self) -> usize {
        let owed = self.acks as usize + self.replies.len() + self.weight + self.serving.len();
        self.unacked.len() + owed + self.longs as usize + self.landing as usize
    }
}

impl Peer {
    pub fn side(&mut self) -> &mut Side {
        self.side.get_or_insert_default()
    }

    /// Whether there are long operations under way, so that messages and atomics wait.
    pub fn has_longs(&self) -> bool {
        self.side.as_ref().is_some_and(|side| side.longs > 0)
    }

    pub fn has_landing(&self) -> bool {
        self.side.as_ref().is_some_and(|side| side.landing > 0)
    }

    /// To be called when `shunned`, `longs` or `landing` has changed.
    pub fn look_out(&mut self) {
        self.special = self.shunned || self.has_longs() || self.has_landing();
    }
}

/// The end of an operation on a peer's memory.
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

impl Short {
    pub fn end(&self, to: PeerId, error: Option<Error>) -> Completion {
        let what = if self.atomic {
            CompletedOp::Atomic(Form::Base)
        } else {
            CompletedOp::Rma(Access::Write)
        };
        Completion {
            len: if error.is_none() { self.len } else { 0 },
            failure: error.map(|error| Failure { error, overflow: 0 }),
            ..rma_completion(what, to, self.context, self.tell)
        }
    }
}

impl Core {
    // ---- as initiator ----

    /// A short operation that was queued is on its way.
    pub fn expect_ack(&mut self, to: PeerId, short: Short) {
        self.unacked += 1;
        if self.peer(to).side().expect(short) {
            self.asked.push(to);
        }
    }

    /// The same for one that was not queued: it has only begun now.
    #[inline(always)]
    pub fn short_begun(&mut self, to: PeerId, short: Short) {
        self.unacked += 1;
        let peer = self.peer(to);
        peer.unfinished += 1;
        if peer.side().expect(short) {
            self.asked.push(to);
        }
    }

    /// The peer acknowledges short operations.
    pub fn acked(&mut self, from: PeerId, header: &Header, report: &mut impl Report) -> Result<(), Malformed> {
        let refused = (header.flags & flag::FAILED != 0).then(|| error(header.data));
        let many = usize::try_from(header.total).map_err(|_| Malformed)?;
        let ends = many.checked_add(usize::from(refused.is_some())).ok_or(Malformed)?;
        let peer = self.peer(from);
        let side = peer.side();
        side.watch.heard = side.watch.heard.wrapping_add(1);
        let unacked = &mut side.unacked;
        if ends > unacked.len() {
            return Err(Malformed);
        }
        for end in 0..ends {
            let Some(short) = unacked.pop_front() else { break };
            report.report(short.end(from, if end < many { None } else { refused }));
        }
        peer.unfinished = peer.unfinished.saturating_sub(ends as u32);
        let waited_for = !peer.queue.is_empty();
        self.unacked = self.unacked.saturating_sub(ends);
        if waited_for {
            self.wake(from);
        }
        Ok(())
    }

    /// Ends all short operations of a peer that is gone, which has been forgotten.
    pub fn end_shorts(&mut self, peer: PeerId, side: Option<Box<Side>>, error: Error, report: &mut impl Report) {
        for short in side.into_iter().flat_map(|side| side.unacked) {
            self.unacked = self.unacked.saturating_sub(1);
            report.report(short.end(peer, Some(error)));
        }
    }

    // ---- as target ----

    /// Whether a peer lets too many answers lie to be given another.
    pub fn owes_much(&mut self, to: PeerId, most: usize) -> bool {
        let room = self.config.room;
        let side = self.peer(to).side.as_ref();
        side.is_some_and(|side| side.replies.len() + side.serving.len() >= most || side.weight > room)
    }

    /// A short write or atomic of a peer's is done.
    #[inline]
    pub fn ack(&mut self, to: PeerId) {
        self.peer(to).side().acks += 1;
        self.wake(to);
    }

    /// A short write or atomic is refused. Those before it are told first.
    #[cold]
    pub fn refuse_short(&mut self, refusal: &Refusal, report: &mut impl Report) {
        let before = std::mem::take(&mut self.peer(refusal.from).side().acks);
        let header = Header {
            flags: flag::FAILED,
            data: code(refusal.error),
            total: before,
            ..Header::new(Packet::Acked, 0)
        };
        self.say(refusal.from, header);
        report.refused(refusal.from, &refusal.part, refusal.error);
    }

    /// Operation `number` of a peer's is refused.
    #[cold]
    pub fn refuse(&mut self, number: u32, refusal: &Refusal, report: &mut impl Report) {
        self.say(refusal.from, failed(number, refusal.error));
        report.refused(refusal.from, &refusal.part, refusal.error);
    }

    pub fn reply(&mut self, to: PeerId, number: u32, body: Vec<u8>) {
        let side = self.peer(to).side();
        side.weight += body.len();
        let header = Header::new(Packet::Reply, number);
        side.replies.push_back(Reply { header, body });
        self.wake(to);
    }

    pub fn serve(&mut self, to: PeerId, serve: Serve) {
        self.peer(to).side().serving.push_back(serve);
        self.wake(to);
    }

    /// The `Acked` that is due.
    pub fn ack_due(&self, to: PeerId) -> Option<Header> {
        let side = self.peers.get(to as usize)?.side.as_ref()?;
        (side.acks > 0).then(|| Header {
            total: side.acks,
            ..Header::new(Packet::Acked, 0)
        })
    }

    /// That packet has been pushed.
    pub fn acks_given(&mut self, to: PeerId, header: &Header) {
        let side = self.peer(to).side();
        side.acks = side.acks.saturating_sub(header.total);
    }

    pub fn first_reply(&self, to: PeerId) -> Option<&Reply> {
        self.peers.get(to as usize)?.side.as_ref()?.replies.front()
    }

    /// So much of the reply has been pushed.
    pub fn replied(&mut self, to: PeerId, len: usize) {
        let side = self.peer(to).side();
        if let Some(reply) = side.replies.front_mut().filter(|reply| reply.left() > len) {
            reply.header.total += len as u64;
            return;
        }
        if let Some(reply) = side.replies.pop_front() {
            side.weight = side.weight.saturating_sub(reply.body.len());
            self.recycle(reply.body);
        }
    }

    /// The next packet of the long read that is being answered, and how much of it that is.
    pub fn next_served(&self, to: PeerId) -> Option<(Header, usize)> {
        let serve = self.peers.get(to as usize)?.side.as_ref()?.serving.front()?;
        let len = serve.remote.len();
        // All of it is looked up each time: nothing is sent of a region that was closed.
        let reached = match self.reach(&serve.remote, 0, len, Rights::READ) {
            Err((_, error)) => return Some((failed(serve.number, error), 0)),
            Ok(reached) => reached,
        };
        if serve.get && reached.one().is_some() {
            let flags = if reached.counted { flag::ACK } else { 0 };
            let header = Header {
                flags,
                tag: reached.part.addr,
                data: reached.part.key,
                ..Header::new(Packet::Exposed, serve.number)
            };
            return Some((header, 0));
        }
        let header = Header {
            total: serve.at as u64,
            ..Header::new(Packet::Reply, serve.number)
        };
        Some((header, self.most(to).min(len.saturating_sub(serve.at))))
    }

    /// That packet has been pushed.
    pub fn served(&mut self, to: PeerId, header: &Header, len: usize, report: &mut impl Report) {
        let side = self.peer(to).side();
        side.serve_next = false;
        let peer = self.peer(to);
        peer.answer_next = false;
        let side = peer.side();
        let Some(serve) = side.serving.front_mut() else { return };
        serve.at += len;
        if header.packet == Packet::Reply && serve.at < serve.remote.len() {
            return;
        }
        let Some(serve) = side.serving.pop_front() else { return };
        let len = serve.remote.len();
        match header.packet {
            Packet::Reply => {
                if let Ok(reached) = self.reach(&serve.remote, 0, len, Rights::READ) {
                    self.tell(to, Access::Read, &reached, len, None, report);
                }
            }
            Packet::Done => report.refused(to, &Self::some_part(&serve.remote), error(header.data)),
            _ => {} // the peer says when it has fetched
        }
    }

    pub fn some_part(remote: &RemoteIov) -> RemotePart {
        remote.parts().first().copied().unwrap_or_default()
    }

    // ---- buffers ----

    /// A buffer of this length, with anything in it.
    pub fn spare(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE && buffer.capacity() <= SPARE_MOST {
            self.spare.push(buffer);
        }
    }
}
