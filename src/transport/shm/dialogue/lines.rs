//! The lines of a part: its word, its header, and a body if that is short; and those of the parts after the first, which
//! lie in the room behind the large ring.
//!
//! Called by `dialogue`, and by `outbound` before a room is used. Knows nothing of whose turn it is.

use super::super::lane::{DIALOGUE_BYTES, Lane};
use super::super::ring::LINE;
use super::{LONGEST_TURN, PARTS};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

pub(super) const HEADER_AT: usize = 8;
/// A body that fits follows the header at once. Longer ones begin with the second line, as the other side looks at the
/// first meanwhile, which is therefore written at once, at the end.
const BODY_AT: usize = HEADER_AT + 32;
pub(super) const BESIDE_HEADER: usize = LINE - BODY_AT;
/// The longest body that fits the lines. Longer ones lie behind the large ring.
pub(super) const SHORT: usize = DIALOGUE_BYTES - LINE;
/// Behind the long bodies are the lines of the parts after the first, not side by side, as some processors fetch two at
/// a time.
const STEP: usize = 2 * LINE;
/// What is behind the large ring, in whole pages.
pub(in super::super) const ROOM: usize = (LONGEST_TURN + PARTS * STEP).next_multiple_of(4096);

/// Where the body of a part goes, or is, that has room in the lines from `here` on. A part after the first has one line.
#[inline(always)]
pub(super) fn place_in_lines(here: *mut u8, part: usize, len: usize) -> Option<*mut u8> {
    match len {
        0..=BESIDE_HEADER => Some(here.wrapping_add(BODY_AT)),
        0..=SHORT if part == 0 => Some(here.wrapping_add(LINE)),
        _ => None,
    }
}

/// Ends the writing of a part: the other side takes it now.
///
/// # Safety
/// Its lines begin here.
#[inline(always)]
pub(super) unsafe fn write_first_line(here: *mut u8, header: [u64; 4], word: u64) {
    let words = (HEADER_AT..).step_by(8).zip(header);
    // Word by word: the compiler would put an array on the stack by words and take it off by vectors, for which a
    // processor waits.
    // SAFETY: the header lies in the lines, aligned.
    words.for_each(|(at, word)| unsafe { word_at(here.add(at)).store(word, Ordering::Relaxed) });
    // SYNC POINT turn: release.
    word_at(here).store(word, Ordering::Release);
}

/// A word of the lines of a part: the first, or one of the header.
#[inline(always)]
pub(super) fn word_at<'a>(at: *mut u8) -> &'a AtomicU64 {
    // SAFETY: aligned and mapped. The first is only used atomically; the header is this side's while it is written.
    unsafe { &*at.cast::<AtomicU64>() }
}

/// The line of a part after the first.
///
/// # Safety
/// The room is a dialogue's, and has lines for so many parts.
pub(super) unsafe fn line_of(room: NonNull<u8>, part: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { room.as_ptr().add(LONGEST_TURN + part * STEP) }
}

/// Before the room of a lane is used: no part is there.
pub(in super::super) fn clear_room(lane: &Lane) {
    let Some(room) = lane.dialogue_room() else { return };
    for part in 1..PARTS {
        // SAFETY: there are as many parts. Their words are aligned, and only used atomically.
        let word = unsafe { &*line_of(room, part).cast::<AtomicU64>() };
        word.store(0, Ordering::Relaxed);
    }
}
