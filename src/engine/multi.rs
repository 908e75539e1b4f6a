//! Multi-receive (FI_MULTI_RECV): one buffer takes message after message, until too little of it is free.
//!
//! A message gets its piece of the buffer when it is matched, so pieces lie in matching order, but may be filled in any
//! order. The buffer is released with the last piece to be filled: after that nothing writes to it.

use super::op::{Completion, Context, Error, MessageKind, Recv, Report, Tell};
use super::receive::{MatchedRecv, PostedBody, PostedRecv, failed_recv, want};
use super::state::Core;
use crate::util::keep_in_registers;
use crate::util::slab::Id;
use crate::util::user::UserIov;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MultiState {
    /// Takes messages.
    Open,
    /// Takes no more: too little is free.
    Used,
    /// Takes no more: cancelled, or the peer it was directed to is gone.
    Closed(Error),
}

#[derive(Debug)]
pub(super) struct Multi {
    kind: MessageKind,
    tell: Tell,
    state: MultiState,
    body: UserIov,
    context: Context,
    used: usize,
    least: usize,
    /// Pieces that are being filled.
    pieces: usize,
    post: Option<Id>,
}

/// What to do after the completion of one piece.
pub(super) enum AfterPiece {
    Nothing,
    /// Release the buffer in this completion.
    Release,
    /// Report this completion too, which releases the buffer.
    Failed(Completion),
}

impl Core {
    /// Fills the buffer with unexpected messages, and posts it if there is room for more.
    #[inline(never)]
    pub(super) fn post_multi(&mut self, mut recv: Recv, least: usize, report: &mut impl Report) -> bool {
        let recv = keep_in_registers(&mut recv);
        let multi = self.multis.insert(Multi {
            kind: recv.kind,
            tell: recv.tell,
            state: MultiState::Open,
            body: recv.body,
            context: recv.context,
            used: 0,
            least: least.max(1),
            pieces: 0,
            post: None,
        });
        let (want, mut taken) = (want(recv), false);
        // Terminates: no packet is delivered during this loop, so no new messages come.
        while self
            .multis
            .get(multi)
            .is_some_and(|multi| multi.state == MultiState::Open)
        {
            let matcher = self.matcher(recv.kind);
            let Some(held) = matcher.find_unexpected(&want) else {
                break;
            };
            let Some(message) = matcher.take_unexpected(held) else {
                break;
            };
            let total = self.arrivals.get(message).map_or(0, |message| message.extent());
            let Some(matched) = self.carve(multi, total) else { break };
            self.attach(message, matched, report);
            taken = true;
        }
        if let Some(open) = self.multis.get(multi).filter(|multi| multi.state == MultiState::Open) {
            let post = PostedRecv {
                body: PostedBody::Multi(multi.place()),
                context: open.context,
                tell: open.tell,
            };
            let post = self.matcher(recv.kind).post_lasting(want, post);
            if let Some(open) = self.multis.get_mut(multi) {
                open.post = Some(post);
            }
        }
        taken
    }

    /// Takes the next piece of the buffer for a message; closes the buffer if too little is left.
    pub(super) fn carve(&mut self, id: Id, total: usize) -> Option<MatchedRecv> {
        let multi = self.multis.get_mut(id)?;
        let iov = multi.body.part(multi.used, total);
        let matched = MatchedRecv {
            iov,
            context: multi.context,
            tell: multi.tell,
            multi: Some(id),
            buf: multi.body.address(multi.used),
        };
        multi.used += iov.len();
        multi.pieces += 1;
        if multi.body.len() - multi.used < multi.least {
            multi.state = MultiState::Used;
            let (kind, post) = (multi.kind, multi.post.take());
            if let Some(post) = post {
                self.matcher(kind).unpost(post);
            }
        }
        Some(matched)
    }

    /// A piece has been filled, or its message has failed.
    pub(super) fn piece_done(&mut self, id: Id) -> AfterPiece {
        let Some(multi) = self.multis.get_mut(id) else {
            return AfterPiece::Nothing;
        };
        multi.pieces = multi.pieces.saturating_sub(1);
        if multi.pieces > 0 || multi.state == MultiState::Open {
            return AfterPiece::Nothing;
        }
        let failed = match multi.state {
            MultiState::Open | MultiState::Used => None,
            MultiState::Closed(error) => Some(multi.given_back(error)),
        };
        self.multis.remove(id);
        failed.map_or(AfterPiece::Release, AfterPiece::Failed)
    }

    /// The buffer, which was unposted, takes no more messages.
    pub(super) fn close_multi(&mut self, id: Id, error: Error, report: &mut impl Report) {
        let Some(multi) = self.multis.get_mut(id) else { return };
        multi.post = None;
        multi.state = MultiState::Closed(error);
        if multi.pieces == 0 {
            let given_back = multi.given_back(error);
            self.multis.remove(id);
            report.report(given_back);
        }
    }
}

impl Multi {
    fn given_back(&self, error: Error) -> Completion {
        Completion {
            tell: self.tell.aloud(),
            released: true,
            ..failed_recv(self.kind, self.context, error)
        }
    }
}
