//! The flag that counters raise and endpoints look at: some deferred work may be due.

use core::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub struct Due(AtomicBool);

impl Due {
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}
