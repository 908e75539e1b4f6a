//! FI_PEEK, FI_CLAIM and FI_DISCARD: reporting, reserving and dropping unexpected messages without receiving them.

use super::op::{Completion, Error, Failure, Peek, Recv, Refused, Report};
use super::receive::{MatchedRecv, failed_recv, want};
use super::state::{Claim, Core};
use crate::util::slab::Id;

impl Core {
    /// Whether the peek will find no message.
    pub(super) fn lacks(&mut self, peek: Peek, recv: &Recv) -> bool {
        match peek {
            Peek::Only | Peek::Claim | Peek::Discard => self.matcher(recv.kind).find_unexpected(&want(recv)).is_none(),
            Peek::ReceiveClaimed | Peek::DiscardClaimed | Peek::Arrived => false,
        }
    }

    /// Returns whether a message was received or dropped, so that there may be answers to push.
    pub(super) fn peek(&mut self, peek: Peek, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        match peek {
            Peek::Only | Peek::Claim | Peek::Discard => self.find(peek, recv, report),
            Peek::ReceiveClaimed | Peek::DiscardClaimed => self.claimed(peek, recv, report),
            Peek::Arrived => self.receive_arrived(recv, report),
        }
    }

    /// A multi-receive is refused, as it would wait for more.
    fn receive_arrived(&mut self, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        let has_come = self.matcher(recv.kind).find_unexpected(&want(recv)).is_some();
        if !has_come || recv.multi.is_some() {
            return Err(Refused::NotConnected);
        }
        self.receive(recv, report);
        Ok(true)
    }

    fn find(&mut self, peek: Peek, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        if peek == Peek::Claim && self.claims.contains_key(&recv.context) {
            return Err(Refused::Invalid);
        }
        let matcher = self.matcher(recv.kind);
        let Some(held) = matcher.find_unexpected(&want(recv)) else {
            report.report(peek_failed(recv, Error::NoMessage));
            return Ok(false);
        };
        let found = matcher.unexpected_mut(held).copied();
        let seen = self.seen(recv, found);
        // The answer is in the queue whether a message was found or not.
        report.report(Completion {
            tell: seen.tell.aloud(),
            ..seen
        });
        match peek {
            Peek::Claim => {
                self.matcher(recv.kind).claim(held);
                let kind = recv.kind;
                self.claims.insert(
                    recv.context,
                    Claim {
                        kind,
                        unexpected: held,
                        lost: None,
                    },
                );
            }
            Peek::Discard => {
                self.matcher(recv.kind).take_unexpected(held);
                if let Some(message) = found {
                    self.discard(message, report);
                }
                return Ok(true);
            }
            Peek::Only | Peek::ReceiveClaimed | Peek::DiscardClaimed | Peek::Arrived => {}
        }
        Ok(false)
    }

    /// Receives or drops the message that was reserved with this context.
    fn claimed(&mut self, peek: Peek, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        let claim = self.claims.remove(&recv.context).ok_or(Refused::Invalid)?;
        let Some(message) = self.matcher(claim.kind).take_unexpected(claim.unexpected) else {
            // Its sender was lost before all of it had come.
            let error = claim.lost.unwrap_or(Error::PeerGone);
            report.report(failed_recv(claim.kind, recv.context, error));
            return Ok(false);
        };
        if peek == Peek::DiscardClaimed {
            let seen = self.seen(recv, Some(message));
            report.report(Completion { peeked: false, ..seen });
            self.discard(message, report);
        } else {
            let matched = MatchedRecv::single(recv.body, recv.context, recv.tell);
            self.attach(message, matched, report);
        }
        Ok(true)
    }

    fn seen(&self, recv: &Recv, message: Option<Id>) -> Completion {
        let Some(message) = message.and_then(|id| self.arrivals.get(id)) else {
            return peek_failed(recv, Error::NoMessage);
        };
        Completion {
            tell: recv.tell,
            len: message.total,
            tag: message.tag,
            data: message.data,
            source: Some(message.from),
            failure: None,
            ..peek_failed(recv, Error::NoMessage)
        }
    }
}

fn peek_failed(recv: &Recv, error: Error) -> Completion {
    Completion {
        tag: recv.tag,
        peeked: true,
        failure: Some(Failure { error, overflow: 0 }),
        ..failed_recv(recv.kind, recv.context, error)
    }
}
