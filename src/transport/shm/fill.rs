//! Copies the bodies of records into a ring, whose lines the receiver's processor has read last.
//!
//! On AMD's processors from Zen 3 on, glibc before 2.39 copies more than 2 KiB by `rep movsb`, which takes such lines slowly
//! where both processors share a cache: 4 KiB one way take 340 ns, and 240 by a loop that asks for lines ahead. Where none is
//! shared, it asks for more lines at a time than a loop does: 8 KiB take 1260 and 1570 ns. (Out of the ring it is as quick
//! as any loop.) Called by `outbound` for bodies, and by `lane` to ask for lines.

use super::ring::LINE;
use crate::engine::port::Body;
use core::ptr::copy_nonoverlapping;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Shorter bodies glibc copies with a loop of its own.
const LONG: usize = 2112;
/// So many bytes ahead lines are asked for. Never behind the body: the receiver may be reading there.
const AHEAD: usize = 64 * LINE;

#[cfg(target_arch = "x86_64")]
static IS_AMD_WITH_AVX: LazyLock<bool> = LazyLock::new(is_amd_with_avx);

/// Copies a body into its room in the ring, which is as long.
#[inline(always)]
pub(super) fn fill(room: &mut [u8], body: Body<'_>, is_cache_shared: impl FnOnce() -> bool) {
    if room.len() > LONG && is_cache_shared() {
        if let Some(from) = in_one_piece(&body, room.len()) {
            // SAFETY: the body is as long as the room, and no memory that may be sent is the ring's.
            return unsafe { fill_near(room, from) };
        }
    }
    match body {
        Body::Empty => {}
        Body::Bytes(bytes) => room.copy_from_slice(bytes),
        Body::User { iov, at, .. } => {
            iov.read(at, room);
        }
    }
}

/// Takes an address, so that on the way of short bodies their memory need not be described in memory.
///
/// # Safety
/// As many bytes as `room` has are readable at `from`, and are not `room`'s.
#[inline(never)]
unsafe fn fill_near(room: &mut [u8], from: *const u8) {
    // SAFETY: as the caller promised.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if *IS_AMD_WITH_AVX {
            return copy_ahead(from, room);
        }
        copy_nonoverlapping(from, room.as_mut_ptr(), room.len());
    }
}

/// Where a body of so many bytes lies, if that is one place.
#[inline(always)]
fn in_one_piece(body: &Body<'_>, len: usize) -> Option<*const u8> {
    match *body {
        Body::Bytes(bytes) => (bytes.len() == len).then_some(bytes.as_ptr()),
        Body::User { iov, at, .. } => {
            let piece = iov.only()?.part(at, len);
            (piece.len() == len).then_some(piece.addr() as *const u8)
        }
        Body::Empty => None,
    }
}

/// # Safety
/// As for `fill_near`, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_ahead(from: *const u8, room: &mut [u8]) {
    let (to, len) = (room.as_mut_ptr(), room.len());
    let whole = len - len % LINE;
    for line in (0..AHEAD.min(len)).step_by(LINE) {
        ask_for_line(to.wrapping_add(line));
    }
    // SAFETY: all offsets are below `len`, those of lines by a line.
    unsafe {
        for line in (0..whole).step_by(LINE) {
            if line + AHEAD < len {
                ask_for_line(to.add(line + AHEAD));
            }
            let words = from.add(line).cast::<[u64; LINE / 8]>().read_unaligned();
            to.add(line).cast::<[u64; LINE / 8]>().write_unaligned(words);
        }
        copy_nonoverlapping(from.add(whole), to.add(whole), len - whole);
    }
}

/// Asks for a line that will soon be written.
#[inline(always)]
pub(super) fn ask_for_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that touches no memory. It is assembly because the intrinsic prefetches for reading only.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(target_arch = "x86_64")]
fn is_amd_with_avx() -> bool {
    let maker = core::arch::x86_64::__cpuid(0);
    let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
    maker.as_flattened() == b"AuthenticAMD" && is_x86_feature_detected!("avx")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::user::Lent;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn a_body_is_what_was_given() {
        for len in [
            0,
            1,
            LONG,
            LONG + 1,
            AHEAD - 1,
            AHEAD,
            AHEAD + 1,
            3 * AHEAD + 5 * LINE + 9,
        ] {
            let bytes = bytes(len + 3);
            for cuts in [&[len + 3][..], &[5, len / 2 + 1, len + 3]] {
                let memory = Lent::new(cuts, 0);
                memory.iov().write(0, &bytes);
                let (iov, at) = (&memory.iov(), 3);
                for (body, is_shared) in [
                    (Body::User { iov, at, len }, true),
                    (Body::User { iov, at, len }, false),
                    (Body::Bytes(&bytes[3..]), true),
                ] {
                    let mut room = vec![0xee; len + 1];
                    fill(&mut room[..len], body, || is_shared);
                    assert_eq!(room[..len], bytes[3..], "{len} of {cuts:?}");
                    assert_eq!(room[len], 0xee, "{len} of {cuts:?}");
                }
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_loop_copies_any_length_from_anywhere() {
        if !is_x86_feature_detected!("avx") {
            return;
        }
        let bytes = bytes(AHEAD + 8 * LINE);
        for at in [0, 1, 8, 63] {
            for len in [
                0,
                1,
                LINE - 1,
                LINE,
                LINE + 1,
                AHEAD,
                AHEAD + 3 * LINE,
                AHEAD + 3 * LINE + 17,
            ] {
                let mut room = vec![0xee; len + 2];
                // SAFETY: the bytes are there, the room is another vector's, and AVX was asked for.
                unsafe { copy_ahead(bytes[at..at + len].as_ptr(), &mut room[1..=len]) };
                assert_eq!(room[1..=len], bytes[at..at + len], "{len} from {at}");
                assert_eq!((room[0], room[len + 1]), (0xee, 0xee), "{len} from {at}");
            }
        }
    }
}
