//! How quickly bodies are copied into a ring and out of it, from which its sender learns whether a message that could be
//! fetched is better sent through the ring, and the receiver whether long ones are (`streaming`).
//!
//! Each line of a ring goes from the sender's cache to the receiver's and, when the sender writes it again, back. Where both
//! share a cache a ring is mostly twice as quick as a fetch by the kernel, and where they do not, a fetch may be quicker; which
//! of the two copies takes longer differs from machine to machine. A hypervisor or the scheduler may move a process at any
//! time, so it is measured all the time: the sender times its copies and writes what a byte took to a word of the lane, to
//! which the receiver adds what its own took; and what the kernel takes for a fetch, the receiver times too. Called by
//! `outbound`, `inbound` and `ring_or_kernel`. Knows nothing of rings and records.

use std::time::{Duration, Instant};

/// Shorter copies say little: the clock takes as long as some lines, and where no cache is shared the first lines as long as
/// many more.
const TIMED_FROM: usize = 4 << 10;
/// Of so many copies one is timed: of those that are slow more, as hardly any go through the ring then.
const TIMED_EACH: u8 = 16;
const TIMED_EACH_SLOW: u8 = 4;
/// Picoseconds for a byte, in and out, where the kernel keeps its usual pace: copies are quick below the one, and no longer so
/// above the other. A fetch of 16 KiB takes 188 more than a message without a body, one of 8 KiB 287. Seen between AMD's
/// processors: 45 to 140 where a cache is shared, 120 to 500 where none is.
const QUICK: u64 = 190;
const SLOW: u64 = 220;
/// The same borders for what is longer: of several packets the one is read while the next is written. At 110 to 160, reads of 32
/// KiB took 3.7 us, and by the kernel 5.7.
const QUICKER: u64 = 165;
const NO_LONGER_QUICKER: u64 = 185;
/// The same borders for very quick copies. A copy by the kernel of which both sides do their part takes 36, and of the two
/// copies of a stream the one goes on beside the other.
const VERY_QUICK: u64 = 60;
const NO_LONGER_VERY: u64 = 75;
/// The borders of what goes by turns, in hundredths of those of the ring: of several parts the one is read while the next is
/// written, and a single one of 8 KiB saves a call of the kernel. Seen: 60 to 100 ps where a cache is shared, 160 to 240 where none
/// is, where 16 KiB took 3.1 us and a fetch 5.0.
const BY_TURNS: u64 = 130;
/// The same for reads of several parts, which the kernel does without a message about them, too. Seen where a cache is shared: 130 to
/// 160 ps, and 16 KiB took 2.5 us so, by the kernel 3.1, 32 KiB 4.7 and 5.2, and 64 KiB 6.7 and, both sides copying, 5.2; where none
/// is 600 ps.
const READS_BY_TURNS: u64 = 70;
/// The usual pace of a copy by the kernel: nanoseconds for the call, and for each KiB. It has been seen to take half as long
/// again.
const USUAL_CALL: u64 = 1000;
const USUAL_KIB: u64 = 72;
/// Of longer copies the caches say more than the kernel.
const KERNEL_TIMED_TO: usize = 64 << 10;
/// From here on it is slow, in hundredths of the usual pace.
const SLOW_PACE: u64 = 140;
/// What is taken for true of the kernel's pace, in hundredths of the usual one.
const PACES: core::ops::RangeInclusive<u64> = 75..=200;

/// What a sender is told, in a word of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(super) enum Copies {
    /// Too few were timed yet.
    #[default]
    Unknown = 0,
    /// A fetch is quicker than the ring.
    Slow = 1,
    /// A fetch of 16 KiB is slower.
    Quick = 2,
    /// One of 32 KiB is slower, too.
    Quicker = 3,
    /// Even a copy by the kernel of which both sides do their part is slower.
    VeryQuick = 4,
}

impl Copies {
    /// What a peer has written to the word; it may have written anything.
    pub(super) fn of(word: u64) -> Copies {
        match word {
            1 => Copies::Slow,
            2 => Copies::Quick,
            3 => Copies::Quicker,
            4 => Copies::VeryQuick,
            _ => Copies::Unknown,
        }
    }
}

/// Which copies are timed, by who makes them.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    copies: u8,
}

impl Sampler {
    /// Before a copy of so many bytes: the time, if it is to be timed. `known`: what such copies are like.
    #[inline(always)]
    pub(super) fn start(&mut self, len: usize, known: Copies) -> Option<Instant> {
        if len < TIMED_FROM {
            return None;
        }
        self.copies += 1;
        let each = match known {
            Copies::Unknown => 1,
            Copies::Slow => TIMED_EACH_SLOW,
            Copies::Quick | Copies::Quicker | Copies::VeryQuick => TIMED_EACH,
        };
        let is_timed = self.copies >= each;
        is_timed.then(|| {
            self.copies = 0;
            Instant::now()
        })
    }
}

/// What a copy took, in picoseconds for a byte; 0 stands for none.
pub(super) fn per_byte(len: usize, time: Duration) -> u64 {
    u64::try_from(time.as_nanos() * 1000 / len.max(1) as u128).map_or(u64::MAX, |each| each.max(1))
}

/// What the receiver makes of it, for one of the ways that bodies are copied.
#[derive(Debug)]
pub(super) struct CopySpeed {
    sampler: Sampler,
    /// What a byte took last, in and out.
    last: Option<u64>,
    /// The quicker of the last two.
    better: Option<u64>,
    told: Copies,
    /// The borders of this way, in hundredths of those above.
    borders: u64,
}

/// How long the kernel takes to copy from process to process.
#[derive(Debug, Default)]
pub(super) struct KernelPace {
    timer: Sampler,
    /// What the last fetch that was timed took, in hundredths of the usual time.
    last: Option<u64>,
    /// None: it is not known, and taken to be the usual one.
    pace: Option<u64>,
}

impl CopySpeed {
    pub(super) fn of_ring() -> CopySpeed {
        CopySpeed::with_borders(100)
    }

    pub(super) fn of_turns() -> CopySpeed {
        CopySpeed::with_borders(BY_TURNS)
    }

    pub(super) fn of_reads_by_turns() -> CopySpeed {
        CopySpeed::with_borders(READS_BY_TURNS)
    }

    fn with_borders(borders: u64) -> CopySpeed {
        CopySpeed {
            sampler: Sampler::default(),
            last: None,
            better: None,
            told: Copies::Unknown,
            borders,
        }
    }

    /// Before a copy of so many bytes out of the ring: the time, if it is to be timed.
    #[inline(always)]
    pub(super) fn start(&mut self, len: usize) -> Option<Instant> {
        self.sampler.start(len, self.told)
    }

    /// A copy that was to be timed is over, and its sender's last one took so long. Returns what copies are like, if they
    /// were not like that before. The quicker of two counts: one may have been disturbed, or have touched new memory. A
    /// sender whose bodies come in pieces times none, and is taken to be as quick as this side.
    pub(super) fn took(&mut self, len: usize, time: Duration, sender: u64, kernel: &KernelPace) -> Option<Copies> {
        let ours = per_byte(len, time);
        let now = ours.saturating_add(if sender == 0 { ours } else { sender });
        self.better = Some(now.min(self.last.replace(now)?));
        self.judge(kernel)
    }

    /// The same when the kernel's pace has changed.
    pub(super) fn judge(&mut self, kernel: &KernelPace) -> Option<Copies> {
        let better = self.better?;
        let pace = kernel.pace.unwrap_or(100) * self.borders;
        let most = |than: Copies, below, above| {
            let usual = if self.told >= than { above } else { below };
            usual * pace / (100 * 100)
        };
        let copies = if better < most(Copies::VeryQuick, VERY_QUICK, NO_LONGER_VERY) {
            Copies::VeryQuick
        } else if better < most(Copies::Quicker, QUICKER, NO_LONGER_QUICKER) {
            Copies::Quicker
        } else if better < most(Copies::Quick, QUICK, SLOW) {
            Copies::Quick
        } else {
            Copies::Slow
        };
        (core::mem::replace(&mut self.told, copies) != copies).then_some(copies)
    }

    pub(super) fn told(&self) -> Copies {
        self.told
    }
}

impl KernelPace {
    /// Whether it is known to take longer than usual.
    pub(super) fn is_slow(&self) -> bool {
        self.pace.is_some_and(|pace| pace >= SLOW_PACE)
    }

    /// Before a fetch of so many bytes by the kernel: the time, if it is to be timed, as each is until the pace is known, and then
    /// as few as of quick copies.
    pub(super) fn start(&mut self, len: usize) -> Option<Instant> {
        if len > KERNEL_TIMED_TO {
            return None;
        }
        let known = self.pace.map_or(Copies::Unknown, |_| Copies::Quick);
        self.timer.start(len, known)
    }

    /// A fetch that was to be timed is over, and the pace may be another. As above the quicker of two counts.
    pub(super) fn fetched(&mut self, len: usize, time: Duration) {
        let usual = u128::from(USUAL_CALL) + u128::from(USUAL_KIB) * len as u128 / 1024;
        let now = u64::try_from(time.as_nanos() * 100 / usual).unwrap_or(u64::MAX);
        if let Some(before) = self.last.replace(now) {
            self.pace = Some(now.min(before).clamp(*PACES.start(), *PACES.end()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Copies::{Quick, Quicker, Slow, Unknown, VeryQuick};
    use super::*;

    const LEN: usize = 4096;

    /// The verdicts of copies that take so many picoseconds for a byte.
    fn verdicts(speeds: &[u64]) -> Vec<Option<Copies>> {
        let mut speed = CopySpeed::of_ring();
        let time = |each: &u64| Duration::from_nanos(each * LEN as u64 / 1000);
        speeds
            .iter()
            .map(|each| speed.took(LEN, time(each), 1, &KernelPace::default()))
            .collect()
    }

    #[test]
    fn a_sender_reads_what_the_receiver_has_told() {
        for told in [Unknown, Slow, Quick, Quicker, VeryQuick] {
            assert_eq!(Copies::of(told as u64), told);
        }
        assert_eq!([5, u64::MAX].map(Copies::of), [Unknown; 2]);
    }

    #[test]
    fn two_copies_decide_whether_they_are_quick() {
        assert_eq!(verdicts(&[VERY_QUICK / 2; 3]), [None, Some(VeryQuick), None]);
        assert_eq!(verdicts(&[QUICKER / 2; 3]), [None, Some(Quicker), None]);
        let quick = (NO_LONGER_QUICKER + QUICK) / 2;
        assert_eq!(verdicts(&[quick; 3]), [None, Some(Quick), None]);
        assert_eq!(verdicts(&[SLOW * 2; 3]), [None, Some(Slow), None]);
        // One that was disturbed changes nothing.
        assert_eq!(
            verdicts(&[9999, quick, 9999, quick, 9999, 9999]),
            [None, Some(Quick), None, None, None, Some(Slow)]
        );
        let between = (QUICK + SLOW) / 2;
        assert_eq!(
            verdicts(&[between, between, quick, between, between]),
            [None, Some(Slow), Some(Quick), None, None]
        );
        let between = (VERY_QUICK + NO_LONGER_VERY) / 2;
        assert_eq!(
            verdicts(&[between, between, VERY_QUICK / 2, between, between, quick, quick]),
            [None, Some(Quicker), Some(VeryQuick), None, None, None, Some(Quick)]
        );
    }

    #[test]
    fn a_kernel_that_takes_longer_makes_more_copies_quick() {
        let verdict = |paces: &[u64]| {
            let (mut speed, mut kernel) = (CopySpeed::of_ring(), KernelPace::default());
            let usual = |len: u64| USUAL_CALL + USUAL_KIB * len / 1024;
            let fetches = (0..).map(|fetch| 8192 << (fetch % 3)).zip(paces);
            fetches.for_each(|(len, pace)| kernel.fetched(len as usize, Duration::from_nanos(usual(len) * pace / 100)));
            let each = (SLOW + 10) * LEN as u64;
            [0; 2].map(|_| speed.took(LEN, Duration::from_nanos(each / 1000), 1, &kernel))[1]
        };
        for usual in [&[][..], &[150], &[90, 110], &[9999, 100]] {
            assert_eq!(verdict(usual), Some(Slow), "{usual:?}");
        }
        for slow in [&[140, 130][..], &[130, 140], &[100, 130, 130]] {
            assert_eq!(verdict(slow), Some(Quick), "{slow:?}");
        }
        assert_eq!(verdict(&[9999; 2]), Some(Quicker), "there are bounds");
    }

    #[test]
    fn copies_by_the_kernel_are_timed_that_say_something_of_it() {
        let timed = |len| KernelPace::default().start(len).is_some();
        let lens = [TIMED_FROM - 1, TIMED_FROM, KERNEL_TIMED_TO, KERNEL_TIMED_TO + 1];
        assert_eq!(lens.map(timed), [false, true, true, false]);
    }

    /// As soon as the pace is known, though nothing more was copied.
    #[test]
    fn a_verdict_changes_with_the_pace() {
        let (mut speed, mut kernel) = (CopySpeed::of_turns(), KernelPace::default());
        let slow = SLOW * BY_TURNS / 100 + 10;
        for _ in 0..2 {
            speed.took(LEN, Duration::from_nanos(slow * LEN as u64 / 1000), 1, &kernel);
        }
        assert_eq!((speed.told(), speed.judge(&kernel)), (Slow, None));
        let usual = Duration::from_nanos(USUAL_CALL + USUAL_KIB * 8);
        for expected in [None, Some(Quick)] {
            kernel.fetched(8 << 10, usual * 13 / 10);
            assert_eq!(speed.judge(&kernel), expected);
        }
    }

    #[test]
    fn both_copies_count() {
        let mut speed = CopySpeed::of_ring();
        let time = Duration::from_nanos(QUICK * 2 / 3 * LEN as u64 / 1000);
        let mut verdicts = |sender| [0; 2].map(|_| speed.took(LEN, time, sender, &KernelPace::default()));
        assert_eq!(verdicts(QUICK / 4), [None, Some(Quick)]);
        assert_eq!(verdicts(SLOW), [None, Some(Slow)]);
        assert_eq!(verdicts(QUICK / 4), [Some(Quick), None]);
        assert_eq!(verdicts(0), [None, Some(Slow)], "a sender that times nothing");
    }

    #[test]
    fn a_copy_may_take_no_time_or_for_ever_and_be_of_nothing() {
        let (mut speed, mut kernel) = (CopySpeed::of_ring(), KernelPace::default());
        for (len, time) in [(0, Duration::ZERO), (0, Duration::MAX), (usize::MAX, Duration::MAX)] {
            for sender in [0, 1, u64::MAX] {
                speed.took(len, time, sender, &kernel);
            }
            kernel.fetched(len, time);
        }
    }

    #[test]
    fn short_copies_are_not_timed_and_of_the_others_a_part() {
        let mut speed = CopySpeed::of_ring();
        assert!((0..100).all(|_| speed.start(TIMED_FROM - 1).is_none()));
        for (took, each) in [(SLOW, TIMED_EACH_SLOW), (QUICK / 2, TIMED_EACH)] {
            assert!(
                speed.told() != Unknown || speed.start(TIMED_FROM).is_some(),
                "each, until it is known"
            );
            for _ in 0..2 {
                speed.took(1000, Duration::from_nanos(took), 1, &KernelPace::default());
            }
            let timed = (0..10 * each).filter(|_| speed.start(TIMED_FROM).is_some());
            assert_eq!(timed.count(), 10);
        }
    }
}
