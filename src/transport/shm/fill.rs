//! Copies the bodies of records into a ring, whose lines the receiver's processor has read last.
//!
//! AMD's processors copy long bodies quicker by `rep movsb`, which takes lines without their contents, but only if they
//! were not asked for before: 4 KiB one way take 820 ns in place of 1090 where the two processors share no cache.
//! Called by `outbound` and `dialogue`.

use super::ahead;
use super::ring::LINE;
use crate::engine::port::Body;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Shorter bodies are copied by a loop. Longer ones glibc copies by `rep movsb`, too, but not from the beginning of a
/// line on: 4 KiB take 885 ns so.
pub(super) const LONG: usize = 2112;

#[cfg(target_arch = "x86_64")]
static IS_AMD: LazyLock<bool> = LazyLock::new(is_amd);

/// Whether bodies of this length are copied by `rep movsb`.
#[inline(always)]
pub(super) fn is_by_string(len: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    return len >= LONG && *IS_AMD;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Copies a body into its room in the ring, which is as long.
#[inline(always)]
pub(super) fn fill(room: &mut [u8], body: Body<'_>) {
    match body {
        Body::Empty => {}
        Body::Bytes(bytes) => room.copy_from_slice(bytes),
        Body::User { iov, at, .. } => {
            iov.read(at, room);
        }
    }
}

/// The same for a body of at least `LONG` bytes that lies in one place. Takes an address, so that on the way of short
/// bodies their memory need not be described in memory.
///
/// # Safety
/// As many bytes as `room` has are readable at `from`, and are not `room`'s.
pub(super) unsafe fn copy_long(from: *const u8, room: &mut [u8]) {
    // SAFETY: as the caller promised.
    unsafe {
        match is_by_string(room.len()) {
            true => copy_by_string(from, room),
            false => core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len()),
        }
    }
}

/// So many bytes are copied while the lines of as many behind them are asked for.
const CHUNK: usize = 1024;

/// Copies a long body into lines of which the other processor has all, and takes them while it goes on reading.
/// Measured where a cache is shared, of bodies of 8 KiB in a row: 16 KiB take 1.9 us so, by the loop or by `rep movsb`
/// 2.6, and 32 KiB 4.2 and 5.3.
///
/// # Safety
/// As many bytes as `room` has are readable at `from`, and are not `room`'s.
#[inline(never)]
pub(super) unsafe fn copy_asking_ahead(from: *const u8, room: &mut [u8]) {
    let lines = |from: usize| (from..from + CHUNK).step_by(LINE);
    for at in (0..room.len()).step_by(CHUNK) {
        let next = lines(at + CHUNK).filter(|line| *line < room.len());
        next.for_each(|line| ahead::to_write(room.as_ptr().wrapping_add(line)));
        let len = CHUNK.min(room.len() - at);
        // SAFETY: as the caller promised; `at` is before the end of both.
        unsafe { core::ptr::copy_nonoverlapping(from.add(at), room.as_mut_ptr().add(at), len) };
    }
}

/// # Safety
/// As many bytes as `room` has are readable at `from`, and are not `room`'s.
unsafe fn copy_by_string(from: *const u8, room: &mut [u8]) {
    // SAFETY: as the caller promised.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "rep movsb",
            inout("rcx") room.len() => _,
            inout("rsi") from => _,
            inout("rdi") room.as_mut_ptr() => _,
            options(nostack, preserves_flags)
        );
        #[cfg(not(target_arch = "x86_64"))]
        core::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), room.len());
    }
}

/// Where a body of so many bytes lies, if that is one place.
#[inline(always)]
pub(super) fn in_one_piece(body: &Body<'_>, len: usize) -> Option<*const u8> {
    match *body {
        Body::Bytes(bytes) => (bytes.len() == len).then_some(bytes.as_ptr()),
        Body::User { iov, at, .. } => {
            let piece = iov.only()?.part(at, len);
            (piece.len() == len).then_some(piece.addr() as *const u8)
        }
        Body::Empty => Some(core::ptr::dangling()),
    }
}

#[cfg(target_arch = "x86_64")]
fn is_amd() -> bool {
    let maker = core::arch::x86_64::__cpuid(0);
    let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes);
    maker.as_flattened() == b"AuthenticAMD"
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
        for len in [0, 1, LONG, LONG + 1, 3 * LONG + 9] {
            let bytes = bytes(len + 3);
            for cuts in [&[len + 3][..], &[5, len / 2 + 1, len + 3]] {
                let memory = Lent::new(cuts, 0);
                memory.iov().write(0, &bytes);
                let (iov, at) = (&memory.iov(), 3);
                for body in [Body::User { iov, at, len }, Body::Bytes(&bytes[3..])] {
                    let mut room = vec![0xee; len + 1];
                    fill(&mut room[..len], body);
                    assert_eq!(room[..len], bytes[3..], "{len} of {cuts:?}");
                    assert_eq!(room[len], 0xee, "{len} of {cuts:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_copied_while_lines_are_asked_for_is_whole() {
        let bytes = bytes(3 * CHUNK);
        for len in [0, 1, 64, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 65] {
            let mut room = vec![0xee; len + 2];
            // SAFETY: the bytes are there, and the room is another vector's.
            unsafe { copy_asking_ahead(bytes[5..5 + len].as_ptr(), &mut room[1..=len]) };
            assert_eq!(room[1..=len], bytes[5..5 + len], "{len}");
            assert_eq!((room[0], room[len + 1]), (0xee, 0xee), "{len}");
        }
    }

    /// Whatever `copy_long` takes on this machine.
    #[test]
    fn a_string_is_copied_from_anywhere() {
        let bytes = bytes(2 * LONG);
        for at in [0, 1, 8, 63] {
            for len in [0, 1, 64, LONG, LONG + 17] {
                let mut room = vec![0xee; len + 2];
                // SAFETY: the bytes are there, and the room is another vector's.
                unsafe { copy_by_string(bytes[at..at + len].as_ptr(), &mut room[1..=len]) };
                assert_eq!(room[1..=len], bytes[at..at + len], "{len} from {at}");
                assert_eq!((room[0], room[len + 1]), (0xee, 0xee), "{len} from {at}");
            }
        }
    }
}
