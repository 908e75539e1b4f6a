//! How quickly the bodies of one sender come, through its ring, by turns and by the kernel, and what the sender is told of it.
//!
//! Called by who copies: `inbound` and `dialogue` what has come, `ring_or_kernel` what the kernel copies. Knows nothing of
//! messages; what a time means says `copy_speed`.

use super::super::copy_speed::{Copies, CopySpeed, KernelPace};
use super::super::lane::Lane;
use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Reads are judged by how quickly bodies come, through the ring or by turns. By turns a read is one packet, which is not copied out
/// while it is copied in, so what turns take counts so many hundredths. Where no cache is shared, 8 KiB take 2.2
/// to 3.0 us by turns, by the kernel 2.1.
const READ_BY_TURNS: u64 = 140;

#[derive(Debug)]
pub(in super::super) struct Speeds {
    ring: CopySpeed,
    turns: CopySpeed,
    /// What the kernel takes to fetch the sender's messages.
    fetches: KernelPace,
    /// The same copies beside what the kernel takes for our reads of the sender's memory. Of a read there is no message that
    /// offers it, and none that says that it is done, so the two paces are not one.
    reads: CopySpeed,
    kernel_reads: KernelPace,
    /// The parts of long reads by turns, which take longer than those of messages: their lines come back to the sender only when it
    /// writes there again.
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
    /// Before a body of this length is copied out of the ring: the time, if that is to be timed.
    #[inline(always)]
    pub(in super::super) fn start(&mut self, len: usize) -> Option<Instant> {
        self.ring.start(len)
    }

    /// It took this time, which may change what the sender is told.
    #[cold]
    pub(in super::super) fn copied(&mut self, lane: &Lane, len: usize, time: Duration) {
        let sender = lane.filling().load(Ordering::Relaxed);
        if let Some(copies) = self.ring.took(len, time, sender, &self.fetches) {
            lane.copies().store(copies as u64, Ordering::Relaxed);
        }
        self.reads.took(len, time, sender, &self.kernel_reads);
    }

    /// The same for a body that comes by turns. `of_long_read`: it is a part of what was read.
    #[inline(always)]
    pub(in super::super) fn start_turn(&mut self, len: usize) -> Option<Instant> {
        self.turns.start(len)
    }

    #[cold]
    pub(in super::super) fn copied_of_turn(&mut self, lane: &Lane, len: usize, time: Duration, of_long_read: bool) {
        let sender = lane.saying().load(Ordering::Relaxed);
        if let Some(copies) = self.turns.took(len, time, sender, &self.fetches) {
            lane.copies_by_turns().store(copies as u64, Ordering::Relaxed);
        }
        if of_long_read {
            self.long_reads.took(len, time, sender, &self.kernel_reads);
            return;
        }
        let as_in_ring = |copy: u64| copy.saturating_mul(READ_BY_TURNS) / 100;
        let time = Duration::from_nanos(as_in_ring(time.as_nanos() as u64));
        self.reads.took(len, time, as_in_ring(sender), &self.kernel_reads);
    }

    /// The same for bytes of a message that the kernel fetches.
    pub(in super::super) fn start_fetch(&mut self, len: usize) -> Option<Instant> {
        self.fetches.start(len)
    }

    pub(in super::super) fn fetched(&mut self, lane: &Lane, len: usize, time: Duration) {
        self.fetches.fetched(len, time);
        // Turns that were found slow before the pace was known would hardly be taken again to change that.
        if let Some(copies) = self.turns.judge(&self.fetches) {
            lane.copies_by_turns().store(copies as u64, Ordering::Relaxed);
        }
    }

    /// The same for a read of the sender's memory by the kernel.
    pub(in super::super) fn start_read(&mut self, len: usize) -> Option<Instant> {
        self.kernel_reads.start(len)
    }

    pub(in super::super) fn read_by_kernel(&mut self, len: usize, time: Duration) {
        self.kernel_reads.fetched(len, time);
        self.reads.judge(&self.kernel_reads);
        self.long_reads.judge(&self.kernel_reads);
    }

    /// How quickly bodies come through the ring.
    pub(super) fn of_ring(&self) -> Copies {
        self.ring.told()
    }

    /// How quickly what is read of the sender's memory comes through it.
    pub(in super::super) fn of_reads(&self) -> Copies {
        self.reads.told()
    }

    /// The same for reads that are answered by turns of several parts.
    pub(in super::super) fn of_long_reads(&self) -> Copies {
        self.long_reads.told()
    }
}
