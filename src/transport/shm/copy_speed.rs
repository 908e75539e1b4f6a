//! How quickly the receiver copies out of a ring, from which its sender learns whether a message that could be fetched is
//! better sent through the ring, and how it is best written there (`fill`).
//!
//! Each line of a ring goes from the sender's cache to the receiver's. Where both share a cache that is twice as quick as
//! a fetch by the kernel, and where they do not, a fetch may be quicker. A hypervisor or the scheduler may move a process at
//! any time, so it is measured all the time. Called by `inbound`. Knows nothing of rings and records.

use std::time::{Duration, Instant};

/// Shorter copies say little: the clock takes as long as some lines, and where no cache is shared the first lines as long as
/// many more.
const TIMED_FROM: usize = 4 << 10;
/// Of so many copies one is timed: of those that are slow more, as hardly any go through the ring then.
const TIMED_EACH: u8 = 16;
const TIMED_EACH_SLOW: u8 = 4;
/// Picoseconds for a byte: copies are quick below the one, and no longer so above the other. Where no cache is shared, 135
/// to 160 were seen on Intel's processors, which fetch more quickly than that, and 60 to 105 on AMD's, which do not.
const QUICK: u64 = 110;
const SLOW: u64 = 130;
/// A line that comes more quickly, with the clock's own time, may come from a cache that both share: there 30 to 40 ns were
/// seen between AMD's processors, and elsewhere 120 to 140.
const EARLY: Duration = Duration::from_nanos(90);
/// So many early lines in a row say that a cache is shared, as one in four comes early elsewhere too: the processor had asked
/// for it. So many that are late say that none is, as one may have been disturbed.
const ALL_EARLY: u8 = 8;
const ALL_LATE: u8 = 2;

/// What a sender is told, in a word of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Copies {
    /// Too few were timed yet.
    Unknown = 0,
    /// A fetch is quicker than a copy out of the ring.
    Slow = 1,
    Quick = 2,
    /// The copy is quicker, and the two processors share a cache.
    Shared = 3,
}

#[derive(Debug, Default)]
pub(super) struct CopySpeed {
    copies: u8,
    /// What the last timed copy took, in picoseconds for a byte.
    last: Option<u64>,
    quick: Option<bool>,
    shared: bool,
    /// Lines in a row that spoke against `shared`.
    against: u8,
}

impl CopySpeed {
    /// Before a body is copied: if that is to be timed, what one of its lines took to come, and the time.
    #[inline(always)]
    pub(super) fn start(&mut self, body: &[u8]) -> Option<(Duration, Instant)> {
        if body.len() < TIMED_FROM {
            return None;
        }
        self.copies += 1;
        let is_timed = self.copies >= self.timed_each();
        is_timed.then(|| {
            self.copies = 0;
            time_a_line(body)
        })
    }

    /// A copy that was to be timed is over, and so long a line had taken. Returns what copies are like, if they were not like
    /// that before. The quicker of two counts: one may have been disturbed, or have touched new memory.
    pub(super) fn took(&mut self, len: usize, line: Duration, time: Duration) -> Option<Copies> {
        let before = self.told();
        let now = u64::try_from(time.as_nanos() * 1000 / len.max(1) as u128).unwrap_or(u64::MAX);
        if let Some(last) = self.last.replace(now) {
            let most = if self.quick == Some(true) { SLOW } else { QUICK };
            self.quick = Some(now.min(last) < most);
        }
        self.against = if (line < EARLY) == self.shared {
            0
        } else {
            self.against + 1
        };
        if self.against == if self.shared { ALL_LATE } else { ALL_EARLY } {
            (self.shared, self.against) = (!self.shared, 0);
        }
        (self.told() != before).then_some(self.told())
    }

    fn told(&self) -> Copies {
        match (self.quick, self.shared) {
            (None, _) => Copies::Unknown,
            (Some(false), _) => Copies::Slow,
            (Some(true), false) => Copies::Quick,
            (Some(true), true) => Copies::Shared,
        }
    }

    fn timed_each(&self) -> u8 {
        match self.told() {
            Copies::Unknown => 1,
            Copies::Slow => TIMED_EACH_SLOW,
            Copies::Quick | Copies::Shared => TIMED_EACH,
        }
    }
}

/// In the middle, where nothing of the body has been read yet, nor any line beside it.
#[cold]
fn time_a_line(body: &[u8]) -> (Duration, Instant) {
    let started = Instant::now();
    core::hint::black_box(body.get(body.len() / 2).copied());
    let now = Instant::now();
    (now - started, now)
}

#[cfg(test)]
mod tests {
    use super::Copies::{Quick, Shared, Slow, Unknown};
    use super::*;

    const LEN: usize = 4096;
    const SOON: Duration = Duration::from_nanos(40);
    const LATE: Duration = Duration::from_nanos(130);

    /// The verdicts of copies that take so many picoseconds for a byte.
    fn verdicts(speeds: &[u64]) -> Vec<Option<Copies>> {
        let mut speed = CopySpeed::default();
        let time = |each: &u64| Duration::from_nanos(each * LEN as u64 / 1000);
        speeds.iter().map(|each| speed.took(LEN, LATE, time(each))).collect()
    }

    #[test]
    fn two_copies_decide_whether_they_are_quick() {
        assert_eq!(verdicts(&[QUICK / 2; 3]), [None, Some(Quick), None]);
        assert_eq!(verdicts(&[SLOW * 2; 3]), [None, Some(Slow), None]);
        // One that was disturbed changes nothing.
        let quick = QUICK / 2;
        assert_eq!(
            verdicts(&[9999, quick, 9999, quick, 9999, 9999]),
            [None, Some(Quick), None, None, None, Some(Slow)]
        );
        let between = (QUICK + SLOW) / 2;
        assert_eq!(
            verdicts(&[between, between, quick, between, between]),
            [None, Some(Slow), Some(Quick), None, None]
        );
    }

    #[test]
    fn lines_decide_whether_a_cache_is_shared() {
        let mut speed = CopySpeed::default();
        let mut verdicts = |line: Duration, times: u8| {
            let took = |_| speed.took(LEN, line, Duration::from_nanos(LEN as u64 * QUICK / 2000));
            (0..times).filter_map(took).collect::<Vec<_>>()
        };
        assert_eq!([verdicts(SOON, 1), verdicts(SOON, 1)], [vec![], vec![Quick]]);
        assert_eq!([verdicts(SOON, ALL_EARLY - 3), verdicts(LATE, 1)], [[]; 2]);
        assert_eq!(verdicts(SOON, ALL_EARLY - 1), []);
        assert_eq!(verdicts(SOON, 2), [Shared]);
        assert_eq!([verdicts(LATE, ALL_LATE - 1), verdicts(SOON, 1)], [[]; 2]);
        assert_eq!(verdicts(LATE, ALL_LATE + 1), [Quick]);
        // Early lines alone are not enough.
        verdicts(SOON, ALL_EARLY);
        assert_eq!(
            [(); 2].map(|()| speed.took(LEN, SOON, Duration::from_micros(9))),
            [None, Some(Slow)]
        );
    }

    #[test]
    fn a_copy_may_take_no_time_or_for_ever_and_be_of_nothing() {
        let mut speed = CopySpeed::default();
        for (len, time) in [(0, Duration::ZERO), (0, Duration::MAX), (usize::MAX, Duration::MAX)] {
            speed.took(len, time, time);
        }
    }

    #[test]
    fn short_copies_are_not_timed_and_of_the_others_a_part() {
        let (mut speed, body) = (CopySpeed::default(), [0; TIMED_FROM]);
        assert!((0..100).all(|_| speed.start(&body[1..]).is_none()));
        for (took, each) in [(SLOW, TIMED_EACH_SLOW), (QUICK / 2, TIMED_EACH)] {
            assert!(
                speed.told() != Unknown || speed.start(&body).is_some(),
                "each, until it is known"
            );
            for _ in 0..2 {
                speed.took(1000, LATE, Duration::from_nanos(took));
            }
            let timed = (0..10 * each).filter(|_| speed.start(&body).is_some());
            assert_eq!(timed.count(), 10);
        }
    }
}
