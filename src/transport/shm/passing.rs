//! What a direct access may pass: requests of ours that the peer has not read.
//!
//! A direct access takes effect at once, so all that was requested before it and may change memory, or tells of it,
//! must have been read. Only reads pass reads, where they need not keep their order: whoever posts many and does not
//! poll has the peer busy with the answers, and would wait for it in vain. Called by `ShmTransport`, `direct_access` and
//! `ring_or_kernel`; who makes the last request void (`recall`, `take_back_turns`) says so. Knows nothing of regions.

use super::outbound::Outbound;
use crate::engine::op::Access;
use core::sync::atomic::Ordering;

/// How far our requests go: a position in the ring, and a number of parts of our turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    position: u64,
    parts: u64,
}

/// The requests since the last one that was no read.
#[derive(Debug, Default)]
pub(super) struct LastReads(Option<[Requested; 2]>);

impl LastReads {
    /// A read was pushed, between these.
    #[cold]
    pub(super) fn pushed(&mut self, before: Requested, after: Requested) {
        self.0 = match self.0 {
            Some([first, last]) if last == before => Some([first, after]),
            _ => Some([before, after]),
        };
    }

    /// Requests were taken back, so what they went to may be used for others.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Outbound {
    #[inline(always)]
    pub(super) fn requested(&self) -> Requested {
        Requested {
            position: self.ordered_until,
            parts: self.said.parts(),
        }
    }

    /// Whether direct access may overtake all that the peer has not read.
    #[inline(always)]
    pub(super) fn may_go_ahead(&self) -> bool {
        self.has_read(self.requested())
    }

    /// Whether the peer has read our records in the ring, except answers.
    pub(super) fn is_ring_read(&self) -> bool {
        self.lane.seen().load(Ordering::Relaxed) >= self.ordered_until
    }

    /// Whether an access may overtake what the peer has not read.
    pub(super) fn may_pass(&self, access: Access) -> bool {
        self.may_go_ahead() || access == Access::Read && self.has_left_reads_only()
    }

    fn has_left_reads_only(&self) -> bool {
        self.last_reads
            .0
            .is_some_and(|[before, last]| last == self.requested() && self.has_read(before))
    }

    #[inline(always)]
    fn has_read(&self, requested: Requested) -> bool {
        // SYNC POINT seen: acquire.
        self.lane.seen().load(Ordering::Acquire) >= requested.position && self.has_heard(requested.parts)
    }
}
