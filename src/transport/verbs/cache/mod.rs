//! Registrations of memory that a program did not register, kept for the next transfer from or to the same place.
//!
//! What a device knows are pages. A program that unmaps memory, or has its pages dropped, and maps anew at the same
//! address has other pages there: a registration that is older must not be used. So a `Monitor` watches what the cache
//! has, and what has gone is dropped from the table before anything is looked up. A registration in use stays the
//! device's until the transfer has ended.
//!
//! **Why no dead registration is found.** Memory can only be sent after whatever was there has gone: the program maps
//! after it has unmapped, or the kernel gives one thread the addresses that another has just unmapped. So a lookup
//! first asks whether all that has gone by now was told (`Monitor::is_settled`), and only then reads what was told
//! (`gone`), drops that, and looks. If not all was told, nothing is looked up and nothing is kept: the memory is
//! registered for this transfer alone, as it is without a cache. Nobody waits for a monitor, and a monitor waits for
//! nobody: it writes to `gone::Recent`, and allocates and frees nothing, as an allocator may be what waits for it.
//!
//! One thing is left to programs: the kernel tells of MADV_DONTNEED before the pages go. Whoever sends memory from one
//! thread while another has it emptied does not say which bytes it means, and may find the old ones sent later too.
//!
//! - `gone`: what has gone of late. `kernel`: the monitor that is a userfaultfd.
//!
//! Each protection domain has its own cache, which is a `Nic`: whoever registers need not know of it. Called by
//! `provider`, which opens it, and `reliable`.

mod gone;
mod kernel;
#[cfg(test)]
pub(super) mod tests;

use super::ranges::Ranges;
use super::seam::{Nic, Registration};
use crate::sys::forks::OfProcess;
use crate::sys::rdma::Access;
use crate::sys::userfaultfd::pages;
use crate::util::user::UserBuf;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use gone::News;
pub use gone::Recent;
pub use kernel::KernelMonitor;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Learns when memory goes.
pub trait Monitor: Send + Sync {
    /// From now on it is told when some of these pages go. False: nobody would learn of it.
    fn watch(&self, pages: &Range<usize>) -> bool;

    /// Ends what one `watch` of the same pages began. `is_mapped`: the pages are still those that were watched.
    fn unwatch(&self, pages: &Range<usize>, is_mapped: bool);

    /// Whether all that had gone when this was called has been told.
    fn is_settled(&self) -> bool;

    /// Where it is told.
    fn recent(&self) -> &Recent;
}

/// How much is kept at most while nobody uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    pub count: usize,
    pub bytes: usize,
}

const NOTHING: Most = Most { count: 0, bytes: 0 };

struct Entry {
    access: Access,
    registration: Arc<dyn Registration>,
    /// When it was used last.
    used: u64,
}

#[derive(Default)]
struct Table {
    entries: Ranges<Entry>,
    /// Their numbers by when they were used last.
    by_use: BTreeMap<u64, usize>,
    uses: u64,
    bytes: usize,
}

/// What was taken out of the table: its memory, and whether that is still what it was.
type Removed = Vec<(Range<usize>, Entry, bool)>;

fn covers(has: Access, wanted: Access) -> bool {
    let covered = |has: bool, wanted: bool| has || !wanted;
    covered(has.local_write, wanted.local_write)
        && covered(has.remote_read, wanted.remote_read)
        && covered(has.remote_write, wanted.remote_write)
}

impl Table {
    fn find(&mut self, memory: &Range<usize>, access: Access) -> Option<Arc<dyn Registration>> {
        let mut fitting = self.entries.with_all(memory.clone());
        let number = fitting.find(|found| covers(found.value.access, access))?.number;
        drop(fitting);
        let now = self.next_use();
        let entry = self.entries.get_mut(number)?;
        self.by_use.remove(&core::mem::replace(&mut entry.used, now));
        self.by_use.insert(now, number);
        Some(entry.registration.clone())
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn insert(&mut self, memory: Range<usize>, access: Access, registration: Arc<dyn Registration>) {
        let used = self.next_use();
        self.bytes += memory.len();
        let entry = Entry {
            access,
            registration,
            used,
        };
        let number = self.entries.insert(memory, entry);
        self.by_use.insert(used, number);
    }

    fn remove(&mut self, number: usize, is_mapped: bool, removed: &mut Removed) {
        if let Some((memory, entry)) = self.entries.remove(number) {
            self.by_use.remove(&entry.used);
            self.bytes -= memory.len();
            removed.push((memory, entry, is_mapped));
        }
    }

    /// Takes out what was used least lately, until there is no more than `most`.
    fn shrink(&mut self, most: Most, removed: &mut Removed) {
        while self.entries.len() > most.count || self.bytes > most.bytes {
            let Some((_, number)) = self.by_use.pop_first() else {
                return;
            };
            self.remove(number, true, removed);
        }
    }

    /// Takes out what has a byte of this memory.
    fn drop_touching(&mut self, memory: Range<usize>, is_mapped: bool, removed: &mut Removed) {
        let touching: Vec<usize> = self.entries.touching(memory).map(|found| found.number).collect();
        for number in touching {
            self.remove(number, is_mapped, removed);
        }
    }
}

/// The device, with the table of what is kept.
struct Store {
    nic: Box<dyn Nic>,
    monitor: Arc<dyn Monitor>,
    most: Most,
    table: OfProcess<Mutex<Table>>,
    /// What was read of what has gone.
    seen: AtomicU64,
}

impl Store {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what has gone, then does `work`.
    fn with_table<T>(&self, work: impl FnOnce(&mut Table, &mut Removed) -> T) -> T {
        let mut removed = Removed::new();
        let mut table = self.table();
        let mut seen = self.seen.load(Ordering::Relaxed);
        if self.monitor.recent().count() != seen {
            match self.monitor.recent().since(&mut seen) {
                News::Some(news) => {
                    for gone in news {
                        table.drop_touching(gone.memory, gone.is_mapped, &mut removed);
                    }
                }
                News::All => table.drop_touching(0..usize::MAX, false, &mut removed),
            }
            self.seen.store(seen, Ordering::Relaxed);
        }
        let result = work(&mut table, &mut removed);
        drop(table);
        self.end(removed);
        result
    }

    /// Outside the lock, as a device takes its time for it.
    fn end(&self, removed: Removed) {
        for (memory, entry, is_mapped) in removed {
            self.monitor.unwatch(&pages(&memory), is_mapped);
            drop(entry);
        }
    }

    /// Registers with the device. What is kept gives way if it is in the way: locked memory is limited.
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>> {
        self.nic.register(memory, access).or_else(|error| {
            let any = self.with_table(|table, removed| {
                table.shrink(NOTHING, removed);
                !removed.is_empty()
            });
            if any {
                self.nic.register(memory, access)
            } else {
                Err(error)
            }
        })
    }

    fn keep(&self, memory: Range<usize>, access: Access, registration: &Arc<dyn Registration>) {
        let most = self.most;
        if most.count == 0 || memory.len() > most.bytes || !self.monitor.watch(&pages(&memory)) {
            return;
        }
        self.with_table(|table, removed| {
            table.insert(memory, access, registration.clone());
            table.shrink(most, removed);
        });
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.table.is_ours() {
            self.with_table(|table, removed| table.shrink(NOTHING, removed));
        }
    }
}

/// A protection domain whose registrations are kept.
pub struct Cache {
    store: Arc<Store>,
    direct: Direct,
}

/// The same, for memory that is registered for longer: nothing is kept, but what is kept gives way.
#[derive(Clone)]
pub struct Direct(Arc<Store>);

impl Cache {
    pub fn new(nic: Box<dyn Nic>, monitor: Arc<dyn Monitor>, most: Most) -> Cache {
        let seen = AtomicU64::new(monitor.recent().count());
        let store = Arc::new(Store {
            nic,
            monitor,
            most,
            table: OfProcess::new(Mutex::default()),
            seen,
        });
        Cache {
            direct: Direct(store.clone()),
            store,
        }
    }

    pub fn direct(&self) -> &Direct {
        &self.direct
    }

    /// Gives back what has gone, to be asked now and then: pages that a device knows are not free.
    #[inline]
    pub fn settle(&self) {
        let store = &*self.store;
        if store.monitor.recent().count() != store.seen.load(Ordering::Relaxed) {
            store.with_table(|_, _| {});
        }
    }
}

impl Nic for Cache {
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>> {
        let (store, range) = (&*self.store, memory.range());
        // Before the table is looked at: see above.
        let settled = store.monitor.is_settled();
        let find = |table: &mut Table, _: &mut Removed| table.find(&range, access).filter(|_| settled);
        if let Some(kept) = store.with_table(find) {
            return Ok(Box::new(Kept(kept)));
        }
        let made = Arc::from(store.register(memory, access)?);
        if settled {
            store.keep(range, access, &made);
        }
        Ok(Box::new(Kept(made)))
    }
}

impl Nic for Direct {
    fn register(&self, memory: &UserBuf, access: Access) -> io::Result<Box<dyn Registration>> {
        self.0.register(memory, access)
    }
}

/// A share of a registration, which ends with the last.
struct Kept(Arc<dyn Registration>);

impl Registration for Kept {
    fn local_key(&self) -> u32 {
        self.0.local_key()
    }

    fn remote_key(&self) -> u32 {
        self.0.remote_key()
    }
}
