//! Endpoints that need not be polled to find out whether they have something to do. Part of `Attached`.
//!
//! A few are polled all the same, and slept on one by one: a look at all costs as much as polling one. When they become
//! more, all go to the set of those that are found by one look (`marked`), and stay there.

use super::marked::Marked;
use super::{Attached, Progress, Watch};
use crate::api::errno::Result;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Up to so many are a few.
const POLLED: usize = 2;

#[derive(Default)]
pub(super) struct WatchedEndpoints {
    /// Those that are polled, once for each `attach`.
    few: Vec<(Arc<dyn Progress>, Watch)>,
    many: Option<Arc<Marked>>,
}

fn is(one: &Arc<dyn Progress>, other: &Arc<dyn Progress>) -> bool {
    core::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

impl WatchedEndpoints {
    /// How many are polled, with this one.
    fn polled_with(&self, endpoint: &Arc<dyn Progress>) -> usize {
        let all = self.few.iter().map(|few| &few.0).chain([endpoint]);
        let mut places: Vec<*const ()> = all.map(|one| Arc::as_ptr(one).cast()).collect();
        places.sort_unstable();
        places.dedup();
        places.len()
    }
}

impl Attached {
    #[cold]
    pub(super) fn attach_watched(&self, endpoint: Arc<dyn Progress>, watch: Watch) {
        let mut watched = self.watched();
        if watched.many.is_none() && watched.polled_with(&endpoint) > POLLED {
            self.found_together(&mut watched);
        }
        match &watched.many {
            Some(many) if self.attach_marked(many, &endpoint, &watch) => {}
            _ => {
                watched.few.push((endpoint.clone(), watch));
                self.attach_polled(endpoint);
            }
        }
    }

    /// Those that were polled are found by one look from now on. Each is driven in one way before it is not in the
    /// other.
    fn found_together(&self, watched: &mut WatchedEndpoints) {
        // Without descriptors for it they are polled.
        let Ok(many) = Marked::new(self.bell.clone()) else {
            return;
        };
        let many = Arc::new(many);
        watched.few.retain(|(endpoint, watch)| {
            let moved = self.attach_marked(&many, endpoint, watch);
            if moved {
                // It is there, as it is one of the few.
                let _ = self.detach_polled(endpoint);
            }
            !moved
        });
        watched.many = Some(many);
    }

    fn attach_marked(&self, many: &Arc<Marked>, endpoint: &Arc<dyn Progress>, watch: &Watch) -> bool {
        let added = many.add(endpoint, watch);
        if added {
            // Each keeps the set attached, which is so as long as one is in it.
            self.attach_polled(many.clone());
        }
        added
    }

    /// False: it is polled, and so on the list.
    pub(super) fn detach_watched(&self, endpoint: &Arc<dyn Progress>) -> Result<bool> {
        let mut watched = self.watched();
        if let Some(at) = watched.few.iter().position(|(other, _)| is(other, endpoint)) {
            watched.few.swap_remove(at);
            return Ok(false);
        }
        let Some(many) = watched.many.clone() else {
            return Ok(false);
        };
        drop(watched);
        if !many.remove(endpoint) {
            return Ok(false);
        }
        self.detach_polled(&(many as Arc<dyn Progress>))?;
        Ok(true)
    }

    fn watched(&self) -> MutexGuard<'_, WatchedEndpoints> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
