//! Transmit contexts of a scalable endpoint as members of collective groups.
//!
//! Other members know the endpoint by its name, which is that of receive context 0. So that context's engine carries
//! the collectives of all transmit contexts, whether or not the program opens it; reading their queues drives it too.

use super::{OWN, can_collect, terms, vector_of};
use crate::abi::types::*;
use crate::api::collective::{CollectiveCall, Collectives, JoinCall};
use crate::api::cq::Cq;
use crate::api::endpoint::engine_core::CollectiveQueues;
use crate::api::endpoint::ops::{EndpointOps, stop};
use crate::api::endpoint::{Endpoint, EndpointTransport};
use crate::api::eq::Eq;
use crate::api::errno::{Errno, Result};
use crate::api::progress::Progress;
use crate::util::mutex::{Mutex, lock};
use std::sync::Arc;

/// Where a context's completions and joins are reported, and what drives the carrier for it.
#[derive(Clone)]
pub(crate) struct Listener {
    pub cq: Option<Arc<Cq>>,
    pub eq: Arc<Eq>,
}

impl Listener {
    pub(crate) fn queues(&self) -> CollectiveQueues<'_> {
        CollectiveQueues {
            cq: self.cq.as_ref(),
            eq: Some(&self.eq),
        }
    }
}

/// The event queue of a scalable endpoint, for those of its contexts that have none of their own.
pub(crate) type ScalableEq = Arc<Mutex<Option<Arc<Eq>>>>;

/// Held while receive context 0 becomes the carrier, and while it is closed and made anew: another thread may do
/// either.
pub(crate) type CarrierTurn = Arc<Mutex<()>>;

pub(crate) struct ContextCollectives<T: EndpointTransport> {
    context: Arc<Endpoint<T>>,
    carrier: Arc<Endpoint<T>>,
    owner: usize,
    eq: ScalableEq,
    turn: CarrierTurn,
    /// Set from the first join on, while the carrier may have something to report.
    listener: Mutex<Option<Listener>>,
}

impl<T: EndpointTransport + 'static> ContextCollectives<T> {
    /// `index`: the context's.
    pub(crate) fn new(
        context: &Arc<Endpoint<T>>,
        carrier: &Arc<Endpoint<T>>,
        index: usize,
        eq: &ScalableEq,
        turn: &CarrierTurn,
    ) -> Arc<ContextCollectives<T>> {
        Arc::new(ContextCollectives {
            context: context.clone(),
            carrier: carrier.clone(),
            owner: OWN + 1 + index,
            eq: eq.clone(),
            turn: turn.clone(),
            listener: Mutex::default(),
        })
    }

    /// At the first join, makes reading the context's queues drive the carrier.
    pub(crate) fn listen(&self, eq: Arc<Eq>, cq: Option<Arc<Cq>>) -> Result<()> {
        let mut current = lock(&self.listener);
        if current.is_some() {
            return Ok(());
        }
        let _turn = lock(&self.turn);
        self.carrier.become_carrier()?;
        let carrier: Arc<dyn Progress> = self.carrier.clone();
        eq.attach(carrier.clone());
        if let Some(cq) = &cq {
            cq.attach(carrier);
        }
        let listener = Listener { cq, eq };
        self.carrier
            .host
            .enter()?
            .owners
            .listeners
            .insert(self.owner, listener.clone());
        *current = Some(listener);
        Ok(())
    }

    /// fi_close of the context: gives up collectives that only wait for others. -FI_EBUSY while a peer may still touch
    /// the memory of one.
    pub(crate) fn close(&self) -> Result<()> {
        let mut listener = lock(&self.listener);
        if listener.is_none() {
            return Ok(());
        }
        {
            let mut core = self.carrier.host.enter()?;
            core.abandon(self.owner);
            core.report();
            core.runner.forget(self.owner)?;
            core.owners.listeners.remove(&self.owner);
        }
        if let Some(listener) = listener.take() {
            let carrier: Arc<dyn Progress> = self.carrier.clone();
            let _ = listener.eq.detach(&carrier);
            if let Some(cq) = &listener.cq {
                let _ = cq.detach(&carrier);
            }
        }
        Ok(())
    }
}

impl<T: EndpointTransport + 'static> Collectives for ContextCollectives<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let (most, report) = self.context.with_state(|state| {
            can_collect(state, true)?;
            Ok::<_, Errno>(terms(state, call))
        })?;
        self.carrier.host.begin_collective(self.owner, call, most, report)
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let whole = lock(&self.eq).clone();
        let (av, eq, cq) = self.context.with_state(|state| {
            can_collect(state, true)?;
            let av = vector_of(state, call)?;
            let eq = state.bindings.eq().cloned().or(whole);
            Ok::<_, Errno>((av, eq, state.bindings.tx_queue().cloned()))
        })?;
        self.listen(eq.ok_or(Errno(FI_ENOEQ as i32))?, cq)?;
        let mut core = self.carrier.host.enter()?;
        core.join_as(self.owner, call, &av)?;
        core.begun(self.carrier.host.domain.driver.as_ref());
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        self.carrier.host.leave(self.owner, address, fid)
    }
}

impl<T: EndpointTransport + 'static> Endpoint<T> {
    /// Starts driving the endpoint like an enabled one, though the program may never open it.
    fn become_carrier(self: &Arc<Self>) -> Result<()> {
        if self.with_state(|state| core::mem::replace(&mut state.collective_carrier, true)) {
            return Ok(());
        }
        self.open_memory(self.number());
        self.host.domain.memory.join(&self.as_progress());
        let driver = self.host.domain.driver.as_ref();
        if let Some(driver) = driver.filter(|_| self.with_state(|state| state.driven.is_none())) {
            let id = driver.attach(self.by_thread())?;
            self.with_state(|state| state.driven = Some(id));
        }
        Ok(())
    }

    /// fi_close of a carrier, which goes on for the collectives of others: nothing of the application's is touched any
    /// more. -FI_EBUSY while a message is being written into a posted receive.
    pub fn close_to_application(self: &Arc<Self>) -> Result<()> {
        {
            let mut guard = self.host.enter()?;
            let core = &mut *guard;
            // Receives that end with their endpoint are not reported.
            let bindings = core::mem::take(&mut core.owners.state.bindings);
            let given_up = core.engine.give_up_receives(&mut &mut core.pending);
            core.report();
            core.owners.state.bindings = bindings;
            if !given_up {
                return Err(Errno(FI_EBUSY));
            }
        }
        stop(self, || ());
        self.with_state(|state| state.enabled = false);
        Ok(())
    }

    /// fi_close of the scalable endpoint: the carrier ends, too.
    pub fn retire_carrier(self: &Arc<Self>) {
        if !self.with_state(|state| core::mem::replace(&mut state.collective_carrier, false)) {
            return;
        }
        let driven = self.with_state(|state| state.driven.take());
        if let (Some(id), Some(driver)) = (driven, &self.host.domain.driver) {
            driver.detach(id);
        }
        self.host.domain.memory.leave(&self.as_progress(), || self.host.close());
    }
}
