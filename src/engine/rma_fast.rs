//! The fast paths of RMA and atomics at the receiver of a packet: executed while the packet still lies in the
//! transport, without a buffer or a token.
//!
//! Each consumes its packet or does nothing; then `rma_target`, `atomic_target` or `replies` gets the same packet and
//! refuses it if need be. Called by `deliver`.

use super::atomic_target::IncomingAtomic;
use super::deliver::ANSWERS;
use super::kernel::Kernel;
use super::op::{Access, Form, Report};
use super::outgoing::LocalBuffer;
use super::port::PeerId;
use super::read_at_hand::ReadAtHand;
use super::rma_target::{short_data, target_completion};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::keep_in_registers;
use crate::util::regions::Rights;

impl Core {
    /// Executes an operation on one piece of memory, or takes the reply to one. False: nothing was done.
    #[inline(never)]
    pub(super) fn take_memory(
        &mut self,
        from: PeerId,
        mut header: Header,
        body: &[u8],
        report: &mut impl Report,
    ) -> bool {
        self.take_access(from, keep_in_registers(&mut header), body, report)
    }

    /// The same where the header is in memory already.
    #[inline(always)]
    pub(super) fn take_access(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        if self.at_hand.is_of(from) {
            if header.packet == Packet::Read {
                // The first of these reads passed the checks below, and nothing but reads has come from this peer
                // since.
                return self.take_next_read(from, header, body, report);
            }
            self.copy_reads_at_hand();
        }
        let simple = header.flags & !(flag::DATA | flag::ACK) == 0;
        let Some(peer) = self
            .peers
            .get(from as usize)
            .filter(|peer| simple && !peer.is_off_fast_path())
        else {
            return false;
        };
        if peer.control.len() >= ANSWERS || self.has_many_replies(from, ANSWERS) {
            return false;
        }
        let taken = match header.packet {
            Packet::Write => self.take_write(from, header, body, report),
            Packet::Read => self.take_read(from, header, body, report),
            Packet::Atomic => self.take_atomic(from, header, Form::Base, body, report),
            Packet::FetchAtomic => self.take_atomic(from, header, Form::Fetch, body, report),
            Packet::CompareAtomic => self.take_atomic(from, header, Form::Compare, body, report),
            Packet::Reply => self.take_reply(from, header, body, report),
            _ => None,
        };
        taken.is_some()
    }

    #[inline(always)]
    fn take_write(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> Option<()> {
        let part = header.piece(body.len());
        let (memory, counted) = self.find_region_in_one_piece(&part, Rights::WRITE)?;
        if header.id != 0 {
            self.acked_along(from, header.id, report).ok()?;
        }
        memory.write(body);
        self.ack_write(from, header, counted);
        if counted || short_data(header).is_some() {
            self.told_write_landed(from, header, part.len, report);
        }
        Some(())
    }

    #[inline(never)]
    fn take_next_read(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        self.take_read(from, header, body, report).is_some()
    }

    #[inline(always)]
    fn take_read(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> Option<()> {
        let len = usize::try_from(header.total).ok()?;
        if len > self.limits_to(from).short_read() || !body.is_empty() || header.flags != 0 {
            return None;
        }
        let part = header.piece(len);
        let (memory, counted) = self.find_region_in_one_piece(&part, Rights::READ)?;
        let number = header.id;
        let read = ReadAtHand { number, memory };
        if counted {
            // Whoever hears of the access may change the memory, so the answer is a copy made before.
            self.copy_read(from, &read, 0);
            report.report(target_completion(from, Access::Read, part.key, false, len, None));
        } else {
            self.answer_after_poll(from, read);
        }
        Some(())
    }

    #[inline(never)]
    fn take_atomic(
        &mut self,
        from: PeerId,
        header: &Header,
        form: Form,
        body: &[u8],
        report: &mut impl Report,
    ) -> Option<()> {
        let len = self.atomic_len(form, header, body).ok()?;
        let atomic = IncomingAtomic::of(form, Kernel::from_code(form, header.code), len, body)?;
        let part = header.piece(len);
        let (memory, counted) = self.find_region_in_one_piece(&part, atomic.rights())?;
        let mut data = None;
        if form == Form::Base {
            atomic.execute_one(memory, &mut []).ok()?;
            data = short_data(header);
            self.ack(from);
        } else {
            let mut result = self.buffers.take(len);
            if atomic.execute_one(memory, &mut result).is_err() {
                self.buffers.give_back(result);
                return None;
            }
            self.reply(from, header.id, result);
        }
        if counted || data.is_some() {
            report.report(target_completion(from, atomic.access(), part.key, true, len, data));
        }
        Some(())
    }

    /// The result of our read or atomic, or the next part of it. Not where the transport still writes an earlier part.
    fn take_reply(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> Option<()> {
        let (id, outgoing) = self.operation(from, header).ok()?;
        let (at, left) = (outgoing.at, outgoing.until);
        let LocalBuffer::User(iov) = &outgoing.local else {
            return None;
        };
        let comes_next = header.total == at as u64 && at + left == outgoing.len;
        if !comes_next || body.len() > left || body.is_empty() && left > 0 {
            return None;
        }
        iov.write(at, body);
        if body.len() == left {
            self.complete(id, None, report);
        } else {
            outgoing.at = at + body.len();
            outgoing.until = left - body.len();
        }
        Some(())
    }
}
