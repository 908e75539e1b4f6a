//! Multi-receive (FI_MULTI_RECV): one buffer that takes message after message, until little is left of it.
//!
//! A message gets its piece when it is matched, so pieces lie in matching order; they may be filled in any order. The
//! buffer goes back to the application with the last piece to be filled, so that "released" means nobody writes to it.

use super::op::{Completion, Context, Error, Kind, Recv, Report, Tell};
use super::receive::{Post, Target, failed, want};
use super::state::Core;
use crate::util::keep_in_registers;
use crate::util::slab::Id;
use crate::util::user::UserIov;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Takes messages.
    Open,
    /// Takes no more: used up.
    Used,
    /// Takes no more: cancelled, or its only peer is gone.
    Closed(Error),
}

#[derive(Debug)]
pub(super) struct Multi {
    kind: Kind,
    tell: Tell,
    state: State,
    body: UserIov,
    context: Context,
    used: usize,
    least: usize,
    /// Pieces that are being filled.
    pieces: usize,
    post: Option<Id>,
}

/// What follows when a piece has been filled.
pub(super) enum After {
    Nothing,
    /// The buffer goes back with this message.
    Release,
    /// The buffer goes back with this, after the message.
    Failed(Completion),
}

impl Core {
    /// Fills the buffer with held messages, and posts it if there is room for more.
    #[inline(never)]
    pub fn receive_many(&mut self, mut recv: Recv, least: usize, report: &mut impl Report) -> bool {
        let recv = keep_in_registers(&mut recv);
        let multi = self.multis.insert(Multi {
            kind: recv.kind,
            tell: recv.tell,
            state: State::Open,
            body: recv.body,
            context: recv.context,
            used: 0,
            least: least.max(1),
            pieces: 0,
            post: None,
        });
        let (want, mut taken) = (want(recv), false);
        // Only what is held now: reports go to the caller's queue, and nothing new comes in between.
        while self.multis.get(multi).is_some_and(|multi| multi.state == State::Open) {
            let matcher = self.matcher(recv.kind);
            let Some(held) = matcher.find_held(&want) else { break };
            let Some(message) = matcher.release(held) else { break };
            let total = self.arrivals.get(message).map_or(0, |message| message.extent());
            let Some(target) = self.carve(multi, total) else { break };
            self.attach(message, target, report);
            taken = true;
        }
        if let Some(open) = self.multis.get(multi).filter(|multi| multi.state == State::Open) {
            let post = Post {
                body: open.body,
                context: open.context,
                from: recv.from,
                tell: open.tell,
                multi: Some(multi),
            };
            let post = self.matcher(recv.kind).post(want, || post);
            if let Some(open) = self.multis.get_mut(multi) {
                open.post = Some(post);
            }
        }
        taken
    }

    /// The next piece of the buffer.
    pub fn carve(&mut self, id: Id, total: usize) -> Option<Target> {
        let multi = self.multis.get_mut(id)?;
        let iov = multi.body.part(multi.used, total);
        let target = Target {
            iov,
            context: multi.context,
            tell: multi.tell,
            multi: Some(id),
            buf: multi.body.address(multi.used),
        };
        multi.used += iov.len();
        multi.pieces += 1;
        if multi.body.len() - multi.used < multi.least {
            multi.state = State::Used;
            let (kind, post) = (multi.kind, multi.post.take());
            if let Some(post) = post {
                self.matcher(kind).unpost(post);
            }
        }
        Some(target)
    }

    /// A piece has been filled, or never will be.
    pub fn piece_done(&mut self, id: Id) -> After {
        let Some(multi) = self.multis.get_mut(id) else {
            return After::Nothing;
        };
        multi.pieces = multi.pieces.saturating_sub(1);
        if multi.pieces > 0 || multi.state == State::Open {
            return After::Nothing;
        }
        let (kind, context, state) = (multi.kind, multi.context, multi.state);
        self.multis.remove(id);
        match state {
            State::Open | State::Used => After::Release,
            State::Closed(error) => After::Failed(given_back(kind, context, error)),
        }
    }

    /// The buffer takes no more messages. It has been unposted.
    pub fn close_multi(&mut self, id: Id, error: Error, report: &mut impl Report) {
        let Some(multi) = self.multis.get_mut(id) else { return };
        multi.post = None;
        multi.state = State::Closed(error);
        if multi.pieces == 0 {
            let (kind, context, tell) = (multi.kind, multi.context, multi.tell.aloud());
            self.multis.remove(id);
            report.report(Completion {
                tell,
                ..given_back(kind, context, error)
            });
        }
    }
}

fn given_back(kind: Kind, context: Context, error: Error) -> Completion {
    Completion {
        released: true,
        ..failed(kind, context, error)
    }
}
