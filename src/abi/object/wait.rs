//! FI_GETWAIT and FI_GETWAITOBJ, the commands that queues, counters and wait sets have in common.

use super::status;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::wait::Handle;
use core::ffi::{c_int, c_void};

/// Answers one of the two commands; None for any other.
///
/// # Safety
/// `arg` is NULL or what the command says.
pub unsafe fn control(
    command: c_int,
    arg: *mut c_void,
    handle: impl FnOnce() -> Result<Handle>,
    object: impl FnOnce() -> Result<fi_wait_obj>,
) -> Option<c_int> {
    let put = |result: Result<()>| Some(status(result));
    match command as u32 {
        FI_GETWAIT | FI_GETWAITOBJ if arg.is_null() => Some(-FI_EINVAL),
        // SAFETY: FI_GETWAITOBJ has a place for a number as its argument.
        FI_GETWAITOBJ => put(object().map(|object| unsafe { arg.cast::<fi_wait_obj>().write(object) })),
        // SAFETY: FI_GETWAIT has a place for what the kind of wait object says as its argument.
        FI_GETWAIT => put(handle().and_then(|handle| unsafe { give(handle, arg) })),
        _ => None,
    }
}

/// # Safety
/// `arg` is a place for the handle's C form.
unsafe fn give(handle: Handle, arg: *mut c_void) -> Result<()> {
    // SAFETY: a place for this handle's C form; a list of descriptors has as much room as it says.
    unsafe {
        match handle {
            Handle::Fd(fd) => arg.cast::<c_int>().write(fd),
            Handle::MutexCond { mutex, cond } => arg.cast::<fi_mutex_cond>().write(fi_mutex_cond { mutex, cond }),
            Handle::PollFds { change_index, fds } => {
                let pollfds = &mut *arg.cast::<fi_wait_pollfd>();
                let room = core::mem::replace(&mut pollfds.nfds, fds.len());
                pollfds.change_index = change_index;
                if room < fds.len() || pollfds.fd.is_null() {
                    return Err(Errno(FI_ETOOSMALL as c_int));
                }
                for (index, fd) in fds.into_iter().enumerate() {
                    pollfds.fd.add(index).write(libc::pollfd {
                        fd,
                        events: libc::POLLIN,
                        revents: 0,
                    });
                }
            }
        }
    }
    Ok(())
}
