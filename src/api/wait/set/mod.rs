//! Wait sets: several queues and counters waited for together (fi_wait_open, fi_wait; FI_WAIT_SET).
//!
//! The members share the set's bell. The set's references to them are weak: a member leaves by being closed. Knows
//! members as `Waitable` only. Called by the shims, and by `Wait` on behalf of the members.

use super::bell::Bell;
use super::block::{Stopped, block};
use super::marks::Marks;
use super::{Handle, Mark, Wait, Waitable};
use crate::abi::types::{FI_EINTR, FI_EINVAL, FI_ETIMEDOUT, FI_WAIT_NONE, FI_WAIT_SET, fi_wait_obj};
use crate::api::errno::{Errno, Result};
use crate::api::refs::Refs;
use core::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub struct WaitSet {
    wait: Wait,
    bell: Arc<Bell>,
    members: Mutex<Vec<WaitSetMember>>,
    refs: Refs,
}

struct WaitSetMember {
    object: Weak<dyn Waitable>,
    seen: Marks,
}

impl WaitSet {
    /// fi_wait_open: UNSPEC, FD, POLLFD, MUTEX_COND or YIELD, and no flags.
    pub fn open(object: fi_wait_obj, flags: u64) -> Result<Arc<WaitSet>> {
        if flags != 0 || matches!(object, FI_WAIT_NONE | FI_WAIT_SET) {
            return Err(Errno(FI_EINVAL));
        }
        let wait = Wait::open(object, None)?;
        let bell = wait.bell().cloned().ok_or(Errno(FI_EINVAL))?;
        Ok(Arc::new(WaitSet {
            wait,
            bell,
            members: Mutex::default(),
            refs: Refs::default(),
        }))
    }

    /// How many open objects use the set; closing it is then -FI_EBUSY.
    pub fn refs(&self) -> usize {
        self.refs.count()
    }

    /// fi_wait: 0 when something may be read, -FI_ETIMEDOUT, or -FI_EINTR.
    pub fn wait(&self, timeout: c_int) -> Result<()> {
        let look = |rung: bool| (self.look() || rung).then_some(());
        block(&self.bell, timeout, look, || self.announce()).map_err(|stopped| match stopped {
            Stopped::TimedOut => Errno(FI_ETIMEDOUT),
            Stopped::Interrupted => Errno(FI_EINTR),
            Stopped::Failed(errno) => errno,
        })
    }

    /// fi_trywait.
    pub fn trywait(&self) -> Result<()> {
        self.wait.trywait(|| self.look(), || self.announce())
    }

    /// FI_GETWAITOBJ.
    pub fn object(&self) -> Result<fi_wait_obj> {
        self.wait.object()
    }

    /// FI_GETWAIT.
    pub fn handle(&self) -> Result<Handle> {
        self.wait.handle()
    }

    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    pub(super) fn acquire(&self) {
        self.refs.acquire();
    }

    /// Takes a closed member out, though another thread may still be looking at it.
    pub(super) fn leave(&self, object: &dyn Waitable) {
        self.members()
            .retain(|member| !core::ptr::addr_eq(member.object.as_ptr(), object));
        self.refs.release();
    }

    /// Releases the set for a member that was dropped without being closed.
    pub(super) fn release(&self) {
        self.refs.release();
        self.members().retain(|member| member.object.strong_count() > 0);
    }

    pub(super) fn join(&self, object: &Arc<dyn Waitable>) {
        self.members().push(WaitSetMember {
            object: Arc::downgrade(object),
            seen: Marks::default(),
        });
        // Wakes sleepers, so that they announce their sleep to the new member too.
        self.bell.raise();
    }

    /// Drives all members, then says whether one has something to read.
    fn look(&self) -> bool {
        self.each(|object, _| {
            object.progress();
            true
        });
        let mut any = false;
        self.each(|object, mark| {
            any |= object.ready(mark);
            true
        });
        any
    }

    fn announce(&self) -> bool {
        let mut all = true;
        self.each(|object, mark| {
            all = object.announce(mark);
            all
        });
        all
    }

    /// Visits members until one returns false. Not under the lock, as a thread that drives a member may close it.
    fn each(&self, mut visit: impl FnMut(&dyn Waitable, &mut Mark) -> bool) {
        let members: Vec<_> = self
            .members()
            .iter()
            .map(|member| (member.object.upgrade(), member.seen.own()))
            .collect();
        for (object, mut mark) in members {
            let Some(object) = object.filter(|object| !object.is_closed()) else {
                continue;
            };
            let before = mark;
            let go_on = visit(&*object, &mut mark);
            if mark != before {
                self.remember(&object, mark);
            }
            if !go_on {
                break;
            }
        }
    }

    fn remember(&self, object: &Arc<dyn Waitable>, mark: Mark) {
        let of = |member: &&mut WaitSetMember| core::ptr::addr_eq(member.object.as_ptr(), Arc::as_ptr(object));
        if let Some(member) = self.members().iter_mut().find(of) {
            member.seen.replace(mark);
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<WaitSetMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
