//! How quickly bodies are copied into a ring and out of it, in classes that say what kind of copy by the kernel that
//! beats. By its class a sender decides whether a message that could be fetched is better sent through the ring, and a
//! receiver whether long ones are streamed (`streaming`).
//!
//! Each line of a ring goes from the sender's cache to the receiver's and, when the sender writes it again, back. Where
//! both share a cache, a ring is mostly twice as quick as a fetch by the kernel; where they do not, a fetch may be
//! quicker. Which of the two copies takes longer differs from machine to machine, and a hypervisor or the scheduler may
//! move a process at any time. So copies are sampled all the time: the sender times its own and writes what a byte took
//! into a word of the lane, the receiver adds what its own took, and times fetches by the kernel too. Called by
//! `outbound`, `inbound` and `ring_or_kernel`. Knows nothing of rings and records.

use std::time::{Duration, Instant};

/// Shorter copies say little: the clock takes as long as some lines, and where no cache is shared the first lines as
/// long as many more.
const TIMED_FROM: usize = 4 << 10;
/// One copy in so many is timed; of slow ones more, as hardly any go through the ring then. Both are prime, as
/// otherwise it would always be the same part of a message of two, three or four parts, which do not take the same time.
const TIMED_EACH: u8 = 17;
const TIMED_EACH_SLOW: u8 = 5;

/// The border of a speed class, in picoseconds for a byte, in and out, where the kernel keeps its usual pace. A class
/// is entered below `enter` and left only above `leave`, so that noise does not make it change to and fro.
struct Border {
    enter: u64,
    leave: u64,
}

/// A fetch of 16 KiB takes 188 ps for a byte more than a message without a body, one of 8 KiB 287. Seen in rings
/// between AMD's processors: 45 to 140 where a cache is shared, 120 to 500 where none is.
const FETCH_OF_16K: Border = Border { enter: 190, leave: 220 };
/// A longer fetch takes less for a byte, but of several packets one is read while the next is written: at 110 to 160 ps
/// reads of 32 KiB took 3.7 us, and by the kernel 5.7.
const FETCH_OF_32K: Border = Border { enter: 165, leave: 185 };
/// Where both send at the same time, each copies what it says and what it hears, or has the kernel copy once. Seen: 50 to
/// 77 ps where a cache is shared; where none is, 64 KiB took 11 us by turns and 8 by the kernel, if the senders had not
/// written them anew. If they had, the kernel took 28 us, which its pace shows, and turns 13.
const FETCH_OF_64K: Border = Border { enter: 75, leave: 86 };
/// A dual copy takes 36 ps for a byte; of the two copies of a stream, one goes on beside the other.
const DUAL_COPY: Border = Border { enter: 60, leave: 75 };

/// Borders for turns of a dialogue, in percent of those of the ring. They are wider, as a turn of 8 KiB saves a call of
/// the kernel. Seen: 60 to 100 ps where a cache is shared, 160 to 240 where none is, where 16 KiB took 3.1 us and a
/// fetch 5.0.
const PERCENT_OF_TURNS: u64 = 130;
/// Borders for reads of several parts. They are narrower, as the kernel reads without a message about it. Seen: 130 to
/// 160 ps where a cache is shared, where 16 KiB took 2.5 us (by the kernel 3.1) and 64 KiB 6.7 (by a dual copy 5.2);
/// 600 where none is.
const PERCENT_OF_READS_BY_TURNS: u64 = 70;

/// The usual pace of a copy by the kernel: nanoseconds for the call, and for each KiB. It has been seen to take half as
/// long again.
const USUAL_CALL: u64 = 1000;
const USUAL_KIB: u64 = 72;
/// What longer copies take says more of the caches than of the kernel.
const KERNEL_TIMED_TO: usize = 64 << 10;
/// The kernel is slow from this percentage of its usual time on.
const SLOW_PACE: u64 = 140;
/// A pace outside of this range, in percent of the usual time, is not believed.
const PACES: core::ops::RangeInclusive<u64> = 75..=200;

/// How quick copies are, as the receiver tells the sender in a word of the lane. A class beats all that those below it
/// do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(super) enum SpeedClass {
    /// Too few were timed yet.
    #[default]
    Unknown = 0,
    /// A fetch by the kernel is quicker.
    Slow = 1,
    BeatsFetchOf16K = 2,
    BeatsFetchOf32K = 3,
    BeatsFetchOf64K = 4,
    BeatsDualCopy = 5,
}

impl SpeedClass {
    /// What a peer has written to the word; it may have written anything.
    pub(super) fn of(word: u64) -> SpeedClass {
        match word {
            1 => SpeedClass::Slow,
            2 => SpeedClass::BeatsFetchOf16K,
            3 => SpeedClass::BeatsFetchOf32K,
            4 => SpeedClass::BeatsFetchOf64K,
            5 => SpeedClass::BeatsDualCopy,
            _ => SpeedClass::Unknown,
        }
    }
}

/// Chooses which copies of one side are timed.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// Copies since the last one that was timed.
    untimed: u8,
}

impl Sampler {
    /// Called before a copy of this length, of a kind whose class is `known`. Some: it is to be timed, and starts now.
    #[inline(always)]
    pub(super) fn start(&mut self, len: usize, known: SpeedClass) -> Option<Instant> {
        if len < TIMED_FROM {
            return None;
        }
        self.untimed += 1;
        let each = match known {
            SpeedClass::Unknown => 1,
            SpeedClass::Slow => TIMED_EACH_SLOW,
            _ => TIMED_EACH,
        };
        let is_timed = self.untimed >= each;
        is_timed.then(|| {
            self.untimed = 0;
            Instant::now()
        })
    }
}

/// Picoseconds for a byte of a copy; 0 stands for a copy that was never timed.
pub(super) fn per_byte(len: usize, time: Duration) -> u64 {
    u64::try_from(time.as_nanos() * 1000 / len.max(1) as u128).map_or(u64::MAX, |each| each.max(1))
}

/// The class of one of the ways by which bodies come to a receiver, and the samples that it follows from.
#[derive(Debug)]
pub(super) struct CopySpeed {
    sampler: Sampler,
    /// What a byte took last, in and out.
    last: Option<u64>,
    /// The quicker of the last two.
    better: Option<u64>,
    class: SpeedClass,
    /// The borders of this way, in percent of those above.
    percent: u64,
}

/// How long the kernel takes to copy from process to process.
#[derive(Debug, Default)]
pub(super) struct KernelPace {
    sampler: Sampler,
    /// What the last copy that was timed took, in percent of the usual time.
    last: Option<u64>,
    /// None: it is not known, and taken to be the usual one.
    pace: Option<u64>,
}

impl CopySpeed {
    pub(super) fn of_ring() -> CopySpeed {
        CopySpeed::with_borders(100)
    }

    pub(super) fn of_turns() -> CopySpeed {
        CopySpeed::with_borders(PERCENT_OF_TURNS)
    }

    pub(super) fn of_reads_by_turns() -> CopySpeed {
        CopySpeed::with_borders(PERCENT_OF_READS_BY_TURNS)
    }

    fn with_borders(percent: u64) -> CopySpeed {
        CopySpeed {
            sampler: Sampler::default(),
            last: None,
            better: None,
            class: SpeedClass::Unknown,
            percent,
        }
    }

    /// As `Sampler::start`, before this side copies a body out.
    #[inline(always)]
    pub(super) fn start(&mut self, len: usize) -> Option<Instant> {
        self.sampler.start(len, self.class)
    }

    /// Takes a sample: how long this side's copy took, and what a byte of its sender's last one did. Returns the class
    /// if it has changed. The quicker of two samples counts: one may have been disturbed, or have touched new memory. A
    /// sender whose bodies come in pieces times none (0), and is taken to be as quick as this side.
    pub(super) fn took(&mut self, len: usize, time: Duration, sender: u64, kernel: &KernelPace) -> Option<SpeedClass> {
        let ours = per_byte(len, time);
        let now = ours.saturating_add(if sender == 0 { ours } else { sender });
        self.better = Some(now.min(self.last.replace(now)?));
        self.judge(kernel)
    }

    /// Finds the class anew, as the samples or the kernel's pace have changed. Returns it if it has changed.
    pub(super) fn judge(&mut self, kernel: &KernelPace) -> Option<SpeedClass> {
        let better = self.better?;
        let percent = kernel.pace.unwrap_or(100) * self.percent;
        let beats = |class: SpeedClass, border: Border| {
            let usual = if self.class >= class {
                border.leave
            } else {
                border.enter
            };
            better < usual * percent / (100 * 100)
        };
        let class = if beats(SpeedClass::BeatsDualCopy, DUAL_COPY) {
            SpeedClass::BeatsDualCopy
        } else if beats(SpeedClass::BeatsFetchOf64K, FETCH_OF_64K) {
            SpeedClass::BeatsFetchOf64K
        } else if beats(SpeedClass::BeatsFetchOf32K, FETCH_OF_32K) {
            SpeedClass::BeatsFetchOf32K
        } else if beats(SpeedClass::BeatsFetchOf16K, FETCH_OF_16K) {
            SpeedClass::BeatsFetchOf16K
        } else {
            SpeedClass::Slow
        };
        (core::mem::replace(&mut self.class, class) != class).then_some(class)
    }

    pub(super) fn class(&self) -> SpeedClass {
        self.class
    }
}

impl KernelPace {
    /// Whether it is known to take longer than usual.
    pub(super) fn is_slow(&self) -> bool {
        self.pace.is_some_and(|pace| pace >= SLOW_PACE)
    }

    /// As `Sampler::start`, before the kernel copies: each copy is timed until the pace is known, then as few as of
    /// quick copies.
    pub(super) fn start(&mut self, len: usize) -> Option<Instant> {
        if len > KERNEL_TIMED_TO {
            return None;
        }
        let known = self.pace.map_or(SpeedClass::Unknown, |_| SpeedClass::BeatsFetchOf16K);
        self.sampler.start(len, known)
    }

    /// Takes a sample of a copy by the kernel. The quicker of two counts, as in `CopySpeed`.
    pub(super) fn took(&mut self, len: usize, time: Duration) {
        let usual = u128::from(USUAL_CALL) + u128::from(USUAL_KIB) * len as u128 / 1024;
        let now = u64::try_from(time.as_nanos() * 100 / usual).unwrap_or(u64::MAX);
        if let Some(before) = self.last.replace(now) {
            self.pace = Some(now.min(before).clamp(*PACES.start(), *PACES.end()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SpeedClass::{BeatsDualCopy, BeatsFetchOf16K, BeatsFetchOf32K, BeatsFetchOf64K, Slow, Unknown};
    use super::*;

    const LEN: usize = 4096;

    /// The verdicts of copies that take so many picoseconds for a byte.
    fn verdicts(speeds: &[u64]) -> Vec<Option<SpeedClass>> {
        let mut speed = CopySpeed::of_ring();
        let time = |each: &u64| Duration::from_nanos(each * LEN as u64 / 1000);
        speeds
            .iter()
            .map(|each| speed.took(LEN, time(each), 1, &KernelPace::default()))
            .collect()
    }

    #[test]
    fn a_sender_reads_what_the_receiver_has_told() {
        for told in [
            Unknown,
            Slow,
            BeatsFetchOf16K,
            BeatsFetchOf32K,
            BeatsFetchOf64K,
            BeatsDualCopy,
        ] {
            assert_eq!(SpeedClass::of(told as u64), told);
        }
        assert_eq!([6, u64::MAX].map(SpeedClass::of), [Unknown; 2]);
    }

    #[test]
    fn two_copies_decide_whether_they_are_quick() {
        assert_eq!(verdicts(&[DUAL_COPY.enter / 2; 3]), [None, Some(BeatsDualCopy), None]);
        let between = (DUAL_COPY.enter + FETCH_OF_64K.enter) / 2;
        assert_eq!(verdicts(&[between; 3]), [None, Some(BeatsFetchOf64K), None]);
        let between = (FETCH_OF_64K.leave + FETCH_OF_32K.enter) / 2;
        assert_eq!(verdicts(&[between; 3]), [None, Some(BeatsFetchOf32K), None]);
        let quick = (FETCH_OF_32K.leave + FETCH_OF_16K.enter) / 2;
        assert_eq!(verdicts(&[quick; 3]), [None, Some(BeatsFetchOf16K), None]);
        assert_eq!(verdicts(&[FETCH_OF_16K.leave * 2; 3]), [None, Some(Slow), None]);
        // One that was disturbed changes nothing.
        assert_eq!(
            verdicts(&[9999, quick, 9999, quick, 9999, 9999]),
            [None, Some(BeatsFetchOf16K), None, None, None, Some(Slow)]
        );
        let between = (FETCH_OF_16K.enter + FETCH_OF_16K.leave) / 2;
        assert_eq!(
            verdicts(&[between, between, quick, between, between]),
            [None, Some(Slow), Some(BeatsFetchOf16K), None, None]
        );
        let between = (DUAL_COPY.enter + DUAL_COPY.leave) / 2;
        assert_eq!(
            verdicts(&[between, between, DUAL_COPY.enter / 2, between, between, quick, quick]),
            [
                None,
                Some(BeatsFetchOf64K),
                Some(BeatsDualCopy),
                None,
                None,
                None,
                Some(BeatsFetchOf16K)
            ]
        );
    }

    #[test]
    fn a_kernel_that_takes_longer_makes_more_copies_quick() {
        let verdict = |paces: &[u64]| {
            let (mut speed, mut kernel) = (CopySpeed::of_ring(), KernelPace::default());
            let usual = |len: u64| USUAL_CALL + USUAL_KIB * len / 1024;
            let fetches = (0..).map(|fetch| 8192 << (fetch % 3)).zip(paces);
            fetches.for_each(|(len, pace)| kernel.took(len as usize, Duration::from_nanos(usual(len) * pace / 100)));
            let each = (FETCH_OF_16K.leave + 10) * LEN as u64;
            [0; 2].map(|_| speed.took(LEN, Duration::from_nanos(each / 1000), 1, &kernel))[1]
        };
        for usual in [&[][..], &[150], &[90, 110], &[9999, 100]] {
            assert_eq!(verdict(usual), Some(Slow), "{usual:?}");
        }
        for slow in [&[140, 130][..], &[130, 140], &[100, 130, 130]] {
            assert_eq!(verdict(slow), Some(BeatsFetchOf16K), "{slow:?}");
        }
        assert_eq!(verdict(&[9999; 2]), Some(BeatsFetchOf32K), "there are bounds");
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
        let slow = FETCH_OF_16K.leave * PERCENT_OF_TURNS / 100 + 10;
        for _ in 0..2 {
            speed.took(LEN, Duration::from_nanos(slow * LEN as u64 / 1000), 1, &kernel);
        }
        assert_eq!((speed.class(), speed.judge(&kernel)), (Slow, None));
        let usual = Duration::from_nanos(USUAL_CALL + USUAL_KIB * 8);
        for expected in [None, Some(BeatsFetchOf16K)] {
            kernel.took(8 << 10, usual * 13 / 10);
            assert_eq!(speed.judge(&kernel), expected);
        }
    }

    #[test]
    fn both_copies_count() {
        let mut speed = CopySpeed::of_ring();
        let time = Duration::from_nanos(FETCH_OF_16K.enter * 2 / 3 * LEN as u64 / 1000);
        let mut verdicts = |sender| [0; 2].map(|_| speed.took(LEN, time, sender, &KernelPace::default()));
        assert_eq!(verdicts(FETCH_OF_16K.enter / 4), [None, Some(BeatsFetchOf16K)]);
        assert_eq!(verdicts(FETCH_OF_16K.leave), [None, Some(Slow)]);
        assert_eq!(verdicts(FETCH_OF_16K.enter / 4), [Some(BeatsFetchOf16K), None]);
        assert_eq!(verdicts(0), [None, Some(Slow)], "a sender that times nothing");
    }

    #[test]
    fn a_copy_may_take_no_time_or_for_ever_and_be_of_nothing() {
        let (mut speed, mut kernel) = (CopySpeed::of_ring(), KernelPace::default());
        for (len, time) in [(0, Duration::ZERO), (0, Duration::MAX), (usize::MAX, Duration::MAX)] {
            for sender in [0, 1, u64::MAX] {
                speed.took(len, time, sender, &kernel);
            }
            kernel.took(len, time);
        }
    }

    #[test]
    fn short_copies_are_not_timed_and_of_the_others_a_part() {
        let mut speed = CopySpeed::of_ring();
        assert!((0..100).all(|_| speed.start(TIMED_FROM - 1).is_none()));
        for (took, each) in [
            (FETCH_OF_16K.leave, TIMED_EACH_SLOW),
            (FETCH_OF_16K.enter / 2, TIMED_EACH),
        ] {
            assert!(
                speed.class() != Unknown || speed.start(TIMED_FROM).is_some(),
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
