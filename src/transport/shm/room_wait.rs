//! Whether what finds no room in a peer's ring, or no credit, waits for long.
//!
//! A full ring is usual where much is sent, and goes on as quickly as both copy. But if the peer polls seldom, as a
//! program does that computes, or our program does, each poll moves one ring's worth at most: of 256 messages of 20 KiB
//! beside a poll every 300 us each took 640 us. Whatever the peer can fetch by itself is then better offered, as an
//! offer takes two lines. Called by `outbound`, which says when a record finds no room or a message no credit, and by
//! `ring_or_kernel`.

use std::time::{Duration, Instant};

/// A wait of so long is longer than the fetches of what a ring holds would take, and than a program takes that posts
/// some hundred messages.
const LONG: Duration = Duration::from_micros(50);
/// A ring that has been full so often, each time at another place, is too small.
const OFTEN: u32 = 16;
/// After a long wait, so many long messages are offered before one is sent again.
const OFFERED_THEN: u8 = 64;

#[derive(Debug, Default)]
pub(super) struct RoomWait {
    began: Option<Beginning>,
    times: u32,
    still_offered: u8,
}

#[derive(Clone, Copy, Debug)]
struct Beginning {
    /// How far the peer had read.
    taken: u64,
    at: Instant,
}

impl RoomWait {
    /// A record finds no room. `taken`: how far the peer has read.
    #[cold]
    pub(super) fn goes_on(&mut self, taken: u64) {
        if self.began.is_none_or(|began| began.taken != taken) {
            let at = Instant::now();
            self.began = Some(Beginning { taken, at });
            self.times = self.times.saturating_add(1);
        }
    }

    /// What waited was taken back, so the next that finds no room waits anew, wherever the peer is.
    pub(super) fn end(&mut self) {
        self.began = None;
    }

    /// Whether there was no room often. Then it is counted anew.
    pub(super) fn is_frequent(&mut self) -> bool {
        let is_frequent = self.times >= OFTEN;
        if is_frequent {
            self.times = 0;
        }
        is_frequent
    }

    /// Asked before the record is tried again. `taken` is on a line that the peer writes, so it is read only if a record
    /// has waited. `end`: the position behind the last record. If the peer has read all, it is we who poll seldom.
    pub(super) fn is_long(&mut self, taken: impl FnOnce() -> u64, end: u64) -> bool {
        let Some(began) = self.began else { return false };
        let taken = taken();
        let has_read = taken != began.taken;
        let is_long = (taken == end || !has_read) && began.at.elapsed() > LONG;
        if has_read {
            self.began = None;
        }
        if is_long {
            self.still_offered = OFFERED_THEN;
        }
        is_long
    }

    /// Whether a long message is offered, as others waited for long of late.
    pub(super) fn has_next_offered(&mut self) -> bool {
        let is_offered = self.still_offered > 0;
        self.still_offered -= u8::from(is_offered);
        is_offered
    }
}

/// How long a message waits for credit.
#[derive(Debug, Default)]
pub(super) struct CreditWait(Option<Instant>);

impl CreditWait {
    #[cold]
    pub(super) fn begin(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Whether it was long.
    #[cold]
    pub(super) fn end(&mut self) -> bool {
        self.0.take().is_some_and(|began| began.elapsed() > LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_too_small_if_it_is_full_at_many_places() {
        let mut wait = RoomWait::default();
        for _ in 0..2 {
            for taken in 1..=u64::from(OFTEN) {
                assert!(!wait.is_frequent());
                (0..100).for_each(|_| wait.goes_on(taken));
            }
            assert!(wait.is_frequent());
        }
    }

    #[test]
    fn a_ring_is_too_small_if_what_it_lacked_room_for_was_taken_back_often() {
        let mut wait = RoomWait::default();
        for _ in 0..OFTEN {
            assert!(!wait.is_frequent());
            wait.goes_on(10);
            wait.end();
        }
        assert!(wait.is_frequent());
    }

    #[test]
    fn a_wait_is_long_if_the_peer_does_not_read() {
        let mut wait = RoomWait::default();
        wait.goes_on(10);
        let started = Instant::now();
        while !wait.is_long(|| 10, 100) {
            wait.goes_on(10);
            assert!(started.elapsed() < Duration::from_secs(60));
        }
        assert!(started.elapsed() > LONG);
        assert_eq!(
            (0..200).filter(|_| wait.has_next_offered()).count(),
            OFFERED_THEN.into()
        );
    }

    #[test]
    fn a_wait_in_which_it_reads_or_that_is_over_is_not() {
        let mut wait = RoomWait::default();
        assert!(!wait.is_long(|| 100, 100), "nothing has waited");
        for taken in 0..1000 {
            wait.goes_on(taken);
            assert!(!wait.is_long(|| taken + 1, 2000));
        }
        assert!(!wait.is_long(|| 2000, 2000), "it found room");
        assert!(!wait.has_next_offered());
    }

    #[test]
    fn a_wait_is_long_if_the_peer_reads_all_before_we_look() {
        let mut wait = RoomWait::default();
        wait.goes_on(10);
        let started = Instant::now();
        while started.elapsed() <= LONG {}
        assert!(wait.is_long(|| 100, 100));
        assert!(!wait.is_long(|| 100, 100), "that was told");
        assert!(wait.has_next_offered());
    }

    #[test]
    fn a_wait_for_credit_is_long_after_a_while_and_ends_once() {
        let mut wait = CreditWait::default();
        assert!(!wait.end(), "it has not begun");
        wait.begin();
        let started = Instant::now();
        while started.elapsed() <= LONG {}
        assert!(wait.end());
        assert!(!wait.end());
    }
}
