//! Arrival of eager messages: in one packet (`Eager`), or the first of several (`First`).

use super::credit;
use super::matching::Taken;
use super::message::{Delivery, Landing, Message, Phase, data, kind, tag};
use super::op::{CompletedOp, Completion, MessageKind, Report};
use super::peer::Malformed;
use super::port::{PeerId, Placement};
use super::receive::{MatchedRecv, PostedBody, fill_pieces, truncated};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::keep_in_registers;

impl Core {
    /// The fast path of most messages: the whole message lies in the transport, so it is copied here, into the receive
    /// that is posted, or to be kept until one is. False: nothing was done, and `place` follows.
    #[inline(always)]
    pub(super) fn take_eager(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        let simple = header.packet == Packet::Eager && header.flags & !(flag::TAGGED | flag::DATA) == 0;
        let Some(peer) = self
            .peers
            .get_mut(from as usize)
            .filter(|peer| !peer.is_off_fast_path())
        else {
            return false;
        };
        let cost = credit::cost(body.len());
        if !simple || header.total != body.len() as u64 || peer.allowed < cost {
            return false;
        }
        let (kind, tag) = (kind(header), tag(header));
        let matcher = match kind {
            MessageKind::Untagged => &mut self.messages,
            MessageKind::Tagged => &mut self.tagged,
            MessageKind::Collective => &mut self.collective,
        };
        let post = match matcher.take_posted(peer.source.unwrap_or(from), tag) {
            Taken::Removed(post) => post,
            Taken::Lasting(_) => return self.take_piece(from, *header, body, report),
            Taken::Nothing => {
                self.keep_eager(from, *header, body);
                return true;
            }
        };
        let len = match post.body {
            PostedBody::One(buffer) => buffer.write(body),
            PostedBody::Pieces(place) => fill_pieces(&mut self.posted_pieces, place, body),
            PostedBody::Multi(_) => 0, // never here: a multi-receive is `Lasting`
        };
        report.report(Completion {
            op: CompletedOp::Recv,
            kind,
            context: post.context,
            tell: post.tell,
            len,
            buf: 0,
            tag,
            data: data(header),
            source: Some(from),
            released: false,
            peeked: false,
            failure: truncated(body.len() - len),
        });
        peer.allowed -= cost;
        peer.owed += cost;
        if peer.owed >= self.config.window / 4 {
            self.wake(from);
        }
        true
    }

    /// The same by value and out of line, for those who call it where much else is to be kept in registers.
    #[inline(never)]
    pub(super) fn take_eager_apart(
        &mut self,
        from: PeerId,
        mut header: Header,
        body: &[u8],
        report: &mut impl Report,
    ) -> bool {
        let header = keep_in_registers(&mut header);
        self.take_eager(from, header, body, report)
    }

    /// The whole message has come for a multi-receive.
    #[inline(never)]
    fn take_piece(&mut self, from: PeerId, mut header: Header, body: &[u8], report: &mut impl Report) -> bool {
        let header = keep_in_registers(&mut header);
        let cost = credit::cost(body.len());
        let Some(matched) = self.take_post(kind(header), from, tag(header), body.len()) else {
            return false;
        };
        self.peer(from).allowed -= cost;
        self.repay_credit(from, cost);
        matched.iov.write(0, body);
        self.report_message(
            &Delivery::of_header(from, header, body.len(), &matched, None),
            None,
            report,
        );
        true
    }

    /// The whole message has come, and no posted receive matches. By value, so that the header of a message that
    /// matches one stays in registers.
    #[inline(never)]
    fn keep_eager(&mut self, from: PeerId, mut header: Header, body: &[u8]) {
        let header = keep_in_registers(&mut header);
        let cost = credit::cost(body.len());
        let mut message = Message::new(from, header, Phase::Coming, body.len());
        message.next = body.len();
        message.head = self.buffers.copy_of(body);
        message.kept = cost;
        let id = self.arrivals.insert(message);
        self.hold_unexpected(id);
        self.peer(from).allowed -= cost;
        self.charge_kept(from, cost);
    }

    /// A message of one packet has come.
    #[inline]
    pub(super) fn place_eager(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        if header.total != len as u64 {
            return Err(Malformed);
        }
        let cost = credit::cost(len);
        self.charge_credit(from, cost)?;
        match self.take_post(kind(header), from, tag(header), len) {
            Some(matched) => {
                self.repay_credit(from, cost);
                Ok(self.place_direct(from, header, len, &matched, report))
            }
            None => Ok(self.place_unexpected(from, header, len, len, report)),
        }
    }

    #[inline]
    fn place_direct(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        matched: &MatchedRecv,
        report: &mut impl Report,
    ) -> Placement {
        let answer = (header.flags & flag::ACK != 0).then_some(header.id);
        let delivery = Delivery::of_header(from, header, len, matched, answer);
        if len == 0 || matched.iov.is_empty() {
            self.report_message(&delivery, None, report);
            return Placement::Drop;
        }
        let token = self.landings.insert(Landing::Direct(delivery)).bits();
        Placement::Into {
            iov: matched.iov,
            at: 0,
            token,
        }
    }

    /// The first packet of a message of several.
    pub(super) fn place_first(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        let total = usize::try_from(header.total).map_err(|_| Malformed)?;
        let key = (from, header.id);
        if len == 0 || len >= total || self.streams.contains_key(&key) {
            return Err(Malformed);
        }
        self.note_crossing(from);
        let cost = credit::cost(total);
        self.charge_credit(from, cost)?;
        let Some(matched) = self.take_post(kind(header), from, tag(header), total) else {
            return Ok(self.place_unexpected(from, header, len, total, report));
        };
        self.repay_credit(from, cost);
        let mut message = Message::new(from, header, Phase::Coming, total);
        message.matched = Some(matched);
        let id = self.arrivals.insert(message);
        self.streams.insert(key, id);
        Ok(self.place_part(id, 0, len, report))
    }

    /// No posted receive matches: the message is kept as unexpected.
    fn place_unexpected(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        total: usize,
        report: &mut impl Report,
    ) -> Placement {
        let cost = credit::cost(total);
        let mut message = Message::new(from, header, Phase::Coming, total);
        message.kept = cost;
        let id = self.arrivals.insert(message);
        self.hold_unexpected(id);
        self.charge_kept(from, cost);
        if len < total {
            self.streams.insert((from, header.id), id);
        }
        self.place_part(id, 0, len, report)
    }
}
