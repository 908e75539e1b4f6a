//! Takes back short operations from a target that does not poll, and has the transport do them without the target.
//!
//! A short read or write travels as a packet, which a polling target answers faster than the kernel copies. While such
//! operations are unanswered, every few polls check whether the target has answered or polled since. If it has not for
//! as long as the kernel would take for them (`Waiter::patience`), the packets that it has not begun to read are taken
//! back (`Transport::recall`), and what waits for room behind them is copied, too. From then on short operations are
//! copied by the kernel at once, until the target polls again (`Peer::not_polling`).
//!
//! This file decides which packets may be taken back; only the transport knows which were begun. Called by `endpoint`
//! in each poll with unanswered operations, and before a caller sleeps.

use super::endpoint::Engine;
use super::op::{Access, RemotePart, Report};
use super::outgoing::{Holds, LocalBuffer, Outgoing, Stage};
use super::outgoing_op::{OutgoingOp, RemoteSide};
use super::port::{CopyOp, Get, Local, PeerId, PollMark, Recall, Transport};
use super::state::{Core, GetOwner};
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// Polls between two checks: several times as many as a polling target needs to answer.
const POLLS_PER_CHECK: u32 = 64;
/// Checks after which a caller may sleep: by then a target that does not poll has been found out.
const CHECKS_BEFORE_SLEEP: u32 = 3;
/// Nanoseconds that the kernel takes to copy one short operation, about: 1 to 1.5 us where this was measured.
pub(super) const KERNEL_COPY: u64 = 1250;

/// What is known of a target that owes answers to short operations.
#[derive(Debug, Default)]
pub(super) struct AnswerWatch {
    /// It is in `Core::awaiting_answers`.
    pub listed: bool,
    /// Answers that have come.
    pub heard: u32,
    /// `heard` and `PollMark::changes` at the last check.
    before: (u32, u64),
    /// Checks since the last operation started.
    checks: u32,
    /// `PollMark::nanos` of the first of those in a row that have found nothing new.
    still_since: Option<u64>,
    /// Nothing new must have been found for so many nanoseconds before the next try.
    next_try: u64,
}

impl AnswerWatch {
    /// An operation was pushed. Returns whether the caller must add the target to `Core::awaiting_answers`.
    #[inline]
    pub(super) fn begin(&mut self) -> bool {
        self.checks = 0;
        self.still_since = None;
        self.next_try = 0;
        !core::mem::replace(&mut self.listed, true)
    }
}

/// What the program does while answers are owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    Polls,
    /// It is about to sleep, and does not know for how long.
    Sleeps,
}

impl Waiter {
    /// For how many nanoseconds there must have been no news before so many operations are taken back, which the target
    /// has not answered. One that computes for a shorter time than the copies would take does them all. The first check
    /// without news stands for one of them, so that a single operation is not waited for longer.
    fn patience(self, owed: u32) -> u64 {
        match self {
            Waiter::Polls => KERNEL_COPY * u64::from(owed.saturating_sub(1)),
            Waiter::Sleeps => 0,
        }
    }
}

/// Our operations among the packets that a target has not begun to read.
#[derive(Default)]
struct Unbegun {
    /// Those that are acknowledged by count (`Acked`).
    shorts: usize,
    recallable: Vec<Recallable>,
}

/// An operation that may be done without the target.
#[derive(Clone, Copy)]
enum Recallable {
    /// A short write, with the number of unbegun short operations before it.
    Write(usize),
    Read(Id),
}

impl Core {
    /// Starts watching for a peer's answer to a short read.
    #[inline]
    pub(super) fn await_answer(&mut self, to: PeerId) {
        if self.peer(to).rma_mut().watch.begin() {
            self.awaiting_answers.push(to);
        }
    }

    /// The watch of a peer that still owes answers, and how many; else marks it as no longer listed.
    fn owes(&mut self, to: PeerId) -> Option<(&mut AnswerWatch, u32)> {
        let peer = self.peers.get_mut(to as usize)?;
        let owed = peer.unfinished.saturating_sub(peer.queue.len() as u32);
        let watch = &mut peer.rma.as_mut()?.watch;
        watch.listed = peer.unfinished > 0;
        watch.listed.then_some((watch, owed))
    }

    /// Whether a packet that the target has not begun to read may be taken back.
    fn judge(&self, to: PeerId, header: &Header, len: usize, unbegun: &mut Unbegun) -> Recall {
        match header.packet {
            Packet::Write => {
                let before = unbegun.shorts;
                unbegun.shorts += 1;
                if header.flags & !flag::ACK != 0 || header.id != 0 {
                    return Recall::Stop;
                }
                unbegun.recallable.push(Recallable::Write(before));
                Recall::Write(header.piece(len))
            }
            Packet::Read => match self.short_read(to, header) {
                Some((id, part, local)) => {
                    unbegun.recallable.push(Recallable::Read(id));
                    Recall::Read(part, local)
                }
                None => Recall::Stop,
            },
            Packet::Atomic => {
                unbegun.shorts += usize::from(header.flags & flag::TAGGED == 0);
                Recall::Stop
            }
            packet if packet.is_answer() => Recall::Leave,
            // Nothing behind these may be done before them.
            _ => Recall::Stop,
        }
    }

    /// What an operation of ours does, if it is a read or write between one remote piece and the program's memory.
    fn simple_rma(outgoing: &Outgoing) -> Option<(Access, RemotePart, UserIov)> {
        let (access, key) = match outgoing.op {
            OutgoingOp::Write(RemoteSide::One { key }) => (Access::Write, key),
            OutgoingOp::Read(RemoteSide::One { key }) => (Access::Read, key),
            _ => return None,
        };
        let LocalBuffer::User(local) = outgoing.local else {
            return None;
        };
        let (addr, len) = (outgoing.tag, outgoing.len);
        Some((access, RemotePart { addr, len, key }, local))
    }

    /// Our short read of one remote piece that a packet carries.
    fn short_read(&self, to: PeerId, header: &Header) -> Option<(Id, RemotePart, UserIov)> {
        let id = self.outgoing.find_short(header.id).filter(|_| header.flags == 0)?;
        let outgoing: &Outgoing = self.outgoing.get(id)?;
        let waits = outgoing.to == to
            && outgoing.stage == Stage::Sent
            && !outgoing.holds.has(Holds::MESSAGES)
            && outgoing.at == 0;
        let (access, part, local) = Core::simple_rma(outgoing)?;
        (waits && access == Access::Read).then_some((id, part, local))
    }

    /// The read or write at the front of the queue, if the transport may do it as it is.
    fn next_short_op(&self, to: PeerId) -> Option<(Id, Access, RemotePart, UserIov)> {
        let peer = self.peers.get(to as usize).filter(|peer| !peer.is_off_fast_path())?;
        let id = *peer.queue.front()?;
        let outgoing = self.outgoing.get(id)?;
        let (access, part, local) = Core::simple_rma(outgoing)?;
        let fits_packet = outgoing.len <= self.limits_to(to).short_write();
        let is_whole = outgoing.stage == Stage::Queued && outgoing.at == 0;
        let is_plain = fits_packet && is_whole && !outgoing.fence && outgoing.data.is_none();
        is_plain.then_some((id, access, part, local))
    }

    /// Completes the first `done` of these operations, which the transport has performed.
    fn recalled(&mut self, to: PeerId, unbegun: &Unbegun, done: usize, report: &mut impl Report) {
        let mut taken = 0;
        for op in unbegun.recallable.iter().take(done) {
            match op {
                Recallable::Read(id) => self.end_outgoing(*id, None, report),
                Recallable::Write(before) => {
                    let peer = self.peer(to);
                    let rma = peer.rma_mut();
                    // The unbegun ones are the last in the queue, less those removed in this loop.
                    let first = (rma.unacked.len() + taken).checked_sub(unbegun.shorts);
                    let place = first.and_then(|first| (first + before).checked_sub(taken));
                    let Some(place) = place else { return };
                    let Some(short) = rma.unacked.remove(place) else { return };
                    taken += 1;
                    rma.taken_back(to, short, place, report);
                    peer.unfinished = peer.unfinished.saturating_sub(1);
                    self.unacked = self.unacked.saturating_sub(1);
                }
            }
        }
        let peer = self.peer(to);
        peer.not_polling = true;
        if !peer.queue.is_empty() {
            self.wake(to);
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Called in each poll while peers owe answers to short operations.
    #[inline]
    pub(super) fn poll_awaited(&mut self, report: &mut impl Report) {
        self.core.polls_since_check += 1;
        if self.core.polls_since_check >= POLLS_PER_CHECK {
            self.check_awaited(Waiter::Polls, report);
        }
    }

    /// Called before a caller sleeps. False: operations may soon be taken back from their target, so poll and call
    /// again.
    pub fn may_sleep(&mut self, report: &mut impl Report) -> bool {
        self.core.awaiting_answers.is_empty() || self.check_awaited(Waiter::Sleeps, report)
    }

    /// Checks all peers that owe answers, and takes back from those that do not poll. Returns whether the caller may
    /// sleep.
    #[cold]
    fn check_awaited(&mut self, waiter: Waiter, report: &mut impl Report) -> bool {
        self.core.polls_since_check = 0;
        let mut enough = true;
        for place in (0..self.core.awaiting_answers.len()).rev() {
            let Some(to) = self.core.awaiting_answers.get(place).copied() else {
                continue;
            };
            let Some((watch, owed)) = self.core.owes(to) else {
                self.core.awaiting_answers.swap_remove(place);
                continue;
            };
            watch.checks = watch.checks.saturating_add(1);
            enough &= watch.checks >= CHECKS_BEFORE_SLEEP;
            // Reads the target's word in shared memory only if no answer came, to leave its cache line alone.
            let (heard, changes) = watch.before;
            let mark = match watch.heard == heard {
                true => self.transport.poll_mark(to),
                false => PollMark { changes, nanos: 0 },
            };
            let news = (watch.heard, mark.changes);
            if news != watch.before {
                watch.before = news;
                watch.still_since = None;
                watch.next_try = 0;
                continue;
            }
            let still = mark.nanos.saturating_sub(*watch.still_since.get_or_insert(mark.nanos));
            // After a failure, tries again at longer and longer intervals.
            if still >= waiter.patience(owed) && still >= watch.next_try {
                watch.next_try = (2 * still).max(KERNEL_COPY);
                enough &= !self.recall(to, report);
            }
        }
        enough
    }

    /// Takes back and performs what a peer has not begun. Returns whether anything completed.
    fn recall(&mut self, to: PeerId, report: &mut impl Report) -> bool {
        let mut unbegun = Unbegun::default();
        let core = &self.core;
        let judge = |header: &Header, len: usize| core.judge(to, header, len, &mut unbegun);
        let done = self.transport.recall(to, judge).unwrap_or(0);
        if done > 0 {
            self.core.recalled(to, &unbegun, done, report);
            self.copy_queued(to, report);
        }
        done > 0
    }

    /// Has the transport do what waited for room behind them, too.
    fn copy_queued(&mut self, to: PeerId, report: &mut impl Report) {
        while let Some((id, access, part, local)) = self.core.next_short_op(to) {
            let copy = CopyOp {
                access,
                parts: core::slice::from_ref(&part),
                local: Local::User(&local),
                data: None,
            };
            // What fits a packet is never `Later`.
            if self.transport.copy(to, &copy, GetOwner::Read(id).token()) != Get::Done {
                return;
            }
            self.core.peer(to).queue.pop_front();
            self.core.end_outgoing(id, None, report);
        }
    }

    /// Whether the transport may copy this operation directly: it is long, or its target does not poll.
    pub(super) fn may_be_copied(&self, to: PeerId, len: usize) -> bool {
        len >= self.small_to(to) || self.core.peers.get(to as usize).is_some_and(|peer| peer.not_polling)
    }

    /// A short operation could not be copied, because the target polls again.
    #[cold]
    pub(super) fn polls_again(&mut self, to: PeerId) {
        self.core.peer(to).not_polling = false;
    }
}
