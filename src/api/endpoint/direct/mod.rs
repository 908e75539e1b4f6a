//! Endpoints that give their operations straight to the transport, without the engine: a card matches receives itself.
//!
//! Queues, counters, flags and connections are those of every endpoint (`state`, `connection`); only what posts and what
//! completes is the transport's. For messages and RMA; atomics, collectives and shared receives are not for it yet.
//! Knows no card. Opened by `abi::object` once a provider has one.
//!
//! - `no_engine`: the engine's transport that such an endpoint does not have.

mod no_engine;

use super::connection::{self, Connects};
use super::ops::{EndpointOps, start, stop};
use super::state::{EndpointState, refused};
use crate::abi::types::*;
use crate::api::deferred::Deferred;
use crate::api::domain::{Domain, unused};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::engine::op::{self, CompletedOp, Completion, Context, Refused};
use crate::util::closable::{Closable, Entered};
use crate::util::user::UserIov;
use no_engine::NoEngine;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What a card does for one endpoint. None of the calls waits; an operation that was taken is completed by `poll`, once.
pub trait DirectTransport: core::marker::Send + 'static {
    fn local_address(&self) -> Vec<u8>;

    fn send(&mut self, send: &op::Send) -> Result<(), Refused>;

    fn recv(&mut self, recv: &op::Recv) -> Result<(), Refused>;

    fn rma(&mut self, rma: &op::Rma) -> Result<(), Refused>;

    /// Reports what has completed.
    fn poll(&mut self, report: &mut dyn FnMut(Completion));

    /// Its connection, if the endpoint is one of FI_EP_MSG. `Failed` and `Closed` come after the poll that has ended all
    /// operations.
    fn connection(&mut self) -> Option<&mut dyn Connects>;
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
    /// Operations that were taken and have not completed.
    sending: usize,
    receiving: usize,
}

impl<D: DirectTransport> DirectEndpoint<D> {
    pub fn new(domain: &Arc<Domain>, info: &Info, transport: D) -> Arc<DirectEndpoint<D>> {
        domain.users.acquire();
        let core = Core {
            transport,
            state: EndpointState::new(domain.provider, info),
            sending: 0,
            receiving: 0,
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
        if self.core.close() {
            self.domain.users.release();
        }
    }
}

impl<D: DirectTransport> Drop for DirectEndpoint<D> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl<D: DirectTransport> Core<D> {
    fn progress(&mut self) {
        let (state, sending, receiving) = (&mut self.state, &mut self.sending, &mut self.receiving);
        self.transport.poll(&mut |end| {
            let outstanding = if end.op == CompletedOp::Recv {
                &mut *receiving
            } else {
                &mut *sending
            };
            *outstanding = outstanding.saturating_sub(1);
            state.report::<NoEngine>(&end, |_| None);
        });
        let Some(connection) = self.transport.connection() else {
            return;
        };
        while let Some(event) = connection.event() {
            self.state.hear(event, Some(connection::PEER));
        }
    }
}

impl<D: DirectTransport> EndpointOps for Arc<DirectEndpoint<D>> {
    type Transport = NoEngine;
    type Base = Self;

    fn base(&self) -> &Self {
        self
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R {
        match self.core.enter() {
            Some(mut core) => use_it(&mut core.state),
            None => use_it(&mut EndpointState::closed(self.domain.provider)),
        }
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn local_address(&self) -> Vec<u8> {
        let core = self.core.enter();
        core.map(|core| core.transport.local_address()).unwrap_or_default()
    }

    fn with_connection<R>(&self, use_it: impl FnOnce(&mut dyn Connects, &mut EndpointState) -> R) -> Result<R> {
        let mut guard = self.enter()?;
        let core = &mut *guard;
        let connection = core.transport.connection().ok_or(Errno(FI_ENOSYS))?;
        let result = use_it(connection, &mut core.state);
        core.progress();
        drop(guard);
        self.deferred.run();
        Ok(result)
    }

    /// A card cannot take a receive back.
    fn cancel(&self, _: Context) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn unfinished(&self) -> (usize, usize) {
        let core = self.core.enter();
        core.map_or((0, 0), |core| (core.sending, core.receiving))
    }

    fn enable(&self) -> Result<()> {
        self.with_state(|state| state.check())?;
        start(self)
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        stop(self);
        self.let_go();
        Ok(())
    }
}

impl<D: DirectTransport> Messaging for DirectEndpoint<D> {
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let send = core.state.send_op::<NoEngine>(call, body, |_| None)?;
        core.transport.send(&send).map_err(refused)?;
        core.sending += 1;
        Ok(())
    }

    /// A card has one receive queue and no peeking.
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let (recv, look) = core.state.recv_op::<NoEngine>(call, body, |_| None)?;
        if look.is_some() {
            return Err(Errno(FI_EOPNOTSUPP).into());
        }
        core.transport.recv(&recv).map_err(refused)?;
        core.receiving += 1;
        Ok(())
    }
}

impl<D: DirectTransport> Rma for DirectEndpoint<D> {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        let mut core = self.enter()?;
        let rma = core.state.rma_op::<NoEngine>(call, |_| None)?;
        core.transport.rma(&rma).map_err(refused)?;
        core.sending += 1;
        Ok(())
    }
}

impl<D: DirectTransport> Atomics for DirectEndpoint<D> {
    fn atomic(&self, _: &AtomicCall) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

impl<D: DirectTransport> Progress for DirectEndpoint<D> {
    fn progress(&self) {
        let Some(mut core) = self.core.poll() else { return };
        core.progress();
        drop(core);
        self.deferred.run();
    }

    /// It cannot wake anyone yet, so whoever waits polls.
    fn arm(&self) -> bool {
        self.core.is_closed()
    }

    fn settle(&self) {
        self.core.pass();
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}

#[cfg(test)]
mod tests;
