//! Endpoints that share their receives as members of groups: one runner for all of them, as they are one engine.

use super::{Joiner, MemberRoute, RunnerHands, can_collect, membership, report_finished, terms, vector_of};
use crate::abi::types::*;
use crate::api::collective::run::Awaiting;
use crate::api::collective::{CollectiveCall, Collectives, JoinCall};
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::ops::EndpointOps;
use crate::api::endpoint::shared_rx::{Core, SharedRxEndpoint};
use crate::api::errno::{Errno, Result};
use crate::api::progress::Progress;
use crate::engine::port::Transport;
use std::sync::Arc;

impl<T: EndpointTransport> Core<T> {
    /// Lets collectives go on, and tells of those that are over.
    #[cold]
    pub fn report_collectives(&mut self) {
        while self.runner.is_ready() {
            self.runner.advance(&mut RunnerHands {
                engine: &mut self.engine,
                pending: &mut self.pending,
            });
            self.report_pending();
            while let Some(finished) = self.runner.finished() {
                if let Some(Some(state)) = self.members.get(finished.owner) {
                    report_finished(&finished, state.bindings.tx_queue(), state.bindings.eq());
                }
            }
        }
    }

    /// Nothing of a member's collectives goes further: its lane is about to close, which ends what is under way.
    pub fn abandon(&mut self, lane: usize) {
        self.runner.abandon(
            lane,
            &mut RunnerHands {
                engine: &mut self.engine,
                pending: &mut self.pending,
            },
        );
    }

    fn enter(&mut self, lane: usize, own: &[u8], call: &JoinCall, me: &Arc<dyn Progress>) -> Result<()> {
        let state = self.members.get_mut(lane).and_then(Option::as_mut);
        let state = state.ok_or(Errno(FI_EOPBADSTATE as i32))?;
        can_collect(state, true)?;
        let av = vector_of(state, call)?;
        state.bindings.drive_by_eq(me)?;
        let who = Joiner {
            owner: lane,
            joiner: lane,
            own,
        };
        let engine = &mut self.engine;
        let membership = membership(call, &av, &who, &self.runner, |addr, key| {
            let lanes = engine.transport_mut();
            let to = state.peers.peer::<T>(addr, |address| lanes.peer_by(lane, address))?;
            let from = lanes.peer(key)?;
            Some(MemberRoute {
                to,
                from,
                deaths: engine.deaths(to),
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

impl<T: EndpointTransport + 'static> Collectives for SharedRxEndpoint<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        let mut core = shared.enter()?;
        let core = &mut *core;
        let state = core.members.get(*lane).and_then(Option::as_ref);
        let state = state.ok_or(Errno(FI_EOPBADSTATE as i32))?;
        can_collect(state, true)?;
        let (most, report) = terms(state, call);
        core.runner.collective(*lane, call, most, report)?;
        core.report();
        core.begun(self.domain.driver.as_ref());
        Ok(())
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let me: Arc<dyn Progress> = self.clone();
        let own = self.local_address();
        let (shared, lane) = self.shared_rx()?;
        let mut core = shared.enter()?;
        core.enter(*lane, &own, call, &me)?;
        core.begun(self.domain.driver.as_ref());
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        let Some(mut core) = shared.core.enter() else {
            return Ok(());
        };
        core.runner.leave(address)?;
        let state = core.members.get(*lane).and_then(Option::as_ref);
        if let Some(eq) = state.and_then(|state| state.bindings.eq()) {
            drop(eq.forget(fid));
        }
        Ok(())
    }
}
