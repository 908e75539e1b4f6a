//! Short operations whose target does not look: they are taken back from the transport and done without the target.
//!
//! A short read or write travels as a packet, since a target that looks is quicker than the kernel. Whoever waits for such
//! operations comes by here every few polls, and sees whether their target has answered or looked since. If not, what it
//! has not begun is taken back (`Transport::recall`). From then on short operations are copied by the kernel at once,
//! until the target is seen to look again (`Peer::absent`).
//!
//! Only what is both safe and of use is decided here: whether a packet is begun is the transport's to know. Called by
//! `endpoint` in every poll with such operations, and before a caller sleeps.

use super::endpoint::Engine;
use super::op::{RemotePart, Report};
use super::outgoing::{LocalBuffer, Outgoing, Stage};
use super::port::{PeerId, Recall, Transport};
use super::rma::{OutgoingOp, RemoteSide};
use super::state::Core;
use super::wire::{Header, Packet, flag};
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// Polls between two looks at those who owe an answer: several times what a target at work takes.
const POLLS_PER_CHECK: u32 = 64;
/// Looks after which a caller may sleep. A target that has not looked between two does not.
const CHECKS_BEFORE_SLEEP: u32 = 3;

/// What is seen of a target that owes answers to short operations.
#[derive(Debug, Default)]
pub(super) struct AnswerWatch {
    /// It is in `Core::asked`.
    pub listed: bool,
    /// Answers that came.
    pub heard: u32,
    /// `heard` and the transport's `looks` when last looked at.
    before: (u32, u64),
    /// Looks since the last operation began, and how many of them found nothing new.
    checks: u32,
    still: u32,
}

impl AnswerWatch {
    /// An operation is on its way. True: its target is to be put into `Core::asked`.
    #[inline]
    pub fn begin(&mut self) -> bool {
        self.checks = 0;
        self.still = 0;
        !core::mem::replace(&mut self.listed, true)
    }
}

/// The packets that a target has not begun, as far as they concern us.
#[derive(Default)]
struct Unbegun {
    /// Those whose end is told by count (`Acked`).
    shorts: usize,
    recallable: Vec<Recallable>,
}

/// One that may be done without the target.
#[derive(Clone, Copy)]
enum Recallable {
    /// So many shorts are before it.
    Write(usize),
    Read(Id),
}

impl Core {
    /// A short operation is on its way to a peer, which is to answer.
    #[inline]
    pub fn await_answer(&mut self, to: PeerId) {
        if self.peer(to).rma_mut().watch.begin() {
            self.awaiting_answers.push(to);
        }
    }

    /// Whether a peer owes an answer still. Looks at its `Watch`.
    fn owes(&mut self, to: PeerId) -> Option<&mut AnswerWatch> {
        let peer = self.peers.get_mut(to as usize)?;
        let owes = peer.unfinished > 0;
        let watch = &mut peer.rma.as_mut()?.watch;
        watch.listed = owes;
        owes.then_some(watch)
    }

    /// What may become of a packet of ours that its target has not begun.
    fn judge(&self, to: PeerId, header: &Header, len: usize, unbegun: &mut Unbegun) -> Recall {
        match header.packet {
            Packet::Write => {
                let before = unbegun.shorts;
                unbegun.shorts += 1;
                if header.flags != 0 {
                    return Recall::Stop;
                }
                unbegun.recallable.push(Recallable::Write(before));
                Recall::Write(RemotePart {
                    addr: header.tag,
                    len,
                    key: header.data,
                })
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
            // Operations on memory keep their order among each other, and to messages.
            Packet::FetchAtomic | Packet::CompareAtomic | Packet::Offer => Recall::Stop,
            Packet::Eager | Packet::First | Packet::Segment | Packet::Rendezvous => Recall::Stop,
            // What answers the peer's own messages and operations.
            Packet::Send | Packet::Done | Packet::Credit | Packet::Got | Packet::Acked => Recall::Leave,
            Packet::Reply | Packet::Exposed => Recall::Leave,
        }
    }

    /// The read of one piece that a packet asked for.
    fn short_read(&self, to: PeerId, header: &Header) -> Option<(Id, RemotePart, UserIov)> {
        let id = self.sends.find_short(header.id).filter(|_| header.flags == 0)?;
        let send: &Outgoing = self.sends.get(id)?;
        let waits = send.to == to && send.stage == Stage::Sent && !send.long && send.at == 0;
        let (OutgoingOp::Read(RemoteSide::One { key }), LocalBuffer::User(local)) = (&send.op, &send.local) else {
            return None;
        };
        let part = RemotePart {
            addr: send.tag,
            len: send.len,
            key: *key,
        };
        waits.then_some((id, part, *local))
    }

    /// The first `done` of these have been done.
    fn recalled(&mut self, to: PeerId, unbegun: &Unbegun, done: usize, report: &mut impl Report) {
        let mut taken = 0;
        for op in unbegun.recallable.iter().take(done) {
            match op {
                Recallable::Read(id) => self.end_send(*id, None, report),
                Recallable::Write(before) => {
                    let peer = self.peer(to);
                    let unacked = &mut peer.rma_mut().unacked;
                    // The last ones of the queue are those that were not begun; of them some are gone already.
                    let first = (unacked.len() + taken).checked_sub(unbegun.shorts);
                    let place = first.and_then(|first| (first + before).checked_sub(taken));
                    let Some(short) = place.and_then(|place| unacked.remove(place)) else {
                        return;
                    };
                    taken += 1;
                    peer.unfinished = peer.unfinished.saturating_sub(1);
                    self.unacked = self.unacked.saturating_sub(1);
                    report.report(short.end(to, None));
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
    /// To be called in a poll while peers owe answers to short operations.
    #[inline]
    pub(super) fn poll_awaited(&mut self, report: &mut impl Report) {
        self.core.polls_since_check += 1;
        if self.core.polls_since_check >= POLLS_PER_CHECK {
            self.check_awaited(report);
        }
    }

    /// To be called before a caller sleeps. False: what it waits for may be done without its target, so it is to call again.
    pub fn may_sleep(&mut self, report: &mut impl Report) -> bool {
        self.core.awaiting_answers.is_empty() || self.check_awaited(report)
    }

    /// Looks at all that owe an answer. Says whether that was done often enough.
    #[cold]
    fn check_awaited(&mut self, report: &mut impl Report) -> bool {
        self.core.polls_since_check = 0;
        let mut enough = true;
        for place in (0..self.core.awaiting_answers.len()).rev() {
            let Some(to) = self.core.awaiting_answers.get(place).copied() else {
                continue;
            };
            let Some(watch) = self.core.owes(to) else {
                self.core.awaiting_answers.swap_remove(place);
                continue;
            };
            watch.checks = watch.checks.saturating_add(1);
            enough &= watch.checks >= CHECKS_BEFORE_SLEEP;
            // The word that says how often it looks is on its own line there, which is left alone while it answers.
            let mark = if watch.heard == watch.before.0 {
                self.transport.poll_mark(to)
            } else {
                watch.before.1
            };
            let now = (watch.heard, mark);
            if now != watch.before {
                watch.before = now;
                watch.still = 0;
                continue;
            }
            watch.still = watch.still.saturating_add(1);
            // What could not be taken back is tried again at a slowing pace.
            if watch.still.is_power_of_two() {
                enough &= !self.recall(to, report);
            }
        }
        enough
    }

    /// Does without a peer what it has not begun. Says whether anything has ended.
    fn recall(&mut self, to: PeerId, report: &mut impl Report) -> bool {
        let mut unbegun = Unbegun::default();
        let core = &self.core;
        let judge = |header: &Header, len: usize| core.judge(to, header, len, &mut unbegun);
        let done = self.transport.recall(to, judge).unwrap_or(0);
        if done > 0 {
            self.core.recalled(to, &unbegun, done, report);
        }
        done > 0
    }

    /// Whether the kernel may copy this operation: what is long, and what is short while its target does not look.
    pub(super) fn may_be_copied(&self, to: PeerId, len: usize) -> bool {
        len >= self.core.small || self.core.peers.get(to as usize).is_some_and(|peer| peer.not_polling)
    }

    /// A short one could not be copied: its target looks again.
    #[cold]
    pub(super) fn polls_again(&mut self, to: PeerId) {
        self.core.peer(to).not_polling = false;
    }
}
