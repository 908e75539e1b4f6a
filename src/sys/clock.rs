//! The clocks. Knows nothing of who asks.

/// CLOCK_MONOTONIC, in milliseconds.
pub fn monotonic_ms() -> u64 {
    milliseconds(libc::CLOCK_MONOTONIC)
}

/// The same as of the kernel's last tick, some milliseconds late, for a fifth of the time.
pub fn coarse_ms() -> u64 {
    milliseconds(libc::CLOCK_MONOTONIC_COARSE)
}

/// CLOCK_MONOTONIC, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_in(libc::CLOCK_MONOTONIC, 1_000_000_000)
}

fn milliseconds(clock: libc::clockid_t) -> u64 {
    clock_in(clock, 1000)
}

/// In parts of a second, of which it has so many.
fn clock_in(clock: libc::clockid_t, per_second: u64) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec of ours that the call fills; all of these clocks exist on Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64)
        .saturating_mul(per_second)
        .saturating_add(now.tv_nsec as u64 / (1_000_000_000 / per_second))
}

/// A counter of the processor's that is read within some 10 ns, and goes up 2 to 4 times in a nanosecond. Those of two
/// processors may differ. None where there is no such counter.
#[inline(always)]
pub fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this kind have the instruction.
    return Some(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Seconds since 1970, by the clock of time(2), which runs some milliseconds behind CLOCK_REALTIME: a program that
/// compares a log line with its own time() must not find it in the future.
pub fn wall_seconds() -> u64 {
    // SAFETY: with a null pointer the call only returns the time.
    let now = unsafe { libc::time(std::ptr::null_mut()) };
    u64::try_from(now).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two clocks differ only for a few milliseconds of each second, so a whole second is watched.
    #[test]
    fn a_second_never_begins_before_time_says_so() {
        let start = wall_seconds();
        let mut seen = start;
        while seen < start + 2 {
            seen = wall_seconds();
            // SAFETY: as above.
            let told = unsafe { libc::time(std::ptr::null_mut()) };
            assert!(seen <= told as u64, "{seen} is later than {told}");
        }
    }
}
