//! Recall: records that a peer has not begun to read, because it does not poll, are taken back from its ring, and so are
//! turns of the dialogues; what they ask for is done by the kernel.
//!
//! Reading and recalling exclude each other (`exclusion`), so a packet is either read by the receiver or carried out
//! here. What a packet means is the engine's to say (`Recall`). Called for `Transport::recall`.

use super::dialogue::SaidPart;
use super::exclusion::{self, ExclusionWords};
use super::lane::{LARGE, Rows, WIDE};
use super::outbound::Outbound;
use super::ring::{Consumer, Form, Record, RingEnd};
use crate::engine::op::{Access, RemotePart};
use crate::engine::port::Recall;
use crate::engine::wire::Header;
use crate::sys::barrier;
use crate::util::user::{UserBuf, UserIov};
use core::sync::atomic::Ordering;

/// Replaces the header of a record that was carried out here: the receiver skips it, whatever follows the first word.
/// Its lowest byte is no packet's kind.
pub(super) const RECALLED: [u64; 4] = [0xfe, 0, 0, 0];

/// A packet that the peer has not begun to read.
struct Unread {
    place: Place,
    recall: Recall,
}

/// Where it is.
enum Place {
    /// In the ring. `end`: the position behind it.
    Record { rows: Rows, record: Record, end: u64 },
    /// A part of a turn of ours. `ends`: when it is carried out, all that we have said is.
    Part { part: SaidPart, ends: bool },
}

impl Unread {
    /// A record that is to be written anew if all others are taken back.
    fn staying(&self, ours: u64) -> Option<(&Rows, Record)> {
        match &self.place {
            Place::Record { rows, record, end } if matches!(self.recall, Recall::Leave) && *end > ours => {
                Some((rows, *record))
            }
            _ => None,
        }
    }

    fn is_carried_out(&self) -> bool {
        matches!(self.recall, Recall::Write(_) | Recall::Read(..))
    }

    fn part(&self) -> Option<SaidPart> {
        match self.place {
            Place::Part { part, .. } => Some(part),
            Place::Record { .. } => None,
        }
    }
}

/// The last part ends what we have said, if all parts can be carried out.
fn mark_last_part(unread: &mut [Unread]) {
    let mut parts: Vec<&mut Unread> = unread.iter_mut().filter(|one| one.part().is_some()).collect();
    let are_all = parts.iter().all(|one| one.is_carried_out());
    if let Some(Place::Part { ends, .. }) = parts.last_mut().map(|one| &mut one.place) {
        *ends = are_all;
    }
}

fn contents(rows: &Rows, record: Record) -> (Form, [u64; 4], Vec<u8>) {
    // SAFETY: `exclusion::take_back` keeps the receiver from reading until the records are taken back.
    let body: &[u8] = unsafe { rows.body(record) };
    (record.form, rows.read_header(record), body.to_vec())
}

impl Outbound {
    /// See `Transport::recall`.
    #[cold]
    pub(super) fn recall(&mut self, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        // Where we fence, the kernel gives one of the two sides no barrier over the other.
        if self.fence || self.is_closed() {
            return None;
        }
        let looks = self.header.polls().load(Ordering::Relaxed);
        let seen = self.lane.rows().seen();
        let unread = self.unread(seen, judge)?;
        let ours = self.first_of_ours(seen);
        let staying = unread
            .iter()
            .filter_map(|one| one.staying(ours))
            .map(|(_, record)| record);
        if !self.producer.fit_behind(self.lane.rows(), ours, staying) {
            return None;
        }
        let words = *self.lane.rows();
        let done = exclusion::take_back(&words, seen, barrier::everywhere, || self.carry_out(seen, &unread));
        self.idle_since = done.map(|_| looks);
        if done.is_some() {
            self.choice.has_taken_back();
            self.room_wait.end();
        }
        done
    }

    /// What the peer has not read, oldest first. None: the first that is not `Recall::Leave` cannot be done
    /// here.
    fn unread(&self, seen: u64, mut judge: impl FnMut(&Header, usize) -> Recall) -> Option<Vec<Unread>> {
        let tail = self.producer.position();
        // The peer writes `seen`, and may write anything. Skipped lines count.
        tail.checked_sub(seen)
            .filter(|len| *len <= LARGE.cells() + 2 * WIDE.cells())?;
        let mut reader = Consumer::at(seen);
        let mut unread = Vec::new();
        let mut parts = self.unheard_parts().into_iter().peekable();
        while reader.position() < tail {
            let is_earlier = self.earlier_ring_end.is_some_and(|end| reader.position() <= end);
            let rows = *self
                .lane
                .earlier_rows()
                .filter(|_| is_earlier)
                .unwrap_or(self.lane.rows());
            let record = match reader.next(&rows) {
                Ok(record) => record?,
                Err(RingEnd::Moved) if is_earlier => {
                    reader.follow();
                    continue;
                }
                Err(RingEnd::Turn) => {
                    reader.pass_turn();
                    continue;
                }
                Err(_) => return None,
            };
            reader.pass(record);
            let end = reader.position();
            while let Some(part) = parts.next_if(|part| end > part.position) {
                unread.push(self.unread_part(part, &mut judge));
            }
            let header = Header::from_words(rows.read_header(record));
            // A record without an engine's header is a request for help: it stays, and may be overtaken.
            let recall = header.map_or(Recall::Leave, |header| judge(&header, record.len));
            let place = Place::Record { rows, record, end };
            unread.push(Unread { place, recall });
        }
        parts.for_each(|part| unread.push(self.unread_part(part, &mut judge)));
        mark_last_part(&mut unread);
        let first = unread.iter().find(|unread| !matches!(unread.recall, Recall::Leave));
        first?.is_carried_out().then_some(unread)
    }

    /// A part of our turns that the peer has not read. One that was carried out before, and stays behind others, is
    /// like a record of that kind.
    fn unread_part(&self, part: SaidPart, judge: &mut impl FnMut(&Header, usize) -> Recall) -> Unread {
        let recall = self.said(part).map_or(Recall::Stop, |(words, body)| {
            Header::from_words(words).map_or(Recall::Leave, |header| judge(&header, body.len()))
        });
        let place = Place::Part { part, ends: false };
        Unread { place, recall }
    }

    /// The position from which on records are written anew. The word that ends the earlier ring stays, and with it what
    /// is before it.
    fn first_of_ours(&self, seen: u64) -> u64 {
        seen.max(self.earlier_ring_end.map_or(0, |end| end + 1))
    }

    /// Does what can be done, in order, and takes those records back. Says how many operations that was.
    fn carry_out(&mut self, seen: u64, unread: &[Unread]) -> usize {
        let ours = self.first_of_ours(seen);
        let (mut done, mut stopped, mut left) = (0, false, Vec::new());
        if !unread.iter().filter_map(Unread::part).eq(self.unheard_parts()) {
            return 0; // some were read meanwhile, which `seen` does not tell
        }
        for one in unread {
            if !stopped && self.carry_out_one(one) {
                done += 1;
                continue;
            }
            stopped |= !matches!(one.recall, Recall::Leave);
            if stopped {
                // This and all behind it stay where they are.
                return done;
            }
            left.extend(one.staying(ours).map(|(rows, record)| contents(rows, record)));
        }
        if !self.is_heard() {
            // A turn says behind which position of the ring it comes, so what is in the ring stays, too.
            return done;
        }
        // What may stay is written anew behind what has been read, so that all lines of the rest are free again.
        self.producer.rewind(self.lane.rows(), ours);
        left.iter()
            .for_each(|(form, header, body)| self.put_back(*form, *header, body));
        self.ordered_until = seen;
        self.last_reads.forget();
        done
    }

    fn put_back(&mut self, form: Form, header: [u64; 4], body: &[u8]) {
        let rows = *self.lane.rows();
        // There is room, as was seen, unless the peer writes nonsense where it gives lines back.
        let Ok(Some(slot)) = self.producer.reserve_behind(&rows, form, body.len()) else {
            return;
        };
        // SAFETY: the record is this side's, as it was reserved and is published below.
        unsafe { rows.body(slot.record) }.copy_from_slice(body);
        rows.write_header(slot.record, header);
        self.producer.publish(&rows, slot);
    }

    fn carry_out_one(&mut self, one: &Unread) -> bool {
        let (at, len) = match &one.place {
            Place::Record { rows, record, .. } => {
                // SAFETY: `exclusion::take_back` keeps the receiver from reading until this is done.
                let body = unsafe { rows.body(*record) };
                (body.as_mut_ptr(), body.len())
            }
            Place::Part { part, .. } => {
                let Some((_, body)) = self.said(*part) else {
                    return false;
                };
                (body.as_ptr().cast_mut(), body.len())
            }
        };
        // SAFETY: the body is valid for as long as the packet is ours: the copy, which only reads it, is done before
        // `take_back` ends.
        let body = unsafe { UserBuf::new(at, len) };
        if !self.copy(body, &one.recall) {
            return false;
        }
        match &one.place {
            Place::Record { rows, record, .. } => rows.write_header(*record, RECALLED),
            Place::Part { ends: true, .. } => self.take_back_turns(),
            Place::Part { part, .. } => self.replace_said(*part, RECALLED),
        }
        true
    }

    fn copy(&mut self, body: UserBuf, recall: &Recall) -> bool {
        match recall {
            Recall::Write(part) => part.len == body.len() && self.copy_now(part, Access::Write, &UserIov::one(body)),
            Recall::Read(part, local) => part.len == local.len() && self.copy_now(part, Access::Read, local),
            Recall::Leave | Recall::Stop => false,
        }
    }

    fn copy_now(&mut self, part: &RemotePart, access: Access, local: &UserIov) -> bool {
        let range = self.copyable_now(part, access);
        range.is_some_and(|range| self.copy_all(&range, local))
    }
}
