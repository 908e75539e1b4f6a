//! Threads of the library's own, which end before what they work for. Knows nothing of what they do. Called by `api`.

use super::forks::Process;
use std::io;
use std::mem::ManuallyDrop;
use std::thread::{Builder, JoinHandle};

/// A thread. A child of fork has a copy of this, but not the thread. It must not even be detached there, as a new
/// thread of the child may have the same handle.
pub struct Thread {
    handle: ManuallyDrop<JoinHandle<()>>,
    process: Process,
}

impl Thread {
    pub fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let process = Process::this();
        let handle = Builder::new().name(name.into()).spawn(work)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use std::sync::mpsc;

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
