//! Receives: posting, matching with a message, completing and cancelling them.

use super::matching::{Receive, Taken, Want};
use super::message::{Delivery, Landing, Message};
use super::multi::AfterPiece;
use super::op::{CompletedOp, Completion, Context, Error, Failure, MessageKind, Recv, Report, Tell};
use super::port::PeerId;
use super::state::Core;
use crate::util::keep_in_registers;
use crate::util::slab::{Id, Slab};
use crate::util::user::{UserBuf, UserIov};

/// A posted receive. Small, as many may be posted, and each is written and read once.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedRecv {
    pub body: PostedBody,
    pub context: Context,
    pub tell: Tell,
}

/// Where the message of a posted receive goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum PostedBody {
    One(UserBuf),
    /// A place in `Core::posted_pieces`.
    Pieces(u32),
    /// A multi-receive, by its place in `Core::multis`, which knows all of it.
    Multi(u32),
}

impl Receive for PostedRecv {
    fn context(&self) -> usize {
        self.context
    }
}

/// The receive that a message was matched with: where it goes and how it is reported.
#[derive(Debug)]
pub(super) struct MatchedRecv {
    pub iov: UserIov,
    pub context: Context,
    pub tell: Tell,
    pub multi: Option<Id>,
    /// The address of `iov`, for a multi-receive; else 0.
    pub buf: usize,
}

impl MatchedRecv {
    pub(super) fn single(body: UserIov, context: Context, tell: Tell) -> MatchedRecv {
        MatchedRecv {
            iov: body,
            context,
            tell,
            multi: None,
            buf: 0,
        }
    }
}

#[inline]
pub(super) fn want(recv: &Recv) -> Want {
    let source = recv.from;
    match recv.kind {
        MessageKind::Untagged => Want {
            source,
            tag: 0,
            ignore: 0,
        },
        MessageKind::Tagged | MessageKind::Collective => Want {
            source,
            tag: recv.tag,
            ignore: recv.ignore,
        },
    }
}

/// The completion of a receive that fails without a message.
pub(super) fn failed_recv(kind: MessageKind, context: Context, error: Error) -> Completion {
    Completion {
        op: CompletedOp::Recv,
        kind,
        context,
        tell: Tell::Queue,
        len: 0,
        buf: 0,
        tag: 0,
        data: None,
        source: None,
        released: false,
        peeked: false,
        failure: Some(Failure { error, overflow: 0 }),
    }
}

/// The failure of a message that did not fit its receive, if any bytes are over.
#[inline]
pub(super) fn truncated(overflow: usize) -> Option<Failure> {
    let error = Error::Truncated;
    (overflow > 0).then_some(Failure { error, overflow })
}

#[inline(never)]
fn take_pieces(posted: &mut Slab<UserIov>, place: u32) -> UserIov {
    let name = posted.name(place);
    name.and_then(|name| posted.remove(name)).unwrap_or_default()
}

/// Copies into the pieces of a posted receive, which a message has matched. Says how much was copied.
#[inline(never)]
pub(super) fn fill_pieces(posted: &mut Slab<UserIov>, place: u32, body: &[u8]) -> usize {
    take_pieces(posted, place).write(0, body)
}

impl Core {
    /// Takes an unexpected message that matches, or posts the receive. Returns whether it took one.
    #[inline(always)]
    pub(super) fn receive(&mut self, recv: &Recv, report: &mut impl Report) -> bool {
        if let Some(least) = recv.multi {
            return self.post_multi(*recv, least, report);
        }
        let want = want(recv);
        if let Some(held) = self.matcher(recv.kind).find_unexpected(&want) {
            self.receive_held(held, *recv, report);
            return true;
        }
        let body = match recv.body.only() {
            Some(buffer) => PostedBody::One(buffer),
            None => self.keep_pieces(recv.body),
        };
        self.matcher(recv.kind).post(want, || PostedRecv {
            body,
            context: recv.context,
            tell: recv.tell,
        });
        false
    }

    /// By value, so that the caller's receive of one piece need not exist in memory.
    #[inline(never)]
    fn keep_pieces(&mut self, mut body: UserIov) -> PostedBody {
        let body = keep_in_registers(&mut body);
        if body.is_empty() {
            return PostedBody::One(UserBuf::default());
        }
        PostedBody::Pieces(self.posted_pieces.insert(*body).place())
    }

    #[inline(never)]
    fn receive_held(&mut self, held: Id, mut recv: Recv, report: &mut impl Report) {
        let recv = keep_in_registers(&mut recv);
        let matched = MatchedRecv::single(recv.body, recv.context, recv.tell);
        if let Some(message) = self.matcher(recv.kind).take_unexpected(held) {
            self.attach(message, matched, report);
        }
    }

    /// Takes the posted receive that a message matches; a multi-receive with room left stays posted.
    #[inline]
    pub(super) fn take_post(&mut self, kind: MessageKind, from: PeerId, tag: u64, total: usize) -> Option<MatchedRecv> {
        let source = self.source(from);
        let matcher = self.matcher(kind);
        let post = match matcher.take_posted(source, tag) {
            Taken::Nothing => return None,
            Taken::Removed(post) => post,
            Taken::Lasting(id) => *matcher.posted(id)?,
        };
        let iov = match post.body {
            PostedBody::One(buffer) => UserIov::one(buffer),
            PostedBody::Pieces(place) => take_pieces(&mut self.posted_pieces, place),
            PostedBody::Multi(place) => return self.carve(self.multis.name(place)?, total),
        };
        Some(MatchedRecv::single(iov, post.context, post.tell))
    }

    /// Reports a matched message to the application, and answers its sender if that waits.
    pub(super) fn report_message(&mut self, delivery: &Delivery, error: Option<Error>, report: &mut impl Report) {
        let after = match delivery.multi {
            Some(multi) => self.piece_done(multi),
            None => AfterPiece::Nothing,
        };
        let released = matches!(after, AfterPiece::Release);
        let overflow = delivery.total.saturating_sub(delivery.room);
        let failure = match error {
            Some(error) => Some(Failure { error, overflow: 0 }),
            None => truncated(overflow),
        };
        let len = delivery.total - overflow;
        report.report(Completion {
            op: CompletedOp::Recv,
            kind: delivery.kind,
            context: delivery.context,
            tell: if released { delivery.tell.aloud() } else { delivery.tell },
            len: if error.is_none() { len } else { 0 },
            buf: delivery.buf,
            tag: delivery.tag,
            data: delivery.data,
            source: Some(delivery.from),
            released,
            peeked: false,
            failure,
        });
        if error.is_none() {
            self.answer(delivery.from, delivery.answer);
        }
        if let AfterPiece::Failed(completion) = after {
            report.report(completion);
        }
    }

    /// Cancels all posted receives of the application, and discards the messages that wait for one. False if a message
    /// is being written into a receive, which cannot be stopped: then nothing was cancelled.
    #[cold]
    pub(super) fn give_up_receives(&mut self, report: &mut impl Report) -> bool {
        let filled = |message: &Message| message.kind != MessageKind::Collective && message.matched.is_some();
        let direct = |landing: &Landing| matches!(landing, Landing::Direct(to) if to.kind != MessageKind::Collective);
        if self.arrivals.iter().any(|(_, message)| filled(message)) || self.landings.iter().any(|(_, at)| direct(at)) {
            return false;
        }
        for kind in [MessageKind::Untagged, MessageKind::Tagged] {
            for id in self.matcher(kind).search_posted(|_| true) {
                self.withdraw(kind, id, Error::Canceled, report);
            }
            self.discard_all(kind, report);
        }
        let claims = core::mem::take(&mut self.claims);
        for claim in claims.into_values() {
            if let Some(message) = self.matcher(claim.kind).take_unexpected(claim.unexpected) {
                self.discard(message, report);
            }
        }
        true
    }

    fn discard_all(&mut self, kind: MessageKind, report: &mut impl Report) {
        while let Some(held) = self.matcher(kind).find_unexpected(&Want::ANY) {
            let Some(message) = self.matcher(kind).take_unexpected(held) else {
                return;
            };
            self.discard(message, report);
        }
    }

    /// Cancels a collective's posted receives with this context.
    #[cold]
    pub(super) fn withdraw_own(&mut self, context: Context, report: &mut impl Report) {
        let kind = MessageKind::Collective;
        while let Some(id) = self.matcher(kind).find_context(context, |_| true) {
            self.withdraw(kind, id, Error::Canceled, report);
        }
    }

    /// Ends a posted receive with an error.
    pub(super) fn withdraw(&mut self, kind: MessageKind, id: Id, error: Error, report: &mut impl Report) -> bool {
        let Some(post) = self.matcher(kind).unpost(id) else {
            return false;
        };
        match post.body {
            PostedBody::One(_) => {}
            PostedBody::Pieces(place) => self.posted_pieces.clear(place),
            PostedBody::Multi(place) => {
                if let Some(multi) = self.multis.name(place) {
                    self.close_multi(multi, error, report);
                }
                return true;
            }
        }
        report.report(Completion {
            tell: post.tell.aloud(),
            ..failed_recv(kind, post.context, error)
        });
        true
    }
}
