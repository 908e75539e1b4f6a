//! Who is running: this process and this thread.
//!
//! Knows nothing of libfabric. Called by `abi`.

/// A number that no other thread of any running process has: the process in the upper half, the thread in the lower.
pub fn process_and_thread() -> u64 {
    // SAFETY: neither call takes an argument or can fail. Not cached, because fork changes both.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    u64::from(std::process::id()) << 32 | u64::from(thread)
}

pub fn same_process(one: u64, other: u64) -> bool {
    one >> 32 == other >> 32
}

/// The effective user.
pub fn user() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::geteuid() }
}
