//! What lies behind the lock of an endpoint or of a shared receive context: an engine, and where it reports to.
//!
//! One body for both. They differ in `Owners`: a plain endpoint has its engine to itself, the endpoints of a shared
//! receive context have one together. Knows no lock and no object. Called by `host`, and by calls that begin an
//! operation.

use super::EndpointTransport;
use super::collective::RunnerHands;
use super::state::{EndpointState, PendingCompletions};
use crate::api::collective::run::{Finished, Runner};
use crate::api::cq::Cq;
use crate::api::driver::Driver;
use crate::api::eq::Eq;
use crate::engine::endpoint::Engine;
use crate::engine::op::{Completion, MessageKind, OperationOf, Report};
use crate::engine::port::{PeerId, Transport};
use crate::util::ready::Ready;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashSet;
use std::sync::Arc;

/// The endpoints that one engine works for.
pub(super) trait Owners {
    /// The transport of one endpoint, which knows what addresses look like.
    type Endpoint: EndpointTransport;
    /// What the engine works over: that transport, or several as one.
    type Transport: Transport;

    /// What the engine reports to while it works. `send`, `recv` and `progress` are inlined with it.
    type Reporter<'a>: Report
    where
        Self: 'a;

    /// `pending`: for completions that cannot be reported before the engine has returned.
    fn reporter<'a>(&'a mut self, pending: &'a mut PendingCompletions) -> Self::Reporter<'a>;

    /// The endpoint that a pending completion belongs to; None: it is closed.
    fn owner_of(&mut self, completion: &Completion, transport: &Self::Transport) -> Option<&mut EndpointState>;

    /// Where the completions and joins of one owner's collectives are reported; None: it is closed.
    fn collective_queues(&self, owner: usize) -> Option<CollectiveQueues<'_>>;

    /// The state of the object itself: the endpoint, or the shared receive context.
    fn state(&mut self) -> &mut EndpointState;

    /// The states of all that use the engine.
    fn states(&mut self) -> impl Iterator<Item = &mut EndpointState>;

    /// Whether the thread of FI_PROGRESS_AUTO drives the engine.
    fn is_driven(&self) -> bool;

    /// Tells the program what has become of connections, after each poll.
    fn hear_connections(&mut self, transport: &mut Self::Transport);

    fn address_of(transport: &Self::Transport, peer: PeerId) -> Option<&[u8]>;

    /// Wakes the threads that sleep on the transport.
    fn wake(transport: &Self::Transport);
}

pub(super) struct CollectiveQueues<'a> {
    pub cq: Option<&'a Arc<Cq>>,
    pub eq: Option<&'a Arc<Eq>>,
}

pub(super) struct EndpointCore<O: Owners> {
    pub engine: Engine<O::Transport>,
    pub owners: O,
    /// Somebody is to be told when an operation is begun: a sleeper, a mark or siblings.
    heard: bool,
    /// A waiter sleeps without a liveness timer, as nothing was unfinished; the next operation must wake it.
    deep_sleep: bool,
    /// Set when `progress` has something to do; None: only calling it finds out.
    mark: Option<Arc<Ready>>,
    /// Set while an operation may be unfinished, for others that then drive this engine too; None: there are none.
    busy: Option<Arc<AtomicBool>>,
    /// After the engine, which may still use its memory: fields are dropped in this order.
    pub runner: Runner,
    /// Completions that no queue has yet; empty between calls, kept for its memory.
    pub pending: PendingCompletions,
}

impl<O: Owners> EndpointCore<O> {
    pub(super) fn new(engine: Engine<O::Transport>, owners: O) -> EndpointCore<O> {
        EndpointCore {
            engine,
            owners,
            heard: false,
            deep_sleep: false,
            mark: None,
            busy: None,
            runner: Runner::default(),
            pending: PendingCompletions::default(),
        }
    }

    /// The engine, and what it reports to.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut Engine<O::Transport>, O::Reporter<'_>) {
        (&mut self.engine, self.owners.reporter(&mut self.pending))
    }

    /// Reports what the engine has left pending. After each call of the engine.
    #[inline]
    pub(super) fn report(&mut self) {
        if !self.pending.completions.is_empty() {
            self.report_pending();
        }
        if self.runner.is_ready() {
            self.report_collectives();
        }
    }

    #[cold]
    fn report_pending(&mut self) {
        let transport = self.engine.transport();
        for completion in self.pending.completions.drain(..) {
            if completion.kind == MessageKind::Collective {
                self.runner.ended(&completion);
            } else if let Some(state) = self.owners.owner_of(&completion, transport) {
                state.report::<O::Endpoint>(&completion, |peer| O::address_of(transport, peer));
            }
        }
    }

    /// Lets collectives go on, and reports those that are over.
    #[cold]
    fn report_collectives(&mut self) {
        while self.runner.is_ready() {
            let (runner, mut hands) = self.runner_and_hands();
            runner.advance(&mut hands);
            self.report_pending();
            while let Some(finished) = self.runner.finished() {
                self.report_finished(&finished);
            }
        }
    }

    fn report_finished(&self, finished: &Finished) {
        if let Some(queues) = self.owners.collective_queues(finished.owner) {
            super::collective::report_finished(finished, queues);
        }
    }

    /// Collectives of one owner go no further.
    pub(super) fn abandon(&mut self, owner: usize) {
        let (runner, mut hands) = self.runner_and_hands();
        runner.abandon(owner, &mut hands);
    }

    fn runner_and_hands(&mut self) -> (&mut Runner, RunnerHands<'_, O::Transport>) {
        let hands = RunnerHands {
            engine: &mut self.engine,
            pending: &mut self.pending,
        };
        (&mut self.runner, hands)
    }

    /// Moves on what can be moved.
    #[inline]
    pub(super) fn progress(&mut self) {
        {
            let (engine, mut reporter) = self.parts();
            engine.progress(&mut reporter);
        }
        self.progressed();
    }

    /// `progress` for callers other than the read of a queue. Another reporter leaves that the only caller of the
    /// engine's own, so that an empty poll is one function.
    #[cold]
    pub(super) fn progress_apart(&mut self) {
        self.engine.progress(&mut &mut self.pending);
        self.progressed();
    }

    #[inline(always)]
    fn progressed(&mut self) {
        self.runner.retry();
        self.report();
        if self.pending.rare {
            self.see_to_rare();
        }
        self.owners.hear_connections(self.engine.transport_mut());
    }

    /// Logs what peers were refused, and makes room if their number has grown.
    #[cold]
    fn see_to_rare(&mut self) {
        let transport = self.engine.transport();
        let provider = self.owners.state().provider;
        for refusal in self.pending.refusals.drain(..) {
            let address = O::address_of(transport, refusal.peer).map(O::Endpoint::raw_address);
            refusal.log(provider, address.as_deref());
        }
        self.pending.rare = false;
        if transport.is_crowded() {
            self.forget_peers();
        }
    }

    /// Lets go of peers that are gone and that no address vector, group or operation names.
    #[cold]
    fn forget_peers(&mut self) {
        let known: HashSet<PeerId> = self.owners.states().flat_map(|state| state.peers.held()).collect();
        let runner = &self.runner;
        let gone = self
            .engine
            .forget_peers(|peer| known.contains(&peer) || runner.names(peer));
        self.owners.states().for_each(|state| state.peers.reuse(&gone));
    }

    /// fi_cancel of a receive. False: there is no such receive.
    pub(super) fn cancel_receive(&mut self, operation: OperationOf) -> bool {
        let found = self.engine.cancel_receive(operation, &mut &mut self.pending);
        self.report();
        found
    }

    /// fi_cancel of any other operation. False: there is none, or it has begun.
    pub(super) fn cancel_queued(&mut self, operation: OperationOf) -> bool {
        let found = self.engine.cancel_queued(operation, &mut &mut self.pending);
        self.report();
        found
    }

    /// The transport says by this mark that there is something to do.
    pub(super) fn mark_with(&mut self, mark: Arc<Ready>) {
        self.mark = Some(mark);
        self.heard = true;
    }

    /// Others drive this engine too, while this says that it is busy.
    pub(super) fn share(&mut self, busy: &Arc<AtomicBool>) {
        self.busy = Some(busy.clone());
        self.heard = true;
    }

    /// `progress` for those others.
    #[cold]
    pub(super) fn progress_shared(&mut self) {
        self.progress_apart();
        let engine = &self.engine;
        if let Some(busy) = &self.busy
            && !(engine.has_work() || engine.in_flight() > 0 || engine.transport().has_unsent())
        {
            busy.store(false, Ordering::Relaxed);
        }
    }

    /// Whether `progress` could do something now, besides what the transport tells of.
    pub(super) fn has_work(&self) -> bool {
        self.engine.has_work() || self.runner.is_stalled()
    }

    /// Whether something waits for a peer.
    fn unfinished(&self) -> bool {
        self.engine.unfinished() || self.runner.is_stalled()
    }

    /// A waiter is about to sleep: whether it must look at its peers now and then, as those that die do not wake it.
    pub(super) fn must_watch(&mut self) -> bool {
        let unfinished = self.unfinished();
        self.deep_sleep = !unfinished;
        self.heard |= self.deep_sleep;
        unfinished
    }

    /// An operation was begun. Wakes a waiter that sleeps without looking at its peers, as it may have to end it.
    #[inline]
    pub(super) fn begun(&mut self, driver: Option<&Driver>) {
        if self.heard || self.owners.is_driven() {
            self.tell_begun(driver);
        }
    }

    #[cold]
    fn tell_begun(&mut self, driver: Option<&Driver>) {
        if let Some(busy) = &self.busy {
            // Whether something was only gathered is asked later, by `progress_shared`: it takes a look at all peers.
            let may_be = O::Transport::PUSHES_LATER || self.engine.has_work() || self.engine.in_flight() > 0;
            // Read first: others look at it often, and only a change costs them something.
            if may_be && !busy.load(Ordering::Relaxed) {
                busy.store(true, Ordering::Relaxed);
            }
        }
        if let Some(mark) = &self.mark {
            // Its transport tells of peers that die.
            if self.has_work() {
                mark.set();
                if core::mem::take(&mut self.deep_sleep) {
                    O::wake(self.engine.transport());
                }
            }
            return;
        }
        if !self.unfinished() {
            return;
        }
        let slept = core::mem::replace(&mut self.deep_sleep, false);
        self.heard = self.busy.is_some();
        match driver {
            Some(driver) => driver.note_unfinished(),
            None if slept => O::wake(self.engine.transport()),
            None => {}
        }
    }
}
