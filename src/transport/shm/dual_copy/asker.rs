//! The asker of a dual copy: it asks, copies from the front, and waits for the helper's pieces over later polls.
//!
//! A piece that the helper took and failed at is copied by the asker. Until the helper has done its part, the copy is a
//! `PendingCopy`, of which there is one for each peer at most.

use super::super::ShmTransport;
use super::super::direct_access::RemoteRange;
use super::super::get;
use super::super::lane::Lane;
use super::super::layout::CLOSED;
use super::super::outbound::{Outbound, Written};
use super::helper::{RequestedMemory, encode_request};
use super::{Cut, HelperWord, PiecesLeft, TakeFrom, take_piece};
use crate::engine::op::Access;
use crate::engine::port::{ExposedName, Get, NotDone, PeerId, Remote, Sink, Token};
use crate::util::user::UserIov;
use core::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Looks for the helper's end of the copy before the call returns, and polls look for it instead.
const SPINS: u32 = 2000;
/// How long a closing endpoint waits for a helper that is at its memory: far longer than a piece takes.
const PATIENCE: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_micros(100);

/// The helper's side of what is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerMemory {
    /// A message of the helper's, as it was exposed.
    Message(Remote),
    /// A piece of a region of the helper's.
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

    /// Whether what was copied of it was the peer's to give.
    fn is_still_there(&self, out: &Outbound) -> bool {
        match self {
            PeerMemory::Message(remote) => out.is_still_lent(remote),
            PeerMemory::Region(_) => true, // looked at with each piece
        }
    }

    /// Copies some of it, without the helper.
    fn copy(&self, out: &mut Outbound, local: &UserIov, at: usize, len: usize) -> Get {
        match self {
            PeerMemory::Message(remote) => get::get(out.instance(), out.pid(), remote, local, at, len),
            PeerMemory::Region(range) if out.copy_some(range, local, at, len) => Get::Done,
            PeerMemory::Region(_) => Get::Unsupported,
        }
    }
}

/// A copy of which the helper has not done its part yet.
#[derive(Debug)]
pub(crate) struct PendingCopy {
    pub peer: PeerId,
    token: Token,
    number: u32,
    cut: Cut,
    memory: PeerMemory,
    local: UserIov,
    /// The asker took the pieces before this one, the helper all others.
    front: u16,
    /// The asker's part went well.
    ok: bool,
}

/// What has become of asking a peer to help.
enum Asked {
    /// It was asked, for the copy of this number.
    Helper(u32),
    /// It is gone.
    Nobody,
}

impl ShmTransport {
    /// Whether a peer still does its part of an earlier copy.
    pub(in super::super) fn is_copying_with(&self, peer: PeerId) -> bool {
        self.pending_copies.iter().any(|pending| pending.peer == peer)
    }

    /// Copies `len` bytes from byte `at` on, together with the peer. None: the caller has to copy alone.
    pub(in super::super) fn copy_together(
        &mut self,
        from: PeerId,
        memory: &PeerMemory,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Token,
    ) -> Option<Get> {
        let cut = Cut::of(at, len)?;
        if self.is_copying_with(from) {
            // The peer is at the end of another copy and soon free for this one. Alone we would be slower: with many
            // messages of 4 MiB in flight, each then took 2.4 ms instead of 1.6.
            return Some(Get::Full);
        }
        let number = match self.ask_to_help(from, memory, local, &cut)? {
            Asked::Helper(number) => number,
            Asked::Nobody => return Some(Get::Gone),
        };
        let peer = self.peers.get_mut(from)?;
        let (lane, out) = (self.inbox.lane(peer.lane?)?, peer.out.as_mut()?);
        let mut pending = PendingCopy {
            peer: from,
            token,
            number,
            cut,
            memory: *memory,
            local: *local,
            front: 0,
            ok: true,
        };
        if !pending.copy_front(lane, out) {
            return Some(Get::Gone);
        }
        for _ in 0..SPINS {
            if let Some(got) = pending.result(lane, out) {
                return Some(got);
            }
            core::hint::spin_loop();
        }
        self.pending_copies.push(pending);
        Some(Get::Later)
    }

    /// Lays the pieces out and asks the peer to copy from the back. None: it cannot be asked now.
    fn ask_to_help(&mut self, from: PeerId, memory: &PeerMemory, local: &UserIov, cut: &Cut) -> Option<Asked> {
        let peer = self.peers.get_mut(from)?;
        let (lane, out) = (self.inbox.lane(peer.lane?)?, peer.out.as_mut()?);
        let helper = HelperWord::of(lane.helped().load(Ordering::Acquire));
        if peer.last_dual_copy != 0 && !(helper.is_over && helper.number == peer.last_dual_copy) {
            return None; // the peer has not read our last request yet
        }
        let number = peer.last_dual_copy.wrapping_add(1).max(1);
        let back = cut.count;
        let ours = get::expose(self.own.instance, local, ExposedName::Nothing, None)?;
        let (words, body) = encode_request(number, cut, &ours, &memory.requested())?;
        // SYNC POINT pieces: stored before the request, which is published with a release.
        let left = PiecesLeft { number, front: 0, back };
        lane.pieces().store(left.word(), Ordering::Release);
        match out.push_words(words, &body) {
            Written::Done => peer.last_dual_copy = number,
            Written::Full | Written::TooLong => return None,
            Written::Gone => {
                let _ = self.push_failed(from, Written::Gone);
                return Some(Asked::Nobody);
            }
        }
        Some(Asked::Helper(number))
    }

    /// Reports the copies of which the helper has done its part by now. Says how many.
    #[cold]
    pub(in super::super) fn collect<S: Sink>(&mut self, sink: &mut S) -> usize {
        let mut done = 0;
        let (peers, inbox) = (&mut self.peers, &self.inbox);
        self.pending_copies.retain(|pending| {
            let peer = peers.get_mut(pending.peer);
            let ends = peer.and_then(|peer| Some((inbox.lane(peer.lane?)?, peer.out.as_mut()?)));
            let Some((lane, out)) = ends else {
                return true; // the peer is ending, which ends the copy when it is reported
            };
            let got = pending.result(lane, out);
            if let Some(got) = got {
                let copied = got == Get::Done && !out.is_closed() && pending.memory.is_still_there(out);
                sink.finished(pending.token, if copied { Ok(()) } else { Err(NotDone::AskPeer) });
                done += 1;
            }
            got.is_none()
        });
        done
    }

    /// Waits until no helper is at memory of ours, which goes back to the application when this returns. A helper that
    /// is stopped in the middle of a piece cannot be told to leave it, and is waited for no longer than `PATIENCE`:
    /// docs/security.md says what may become of that memory.
    pub(in super::super) fn wait_for_helpers(&mut self) {
        let pending = core::mem::take(&mut self.pending_copies);
        if pending.is_empty() {
            return;
        }
        // SYNC POINT leaving: a helper that has taken a piece reads this before it copies.
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
        let Some(lane) = peer.lane.and_then(|lane| self.inbox.lane(lane)) else {
            return false;
        };
        let helper = HelperWord::of(lane.helped().load(Ordering::Acquire));
        // A helper that has only just taken a piece has not written its word for this copy yet: it counts as helping.
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
    /// Copies from the front until no piece is left to take. False: the peer is gone.
    fn copy_front(&mut self, lane: &Lane, out: &mut Outbound) -> bool {
        while let Some(piece) = take_piece(lane.pieces(), self.number, TakeFrom::Front) {
            if piece != self.front || piece >= self.cut.count {
                break; // the peer broke the protocol; `result` copies what it cannot have done
            }
            self.front += 1;
            let (at, len) = self.cut.range(piece);
            if !self.ok {
                continue; // our part has failed: the rest is taken only to keep it from the helper
            }
            match self.memory.copy(out, &self.local, at, len) {
                Get::Done => {}
                Get::Gone => return false,
                Get::Unsupported | Get::Later | Get::Full | Get::Failed(_) => self.ok = false,
            }
        }
        true
    }

    /// How the copy has ended, if it has. Copies what the helper failed at.
    fn result(&self, lane: &Lane, out: &mut Outbound) -> Option<Get> {
        let theirs = self.cut.count.saturating_sub(self.front);
        let helper = HelperWord::of(lane.helped().load(Ordering::Acquire));
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
        // The helper works from the back, so the pieces it has not done are the first of its part.
        for piece in (self.front..self.cut.count).take(usize::from(theirs.saturating_sub(done))) {
            let (at, len) = self.cut.range(piece);
            let got = self.memory.copy(out, &self.local, at, len);
            if got != Get::Done {
                return Some(got);
            }
        }
        Some(Get::Done)
    }
}
