//! Numbers for this process and this thread that no others have.
//!
//! Knows nothing of libfabric. Called by `abi` and `provider`.

use super::forks::Process;
use super::shared;
use std::io;
use std::sync::Mutex;

/// A number that no other thread of any running process has: the process in the upper half, the thread in the lower.
pub fn process_and_thread() -> u64 {
    // SAFETY: neither call takes an argument or can fail. Not cached, because fork changes both.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    u64::from(std::process::id()) << 32 | u64::from(thread)
}

pub fn same_process(one: u64, other: u64) -> bool {
    one >> 32 == other >> 32
}

/// Whether there is no such process that we see; one of another pid namespace may have that number for itself.
pub fn has_ended(pid: u32) -> bool {
    let Ok(pid @ 1..) = libc::pid_t::try_from(pid) else {
        return false;
    };
    // SAFETY: signal 0 asks and sends nothing.
    let asked = unsafe { libc::kill(pid, 0) };
    asked != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// A number that no other process has, in any pid namespace or on any machine; a child of fork has another one.
pub fn random_of_process() -> io::Result<u64> {
    static DRAWN: Mutex<Option<(Process, u64)>> = Mutex::new(None);
    let fresh = shared::random()?;
    // If another thread has the lock, in a child of fork perhaps for ever, this call draws a number of its own.
    let Ok(mut drawn) = DRAWN.try_lock() else {
        return Ok(fresh);
    };
    let (_, number) = drawn
        .filter(|(process, _)| process.is_this())
        .unwrap_or((Process::this(), fresh));
    *drawn = Some((Process::this(), number));
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;

    #[test]
    fn a_child_has_another_number() {
        let number = random_of_process().unwrap();
        assert_eq!(random_of_process().unwrap(), number);
        let child = Child::run(|| {
            let own = random_of_process().unwrap();
            assert!(own != number && random_of_process().unwrap() == own);
        });
        assert_eq!(child.wait(), 0);
    }
}
