//! What every kind of endpoint can do besides moving messages: be bound, enabled, asked for options, closed.
//!
//! An endpoint, a context of a scalable endpoint, one that shares its receives: they differ in `with_state` and `as_progress`,
//! the rest is here once. Called by `abi::object`.

use super::EndpointTransport;
use super::shared_rx::SharedRx;
use super::state::EndpointState;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::cntr::Cntr;
use crate::api::collective::Collectives;
use crate::api::cq::Cq;
use crate::api::deferred::work::key_of;
use crate::api::domain::Domain;
use crate::api::driver::Driver;
use crate::api::eq::Eq;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Messaging;
use crate::api::one_sided::{Atomics, Rma};
use crate::api::progress::Progress;
use crate::engine::op::Context;
use std::os::fd::RawFd;
use std::sync::Arc;

/// An endpoint of any kind, as whoever holds it manages it.
pub trait EndpointOps: Messaging + Rma + Atomics + Sized + 'static {
    type Transport: EndpointTransport + 'static;

    /// What this is an alias of, or the kind itself.
    type Base: EndpointOps<Transport = Self::Transport, Base = Self::Base> + Clone + Send + Sync;

    fn base(&self) -> &Self::Base;

    fn domain(&self) -> &Arc<Domain>;

    /// Uses its application's state, under its lock.
    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R;

    /// What queues and counters drive.
    fn as_progress(&self) -> Arc<dyn Progress>;

    /// The same for the thread of FI_PROGRESS_AUTO.
    fn by_thread(&self) -> Arc<dyn Progress>;

    /// The number that regions of memory know it by.
    fn number(&self) -> u64 {
        let memory = &self.domain().memory;
        self.with_state(|state| *state.number.get_or_insert_with(|| memory.number()))
    }

    /// fi_getname.
    fn local_address(&self) -> Vec<u8>;

    /// Itself as one that takes part in collectives, if it is of a kind that can.
    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        None
    }

    /// fi_setname, with the address without its end. -FI_EBUSY once enabled: peers may know the old one.
    fn set_address(&self, _: &[u8]) -> Result<()> {
        Err(Errno(FI_ENOSYS))
    }

    /// fi_cancel.
    fn cancel(&self, context: Context) -> Result<()>;

    /// Sends that have not ended, and receives that have met no message.
    fn unfinished(&self) -> (usize, usize);

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.with_state(|state| {
            state.not_enabled()?;
            state.bind_av(av)
        })
    }

    /// PendingCompletions of groups that are joined; other programs bind one too.
    fn bind_eq(&self, eq: &Arc<Eq>) {
        if let Some(before) = self.with_state(|state| state.bindings.bind_eq(eq)) {
            before.let_go();
        }
    }

    /// `flags`: FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.with_state(|state| {
            state.not_enabled()?;
            state.bindings.bind_cq(cq, flags)
        })
    }

    /// `flags`: the operations it counts.
    fn bind_cntr(&self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        self.with_state(|state| {
            state.not_enabled()?;
            state.bindings.bind_cntr(cntr, flags)
        })
    }

    fn bind_stx(&self, stx: &Arc<Stx>) -> Result<()> {
        self.with_state(|state| state.bind_stx(stx))
    }

    /// Only endpoints that share their receives can.
    fn bind_srx(&self, _: &Arc<SharedRx<Self::Transport>>) -> Result<()> {
        Err(Errno(FI_EINVAL))
    }

    /// fi_enable: an endpoint without what it needs is told what is missing.
    fn enable(&self) -> Result<()> {
        start(self)
    }

    /// fi_close. When it has succeeded nobody drives the endpoint, nothing it knew is touched again, and what it used may
    /// be closed. Other threads may still have references to it, so none of this is left to the last of them. -FI_EBUSY
    /// if others use it.
    fn close(&self) -> Result<()>;

    /// fi_tx_size_left: sends that will not be refused.
    fn tx_size_left(&self) -> Result<usize> {
        let size = self.with_state(|state| state.must_be_enabled().map(|()| state.settings.tx_size))?;
        Ok(size.saturating_sub(self.unfinished().0))
    }

    /// fi_rx_size_left: the same for receives. More than that are taken, but programs count on the size they were told.
    fn rx_size_left(&self) -> Result<usize> {
        let size = self.with_state(|state| state.must_be_enabled().map(|()| state.settings.rx_size))?;
        Ok(size.saturating_sub(self.unfinished().1))
    }

    /// FI_OPT_MIN_MULTI_RECV.
    fn min_multi_recv(&self) -> usize {
        self.with_state(|state| state.settings.min_multi_recv)
    }

    fn set_min_multi_recv(&self, size: usize) {
        self.with_state(|state| state.settings.min_multi_recv = size);
    }

    /// The flags of both directions, for an alias.
    fn both_flags(&self) -> (u64, u64) {
        self.with_state(|state| (state.settings.tx_flags, state.settings.rx_flags))
    }

    /// FI_GETOPSFLAG: `flags` says of which direction.
    fn op_flags(&self, direction: u64) -> Result<u64> {
        let (tx, rx) = self.both_flags();
        Ok(if is_transmit(direction)? { tx } else { rx })
    }

    /// FI_SETOPSFLAG.
    fn set_op_flags(&self, flags: u64) -> Result<()> {
        let transmit = can_be_default(flags)?;
        self.with_state(|state| {
            if transmit {
                state.settings.tx_flags = wanted(flags);
            } else {
                state.settings.rx_flags = wanted(flags);
            }
        });
        Ok(())
    }
}

/// Which direction's flags are meant: it must be one of the two.
pub(super) fn is_transmit(flags: u64) -> Result<bool> {
    match flags & (FI_TRANSMIT | FI_RECV) {
        FI_TRANSMIT => Ok(true),
        FI_RECV => Ok(false),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// The same for flags that are to be the default: not one that every operation would be refused for.
pub(super) fn can_be_default(flags: u64) -> Result<bool> {
    if flags & FI_COMMIT_COMPLETE != 0 {
        return Err(Errno(FI_EOPNOTSUPP));
    }
    is_transmit(flags)
}

/// The flags without their direction.
pub(super) fn wanted(flags: u64) -> u64 {
    flags & !(FI_TRANSMIT | FI_RECV)
}

/// Enables an endpoint that has all it needs.
pub(super) fn start(endpoint: &impl EndpointOps) -> Result<()> {
    let me = endpoint.as_progress();
    let domain = endpoint.domain();
    let (memory, deferred) = (&domain.memory, &domain.deferred);
    let begun = endpoint.with_state(|state| {
        if state.enabled {
            return Ok(false);
        }
        state.check()?;
        state.enabled = true;
        state.peers.hold_keys();
        state.memory = Some(memory.clone());
        state.deferred = Some(deferred.clone());
        state.bindings.attach(me.clone());
        Ok(true)
    })?;
    if begun {
        memory.join(&me);
    }
    match &domain.driver {
        Some(driver) if begun => drive(endpoint, driver, &me),
        _ => Ok(()),
    }
}

/// With FI_PROGRESS_AUTO, hands the endpoint to the domain's thread. Not under the lock, which the thread takes.
fn drive(endpoint: &impl EndpointOps, driver: &Driver, me: &Arc<dyn Progress>) -> Result<()> {
    match driver.attach(endpoint.by_thread()) {
        Ok(id) => {
            // One that carries collectives of others may be driven already.
            if let Some(before) = endpoint.with_state(|state| state.driven.replace(id)) {
                driver.detach(before);
            }
            Ok(())
        }
        Err(error) => {
            log!(by endpoint.domain().provider; Warn, EpCtrl, "fi_enable: no thread for FI_PROGRESS_AUTO");
            endpoint.domain().memory.leave(me);
            let drivers = endpoint.with_state(|state| {
                state.enabled = false;
                state.bindings.drivers()
            });
            drivers.detach(me);
            Err(error)
        }
    }
}

/// Lets go of all that drives an endpoint, and of what it is bound to except its addresses.
pub(super) fn stop(endpoint: &impl EndpointOps) {
    // One that carries collectives of others is driven until its scalable endpoint is closed.
    let (driven, joined) = endpoint.with_state(|state| match state.collective_carrier {
        true => (None, state.enabled),
        false => (state.driven.take(), true),
    });
    if let (Some(id), Some(driver)) = (driven, &endpoint.domain().driver) {
        driver.detach(id);
    }
    endpoint.domain().deferred.leave(key_of(endpoint));
    let (bindings, stx) = endpoint.with_state(|state| (core::mem::take(&mut state.bindings), state.stx.take()));
    let me = endpoint.as_progress();
    if joined {
        endpoint.domain().memory.leave(&me);
    }
    bindings.detach(&me);
    if let Some(stx) = stx {
        stx.users.release();
    }
}

/// What can announce that nobody looks at it, whoever drives it.
pub trait Sleeper: Progress {
    fn arm_self(&self) -> bool;
    fn own_fd(&self) -> Option<RawFd>;
}

/// An endpoint as the thread of FI_PROGRESS_AUTO has it.
pub struct ByThread<S>(pub Arc<S>);

impl<S: Sleeper> Progress for ByThread<S> {
    fn progress(&self) {
        self.0.progress();
    }

    fn arm(&self) -> bool {
        self.0.arm_self()
    }

    fn unfinished(&self) -> bool {
        self.0.unfinished()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        self.0.own_fd()
    }
}
