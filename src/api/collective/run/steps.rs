//! One operation of a group: its steps, and the sends and receives that they are made of.

use super::*;

/// How far an operation has come.
pub(super) enum Pace {
    /// It goes on when a send or receive of it has ended.
    Waits,
    /// The engine has no room for the next send or receive.
    Full,
    Done,
}

impl Run {
    /// Whether this is a join: a member that is not there yet may still come. In any other operation a missing member
    /// is lost.
    pub(super) fn joins(&self) -> bool {
        matches!(self.awaiting, Awaiting::Join { .. })
    }

    /// Does what can be done now: what found no room before, and then one step of the plan after another.
    pub(super) fn go_on(&mut self, id: Id, group: &mut Group, parts: &mut Slab<Part>, hands: &mut impl Hands) -> Pace {
        while let Some(transfer) = self.again.pop() {
            let member = group.members.get_mut(transfer.with);
            match self.transfer(id, member, transfer, parts, hands) {
                Ok(()) => self.open += 1,
                Err(Stop::Full) => {
                    self.again.push(transfer);
                    return Pace::Full;
                }
                Err(Stop::Lost(error)) => self.failure = self.failure.or(Some(error)),
            }
        }
        while let Some(step) = self.plan.steps.get(self.at).copied() {
            let transfer = match step {
                Step::Wait if self.open > 0 => return Pace::Waits,
                Step::Wait | Step::Copy { .. } | Step::Combine { .. } => {
                    self.work(step);
                    self.at += 1;
                    continue;
                }
                Step::Send { to, span } => Transfer {
                    with: to,
                    span,
                    sends: true,
                },
                Step::Recv { from, span } => Transfer {
                    with: from,
                    span,
                    sends: false,
                },
            };
            let member = group.members.get_mut(transfer.with);
            match self.transfer(id, member, transfer, parts, hands) {
                Ok(()) => self.open += 1,
                Err(Stop::Full) => return Pace::Full,
                Err(Stop::Lost(error)) => self.failure = self.failure.or(Some(error)),
            }
            self.at += 1;
        }
        if self.open > 0 { Pace::Waits } else { Pace::Done }
    }

    fn memory(&self, span: Span) -> UserIov {
        let whole = match span.buffer {
            Buffer::Input => self.input,
            Buffer::Result => self.result,
            Buffer::Scratch => self.scratch.lend(),
        };
        whole.part(span.at, span.len)
    }

    /// Does a step between local buffers.
    fn work(&mut self, step: Step) {
        if self.failure.is_some() {
            return;
        }
        match step {
            Step::Copy { from, into } => {
                self.memory(from).copy_to(&self.memory(into));
            }
            Step::Combine { from, into } => {
                let (from, into) = (self.memory(from), self.memory(into));
                match self.reduce {
                    Some((Combining::Apply(op), datatype)) => {
                        if combine_iov(op, datatype, &into, &from).is_err() {
                            self.failure = Some(FI_EOPNOTSUPP);
                        }
                    }
                    Some((Combining::Replace, _)) => {
                        from.copy_to(&into);
                    }
                    Some((Combining::Keep, _)) | None => {}
                }
            }
            Step::Wait | Step::Send { .. } | Step::Recv { .. } => {}
        }
    }

    /// Begins a send or receive.
    fn transfer(
        &self,
        id: Id,
        member: Option<&mut GroupMember>,
        transfer: Transfer,
        parts: &mut Slab<Part>,
        hands: &mut impl Hands,
    ) -> core::result::Result<(), Stop> {
        let Transfer { with, span, sends } = transfer;
        let member = member.ok_or(Stop::Lost(FI_EINVAL))?;
        let (losses, why) = hands.losses(member.peer);
        if member.lost.is_none() && losses != member.losses {
            member.lost = Some(errno(why));
        }
        if let Some(error) = member.lost {
            return Err(Stop::Lost(error));
        }
        let part = parts.insert(Part { run: id, transfer });
        let context = part.bits() as Context;
        let memory = self.memory(span);
        let asked = if sends {
            hands.send(&self.send(member.peer, with, &memory, context))
        } else {
            hands.recv(&self.recv(member.source, &memory, context))
        };
        asked.map_err(|refused| {
            parts.remove(part);
            let error = match refused {
                Refused::Again => return Stop::Full,
                Refused::Unreachable(why) if self.joins() && why != Unreached::Denied => return Stop::Full,
                Refused::Unreachable(why) => errno(Error::Unreachable(why)),
                _ => FI_EIO,
            };
            member.lost = Some(error);
            Stop::Lost(error)
        })
    }

    /// The tag names the receiver's rank, as members may share an engine.
    fn tag_for(&self, receiver: Rank) -> u64 {
        self.tag ^ (receiver as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn send(&self, to: PeerId, rank: Rank, memory: &UserIov, context: Context) -> Send {
        Send {
            kind: engine::op::MessageKind::Collective,
            to,
            tag: self.tag_for(rank),
            data: self.failure.map(|error| error as u64),
            body: match self.failure {
                Some(_) => UserIov::NONE,
                None => *memory,
            },
            inject: false,
            level: CompletionLevel::Inject,
            fence: false,
            context,
            tell: Tell::Own,
        }
    }

    fn recv(&self, from: PeerId, memory: &UserIov, context: Context) -> Recv {
        Recv {
            kind: engine::op::MessageKind::Collective,
            from: Some(from),
            tag: self.tag_for(self.rank),
            ignore: 0,
            body: *memory,
            multi: None,
            context,
            tell: Tell::Own,
        }
    }
}
