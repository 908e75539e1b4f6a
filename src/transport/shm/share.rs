//! Copying a large message with both processors: the receiver reads its beginning, and the sender, asked by a record in
//! its ring (`help`), writes its end. They meet wherever they meet. A large read or write of a peer's region that must be
//! copied goes the same way: there the initiator is who asks, and the target who helps if it looks.
//!
//! The message is cut into pieces. A word in the control block of the sender's ring says which are left: the receiver
//! takes them from the front, the sender from the back, with a compare-and-swap. A sender that is busy elsewhere takes
//! none, and the receiver does it all: nobody waits for a piece that nobody is working at. The sender says in a word of
//! its own how many it has done, and when it will take no more; only then is the next message shared.
//!
//! Neither believes the other: both check what they take against their own count.

use super::ShmTransport;
use super::get;
use super::help::{Asked, request};
use super::layout::{CLOSED, Ring};
use super::outbound::{Outbound, Sent};
use super::reach::Open;
use crate::engine::op::Access;
use crate::engine::port::{ExposedName, Get, PeerId, Remote, Sink, Token};
use crate::util::user::UserIov;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// A message is cut into about so many pieces, but none smaller than is worth a system call: one costs as much as copying
/// two or three pages (256 KiB take 22 us in pieces of 32 KiB, 19 of 64, 17.5 of 128). What is less than two such is
/// halved.
const PIECES: usize = 4;
const LEAST_PIECE: usize = 128 << 10;
const MOST_PIECE: usize = 256 << 10;
const PAGE: usize = 4096;
/// The most pieces of a request that is believed.
const MOST_PIECES: u16 = 1 << 14;
/// Looks at a piece that the sender is at, before other things are done.
const SPINS: u32 = 2000;
/// How long a closing endpoint waits for a sender at its memory: far longer than a piece takes.
const PATIENCE: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_micros(100);

/// How a message is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
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

    /// As it came in a request.
    pub fn checked(at: u64, len: u64, piece: u64, count: u64) -> Option<Cut> {
        let cut = Cut {
            at: at.try_into().ok()?,
            len: len.try_into().ok()?,
            piece: piece.try_into().ok()?,
            count: u16::try_from(count).ok().filter(|count| *count <= MOST_PIECES)?,
        };
        let whole = cut.at.checked_add(cut.len).is_some() && cut.piece > 0;
        (whole && cut.len.div_ceil(cut.piece) == usize::from(cut.count)).then_some(cut)
    }

    /// Where a piece lies.
    pub(super) fn range(&self, piece: u16) -> (usize, usize) {
        let from = (usize::from(piece) * self.piece).min(self.len);
        (self.at + from, self.piece.min(self.len - from))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

/// Pieces that nobody has taken: those from `front` on, before `back`, of share `number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    number: u32,
    front: u16,
    back: u16,
}

impl Left {
    fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.front) << 16 | u64::from(self.back)
    }

    fn of(word: u64) -> Left {
        Left {
            number: (word >> 32) as u32,
            front: (word >> 16) as u16,
            back: word as u16,
        }
    }
}

/// Takes a piece of this share from one end.
pub(super) fn take(word: &AtomicU64, number: u32, end: End) -> Option<u16> {
    // A peer that keeps changing the word keeps nobody here for ever.
    for _ in 0..1000 {
        let seen = word.load(Ordering::Acquire);
        let left = Left::of(seen);
        if left.number != number || left.front >= left.back {
            return None;
        }
        let (next, piece) = match end {
            End::Front => (
                Left {
                    front: left.front + 1,
                    ..left
                },
                left.front,
            ),
            End::Back => (
                Left {
                    back: left.back - 1,
                    ..left
                },
                left.back - 1,
            ),
        };
        // SYNC POINT pieces: nothing but the pieces themselves depends on it.
        if word
            .compare_exchange_weak(seen, next.word(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            return Some(piece);
        }
    }
    None
}

/// What a sender says of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Working = 0,
    Over = 1,
    /// It could not do the last piece that it took, and takes no more.
    Failed = 2,
}

pub(super) fn told(number: u32, state: State, done: u16) -> u64 {
    u64::from(number) << 32 | (state as u64) << 16 | u64::from(done)
}

/// The other's side of what is copied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Far {
    /// A message of its, as it named it.
    Message(Remote),
    /// Some of a region of its.
    Region(Open),
}

impl Far {
    fn asked(&self) -> Asked {
        match self {
            Far::Message(remote) => Asked {
                name: get::named(remote),
                access: Access::Read,
            },
            Far::Region(open) => Asked {
                name: ExposedName::Region(open.part),
                access: open.access,
            },
        }
    }

    /// Copies some of it here.
    fn copy(&self, out: &mut Outbound, local: &UserIov, at: usize, len: usize) -> Get {
        match self {
            Far::Message(remote) => get::get(out.instance(), out.pid(), remote, local, at, len),
            Far::Region(open) if out.copy_some(open, local, at, len) => Get::Done,
            Far::Region(_) => Get::Unsupported,
        }
    }
}

/// Number, whether it takes no more, whether it failed, how many are done.
fn hear(word: u64) -> (u32, bool, bool, u16) {
    let state = (word >> 16) as u16;
    (
        (word >> 32) as u32,
        state != State::Working as u16,
        state == State::Failed as u16,
        word as u16,
    )
}

/// A message whose end the sender is still writing.
#[derive(Debug)]
pub struct Waiting {
    pub peer: PeerId,
    token: Token,
    number: u32,
    cut: Cut,
    far: Far,
    local: UserIov,
    /// Pieces before this one were ours, all others are the sender's.
    front: u16,
    /// Our own part went well.
    ok: bool,
}

impl ShmTransport {
    /// Whether a peer is still at the end of what was copied together with it.
    pub(super) fn is_waiting_for(&self, peer: PeerId) -> bool {
        self.waiting.iter().any(|waiting| waiting.peer == peer)
    }

    /// Copies together with the other. None: this one is to be copied alone.
    pub(super) fn copy_together(
        &mut self,
        from: PeerId,
        far: &Far,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Token,
    ) -> Option<Get> {
        let cut = Cut::of(at, len)?;
        if self.is_waiting_for(from) {
            // Its sender is at the end of another one and soon free for this one. Alone we would be slower: with many of 4
            // MiB under way, each then took 2.4 ms instead of 1.6.
            return Some(Get::Full);
        }
        let peer = self.peers.get_mut(from)?;
        let (ring, out) = (self.inbox.ring(peer.ring?)?, peer.out.as_mut()?);
        let (number, at_rest, ..) = hear(ring.helped().load(Ordering::Acquire));
        if peer.shares != 0 && !(at_rest && number == peer.shares) {
            return None; // it has not come to our last request yet
        }
        let number = peer.shares.wrapping_add(1).max(1);
        let back = cut.count;
        let ours = get::expose(self.own.instance, self.own.pid, local, ExposedName::Nothing);
        let (words, body) = request(number, &cut, &ours, &far.asked())?;
        // SYNC POINT pieces: before the request, which is published with a release.
        let left = Left { number, front: 0, back };
        ring.pieces().store(left.word(), Ordering::Release);
        match out.push_words(words, &body) {
            Sent::Done => peer.shares = number,
            Sent::Full | Sent::TooLong => return None,
            Sent::Gone => {
                let _ = self.not_sent(from, Sent::Gone);
                return Some(Get::Gone);
            }
        }
        let (mut front, mut ok) = (0, true);
        while let Some(piece) = take(ring.pieces(), number, End::Front) {
            if piece != front || piece >= cut.count {
                break; // the sender has written there; what it cannot have done is done below
            }
            front += 1;
            let (at, len) = cut.range(piece);
            if !ok {
                continue; // only to leave nothing to be taken
            }
            match far.copy(out, local, at, len) {
                Get::Done => {}
                Get::Gone => return Some(Get::Gone),
                Get::Unsupported | Get::Later | Get::Full => ok = false,
            }
        }
        let waiting = Waiting {
            peer: from,
            token,
            number,
            cut,
            far: *far,
            local: *local,
            front,
            ok,
        };
        for _ in 0..SPINS {
            if let Some(got) = waiting.end(ring, out) {
                return Some(got);
            }
            core::hint::spin_loop();
        }
        self.waiting.push(waiting);
        Some(Get::Later)
    }

    /// Messages whose end has been written by now.
    #[cold]
    pub(super) fn collect<S: Sink>(&mut self, sink: &mut S) -> usize {
        let mut done = 0;
        let (peers, inbox) = (&mut self.peers, &self.inbox);
        self.waiting.retain(|waiting| {
            let peer = peers.get_mut(waiting.peer);
            let ends = peer.and_then(|peer| Some((inbox.ring(peer.ring?)?, peer.out.as_mut()?)));
            let Some((ring, out)) = ends else {
                return true; // it is ending, and soon gone
            };
            let got = waiting.end(ring, out);
            if let Some(got) = got {
                sink.finished(waiting.token, got == Get::Done && !out.is_closed());
                done += 1;
            }
            got.is_none()
        });
        done
    }

    /// Before the memory of receives goes back to the application: no sender is at it any more. One that was stopped in the
    /// middle of a piece cannot be told to leave it, and is waited for no longer than `PATIENCE`: docs/security.md says
    /// what may become of that memory.
    pub(super) fn wait_for_helpers(&mut self) {
        let waiting = core::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        // SYNC POINT leaving: a helper that has taken a piece looks at this before it begins.
        self.own.header.attention().fetch_or(CLOSED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let start = Instant::now();
        for waiting in waiting {
            while self.is_helping(&waiting) {
                if start.elapsed() > PATIENCE {
                    self.warn_of(&waiting);
                    break;
                }
                std::thread::sleep(NAP);
            }
        }
    }

    fn is_helping(&self, waiting: &Waiting) -> bool {
        let Some(peer) = self.peers.get(waiting.peer) else {
            return false;
        };
        let Some(ring) = peer.ring.and_then(|ring| self.inbox.ring(ring)) else {
            return false;
        };
        let (number, rest, ..) = hear(ring.helped().load(Ordering::Acquire));
        // Nothing is said yet by one that has only just taken a piece.
        !(rest && number == waiting.number) && self.lives(peer)
    }

    #[cold]
    fn warn_of(&self, waiting: &Waiting) {
        let out = self.peers.get(waiting.peer).and_then(|peer| peer.out.as_ref());
        let (pid, bytes) = (out.map_or(0, Outbound::pid), waiting.cut.piece);
        (self.config.warn)(&format!(
            "process {pid} is stopped while it copies a part of a message for an endpoint that is closed now: when it goes \
             on, it may still write up to {bytes} bytes to where the message was to go"
        ));
    }
}

impl Waiting {
    /// How the get has ended, if it has. What the sender failed at is read here.
    fn end(&self, ring: &Ring, out: &mut Outbound) -> Option<Get> {
        let theirs = self.cut.count.saturating_sub(self.front);
        let (number, _, failed, done) = hear(ring.helped().load(Ordering::Acquire));
        let (done, failed) = if number == self.number {
            (done, failed)
        } else {
            (0, false)
        };
        if done < theirs && !failed {
            return None;
        }
        if !self.ok {
            return Some(Get::Unsupported);
        }
        // It works from the back, so the pieces not done are the first of its part.
        for piece in (self.front..self.cut.count).take(usize::from(theirs.saturating_sub(done))) {
            let (at, len) = self.cut.range(piece);
            let got = self.far.copy(out, &self.local, at, len);
            if got != Get::Done {
                return Some(got);
            }
        }
        Some(Get::Done)
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

    /// Every piece is taken once, whoever is faster; those of another share are nobody's.
    #[test]
    fn a_piece_is_taken_once() {
        const COUNT: u16 = 5000;
        let left = Left {
            number: 7,
            front: 0,
            back: COUNT,
        };
        let word = AtomicU64::new(left.word());
        let all = |end| core::iter::from_fn(|| take(&word, 7, end)).collect::<Vec<u16>>();
        let (front, mut back) = std::thread::scope(|scope| {
            let back = scope.spawn(|| all(End::Back));
            (all(End::Front), back.join().unwrap())
        });
        back.reverse();
        assert_eq!([front, back].concat(), (0..COUNT).collect::<Vec<u16>>());
        word.store(left.word(), Ordering::Relaxed);
        assert_eq!(take(&word, 8, End::Front), None);
        assert_eq!(take(&word, 7, End::Back), Some(COUNT - 1));
    }
}
