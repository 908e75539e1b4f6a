//! The two places for a long body of a turn, and whose processor has their lines.
//!
//! Two that answer each other with long bodies hand the lines of one place to and fro. But if a long body is answered
//! with a brief turn, the other side's processor has its lines, and to write there again takes as long as to read. So
//! the next one goes to the other place, and the lines of the first are taken back meanwhile, in polls that find
//! nothing: by then the other side has read them.
//!
//! All of this is a guess of what a processor has, so nothing but time depends on it. Called by `Dialogue`.

use super::super::ahead;
use super::super::ring::LINE;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

/// So many lines are taken back in one poll, as whoever polls wants to see soon what comes.
const AT_ONCE: usize = 16 * LINE;

#[derive(Debug, Default)]
pub(super) struct Places {
    /// A bit for each place that this side wrote to last, and whose lines the other side therefore takes when it reads.
    given: AtomicU8,
    /// What is still to be taken back.
    from: AtomicPtr<u8>,
    left: AtomicUsize,
}

impl Places {
    /// Where the next long body goes: to the first place, unless only that is the other side's.
    pub(super) fn next(&self) -> usize {
        usize::from(self.given.load(Ordering::Relaxed) == bit(0))
    }

    /// This side wrote so many bytes to a place. If the other side has the other place, too, the lines of that are
    /// taken back: they lie at `other`.
    pub(super) fn wrote(&self, place: usize, other: Option<*mut u8>, len: usize) {
        let has_lost_other = self.given.load(Ordering::Relaxed) & !bit(place) != 0;
        self.given.store(bit(place), Ordering::Relaxed);
        let other = other.filter(|_| has_lost_other);
        self.left.store(other.map_or(0, |_| len), Ordering::Relaxed);
        self.from
            .store(other.unwrap_or(core::ptr::null_mut()), Ordering::Relaxed);
    }

    /// This side has read what the other one wrote to a place.
    pub(super) fn read(&self, place: usize) {
        let given = self.given.load(Ordering::Relaxed);
        self.given.store(given & !bit(place), Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }

    /// After a poll that has found nothing.
    #[inline(always)]
    pub(super) fn take_back(&self) {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.take_back_some(left);
        }
    }

    #[inline(never)]
    fn take_back_some(&self, left: usize) {
        let from = self.from.load(Ordering::Relaxed);
        let now = left.min(AT_ONCE);
        (0..now)
            .step_by(LINE)
            .for_each(|at| ahead::to_write(from.wrapping_add(at)));
        self.from.store(from.wrapping_add(now), Ordering::Relaxed);
        self.left.store(left - now, Ordering::Relaxed);
    }
}

fn bit(place: usize) -> u8 {
    1 << place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked for need not be there.
    fn at(place: usize) -> Option<*mut u8> {
        Some(core::ptr::without_provenance_mut((place + 1) << 16))
    }

    /// Writes a long body, and says where to.
    fn write(places: &Places, len: usize) -> usize {
        let place = places.next();
        places.wrote(place, at(1 - place), len);
        place
    }

    /// How many polls take something back.
    fn polls(places: &Places) -> usize {
        let is_at_it = |_: &usize| {
            let left = places.left.load(Ordering::Relaxed);
            places.take_back();
            left > 0
        };
        (0..100).take_while(is_at_it).count()
    }

    #[test]
    fn what_is_answered_briefly_goes_to_one_place_after_the_other() {
        let places = Places::default();
        assert_eq!((write(&places, 4096), polls(&places)), (0, 0));
        for turn in 1..9 {
            assert_eq!(write(&places, 4096), turn % 2);
            let lost = at(1 - turn % 2).unwrap();
            assert_eq!(places.from.load(Ordering::Relaxed), lost);
            assert_eq!(polls(&places), 4096 / AT_ONCE);
            assert_eq!(places.from.load(Ordering::Relaxed), lost.wrapping_add(4096));
        }
    }

    #[test]
    fn what_is_answered_at_length_stays_in_one_place() {
        let places = Places::default();
        for _ in 0..4 {
            assert_eq!((write(&places, 4096), polls(&places)), (0, 0));
            places.read(0);
        }
    }

    /// The other side writes there next, so that its processor needs the lines.
    #[test]
    fn a_long_answer_ends_the_taking_back() {
        let places = Places::default();
        let _ = [0; 2].map(|_| write(&places, 4096));
        places.take_back();
        places.read(1);
        assert_eq!(polls(&places), 0);
    }

    /// A turn of several parts needs both places.
    #[test]
    fn nothing_is_taken_back_of_what_goes_on() {
        let places = Places::default();
        let _ = [0; 2].map(|_| write(&places, 4096));
        places.wrote(0, None, 8192);
        assert_eq!(polls(&places), 0);
    }
}
