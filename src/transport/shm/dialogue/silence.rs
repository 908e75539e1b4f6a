//! How long whoever has said something does not look for the answer.
//!
//! A processor that looks at a line which another has written gets it for itself. Who looks for an answer while the other
//! side is about to write it takes the line away, and the other side has to take it back: near, 8 bytes one way take
//! 94 ns so, and 81 where nobody looks too soon. When that is depends on the processors, and on what the program
//! does in between. So it is learnt: an answer that was not there at the first look makes the silence longer, one that
//! was makes it shorter.
//!
//! It goes by the clock, as a program may do something else between two polls. Where there is none that is read in some
//! nanoseconds, there is no silence. Called by `sides`, and by `Inbound` in each poll.

use crate::sys::clock;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the silence gets longer by, and shorter, in ticks. So of five answers one is looked for too soon. Near, 16 and 1,
/// 8 and 4, 4 and 4 took 98, 93 and 95 ns for 8 bytes one way where these take 88.
const LONGER: u64 = 16;
const SHORTER: u64 = 4;
/// The longest silence, in ticks: some 400 ns. An answer that comes later gains less by it than one that is quick for
/// once would lose. Far, 256 bytes take 445 ns one way with half of it, and 350 so.
const LONGEST: u64 = 1024;
/// What is not found by so many looks does not come soon, and says nothing of when those answers come that do.
const SOON: u32 = 8;

/// Of one dialogue.
#[derive(Debug, Default)]
pub(in super::super) struct Silence {
    /// When our last turn was written.
    since: AtomicU64,
    lasts: AtomicU64,
    /// How often it was looked for the answer. While that is 0, the silence may last.
    looks: AtomicU32,
}

impl Silence {
    /// A turn of ours was written to its end.
    #[inline(always)]
    pub(super) fn begin(&self) {
        if self.lasts.load(Ordering::Relaxed) > 0 {
            self.since.store(clock::ticks().unwrap_or(0), Ordering::Relaxed);
        }
        self.looks.store(0, Ordering::Relaxed);
    }

    /// Whether it is too soon to look for a turn of the other side's. If not, it is looked for now.
    #[inline(always)]
    pub(in super::super) fn is_too_soon(&self) -> bool {
        let looks = self.looks.load(Ordering::Relaxed);
        if looks == 0 && self.is_kept() {
            return true;
        }
        self.looks.store(looks.saturating_add(1), Ordering::Relaxed);
        false
    }

    fn is_kept(&self) -> bool {
        let lasts = self.lasts.load(Ordering::Relaxed);
        let is_over = |now: u64| now.wrapping_sub(self.since.load(Ordering::Relaxed)) >= lasts;
        lasts > 0 && !clock::ticks().is_none_or(is_over)
    }

    /// A turn of the other side's was found.
    #[inline(always)]
    pub(super) fn end(&self) {
        let lasts = self.lasts.load(Ordering::Relaxed);
        let lasts = match self.looks.load(Ordering::Relaxed) {
            1 => lasts.saturating_sub(SHORTER),
            2..=SOON => (lasts + LONGER).min(LONGEST),
            _ => return,
        };
        self.lasts.store(lasts, Ordering::Relaxed);
        // The other side's next turn that comes before one of ours answers nothing.
        self.looks.store(SOON + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Silence {
        /// Says something, and finds the answer when it was looked for so often.
        fn exchange(&self, looks: u32) {
            self.begin();
            let mut looked = 0;
            while looked < looks {
                looked += u32::from(!self.is_too_soon());
            }
            self.end();
        }

        fn after(looks: &[u32]) -> u64 {
            let silence = Silence::default();
            looks.iter().for_each(|looks| silence.exchange(*looks));
            silence.lasts.into_inner()
        }
    }

    #[test]
    fn it_lasts_as_long_as_answers_take() {
        assert_eq!(Silence::after(&[1, 1]), 0, "answers that are there at once");
        assert_eq!(Silence::after(&[2, SOON]), 2 * LONGER);
        assert_eq!(Silence::after(&[2, 1, 1]), LONGER - 2 * SHORTER);
        assert_eq!(Silence::after(&[2, SOON + 1, 100]), LONGER, "which came late");
        assert_eq!(Silence::after(&[2; 100]), LONGEST);
        assert_eq!(Silence::after(&[1; 100]), 0);
    }

    #[test]
    fn a_second_turn_in_a_row_teaches_nothing() {
        let silence = Silence::default();
        silence.exchange(2);
        assert!(!silence.is_too_soon(), "nothing was said since");
        silence.end();
        assert_eq!(silence.lasts.into_inner(), LONGER);
    }

    #[test]
    fn it_is_over_when_the_time_has_passed() {
        let silence = Silence::default();
        silence.lasts.store(u64::MAX, Ordering::Relaxed);
        silence.begin();
        assert_eq!(silence.is_too_soon(), clock::ticks().is_some());
        silence.lasts.store(1, Ordering::Relaxed);
        while silence.is_too_soon() {}
        assert!(!silence.is_too_soon());
        silence.lasts.store(u64::MAX, Ordering::Relaxed);
        assert!(!silence.is_too_soon(), "it does not begin again before the next turn");
    }
}
