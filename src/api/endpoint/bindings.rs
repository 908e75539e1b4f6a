//! The queues and counters of an endpoint, and how a completion is written to them.
//!
//! Knows which of them a completion belongs to, not where its source address comes from. Called by `state`.

use super::completion_entry::{errno, error_entry, flags};
use crate::abi::types::*;
use crate::api::cntr::Cntr;
use crate::api::cq::{Cq, Entry, ErrorEntry};
use crate::api::eq::Eq;
use crate::api::errno::{Errno, Result};
use crate::api::progress::Progress;
use crate::engine::op::{Access, CompletedOp, Completion, Error, Failure, Form, Tell};
use std::sync::Arc;

/// The counter bound for each kind of operation.
#[derive(Default)]
struct Cntrs {
    send: Option<Arc<Cntr>>,
    recv: Option<Arc<Cntr>>,
    read: Option<Arc<Cntr>>,
    write: Option<Arc<Cntr>>,
    remote_read: Option<Arc<Cntr>>,
    remote_write: Option<Arc<Cntr>>,
}

impl Cntrs {
    fn all(&self) -> [&Option<Arc<Cntr>>; 6] {
        [
            &self.send,
            &self.recv,
            &self.read,
            &self.write,
            &self.remote_read,
            &self.remote_write,
        ]
    }

    fn places(&mut self) -> [(u64, &mut Option<Arc<Cntr>>); 6] {
        [
            (FI_SEND, &mut self.send),
            (FI_RECV, &mut self.recv),
            (FI_READ, &mut self.read),
            (FI_WRITE, &mut self.write),
            (FI_REMOTE_READ, &mut self.remote_read),
            (FI_REMOTE_WRITE, &mut self.remote_write),
        ]
    }

    /// The counter of an operation. Fetching and comparing atomics count as reads.
    #[inline]
    fn of(&self, ended: CompletedOp) -> &Option<Arc<Cntr>> {
        match ended {
            CompletedOp::Send => &self.send,
            CompletedOp::Recv => &self.recv,
            CompletedOp::Rma(Access::Read) | CompletedOp::Atomic(Form::Fetch | Form::Compare) => &self.read,
            CompletedOp::Rma(Access::Write) | CompletedOp::Atomic(Form::Base) => &self.write,
            CompletedOp::Target {
                access: Access::Read, ..
            } => &self.remote_read,
            CompletedOp::Target {
                access: Access::Write, ..
            } => &self.remote_write,
        }
    }
}

/// The queues and counters whose reading drives an endpoint.
pub struct Drivers {
    queues: Vec<Arc<Cq>>,
    counters: Vec<Arc<Cntr>>,
}

impl Drivers {
    pub fn detach(&self, endpoint: &Arc<dyn Progress>) {
        for cq in &self.queues {
            let _ = cq.detach(endpoint);
        }
        for cntr in &self.counters {
            let _ = cntr.detach(endpoint);
        }
    }
}

/// An event queue that was replaced by another.
pub struct Unbound {
    eq: Arc<Eq>,
    /// The endpoint, if reading the queue drove it.
    driven: Option<Arc<dyn Progress>>,
}

impl Unbound {
    pub fn let_go(self) {
        if let Some(endpoint) = &self.driven {
            let _ = self.eq.detach(endpoint);
        }
        self.eq.refs().release();
    }
}

#[derive(Default)]
pub struct Bindings {
    tx: Option<Arc<Cq>>,
    rx: Option<Arc<Cq>>,
    /// FI_SELECTIVE_COMPLETION: only operations with FI_COMPLETION write an entry.
    tx_selective: bool,
    rx_selective: bool,
    cntrs: Cntrs,
    /// In front of each received message (FI_MSG_PREFIX): an entry's length has it, a counter of the user's bytes not.
    prefix: usize,
    eq: Option<Arc<Eq>>,
    /// The endpoint, if reading the event queue drives it.
    driven_by_eq: Option<Arc<dyn Progress>>,
    /// Operations that end with the peer were cancelled: the connection was shut down.
    connected: bool,
    /// Endpoints without queues of their own, driven by reading these (see `add_ward`).
    wards: Vec<Arc<dyn Progress>>,
}

impl Bindings {
    pub fn bind_cq(&mut self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        if flags & (FI_TRANSMIT | FI_RECV) == 0 || flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        let twice = flags & FI_TRANSMIT != 0 && self.tx.is_some() || flags & FI_RECV != 0 && self.rx.is_some();
        if twice {
            return Err(Errno(FI_EINVAL));
        }
        let selective = flags & FI_SELECTIVE_COMPLETION != 0;
        if flags & FI_TRANSMIT != 0 {
            cq.refs().acquire();
            (self.tx, self.tx_selective) = (Some(cq.clone()), selective);
        }
        if flags & FI_RECV != 0 {
            cq.refs().acquire();
            (self.rx, self.rx_selective) = (Some(cq.clone()), selective);
        }
        Ok(())
    }

    pub fn bind_cntr(&mut self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        const KNOWN: u64 = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        if flags & KNOWN == 0 || flags & !KNOWN != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        let mut places = self.cntrs.places();
        if places.iter().any(|(bit, place)| flags & bit != 0 && place.is_some()) {
            return Err(Errno(FI_EINVAL));
        }
        for (_, place) in places.iter_mut().filter(|(bit, _)| flags & bit != 0) {
            cntr.refs().acquire();
            **place = Some(cntr.clone());
        }
        Ok(())
    }

    /// The counter that is bound for receives.
    pub fn recv_counter(&self) -> Option<Arc<Cntr>> {
        self.cntrs.recv.clone()
    }

    /// An endpoint without a counter of its own for receives counts them with that of its shared context.
    pub fn count_receives_with(&mut self, shared: Option<Arc<Cntr>>) {
        if let Some(cntr) = shared.filter(|_| self.cntrs.recv.is_none()) {
            cntr.refs().acquire();
            self.cntrs.recv = Some(cntr);
        }
    }

    /// What still hears of receives while the endpoint is being closed. Holds nothing.
    pub fn for_receives(&self) -> Bindings {
        let mut bindings = Bindings {
            rx: self.rx.clone(),
            connected: self.connected,
            ..Bindings::default()
        };
        bindings.cntrs.recv = self.cntrs.recv.clone();
        bindings
    }

    /// Returns the queue that was bound before; the caller lets go of it after the endpoint's lock.
    pub fn bind_eq(&mut self, eq: &Arc<Eq>) -> Option<Unbound> {
        eq.refs().acquire();
        if let Some(endpoint) = &self.driven_by_eq {
            eq.attach(endpoint.clone());
        }
        self.eq.replace(eq.clone()).map(|eq| Unbound {
            eq,
            driven: self.driven_by_eq.clone(),
        })
    }

    pub fn eq(&self) -> Option<&Arc<Eq>> {
        self.eq.as_ref()
    }

    /// Makes reading the event queue drive the endpoint too, for events that its progress produces (FI_JOIN_COMPLETE).
    /// -FI_ENOEQ: none is bound.
    pub fn drive_by_eq(&mut self, endpoint: &Arc<dyn Progress>) -> Result<()> {
        let eq = self.eq.as_ref().ok_or(Errno(FI_ENOEQ as i32))?;
        if self.driven_by_eq.is_none() {
            eq.attach(endpoint.clone());
            self.driven_by_eq = Some(endpoint.clone());
        }
        Ok(())
    }

    /// -FI_ENOCQ: a direction that the endpoint has is bound to neither a queue nor a counter.
    pub fn check(&self, send: bool, recv: bool) -> Result<()> {
        let cntrs = &self.cntrs;
        let counted = cntrs.send.is_some() || cntrs.read.is_some() || cntrs.write.is_some();
        let silent = send && self.tx.is_none() && !counted || recv && self.rx.is_none() && cntrs.recv.is_none();
        if silent { Err(Errno(FI_ENOCQ as i32)) } else { Ok(()) }
    }

    fn queues(&self) -> impl Iterator<Item = &Arc<Cq>> {
        [&self.tx, &self.rx].into_iter().flatten()
    }

    /// Whether a queue has something for the program.
    pub fn have_told(&self) -> bool {
        self.queues().any(|cq| cq.has_told())
    }

    fn counters(&self) -> impl Iterator<Item = &Arc<Cntr>> {
        self.cntrs.all().into_iter().flatten()
    }

    /// Makes reading any of them drive the endpoint.
    pub fn attach(&self, endpoint: Arc<dyn Progress>) {
        self.queues().for_each(|cq| cq.attach(endpoint.clone()));
        self.counters().for_each(|cntr| cntr.attach(endpoint.clone()));
    }

    /// As `attach`, of a counter that was bound for these kinds of operation since.
    pub fn attach_counter(&self, cntr: &Arc<Cntr>, flags: u64, endpoint: &Arc<dyn Progress>) {
        for driven in core::iter::once(endpoint).chain(&self.wards) {
            (0..flags.count_ones()).for_each(|_| cntr.attach(driven.clone()));
        }
    }

    /// Whether any queue or counter is bound, so that reading it drives the endpoint.
    pub fn drives(&self) -> bool {
        self.queues().next().is_some() || self.counters().next().is_some()
    }

    /// Makes reading any of them drive an endpoint that has no queue of its own. Once is enough for each.
    pub fn add_ward(&mut self, ward: &Arc<dyn Progress>) {
        if !self.wards.iter().any(|known| Arc::ptr_eq(known, ward)) {
            self.attach(ward.clone());
            self.wards.push(ward.clone());
        }
    }

    /// Takes a ward back. Returns what to detach it from, after the endpoint's lock; None: it was not a ward.
    pub fn remove_ward(&mut self, ward: &Arc<dyn Progress>) -> Option<Drivers> {
        let at = self.wards.iter().position(|known| Arc::ptr_eq(known, ward))?;
        self.wards.swap_remove(at);
        Some(self.drivers())
    }

    pub fn drivers(&self) -> Drivers {
        Drivers {
            queues: self.queues().cloned().collect(),
            counters: self.counters().cloned().collect(),
        }
    }

    /// Takes `attach` back, for the wards too. Not under the endpoint's lock, as every `detach`: it may wait for a
    /// sleeper that is looking at the same attachment and needs that lock.
    fn stop(&mut self, endpoint: &Arc<dyn Progress>) {
        let drivers = self.drivers();
        drivers.detach(endpoint);
        for ward in std::mem::take(&mut self.wards) {
            drivers.detach(&ward);
        }
        if let (Some(eq), Some(_)) = (&self.eq, &self.driven_by_eq) {
            let _ = eq.detach(endpoint);
        }
    }

    /// Unbinds everything. An endpoint that was never attached is only unbound.
    pub fn detach(mut self, endpoint: &Arc<dyn Progress>) {
        self.stop(endpoint);
        self.queues().for_each(|cq| cq.refs().release());
        self.counters().for_each(|cntr| cntr.refs().release());
        if let Some(eq) = &self.eq {
            eq.refs().release();
        }
    }

    /// Whether a counter is bound for sends.
    #[inline]
    pub fn counts_sends(&self) -> bool {
        self.cntrs.send.is_some()
    }

    /// Whether `cntr` is bound for operations of this kind.
    pub fn counts_with(&self, ended: CompletedOp, cntr: &Arc<Cntr>) -> bool {
        self.cntrs
            .of(ended)
            .as_ref()
            .is_some_and(|bound| Arc::ptr_eq(bound, cntr))
    }

    /// Whether anybody hears of the success of an operation that an endpoint starts.
    pub fn hears(&self, op: CompletedOp, tell: Tell) -> bool {
        let queue = tell == Tell::Queue && self.tx.is_some();
        tell == Tell::Own || queue || self.cntrs.of(op).is_some()
    }

    /// Whether a counter is bound for what peers read or write (FI_REMOTE_READ, FI_REMOTE_WRITE).
    pub fn counts_peers(&self) -> bool {
        self.cntrs.remote_read.is_some() || self.cntrs.remote_write.is_some()
    }

    /// The queue for sends, RMA, atomics and collectives that the endpoint initiates.
    pub fn tx_queue(&self) -> Option<&Arc<Cq>> {
        self.tx.as_ref()
    }

    /// Whether a queue is bound for receives.
    pub fn hears_receives(&self) -> bool {
        self.rx.is_some()
    }

    #[inline]
    pub fn tx_selective(&self) -> bool {
        self.tx_selective
    }

    #[inline]
    pub fn rx_selective(&self) -> bool {
        self.rx_selective
    }

    /// Writes a completion to the queue and the counter of its direction.
    #[inline(always)]
    pub fn report(&self, end: &Completion, source: fi_addr_t) {
        let bound = self.cq_of(end.op);
        let cntr = self.cntrs.of(end.op);
        if let Some(failure) = end.failure {
            return self.fail(bound.as_ref(), cntr.as_ref(), *end, failure, source);
        }
        // FI_PEEK is a question, not an operation that a counter counts.
        if let Some(cntr) = cntr.as_ref().filter(|_| !end.peeked) {
            cntr.complete(self.user_bytes(end));
        }
        if let Some(cq) = bound.as_ref().filter(|_| self.is_for_queue(end.tell)) {
            cq.post(&Entry {
                context: end.context,
                flags: flags(end),
                len: end.len,
                buf: end.buf,
                data: end.data.unwrap_or(0),
                tag: end.tag,
                src: source,
            });
        }
    }
}

impl Bindings {
    /// Whether the success of an operation is told to the queue, and not to the counter alone.
    #[inline(always)]
    fn is_for_queue(&self, tell: Tell) -> bool {
        tell == Tell::Queue || tell == Tell::ByQueue && !self.rx_selective
    }

    #[inline(always)]
    fn cq_of(&self, op: CompletedOp) -> &Option<Arc<Cq>> {
        match op {
            CompletedOp::Send | CompletedOp::Rma(_) | CompletedOp::Atomic(_) => &self.tx,
            CompletedOp::Recv | CompletedOp::Target { .. } => &self.rx,
        }
    }

    /// Reports an operation that the engine was not asked for, or has refused.
    #[cold]
    pub fn report_not_begun(&self, end: &Completion, error: Errno) {
        if let Some(cntr) = self.cntrs.of(end.op) {
            cntr.fail();
        }
        if let Some(cq) = self.cq_of(end.op) {
            cq.post_error(error_entry(end, error.0, FI_ADDR_NOTAVAIL));
        }
    }

    #[cold]
    fn fail(
        &self,
        cq: Option<&Arc<Cq>>,
        cntr: Option<&Arc<Cntr>>,
        end: Completion,
        failure: Failure,
        source: fi_addr_t,
    ) {
        if let Some(cntr) = cntr.filter(|_| !end.peeked) {
            cntr.fail();
        }
        let Some(cq) = cq else { return };
        let errno = match failure.error {
            Error::PeerGone if self.connected => FI_ECANCELED,
            error => errno(error),
        };
        cq.post_error(ErrorEntry {
            olen: failure.overflow,
            ..error_entry(&end, errno, source)
        });
    }

    pub fn behind_a_prefix(&mut self, len: usize) {
        self.prefix = len;
    }

    fn user_bytes(&self, end: &Completion) -> usize {
        match end.op {
            CompletedOp::Recv => end.len.saturating_sub(self.prefix),
            _ => end.len,
        }
    }

    /// The endpoint is one of FI_EP_MSG.
    pub fn connected(&mut self) {
        self.connected = true;
    }

    /// Reports a successful receive from a peer that the address vector does not have: an error entry with the peer's
    /// address (FI_SOURCE_ERR), and the authorization key that it is told to come under.
    #[cold]
    pub fn report_stranger(&self, end: &Completion, address: Vec<u8>, key: fi_addr_t) {
        if let Some(cntr) = &self.cntrs.recv {
            cntr.complete(self.user_bytes(end));
        }
        if let Some(cq) = self.rx.as_ref().filter(|_| self.is_for_queue(end.tell)) {
            cq.post_error(ErrorEntry {
                err_data: address,
                ..error_entry(end, FI_EADDRNOTAVAIL, key)
            });
        }
    }
}
