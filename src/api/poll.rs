//! Poll sets: which of several queues and counters have something to read (fi_poll_open, fi_poll).
//!
//! The members are kept weakly: closing one takes it out. Knows them as `Waitable` only. Called by the shims.

use super::errno::{Errno, Result};
use super::refs::Refs;
use super::wait::{Mark, Waitable};
use crate::abi::types::FI_EINVAL;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Default)]
pub struct PollSet {
    members: Mutex<Vec<Member>>,
    refs: Refs,
}

struct Member {
    object: Weak<dyn Waitable>,
    context: usize,
    mark: Mark,
}

impl PollSet {
    /// fi_poll_open. No flags are known.
    pub fn open(flags: u64) -> Result<Arc<PollSet>> {
        if flags != 0 {
            return Err(Errno(FI_EINVAL));
        }
        Ok(Arc::default())
    }

    /// How many objects use the set: not 0 is -FI_EBUSY. Its members do not count.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// fi_poll_add. `context`: what `poll` tells of it. A member already is one.
    pub fn add(&self, object: &Arc<dyn Waitable>, context: usize) {
        let mut members = self.members();
        members.retain(|member| member.object.strong_count() > 0);
        if !members.iter().any(|member| member.is(object)) {
            members.push(Member {
                object: Arc::downgrade(object),
                context,
                mark: Mark::default(),
            });
        }
    }

    /// fi_poll_del. No member already is none.
    pub fn remove(&self, object: &Arc<dyn Waitable>) {
        self.members().retain(|member| !member.is(object));
    }

    /// fi_poll: drives all members and tells the contexts of those that may be read, as many as there is room for.
    pub fn poll(&self, contexts: &mut [usize]) -> usize {
        let living: Vec<_> = self
            .members()
            .iter()
            .filter_map(|member| member.object.upgrade())
            .collect();
        // All are driven before any is looked at, and not under the lock: an endpoint may close what it drives.
        living.iter().for_each(|object| object.progress());
        let mut told = 0;
        for object in &living {
            let Some(room) = contexts.get_mut(told) else { break };
            let mut members = self.members();
            let Some(member) = members.iter_mut().find(|member| member.is(object)) else {
                continue;
            };
            if object.ready(&mut member.mark) {
                *room = member.context;
                told += 1;
            }
        }
        told
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn is(&self, object: &Arc<dyn Waitable>) -> bool {
        core::ptr::addr_eq(self.object.as_ptr(), Arc::as_ptr(object))
    }
}
