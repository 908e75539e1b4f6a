//! Endpoints that give their operations straight to the transport, without the engine: a card matches receives itself.
//!
//! Queues, counters, flags and connections are those of every endpoint (`state`, `connection`); only what posts and
//! what completes is the transport's. For messages, RMA and the card's own atomics; collectives are not for it. An
//! endpoint without a connection (FI_EP_DGRAM) has an address vector, and its transport numbers the peers. Knows no
//! card. Opened by `abi::object::direct`.
//!
//! - `shared`: receives for several endpoints;
//! - `no_engine`: the engine's transport that such an endpoint does not have.

mod no_engine;
mod shared;

use super::connection::Connects;
use super::ops::{ByThread, EndpointOps, OnConnection, Sleeper, TransportFacts, lacks_srx, start, stop};
use super::state::{EndpointState, StateGuard, refused};
use crate::abi::types::*;
use crate::api::deferred::Deferred;
use crate::api::domain::{Domain, unused};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::messaging::{Flags, Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::engine::op::{self, AtomicOp, CompletedOp, Completion, OperationOf, Peek, PostHint, Refused, Tell};
use crate::engine::port::PeerId;
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use core::any::Any;
pub use no_engine::NoEngine;
pub use shared::{CardReceives, DirectReceives, DirectSharedRx};
use std::os::fd::RawFd;
use std::sync::Arc;

/// What a card does for one endpoint. None of the calls waits; an operation that was taken is completed by `poll`,
/// once.
pub trait DirectTransport: core::marker::Send + 'static {
    fn local_address(&self) -> Vec<u8>;

    fn send(&mut self, send: &op::Send, hint: PostHint) -> Result<(), Refused>;

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused>;

    fn rma(&mut self, rma: &op::Rma, hint: PostHint) -> Result<(), Refused>;

    /// All atomics that the card does, each on one element.
    fn amos(&self) -> &'static [AtomicOp] {
        &[]
    }

    /// One of `amos`, or any other, which is refused.
    fn atomic(&mut self, _: &op::Atomic, _: PostHint) -> Result<(), Refused> {
        Err(Refused::Unsupported)
    }

    /// Has it receive what is posted to a shared context, which may be another card's. Before it connects.
    fn share(&mut self, _: &CardReceives) -> Result<()> {
        Err(Errno(FI_EINVAL))
    }

    /// Reports what has completed.
    fn poll(&mut self, report: &mut dyn FnMut(Completion));

    /// Sends and one-sided operations that have not completed, and receives.
    fn unfinished(&self) -> (usize, usize);

    /// Before a sleep: what comes from then on makes `wake_fd` readable, and what has come is false.
    fn arm(&mut self) -> bool {
        false
    }

    /// The same as long as the endpoint lives. None: it must be polled.
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    /// Its connection, if the endpoint is one of FI_EP_MSG. `Failed` and `Closed` come after the poll that has ended
    /// all operations.
    fn connection(&mut self) -> Option<&mut dyn Connects>;

    /// The number of the peer at an address of the vector; None: nothing can be sent there. Not asked of connected
    /// ones.
    fn peer(&mut self, _: &[u8]) -> Option<PeerId> {
        None
    }

    /// The address of a peer that it has numbered.
    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        None
    }
}

/// An endpoint over such a transport.
pub struct DirectEndpoint<D: DirectTransport> {
    domain: Arc<Domain>,
    deferred: Arc<Deferred>,
    core: Closable<Core<D>>,
}

struct Core<D> {
    transport: D,
    state: EndpointState,
    shared: Shared,
    /// Completions of a poll whose source must be looked up, and those after them.
    unnamed: Vec<Completion>,
}

/// Whether an endpoint's receives are those of a shared context.
enum Shared {
    No,
    /// ep_attr.rx_ctx_cnt is FI_SHARED_CONTEXT, and none is bound yet.
    Wanted,
    Bound(Arc<DirectSharedRx>),
}

impl<D: DirectTransport> DirectEndpoint<D> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: D) -> Arc<DirectEndpoint<D>> {
        domain.users.acquire();
        let mut state = EndpointState::new(domain.provider, info);
        state.amos = Some(transport.amos());
        if info.rx.as_ref().is_some_and(|rx| rx.mode & FI_MSG_PREFIX != 0) {
            state
                .bindings
                .behind_a_prefix(info.ep.as_ref().map_or(0, |ep| ep.msg_prefix_size));
        }
        let wanted = info.ep.as_ref().is_some_and(|ep| ep.rx_ctx_cnt == FI_SHARED_CONTEXT);
        let core = Core {
            transport,
            state,
            shared: if wanted { Shared::Wanted } else { Shared::No },
            unnamed: Vec::new(),
        };
        Arc::new(DirectEndpoint {
            domain: domain.clone(),
            deferred: domain.deferred.clone(),
            core: Closable::new(core, domain.locked),
        })
    }

    fn enter(&self) -> Result<Entered<'_, Core<D>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    fn let_go(&self) {
        let shared = self.core.enter().map(|core| core.shared.context());
        if self.core.close() {
            self.domain.users.release();
            if let Some(shared) = shared.flatten() {
                shared.release();
            }
        }
    }
}

impl<D: DirectTransport> Drop for DirectEndpoint<D> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Shared {
    fn context(&self) -> Option<Arc<DirectSharedRx>> {
        match self {
            Shared::Bound(shared) => Some(shared.clone()),
            Shared::No | Shared::Wanted => None,
        }
    }
}

impl<D: DirectTransport> Core<D> {
    fn hint(&self, flags: Flags, op: CompletedOp, tell: Tell) -> PostHint {
        PostHint {
            more: matches!(flags, Flags::Call(flags) if flags & FI_MORE != 0),
            silent: !self.state.bindings.hears(op, tell),
        }
    }

    fn progress(&mut self) {
        self.take_completions(|_| true);
        if let Some(connection) = self.transport.connection() {
            self.state.hear_all(connection);
        }
    }

    fn take_completions(&mut self, is_told: impl Fn(&Completion) -> bool) {
        let (transport, state, unnamed) = (&mut self.transport, &mut self.state, &mut self.unnamed);
        transport.poll(&mut |end| match end.source {
            _ if !is_told(&end) => {}
            None if unnamed.is_empty() => state.report::<NoEngine>(&end, |_| None),
            _ => unnamed.push(end),
        });
        for end in unnamed.drain(..) {
            state.report::<NoEngine>(&end, |peer| transport.address_of(peer));
        }
    }

    /// Ends the connection of an endpoint that is closed, and reports the receives of a shared context that it has
    /// taken: they are in no other queue. Of its own operations, which end with it, nothing is told.
    fn leave_shared(&mut self) {
        if matches!(self.shared, Shared::Bound(_)) {
            if let Some(connection) = self.transport.connection() {
                connection.shutdown();
            }
            self.take_completions(|end| {
                !matches!(end.op, CompletedOp::Send | CompletedOp::Rma(_) | CompletedOp::Atomic(_))
            });
        }
    }
}

impl<D: DirectTransport> EndpointOps for Arc<DirectEndpoint<D>> {
    fn base(&self) -> Arc<dyn EndpointOps> {
        Arc::new(self.clone())
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn lock_state(&self) -> StateGuard<'_> {
        let state = |core| Entered::map(core, |core: &mut Core<D>| &mut core.state);
        StateGuard::of(self.core.enter().map(state), self.domain.provider)
    }

    #[inline(always)]
    fn transport(&self) -> TransportFacts {
        TransportFacts::of::<NoEngine>()
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        Arc::new(ByThread(self.clone()))
    }

    fn local_address(&self) -> Vec<u8> {
        let core = self.core.enter();
        core.map(|core| core.transport.local_address()).unwrap_or_default()
    }

    fn with_connection(&self, use_it: &mut OnConnection) -> Result<()> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let connection = core.transport.connection().ok_or(Errno(FI_ENOSYS))?;
        let result = use_it(connection, &mut core.state);
        core.progress();
        drop(guard);
        self.deferred.run();
        result
    }

    /// A card cannot take a receive back.
    fn cancel(&self, _: OperationOf) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn unfinished(&self) -> (usize, usize) {
        let core = self.core.enter();
        core.map_or((0, 0), |core| core.transport.unfinished())
    }

    /// An endpoint that was made for a shared context must be bound to one.
    fn bind_srx(&self, context: &(dyn Any + Send + Sync)) -> Result<()> {
        let shared: &Arc<DirectSharedRx> = context.downcast_ref().ok_or(Errno(FI_EINVAL))?;
        let mut guard = self.enter()?;
        let core = &mut *guard;
        core.state.not_enabled()?;
        if !Arc::ptr_eq(&self.domain, shared.domain()) || !matches!(core.shared, Shared::Wanted) {
            return Err(Errno(FI_EINVAL));
        }
        core.transport.share(shared.receives())?;
        shared.acquire();
        core.shared = Shared::Bound(shared.clone());
        Ok(())
    }

    fn enable(&self) -> Result<()> {
        let mut core = self.enter()?;
        let counter = match &core.shared {
            Shared::Wanted => return Err(lacks_srx(self.domain.provider)),
            Shared::Bound(shared) => shared.with_state(|state| state.bindings.recv_counter()),
            Shared::No => None,
        };
        core.state.check()?;
        core.state.bindings.count_receives_with(counter);
        drop(core);
        start(self)
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        if let Ok(mut core) = self.enter() {
            core.leave_shared();
        }
        stop(self, || self.let_go());
        Ok(())
    }
}

impl<D: DirectTransport> Messaging for DirectEndpoint<D> {
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let transport = &mut core.transport;
        let send = core
            .state
            .send_op::<NoEngine>(call, body, |address| transport.peer(address))?;
        let hint = core.hint(call.flags, CompletedOp::Send, send.tell);
        core.transport.send(&send, hint).map_err(refused)?;
        Ok(())
    }

    /// A card has one receive queue and no peeking.
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let (recv, look) = core.state.recv_op::<NoEngine>(call, body, |_| None)?;
        match look {
            None => {}
            Some(Peek::Arrived) => return Err(Errno(FI_ENOTCONN).into()),
            Some(_) => return Err(Errno(FI_EOPNOTSUPP).into()),
        }
        core.transport.recv(&recv).map_err(refused)?;
        Ok(())
    }
}

impl<D: DirectTransport> Rma for DirectEndpoint<D> {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let rma = core.state.rma_op::<NoEngine>(call, |_| None)?;
        let hint = core.hint(call.flags, CompletedOp::Rma(rma.access), rma.tell);
        core.transport.rma(&rma, hint).map_err(refused)?;
        Ok(())
    }
}

impl<D: DirectTransport> Atomics for DirectEndpoint<D> {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let atomic = core.state.atomic_op::<NoEngine>(call, |_| None)?;
        let hint = core.hint(call.flags, CompletedOp::Atomic(atomic.op.form()), atomic.tell);
        core.transport.atomic(&atomic, hint).map_err(refused)?;
        Ok(())
    }
}

impl<D: DirectTransport> Progress for DirectEndpoint<D> {
    fn progress(&self) {
        let Some(mut core) = self.core.poll() else { return };
        core.progress();
        drop(core);
        self.deferred.run();
    }

    fn arm(&self) -> bool {
        self.arm_for_readers(&self.domain)
    }

    fn settle(&self) {
        self.core.pass();
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.fd_for_readers(&self.domain)
    }
}

impl<D: DirectTransport> Sleeper for DirectEndpoint<D> {
    fn arm_self(&self) -> bool {
        // A closed one never has work again.
        let armed = self.core.enter().is_none_or(|mut core| core.transport.arm());
        armed && !self.deferred.is_due()
    }

    fn own_fd(&self) -> Option<RawFd> {
        self.core.enter()?.transport.wake_fd()
    }
}

#[cfg(test)]
mod datagram_tests;
#[cfg(test)]
mod tests;
