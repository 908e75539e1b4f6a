//! Poll sets: which of several queues and counters have something to read (fi_poll_open, fi_poll).
//!
//! References to members are weak: a member leaves by being closed. Knows members as `Waitable` only. Called by the
//! shims.

use super::errno::{Errno, Result};
use super::refs::Refs;
use super::wait::{Mark, Waitable};
use crate::abi::types::FI_EINVAL;
use crate::util::patience::Patience;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[derive(Default)]
pub struct PollSet {
    members: Mutex<Vec<PollSetMember>>,
    patience: Patience,
    refs: Refs,
}

struct PollSetMember {
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

    /// How many objects use the set; closing it is then -FI_EBUSY. Its members do not count.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// fi_poll_add. `poll` reports the object by its `context`. Adding a member again changes nothing.
    pub fn add(&self, object: &Arc<dyn Waitable>, context: usize) {
        let mut members = self.members();
        members.retain(|member| member.object.strong_count() > 0);
        if !members.iter().any(|member| member.is(object)) {
            members.push(PollSetMember {
                object: Arc::downgrade(object),
                context,
                mark: Mark::default(),
            });
        }
    }

    /// fi_poll_del. Removing what is no member changes nothing.
    pub fn remove(&self, object: &Arc<dyn Waitable>) {
        self.members().retain(|member| !member.is(object));
    }

    /// fi_poll: drives all members and writes the contexts of those that can be read, as many as there is room for.
    pub fn poll(&self, contexts: &mut [usize]) -> usize {
        let living: Vec<_> = self
            .members()
            .iter()
            .filter_map(|member| member.object.upgrade())
            .collect();
        // Drives all before looking at any, and not under the lock, as progress may close a member.
        living.iter().for_each(|object| object.progress());
        let mut told = 0;
        for object in &living {
            let Some(room) = contexts.get_mut(told) else { break };
            let mut members = self.members();
            let Some(member) = members.iter_mut().find(|member| member.is(object)) else {
                continue;
            };
            if !object.is_closed() && object.polled(&mut member.mark) {
                *room = member.context;
                told += 1;
            }
        }
        match told {
            0 => self.patience.nothing(),
            _ => self.patience.found(),
        }
        told
    }

    fn members(&self) -> MutexGuard<'_, Vec<PollSetMember>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollSetMember {
    fn is(&self, object: &Arc<dyn Waitable>) -> bool {
        core::ptr::addr_eq(self.object.as_ptr(), Arc::as_ptr(object))
    }
}

#[cfg(test)]
mod tests;
