//! How many wide rings an endpoint writes to: a few, as in a crowd of which each writes much to each they would take
//! gigabytes.
//!
//! Kept beside the endpoint's file, and asked by `outbound/growth`. Knows nothing of rings.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The most wide rings that an endpoint writes to.
const MOST_WIDE: usize = 16;

/// How many wide rings an endpoint writes to.
#[derive(Clone, Debug, Default)]
pub(super) struct WideRings(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted(WideRings);

impl WideRings {
    /// None: there are as many as there may be.
    pub(super) fn one_more(&self) -> Option<Counted> {
        let one_more = |count| (count < MOST_WIDE).then_some(count + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Counted(self.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_few_wide_rings_at_a_time() {
        let rings = WideRings::default();
        let mut all: Vec<Counted> = std::iter::from_fn(|| rings.one_more()).collect();
        assert_eq!(all.len(), MOST_WIDE);
        all.pop();
        assert!(rings.one_more().is_some_and(|_last| rings.one_more().is_none()));
        assert!(rings.one_more().is_some(), "that one was given back");
    }
}
