//! Endpoints as members of collective groups: how addresses become members, and what a `Runner` sends and reports with.
//!
//! Knows nothing of plans and rounds, which are `api::collective`'s. Called by `abi::object`, as `Collectives`.
//!
//! - here: what all kinds of endpoint have in common, and plain endpoints;
//! - `contexts`: transmit contexts of a scalable endpoint, whose collectives receive context 0 carries;
//! - `shared_rx`: endpoints of a shared receive context.

pub(super) mod contexts;
mod shared_rx;

use super::engine_core::{CollectiveQueues, EndpointCore, Owners};
use super::host::EngineHost;
use super::state::{EndpointState, PendingCompletions};
use super::{Endpoint, EndpointTransport, OneEndpoint};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::collective::group::{Digest, GroupMember, is_group};
use crate::api::collective::run::{Awaiting, Finished, Hands, Membership, Runner};
use crate::api::collective::{CollectiveCall, Collectives, JoinCall};
use crate::api::cq::{Cq, Entry, ErrorEntry};
use crate::api::eq::Eq;
use crate::api::eq::event::ErrorEvent;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::progress::Progress;
use crate::engine::Engine;
use crate::engine::op::{Context, Error, Recv, Refused, Send, Tell};
use crate::engine::port::{PeerId, Transport};
use std::sync::Arc;

/// Addresses of sets, as `api::av_set` makes them.
fn is_set(addr: fi_addr_t) -> bool {
    addr >> 62 == 1
}

/// What a `Runner` sends and receives with: the endpoint's engine.
pub(super) struct RunnerHands<'a, T: Transport> {
    pub engine: &'a mut Engine<T>,
    pub pending: &'a mut PendingCompletions,
}

impl<T: Transport> Hands for RunnerHands<'_, T> {
    fn send(&mut self, send: &Send) -> core::result::Result<(), Refused> {
        self.engine.send(send, &mut self.pending)
    }

    fn recv(&mut self, recv: &Recv) -> core::result::Result<(), Refused> {
        self.engine.recv(recv, &mut self.pending)
    }

    fn losses(&self, peer: PeerId) -> (u32, Error) {
        self.engine.losses(peer)
    }

    fn withdraw(&mut self, context: Context) {
        self.engine.withdraw(context, &mut self.pending);
    }
}

/// Reports the completion of a collective, or of a join, to whoever began it.
pub(super) fn report_finished(finished: &Finished, queues: CollectiveQueues<'_>) {
    let CollectiveQueues { cq, eq } = queues;
    match (finished.awaiting, finished.failure) {
        (Awaiting::Operation { context, report }, failure) => {
            if let Some(cq) = cq {
                report_operation(cq, context, report, failure);
            }
        }
        (Awaiting::Join { fid, context }, failure) => {
            if let Some(eq) = eq {
                report_join(eq, fid, context, failure);
            }
        }
    }
}

/// Collectives are counted by no counter, as in the C library.
fn report_operation(cq: &Cq, context: Context, report: bool, failure: Option<Errno>) {
    match failure {
        Some(Errno(err)) => cq.post_error(ErrorEntry {
            context,
            flags: FI_COLLECTIVE,
            err,
            prov_errno: err,
            ..ErrorEntry::default()
        }),
        None if report => cq.post(&Entry {
            context,
            flags: FI_COLLECTIVE,
            ..Entry::default()
        }),
        None => {}
    }
}

fn report_join(eq: &Eq, fid: usize, context: Context, failure: Option<Errno>) {
    let _ = match failure {
        None => eq.post_entry(FI_JOIN_COMPLETE, fid, context, 0),
        Some(Errno(err)) => eq.post_error(ErrorEvent {
            fid,
            context,
            err,
            prov_errno: err,
            ..ErrorEvent::default()
        }),
    };
}

/// How to reach a member: the peer to send to, and the source that its messages match.
struct MemberRoute {
    to: PeerId,
    from: PeerId,
    losses: u32,
}

/// The endpoint that joins: its numbers in the runner, and its address, which the other members know.
struct Joiner<'a> {
    owner: usize,
    joiner: usize,
    own: &'a [u8],
}

/// What all members know without exchanging messages: a hash of it, and whether the program has agreed on the group
/// already (a communicator key).
fn common(call: &JoinCall, runner: &Runner) -> Result<(Digest, bool)> {
    let digest = Digest::default();
    match call.coll_addr {
        FI_ADDR_NOTAVAIL => Ok((digest.number(2).bytes(call.set.comm_key()), true)),
        addr if is_group(addr) => Ok((runner.identity(addr)?, false)),
        addr if is_set(addr) => Ok((digest.number(1), false)),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// The group that a call asks for. `route` finds a member by its fi_addr_t and the key of its address.
fn membership(
    call: &JoinCall,
    av: &Av,
    who: &Joiner<'_>,
    runner: &Runner,
    mut route: impl FnMut(fi_addr_t, &[u8]) -> Option<MemberRoute>,
) -> Result<Membership> {
    let (mut digest, agreed) = common(call, runner)?;
    let own = av.kind().key(who.own);
    let (mut members, mut rank) = (Vec::new(), None);
    for (place, addr) in call.set.members().into_iter().enumerate() {
        let address = av.address(addr).ok_or(Errno(FI_EINVAL))?;
        let key = av.kind().key(&address);
        let route = route(addr, key).ok_or(Errno(FI_EINVAL))?;
        digest = digest.bytes(key);
        if key == own {
            rank = rank.or(Some(place));
        }
        members.push(GroupMember {
            addr,
            peer: route.to,
            source: route.from,
            losses: route.losses,
            lost: None,
        });
    }
    let Some(rank) = rank else {
        log!(by av.provider(); Warn, EpCtrl, "fi_join_collective: the endpoint is not in the set");
        return Err(Errno(FI_EINVAL));
    };
    let count = members.len();
    log!(by av.provider(); Debug, EpCtrl, "collective group {digest:?}: {rank} of {count}");
    Ok(Membership {
        owner: who.owner,
        joiner: who.joiner,
        digest,
        rank,
        members,
        operations: call.set.operations(),
        agreed,
    })
}

/// -FI_EOPBADSTATE: not enabled; -FI_EOPNOTSUPP: not capable. An endpoint that `shares` its receives needs no FI_RECV.
fn can_collect(state: &EndpointState, shares: bool) -> Result<()> {
    state.must_be_enabled()?;
    let settings = &state.settings;
    if settings.collective && settings.can_send && (shares || settings.can_recv) {
        Ok(())
    } else {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

/// The endpoint's address vector; -FI_EINVAL for a set of another vector.
fn vector_of(state: &EndpointState, call: &JoinCall) -> Result<Arc<Av>> {
    let av = state.peers.av().ok_or(Errno(FI_ENOAV as i32))?;
    if Arc::ptr_eq(&av, call.set.av()) {
        Ok(av)
    } else {
        Err(Errno(FI_EINVAL))
    }
}

/// How many collectives the endpoint may have in flight, and whether this one's success is reported.
fn terms(state: &EndpointState, call: &CollectiveCall) -> (usize, bool) {
    let (_, tell) = state.send_flags(Flags::Call(call.flags));
    (state.settings.tx_size.max(1), tell == Tell::Queue)
}

/// The owner number of an endpoint's own groups; those of contexts follow.
pub(super) const OWN: usize = 0;

impl<O: Owners> EndpointCore<O> {
    /// Begins to join a group. `route` finds a member by its fi_addr_t and the key of its address: the peer to send to,
    /// and the one that its messages come from.
    fn join(
        &mut self,
        call: &JoinCall,
        av: &Av,
        who: &Joiner<'_>,
        mut route: impl FnMut(&mut O, &mut O::Transport, fi_addr_t, &[u8]) -> Option<(PeerId, PeerId)>,
    ) -> Result<()> {
        let (engine, owners) = (&mut self.engine, &mut self.owners);
        let membership = membership(call, av, who, &self.runner, |addr, key| {
            let (to, from) = route(owners, engine.transport_mut(), addr, key)?;
            let (losses, _) = engine.losses(to);
            Some(MemberRoute { to, from, losses })
        })?;
        let awaiting = Awaiting::Join {
            fid: call.fid,
            context: call.context,
        };
        self.runner.join(call.address, membership, awaiting)?;
        self.report();
        Ok(())
    }
}

impl<O: Owners> EngineHost<O> {
    fn begin_collective(&self, owner: usize, call: &CollectiveCall, most: usize, report: bool) -> Result<()> {
        let mut core = self.enter()?;
        core.runner.collective(owner, call, most, report)?;
        core.report();
        core.begun(self.domain.driver.as_ref());
        Ok(())
    }

    /// fi_close of a group: its join is reported no more.
    fn leave(&self, owner: usize, address: fi_addr_t, fid: usize) -> Result<()> {
        let Some(mut core) = self.try_enter() else {
            return Ok(());
        };
        core.runner.leave(address)?;
        if let Some(eq) = core.owners.collective_queues(owner).and_then(|queues| queues.eq) {
            drop(eq.forget(fid));
        }
        Ok(())
    }
}

impl<T: EndpointTransport> EndpointCore<OneEndpoint<T>> {
    pub(super) fn own_address(&self) -> Vec<u8> {
        let name = self.owners.name.clone();
        name.unwrap_or_else(|| self.engine.transport().local_address())
    }

    /// Joins for the endpoint itself, or for a context whose collectives it carries.
    fn join_as(&mut self, owner: usize, call: &JoinCall, av: &Av) -> Result<()> {
        let own = self.own_address();
        let who = Joiner {
            owner,
            joiner: OWN,
            own: &own,
        };
        self.join(call, av, &who, |one, transport, addr, _| {
            let peers = &mut one.state.peers;
            let peer = peers.peer::<T>(addr, |address| transport.peer(address))?;
            Some((peer, peer))
        })
    }
}

impl<T: EndpointTransport + 'static> Collectives for Endpoint<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let (most, report) = {
            let core = self.host.enter()?;
            can_collect(&core.owners.state, false)?;
            terms(&core.owners.state, call)
        };
        self.host.begin_collective(OWN, call, most, report)
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let me: Arc<dyn Progress> = self.clone();
        let mut core = self.host.enter()?;
        let state = &mut core.owners.state;
        can_collect(state, false)?;
        let av = vector_of(state, call)?;
        state.bindings.drive_by_eq(&me)?;
        core.join_as(OWN, call, &av)?;
        core.begun(self.host.domain.driver.as_ref());
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        self.host.leave(OWN, address, fid)
    }
}
