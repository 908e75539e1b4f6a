//! How quickly the bodies of one sender come, through its ring, by turns and by the kernel, and what the sender is told
//! of it.
//!
//! Called by whoever copies: `inbound` and `dialogue` copy what has come, `ring_or_kernel` has the kernel copy. Knows
//! nothing of messages; `copy_speed` says what a time means.

use super::super::copy_speed::{CopySpeed, KernelPace, SpeedClass};
use super::super::lane::Lane;
use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Reads have one class, whether their bodies come through the ring or by turns. A read of one turn is not copied out
/// while it is copied in, so what its copies take counts as this percentage. Where no cache is shared, 8 KiB take 2.2
/// to 3.0 us by turns, by the kernel 2.1.
const READ_OF_ONE_TURN: u64 = 140;

#[derive(Debug)]
pub(in super::super) struct Speeds {
    ring: CopySpeed,
    turns: CopySpeed,
    /// What the kernel takes to fetch the sender's messages.
    fetches: KernelPace,
    /// The same copies, held against what the kernel takes for our reads of the sender's memory: no message offers a
    /// read, and none says that it is done, so the kernel's pace is another one there.
    reads: CopySpeed,
    kernel_reads: KernelPace,
    /// The parts of long reads by turns, which take longer than those of messages: their lines come back to the sender
    /// only when it writes there again.
    long_reads: CopySpeed,
}

impl Default for Speeds {
    fn default() -> Speeds {
        Speeds {
            ring: CopySpeed::of_ring(),
            turns: CopySpeed::of_turns(),
            fetches: KernelPace::default(),
            reads: CopySpeed::of_ring(),
            kernel_reads: KernelPace::default(),
            long_reads: CopySpeed::of_reads_by_turns(),
        }
    }
}

impl Speeds {
    /// As `Sampler::start`, before a body is copied out of the ring.
    #[inline(always)]
    pub(in super::super) fn start(&mut self, len: usize) -> Option<Instant> {
        self.ring.start(len)
    }

    /// A body was copied out of the ring in this time, which may change what the sender is told.
    #[cold]
    pub(in super::super) fn copied(&mut self, lane: &Lane, len: usize, time: Duration) {
        let sender = lane.filling().load(Ordering::Relaxed);
        if let Some(class) = self.ring.took(len, time, sender, &self.fetches) {
            lane.ring_speed().store(class as u64, Ordering::Relaxed);
        }
        self.reads.took(len, time, sender, &self.kernel_reads);
    }

    /// The same for a body that comes by turns.
    #[inline(always)]
    pub(in super::super) fn start_turn(&mut self, len: usize) -> Option<Instant> {
        self.turns.start(len)
    }

    /// `of_long_read`: it is a part of the answer to a read of ours.
    #[cold]
    pub(in super::super) fn copied_of_turn(&mut self, lane: &Lane, len: usize, time: Duration, of_long_read: bool) {
        let sender = lane.saying().load(Ordering::Relaxed);
        if let Some(class) = self.turns.took(len, time, sender, &self.fetches) {
            lane.dialogue_speed().store(class as u64, Ordering::Relaxed);
        }
        if of_long_read {
            self.long_reads.took(len, time, sender, &self.kernel_reads);
            return;
        }
        let as_in_ring = |copy: u64| copy.saturating_mul(READ_OF_ONE_TURN) / 100;
        let time = Duration::from_nanos(as_in_ring(time.as_nanos() as u64));
        self.reads.took(len, time, as_in_ring(sender), &self.kernel_reads);
    }

    /// The same for bytes of a message that the kernel fetches.
    pub(in super::super) fn start_fetch(&mut self, len: usize) -> Option<Instant> {
        self.fetches.start(len)
    }

    pub(in super::super) fn fetched(&mut self, lane: &Lane, len: usize, time: Duration) {
        self.fetches.took(len, time);
        // Hardly any turns are taken once they were found slow, so their samples alone would not change that.
        if let Some(class) = self.turns.judge(&self.fetches) {
            lane.dialogue_speed().store(class as u64, Ordering::Relaxed);
        }
    }

    /// The same for a read of the sender's memory by the kernel.
    pub(in super::super) fn start_read(&mut self, len: usize) -> Option<Instant> {
        self.kernel_reads.start(len)
    }

    pub(in super::super) fn read_by_kernel(&mut self, len: usize, time: Duration) {
        self.kernel_reads.took(len, time);
        self.reads.judge(&self.kernel_reads);
        self.long_reads.judge(&self.kernel_reads);
    }

    /// How quickly bodies come through the ring.
    pub(super) fn of_ring(&self) -> SpeedClass {
        self.ring.class()
    }

    /// How quickly short reads of the sender's memory come.
    pub(in super::super) fn of_reads(&self) -> SpeedClass {
        self.reads.class()
    }

    /// The same for reads that are answered by turns of several parts.
    pub(in super::super) fn of_long_reads(&self) -> SpeedClass {
        self.long_reads.class()
    }
}
