//! Reads and writes of this endpoint's memory by its peers.
//!
//! Each access looks up all its pieces before it touches the first byte. The transport places a short write to one
//! piece directly in the region, at once or by a lease; all other operations are executed when their whole packet is
//! here. While one of them is still landing, later packets of the peer wait in the transport, so short operations and
//! messages keep their order. A long write goes on as a `message` whose receive is a region.

use super::deliver::ANSWERS;
use super::message::{Landing, Message, Phase, data, done_header};
use super::op::{Access, CompletedOp, Completion, Error, RemoteIov, RemotePart, Report, Tell};
use super::peer::{Detours, Malformed};
use super::pieces::{Refusal, RegionMemory, done_failed, read_list};
use super::port::{PeerId, Placement, Remote, Token};
use super::rma_peer::{ServedRead, rma_completion};
use super::state::{Core, GetOwner};
use super::wire::{Header, Packet, flag};
use crate::util::regions::Rights;
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// The token of a placement after which nothing is to be done.
const NOBODY: Token = u64::MAX;

/// Where a peer's long write goes.
#[derive(Debug)]
pub(super) struct LongWrite {
    pub remote: RemoteIov,
    /// Access to its region was denied after it began: what still comes is dropped.
    pub failed: Option<Error>,
}

impl Core {
    // ---- short operations, and the start of long ones ----

    /// A short write has come.
    #[inline]
    pub(super) fn place_write(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        if header.flags & flag::LIST != 0 {
            return self.place_whole(from, header, len, report);
        }
        if header.id != 0 {
            self.acked_along(from, header.id, report)?;
        }
        if !self.limits.sync_placement && len > 0 {
            return Ok(self.place_leased_write(from, header, len, report));
        }
        let part = header.piece(len);
        match self.find_region(&part, Rights::WRITE) {
            Ok((iov, counted)) => {
                let token = match short_data(header) {
                    None if !counted => NOBODY,
                    _ => {
                        let header = *header;
                        self.landings.insert(Landing::Write { from, header, len }).bits()
                    }
                };
                self.ack_write(from, header, counted);
                if len > 0 {
                    return Ok(Placement::Into { iov, at: 0, token });
                }
                if self.landings.remove(Id::from_bits(token)).is_some() {
                    self.told_write_landed(from, header, len, report);
                }
            }
            Err(error) => self.refuse_short(&Refusal { from, part, error }, report),
        }
        Ok(Placement::Drop)
    }

    /// A short write has come, whose bytes the transport puts into the region as they come.
    fn place_leased_write(&mut self, from: PeerId, header: &Header, len: usize, report: &mut impl Report) -> Placement {
        let (header, part) = (*header, header.piece(len));
        match self.lease_region(&part, Rights::WRITE) {
            Ok((lease, counted)) => {
                self.begins_landing(from);
                let landing = Landing::LeasedWrite {
                    from,
                    header,
                    len,
                    counted,
                };
                let token = self.landings.insert(landing).bits();
                Placement::Leased { lease, token }
            }
            Err(error) => {
                self.refuse_short(&Refusal { from, part, error }, report);
                Placement::Drop
            }
        }
    }

    pub(super) fn leased_write_landed(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        counted: bool,
        report: &mut impl Report,
    ) {
        self.ends_landing(from);
        self.ack_write(from, header, counted);
        if counted || short_data(header).is_some() {
            self.told_write_landed(from, header, len, report);
        }
    }

    /// A short write has landed of which somebody hears, or a part of a longer one: that is told with its last part.
    pub(super) fn told_write_landed(&mut self, from: PeerId, header: &Header, len: usize, report: &mut impl Report) {
        let data = short_data(header);
        // One with remote CQ data is never in parts.
        let behind = data.map_or(header.total, |_| 0);
        if let Some(len) = self.peer(from).rma_mut().told_parts.add(header, len, behind) {
            self.report_write(from, header.data, len, data, report);
        }
    }

    /// A region was closed before all was written that the transport writes to it by a lease.
    #[cold]
    pub(super) fn region_closed(&mut self, landing: Id, report: &mut impl Report) {
        match self.landings.remove(landing) {
            Some(Landing::LeasedWrite { from, header, len, .. }) => {
                self.ends_landing(from);
                let (part, error) = (header.piece(len), Error::NoKey);
                self.refuse_short(&Refusal { from, part, error }, report);
            }
            Some(Landing::Part { message: id, .. }) => {
                if let Some(message) = self.arrivals.get_mut(id) {
                    message.moving = message.moving.saturating_sub(1);
                }
                self.fail_long_write(id, Error::NoKey);
                self.finish_if_complete(id, report);
            }
            _ => {} // its peer is gone
        }
    }

    /// Later packets of this peer wait in the transport.
    fn begins_landing(&mut self, from: PeerId) {
        self.peer(from).count_landing(true);
    }

    fn ends_landing(&mut self, from: PeerId) {
        self.peer(from).count_landing(false);
    }

    /// An operation has come that is executed when its whole packet is here.
    pub(super) fn place_whole(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
        if self.has_many_replies(from, ANSWERS) {
            return Ok(Placement::Refuse);
        }
        if len == 0 {
            self.execute_packet(from, header, &[], report)?;
            return Ok(Placement::Drop);
        }
        if !self.limits.sync_placement {
            self.begins_landing(from);
        }
        let buffer = self.buffers.take(len);
        let header = *header;
        let token = self.landings.insert(Landing::Packet { from, header }).bits();
        Ok(Placement::Keep { buffer, token })
    }

    /// Its whole packet is here.
    pub(super) fn whole_landed(
        &mut self,
        from: PeerId,
        header: &Header,
        buffer: Option<Vec<u8>>,
        report: &mut impl Report,
    ) {
        if !self.limits.sync_placement {
            self.ends_landing(from);
        }
        let buffer = buffer.unwrap_or_default();
        if !self.peer(from).detours.has(Detours::SHUNNED) && self.execute_packet(from, header, &buffer, report).is_err()
        {
            self.shun(from);
        }
        self.buffers.give_back(buffer);
    }

    fn execute_packet(
        &mut self,
        from: PeerId,
        header: &Header,
        body: &[u8],
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        match header.packet {
            Packet::Write => self.write(from, header, body, report),
            Packet::OfferWrite => self.offered(from, header, body, report),
            Packet::Read => self.read(from, header, body, report),
            _ => self.atomic(from, header, body, report),
        }
    }

    fn write(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> Result<(), Malformed> {
        let (remote, bytes) = read_list(header, body, body.len())?;
        if remote.len() != bytes.len() {
            return Err(Malformed);
        }
        match self.find_regions(&remote, 0, bytes.len(), Rights::WRITE) {
            Ok(found) => {
                found.write(bytes);
                self.ack(from);
                self.report_target(from, Access::Write, &found, bytes.len(), short_data(header), report);
            }
            Err((part, error)) => self.refuse_short(&Refusal { from, part, error }, report),
        }
        Ok(())
    }

    fn read(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> Result<(), Malformed> {
        let len = usize::try_from(header.total).map_err(|_| Malformed)?;
        let (remote, rest) = read_list(header, body, len)?;
        if remote.len() != len || !rest.is_empty() {
            return Err(Malformed);
        }
        let number = header.id;
        self.end_exposed_read(from, number); // it could not be fetched, and is asked for again
        match self.find_regions(&remote, 0, len, Rights::READ) {
            Err((part, error)) => self.refuse(number, &Refusal { from, part, error }, report),
            Ok(found) if len <= self.limits_to(from).short_read() => {
                let mut bytes = self.buffers.take(len);
                found.read(&mut bytes);
                self.reply(from, number, bytes);
                self.report_target(from, Access::Read, &found, len, None, report);
            }
            Ok(_) => {
                let get = header.flags & flag::GET != 0 && self.limits.can_get && self.may_expose(from);
                let at = 0;
                let serve = ServedRead {
                    number,
                    remote,
                    at,
                    get,
                    exposure: None,
                };
                self.serve(from, serve);
            }
        }
        Ok(())
    }

    /// A peer offers a long write.
    fn offered(
        &mut self,
        from: PeerId,
        header: &Header,
        body: &[u8],
        report: &mut impl Report,
    ) -> Result<(), Malformed> {
        let total = usize::try_from(header.total).map_err(|_| Malformed)?;
        let (remote, rest) = read_list(header, body, total)?;
        if remote.len() != total {
            return Err(Malformed);
        }
        let source = match rest {
            [] => None,
            rest => {
                let remote = Remote::new(rest).ok_or(Malformed)?;
                Some(Box::new(remote))
            }
        };
        if let Err((part, error)) = self.find_regions(&remote, 0, total, Rights::WRITE) {
            self.refuse(header.id, &Refusal { from, part, error }, report);
            return Ok(());
        }
        let mut message = Message::new(from, header, Phase::Offered(source), total);
        message.data = data(header);
        message.long_write = Some(Box::new(LongWrite { remote, failed: None }));
        let id = self.arrivals.insert(message);
        self.accept(id, report);
        Ok(())
    }

    // ---- long writes ----

    /// The memory that a long write may be fetched into, if it is allowed and counts as one buffer.
    pub(super) fn long_write_memory(&self, long_write: &LongWrite) -> Option<UserIov> {
        let found = self.find_regions(&long_write.remote, 0, long_write.remote.len(), Rights::WRITE);
        found.ok()?.one()
    }

    /// A long write cannot be fetched, because access is now denied or its memory has too many pieces. Fails it or
    /// requests the bytes.
    pub(super) fn get_impossible(&mut self, owner: GetOwner, report: &mut impl Report) {
        let GetOwner::Message(id) = owner else { return };
        let Some(message) = self.arrivals.get(id) else { return };
        let Some(long_write) = &message.long_write else { return };
        match self.find_regions(&long_write.remote, 0, long_write.remote.len(), Rights::WRITE) {
            Ok(_) => self.request_bytes(id),
            Err((_, error)) => {
                self.fail_long_write(id, error);
                self.finish(id, report);
            }
        }
    }

    fn fail_long_write(&mut self, id: Id, error: Error) {
        let message = self.arrivals.get_mut(id);
        if let Some(long_write) = message.and_then(|message| message.long_write.as_mut()) {
            long_write.failed = long_write.failed.or(Some(error));
        }
    }

    /// The memory for `len` bytes of a long write at offset `at`, if access is still allowed.
    fn long_write_window(&mut self, id: Id, at: usize, len: usize) -> Option<RegionMemory> {
        let long_write = self.arrivals.get(id)?.long_write.as_ref()?;
        if long_write.failed.is_some() {
            return None;
        }
        match self.find_regions(&long_write.remote, at, len, Rights::WRITE) {
            Ok(found) => Some(found),
            Err((_, error)) => {
                self.fail_long_write(id, error);
                None
            }
        }
    }

    /// Where the next bytes of a long write go. `place_part` has counted them.
    pub(super) fn place_in_region(&mut self, id: Id, at: usize, len: usize, report: &mut impl Report) -> Placement {
        let Some(found) = self.long_write_window(id, at, len) else {
            self.finish_if_complete(id, report);
            return Placement::Drop;
        };
        if let Some(message) = self.arrivals.get_mut(id) {
            message.moving += 1;
        }
        let token = self.landings.insert(Landing::Part { message: id, at }).bits();
        let sync = self.limits.sync_placement;
        if let Some(iov) = found.one().filter(|_| sync) {
            return Placement::Into { iov, at: 0, token };
        }
        // A lease is of one region.
        let lease = match found.parts() {
            [_] if !sync => self.lease_region(&found.part, Rights::WRITE).ok(),
            _ => None,
        };
        match lease {
            Some((lease, _)) => Placement::Leased { lease, token },
            None => Placement::Keep {
                buffer: self.buffers.take(len),
                token,
            },
        }
    }

    /// Those bytes are in the region, or here in `buffer`.
    pub(super) fn landed_in_region(&mut self, id: Id, at: usize, buffer: Option<Vec<u8>>, report: &mut impl Report) {
        if let Some(bytes) = buffer {
            if let Some(found) = self.long_write_window(id, at, bytes.len()) {
                found.write(&bytes);
            }
            self.buffers.give_back(bytes);
        }
        self.finish_if_complete(id, report);
    }

    /// All of a long write has come: answers it and reports it.
    pub(super) fn long_write_done(&mut self, message: &Message, long_write: &LongWrite, report: &mut impl Report) {
        let (from, number, len) = (message.from, message.number, message.total);
        let Some(error) = long_write.failed else {
            self.send_control(from, done_header(number));
            // If the region was closed just now, the write still counts as done, but there is nobody to report it to.
            if let Ok(found) = self.find_regions(&long_write.remote, 0, len, Rights::WRITE) {
                self.report_target(from, Access::Write, &found, len, message.data, report);
            }
            return;
        };
        self.send_control(from, done_failed(number, error));
        report.refused(from, &Core::some_part(&long_write.remote), error);
    }

    // ---- completions for the target's application ----

    /// Reports a peer's finished operation, if it carried data or accesses are counted.
    pub(super) fn report_target(
        &mut self,
        from: PeerId,
        access: Access,
        found: &RegionMemory,
        len: usize,
        data: Option<u64>,
        report: &mut impl Report,
    ) {
        if found.counted || data.is_some() {
            report.report(target_completion(from, access, found.part.key, false, len, data));
        }
    }

    pub(super) fn report_write(
        &mut self,
        from: PeerId,
        key: u64,
        len: usize,
        data: Option<u64>,
        report: &mut impl Report,
    ) {
        report.report(target_completion(from, Access::Write, key, false, len, data));
    }

    /// A peer says that it has fetched what was exposed to it: reports the read if accesses are counted.
    pub(super) fn got(&mut self, from: PeerId, header: &Header, report: &mut impl Report) {
        let len = usize::try_from(header.total).unwrap_or(usize::MAX);
        let (addr, key) = (header.tag, header.data);
        self.end_exposed_read(from, header.id);
        let part = RemotePart { addr, len: 0, key };
        if let Ok((_, true)) = self.find_region(&part, Rights::READ) {
            report.report(target_completion(from, Access::Read, key, false, len, None));
        }
    }
}

/// Remote CQ data of a short write or base atomic.
pub(super) fn short_data(header: &Header) -> Option<u64> {
    (header.flags & flag::DATA != 0).then_some(header.total)
}

pub(super) fn target_completion(
    from: PeerId,
    access: Access,
    key: u64,
    atomic: bool,
    len: usize,
    data: Option<u64>,
) -> Completion {
    let tell = if data.is_some() { Tell::Queue } else { Tell::Counters };
    Completion {
        len,
        data,
        ..rma_completion(CompletedOp::Target { access, key, atomic }, from, 0, tell)
    }
}
