//! How many objects use another one, which decides -FI_EBUSY.
//!
//! Counted by hand, where one object is bound to another: the number of `Arc`s would be wrong, since a call in another
//! thread may hold one for a moment. Knows nobody. Called by every object that others can be bound to.

use core::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub struct Refs(AtomicUsize);

impl Refs {
    /// One more object uses this one.
    pub fn acquire(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less. Giving what was not taken is ignored.
    pub fn release(&self) {
        let _ = self
            .0
            .fetch_update(Ordering::Release, Ordering::Relaxed, |refs| refs.checked_sub(1));
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
