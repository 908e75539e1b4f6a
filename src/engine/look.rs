//! Looking at held messages without receiving them, and putting them aside (FI_PEEK, FI_CLAIM, FI_DISCARD).

use super::op::{Completion, Error, Failure, Look, Recv, Refused, Report};
use super::receive::{Target, failed, want};
use super::state::{Claim, Core};
use crate::util::slab::Id;

impl Core {
    /// Whether the look is for a message that is not here.
    pub fn lacks(&mut self, look: Look, recv: &Recv) -> bool {
        match look {
            Look::Peek | Look::Claim | Look::Discard => self.matcher(recv.kind).find_held(&want(recv)).is_none(),
            Look::Take | Look::Drop => false,
        }
    }

    /// Says whether a message was taken or dropped, so that there may be something to answer.
    pub fn look(&mut self, look: Look, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        match look {
            Look::Peek | Look::Claim | Look::Discard => self.find(look, recv, report),
            Look::Take | Look::Drop => self.claimed(look, recv, report),
        }
    }

    fn find(&mut self, look: Look, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        if look == Look::Claim && self.claims.contains_key(&recv.context) {
            return Err(Refused::Invalid);
        }
        let matcher = self.matcher(recv.kind);
        let Some(held) = matcher.find_held(&want(recv)) else {
            report.report(nothing(recv, Error::NoMessage));
            return Ok(false);
        };
        let found = matcher.held_mut(held).copied();
        report.report(self.seen(recv, found));
        match look {
            Look::Claim => {
                self.matcher(recv.kind).claim(held);
                let kind = recv.kind;
                self.claims.insert(recv.context, Claim { kind, held });
            }
            Look::Discard => {
                self.matcher(recv.kind).release(held);
                if let Some(message) = found {
                    self.discard(message, report);
                }
                return Ok(true);
            }
            Look::Peek | Look::Take | Look::Drop => {}
        }
        Ok(false)
    }

    /// The message put aside for this context.
    fn claimed(&mut self, look: Look, recv: &Recv, report: &mut impl Report) -> Result<bool, Refused> {
        let claim = self.claims.remove(&recv.context).ok_or(Refused::Invalid)?;
        let Some(message) = self.matcher(claim.kind).release(claim.held) else {
            // It had not all come when its sender went.
            report.report(failed(claim.kind, recv.context, Error::PeerGone));
            return Ok(false);
        };
        if look == Look::Drop {
            let seen = self.seen(recv, Some(message));
            report.report(Completion { peeked: false, ..seen });
            self.discard(message, report);
        } else {
            let target = Target::single(recv.body, recv.context, recv.tell);
            self.attach(message, target, report);
        }
        Ok(true)
    }

    fn seen(&self, recv: &Recv, message: Option<Id>) -> Completion {
        let Some(message) = message.and_then(|id| self.arrivals.get(id)) else {
            return nothing(recv, Error::NoMessage);
        };
        Completion {
            tell: recv.tell,
            len: message.total,
            tag: message.tag,
            data: message.data,
            source: Some(message.from),
            failure: None,
            ..nothing(recv, Error::NoMessage)
        }
    }
}

fn nothing(recv: &Recv, error: Error) -> Completion {
    Completion {
        tag: recv.tag,
        peeked: true,
        failure: Some(Failure { error, overflow: 0 }),
        ..failed(recv.kind, recv.context, error)
    }
}
