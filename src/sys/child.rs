//! Children of fork, for tests. What other tests of the process hold at the fork stays held in a child for ever, but
//! the locks that fork waits for, as in a program that has opened the library.

/// A child process that runs some work and exits, with 0 if it returned. One that hangs is ended after five minutes.
pub struct Child(libc::pid_t);

impl Child {
    pub fn run(work: impl FnOnce()) -> Child {
        crate::abi::process::at_fork();
        // SAFETY: the child uses its own memory, in which glibc's allocator works, and leaves by _exit.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: no memory is involved.
                unsafe { libc::alarm(300) };
                let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
                // SAFETY: ends this child.
                unsafe { libc::_exit(i32::from(!worked)) }
            }
            pid if pid > 0 => Child(pid),
            _ => panic!("fork failed"),
        }
    }

    pub fn kill(&self) {
        // SAFETY: a child of ours that nobody has waited for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        self.wait();
    }

    /// The exit status; killed counts as -1.
    pub fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: a child of ours, and a place for its status.
        unsafe { libc::waitpid(self.0, &mut status, 0) };
        if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -1
        }
    }
}
