//! TODO

use super::super::ShmTransport;
use super::super::direct_access::RemoteRange;
use super::super::get;
use super::super::lane::Ring;
use super::super::layout::CLOSED;
use super::super::outbound::{Outbound, Written};
use super::helper::{RequestedMemory, encode_request};
use super::{Cut, HelperWord, PiecesLeft, TakeFrom, take_piece};
use crate::engine::op::Access;
use crate::engine::port::{ExposedName, Get, PeerId, Remote, Sink, Token};
use crate::util::user::UserIov;
use core::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Looks at a piece that the sender is at, before other things are done.
const SPINS: u32 = 2000;
/// How long a closing endpoint waits for a sender at its memory: far longer than a piece takes.
const PATIENCE: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_micros(100);

/// The other's side of what is copied.
#[derive(Clone, Copy, Debug)]
pub enum PeerMemory {
    /// A message of its, as it named it.
    Message(Remote),
    /// Some of a region of its.
    Region(RemoteRange),
}

impl PeerMemory {
    fn requested(&self) -> RequestedMemory {
        match self {
            PeerMemory::Message(remote) => RequestedMemory {
                name: get::named(remote),
                access: Access::Read,
            },
            PeerMemory::Region(range) => RequestedMemory {
                name: ExposedName::Region(range.part),
                access: range.access,
            },
        }
    }

    /// Copies some of it here.
    fn copy(&self, out: &mut Outbound, local: &UserIov, at: usize, len: usize) -> Get {
        match self {
            PeerMemory::Message(remote) => get::get(out.instance(), out.pid(), remote, local, at, len),
            PeerMemory::Region(range) if out.copy_some(range, local, at, len) => Get::Done,
            PeerMemory::Region(_) => Get::Unsupported,
        }
    }
}

/// A message whose end the sender is still writing.
#[derive(Debug)]
pub struct PendingCopy {
    pub peer: PeerId,
    token: Token,
    number: u32,
    cut: Cut,
    far: PeerMemory,
    local: UserIov,
    /// Pieces before this one were ours, all others are the sender's.
    front: u16,
    /// Our own part went well.
    ok: bool,
}

impl ShmTransport {
    /// Whether a peer is still at the end of what was copied together with it.
    pub(in super::super) fn is_copying_with(&self, peer: PeerId) -> bool {
        self.pending_copies.iter().any(|pending| pending.peer == peer)
    }

    /// Copies together with the other. None: this one is to be copied alone.
    pub(in super::super) fn copy_together(
        &mut self,
        from: PeerId,
        far: &PeerMemory,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Token,
    ) -> Option<Get> {
        let cut = Cut::of(at, len)?;
        if self.is_copying_with(from) {
            // Its sender is at the end of another one and soon free for this one. Alone we would be slower: with many of 4
            // MiB under way, each then took 2.4 ms instead of 1.6.
            return Some(Get::Full);
        }
        let peer = self.peers.get_mut(from)?;
        let (ring, out) = (self.inbox.ring(peer.ring?)?, peer.out.as_mut()?);
        let helper = HelperWord::of(ring.helped().load(Ordering::Acquire));
        if peer.last_dual_copy != 0 && !(helper.is_over && helper.number == peer.last_dual_copy) {
            return None; // it has not come to our last request yet
        }
        let number = peer.last_dual_copy.wrapping_add(1).max(1);
        let back = cut.count;
        let ours = get::expose(self.own.instance, self.own.pid, local, ExposedName::Nothing);
        let (words, body) = encode_request(number, &cut, &ours, &far.requested())?;
        // SYNC POINT pieces: before the request, which is published with a release.
        let left = PiecesLeft { number, front: 0, back };
        ring.pieces().store(left.word(), Ordering::Release);
        match out.push_words(words, &body) {
            Written::Done => peer.last_dual_copy = number,
            Written::Full | Written::TooLong => return None,
            Written::Gone => {
                let _ = self.push_failed(from, Written::Gone);
                return Some(Get::Gone);
            }
        }
        let (mut front, mut ok) = (0, true);
        while let Some(piece) = take_piece(ring.pieces(), number, TakeFrom::Front) {
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
        let pending = PendingCopy {
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
            if let Some(got) = pending.result(ring, out) {
                return Some(got);
            }
            core::hint::spin_loop();
        }
        self.pending_copies.push(pending);
        Some(Get::Later)
    }

    /// Messages whose end has been written by now.
    #[cold]
    pub(in super::super) fn collect<S: Sink>(&mut self, sink: &mut S) -> usize {
        let mut done = 0;
        let (peers, inbox) = (&mut self.peers, &self.inbox);
        self.pending_copies.retain(|pending| {
            let peer = peers.get_mut(pending.peer);
            let ends = peer.and_then(|peer| Some((inbox.ring(peer.ring?)?, peer.out.as_mut()?)));
            let Some((ring, out)) = ends else {
                return true; // it is ending, and soon gone
            };
            let got = pending.result(ring, out);
            if let Some(got) = got {
                sink.finished(pending.token, got == Get::Done && !out.is_closed());
                done += 1;
            }
            got.is_none()
        });
        done
    }

    /// Before the memory of receives goes back to the application: no sender is at it any more. One that was stopped in the
    /// middle of a piece cannot be told to leave it, and is waited for no longer than `PATIENCE`: docs/security.md says
    /// what may become of that memory.
    pub(in super::super) fn wait_for_helpers(&mut self) {
        let pending = core::mem::take(&mut self.pending_copies);
        if pending.is_empty() {
            return;
        }
        // SYNC POINT leaving: a helper that has taken a piece looks at this before it begins.
        self.own.header.attention().fetch_or(CLOSED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let start = Instant::now();
        for pending in pending {
            while self.is_helping(&pending) {
                if start.elapsed() > PATIENCE {
                    self.warn_of(&pending);
                    break;
                }
                std::thread::sleep(NAP);
            }
        }
    }

    fn is_helping(&self, pending: &PendingCopy) -> bool {
        let Some(peer) = self.peers.get(pending.peer) else {
            return false;
        };
        let Some(ring) = peer.ring.and_then(|ring| self.inbox.ring(ring)) else {
            return false;
        };
        let helper = HelperWord::of(ring.helped().load(Ordering::Acquire));
        // Nothing is said yet by one that has only just taken a piece.
        !(helper.is_over && helper.number == pending.number) && self.lives(peer)
    }

    #[cold]
    fn warn_of(&self, pending: &PendingCopy) {
        let out = self.peers.get(pending.peer).and_then(|peer| peer.out.as_ref());
        let (pid, bytes) = (out.map_or(0, Outbound::pid), pending.cut.piece);
        (self.config.warn)(&format!(
            "process {pid} is stopped while it copies a part of a message for an endpoint that is closed now: when it goes \
             on, it may still write up to {bytes} bytes to where the message was to go"
        ));
    }
}

impl PendingCopy {
    /// How the get has ended, if it has. What the sender failed at is read here.
    fn result(&self, ring: &Ring, out: &mut Outbound) -> Option<Get> {
        let theirs = self.cut.count.saturating_sub(self.front);
        let helper = HelperWord::of(ring.helped().load(Ordering::Acquire));
        let (done, failed) = if helper.number == self.number {
            (helper.done, helper.failed)
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
