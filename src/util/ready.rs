//! Who has something to do: a mark for each, and lists of those that are marked.
//!
//! A reader that drives many takes its list and drives those alone. Whoever finds work sets the mark: a poller that many
//! share, or a call that leaves something to be done later. A mark may be on several lists, as one endpoint is driven by
//! several queues. No mark is lost: one that is set while its owner is driven puts it on the list again, and one that is
//! set while a reader sleeps wakes the reader. Knows nobody; used by `api::progress`, set by transports too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What wakes the sleeper of a list.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// The mark of one, and the lists it is on.
#[derive(Default)]
pub struct Ready {
    places: Mutex<Vec<(Arc<ReadyList>, u64)>>,
}

impl Ready {
    /// There is something to do, or may be.
    pub fn set(&self) {
        lock(&self.places).iter().for_each(|(list, name)| list.add(*name));
    }

    /// From now on a mark puts `name` on this list, beginning with one: there may be work already.
    pub fn join(&self, list: &Arc<ReadyList>, name: u64) {
        lock(&self.places).push((list.clone(), name));
        list.add(name);
    }

    /// Takes one `join` back.
    pub fn leave(&self, list: &Arc<ReadyList>, name: u64) {
        let same = |(other, at): &(Arc<ReadyList>, u64)| Arc::ptr_eq(other, list) && *at == name;
        let mut places = lock(&self.places);
        if let Some(place) = places.iter().position(same) {
            places.swap_remove(place);
        }
    }
}

/// The names of those that are marked, each once.
#[derive(Default)]
pub struct ReadyList {
    state: Mutex<ListState>,
    wake: Option<Wake>,
}

#[derive(Default)]
struct ListState {
    names: Vec<u64>,
    known: std::collections::HashSet<u64>,
    /// A reader sleeps.
    armed: bool,
}

impl ReadyList {
    pub fn new(wake: Option<Wake>) -> Arc<ReadyList> {
        Arc::new(ReadyList {
            wake,
            ..ReadyList::default()
        })
    }

    /// Puts a name on the list, and wakes a reader that sleeps.
    pub fn add(&self, name: u64) {
        let mut state = lock(&self.state);
        if state.known.insert(name) {
            state.names.push(name);
        }
        let asleep = core::mem::take(&mut state.armed);
        drop(state);
        if let Some(wake) = self.wake.as_ref().filter(|_| asleep) {
            wake();
        }
    }

    /// Takes all names, in the order they were marked in, into an empty `names`.
    pub fn take(&self, names: &mut Vec<u64>) {
        let mut state = lock(&self.state);
        core::mem::swap(&mut state.names, names);
        state.known.clear();
    }

    /// A reader is going to sleep: the next mark wakes it. False: there are marks already.
    pub fn arm(&self) -> bool {
        let mut state = lock(&self.state);
        state.armed = state.names.is_empty();
        state.armed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
