//! An engine behind its lock, and what every call of an endpoint does around it: enter, begin, report, leave.
//!
//! fi_close closes the host, while other threads may still have references to the object. Knows neither messages nor
//! addresses. Called by endpoints and by shared receive contexts.

use super::engine_core::{EndpointCore, Owners};
use super::state::{StateGuard, refused};
use crate::abi::types::*;
use crate::api::deferred::Deferred;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::NotBegun;
use crate::api::progress::Watch;
use crate::engine::op::{Completion, OperationOf, Refused, Report};
use crate::util::closable::{Closable, Entered};
use core::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct EngineHost<O: Owners> {
    pub domain: Arc<Domain>,
    /// The domain's.
    deferred: Arc<Deferred>,
    core: Closable<EndpointCore<O>>,
    /// Of a transport that need not be polled, from fi_enable on.
    watch: Mutex<Option<Watch>>,
}

impl<O: Owners> EngineHost<O> {
    /// `locked`: whether several threads may call at once.
    pub(super) fn new(domain: &Arc<Domain>, core: EndpointCore<O>, locked: bool) -> EngineHost<O> {
        domain.users.acquire();
        EngineHost {
            domain: domain.clone(),
            deferred: domain.deferred.clone(),
            core: Closable::new(core, locked),
            watch: Mutex::default(),
        }
    }

    /// Waits for the lock. None: the object is closed, though another thread still has a reference.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<Entered<'_, EndpointCore<O>>> {
        self.core.enter()
    }

    /// For a call of the application, which must not use an object that it has closed: -FI_EOPBADSTATE.
    #[inline(always)]
    pub(super) fn enter(&self) -> Result<Entered<'_, EndpointCore<O>>> {
        self.core.enter().ok_or(Errno(FI_EOPBADSTATE as i32))
    }

    /// Ends every call that gave the engine an operation: reports completions, wakes a sleeper, starts deferred work.
    #[inline(always)]
    pub(super) fn finish(
        &self,
        mut core: Entered<'_, EndpointCore<O>>,
        begun: core::result::Result<(), Refused>,
    ) -> Result<(), NotBegun> {
        core.report();
        core.begun(self.domain.driver.as_ref());
        drop(core);
        self.deferred.run();
        begun.map_err(refused)
    }

    /// The same for an operation that is complete, of which no sleeper need know.
    #[inline(always)]
    pub(super) fn finish_done(&self, mut core: Entered<'_, EndpointCore<O>>, done: Completion) -> Result<(), NotBegun> {
        core.parts().1.report(done);
        // It may be deferred work, whose completion starts the next.
        if !core.pending.completions.is_empty() {
            core.report();
        }
        drop(core);
        self.deferred.run();
        Ok(())
    }

    /// Drives the engine, unless the object is closed or another thread is at it.
    #[inline]
    pub(super) fn progress(&self) {
        self.progress_after(|_| ());
    }

    /// `progress`, after something was said to the transport.
    #[inline]
    pub(super) fn progress_after(&self, say: impl FnOnce(&O::Transport)) {
        let Some(mut core) = self.core.poll() else { return };
        say(core.engine.transport());
        core.progress();
        drop(core);
        self.deferred.run();
    }

    /// `progress` for those whom `share` told that the engine is busy.
    #[cold]
    pub(super) fn progress_shared(&self) {
        let Some(mut core) = self.core.poll() else { return };
        core.progress_shared();
        drop(core);
        self.deferred.run();
    }

    /// Others drive the engine too, while it says that it is busy.
    pub(super) fn share(&self, busy: &Arc<AtomicBool>) {
        if let Some(mut core) = self.core.enter() {
            core.share(busy);
        }
    }

    /// Runs a closure on what is inside, and drives it.
    pub(super) fn with_core<R>(&self, use_it: impl FnOnce(&mut EndpointCore<O>) -> Result<R>) -> Result<R> {
        let mut core = self.enter()?;
        let result = use_it(&mut core);
        core.progress_apart();
        core.begun(self.domain.driver.as_ref());
        drop(core);
        self.deferred.run();
        result
    }

    /// fi_enable: asks the transport, by `ask`, whether it says itself when there is something to do.
    pub(super) fn begin_watch(&self, ask: impl FnOnce(&mut O::Transport) -> Option<Watch>) {
        let Some(mut core) = self.core.enter() else { return };
        if let Some(watch) = ask(core.engine.transport_mut()) {
            core.mark_with(watch.mark.clone());
            *self.lock_watch() = Some(watch);
        }
    }

    /// See `Progress::watch`.
    pub(super) fn watch(&self) -> Option<Watch> {
        self.lock_watch().clone()
    }

    fn lock_watch(&self) -> MutexGuard<'_, Option<Watch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See `Progress::turn`; after something was said to the transport.
    pub(super) fn turn_after(&self, say: impl FnOnce(&O::Transport)) -> bool {
        let Some(mut core) = self.core.poll() else {
            return !self.core.is_closed();
        };
        say(core.engine.transport());
        core.progress_apart();
        let more = core.has_work();
        drop(core);
        self.deferred.run();
        more
    }

    pub(super) fn cancel(&self, operation: OperationOf) -> Result<()> {
        let mut core = self.enter()?;
        let found = core.cancel_receive(operation) || core.cancel_queued(operation);
        core.begun(self.domain.driver.as_ref()); // what had waited behind it
        drop(core);
        self.canceled(found)
    }

    /// The same of receives alone.
    pub(super) fn cancel_receive(&self, operation: OperationOf) -> Result<()> {
        let found = self.enter()?.cancel_receive(operation);
        self.canceled(found)
    }

    fn canceled(&self, found: bool) -> Result<()> {
        self.deferred.run();
        if found { Ok(()) } else { Err(Errno(FI_ENOENT)) }
    }

    pub(super) fn lock_state(&self) -> StateGuard<'_> {
        let state = |core| Entered::map(core, |core: &mut EndpointCore<O>| core.owners.state());
        StateGuard::of(self.core.enter().map(state), self.domain.provider)
    }

    /// Announces a sleeper, by `arm` on the transport; false: there is work. See `Progress::arm`.
    pub(super) fn arm(&self, arm: impl FnOnce(&mut O::Transport) -> bool) -> bool {
        let Some(mut entered) = self.core.enter() else {
            return true; // closed: it never has work again
        };
        let core = &mut *entered;
        let settled = {
            let (engine, mut reporter) = core.parts();
            engine.may_sleep(&mut reporter)
        };
        core.report();
        arm(core.engine.transport_mut()) && settled && !core.engine.has_work() && !self.deferred.is_due()
    }

    /// See `Progress::unfinished`.
    pub(super) fn must_watch(&self) -> bool {
        self.core.enter().is_some_and(|mut core| core.must_watch())
    }

    /// Waits until no other thread is in the middle of a call.
    pub(super) fn settle(&self) {
        self.core.pass();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// Ends the transport and all that is unfinished, and lets go of the address vector and the domain.
    pub(super) fn close(&self) {
        if self.core.close() {
            self.domain.users.release();
        }
    }

    /// Begins anew after `close`.
    pub(super) fn reopen(&self, core: EndpointCore<O>) {
        self.domain.users.acquire();
        if self.core.reopen(core).is_err() {
            self.domain.users.release();
        }
    }
}

impl<O: Owners> Drop for EngineHost<O> {
    fn drop(&mut self) {
        self.close();
    }
}
