//! What comes back to the initiator of a read or an atomic: the bytes, leave to fetch them, or a refusal.

use super::exposure::is_remote;
use super::message::Landing;
use super::op::{Error, Failure, Form, Report};
use super::outgoing::{Holds, LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, PulledRead};
use super::peer::Malformed;
use super::port::{NotDone, PeerId, Placement, Remote, Token};
use super::rendezvous::GetRequest;
use super::state::{Call, Core, GetOwner};
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;

/// Marks the `Token` of a get or copy that belongs to an operation of ours. Names in `Core::arrivals` never have this
/// bit.
const READ: Token = 1 << 63;

/// The address and key that `Exposed` gave, which `Got` returns.
pub(super) type GotNotice = (u64, u64);

impl GetOwner {
    pub(super) fn token(self) -> Token {
        match self {
            GetOwner::Message(id) => id.bits(),
            GetOwner::Read(id) => id.bits() | READ,
        }
    }

    pub(super) fn of(token: Token) -> GetOwner {
        if token & READ == 0 {
            GetOwner::Message(Id::from_bits(token))
        } else {
            GetOwner::Read(Id::from_bits(token & !READ))
        }
    }
}

impl Outgoing {
    /// Whether the peer is to send bytes back.
    fn wants_bytes(&self) -> bool {
        matches!(
            self.op,
            OutgoingOp::Read(_) | OutgoingOp::AtomicSent(Form::Fetch | Form::Compare)
        )
    }

    /// Whether a plain `Done` completes it.
    pub(super) fn may_be_done(&self) -> bool {
        matches!(
            self.op,
            OutgoingOp::Message | OutgoingOp::Write(_) | OutgoingOp::AtomicSent(Form::Base)
        )
    }

    /// Whether the transport is still writing a part of the result.
    fn moving(&self) -> bool {
        self.len - self.until < self.at
    }
}

impl Core {
    /// A get, copy or amo is over. A get that failed ends nothing, as the peer can be asked to send the bytes.
    pub(super) fn get_finished(&mut self, owner: GetOwner, result: Result<(), NotDone>, report: &mut impl Report) {
        match owner {
            GetOwner::Message(id) => self.message_fetched(id, result.is_ok(), report),
            GetOwner::Read(id) => self.read_fetched(id, result, report),
        }
    }

    /// Our operation that a peer's answer names, if it waits for bytes from this peer.
    pub(super) fn operation(&mut self, from: PeerId, header: &Header) -> Result<(Id, &mut Outgoing), Malformed> {
        let id = self.outgoing.find_short(header.id).ok_or(Malformed)?;
        if let Some(rma) = self.peers.get_mut(from as usize).and_then(|peer| peer.rma.as_mut()) {
            rma.watch.heard = rma.watch.heard.wrapping_add(1);
        }
        let outgoing = self.outgoing.get_mut(id).ok_or(Malformed)?;
        let waits = outgoing.to == from && outgoing.stage == Stage::Sent && outgoing.wants_bytes();
        waits.then_some((id, outgoing)).ok_or(Malformed)
    }

    /// A part of the result of our read or atomic has come.
    pub(super) fn place_reply(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        let (id, outgoing) = self.operation(from, header)?;
        let at = outgoing.at;
        let end = at.checked_add(len).ok_or(Malformed)?;
        if header.total != at as u64 || end > outgoing.len || len == 0 && outgoing.len > 0 {
            return Err(Malformed);
        }
        outgoing.at = end;
        let LocalBuffer::User(iov) = outgoing.local else {
            return Err(Malformed);
        };
        if len == 0 {
            self.end_outgoing(id, None, report);
            return Ok(Placement::Drop);
        }
        let token = self.landings.insert(Landing::Reply { operation: id, len }).bits();
        Ok(Placement::Into { iov, at, token })
    }

    /// That part is in place.
    pub(super) fn reply_landed(&mut self, id: Id, len: usize, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        outgoing.until = outgoing.until.saturating_sub(len);
        match outgoing.stage {
            Stage::Failed(error) if !outgoing.moving() => {
                self.end_outgoing(id, Some(Failure { error, overflow: 0 }), report)
            }
            Stage::Sent if outgoing.until == 0 => self.end_outgoing(id, None, report),
            _ => {}
        }
    }

    /// The target refuses our operation. It completes once the transport writes none of its result any more.
    pub(super) fn operation_failed(&mut self, id: Id, error: Error, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        if outgoing.wants_bytes() && outgoing.moving() {
            outgoing.stage = Stage::Failed(error);
        } else {
            self.end_outgoing(id, Some(Failure { error, overflow: 0 }), report);
        }
    }

    /// The target lets us fetch what we want to read.
    pub(super) fn place_exposed(&mut self, from: PeerId, header: &Header, len: usize) -> Result<Placement, Malformed> {
        let can_get = self.limits.can_get;
        let (id, outgoing) = self.operation(from, header)?;
        if !can_get
            || !outgoing.holds.has(Holds::MESSAGES)
            || outgoing.at > 0
            || !is_remote(len)
            || !matches!(outgoing.op, OutgoingOp::Read(_))
        {
            return Err(Malformed);
        }
        outgoing.stage = Stage::Fetching;
        let notify = (header.flags & flag::ACK != 0).then_some((header.tag, header.data));
        let buffer = self.buffers.take(len);
        let token = self.landings.insert(Landing::Exposed { operation: id, notify }).bits();
        Ok(Placement::Keep { buffer, token })
    }

    pub(super) fn exposed_landed(&mut self, id: Id, notify: Option<GotNotice>, buffer: Option<Vec<u8>>) {
        let remote = buffer.as_deref().and_then(Remote::new);
        self.buffers.give_back(buffer.unwrap_or_default());
        let (Some(outgoing), Some(remote)) = (self.outgoing.get_mut(id), remote) else {
            return;
        };
        if let OutgoingOp::Read(remote_side) = std::mem::replace(&mut outgoing.op, OutgoingOp::Message) {
            outgoing.op = OutgoingOp::PulledRead(Box::new(PulledRead {
                remote_side,
                remote,
                notify,
            }));
            self.calls.push_back(Call::Get(GetOwner::Read(id)));
        }
    }

    /// The arguments for fetching a read.
    pub(super) fn read_get(&self, id: Id) -> Option<GetRequest> {
        let outgoing = self.outgoing.get(id)?;
        let (OutgoingOp::PulledRead(pull), LocalBuffer::User(into)) = (&outgoing.op, &outgoing.local) else {
            return None;
        };
        Some(GetRequest {
            from: outgoing.to,
            remote: pull.remote,
            into: *into,
            len: outgoing.len,
            now: false,
        })
    }

    /// The get for a read is over, or a copy or amo.
    pub(super) fn read_fetched(&mut self, id: Id, result: Result<(), NotDone>, report: &mut impl Report) {
        let Some(outgoing) = self.outgoing.get_mut(id) else {
            return;
        };
        let (to, len) = (outgoing.to, outgoing.len);
        let PulledRead {
            remote_side, notify, ..
        } = match std::mem::replace(&mut outgoing.op, OutgoingOp::Message) {
            OutgoingOp::PulledRead(pull) => *pull,
            op => {
                outgoing.op = op;
                return self.copied(id, result, report);
            }
        };
        if result.is_err() {
            outgoing.op = OutgoingOp::Read(remote_side);
            outgoing.stage = Stage::AskAgain;
            self.peer(to).requested.push_back(id);
            return self.wake(to);
        }
        outgoing.op = OutgoingOp::Read(remote_side);
        if let Some((addr, key)) = notify {
            let header = Header {
                tag: addr,
                data: key,
                total: len as u64,
                ..Header::new(Packet::Got, id.short())
            };
            self.send_control(to, header);
        }
        self.end_outgoing(id, None, report);
    }

    /// The peer was asked again for a read that could not be fetched.
    pub(super) fn read_requested_again(&mut self, to: PeerId, id: Id) {
        let peer = self.peer(to);
        peer.requested_next = false;
        peer.requested.pop_front();
        if let Some(rma) = &mut peer.rma {
            rma.serve_next = true;
        }
        if let Some(outgoing) = self.outgoing.get_mut(id) {
            outgoing.stage = Stage::Sent;
        }
    }
}
