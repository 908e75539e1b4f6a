//! Messages in pieces: a body that belongs to a message whose beginning has come, or that was asked for.
//!
//! Packets of a peer arrive in order, so a message's segments do too; only where they lie in it is checked.

use super::deliver::ANSWERS;
use super::op::Report;
use super::peer::Malformed;
use super::port::{PeerId, Place};
use super::state::Core;
use super::wire::{Header, Packet};

impl Core {
    /// The short way of a segment whose message has met its receive. False: nothing was done.
    #[inline(never)]
    pub fn take_segment(&mut self, from: PeerId, header: &Header, body: &[u8], report: &mut impl Report) -> bool {
        if header.packet != Packet::Segment || header.flags != 0 {
            return false;
        }
        let Some(peer) = self.peers.get(from as usize).filter(|peer| !peer.special) else {
            return false;
        };
        let key = (from, header.id);
        // The last one may be answered.
        let Some(id) = self.streams.get(&key).copied().filter(|_| peer.control.len() < ANSWERS) else {
            return false;
        };
        let Some(message) = self.arrivals.get_mut(id).filter(|message| message.inlet.is_none()) else {
            return false;
        };
        let (at, len) = (message.next, body.len());
        let fits = header.total == at as u64 && (1..=message.goal.saturating_sub(at)).contains(&len);
        let Some(target) = message.target.as_ref().filter(|_| fits) else {
            return false;
        };
        target.iov.write(at, body);
        message.next = at + len;
        if message.next == message.goal {
            self.streams.remove(&key);
            self.settle(id, report);
        }
        true
    }

    pub fn place_segment(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Place, Malformed> {
        let key = (from, header.id);
        let id = *self.streams.get(&key).ok_or(Malformed)?;
        let message = self.arrivals.get(id).ok_or(Malformed)?;
        let at = message.next;
        let end = at.checked_add(len).ok_or(Malformed)?;
        if header.total != at as u64 || len == 0 || end > message.goal {
            return Err(Malformed);
        }
        if end == message.goal {
            self.streams.remove(&key);
        }
        Ok(self.place_part(id, at, len, report))
    }
}
