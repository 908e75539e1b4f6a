//! What an endpoint has posted to send, in order: which requests tell of their success, and when the doorbell is rung.
//!
//! A device completes the requests of a queue pair in order, so one that tells of its success tells of those before it
//! too. Where nobody hears of a success only one request in some is signalled, so that their places in the queue come
//! back. A failure is always told, of each request.

use super::endpoint::{NOTHING, Posted, VerbsEndpoint};
use super::memory::Use;
use super::seam::Link;
use crate::engine::op::{
    self, Access, CompletedOp, Completion, CompletionLevel, Error, MessageKind, PostHint, Refused,
};
use crate::sys::rdma::{Opcode, Piece, Request, Work};
use crate::util::user::{IOV_LIMIT, UserIov};
use std::collections::VecDeque;

/// Places of a send queue that no operation gets: one, for the mark at its end.
pub const MARK_ROOM: u32 = 1;

/// A list is given to the device when it has so many requests, whoever says that more will come.
const LIST: usize = 16;

/// One request in how many parts of the queue is signalled at least.
const PARTS: u32 = 4;

#[derive(Default)]
pub(super) struct Sends {
    /// All that have not completed, those that are held last.
    posted: VecDeque<Posted>,
    /// Not given to the device yet: more was to follow at once.
    held: Vec<Held>,
    /// How many requests were the last ones and are not signalled.
    quiet: u32,
    /// Those that were held and that the device did not take then.
    lost: Vec<(Posted, Error)>,
    /// The mark could not be posted.
    unmarked: bool,
}

#[derive(Clone, Copy)]
struct Held {
    work: Work,
    pieces: [Piece; IOV_LIMIT],
    count: usize,
}

impl Held {
    fn request(&self) -> Request<'_> {
        Request {
            work: self.work,
            pieces: &self.pieces[..self.count],
        }
    }
}

impl Sends {
    pub(super) fn len(&self) -> usize {
        self.posted.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.posted.is_empty()
    }

    pub(super) fn posted(&mut self) -> &mut VecDeque<Posted> {
        &mut self.posted
    }

    /// Takes out all, of which nothing will be heard.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Posted> + '_ {
        self.held.clear();
        self.posted.drain(..)
    }

    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether the queue ended without a mark, so that it is not known how much of it the device has done.
    pub(super) fn end_is_unknown(&self) -> bool {
        self.unmarked
    }

    /// Takes out a held request that the device refuses.
    fn lose(&mut self, held: &Held, error: Error) {
        if let Some(at) = self.posted.iter().rposition(|posted| posted.id == held.work.id) {
            self.lost.extend(self.posted.remove(at).map(|posted| (posted, error)));
        }
        // What was before it may end the queue now.
        self.quiet += 1;
    }
}

impl<L: Link> VerbsEndpoint<L> {
    pub fn send(&mut self, send: &op::Send, hint: PostHint) -> Result<(), Refused> {
        if send.kind != MessageKind::Untagged || send.level == CompletionLevel::Delivery {
            return Err(Refused::Unsupported);
        }
        let work = self.work(Opcode::Send, send.data, send.fence, send.inject, &send.body)?;
        let posted = Posted {
            id: work.id,
            op: CompletedOp::Send,
            context: send.context,
            tell: send.tell,
            len: send.body.len(),
        };
        self.start(work, &send.body, posted, hold(hint, send.inject))
    }

    pub fn rma(&mut self, rma: &op::Rma, hint: PostHint) -> Result<(), Refused> {
        let Some(remote) = rma.remote.only() else {
            return Err(Refused::Invalid);
        };
        let key = u32::try_from(remote.key).map_err(|_| Refused::Invalid)?;
        let (opcode, inject) = match rma.access {
            Access::Read => (Opcode::Read, false),
            Access::Write => (Opcode::Write, rma.inject),
        };
        let work = Work {
            remote: (remote.addr, key),
            ..self.work(opcode, rma.data, rma.fence, inject, &rma.local)?
        };
        let posted = Posted {
            id: work.id,
            op: CompletedOp::Rma(rma.access),
            context: rma.context,
            tell: rma.tell,
            len: rma.local.len(),
        };
        self.start(work, &rma.local, posted, hold(hint, inject))
    }

    pub(super) fn work(
        &mut self,
        opcode: Opcode,
        data: Option<u64>,
        fence: bool,
        inject: bool,
        body: &UserIov,
    ) -> Result<Work, Refused> {
        let inline = matches!(opcode, Opcode::Send | Opcode::Write) && body.len() <= self.inline;
        if inject && !inline {
            return Err(Refused::TooLong);
        }
        if self.sends.len() >= self.config.sizes.sends as usize {
            self.ring();
            return Err(Refused::Again);
        }
        Ok(Work {
            id: self.new_id(false),
            opcode,
            // A card carries four bytes.
            data: data.map(|data| data as u32),
            remote: (0, 0),
            signaled: true,
            inline,
            fence,
        })
    }

    pub(super) fn start(&mut self, work: Work, body: &UserIov, posted: Posted, hint: PostHint) -> Result<(), Refused> {
        let purpose = match work.opcode {
            _ if work.inline => Use::Within,
            Opcode::Send | Opcode::Write => Use::Reads,
            Opcode::Read | Opcode::FetchAdd(_) | Opcode::CompareSwap { .. } => Use::Writes,
        };
        let (pieces, count) = self.pieces(body, self.config.sizes.send_pieces, purpose)?;
        let most_quiet = self.config.sizes.sends / PARTS;
        let signaled = !hint.silent || self.sends.quiet + 1 >= most_quiet;
        let held = Held {
            work: Work { signaled, ..work },
            pieces,
            count,
        };
        if hint.more || !self.sends.held.is_empty() {
            self.sends.held.push(held);
        } else {
            // SAFETY: an operation's memory stays the application's until its completion, as whoever made the `UserIov`
            // promised; with FI_INJECT it is inline.
            let given = unsafe { self.link.post_sends(&[held.request()]) };
            given.map_err(|stopped| self.not_posted(&stopped.why))?;
        }
        self.sends.posted.push_back(posted);
        self.sends.quiet = if signaled { 0 } else { self.sends.quiet + 1 };
        if !hint.more || self.sends.held.len() >= LIST {
            self.ring();
        }
        Ok(())
    }

    /// Gives the device what is held. What it has no room for stays.
    pub(super) fn ring(&mut self) {
        while !self.sends.held.is_empty() {
            let held = core::mem::take(&mut self.sends.held);
            let requests: Vec<Request<'_>> = held.iter().map(Held::request).collect();
            // SAFETY: as in `start`.
            let Err(stopped) = (unsafe { self.link.post_sends(&requests) }) else {
                return;
            };
            let left = held.get(stopped.taken..).unwrap_or_default();
            match (self.not_posted(&stopped.why), left.split_first()) {
                (Refused::Again, _) | (_, None) => {
                    self.sends.held = left.to_vec();
                    return;
                }
                (_, Some((refused, rest))) => {
                    self.sends.lose(refused, Error::OutOfRange);
                    self.sends.held = rest.to_vec();
                }
            }
        }
    }

    pub(super) fn report_lost(&mut self, report: &mut dyn FnMut(Completion)) {
        for (posted, error) in self.sends.lost.drain(..) {
            report(posted.completion(&NOTHING, Some(error)));
        }
    }

    /// The connection has ended, and all that the device has not done comes back, but nothing tells of what it has done
    /// without a signal. So a request that says so goes behind it, as it comes back too.
    pub(super) fn mark_end(&mut self) {
        self.ring();
        for held in core::mem::take(&mut self.sends.held) {
            self.sends.lose(&held, Error::PeerGone);
        }
        if self.sends.quiet == 0 {
            return;
        }
        let work = Work {
            id: self.new_id(false),
            opcode: Opcode::Send,
            data: None,
            remote: (0, 0),
            signaled: true,
            inline: false,
            fence: false,
        };
        // SAFETY: it has no memory.
        let marked = unsafe { self.link.post_sends(&[Request { work, pieces: &[] }]) };
        self.sends.unmarked = marked.is_err();
        self.sends.quiet = 0;
    }
}

/// What is injected must be gone when the call returns.
pub(super) fn hold(hint: PostHint, inject: bool) -> PostHint {
    PostHint {
        more: hint.more && !inject,
        ..hint
    }
}
