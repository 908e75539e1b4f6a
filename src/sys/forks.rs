//! What a child of fork must not have: descriptors that hold locks, and the right to use shared mappings.
//!
//! A lock of an open file is shared with the child, and would outlive the parent there. So a handler closes all listed
//! descriptors (`ParentFd`) in the child before anything else, and a `Process` tells all others whether they are in a
//! child. Another thread may fork before a new descriptor is listed, or a new mapping is kept from children:
//! `checkpoint` tells that, and the caller makes them anew.
//!
//! The list is lock-free, as the child has one thread and another may have held the lock: it only grows, and its slots
//! are used again. Called by `transport`, `api` and other files of `sys`.

use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering, fence};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static FD_SLOTS: AtomicPtr<FdSlot> = AtomicPtr::new(ptr::null_mut());
/// Forks that began, and those of them that ended, with or without a child.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
const NO_FD: RawFd = -1;

#[derive(Debug)]
struct FdSlot {
    fd: AtomicI32,
    next: AtomicPtr<FdSlot>,
}

/// The process in which something was made: a child of fork has a copy of it, but not what the kernel keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    generation: u32,
}

impl Process {
    pub fn this() -> Process {
        watch();
        Process {
            generation: generation(),
        }
    }

    #[inline]
    pub fn is_this(self) -> bool {
        self.generation == generation()
    }
}

/// How many forks this process descends from, since the library was loaded.
#[inline]
fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// What the kernel and a device keep for one process. A child of fork leaves its copy alone, as ending it there would
/// end what the parent has.
pub struct OfProcess<T> {
    value: ManuallyDrop<T>,
    process: Process,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> OfProcess<T> {
        OfProcess {
            value: ManuallyDrop::new(value),
            process: Process::this(),
        }
    }

    pub fn is_ours(&self) -> bool {
        self.process.is_this()
    }
}

impl<T> Deref for OfProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OfProcess<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped here only, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Installs the fork handlers. Twice does no harm: they count, and the list is empty the second time.
fn watch() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // SAFETY: the handlers are functions of this library; glibc forgets them when the library is unloaded.
    at_least_once(&DONE, || unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

/// Each thread that finds the work undone does it. A `Once` that another thread was in at a fork would never end in the
/// child.
pub(super) fn at_least_once(done: &AtomicBool, work: impl FnOnce()) {
    if !done.load(Ordering::Acquire) {
        work();
        done.store(true, Ordering::Release);
    }
}

extern "C" fn before() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn in_parent() {
    DONE.fetch_add(1, Ordering::SeqCst);
}

/// A moment, to be asked later whether a fork has run since. None: one was running then.
pub struct Checkpoint(Option<u32>);

pub fn checkpoint() -> Checkpoint {
    watch();
    let done = DONE.load(Ordering::SeqCst);
    let begun = BEGUN.load(Ordering::SeqCst);
    Checkpoint((begun == done).then_some(begun))
}

impl Checkpoint {
    /// Whether no fork has run since the checkpoint. The child of a later one closes what was listed before this call.
    pub fn no_fork_since(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0 == Some(BEGUN.load(Ordering::SeqCst))
    }
}

/// Runs in the child. Only loads, stores and close(2): other threads may have held any lock at the fork.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // Forks of other threads that were running do not end in this process.
    DONE.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
    for slot in fd_slots() {
        let fd = slot.fd.swap(NO_FD, Ordering::Relaxed);
        if fd != NO_FD {
            // SAFETY: a descriptor that a `ParentFd` owns; it will not close it in the child.
            unsafe { libc::close(fd) };
        }
    }
}

fn fd_slots() -> impl Iterator<Item = &'static FdSlot> {
    let mut next: *const FdSlot = FD_SLOTS.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: null, or a slot, which is leaked and never freed.
        let slot = unsafe { next.as_ref() }?;
        next = slot.next.load(Ordering::Relaxed);
        Some(slot)
    })
}

/// Lists a descriptor, in a slot that is free or a new one.
fn list(fd: RawFd) -> &'static FdSlot {
    let free = |slot: &&FdSlot| {
        slot.fd
            .compare_exchange(NO_FD, fd, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    };
    if let Some(slot) = fd_slots().find(free) {
        return slot;
    }
    let slot: &'static FdSlot = Box::leak(Box::new(FdSlot {
        fd: AtomicI32::new(fd),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let fresh = (&raw const *slot).cast_mut();
    let mut head = FD_SLOTS.load(Ordering::Acquire);
    loop {
        slot.next.store(head, Ordering::Relaxed);
        match FD_SLOTS.compare_exchange(head, fresh, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(now) => head = now,
        }
    }
}

/// A descriptor that children of fork do not have.
#[derive(Debug)]
pub struct ParentFd {
    fd: ManuallyDrop<OwnedFd>,
    slot: &'static FdSlot,
    process: Process,
}

impl ParentFd {
    pub fn new(fd: OwnedFd) -> ParentFd {
        ParentFd {
            process: Process::this(),
            slot: list(fd.as_raw_fd()),
            fd: ManuallyDrop::new(fd),
        }
    }

    /// Whether this is the process that opened it.
    pub fn is_ours(&self) -> bool {
        self.process.is_this()
    }
}

impl AsFd for ParentFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for ParentFd {
    fn drop(&mut self) {
        // In a child the descriptor is closed, and its number may be another file's.
        if self.is_ours() {
            self.slot.fd.store(NO_FD, Ordering::Relaxed);
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use std::fs::File;

    #[test]
    fn a_fork_disturbs_a_mark() {
        let before = checkpoint();
        let child = Child::run(|| assert!(checkpoint().no_fork_since(), "nobody forks in the child"));
        assert_eq!(child.wait(), 0);
        assert!(!before.no_fork_since());
        // Other tests fork beside this one, but not always.
        while !checkpoint().no_fork_since() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_child_is_another_process() {
        let process = Process::this();
        let child = Child::run(|| {
            assert!(!process.is_this() && Process::this().is_this() && Process::this() != process);
        });
        assert_eq!(child.wait(), 0);
        assert!(process.is_this());
    }

    /// A thread of the parent that was about to install the handlers is not in the child, which installs them itself.
    #[test]
    fn a_child_waits_for_no_thread_of_the_parent() {
        static DONE: AtomicBool = AtomicBool::new(false);
        let [begun, end] = [const { AtomicBool::new(false) }; 2];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                at_least_once(&DONE, || {
                    begun.store(true, Ordering::Release);
                    while !end.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                });
            });
            while !begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let child = Child::run(|| {
                let mut worked = false;
                at_least_once(&DONE, || worked = true);
                assert!(worked && DONE.load(Ordering::Relaxed));
            });
            let status = child.wait();
            end.store(true, Ordering::Release);
            assert_eq!(status, 0, "a child waited for ever");
        });
    }

    #[test]
    fn places_are_used_again() {
        let open = || ParentFd::new(File::open("/dev/null").unwrap().into());
        let count = || fd_slots().count();
        drop((0..8).map(|_| open()).collect::<Vec<_>>());
        let before = count();
        for _ in 0..100 {
            let one = open();
            assert!(one.is_ours());
            assert!(fd_slots().any(|slot| slot.fd.load(Ordering::Relaxed) == one.as_fd().as_raw_fd()));
        }
        assert!(count() <= before + 64, "other tests run beside this one");
    }
}
