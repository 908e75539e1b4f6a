//! Pushing what waits in the queues of peers, each in its turn, and the calls of the transport that `Core` has asked
//! for.
//!
//! `Core` says which packet of a peer is next and what became of it; here is only how it is given to the transport.
//! Called by `Engine::progress`, and after a call that has queued something.

use super::endpoint::Engine;
use super::next_packet::{NextPacket, Purpose};
use super::op::{Error, Report};
use super::outgoing::LocalBuffer;
use super::outgoing_op::OutgoingOp;
use super::port::{Body, Get, NotDone, PeerId, Push, Transport};
use super::state::{Call, GetOwner};
use super::wire::Packet;

/// Packets pushed to one peer before others have their turn. Answers and the replies to short reads and atomics are not
/// counted: the program may have been told of what they belong to, and not call again, so nothing but the transport may
/// keep them here.
const BURST: usize = 32;

/// The outcome of pushing a peer's next packet.
enum Step {
    Answered,
    Pushed,
    /// It cannot go any more: another packet takes its place, and may go at once.
    Replaced,
    Nothing,
    Full,
}

impl<T: Transport> Engine<T> {
    /// Pushes queued packets to each peer in turn.
    #[inline]
    pub(super) fn push_all(&mut self, report: &mut impl Report) {
        if self.busy() {
            self.push_waiting(report);
        }
    }

    #[inline(never)]
    pub(super) fn push_waiting(&mut self, report: &mut impl Report) {
        self.more_to_push = false;
        if !self.core.calls.is_empty() {
            self.make_calls(report);
        }
        if !self.core.newly_shunned.is_empty() {
            self.end_shunned(report);
        }
        for _ in 0..self.core.busy.len() {
            let Some(to) = self.core.busy.pop_front() else { return };
            self.core.peer(to).busy = false;
            if !self.push_only_ack(to) {
                self.push_to(to, report);
            }
        }
    }

    /// The fast path of acknowledging a peer's operations after a poll. False: nothing was done.
    fn push_only_ack(&mut self, to: PeerId) -> bool {
        let Some(header) = self.core.only_ack_due(to) else {
            return false;
        };
        if Self::push_out_of_line(&mut self.transport, to, &header, Body::Empty) != Push::Done {
            return false;
        }
        self.core.acks_given(to, header.total);
        true
    }

    pub(super) fn push_to(&mut self, to: PeerId, report: &mut impl Report) {
        self.note_way(to);
        self.note_hold_up(to);
        self.note_credit(to);
        let mut left = BURST;
        while left > 0 {
            match self.push_next(to, report) {
                Step::Answered => {}
                Step::Pushed | Step::Replaced => left -= 1,
                Step::Nothing => {
                    self.core.peer(to).small_packets_only = false;
                    return self.note_lack_of_credit(to);
                }
                Step::Full => return self.core.wake(to),
            }
        }
        self.more_to_push = true;
        self.core.wake(to);
    }

    /// Nothing can be pushed now. If that is for want of credit, the transport keeps the time.
    fn note_lack_of_credit(&mut self, to: PeerId) {
        if !self.core.peer(to).awaits_credit && self.core.awaits_credit(to) {
            self.core.peer(to).awaits_credit = true;
            self.transport.awaits_credit(to);
        }
    }

    /// If credit was awaited and has come: asks the transport whether it had been there for long.
    #[inline]
    fn note_credit(&mut self, to: PeerId) {
        if self.core.peer(to).awaits_credit && !self.core.awaits_credit(to) {
            self.core.peer(to).awaits_credit = false;
            if self.transport.came_late(to) {
                self.core.offer_without_credit(to);
            }
        }
    }

    fn push_next(&mut self, to: PeerId, report: &mut impl Report) -> Step {
        let Some(packet) = self.core.next(to) else {
            return Step::Nothing;
        };
        let push = match packet.purpose {
            Purpose::Native(id) if T::ONE_SIDED => self.begin_native(to, id, report),
            Purpose::ServedRead => match self.push_served(to, &packet) {
                Some(push) => push,
                None => return Step::Replaced,
            },
            _ => self.push_packet(to, &packet),
        };
        match push {
            Push::Done | Push::Later => {
                if T::PUSHES_LATER && push == Push::Later {
                    self.core.kept_by_transport(&packet);
                }
                self.core.pushed(to, &packet, report);
                if matches!(packet.purpose, Purpose::Start(_) | Purpose::Segment(_)) {
                    self.judge_first(to);
                }
                match packet.purpose {
                    Purpose::Control | Purpose::Reply => Step::Answered,
                    _ => Step::Pushed,
                }
            }
            Push::Full => Step::Full,
            Push::Gone => {
                self.unreached(to, Error::PeerGone, report);
                Step::Nothing
            }
            Push::Unreachable(why) => {
                self.unreached(to, Error::Unreachable(why), report);
                Step::Nothing
            }
            Push::NoMemory => {
                self.unreached(to, Error::NoMemory, report);
                // What is left are answers, which the peer waits for: there may be memory again.
                if self.core.next(to).is_some() {
                    Step::Full
                } else {
                    Step::Nothing
                }
            }
            Push::TooLong => {
                // Retried with smaller packets or by rendezvous; a packet that cannot be made smaller fails.
                if core::mem::replace(&mut self.core.peer(to).small_packets_only, true) {
                    self.core.no_memory(to, packet.purpose, report);
                }
                Step::Replaced
            }
        }
    }

    #[cold]
    fn unreached(&mut self, to: PeerId, error: Error, report: &mut impl Report) {
        self.core.unreached(to, error, report);
        self.end_exposures();
    }

    fn push_packet(&mut self, to: PeerId, packet: &NextPacket) -> Push {
        let mut notice = None;
        let sent = match packet.purpose {
            Purpose::Control | Purpose::Credit | Purpose::Acks | Purpose::ServedRead | Purpose::Native(_) => None,
            Purpose::Reply => return self.push_reply(to, packet),
            Purpose::Start(id) | Purpose::Segment(id) | Purpose::Requested(id) => {
                let outgoing = self.core.outgoing.get(id);
                let kind = packet.header.packet;
                let message = outgoing.is_none_or(|outgoing| matches!(outgoing.op, OutgoingOp::Message));
                if kind == Packet::Rendezvous || !message && kind != Packet::Segment {
                    return self.push_operation(to, packet, id);
                }
                if T::PUSHES_LATER {
                    notice = outgoing.and_then(|outgoing| outgoing.notice(id, packet));
                }
                outgoing.map(|outgoing| &outgoing.local)
            }
        };
        let (at, len) = (packet.at, packet.len);
        let body = match sent {
            Some(LocalBuffer::User(iov)) if len > 0 => Body::User { iov, at, len },
            Some(LocalBuffer::Copy(bytes)) if len > 0 => {
                Body::Bytes(bytes.get(at..).and_then(|bytes| bytes.get(..len)).unwrap_or_default())
            }
            Some(LocalBuffer::User(_) | LocalBuffer::Copy(_)) | None => Body::Empty,
        };
        // `push` is inlined here and in `send`, and nowhere else.
        self.transport.push(to, &packet.header, body, notice)
    }

    /// Ends what waits for peers that violated the protocol, once the transport has let go of it.
    #[cold]
    fn end_shunned(&mut self, report: &mut impl Report) {
        for peer in std::mem::take(&mut self.core.newly_shunned) {
            if self.transport.abandon(peer) {
                self.core.shunned_ends(peer, report);
            } else {
                self.core.newly_shunned.push(peer);
                self.core.wake(peer);
            }
        }
    }

    /// Starts the gets for matched messages, long writes and long reads, and ends exposures.
    #[inline(never)]
    fn make_calls(&mut self, report: &mut impl Report) {
        self.end_exposures();
        for _ in 0..self.core.calls.len() {
            let Some(Call::Get(owner)) = self.core.calls.pop_front() else {
                return;
            };
            let get = match owner {
                GetOwner::Message(id) => self.core.message_get(id),
                GetOwner::Read(id) => self.core.read_get(id),
            };
            let Some(get) = get else {
                self.core.get_impossible(owner, report);
                continue;
            };
            let (from, len) = (get.from, get.len);
            let is_message = matches!(owner, GetOwner::Message(_));
            let is_alone = get.now || is_message && self.core.is_fetched_alone(from);
            let token = (!is_alone).then(|| owner.token());
            match self.transport.get(from, &get.remote, &get.into, 0, len, token) {
                Get::Done => self.core.get_finished(owner, Ok(()), report),
                Get::Later => {}
                Get::Full => self.core.calls.push_back(Call::Get(owner)),
                Get::Unsupported | Get::Failed(_) => self.core.get_finished(owner, Err(NotDone::AskPeer), report),
                Get::Gone => {} // `Sink::gone` follows and fails what waits for this get
            }
        }
    }
}
