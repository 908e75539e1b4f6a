//! The monitor that is a userfaultfd: one for the process, as two cannot watch the same memory, and one thread that
//! reads.
//!
//! The thread neither allocates nor frees, and waits for no lock under which anybody does: see `sys::userfaultfd`.

use super::{Monitor, Recent};
use crate::sys::eventfd::EventFd;
use crate::sys::forks::Process;
use crate::sys::mappings::is_private_anonymous;
use crate::sys::thread::Thread;
use crate::sys::userfaultfd::{Reader, Userfaultfd};
use crate::transport::verbs::ranges::Ranges;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

static CURRENT: Mutex<Weak<KernelMonitor>> = Mutex::new(Weak::new());

pub struct KernelMonitor {
    /// None: it ends.
    uffd: Option<Userfaultfd>,
    told: Arc<Told>,
    thread: Option<Thread>,
    /// What is watched, as often as it is.
    watched: Mutex<Ranges<()>>,
    process: Process,
}

/// What the thread and others share.
struct Told {
    recent: Recent,
    /// What was read may not have been told yet.
    reading: AtomicBool,
    end: EventFd,
}

impl KernelMonitor {
    /// The process's. The error says why there is none.
    pub fn get() -> io::Result<Arc<KernelMonitor>> {
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = current.upgrade().filter(|found| found.process.is_this()) {
            return Ok(found);
        }
        let made = Arc::new(KernelMonitor::new()?);
        *current = Arc::downgrade(&made);
        Ok(made)
    }

    pub(super) fn new() -> io::Result<KernelMonitor> {
        let uffd = Userfaultfd::open()?;
        let told = Arc::new(Told {
            recent: Recent::default(),
            reading: AtomicBool::new(false),
            end: EventFd::new()?,
        });
        let (reader, shared) = (uffd.reader()?, told.clone());
        let thread = Thread::start("fi_mr_monitor", move || listen(reader, &shared))?;
        Ok(KernelMonitor {
            uffd: Some(uffd),
            told,
            thread: Some(thread),
            watched: Mutex::default(),
            process: Process::this(),
        })
    }
}

/// The thread. Until `tell` has returned nobody takes what was read of to be settled.
fn listen(reader: Reader, told: &Told) {
    while reader.wait(&told.end) {
        // Whoever took memory away goes on in the middle of `read`.
        told.reading.store(true, Ordering::SeqCst);
        reader.read(|gone| told.recent.tell(gone));
        told.reading.store(false, Ordering::SeqCst);
    }
    // Before anything is freed: closing lets all go on that wait, among them perhaps one with an allocator's lock.
    drop(reader);
}

impl Monitor for KernelMonitor {
    fn watch(&self, pages: &Range<usize>) -> bool {
        let Some(uffd) = &self.uffd else { return false };
        if !is_private_anonymous(pages) {
            return false;
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_watched = uffd.watch(pages).is_ok();
        if is_watched {
            watched.insert(pages.clone(), ());
        }
        is_watched
    }

    fn unwatch(&self, pages: &Range<usize>, is_mapped: bool) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same = watched.touching(pages.clone()).filter(|found| found.memory == *pages);
        let number = same.next().map(|found| found.number);
        drop(same);
        if number.and_then(|number| watched.remove(number)).is_none() || !is_mapped {
            return;
        }
        for rest in uncovered(&watched, pages) {
            self.uffd.iter().for_each(|uffd| uffd.unwatch(&rest));
        }
    }

    fn is_settled(&self) -> bool {
        // In this order: what was read of between the two is seen in `reading`, or has been told.
        let is_read = self.uffd.as_ref().is_some_and(Userfaultfd::is_settled);
        fence(Ordering::SeqCst);
        is_read && !self.told.reading.load(Ordering::SeqCst)
    }

    fn recent(&self) -> &Recent {
        &self.told.recent
    }
}

/// The parts of some pages that nothing in the table has.
fn uncovered(watched: &Ranges<()>, pages: &Range<usize>) -> Vec<Range<usize>> {
    let mut others: Vec<_> = watched.touching(pages.clone()).map(|found| found.memory).collect();
    others.sort_by_key(|other| other.start);
    let (mut rests, mut from) = (Vec::new(), pages.start);
    for other in others {
        if from < other.start {
            rests.push(from..other.start);
        }
        from = from.max(other.end);
    }
    if from < pages.end {
        rests.push(from..pages.end);
    }
    rests
}

impl Drop for KernelMonitor {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return; // the thread is the parent's, and so is what ends it
        }
        // The thread's descriptor is then the last one.
        self.uffd = None;
        self.told.end.set();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use crate::sys::epoll::Epoll;
    use crate::sys::shared::page_size;

    /// The end of a copy in a child of fork is none of the parent's thread.
    #[test]
    fn a_child_does_not_end_the_thread() {
        let Ok(monitor) = KernelMonitor::new() else { return };
        let (end, mut monitor) = (Epoll::new().unwrap(), Some(monitor));
        end.add(monitor.as_ref().unwrap().told.end.fd()).unwrap();
        assert_eq!(Child::run(|| drop(monitor.take())).wait(), 0);
        assert_eq!(end.wait(0).unwrap(), 0);
    }

    /// munmap returns when it was read of, which is before it was told.
    #[test]
    fn what_was_read_and_not_told_is_not_settled() {
        let Ok(monitor) = KernelMonitor::new() else { return };
        let (rights, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let at = unsafe { libc::mmap(core::ptr::null_mut(), page_size(), rights, flags, -1, 0) };
        assert!(monitor.watch(&(at as usize..at as usize + page_size())));
        let held = monitor.told.recent.hold();
        // SAFETY: the mapping made above, which nothing uses.
        assert_eq!(unsafe { libc::munmap(at, page_size()) }, 0);
        assert!(!monitor.is_settled());
        assert_eq!(monitor.recent().count(), 0);
        drop(held);
        while !monitor.is_settled() {
            std::thread::yield_now();
        }
        assert_eq!(monitor.recent().count(), 1);
    }

    #[test]
    fn what_others_watch_too_is_left() {
        let mut watched = Ranges::default();
        let all = |watched: &Ranges<()>| {
            let rests = uncovered(watched, &(10..20)).into_iter();
            rests.map(|rest| (rest.start, rest.end)).collect::<Vec<_>>()
        };
        assert_eq!(all(&watched), [(10, 20)]);
        watched.insert(12..14, ());
        watched.insert(13..16, ());
        watched.insert(19..30, ());
        assert_eq!(all(&watched), [(10, 12), (16, 19)]);
        watched.insert(0..12, ());
        assert_eq!(all(&watched), [(16, 19)]);
        watched.insert(0..100, ());
        assert!(all(&watched).is_empty());
    }
}
