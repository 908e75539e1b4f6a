//! Endpoints of a shared receive context as members of collective groups: they share a runner, as they share an engine.

use super::{Joiner, can_collect, terms, vector_of};
use crate::abi::types::fi_addr_t;
use crate::api::collective::{CollectiveCall, Collectives, JoinCall};
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::engine_core::EndpointCore;
use crate::api::endpoint::ops::EndpointOps;
use crate::api::endpoint::shared_rx::{SharedRxEndpoint, Sharers};
use crate::api::errno::Result;
use crate::api::progress::Progress;
use crate::engine::port::Transport;
use std::sync::Arc;

impl<T: EndpointTransport> EndpointCore<Sharers<T>> {
    fn join_as(&mut self, lane: usize, own: &[u8], call: &JoinCall, me: &Arc<dyn Progress>) -> Result<()> {
        let state = self.owners.endpoint(lane)?;
        can_collect(state, true)?;
        let av = vector_of(state, call)?;
        state.bindings.drive_by_eq(me)?;
        let who = Joiner {
            owner: lane,
            joiner: lane,
            own,
        };
        self.join(call, &av, &who, |sharers, lanes, addr, key| {
            let peers = &mut sharers.endpoint(lane).ok()?.peers;
            let to = peers.peer::<T>(addr, |address| lanes.peer_by(lane, address))?;
            Some((to, lanes.peer(key)?))
        })
    }
}

impl<T: EndpointTransport + 'static> Collectives for SharedRxEndpoint<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        let (most, report) = {
            let mut core = shared.host.enter()?;
            let state = core.owners.endpoint(*lane)?;
            can_collect(state, true)?;
            terms(state, call)
        };
        shared.host.begin_collective(*lane, call, most, report)
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let me: Arc<dyn Progress> = self.clone();
        let own = self.local_address();
        let (shared, lane) = self.shared_rx()?;
        let mut core = shared.host.enter()?;
        core.join_as(*lane, &own, call, &me)?;
        core.begun(self.domain.driver.as_ref());
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        let (shared, lane) = self.shared_rx()?;
        shared.host.leave(*lane, address, fid)
    }
}
