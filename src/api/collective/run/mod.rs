//! Carries plans out: the groups of an endpoint, or of those that share an engine, and their operations in flight.
//!
//! Every send and receive of a plan is an operation of the engine, of a kind that no application sees. Its completion
//! comes back here (`ended`), and the last one of a round lets the plan go on (`advance`). What the engine has no room
//! for is tried again when the endpoint makes progress.
//!
//! After a failure an operation goes on to its end without doing its work: it sends empty messages that carry the error
//! in place of those that it still owes, and receives what is sent to it. So every member that a failure concerns hears
//! of it, nobody waits for ever, and the buffers are the caller's again when the completion is reported. Later
//! operations of the group do not wait for a member that has died.
//!
//! Knows neither queues nor addresses. Called by `api::endpoint`.

mod steps;

use super::group::{Digest, Group, GroupMember, GroupState};
use super::plan::{Buffer, Plan, Rank, Span, Step, Team};
use super::request::{Buffers, Combining, ElementKind, buffers};
use super::{CollectiveCall, plan};
use crate::abi::types::*;
use crate::api::endpoint::errno;
use crate::api::errno::{Errno, Result};
use crate::engine;
use crate::engine::op::{Completion, CompletionLevel, Context, Error, Recv, Refused, Send, Tell, Unreached};
use crate::engine::port::PeerId;
use crate::mem::atomic::{Datatype, combine_iov};
use crate::util::slab::{Id, Slab};
use crate::util::user::{Scratch, UserIov};
use std::collections::{HashMap, VecDeque};
use steps::Pace;

/// What a run sends and receives with: an endpoint's engine.
pub trait Hands {
    fn send(&mut self, send: &Send) -> core::result::Result<(), Refused>;
    fn recv(&mut self, recv: &Recv) -> core::result::Result<(), Refused>;
    /// How often a peer was lost, and why the last time.
    fn losses(&self, peer: PeerId) -> (u32, Error);
    /// Ends a receive that no message has matched; its completion is reported as usual.
    fn withdraw(&mut self, context: Context);
}

/// What is reported when a run is over: FI_JOIN_COMPLETE for a group, or a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaiting {
    Join { fid: usize, context: Context },
    Operation { context: Context, report: bool },
}

/// A run that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub owner: usize,
    pub awaiting: Awaiting,
    pub failure: Option<Errno>,
}

/// A group that an endpoint wants to join.
pub struct Membership {
    /// The endpoint that joins, among those that share the runner.
    pub owner: usize,
    /// The endpoint as the other members see it; its joins of the same members are counted.
    pub joiner: usize,
    /// A hash of what all members know.
    pub digest: Digest,
    pub rank: Rank,
    pub members: Vec<GroupMember>,
    pub operations: u64,
    /// The application has agreed on the group: no messages are needed.
    pub agreed: bool,
}

struct Run {
    owner: usize,
    /// Its owner is being closed: the run goes no further.
    abandoned: bool,
    group: fi_addr_t,
    /// The rank of its owner.
    rank: Rank,
    tag: u64,
    plan: Plan,
    /// The next step of the plan.
    at: usize,
    /// Sends and receives in flight.
    open: usize,
    /// Transfers that the engine refused with -FI_EAGAIN, to be tried again.
    again: Vec<Transfer>,
    input: UserIov,
    result: UserIov,
    scratch: Scratch,
    reduce: Option<(Combining, Datatype)>,
    failure: Option<i32>,
    awaiting: Awaiting,
}

/// A send or receive in flight.
struct Part {
    run: Id,
    transfer: Transfer,
}

#[derive(Default)]
pub struct Runner {
    groups: HashMap<fi_addr_t, Group>,
    /// How often an endpoint has joined the same members.
    joins: HashMap<(usize, Digest), u64>,
    runs: Slab<Run>,
    parts: Slab<Part>,
    /// Runs whose round is over.
    ready: VecDeque<Id>,
    /// Runs with transfers to try again.
    stalled: VecDeque<Id>,
    finished: VecDeque<Finished>,
}

/// A step that sends to or receives from another member.
#[derive(Clone, Copy)]
struct Transfer {
    with: Rank,
    span: Span,
    sends: bool,
}

/// Why a transfer could not begin.
enum Stop {
    Full,
    /// The member is lost; the errno says why.
    Lost(i32),
}

impl Runner {
    /// Whether a peer is a member of a group.
    pub fn names(&self, peer: PeerId) -> bool {
        let mut members = self.groups.values().flat_map(|group| &group.members);
        members.any(|member| member.peer == peer || member.source == peer)
    }

    /// Joins a group. The join completes when all members have joined; at once if the application has `agreed` with
    /// them.
    pub fn join(&mut self, address: fi_addr_t, membership: Membership, awaiting: Awaiting) -> Result<()> {
        let Membership {
            rank, members, owner, ..
        } = membership;
        let team = Team::new(rank, members.len());
        let times = self.joins.entry((membership.joiner, membership.digest)).or_default();
        let identity = membership.digest.number(*times);
        *times += 1;
        let plan = if membership.agreed {
            Plan::default()
        } else {
            Plan::new(plan::Operation::Barrier, team, 0, 0)
        };
        let group = Group::new(owner, identity, rank, members, membership.operations);
        self.groups.insert(address, group);
        self.begin(address, plan, Buffers::default(), None, awaiting)
    }

    /// The identity of a joined group, from which groups made of it derive theirs.
    pub fn identity(&self, address: fi_addr_t) -> Result<Digest> {
        let group = self
            .groups
            .get(&address)
            .filter(|group| group.state == GroupState::Joined);
        group.map(|group| group.identity).ok_or(Errno(FI_EINVAL))
    }

    /// Forgets a group.
    pub fn leave(&mut self, address: fi_addr_t) -> Result<()> {
        match self.groups.get(&address) {
            Some(group) if group.running > 0 => Err(Errno(FI_EBUSY)),
            _ => {
                self.groups.remove(&address);
                Ok(())
            }
        }
    }

    /// Begins an operation for an owner, of which `most` may be in flight.
    pub fn collective(&mut self, owner: usize, call: &CollectiveCall, most: usize, report: bool) -> Result<()> {
        let group = self.groups.get(&call.coll_addr).filter(|group| group.owner == owner);
        let group = group.ok_or(Errno(FI_EINVAL))?;
        let ElementKind { element, reduce } = call.asked.kind()?;
        if group.state != GroupState::Joined {
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        if group.operations != 0 && call.asked.set_flag().is_none_or(|flag| group.operations & flag == 0) {
            return Err(Errno(FI_EOPNOTSUPP));
        }
        let team = Team::new(group.rank, group.members.len());
        let operation = call.asked.operation(|addr| group.rank_of(addr))?;
        let buffers = buffers(operation, team, element, call.count, &call.input, &call.result)?;
        if self.runs.len() >= most && self.runs_of(owner).count() >= most {
            return Err(Errno(FI_EAGAIN));
        }
        let plan = Plan::new(operation, team, buffers.count, element);
        let awaiting = Awaiting::Operation {
            context: call.context,
            report,
        };
        self.begin(call.coll_addr, plan, buffers, reduce, awaiting)
    }

    fn begin(
        &mut self,
        address: fi_addr_t,
        plan: Plan,
        buffers: Buffers,
        reduce: Option<(Combining, Datatype)>,
        awaiting: Awaiting,
    ) -> Result<()> {
        let scratch = Scratch::new(plan.scratch).ok_or(Errno(FI_ENOMEM))?;
        let group = self.groups.get_mut(&address).ok_or(Errno(FI_EINVAL))?;
        group.running += 1;
        let run = self.runs.insert(Run {
            owner: group.owner,
            abandoned: false,
            group: address,
            rank: group.rank,
            tag: group.next_tag(),
            plan,
            at: 0,
            open: 0,
            again: Vec::new(),
            input: buffers.input,
            result: buffers.result,
            scratch,
            reduce,
            failure: None,
            awaiting,
        });
        self.ready.push_back(run);
        Ok(())
    }

    fn runs_of(&self, owner: usize) -> impl Iterator<Item = Id> {
        let its = self.runs.iter().filter(move |(_, run)| run.owner == owner);
        its.map(|(id, _)| id)
    }

    /// Gives up the runs of an owner that is being closed. Report the receives that this withdraws before calling
    /// `forget`.
    pub fn abandon(&mut self, owner: usize, hands: &mut impl Hands) {
        let runs: Vec<Id> = self.runs_of(owner).collect();
        for id in &runs {
            if let Some(run) = self.runs.get_mut(*id) {
                run.abandoned = true;
            }
        }
        for (id, part) in self.parts.iter() {
            if !part.transfer.sends && runs.contains(&part.run) {
                hands.withdraw(id.bits() as Context);
            }
        }
    }

    /// Drops what an abandoned owner has here. -FI_EBUSY while the engine still uses memory of one of its runs.
    pub fn forget(&mut self, owner: usize) -> Result<()> {
        let runs: Vec<Id> = self.runs_of(owner).collect();
        let open = |id: &Id| self.runs.get(*id).is_some_and(|run| run.open > 0);
        if runs.iter().any(open) {
            return Err(Errno(FI_EBUSY));
        }
        for id in runs {
            self.runs.remove(id);
        }
        self.groups.retain(|_, group| group.owner != owner);
        self.joins.retain(|(joiner, _), _| *joiner != owner);
        Ok(())
    }

    /// Takes the completion of a send or receive of a run.
    pub fn ended(&mut self, end: &Completion) {
        let Some(part) = self.parts.remove(Id::from_bits(end.context as u64)) else {
            return;
        };
        let Some(run) = self.runs.get_mut(part.run) else { return };
        let Transfer { with, span, sends } = part.transfer;
        run.open -= 1;
        let error = end.failure.map(|failure| failure.error);
        if run.joins() && matches!(error, Some(Error::Unreachable(why)) if why != Unreached::Denied) {
            run.again.push(part.transfer);
            return self.stalled.push_back(part.run);
        }
        let failure = match error {
            Some(error) => Some(errno(error)),
            None if sends => None,
            None if end.data.is_some() => Some(sent_error(end.data)),
            None => (end.len != span.len).then_some(FI_ETRUNC as i32),
        };
        run.failure = run.failure.or(failure);
        if run.open == 0 {
            self.ready.push_back(part.run);
        }
        let lost = error.is_some_and(|error| error != Error::Truncated);
        let member = self
            .groups
            .get_mut(&run.group)
            .and_then(|group| group.members.get_mut(with));
        if let Some(member) = member.filter(|_| lost) {
            member.lost = member.lost.or(failure);
        }
    }

    /// Whether `advance` has something to do.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.finished.is_empty()
    }

    /// Whether transfers are to be tried again.
    pub fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// Tries again what the engine refused: it may have room.
    #[inline]
    pub fn retry(&mut self) {
        if self.is_stalled() {
            self.let_all_try();
        }
    }

    #[cold]
    fn let_all_try(&mut self) {
        self.ready.append(&mut self.stalled);
    }

    /// Runs in flight.
    pub fn running(&self) -> usize {
        self.runs.len()
    }

    /// Takes the next run that is over.
    pub fn finished(&mut self) -> Option<Finished> {
        self.finished.pop_front()
    }

    /// Lets every run whose round is over go on as far as it can.
    pub fn advance(&mut self, hands: &mut impl Hands) {
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { return };
            self.advance_one(id, hands);
        }
    }

    fn advance_one(&mut self, id: Id, hands: &mut impl Hands) {
        let Some(run) = self.runs.get_mut(id).filter(|run| !run.abandoned) else {
            return;
        };
        let Some(group) = self.groups.get_mut(&run.group) else {
            return;
        };
        match run.go_on(id, group, &mut self.parts, hands) {
            Pace::Waits => return,
            Pace::Full => return self.stalled.push_back(id),
            Pace::Done => {}
        }
        let (owner, awaiting, failure, joins) = (run.owner, run.awaiting, run.failure.map(Errno), run.joins());
        group.running -= 1;
        if joins {
            group.state = if failure.is_none() {
                GroupState::Joined
            } else {
                GroupState::Failed
            };
        }
        self.runs.remove(id);
        self.finished.push_back(Finished {
            owner,
            awaiting,
            failure,
        });
    }
}

/// The error that another member has sent.
fn sent_error(data: Option<u64>) -> i32 {
    let known = data.and_then(|data| i32::try_from(data).ok());
    known.filter(|error| (1..4096).contains(error)).unwrap_or(FI_EIO)
}

#[cfg(test)]
mod tests;
