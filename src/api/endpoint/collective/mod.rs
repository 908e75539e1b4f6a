//! Endpoints as members of groups: how addresses become members, and engine and queues a run's hands and ears.
//!
//! What all kinds have in common, and plain endpoints; `contexts` and `shared_rx` have those that share an engine.

pub mod contexts;
mod shared_rx;

use super::state::{EndpointState, PendingCompletions};
use super::{Core, Endpoint, EndpointTransport};
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
use crate::engine::op::{Context, Recv, Refused, Send, Tell};
use crate::engine::port::{PeerId, Transport};
use std::sync::Arc;

/// Addresses of sets, as `api::av_set` makes them.
fn is_set(addr: fi_addr_t) -> bool {
    addr >> 62 == 1
}

struct RunnerHands<'a, T: Transport> {
    engine: &'a mut Engine<T>,
    pending: &'a mut PendingCompletions,
}

impl<T: Transport> Hands for RunnerHands<'_, T> {
    fn send(&mut self, send: &Send) -> core::result::Result<(), Refused> {
        self.engine.send(send, self.pending)
    }

    fn recv(&mut self, recv: &Recv) -> core::result::Result<(), Refused> {
        self.engine.recv(recv, self.pending)
    }

    fn deaths(&self, peer: PeerId) -> u32 {
        self.engine.deaths(peer)
    }

    fn withdraw(&mut self, context: Context) {
        self.engine.withdraw(context, self.pending);
    }
}

/// Tells whoever began it that something is over.
fn report_finished(finished: &Finished, cq: Option<&Arc<Cq>>, eq: Option<&Arc<Eq>>) {
    match (finished.end, finished.failure) {
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

/// No counter counts them, as in the C library.
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

/// Where a member is: whom to send to, and whom its messages come from.
struct MemberRoute {
    to: PeerId,
    from: PeerId,
    deaths: u32,
}

/// Who joins: as the runner knows it, and by which address the others do.
struct Joiner<'a> {
    owner: usize,
    joiner: usize,
    own: &'a [u8],
}

/// What the members have in common before they have told each other anything.
fn common(call: &JoinCall, runner: &Runner) -> Result<(Digest, bool)> {
    let digest = Digest::default();
    match call.coll_addr {
        FI_ADDR_NOTAVAIL => Ok((digest.number(2).bytes(call.set.comm_key()), true)),
        addr if is_group(addr) => Ok((runner.identity(addr)?, false)),
        addr if is_set(addr) => Ok((digest.number(1), false)),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// The group that a call asks for. `way` finds a member by its fi_addr_t and the key of its address.
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
            deaths: route.deaths,
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

/// -FI_EOPBADSTATE, -FI_EOPNOTSUPP: it cannot now, or never. One that shares its receives can receive all the same.
fn can_collect(state: &EndpointState, shares: bool) -> Result<()> {
    state.must_be_enabled()?;
    let settings = &state.settings;
    if settings.collective && settings.can_send && (shares || settings.can_recv) {
        Ok(())
    } else {
        Err(Errno(FI_EOPNOTSUPP))
    }
}

/// The endpoint's address vector, of which the set must be.
fn vector_of(state: &EndpointState, call: &JoinCall) -> Result<Arc<Av>> {
    let av = state.peers.av().ok_or(Errno(FI_ENOAV as i32))?;
    if Arc::ptr_eq(&av, call.set.av()) {
        Ok(av)
    } else {
        Err(Errno(FI_EINVAL))
    }
}

/// How many of its collectives may go on, and whether this one's end is to be reported.
fn terms(state: &EndpointState, call: &CollectiveCall) -> (usize, bool) {
    let (_, tell) = state.send_flags(Flags::Call(call.flags));
    (state.settings.tx_size.max(1), tell == Tell::Queue)
}

/// The owner of an endpoint's own groups; its contexts' have others.
const OWN: usize = 0;

impl<T: EndpointTransport> Core<T> {
    /// Lets collectives go on, and tells of those that are over.
    #[cold]
    pub(super) fn report_collectives(&mut self) {
        while self.runner.is_ready() {
            self.runner.advance(&mut RunnerHands {
                engine: &mut self.engine,
                pending: &mut self.pending,
            });
            self.report_pending();
            while let Some(finished) = self.runner.finished() {
                self.report_finished(&finished);
            }
        }
    }

    fn report_finished(&self, finished: &Finished) {
        match self.listeners.get(&finished.owner) {
            Some(listener) => report_finished(finished, listener.cq.as_ref(), Some(&listener.eq)),
            None if finished.owner == OWN => {
                let bindings = &self.state.bindings;
                report_finished(finished, bindings.tx_queue(), bindings.eq());
            }
            None => {}
        }
    }

    pub(super) fn own_address(&self) -> Vec<u8> {
        let name = self.name.clone();
        name.unwrap_or_else(|| self.engine.transport().local_address())
    }

    fn enter(&mut self, owner: usize, call: &JoinCall, av: &Av) -> Result<()> {
        let own = self.own_address();
        let who = Joiner {
            owner,
            joiner: OWN,
            own: &own,
        };
        let (engine, state) = (&mut self.engine, &mut self.state);
        let membership = membership(call, av, &who, &self.runner, |addr, _| {
            let transport = engine.transport_mut();
            let peer = state.peers.peer::<T>(addr, |address| transport.peer(address))?;
            Some(MemberRoute {
                to: peer,
                from: peer,
                deaths: engine.deaths(peer),
            })
        })?;
        let end = Awaiting::Join {
            fid: call.fid,
            context: call.context,
        };
        self.runner.join(call.address, membership, end)?;
        self.report();
        Ok(())
    }
}

impl<T: EndpointTransport + 'static> Endpoint<T> {
    fn begin_collective(&self, owner: usize, call: &CollectiveCall, most: usize, report: bool) -> Result<()> {
        let mut core = self.enter()?;
        let core = &mut *core;
        core.runner.collective(owner, call, most, report)?;
        core.report();
        if core.deep_sleep || core.state.driven.is_some() {
            self.begun(core);
        }
        Ok(())
    }
}

impl<T: EndpointTransport + 'static> Collectives for Endpoint<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let (most, report) = {
            let core = self.enter()?;
            can_collect(&core.state, false)?;
            terms(&core.state, call)
        };
        self.begin_collective(OWN, call, most, report)
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let me: Arc<dyn Progress> = self.clone();
        let mut core = self.enter()?;
        let core = &mut *core;
        can_collect(&core.state, false)?;
        let av = vector_of(&core.state, call)?;
        core.state.bindings.drive_by_eq(&me)?;
        core.enter(OWN, call, &av)?;
        if core.state.driven.is_some() {
            self.begun(core);
        }
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        let Some(mut core) = self.core.enter() else {
            return Ok(());
        };
        core.runner.leave(address)?;
        if let Some(eq) = core.state.bindings.eq() {
            drop(eq.forget(fid));
        }
        Ok(())
    }
}
