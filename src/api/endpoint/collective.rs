//! An endpoint as a member of groups: how its addresses become members, and its engine and queues a run's hands and ears.

use super::side::Told;
use super::{Core, Endpoint, Wire};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::collective::group::{Digest, Member, is_group};
use crate::api::collective::run::{End, Finished, Hands, Membership};
use crate::api::collective::{CollectiveCall, Collectives, JoinCall};
use crate::api::eq::event::ErrorEvent;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::progress::Progress;
use crate::engine::Engine;
use crate::engine::op::{Recv, Refused, Send, Tell};
use crate::engine::port::PeerId;
use std::sync::Arc;

/// Addresses of sets, as `api::av_set` makes them.
fn is_set(addr: fi_addr_t) -> bool {
    addr >> 62 == 1
}

struct Both<'a, T: Wire> {
    engine: &'a mut Engine<T>,
    ended: &'a mut Told,
}

impl<T: Wire> Hands for Both<'_, T> {
    fn send(&mut self, send: &Send) -> core::result::Result<(), Refused> {
        self.engine.send(send, self.ended)
    }

    fn recv(&mut self, recv: &Recv) -> core::result::Result<(), Refused> {
        self.engine.recv(recv, self.ended)
    }

    fn deaths(&self, peer: PeerId) -> u32 {
        self.engine.deaths(peer)
    }
}

impl<T: Wire> Core<T> {
    /// Lets collectives go on, and tells of those that are over.
    #[cold]
    pub(super) fn tell_collectives(&mut self) {
        while self.runner.is_ready() {
            self.runner.advance(&mut Both {
                engine: &mut self.engine,
                ended: &mut self.ended,
            });
            self.tell_ended();
            while let Some(finished) = self.runner.finished() {
                self.tell_finished(&finished);
            }
        }
    }

    fn tell_finished(&self, finished: &Finished) {
        let bindings = &self.side.bindings;
        match (finished.end, bindings.eq(), finished.failure) {
            (End::Operation { context, report }, ..) => bindings.tell_collective(context, report, finished.failure),
            (End::Join { fid, context }, Some(eq), None) => {
                let _ = eq.post_entry(FI_JOIN_COMPLETE, fid, context, 0);
            }
            (End::Join { fid, context }, Some(eq), Some(Errno(err))) => {
                let _ = eq.post_error(ErrorEvent {
                    fid,
                    context,
                    err,
                    prov_errno: err,
                    ..ErrorEvent::default()
                });
            }
            (End::Join { .. }, None, _) => {}
        }
    }

    /// -FI_EOPBADSTATE, -FI_EOPNOTSUPP: it cannot now, or never.
    fn can_collect(&self) -> Result<()> {
        self.side.must_be_enabled()?;
        let settings = &self.side.settings;
        if settings.collective && settings.can_send && settings.can_recv {
            Ok(())
        } else {
            Err(Errno(FI_EOPNOTSUPP))
        }
    }

    fn own_address(&self) -> Vec<u8> {
        let name = self.name.clone();
        name.unwrap_or_else(|| self.engine.transport().local_address())
    }

    /// What the members have in common before they have told each other anything.
    fn common(&self, call: &JoinCall) -> Result<(Digest, bool)> {
        let digest = Digest::default();
        match call.coll_addr {
            FI_ADDR_NOTAVAIL => Ok((digest.number(2).bytes(call.set.comm_key()), true)),
            addr if is_group(addr) => Ok((self.runner.identity(addr)?, false)),
            addr if is_set(addr) => Ok((digest.number(1), false)),
            _ => Err(Errno(FI_EINVAL)),
        }
    }

    fn membership(&mut self, call: &JoinCall, av: &Av) -> Result<Membership> {
        let (mut digest, agreed) = self.common(call)?;
        let own = self.own_address();
        let own = av.kind().key(&own).to_vec();
        let (mut members, mut rank) = (Vec::new(), None);
        for (place, addr) in call.set.members().into_iter().enumerate() {
            let address = av.address(addr).ok_or(Errno(FI_EINVAL))?;
            let key = av.kind().key(&address);
            let transport = self.engine.transport_mut();
            let peer = self.side.peers.peer::<T>(addr, |address| transport.peer(address));
            let peer = peer.ok_or(Errno(FI_EINVAL))?;
            digest = digest.bytes(key);
            if key == own {
                rank = rank.or(Some(place));
            }
            members.push(Member {
                addr,
                peer,
                deaths: self.engine.deaths(peer),
                lost: None,
            });
        }
        let Some(rank) = rank else {
            log!(Warn, EpCtrl, "fi_join_collective: the endpoint is not in the set");
            return Err(Errno(FI_EINVAL));
        };
        log!(
            Debug,
            EpCtrl,
            "collective group {digest:?}: {rank} of {}",
            members.len()
        );
        Ok(Membership {
            digest,
            rank,
            members,
            operations: call.set.operations(),
            agreed,
        })
    }
}

impl<T: Wire + 'static> Collectives for Endpoint<T> {
    fn collective(&self, call: &CollectiveCall) -> Result<()> {
        let mut core = self.core.lock();
        let core = &mut *core;
        core.can_collect()?;
        let (_, tell) = core.side.send_flags(Flags::Call(call.flags));
        core.runner
            .collective(call, core.side.settings.tx_size.max(1), tell == Tell::Queue)?;
        core.tell();
        if core.side.driven.is_some() {
            self.begun(core);
        }
        Ok(())
    }

    fn join(self: Arc<Self>, call: &JoinCall) -> Result<()> {
        let me: Arc<dyn Progress> = self.clone();
        let mut core = self.core.lock();
        let core = &mut *core;
        core.can_collect()?;
        let av = core.side.peers.av().ok_or(Errno(FI_ENOAV as i32))?;
        if !Arc::ptr_eq(&av, call.set.av()) {
            return Err(Errno(FI_EINVAL));
        }
        let membership = core.membership(call, &av)?;
        core.side.bindings.drive_by_eq(&me)?;
        let end = End::Join {
            fid: call.fid,
            context: call.context,
        };
        core.runner.join(call.address, membership, end)?;
        core.tell();
        if core.side.driven.is_some() {
            self.begun(core);
        }
        Ok(())
    }

    fn leave(&self, address: fi_addr_t, fid: usize) -> Result<()> {
        let mut core = self.core.lock();
        core.runner.leave(address)?;
        if let Some(eq) = core.side.bindings.eq() {
            drop(eq.forget(fid));
        }
        Ok(())
    }
}
