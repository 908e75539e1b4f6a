//! Receives: posted, matched, told their end, or cancelled.

use super::matching::{Receive, Want};
use super::message::{Delivery, Landing, Message};
use super::multi::After;
use super::op::{Completion, Context, Ended, Error, Failure, Kind, Recv, Report, Tell};
use super::port::PeerId;
use super::state::Core;
use crate::util::keep_in_registers;
use crate::util::slab::Id;
use crate::util::user::UserIov;

/// A posted receive.
#[derive(Debug)]
pub(super) struct Post {
    pub body: UserIov,
    pub context: Context,
    pub from: Option<PeerId>,
    pub tell: Tell,
    /// A multi-receive; then the rest of this is only a copy.
    pub multi: Option<Id>,
}

impl Receive for Post {
    fn context(&self) -> usize {
        self.context
    }
}

/// Where a message goes that has met its receive.
#[derive(Debug)]
pub(super) struct Target {
    pub iov: UserIov,
    pub context: Context,
    pub tell: Tell,
    pub multi: Option<Id>,
    /// Where `iov` begins, for a multi-receive.
    pub buf: usize,
}

impl Target {
    pub fn single(body: UserIov, context: Context, tell: Tell) -> Target {
        Target {
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
    let source = recv.from.map(u64::from);
    match recv.kind {
        Kind::Message => Want {
            source,
            tag: 0,
            ignore: 0,
        },
        Kind::Tagged | Kind::Collective => Want {
            source,
            tag: recv.tag,
            ignore: recv.ignore,
        },
    }
}

/// A receive that ends without a message.
pub(super) fn failed(kind: Kind, context: Context, error: Error) -> Completion {
    Completion {
        ended: Ended::Recv,
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

/// A message that was longer than its receive.
#[inline]
pub(super) fn truncated(overflow: usize) -> Option<Failure> {
    let error = Error::Truncated;
    (overflow > 0).then_some(Failure { error, overflow })
}

impl Core {
    /// Takes a held message, or posts. Says whether a message was taken.
    #[inline(always)]
    pub fn receive(&mut self, recv: &Recv, report: &mut impl Report) -> bool {
        if let Some(least) = recv.multi {
            return self.receive_many(*recv, least, report);
        }
        let want = want(recv);
        let matcher = self.matcher(recv.kind);
        if let Some(held) = matcher.find_held(&want) {
            self.receive_held(held, *recv, report);
            return true;
        }
        matcher.post(want, || Post {
            body: recv.body,
            context: recv.context,
            from: recv.from,
            tell: recv.tell,
            multi: None,
        });
        false
    }

    #[inline(never)]
    fn receive_held(&mut self, held: Id, mut recv: Recv, report: &mut impl Report) {
        let recv = keep_in_registers(&mut recv);
        let target = Target::single(recv.body, recv.context, recv.tell);
        if let Some(message) = self.matcher(recv.kind).release(held) {
            self.attach(message, target, report);
        }
    }

    /// The posted receive that a message goes to, taken away unless more can follow.
    #[inline]
    pub fn take_post(&mut self, kind: Kind, from: PeerId, tag: u64, total: usize) -> Option<Target> {
        let source = self.source(from);
        let matcher = self.matcher(kind);
        let id = matcher.find_posted(u64::from(source), tag)?;
        if let Some(multi) = matcher.posted_mut(id)?.multi {
            return self.carve(multi, total);
        }
        let post = matcher.unpost(id)?;
        Some(Target::single(post.body, post.context, post.tell))
    }

    /// Tells the application, and the sender if it wants to know.
    pub fn deliver(&mut self, delivery: &Delivery, error: Option<Error>, report: &mut impl Report) {
        let after = match delivery.multi {
            Some(multi) => self.piece_done(multi),
            None => After::Nothing,
        };
        let released = matches!(after, After::Release);
        let overflow = delivery.total.saturating_sub(delivery.room);
        let failure = match error {
            Some(error) => Some(Failure { error, overflow: 0 }),
            None => truncated(overflow),
        };
        let len = delivery.total - overflow;
        report.report(Completion {
            ended: Ended::Recv,
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
        if let After::Failed(completion) = after {
            report.report(completion);
        }
    }

    /// Cancels the oldest receive of the application's with this context that has not met a message.
    pub fn cancel(&mut self, context: Context, report: &mut impl Report) -> bool {
        [Kind::Message, Kind::Tagged].into_iter().any(|kind| {
            let found = self.matcher(kind).find_context(context, |post| post.tell != Tell::Own);
            found.is_some_and(|id| self.withdraw(kind, id, Error::Canceled, report))
        })
    }

    /// Ends all receives of the application's that have not met a message. False, and nothing was done: a message is on
    /// its way into its receive, and nobody can stop it.
    #[cold]
    pub fn give_up_receives(&mut self, report: &mut impl Report) -> bool {
        let filled = |message: &Message| message.kind != Kind::Collective && message.target.is_some();
        let direct = |landing: &Landing| matches!(landing, Landing::Direct(to) if to.kind != Kind::Collective);
        if self.arrivals.iter().any(|(_, message)| filled(message)) || self.landings.iter().any(|(_, at)| direct(at)) {
            return false;
        }
        for kind in [Kind::Message, Kind::Tagged] {
            for id in self.matcher(kind).search_posted(|_| true) {
                self.withdraw(kind, id, Error::Canceled, report);
            }
        }
        true
    }

    /// Ends the receives of a collective with this context that have not met a message.
    #[cold]
    pub fn withdraw_own(&mut self, context: Context, report: &mut impl Report) {
        let kind = Kind::Collective;
        for id in self.matcher(kind).search_posted(|post| post.context == context) {
            self.withdraw(kind, id, Error::Canceled, report);
        }
    }

    /// Ends a posted receive that has not met a message.
    pub fn withdraw(&mut self, kind: Kind, id: Id, error: Error, report: &mut impl Report) -> bool {
        let Some(post) = self.matcher(kind).unpost(id) else {
            return false;
        };
        match post.multi {
            Some(multi) => self.close_multi(multi, error, report),
            None => report.report(Completion {
                tell: post.tell.aloud(),
                ..failed(kind, post.context, error)
            }),
        }
        true
    }
}
