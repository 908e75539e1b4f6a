//! The kernel's memory barrier over running threads of other processes (membarrier).
//!
//! With it, a barrier between two steps that every sender takes need not be on the senders' path: who seldom needs it
//! has the kernel run it for all. Called by `transport`.

use core::ffi::c_int;

const GLOBAL_EXPEDITED: c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: c_int = 1 << 2;

fn membarrier(command: c_int) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Lets `everywhere`, called in any process, reach this one; false when the kernel will not.
pub fn join() -> bool {
    membarrier(REGISTER_GLOBAL_EXPEDITED)
}

/// A full memory barrier in every running thread of every process that joined; false when the kernel will not.
pub fn everywhere() -> bool {
    membarrier(GLOBAL_EXPEDITED)
}
