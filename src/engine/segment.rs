//! Arrival of a segment: the next part of a message that began with `First`, or whose bytes were requested.
//!
//! Packets of a peer arrive in order, so the segments of a message do too: each must begin where the last one ended.

use super::op::Report;
use super::peer::Malformed;
use super::port::{PeerId, Placement};
use super::state::Core;
use super::wire::Header;

impl Core {
    pub(super) fn place_segment(
        &mut self,
        from: PeerId,
        header: &Header,
        len: usize,
        report: &mut impl Report,
    ) -> Result<Placement, Malformed> {
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
