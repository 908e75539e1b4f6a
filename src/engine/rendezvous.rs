//! Rendezvous: messages that are offered before they are sent, because they are long or credit is short.
//!
//! The sender offers the message (`Rendezvous`), with a `Remote` if its memory can be fetched. Once matched, the
//! receiver fetches it and answers `Done`; or requests as many bytes as fit its buffer (`Request`), which the sender
//! pushes as segments. A get that fails is followed by a request. Long writes use the same steps after their `Offer`.

use super::deliver::ANSWERS;
use super::exposure::is_remote;
use super::message::{Landing, Message, Phase, kind, tag};
use super::offer::MatchedOffer;
use super::op::{Access, Report};
use super::outgoing::{LocalBuffer, Stage};
use super::outgoing_op::OutgoingOp;
use super::peer::Malformed;
use super::pieces::refusal_error;
use super::port::{ExposedName, PeerId, Placement, Remote};
use super::receive::MatchedRecv;
use super::state::{Call, Core, GetOwner};
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// The arguments of a transport's `get`.
pub(super) struct GetRequest {
    pub from: PeerId,
    pub remote: Remote,
    pub into: UserIov,
    pub len: usize,
    /// `into` is a registered region, which may be closed after the call: the get must not go on longer.
    pub now: bool,
}

fn total(header: &Header) -> Result<usize, Malformed> {
    usize::try_from(header.total).map_err(|_| Malformed)
}

impl Core {
    /// A peer offers a message.
    pub(super) fn place_offer(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        if len == 0 {
            self.take_in_offer(from, header, None, report)?;
            return Ok(Placement::Drop);
        }
        if !is_remote(len) {
            return Err(Malformed);
        }
        let total = total(header)?;
        self.note_crossing(from);
        let mut message = Message::new(from, header, Phase::Offered(None), total);
        message.moving = 1;
        let matched = self.take_post(kind(header), from, tag(header), total);
        let (id, _) = self.hold_offer(message, matched);
        let token = self.landings.insert(Landing::Remote { message: id }).bits();
        Ok(Placement::Keep {
            buffer: vec![0; len],
            token,
        })
    }

    /// The fast path of most offers: the whole packet lies in the transport. False: nothing was done, and `place`
    /// follows.
    #[inline(never)]
    pub(super) fn take_offer(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        // An offer is answered in any case, so ACK asks for nothing more.
        let simple = header.flags & !(flag::TAGGED | flag::DATA | flag::ACK) == 0;
        let peer = self
            .peers
            .get(from as usize)
            .filter(|peer| simple && !peer.is_off_fast_path());
        if peer.is_none_or(|peer| peer.control.len() >= ANSWERS) {
            return false;
        }
        let remote = Remote::new(body);
        remote.is_some() && self.take_in_offer(from, header, remote, report).is_ok()
    }

    fn take_in_offer(
        &mut self,
        from: PeerId,
        header: &Header,
        remote: Option<Remote>,
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let total = total(header)?;
        self.note_crossing(from);
        let matched = self.take_post(kind(header), from, tag(header), total);
        match (matched, remote) {
            (Some(matched), Some(remote)) if self.is_got_at_once(from, total) => {
                self.matched_offers.push_back(MatchedOffer {
                    from,
                    header: *header,
                    total,
                    remote,
                    matched,
                });
            }
            (matched, remote) => {
                let message = Message::new(from, header, Phase::Offered(remote.map(Box::new)), total);
                let (id, matched) = self.hold_offer(message, matched);
                if matched {
                    self.accept(id, report);
                }
            }
        }
        Ok(())
    }

    /// Keeps an offered message for the receive that it has found, or as unexpected. Returns whether it has found one.
    fn hold_offer(&mut self, mut message: Message, matched: Option<MatchedRecv>) -> (Id, bool) {
        message.matched = matched;
        let matched = message.matched.is_some();
        let id = self.arrivals.insert(message);
        if !matched {
            self.hold_unexpected(id);
        }
        (id, matched)
    }

    /// The `Remote` of an offered message has come.
    pub(super) fn remote_landed(&mut self, id: Id, bytes: Option<&[u8]>, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        message.moving = 0;
        if let Some(remote) = bytes.and_then(Remote::new) {
            message.phase = Phase::Offered(Some(Box::new(remote)));
        }
        if message.discarded {
            self.finish(id, report);
        } else if message.matched.is_some() {
            self.accept(id, report);
        }
    }

    /// An offered message is matched: fetches it or requests its bytes.
    pub(super) fn accept(&mut self, id: Id, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        let room = match (&message.long_write, &message.matched) {
            (Some(_), _) => message.total,
            (None, matched) => matched.as_ref().map_or(0, |matched| matched.iov.len()),
        };
        message.goal = message.total.min(room);
        let (goal, has_remote) = (message.goal, matches!(message.phase, Phase::Offered(Some(_))));
        if goal == 0 || self.copy_own_message(id) {
            self.finish(id, report);
        } else if has_remote && self.limits.can_get {
            self.calls.push_back(Call::Get(GetOwner::Message(id)));
        } else {
            self.request_bytes(id);
        }
    }

    /// Where a message goes. None if nowhere in one piece.
    fn place_of(&self, message: &Message) -> Option<UserIov> {
        match (&message.long_write, &message.matched) {
            (Some(long_write), _) => self.long_write_memory(long_write),
            (None, matched) => Some(matched.as_ref()?.iov),
        }
    }

    fn copy_own_message(&self, id: Id) -> bool {
        let message = self.arrivals.get(id);
        message.is_some_and(|message| {
            let into = self.place_of(message);
            into.is_some_and(|into| self.copy_own(message.from, message.number, &into, message.goal))
        })
    }

    /// Copies what this endpoint has offered to itself by this number. False: it is no such message.
    pub(super) fn copy_own(&self, from: PeerId, number: u32, into: &UserIov, len: usize) -> bool {
        if !self.peers.get(from as usize).is_some_and(|peer| peer.is_itself) {
            return false;
        }
        let offered = self.outgoing.find_short(number).and_then(|id| self.outgoing.get(id));
        let offered = offered.filter(|offered| offered.to == from && offered.stage == Stage::Offered);
        match offered.map(|offered| &offered.local) {
            Some(LocalBuffer::User(memory)) => memory.part(0, len).copy_to(into) == len,
            Some(LocalBuffer::Copy(_)) | None => false,
        }
    }

    /// The arguments for fetching a message. None if it cannot be fetched, or not in one piece.
    pub(super) fn message_get(&self, id: Id) -> Option<GetRequest> {
        let message = self.arrivals.get(id)?;
        let Phase::Offered(Some(remote)) = &message.phase else {
            return None;
        };
        let into = self.place_of(message)?;
        Some(GetRequest {
            from: message.from,
            remote: **remote,
            into,
            len: message.goal,
            now: message.long_write.is_some(),
        })
    }

    /// A long message of a peer has come. It crosses ours if the last one that we have offered is still to be fetched.
    pub(super) fn note_crossing(&mut self, from: PeerId) {
        let Some(peer) = self.peers.get_mut(from as usize) else {
            return;
        };
        let offered = self
            .outgoing
            .find_short(peer.last_offered)
            .and_then(|id| self.outgoing.get(id));
        peer.crossing = offered.is_some_and(|offered| offered.to == from && offered.stage == Stage::Offered);
    }

    /// Whether a message is fetched without a token, so that the transport copies it alone, within the call: its sender
    /// has ours to fetch, and would not help. Only for transports whose gets can be over when `get` returns.
    pub(super) fn is_fetched_alone(&self, from: PeerId) -> bool {
        let crosses = self.peers.get(from as usize).is_some_and(|peer| peer.crossing);
        crosses && self.limits_to(from).gets_at_once > 0
    }

    /// The get for a message is over.
    pub(super) fn message_fetched(&mut self, id: Id, ok: bool, report: &mut impl Report) {
        let offered = |message: &Message| matches!(message.phase, Phase::Offered(Some(_)));
        if !self.arrivals.get(id).is_some_and(offered) {
        } else if ok {
            self.finish(id, report);
        } else {
            self.request_bytes(id);
        }
    }

    /// Requests the bytes of a matched message from its sender.
    pub(super) fn request_bytes(&mut self, id: Id) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        let (from, number) = (message.from, message.number);
        message.phase = Phase::Requested;
        let header = Header {
            packet: Packet::Request,
            flags: 0,
            code: 0,
            id: number,
            tag: 0,
            data: 0,
            total: message.goal as u64,
        };
        if self.streams.insert((from, number), id).is_some() {
            return self.shun(from); // the peer uses one number for two messages
        }
        self.send_control(from, header);
    }

    /// The receiver of our message requests its bytes.
    pub(super) fn bytes_requested(&mut self, from: PeerId, header: &Header) -> Result<(), Malformed> {
        let id = self.outgoing.find_short(header.id).ok_or(Malformed)?;
        let outgoing = self.outgoing.get_mut(id).ok_or(Malformed)?;
        let wanted = usize::try_from(header.total).map_err(|_| Malformed)?;
        if outgoing.to != from || outgoing.stage != Stage::Offered || wanted == 0 || wanted > outgoing.len {
            return Err(Malformed);
        }
        outgoing.stage = Stage::Requested;
        outgoing.until = wanted;
        // A peer that could fetch may request a long write all the same, so that says nothing.
        let could_be_fetched = matches!(
            (&outgoing.local, &outgoing.op),
            (LocalBuffer::User(_), OutgoingOp::Message)
        );
        // Where gets are over at once, a peer that requests a long message may only have found packets quicker.
        let proves_it = self.limits.gets_at_once == 0 || outgoing.len <= self.limits.gets_at_once;
        let peer = self.peer(from);
        peer.cannot_fetch |= could_be_fetched && proves_it;
        peer.requested.push_back(id);
        self.wake(from);
        Ok(())
    }

    /// Our memory that a peer wants help to copy: a message that was offered to this very peer and is in flight, or a
    /// region that it may access. Where accesses are counted, reads are allowed, because the reader reports them with
    /// `Got`; writes must come as packets.
    pub(super) fn exposed_memory(&self, from: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        match (name, access) {
            (ExposedName::Sent(number), Access::Read) => {
                let outgoing = self.outgoing.get(Id::from_bits(*number))?;
                match &outgoing.local {
                    LocalBuffer::User(iov) if outgoing.to == from && outgoing.stage == Stage::Offered => Some(*iov),
                    _ => None,
                }
            }
            (ExposedName::Region(part), Access::Read) => Some(self.find_region(part, Rights::READ).ok()?.0),
            (ExposedName::Region(part), Access::Write) => {
                let (memory, counted) = self.find_region(part, Rights::WRITE).ok()?;
                (!counted).then_some(memory)
            }
            (ExposedName::Sent(_), Access::Write) | (ExposedName::Nothing, _) => None,
        }
    }

    /// The peer is done with our message or operation, or refuses it.
    pub(super) fn done(&mut self, from: PeerId, header: &Header, report: &mut impl Report) -> Result<(), Malformed> {
        let id = self.outgoing.find_short(header.id).ok_or(Malformed)?;
        let outgoing = self.outgoing.get(id).ok_or(Malformed)?;
        if outgoing.to != from || !matches!(outgoing.stage, Stage::Offered | Stage::Sent) {
            return Err(Malformed);
        }
        if header.flags & flag::FAILED != 0 {
            self.operation_failed(id, refusal_error(header.data), report);
            return Ok(());
        }
        if !outgoing.may_be_done() {
            return Err(Malformed);
        }
        if outgoing.stage == Stage::Offered {
            self.peer(from).cannot_fetch = false;
        }
        self.end_outgoing(id, None, report);
        Ok(())
    }
}
