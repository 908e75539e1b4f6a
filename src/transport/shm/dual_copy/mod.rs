//! A large copy that both processes do at once: one from the front, the other from the back, until they meet.
//!
//! - `asker`: the process that wants the copy. The receiver of a message, or the initiator of a read or write of a
//!   region that cannot be mapped. It asks by a record in the peer's ring, and begins at the front without waiting.
//! - `helper`: the peer. When it reads the request, it copies from the back.
//! - `crossing`: when a region is copied alone, as the peer is at a copy of its own.
//! - here: how the bytes are cut into pieces, and the two words of the helper's lane by which both agree.
//!
//! The asker writes the pieces that are left into one word; both take from it with a compare-and-swap. A helper that is
//! busy takes none, and the asker does it all: nobody waits for a piece that nobody is copying. The helper counts in
//! the other word what it has done, and says when it takes no more; only then is it asked again. Neither trusts the
//! other: both hold what they take against a count of their own.
//!
//! The copies are system calls (`get`, `direct_access`). Called by `ShmTransport`'s `get`, `copy` and `poll`.

mod asker;
mod crossing;
mod helper;

use core::sync::atomic::{AtomicU64, Ordering};

pub(super) use asker::{PeerMemory, PendingCopy};
pub(super) use helper::HelpRequest;
#[cfg(test)]
pub(crate) use helper::RequestedMemory;
#[cfg(any(test, fuzzing))]
pub(crate) use helper::{REQUEST_BODY, encode_request};

/// About how many pieces a copy is cut into. None is smaller than is worth a system call, which costs as much as
/// copying two or three pages (256 KiB take 22 us in pieces of 32 KiB, 19 of 64, 17.5 of 128); what is less than two
/// such pieces is halved.
const PIECES: usize = 4;
const LEAST_PIECE: usize = 128 << 10;
const MOST_PIECE: usize = 256 << 10;
const PAGE: usize = 4096;
/// The most pieces that a request may name.
const MOST_PIECES: u16 = 1 << 14;

/// How a copy is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub at: usize,
    pub len: usize,
    pub piece: usize,
    pub count: u16,
}

impl Cut {
    fn of(at: usize, len: usize) -> Option<Cut> {
        let piece = (len / PIECES)
            .max(LEAST_PIECE.min(len.div_ceil(2)))
            .next_multiple_of(PAGE)
            .clamp(PAGE, MOST_PIECE)
            .max(len.div_ceil(usize::from(MOST_PIECES)));
        let count = u16::try_from(len.div_ceil(piece)).ok().filter(|count| *count > 1)?;
        Some(Cut { at, len, piece, count })
    }

    /// From the numbers of a request; None if they do not fit together.
    pub(super) fn checked(at: u64, len: u64, piece: u64, count: u64) -> Option<Cut> {
        let cut = Cut {
            at: at.try_into().ok()?,
            len: len.try_into().ok()?,
            piece: piece.try_into().ok()?,
            count: u16::try_from(count).ok().filter(|count| *count <= MOST_PIECES)?,
        };
        let whole = cut.at.checked_add(cut.len).is_some() && cut.piece > 0;
        (whole && cut.len.div_ceil(cut.piece) == usize::from(cut.count)).then_some(cut)
    }

    /// Offset and length of a piece.
    pub(super) fn range(&self, piece: u16) -> (usize, usize) {
        let from = (usize::from(piece) * self.piece).min(self.len);
        (self.at + from, self.piece.min(self.len - from))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakeFrom {
    Front,
    Back,
}

/// The pieces of copy `number` that nobody has taken: from `front` on, and before `back`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PiecesLeft {
    number: u32,
    front: u16,
    back: u16,
}

impl PiecesLeft {
    fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.front) << 16 | u64::from(self.back)
    }

    fn of(word: u64) -> PiecesLeft {
        PiecesLeft {
            number: (word >> 32) as u32,
            front: (word >> 16) as u16,
            back: word as u16,
        }
    }
}

/// Takes a piece of copy `number`, from one end.
pub(super) fn take_piece(word: &AtomicU64, number: u32, end: TakeFrom) -> Option<u16> {
    // Bounded, so that a peer that keeps changing the word does not keep us here.
    for _ in 0..1000 {
        let seen = word.load(Ordering::Acquire);
        let left = PiecesLeft::of(seen);
        if left.number != number || left.front >= left.back {
            return None;
        }
        let (next, piece) = match end {
            TakeFrom::Front => (
                PiecesLeft {
                    front: left.front + 1,
                    ..left
                },
                left.front,
            ),
            TakeFrom::Back => (
                PiecesLeft {
                    back: left.back - 1,
                    ..left
                },
                left.back - 1,
            ),
        };
        // SYNC POINT pieces.
        if word
            .compare_exchange_weak(seen, next.word(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return Some(piece);
        }
    }
    None
}

/// What a helper says of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelperState {
    Working = 0,
    Over = 1,
    /// It could not copy the last piece that it took, and takes no more.
    Failed = 2,
}

pub(super) fn helper_word(number: u32, state: HelperState, done: u16) -> u64 {
    u64::from(number) << 32 | (state as u64) << 16 | u64::from(done)
}

/// What a helper's word says.
#[derive(Clone, Copy, Debug)]
struct HelperWord {
    number: u32,
    /// It takes no more pieces.
    is_over: bool,
    failed: bool,
    done: u16,
}

impl HelperWord {
    fn of(word: u64) -> HelperWord {
        let state = (word >> 16) as u16;
        HelperWord {
            number: (word >> 32) as u32,
            is_over: state != HelperState::Working as u16,
            failed: state == HelperState::Failed as u16,
            done: word as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole() {
        for len in [
            PAGE + 1,
            20_000,
            65536,
            65537,
            100_000,
            131_071,
            131_072,
            262_144,
            1 << 20,
            4 << 20,
            1 << 30,
            (1 << 40) + 7,
        ] {
            let cut = Cut::of(5, len).unwrap();
            let mut next = 5;
            for piece in 0..cut.count {
                let (at, len) = cut.range(piece);
                assert!(at == next && len > 0);
                next += len;
            }
            assert_eq!(next, 5 + len);
            assert_eq!(
                Cut::checked(cut.at as u64, len as u64, cut.piece as u64, u64::from(cut.count)),
                Some(cut)
            );
        }
        assert_eq!([0, 1, 15, PAGE].map(|len| Cut::of(0, len)), [None; 4]);
    }

    #[test]
    fn requests_that_cannot_be_are_refused() {
        for (at, len, piece, count) in [
            (0, 10, 0, 1),
            (0, 10, 5, 3),
            (0, 10, 5, 1),
            (u64::MAX, 10, 5, 2),
            (0, u64::MAX, 1 << 32, u64::from(MOST_PIECES) + 1),
        ] {
            assert_eq!(Cut::checked(at, len, piece, count), None);
        }
    }

    /// Every piece is taken once, whoever is faster; those of another copy are not taken.
    #[test]
    fn a_piece_is_taken_once() {
        const COUNT: u16 = 5000;
        let left = PiecesLeft {
            number: 7,
            front: 0,
            back: COUNT,
        };
        let word = AtomicU64::new(left.word());
        let all = |end| core::iter::from_fn(|| take_piece(&word, 7, end)).collect::<Vec<u16>>();
        let (front, mut back) = std::thread::scope(|scope| {
            let back = scope.spawn(|| all(TakeFrom::Back));
            (all(TakeFrom::Front), back.join().unwrap())
        });
        back.reverse();
        assert_eq!([front, back].concat(), (0..COUNT).collect::<Vec<u16>>());
        word.store(left.word(), Ordering::Relaxed);
        assert_eq!(take_piece(&word, 8, TakeFrom::Front), None);
        assert_eq!(take_piece(&word, 7, TakeFrom::Back), Some(COUNT - 1));
    }
}
