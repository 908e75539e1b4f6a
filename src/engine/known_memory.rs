//! The memory of a peer that is known to be there: it has taken writes of ours, or the transport sees it registered.
//!
//! A write that need not be delivered could be reported as soon as it has left, but if its target then refused it, no
//! completion could say so. So the first write to some memory is reported when the target has acknowledged it; those
//! that follow to the same memory are reported early, without hearing from the target. A key names one region without
//! gaps, so all between two places that were written is there too. The first refusal, as of a region that was closed,
//! forgets all.
//!
//! Called by `short_op`, and by `rma` for what the transport sees.

use super::op::RemotePart;

/// How many keys of a peer are remembered; a further one takes the place of the oldest.
const KEYS: usize = 8;

/// A part of a region: from the first byte to the one behind the last.
#[derive(Clone, Copy, Debug)]
struct Span {
    key: u64,
    from: u64,
    to: u64,
}

#[derive(Debug, Default)]
pub(super) struct KnownMemory {
    spans: Vec<Span>,
    /// The place of the oldest span, once there are `KEYS`.
    oldest: usize,
}

impl KnownMemory {
    pub(super) fn has(&self, part: &RemotePart) -> bool {
        let end = part.addr.checked_add(part.len as u64);
        let holds =
            |span: &Span| span.key == part.key && span.from <= part.addr && end.is_some_and(|end| end <= span.to);
        self.spans.iter().any(holds)
    }

    /// The target has acknowledged a write there, or the transport sees that it would.
    pub(super) fn add(&mut self, part: &RemotePart) {
        let span = Span {
            key: part.key,
            from: part.addr,
            to: part.addr.saturating_add(part.len as u64),
        };
        if let Some(known) = self.spans.iter_mut().find(|known| known.key == span.key) {
            known.from = known.from.min(span.from);
            known.to = known.to.max(span.to);
        } else if self.spans.len() < KEYS {
            self.spans.push(span);
        } else if let Some(oldest) = self.spans.get_mut(self.oldest) {
            *oldest = span;
            self.oldest = (self.oldest + 1) % KEYS;
        }
    }

    pub(super) fn forget(&mut self) {
        *self = KnownMemory::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(addr: u64, len: usize, key: u64) -> RemotePart {
        RemotePart { addr, len, key }
    }

    #[test]
    fn all_between_two_places_is_known_and_nothing_beyond() {
        let mut known = KnownMemory::default();
        assert!(!known.has(&part(8, 0, 1)));
        known.add(&part(8, 8, 1));
        known.add(&part(64, 8, 1));
        assert!(known.has(&part(8, 64, 1)) && known.has(&part(30, 1, 1)) && known.has(&part(72, 0, 1)));
        assert!(!known.has(&part(7, 2, 1)) && !known.has(&part(71, 2, 1)) && !known.has(&part(8, 8, 2)));
        assert!(!known.has(&part(u64::MAX, 8, 1)));
        known.forget();
        assert!(!known.has(&part(8, 8, 1)));
    }

    #[test]
    fn the_oldest_key_makes_room() {
        let mut known = KnownMemory::default();
        (0..KEYS as u64 + 3).for_each(|key| known.add(&part(0, 8, key)));
        let has = |key| known.has(&part(0, 8, key));
        assert!((0..3).all(|key| !has(key)) && (3..KEYS as u64 + 3).all(has));
    }
}
