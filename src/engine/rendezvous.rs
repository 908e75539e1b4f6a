//! Messages that are offered before they are sent: because they are large, or because credit is short.
//!
//! The sender says what it has (`Rendezvous`) and how its memory can be fetched, if it can. When the message has met
//! its receive, the receiver fetches it and says `Done`; or asks for as much as it has room for (`Send`), and the sender
//! sends that in segments. A get that fails is followed by asking.

use super::message::{Landing, Message, Phase, kind, tag};
use super::op::{Access, Report};
use super::outgoing::{Source, Stage};
use super::peer::Malformed;
use super::pieces::error;
use super::port::{ExposedName, PeerId, Placement, Remote};
use super::state::{Core, Fetching};
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// A message to be fetched.
pub(super) struct Fetch {
    pub from: PeerId,
    pub remote: Remote,
    pub into: UserIov,
    pub len: usize,
    /// `into` is a region, which may be closed after this call.
    pub now: bool,
}

impl Core {
    /// A message is offered.
    pub fn place_offer(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        let total = usize::try_from(header.total).map_err(|_| Malformed)?;
        if len != 0 && len != Remote::SIZE {
            return Err(Malformed);
        }
        let target = self.take_post(kind(header), from, tag(header), total);
        let wanted = target.is_some();
        let mut message = Message::new(from, header, Phase::Offered(None), total);
        message.target = target;
        message.moving = u32::from(len > 0);
        let id = self.arrivals.insert(message);
        if !wanted {
            self.hold(id);
        }
        if len == 0 {
            if wanted {
                self.accept(id, report);
            }
            return Ok(Placement::Drop);
        }
        let token = self.landings.insert(Landing::Remote { message: id }).bits();
        Ok(Placement::Keep {
            buffer: vec![0; len],
            token,
        })
    }

    /// What `get` needs is here.
    pub fn remote_landed(&mut self, id: Id, buffer: Option<Vec<u8>>, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        message.moving = 0;
        if let Some(Ok(bytes)) = buffer.map(<[u8; Remote::SIZE]>::try_from) {
            message.phase = Phase::Offered(Some(Box::new(Remote { bytes })));
        }
        if message.discarded {
            self.finish(id, report);
        } else if message.target.is_some() {
            self.accept(id, report);
        }
    }

    /// An offered message has met its receive.
    pub fn accept(&mut self, id: Id, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        let room = match (&message.inlet, &message.target) {
            (Some(_), _) => message.total,
            (None, target) => target.as_ref().map_or(0, |target| target.iov.len()),
        };
        message.goal = message.total.min(room);
        if message.goal == 0 {
            self.finish(id, report);
        } else if matches!(message.phase, Phase::Offered(Some(_))) && self.limits.can_get {
            self.fetches.push_back(Fetching::Message(id));
        } else {
            self.ask(id, report);
        }
    }

    /// The next message to be fetched, as `get` wants to know it.
    pub fn fetch(&self, id: Id) -> Option<Fetch> {
        let message = self.arrivals.get(id)?;
        let Phase::Offered(Some(remote)) = &message.phase else {
            return None;
        };
        let into = match (&message.inlet, &message.target) {
            (Some(inlet), _) => self.inlet_memory(inlet)?,
            (None, target) => target.as_ref()?.iov,
        };
        Some(Fetch {
            from: message.from,
            remote: **remote,
            into,
            len: message.goal,
            now: message.inlet.is_some(),
        })
    }

    /// A get has ended.
    pub fn fetched(&mut self, id: Id, ok: bool, report: &mut impl Report) {
        let offered = |message: &Message| matches!(message.phase, Phase::Offered(Some(_)));
        if !self.arrivals.get(id).is_some_and(offered) {
        } else if ok {
            self.finish(id, report);
        } else {
            self.ask(id, report);
        }
    }

    /// Asks the sender of an accepted message for its bytes.
    pub fn ask(&mut self, id: Id, report: &mut impl Report) {
        let Some(message) = self.arrivals.get_mut(id) else {
            return;
        };
        let (from, number) = (message.from, message.number);
        message.phase = Phase::Asked;
        let header = Header {
            packet: Packet::Send,
            flags: 0,
            code: 0,
            id: number,
            tag: 0,
            data: 0,
            total: message.goal as u64,
        };
        if self.streams.insert((from, number), id).is_some() {
            return self.shun(from, report); // it uses one number for two messages
        }
        self.say(from, header);
    }

    /// The receiver of a message of ours asks for its bytes.
    pub fn asked(&mut self, from: PeerId, header: &Header) -> Result<(), Malformed> {
        let id = self.sends.find_short(header.id).ok_or(Malformed)?;
        let send = self.sends.get_mut(id).ok_or(Malformed)?;
        let wanted = usize::try_from(header.total).map_err(|_| Malformed)?;
        if send.to != from || send.stage != Stage::Offered || wanted == 0 || wanted > send.len {
            return Err(Malformed);
        }
        send.stage = Stage::Asked;
        send.until = wanted;
        self.peer(from).answers.push_back(id);
        self.wake(from);
        Ok(())
    }

    /// Memory of ours that a peer wants help with: what was offered to this very peer and has not ended, or a region that
    /// peers may use so. A region whose uses are counted may be read, because the reader tells of that; a write there goes
    /// through the engine.
    pub fn exposed_memory(&self, from: PeerId, name: &ExposedName, access: Access) -> Option<UserIov> {
        match (name, access) {
            (ExposedName::Sent(number), Access::Read) => {
                let send = self.sends.get(Id::from_bits(*number))?;
                match &send.source {
                    Source::User(iov) if send.to == from && send.stage == Stage::Offered => Some(*iov),
                    _ => None,
                }
            }
            (ExposedName::Region(part), Access::Read) => Some(self.region(part, Rights::READ).ok()?.0),
            (ExposedName::Region(part), Access::Write) => {
                let (memory, counted) = self.region(part, Rights::WRITE).ok()?;
                (!counted).then_some(memory)
            }
            (ExposedName::Sent(_), Access::Write) | (ExposedName::Nothing, _) => None,
        }
    }

    /// The receiver of a message of ours is done with it.
    pub fn done(&mut self, from: PeerId, header: &Header, report: &mut impl Report) -> Result<(), Malformed> {
        let id = self.sends.find_short(header.id).ok_or(Malformed)?;
        let send = self.sends.get(id).ok_or(Malformed)?;
        if send.to != from || !matches!(send.stage, Stage::Offered | Stage::Sent) {
            return Err(Malformed);
        }
        if header.flags & flag::FAILED != 0 {
            self.operation_failed(id, error(header.data), report);
            return Ok(());
        }
        if !send.may_be_done() {
            return Err(Malformed);
        }
        self.end_send(id, None, report);
        Ok(())
    }
}
