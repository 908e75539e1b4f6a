//! Endpoints that are driven when they are marked: a read costs as much with a thousand of them as with one.
//!
//! Called by `Attached`, of whose list the whole set is one member.

use super::{Progress, Watch};
use crate::api::wait::bell::Bell;
use crate::util::ready::ReadyList;
use core::mem::take;
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) struct Marked {
    list: Arc<ReadyList>,
    members: Mutex<Members>,
    /// The memory of the names that are taken from the list.
    names: Mutex<Vec<u64>>,
}

#[derive(Default)]
struct Members {
    by_name: HashMap<u64, Member>,
    /// Names by the endpoints' addresses.
    names: HashMap<usize, u64>,
    last_name: u64,
}

struct Member {
    endpoint: Arc<dyn Progress>,
    watch: Watch,
    /// How often it was attached.
    times: usize,
}

fn address(endpoint: &Arc<dyn Progress>) -> usize {
    Arc::as_ptr(endpoint).cast::<()>() as usize
}

impl Marked {
    /// `bell`: what is rung for a mark while somebody sleeps.
    pub(super) fn new(bell: Option<Arc<Bell>>) -> Arc<Marked> {
        let wake = bell.map(|bell| Box::new(move || bell.raise()) as Box<_>);
        Arc::new(Marked {
            list: ReadyList::new(wake),
            members: Mutex::default(),
            names: Mutex::default(),
        })
    }

    pub(super) fn add(&self, endpoint: Arc<dyn Progress>, watch: Watch) {
        let mut members = self.members();
        let members = &mut *members;
        let at = address(&endpoint);
        if let Some(known) = members.names.get(&at).and_then(|name| members.by_name.get_mut(name)) {
            known.times += 1;
            return;
        }
        members.last_name += 1;
        let name = members.last_name;
        watch.mark.join(&self.list, name);
        members.names.insert(at, name);
        let times = 1;
        members.by_name.insert(name, Member { endpoint, watch, times });
    }

    /// Takes one `add` back. None: it is no member.
    pub(super) fn remove(&self, endpoint: &Arc<dyn Progress>) -> Option<Watch> {
        let mut members = self.members();
        let name = *members.names.get(&address(endpoint))?;
        let member = members.by_name.get_mut(&name)?;
        member.times -= 1;
        let watch = member.watch.clone();
        if member.times == 0 {
            watch.mark.leave(&self.list, name);
            members.names.remove(&address(endpoint));
            let gone = members.by_name.remove(&name);
            drop(members);
            drop(gone); // perhaps the last reference to an endpoint
        }
        Some(watch)
    }

    fn endpoint(&self, name: u64) -> Option<Arc<dyn Progress>> {
        self.members().by_name.get(&name).map(|member| member.endpoint.clone())
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, Vec<u64>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Marked {
    /// Drives each that is marked once. One that is marked meanwhile comes in the next read. No lock is held while an
    /// endpoint is driven.
    fn progress(&self) {
        if self.list.is_empty() {
            return;
        }
        let mut names = take(&mut *self.names());
        self.list.take(&mut names);
        for name in names.drain(..) {
            let Some(endpoint) = self.endpoint(name) else { continue };
            if endpoint.turn() {
                self.list.add(name);
            }
        }
        *self.names() = names;
    }

    fn arm(&self) -> bool {
        self.list.arm()
    }

    /// It rings the bell itself.
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::ready::Ready;
    use core::sync::atomic::{AtomicUsize, Ordering};

    /// Its first turns find another thread at it.
    struct Busy {
        turns: AtomicUsize,
        busy: usize,
        mark: Arc<Ready>,
    }

    impl Progress for Busy {
        fn progress(&self) {}

        fn arm(&self) -> bool {
            true
        }

        fn wake_fd(&self) -> Option<RawFd> {
            None
        }

        fn turn(&self) -> bool {
            self.turns.fetch_add(1, Ordering::SeqCst) < self.busy
        }
    }

    #[test]
    fn who_could_not_be_driven_is_driven_again_until_it_leaves() {
        let marked = Marked::new(None);
        let mark = Arc::new(Ready::default());
        let busy = Arc::new(Busy {
            turns: AtomicUsize::new(0),
            busy: 2,
            mark: mark.clone(),
        });
        let endpoint: Arc<dyn Progress> = busy.clone();
        let poller = endpoint.clone();
        let watch = Watch { mark, poller };
        marked.add(endpoint.clone(), watch);
        for turns in [1, 2, 3, 3] {
            marked.progress();
            assert_eq!(busy.turns.load(Ordering::SeqCst), turns);
        }
        assert!(marked.arm(), "nobody has anything to do");
        busy.mark.set();
        assert!(!marked.arm());
        marked.progress();
        assert!(marked.remove(&endpoint).is_some() && marked.remove(&endpoint).is_none());
        busy.mark.set();
        assert!(marked.arm(), "it has left");
    }
}
