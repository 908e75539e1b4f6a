//! Deferred work and triggered operations: what a domain starts by itself when a counter reaches a threshold.
//!
//! A counter that reaches a threshold only sets a flag (`due`). The work is started outside all locks of endpoints and
//! counters, by whoever comes by next: the end of an endpoint's call, a program's change of a counter, the thread of
//! FI_PROGRESS_AUTO. Work that is refused with -FI_EAGAIN stays due, and what is behind it in its line waits.
//! Completions of operations with a counter of their own come back by number (`landed`). Knows no transport. Called by
//! `endpoint`, and by the shims of domains, endpoints and counters.
//!
//! - `work`: one piece of work; `lines`: what waits, a line for each counter; `due`: the flag.

pub mod due;
mod lines;
#[cfg(test)]
mod tests;
pub mod work;

use super::cntr::Cntr;
use super::domain::Domain;
use super::endpoint::EndpointOps;
use super::errno::{self, Errno, Result};
use super::messaging::Flags;
use super::mr::memory::Memory;
use crate::abi::types::*;
use crate::api::log::Speaker;
use crate::engine::op::{Completion, Context, OperationOf};
use crate::util::lock::OptLock;
use crate::util::slab::{Id, Slab};
use core::sync::atomic::{Ordering, fence};
use due::Due;
use lines::Lines;
use std::sync::Arc;
use work::{Action, AnyEndpoint, Call, Change, Ending, Held, On, Work};

/// A started operation whose completion goes to a counter of its own.
struct Flight {
    endpoint: usize,
    counted: Option<Arc<Held>>,
    /// The program's.
    context: Context,
    /// FI_COMPLETION: its completion goes to the endpoint's queue and counter too, with that context.
    entry: bool,
    /// FI_MULTI_RECV: several completions come, the last of which gives the buffer back.
    multi: bool,
}

/// Where the completion of a deferred operation goes.
pub struct Landed {
    pub counted: Option<Arc<Held>>,
    pub entry: Option<Context>,
}

struct DeferredState {
    lines: Lines,
    flights: Slab<Flight>,
    /// Counters that work waits for or steps: reading one drives all endpoints of the domain.
    driving: Vec<Arc<Cntr>>,
}

pub struct Deferred {
    due: Arc<Due>,
    /// Held while work is started or taken back, so that nothing is started that was just taken back.
    turn: OptLock<()>,
    state: OptLock<DeferredState>,
    memory: Arc<Memory>,
    provider: Speaker,
}

impl Deferred {
    /// `locked`: calls on different objects of the domain may come from several threads at once.
    pub fn new(provider: Speaker, memory: &Arc<Memory>, locked: bool) -> Arc<Deferred> {
        let due = Arc::new(Due::default());
        let state = DeferredState {
            lines: Lines::new(&due),
            flights: Slab::default(),
            driving: Vec::new(),
        };
        Arc::new(Deferred {
            turn: OptLock::new((), locked),
            state: OptLock::new(state, locked),
            memory: memory.clone(),
            provider,
            due,
        })
    }

    // ---- starting ----

    /// Starts the work that is due. The caller may hold no lock of an endpoint or counter.
    #[inline]
    pub fn run(&self) {
        if self.due.is_set() {
            self.start_due();
        }
    }

    pub fn is_due(&self) -> bool {
        self.due.is_set()
    }

    #[cold]
    fn start_due(&self) {
        // SYNC POINT: here the turn is released, then the flag read; a thread that comes meanwhile has set the flag,
        // then tries to get the turn. One of the two sees the other.
        while self.due.is_set() {
            fence(Ordering::SeqCst);
            let Some(turn) = self.turn.try_lock() else {
                return; // the thread that has the turn looks again
            };
            self.due.clear();
            if self.pass() {
                self.due.set(); // and the next who comes by tries again
                return;
            }
            drop(turn);
            fence(Ordering::SeqCst);
        }
    }

    /// Starts what is due once. Returns whether some of it was refused with -FI_EAGAIN.
    fn pass(&self) -> bool {
        loop {
            let next = self.state.lock().lines.take_due();
            let Some((turn, work)) = next else { break };
            match self.start(&work) {
                Ok(()) => {}
                Err(Errno(FI_EAGAIN)) => self.state.lock().lines.put_back(turn, work),
                Err(error) => {
                    log!(
                        by self.provider;
                        Warn,
                        Domain,
                        "deferred work could not be started: {}",
                        errno::text(error.0).to_string_lossy()
                    );
                    work.fail(error);
                }
            }
        }
        self.state.lock().lines.unstick()
    }

    fn start(&self, work: &Work) -> Result<()> {
        match &work.action {
            Action::Count { cntr, change } => {
                match *change {
                    Change::Set(value) => cntr.cntr().assign(value),
                    Change::Add(value) => cntr.cntr().advance(value),
                }
                Ok(())
            }
            Action::Operation { endpoint, call, ending } => match ending {
                Ending::Ordinary => endpoint.begin(call),
                Ending::Counted(counted) => self.fly(endpoint.as_ref(), call, counted.as_ref()),
            },
        }
    }

    fn fly(&self, endpoint: &dyn AnyEndpoint, call: &Call, counted: Option<&Held>) -> Result<()> {
        let flags = match call.flags() {
            Flags::Call(flags) => flags,
            _ => 0,
        };
        let flight = Flight {
            endpoint: endpoint.key(),
            counted: counted.map(|held| Arc::new(Held::new(held.cntr()))),
            context: call.context(),
            entry: work::wants_entry(call),
            multi: call.is_recv() && flags & FI_MULTI_RECV != 0,
        };
        let id = self.state.lock().flights.insert(flight);
        let result = endpoint.begin(&work::owned(call, id.bits() as Context));
        if result.is_err() {
            // It was refused, so no completion will come.
            self.state.lock().flights.remove(id);
        }
        result
    }

    /// Takes the completion of an operation that was started here; with FI_MULTI_RECV one of several.
    pub fn landed(&self, end: &Completion) -> Option<Landed> {
        let id = Id::from_bits(end.context as u64);
        let mut state = self.state.lock();
        let flight = state.flights.get(id)?;
        let landed = Landed {
            counted: flight.counted.clone(),
            entry: flight.entry.then_some(flight.context),
        };
        if !flight.multi || end.released {
            state.flights.remove(id);
        }
        Some(landed)
    }

    // ---- submitting and taking back ----

    /// Queues work until its threshold is reached. If that is so already it is started at once, and the result is that
    /// of the start.
    pub fn queue(&self, work: Work) -> Result<()> {
        let turn = self.turn.lock();
        let mut state = self.state.lock();
        self.drive_by(&mut state, &work);
        let now = work.is_due() && state.lines.is_first(&work);
        drop(state);
        let answer = if now { self.start(&work) } else { Err(Errno(FI_EAGAIN)) };
        if answer == Err(Errno(FI_EAGAIN)) {
            self.state.lock().lines.add(work);
        }
        self.give_back(turn);
        if answer == Err(Errno(FI_EAGAIN)) {
            Ok(())
        } else {
            answer
        }
    }

    /// FI_CANCEL_WORK. -FI_ENOENT: it was started, or never queued.
    pub fn cancel(&self, name: usize) -> Result<()> {
        let found = self.remove(|work| work.name == name && work.triggered().is_none());
        if !found.is_empty() {
            Ok(())
        } else {
            Err(Errno(FI_ENOENT))
        }
    }

    /// The numbers of an endpoint's operations that were started here with this context and have not ended, in no
    /// order.
    fn started(&self, endpoint: usize, context: Context) -> Vec<Context> {
        let state = self.state.lock();
        let meant = |flight: &Flight| flight.endpoint == endpoint && flight.context == context;
        let found = state.flights.iter().filter(|(_, flight)| meant(flight));
        found.map(|(id, _)| id.bits() as Context).collect()
    }

    /// FI_FLUSH_WORK: drops all work that has not started, or what waits for one counter.
    pub fn flush(&self, cntr: Option<&Arc<Cntr>>) {
        self.remove(|work| cntr.is_none_or(|cntr| Arc::ptr_eq(cntr, work.trigger.cntr())));
    }

    /// fi_close of an endpoint: drops its work, and completions of its operations go nowhere.
    pub fn leave(&self, endpoint: usize) {
        self.remove(|work| work.is_on(endpoint));
        let mut state = self.state.lock();
        let here = state.flights.iter().filter(|(_, flight)| flight.endpoint == endpoint);
        let ids: Vec<Id> = here.map(|(id, _)| id).collect();
        for id in ids {
            state.flights.remove(id);
        }
    }

    fn remove(&self, meant: impl FnMut(&Work) -> bool) -> Vec<Work> {
        let turn = self.turn.lock();
        let removed = self.state.lock().lines.remove(meant);
        self.give_back(turn);
        removed
    }

    /// SYNC POINT: as in `start_due`. Whoever found the turn taken relies on this look.
    fn give_back(&self, turn: impl Drop) {
        drop(turn);
        fence(Ordering::SeqCst);
        self.run();
    }

    // ---- driving ----

    /// Has reading the counters of this work drive all endpoints: any of them may be the one that moves them.
    fn drive_by(&self, state: &mut DeferredState, work: &Work) {
        for cntr in work.counters() {
            if !state.driving.iter().any(|known| Arc::ptr_eq(known, cntr)) {
                self.memory.drive(cntr);
                state.driving.push(cntr.clone());
            }
        }
    }

    /// Takes `drive_by` back for a counter that no work names any more. Before the counter is closed.
    pub fn let_go(&self, cntr: &Arc<Cntr>) {
        let mut state = self.state.lock();
        let found = state.driving.iter().position(|known| Arc::ptr_eq(known, cntr));
        if let Some(at) = found.filter(|_| cntr.refs().count() == 0) {
            state.driving.swap_remove(at);
            self.memory.release(cntr);
        }
    }
}

/// Whether an endpoint can defer an operation with these flags.
fn check(endpoint: &dyn EndpointOps, flags: u64, call: &Call) -> Result<()> {
    if !endpoint.domain().triggers {
        return Err(Errno(FI_ENOSYS));
    }
    work::check_flags(flags, call.is_recv())?;
    endpoint.lock_state().can_wait(call)
}

/// An operation with FI_TRIGGER: started when the counter reaches the threshold, and reported as any other.
pub fn trigger(endpoint: &dyn EndpointOps, call: &Call, cntr: &Arc<Cntr>, threshold: u64) -> Result<()> {
    let (tx, rx) = endpoint.both_flags();
    let flags = match call.flags() {
        Flags::Call(flags) | Flags::Alias(flags) | Flags::Own(flags) => flags,
        Flags::Endpoint if call.is_recv() => rx,
        Flags::Endpoint => tx,
        Flags::Inject | Flags::AliasInject(_) => FI_INJECT,
    };
    check(endpoint, flags, call)?;
    endpoint.domain().deferred.queue(Work {
        trigger: Held::new(cntr),
        threshold,
        name: call.context(),
        action: Action::Operation {
            endpoint: Box::new(On(endpoint.base())),
            call: Box::new(work::ordinary(call, flags)),
            ending: Ending::Ordinary,
        },
    })
}

/// fi_cancel: of what the endpoint has, of deferred work that was started, or else of operations with FI_TRIGGER that
/// have not been started. If there are none with this context, the endpoint's answer stands: -FI_ENOENT, or that
/// it can take nothing back.
pub fn cancel(endpoint: &dyn EndpointOps, context: Context) -> Result<()> {
    let Err(answer) = endpoint.cancel(OperationOf::Program(context)) else {
        return Ok(());
    };
    let key = work::key_of(endpoint);
    let deferred = &endpoint.domain().deferred;
    let taken_back = |number| endpoint.cancel(OperationOf::Library(number)).is_ok();
    if deferred.started(key, context).into_iter().any(taken_back) {
        return Ok(());
    }
    let meant = |work: &Work| work.name == context && work.triggered().is_some() && work.is_on(key);
    let canceled = deferred.remove(meant);
    for call in canceled.iter().filter_map(Work::triggered) {
        endpoint.lock_state().report_not_begun(call, Errno(FI_ECANCELED), None);
    }
    deferred.run(); // the counter of the direction has one more error
    if canceled.is_empty() { Err(answer) } else { Ok(()) }
}

/// The parts of struct fi_deferred_work that are the same for all operations.
pub struct Terms<'a> {
    pub trigger: &'a Arc<Cntr>,
    pub threshold: u64,
    pub completion: Option<&'a Arc<Cntr>>,
    pub name: usize,
}

/// FI_QUEUE_WORK with an operation.
pub fn queue_operation(endpoint: &dyn EndpointOps, call: Call, terms: &Terms) -> Result<()> {
    let Flags::Call(flags) = call.flags() else {
        return Err(Errno(FI_EINVAL));
    };
    check(endpoint, flags, &call)?;
    endpoint.domain().deferred.queue(Work {
        trigger: Held::new(terms.trigger),
        threshold: terms.threshold,
        name: terms.name,
        action: Action::Operation {
            endpoint: Box::new(On(endpoint.base())),
            call: Box::new(call),
            ending: Ending::Counted(terms.completion.map(Held::new)),
        },
    })
}

/// FI_QUEUE_WORK with FI_OP_CNTR_SET or FI_OP_CNTR_ADD, which step no completion counter.
pub fn queue_count(domain: &Domain, cntr: &Arc<Cntr>, change: Change, terms: &Terms) -> Result<()> {
    if !domain.triggers {
        return Err(Errno(FI_ENOSYS));
    }
    if terms.completion.is_some() {
        return Err(Errno(FI_EINVAL));
    }
    domain.deferred.queue(Work {
        trigger: Held::new(terms.trigger),
        threshold: terms.threshold,
        name: terms.name,
        action: Action::Count {
            cntr: Held::new(cntr),
            change,
        },
    })
}
