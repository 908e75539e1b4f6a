//! What every kind of endpoint can do besides data transfer: be bound, enabled, asked for options, closed.
//!
//! Plain endpoints, contexts of scalable endpoints, endpoints and contexts that share receives, aliases: each says how
//! its state is reached and what drives it, the rest is here once. Called by `abi::object`.

use super::EndpointTransport;
use super::connection::Connects;
use super::state::{EndpointState, Settings, StateGuard, TxFlags};
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
use crate::api::log::Speaker;
use crate::api::messaging::Messaging;
use crate::api::one_sided::{Atomics, Rma};
use crate::api::progress::{Progress, Watch};
use crate::engine::op::OperationOf;
use core::any::Any;
use std::os::fd::RawFd;
use std::sync::Arc;

/// What is known of an endpoint's transport without its type.
pub struct TransportFacts {
    descriptors: bool,
    told_address: fn(Vec<u8>, u32) -> Vec<u8>,
}

impl TransportFacts {
    pub(super) fn of<T: EndpointTransport>() -> TransportFacts {
        TransportFacts {
            descriptors: T::DESCRIPTORS,
            told_address: T::told_address,
        }
    }
}

/// What the fi_ep calls other than data transfer ask of an endpoint of any kind.
pub trait EndpointOps: Messaging + Rma + Atomics + Send + Sync + 'static {
    /// The endpoint, or the one behind an alias, for who keeps it.
    fn base(&self) -> Arc<dyn EndpointOps>;

    fn domain(&self) -> &Arc<Domain>;

    /// The endpoint's state, under the endpoint's lock.
    fn lock_state(&self) -> StateGuard<'_>;

    /// Runs a closure on it.
    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R
    where
        Self: Sized,
    {
        use_it(&mut self.lock_state())
    }

    fn transport(&self) -> TransportFacts;

    /// Whether the domain's registrar is to be shown the descriptors that programs pass.
    #[inline(always)]
    fn shows_descriptors(&self) -> bool {
        self.transport().descriptors
    }

    /// An address in the form in which the program is told it.
    fn told_address(&self, address: Vec<u8>) -> Vec<u8> {
        (self.transport().told_address)(address, self.domain().addr_format)
    }

    /// What reading a queue or counter drives.
    fn as_progress(&self) -> Arc<dyn Progress>;

    /// What the domain's thread drives with FI_PROGRESS_AUTO.
    fn by_thread(&self) -> Arc<dyn Progress>;

    /// The number by which memory regions know the endpoint.
    fn number(&self) -> u64 {
        let memory = &self.domain().memory;
        *self.lock_state().number.get_or_insert_with(|| memory.number())
    }

    /// fi_getname.
    fn local_address(&self) -> Vec<u8>;

    /// The endpoint as one that takes part in collectives; None: its kind cannot.
    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        None
    }

    /// fi_setname, with all bytes that the program gave. -FI_EBUSY once enabled: peers may know the old one.
    fn set_address(&self, _: &[u8]) -> Result<()> {
        Err(Errno(FI_ENOSYS))
    }

    /// fi_cancel: of a receive that has no message yet, or of an operation that has not begun.
    fn cancel(&self, operation: OperationOf) -> Result<()>;

    /// Sends in flight, and posted receives that no message has matched.
    fn unfinished(&self) -> (usize, usize);

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        let mut state = self.lock_state();
        state.not_enabled()?;
        state.bind_av(av)
    }

    /// Joins of collective groups are reported there. Programs that join none may bind one too.
    fn bind_eq(&self, eq: &Arc<Eq>) {
        let before = self.lock_state().bindings.bind_eq(eq);
        if let Some(before) = before {
            before.let_go();
        }
    }

    /// `flags`: FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        let mut state = self.lock_state();
        state.not_enabled()?;
        state.bindings.bind_cq(cq, flags)
    }

    /// `flags`: the kinds of operation that the counter counts. Those that the endpoint begins by itself may be counted
    /// from later than fi_enable on: Sandia OpenSHMEM binds such counters to an endpoint that is enabled.
    fn bind_cntr(&self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        let me = self.as_progress();
        let mut state = self.lock_state();
        if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
            state.not_enabled()?;
        }
        state.bindings.bind_cntr(cntr, flags)?;
        if state.enabled {
            state.bindings.attach_counter(cntr, flags, &me);
        }
        Ok(())
    }

    fn bind_stx(&self, stx: &Arc<Stx>) -> Result<()> {
        self.lock_state().bind_stx(stx)
    }

    /// The endpoint as what `bind_srx` takes, if it is a shared receive context.
    fn as_shared_rx(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }

    /// Only endpoints made with a shared receive context can be bound to one.
    /// `context`: an `Arc` of the context, which may be another transport's.
    fn bind_srx(&self, _context: &(dyn Any + Send + Sync)) -> Result<()> {
        Err(Errno(FI_EINVAL))
    }

    /// Runs a closure on the endpoint's connection, and then drives the endpoint. -FI_ENOSYS: it is not of FI_EP_MSG.
    fn with_connection(&self, _: &mut OnConnection) -> Result<()> {
        Err(Errno(FI_ENOSYS))
    }

    /// fi_enable. The error says what is not bound yet.
    fn enable(&self) -> Result<()>;

    /// fi_close. After it nothing drives the endpoint or touches what it was bound to, which can be closed next. Other
    /// threads may hold references for a moment, so none of this is left to the last of them. -FI_EBUSY while aliases
    /// are open or others depend on it.
    fn close(&self) -> Result<()>;

    /// fi_tx_size_left: how many sends will not return -FI_EAGAIN.
    fn tx_size_left(&self) -> Result<usize> {
        let size = settings_if_enabled(&self.lock_state())?.tx_size;
        Ok(size.saturating_sub(self.unfinished().0))
    }

    /// fi_rx_size_left. More receives than that can be posted, but programs count on the size they asked for.
    fn rx_size_left(&self) -> Result<usize> {
        let size = settings_if_enabled(&self.lock_state())?.rx_size;
        Ok(size.saturating_sub(self.unfinished().1))
    }

    /// FI_OPT_MIN_MULTI_RECV.
    fn min_multi_recv(&self) -> usize {
        self.lock_state().settings.min_multi_recv
    }

    fn set_min_multi_recv(&self, size: usize) {
        self.lock_state().settings.min_multi_recv = size;
    }

    /// The default flags for transmitting and receiving, which an alias starts with.
    fn both_flags(&self) -> (u64, u64) {
        let settings = &self.lock_state().settings;
        (settings.tx_flags.bits, settings.rx_flags)
    }

    /// FI_GETOPSFLAG. `direction`: FI_TRANSMIT or FI_RECV.
    fn op_flags(&self, direction: u64) -> Result<u64> {
        let (tx, rx) = self.both_flags();
        Ok(if is_transmit(direction)? { tx } else { rx })
    }

    /// FI_SETOPSFLAG.
    fn set_op_flags(&self, flags: u64) -> Result<()> {
        let transmit = can_be_default(flags)?;
        let settings = &mut self.lock_state().settings;
        if transmit {
            settings.tx_flags = TxFlags::of(wanted(flags));
        } else {
            settings.rx_flags = wanted(flags);
        }
        Ok(())
    }
}

fn settings_if_enabled(state: &EndpointState) -> Result<&Settings> {
    state.must_be_enabled().map(|()| &state.settings)
}

/// What is done with a connection.
pub(super) type OnConnection<'a> = dyn FnMut(&mut dyn Connects, &mut EndpointState) -> Result<()> + 'a;

/// Whether FI_TRANSMIT or FI_RECV is set; -FI_EINVAL unless it is exactly one.
pub(super) fn is_transmit(flags: u64) -> Result<bool> {
    match flags & (FI_TRANSMIT | FI_RECV) {
        FI_TRANSMIT => Ok(true),
        FI_RECV => Ok(false),
        _ => Err(Errno(FI_EINVAL)),
    }
}

/// As `is_transmit`, for new default flags: -FI_EOPNOTSUPP for a flag that every operation would be refused for.
pub(super) fn can_be_default(flags: u64) -> Result<bool> {
    if flags & FI_COMMIT_COMPLETE != 0 {
        return Err(Errno(FI_EOPNOTSUPP));
    }
    is_transmit(flags)
}

/// The flags without FI_TRANSMIT and FI_RECV.
pub(super) fn wanted(flags: u64) -> u64 {
    flags & !(FI_TRANSMIT | FI_RECV)
}

/// Enables an endpoint that has all it needs.
pub(super) fn start(endpoint: &dyn EndpointOps) -> Result<()> {
    let me = endpoint.as_progress();
    let domain = endpoint.domain();
    let (memory, deferred) = (&domain.memory, &domain.deferred);
    let state = endpoint.lock_state();
    if state.enabled {
        return Ok(());
    }
    state.check()?;
    drop(state);
    // First of all: closing a region must wait for whoever drives the endpoint from then on.
    memory.join(&me);
    let mut state = endpoint.lock_state();
    if state.enabled {
        drop(state);
        memory.leave(&me, || ()); // another thread has enabled it meanwhile
        return Ok(());
    }
    state.enabled = true;
    state.peers.hold_keys();
    state.memory = Some(memory.clone());
    state.deferred = Some(deferred.clone());
    state.bindings.attach(me.clone());
    drop(state);
    match &domain.driver {
        Some(driver) => drive(endpoint, driver, &me),
        None => Ok(()),
    }
}

/// Hands the endpoint to the domain's thread (FI_PROGRESS_AUTO). Not under the endpoint's lock, which the thread takes.
fn drive(endpoint: &dyn EndpointOps, driver: &Driver, me: &Arc<dyn Progress>) -> Result<()> {
    match driver.attach(endpoint.by_thread()) {
        Ok(id) => {
            // A collective carrier may be driven already.
            let before = endpoint.lock_state().driven.replace(id);
            if let Some(before) = before {
                driver.detach(before);
            }
            Ok(())
        }
        Err(error) => {
            log!(by endpoint.domain().provider; Warn, EpCtrl, "fi_enable: no thread for FI_PROGRESS_AUTO");
            let mut state = endpoint.lock_state();
            state.enabled = false;
            let drivers = state.bindings.drivers();
            drop(state);
            drivers.detach(me);
            endpoint.domain().memory.leave(me, || ());
            Err(error)
        }
    }
}

/// Detaches an endpoint from all that drives it, and unbinds everything but its address vector. `end`: what then waits
/// for those who are still in a call, if the endpoint ends with it.
pub(super) fn stop(endpoint: &dyn EndpointOps, end: impl FnOnce()) {
    // A collective carrier is driven until its scalable endpoint is closed.
    let mut state = endpoint.lock_state();
    let (driven, joined) = match state.collective_carrier {
        true => (None, state.enabled),
        false => (state.driven.take(), true),
    };
    drop(state);
    if let (Some(id), Some(driver)) = (driven, &endpoint.domain().driver) {
        driver.detach(id);
    }
    endpoint.domain().deferred.leave(key_of(endpoint));
    let mut state = endpoint.lock_state();
    let (bindings, stx) = (core::mem::take(&mut state.bindings), state.stx.take());
    let fid = state.connection.take().map_or(0, |connection| connection.fid());
    drop(state);
    let eq = bindings.eq().cloned();
    let me = endpoint.as_progress();
    bindings.detach(&me);
    if let Some(eq) = eq {
        // Events about this fid: none owns anything.
        let _ = eq.forget(fid);
    }
    if let Some(stx) = stx {
        stx.users.release();
    }
    if joined {
        endpoint.domain().memory.leave(&me, end);
    } else {
        end();
    }
}

/// fi_enable of an endpoint that was made for a shared receive context, and has none.
pub(super) fn lacks_srx(provider: Speaker) -> Errno {
    log!(by provider; Warn, EpCtrl, "fi_enable: no shared receive context is bound");
    Errno(FI_EOPBADSTATE as i32)
}

/// Arms the endpoint itself, whether or not a thread of FI_PROGRESS_AUTO drives it.
pub(super) trait Sleeper: Progress {
    fn arm_self(&self) -> bool;
    fn own_fd(&self) -> Option<RawFd>;

    /// `Progress::arm` for readers of a queue. With FI_PROGRESS_AUTO peers wake the domain's thread, and its
    /// completions wake whoever waits for them.
    fn arm_for_readers(&self, domain: &Domain) -> bool {
        domain.driver.is_some() || self.arm_self()
    }

    /// `Progress::wake_fd` for readers of a queue.
    fn fd_for_readers(&self, domain: &Domain) -> Option<RawFd> {
        match domain.driver {
            Some(_) => None,
            None => self.own_fd(),
        }
    }
}

/// An endpoint as the thread of FI_PROGRESS_AUTO drives it: the thread sleeps on the endpoint's own descriptor.
pub(super) struct ByThread<S>(pub Arc<S>);

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

    fn watch(&self) -> Option<Watch> {
        self.0.watch()
    }

    fn turn(&self) -> bool {
        self.0.turn()
    }
}
