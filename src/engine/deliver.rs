//! The engine as its transport sees it (`port::Sink`): sends each packet to the file that handles it, and each body
//! that is in place, finished get and dead peer likewise.
//!
//! Nothing is pushed while the transport delivers: answers are queued per peer and leave when `poll` is over.

use super::message::Landing;
use super::op::{Access, Error, Report};
use super::peer::{Detours, Malformed};
use super::port::{ExposedName, Loss, NotDone, PeerId, Placement, Sink, Token};
use super::state::{Core, GetOwner};
use super::wire::{Header, Packet, flag};
use crate::util::keep_in_registers;
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// The most answers queued for one peer. A peer that sends but takes no answers is refused until it does. Honest peers
/// stay far below, as each answer belongs to one of their operations in flight.
pub(super) const ANSWERS: usize = 1 << 16;

pub(super) struct EngineSink<'a, R: Report> {
    pub core: &'a mut Core,
    pub report: &'a mut R,
}

impl<R: Report> Sink for EngineSink<'_, R> {
    fn met(&mut self, peer: PeerId, source: PeerId) {
        self.core.peer(peer).source = Some(source);
        self.report.met();
    }

    #[inline(always)]
    fn take(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        match header.packet {
            Packet::Eager => self.core.take_eager_apart(from, *header, body, self.report),
            Packet::Write => self.core.take_memory(from, *header, body, self.report),
            _ => self.core.take_other(from, *header, body, self.report),
        }
    }

    #[inline(always)]
    fn take_message(&mut self, from: PeerId, header: &Header, body: &[u8]) -> bool {
        header.packet == Packet::Eager && self.core.take_eager(from, header, body, self.report)
    }

    #[inline(always)]
    fn is_to_answer(&self, peer: PeerId) -> bool {
        self.core.at_hand.is_of(peer)
    }

    #[inline(never)]
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement {
        let (core, report) = (&mut *self.core, &mut *self.report);
        core.something_follows(from);
        let peer = core.peer(from);
        if peer.detours.has(Detours::SHUNNED) {
            return Placement::Drop;
        }
        if peer.detours.has(Detours::LANDING) {
            return Placement::Refuse; // an operation that is still landing goes first
        }
        if peer.control.len() >= ANSWERS {
            return Placement::Refuse;
        }
        match core.place(from, header, len, report) {
            Ok(place) => place,
            Err(Malformed) => {
                core.shun(from);
                Placement::Drop
            }
        }
    }

    #[inline(never)]
    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>) {
        let (core, report) = (&mut *self.core, &mut *self.report);
        let landing = core.landings.remove(Id::from_bits(token));
        match landing {
            Some(Landing::Direct(delivery)) => core.report_message(&delivery, None, report),
            Some(Landing::Part { message, at }) => core.part_landed(message, at, buffer, report),
            Some(Landing::Remote { message }) => core.remote_landed(message, buffer.as_deref(), report),
            Some(Landing::Write { from, header, len }) => core.told_write_landed(from, &header, len, report),
            Some(Landing::LeasedWrite {
                from,
                header,
                len,
                counted,
            }) => core.leased_write_landed(from, &header, len, counted, report),
            Some(Landing::Packet { from, header }) => core.whole_landed(from, &header, buffer, report),
            Some(Landing::Reply { operation, len }) => core.reply_landed(operation, len, report),
            Some(Landing::Exposed { operation, notify }) => core.exposed_landed(operation, notify, buffer),
            None => {} // its peer is gone, or nothing is to be reported
        }
    }

    fn exposed_memory(&mut self, peer: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        self.core.exposed_memory(peer, name, access)
    }

    fn finished(&mut self, token: Token, result: Result<(), NotDone>) {
        self.core.get_finished(GetOwner::of(token), result, self.report);
    }

    fn written(&mut self, from: PeerId, len: usize, data: u64) {
        self.core.written(from, len, data, self.report);
    }

    fn cut(&mut self, token: Token) {
        self.core.region_closed(Id::from_bits(token), self.report);
    }

    fn sent(&mut self, token: Token, result: Result<(), Error>) {
        self.core.packet_sent(Id::from_bits(token), result, self.report);
    }

    fn gone(&mut self, peer: PeerId, loss: Loss) {
        let error = match loss {
            Loss::Died | Loss::OneContext { .. } | Loss::Closed => Error::PeerGone,
            Loss::Broken => Error::Broken,
            Loss::Silent => Error::Silent,
        };
        match loss {
            Loss::OneContext { .. } => self.core.context_gone(peer, error, self.report),
            _ => self.core.peer_gone(peer, error, self.report),
        }
        if loss == Loss::Closed {
            self.core.end_kept_messages(peer, error, self.report);
        }
        self.core.newly_shunned.retain(|shunned| *shunned != peer);
        self.core.peer(peer).source = None;
    }
}

impl Core {
    #[inline]
    fn place(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        let begins = matches!(header.packet, Packet::Eager | Packet::First | Packet::Rendezvous);
        if !flag::fit(header.flags) || header.flags & flag::COLLECTIVE != 0 && !begins {
            return Err(Malformed);
        }
        match header.packet {
            Packet::Eager => self.place_eager(from, header, len, report),
            Packet::First => self.place_first(from, header, len, report),
            Packet::Segment => self.place_segment(from, header, len, report),
            Packet::Rendezvous => self.place_offer(from, header, len, report),
            Packet::Request | Packet::Done | Packet::Credit | Packet::Got | Packet::Acked => {
                self.place_answer(from, header, len, report)
            }
            Packet::Write => self.place_write(from, header, len, report),
            Packet::Reply => self.place_reply(from, header, len, report),
            Packet::Exposed => self.place_exposed(from, header, len),
            Packet::OfferWrite | Packet::Read | Packet::Atomic | Packet::FetchAtomic | Packet::CompareAtomic => {
                self.place_whole(from, header, len, report)
            }
        }
    }

    /// `Sink::take` of what is less frequent. By value, so that the header of a message stays in registers.
    #[inline(never)]
    fn take_other(&mut self, from: PeerId, mut header: Header, body: &[u8], report: &mut impl Report) -> bool {
        let header = keep_in_registers(&mut header);
        match header.packet {
            Packet::Rendezvous => self.take_offer(from, header, body, report),
            Packet::Done | Packet::Acked | Packet::Credit => self.take_answer(from, header, body, report),
            _ => self.take_access(from, header, body, report),
        }
    }

    /// The fast path of an answer that nothing has failed. None of these is answered in turn.
    fn take_answer(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        let simple = header.flags == 0 && body.is_empty();
        let peer = self.peers.get(from as usize).filter(|_| simple);
        if peer.is_none_or(|peer| peer.is_off_fast_path()) {
            return false;
        }
        if self.place_answer(from, header, 0, report).is_err() {
            self.shun(from);
        }
        true
    }

    #[inline]
    fn place_answer(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        if len != 0 {
            return Err(Malformed);
        }
        match header.packet {
            Packet::Request => self.bytes_requested(from, header)?,
            Packet::Done => self.done(from, header, report)?,
            Packet::Credit => self.credited(from, header)?,
            Packet::Acked => self.acked(from, header, report)?,
            Packet::Got => self.got(from, header, report),
            _ => {}
        }
        Ok(Placement::Drop)
    }
}
