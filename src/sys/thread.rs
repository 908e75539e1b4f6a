//! Threads of the library's own, which end before what they work for. Knows nothing of what they do. Called by `api`
//! and `transport`.

use super::forks::Process;
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::mem::ManuallyDrop;
use std::thread::{Builder, JoinHandle};

/// A thread. A child of fork has a copy of this, but not the thread. It must not even be detached there, as a new
/// thread of the child may have the same handle.
pub struct Thread {
    handle: ManuallyDrop<JoinHandle<()>>,
    process: Process,
}

/// A number that no other thread of this process has or had, also for threads that the library did not start.
pub fn own_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl Thread {
    pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let process = Process::this();
        let handle = {
            let _blocked = Blocked::new();
            Builder::new().name(name.into()).spawn(work)?
        };
        Ok(Thread {
            handle: ManuallyDrop::new(handle),
            process,
        })
    }

    /// Whether this process has the thread.
    pub fn is_here(&self) -> bool {
        self.process.is_this()
    }

    /// Waits until it has ended, if it is here.
    pub fn join(self) {
        if self.is_here() {
            let _ = ManuallyDrop::into_inner(self.handle).join();
        }
    }
}

/// While it lives, the calling thread gets no signals but those of its own faults, and so do threads that it starts,
/// for ever: an application's handlers run in the application's threads.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> Blocked {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the sets are ours; the first two calls fill one each before it is read.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGABRT,
            ] {
                libc::sigdelset(all.as_mut_ptr(), fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: a set of ours, which the call reads.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use std::sync::mpsc;

    /// Which signals the calling thread does not get.
    fn blocked() -> libc::sigset_t {
        let mut now = MaybeUninit::uninit();
        // SAFETY: nothing is changed, and the call fills the set.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), now.as_mut_ptr());
            now.assume_init()
        }
    }

    #[test]
    fn an_applications_signals_are_left_to_its_own_threads() {
        // SAFETY: a set that was filled.
        let has = |set: &libc::sigset_t, signal| unsafe { libc::sigismember(set, signal) } == 1;
        let before = blocked();
        let (tell, told) = mpsc::channel();
        Thread::start("fi_test", move || tell.send(blocked()).unwrap())
            .unwrap()
            .join();
        let within = told.recv().unwrap();
        assert!(has(&within, libc::SIGALRM) && has(&within, libc::SIGTERM) && !has(&within, libc::SIGSEGV));
        assert_eq!(has(&blocked(), libc::SIGALRM), has(&before, libc::SIGALRM));
    }

    #[test]
    fn a_thread_is_joined_where_it_is() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let work = move || {
            let _ = ended.recv();
            tell.send(()).unwrap();
        };
        let thread = Thread::start("fi_test", work).unwrap();
        assert!(thread.is_here());
        let mut thread = Some(thread);
        let child = Child::run(|| {
            let thread = thread.take().unwrap();
            assert!(!thread.is_here());
            thread.join();
        });
        assert_eq!(child.wait(), 0);
        drop(end);
        thread.unwrap().join();
        assert_eq!(told.try_recv(), Ok(()));
    }
}
