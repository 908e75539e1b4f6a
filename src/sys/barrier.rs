//! The kernel's memory barrier over threads of other processes (membarrier).
//!
//! Where two sides need a barrier each, and one side is on a hot path, the other can have the kernel run it for both.
//! Called by `transport`.

use core::ffi::c_int;

const GLOBAL_EXPEDITED: c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: c_int = 1 << 2;

fn membarrier(command: c_int) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Has `everywhere`, called in any process, reach this one. False: the kernel does not offer it.
pub fn join() -> bool {
    membarrier(REGISTER_GLOBAL_EXPEDITED)
}

/// Runs a full memory barrier in every running thread of every process that joined. False: the kernel does not offer
/// it.
pub fn everywhere() -> bool {
    membarrier(GLOBAL_EXPEDITED)
}
