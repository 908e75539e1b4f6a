//! Scalable endpoints: one name, several transmit and receive contexts.
//!
//! A context is an endpoint of its own, with engine, lock and transport, so that threads that use different contexts
//! share nothing. Receive context 0 has the endpoint's name; the others have addresses made from it, which fi_rx_addr
//! leads to, and transmit contexts come after those. To a receiver all of them are one source. Called by `abi::object`.
//!
//! - `slot`: the contexts themselves, made with the endpoint;
//! - `sibling`: what a context has begun is moved on by the others' queues too.

mod sibling;
mod slot;

use super::collective::contexts::{CarrierTurn, ScalableEq};
use super::ops::{EndpointOps, TransportFacts};
use super::state::{StateGuard, TxFlags};
use super::{Endpoint, EndpointTransport};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::collective::Collectives;
use crate::api::domain::{Domain, unused};
use crate::api::eq::Eq;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, RxAttr, TxAttr};
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::op::OperationOf;
use crate::util::mutex::{Mutex, lock};
use crate::util::user::UserIov;
use core::sync::atomic::{AtomicBool, Ordering};
use slot::{ContextSlot, only, receive_contexts, transmit_contexts};
use std::sync::Arc;

/// Opens the transport of a context, by its address.
pub type OpenContext<T> = Box<dyn Fn(&[u8]) -> Result<T> + Send + Sync>;

/// The most contexts of a direction.
pub const CONTEXTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Transmit,
    Receive,
}

pub struct Scalable<T: EndpointTransport> {
    domain: Arc<Domain>,
    /// What contexts are opened from: attributes, and a function from an address to a transport.
    info: Info,
    /// The endpoint's own address.
    base: Vec<u8>,
    open: OpenContext<T>,
    av: Mutex<Option<Arc<Av>>>,
    closed: AtomicBool,
    /// Contexts that are open.
    users: Refs,
    /// The number by which memory regions know all contexts.
    number: u64,
    tx: Vec<ContextSlot<T>>,
    rx: Vec<ContextSlot<T>>,
    tx_attr: TxAttr,
    rx_attr: RxAttr,
    /// For contexts that have no event queue of their own.
    eq: ScalableEq,
    turn: CarrierTurn,
}

fn context_count(asked: usize) -> Result<usize> {
    match asked {
        0 => Ok(1),
        1..=CONTEXTS => Ok(asked),
        _ => Err(Errno(FI_EINVAL)),
    }
}

impl<T: EndpointTransport + 'static> Scalable<T> {
    /// All contexts are made here, so that messages for one that the program opens later find it. `first` is the
    /// endpoint's own transport, `more` opens others by address.
    pub fn open(domain: &Arc<Domain>, info: &Info, first: T, more: OpenContext<T>) -> Result<Arc<Scalable<T>>> {
        let attr = info.ep.as_ref().ok_or(Errno(FI_EINVAL))?;
        let (tx, rx) = (context_count(attr.tx_ctx_cnt)?, context_count(attr.rx_ctx_cnt)?);
        let base = first.local_address();
        let rest = (1..rx + tx).map(|index| more(&T::context_address(&base, index)));
        let mut transports: Vec<T> = std::iter::once(Ok(first)).chain(rest).collect::<Result<_>>()?;
        let to_send = transports.split_off(rx);
        let number = domain.memory.number();
        let rx = receive_contexts(domain, info, number, transports);
        let carrier = rx.first().map(|slot| slot.endpoint.clone()).ok_or(Errno(FI_EINVAL))?;
        let (eq, turn) = (ScalableEq::default(), CarrierTurn::default());
        let tx = transmit_contexts(domain, info, number, to_send, &carrier, &eq, &turn);
        domain.users.acquire();
        Ok(Arc::new(Scalable {
            domain: domain.clone(),
            info: info.clone(),
            base,
            open: more,
            av: Mutex::default(),
            closed: AtomicBool::new(false),
            users: Refs::default(),
            number,
            tx,
            rx,
            tx_attr: info.tx.clone().unwrap_or_default(),
            rx_attr: info.rx.clone().unwrap_or_default(),
            eq,
            turn,
        }))
    }

    /// fi_tx_context, and the context's attributes: of those asked for, only op_flags differ from the endpoint's.
    pub fn tx_context(self: &Arc<Self>, index: usize, asked: &TxAttr) -> Result<(Context<T>, TxAttr)> {
        let context = self.context(Direction::Transmit, index)?;
        let mut attr = self.tx_attr.clone();
        if asked.op_flags != 0 {
            attr.op_flags = asked.op_flags;
        }
        context.with_state(|state| state.settings.tx_flags = TxFlags::of(attr.op_flags));
        Ok((context, attr))
    }

    /// fi_rx_context, likewise.
    pub fn rx_context(self: &Arc<Self>, index: usize, asked: &RxAttr) -> Result<(Context<T>, RxAttr)> {
        let context = self.context(Direction::Receive, index)?;
        let mut attr = self.rx_attr.clone();
        if asked.op_flags != 0 {
            attr.op_flags = asked.op_flags;
        }
        context.with_state(|state| state.settings.rx_flags = attr.op_flags);
        Ok((context, attr))
    }

    /// Opens a context; -FI_EBUSY if it is open.
    pub fn context(self: &Arc<Self>, direction: Direction, index: usize) -> Result<Context<T>> {
        let slot = self.slots(direction).get(index).ok_or(Errno(FI_EINVAL))?;
        if slot.open.swap(true, Ordering::Relaxed) {
            return Err(Errno(FI_EBUSY));
        }
        self.renew(direction, index)
            .inspect_err(|_| slot.open.store(false, Ordering::Relaxed))?;
        self.users.acquire();
        Ok(Context {
            endpoint: slot.endpoint.clone(),
            whole: self.clone(),
            direction,
            index,
        })
    }

    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn slots(&self, direction: Direction) -> &[ContextSlot<T>] {
        match direction {
            Direction::Transmit => &self.tx,
            Direction::Receive => &self.rx,
        }
    }

    /// Makes a closed context's endpoint anew: same address, same address vector.
    fn renew(&self, direction: Direction, index: usize) -> Result<()> {
        let slot = self.slots(direction).get(index).ok_or(Errno(FI_EINVAL))?;
        if !slot.endpoint.host.is_closed() {
            return Ok(());
        }
        let at = match direction {
            Direction::Receive => index,
            Direction::Transmit => self.rx.len() + index,
        };
        let transport = (self.open)(&T::context_address(&self.base, at))?;
        slot.endpoint.renew(&only(&self.info, direction), transport);
        slot.endpoint.with_state(|state| state.number = Some(self.number));
        match &*lock(&self.av) {
            Some(av) => slot.endpoint.bind_av(av),
            None => Ok(()),
        }
    }

    /// For all contexts.
    pub fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.all().try_for_each(|slot| slot.endpoint.bind_av(av))?;
        *lock(&self.av) = Some(av.clone());
        Ok(())
    }

    /// Replaces the event queue.
    pub fn bind_eq(&self, eq: &Arc<Eq>) {
        eq.refs().acquire();
        let before = lock(&self.eq).replace(eq.clone());
        if let Some(before) = before {
            before.refs().release();
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn local_address(&self) -> Vec<u8> {
        self.rx
            .first()
            .map(|slot| slot.endpoint.local_address())
            .unwrap_or_default()
    }

    /// A receive context of RMA and atomics alone need not have a queue, yet peers target it. So reading the queues of
    /// the transmit contexts drives it.
    fn see_to_targets(&self) {
        for target in self.rx.iter().filter(|slot| slot.is_left_alone()) {
            let ward = target.endpoint.as_progress();
            for slot in &self.tx {
                slot.endpoint.with_state(|state| {
                    if state.enabled {
                        state.bindings.add_ward(&ward);
                    }
                });
            }
        }
    }

    /// Reading any queue moves on what transmit contexts have begun.
    fn introduce_siblings(&self) {
        for slot in &self.tx {
            let Some(sibling) = &slot.sibling else { continue };
            if !slot.endpoint.with_state(|state| state.enabled) {
                continue;
            }
            sibling.begin();
            let ward: Arc<dyn Progress> = sibling.clone();
            for other in self.all().filter(|other| !Arc::ptr_eq(&other.endpoint, &slot.endpoint)) {
                other.endpoint.with_state(|state| {
                    if state.enabled {
                        state.bindings.add_ward(&ward);
                    }
                });
            }
        }
    }

    /// Takes `see_to_targets` and `introduce_siblings` back for a context that is being closed.
    fn abandon(&self, slot: &ContextSlot<T>) {
        let sibling = slot.sibling.clone().map(|sibling| sibling as Arc<dyn Progress>);
        for ward in [slot.endpoint.as_progress()].into_iter().chain(sibling) {
            for other in self.all() {
                if let Some(drivers) = other.endpoint.with_state(|state| state.bindings.remove_ward(&ward)) {
                    drivers.detach(&ward);
                }
            }
        }
    }

    /// -FI_EBUSY while a context is open.
    pub fn close(&self) -> Result<()> {
        unused(&self.users)?;
        if let Some(carrier) = self.rx.first() {
            carrier.endpoint.retire_carrier();
        }
        self.let_go();
        Ok(())
    }
}

impl<T: EndpointTransport> Scalable<T> {
    fn all(&self) -> impl Iterator<Item = &ContextSlot<T>> {
        self.tx.iter().chain(&self.rx)
    }

    fn let_go(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.all().for_each(|slot| slot.endpoint.host.close());
        *lock(&self.av) = None;
        if let Some(eq) = lock(&self.eq).take() {
            eq.refs().release();
        }
        self.domain.users.release();
    }
}

impl<T: EndpointTransport> Drop for Scalable<T> {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// An opened context. fi_close ends it as an endpoint; opened again, it is a new one with the same address.
pub struct Context<T: EndpointTransport> {
    endpoint: Arc<Endpoint<T>>,
    whole: Arc<Scalable<T>>,
    direction: Direction,
    index: usize,
}

impl<T: EndpointTransport + 'static> EndpointOps for Context<T> {
    fn base(&self) -> Arc<dyn EndpointOps> {
        Arc::new(self.clone())
    }

    fn domain(&self) -> &Arc<Domain> {
        self.endpoint.domain()
    }

    fn lock_state(&self) -> StateGuard<'_> {
        self.endpoint.lock_state()
    }

    #[inline(always)]
    fn transport(&self) -> TransportFacts {
        TransportFacts::of::<T>()
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.endpoint.as_progress()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.endpoint.by_thread()
    }

    fn unfinished(&self) -> (usize, usize) {
        self.endpoint.unfinished()
    }

    /// All contexts have one name.
    fn local_address(&self) -> Vec<u8> {
        self.whole.local_address()
    }

    fn cancel(&self, operation: OperationOf) -> Result<()> {
        self.endpoint.cancel(operation)
    }

    fn enable(&self) -> Result<()> {
        self.endpoint.enable()?;
        self.whole.see_to_targets();
        self.whole.introduce_siblings();
        Ok(())
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        let slot = self.whole.slots(self.direction).get(self.index)?;
        Some(slot.collectives.clone()?)
    }

    fn close(&self) -> Result<()> {
        self.with_state(|state| unused(&state.aliases))?;
        let slot = self.whole.slots(self.direction).get(self.index);
        if let Some(collectives) = slot.and_then(|slot| slot.collectives.as_ref()) {
            collectives.close()?;
        }
        if let Some(slot) = slot {
            self.whole.abandon(slot);
        }
        let carries = self.direction == Direction::Receive && self.index == 0;
        let _turn = carries.then(|| lock(&self.whole.turn));
        self.endpoint.close()?;
        // Made anew here, so that what new senders send meanwhile is kept. If that fails, opening tries again.
        let _ = self.whole.renew(self.direction, self.index);
        self.whole.see_to_targets();
        if let Some(slot) = self.whole.slots(self.direction).get(self.index) {
            slot.open.store(false, Ordering::Relaxed);
        }
        self.whole.users.release();
        Ok(())
    }
}

impl<T: EndpointTransport> Clone for Context<T> {
    fn clone(&self) -> Self {
        Context {
            endpoint: self.endpoint.clone(),
            whole: self.whole.clone(),
            ..*self
        }
    }
}

impl<T: EndpointTransport> Messaging for Context<T> {
    #[inline]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        self.endpoint.send(call, body)
    }

    #[inline]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        self.endpoint.recv(call, body)
    }
}

impl<T: EndpointTransport> Rma for Context<T> {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        self.endpoint.rma(call)
    }
}

impl<T: EndpointTransport> Atomics for Context<T> {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        self.endpoint.atomic(call)
    }
}

#[cfg(test)]
mod tests;
