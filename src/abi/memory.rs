//! Memory that C frees: whatever the library hands out comes from malloc, because programs and plug-ins free it so.
//!
//! Called by `info`, `nic`, `params`. Knows only libc.

use core::ffi::{c_char, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

/// Out of memory; the C face answers NULL or -FI_ENOMEM.
#[derive(Debug)]
pub struct NoMemory;

/// A malloc'ed copy of one value.
pub(super) fn boxed<T: Copy>(value: T) -> Result<*mut T, NoMemory> {
    boxed_in(value, size_of::<T>())
}

/// The same in so many bytes, if they are more than the value's. Those behind it are zero.
pub(super) fn boxed_in<T: Copy>(value: T, size: usize) -> Result<*mut T, NoMemory> {
    // SAFETY: calloc may be asked for any size; what it gives is aligned for every C type.
    let new = unsafe { libc::calloc(1, size.max(size_of::<T>())) }.cast::<T>();
    if new.is_null() {
        return Err(NoMemory);
    }
    // SAFETY: `new` is fresh and large enough.
    unsafe { new.write(value) };
    Ok(new)
}

/// A malloc'ed copy of some bytes; NULL stays NULL.
///
/// # Safety
/// `from` is NULL or points to `len` readable bytes.
pub(super) unsafe fn bytes<T>(from: *const T, len: usize) -> Result<*mut T, NoMemory> {
    if from.is_null() {
        return Ok(null_mut());
    }
    // SAFETY: as in `boxed_in`. One byte at least, so that success is never NULL.
    let new = unsafe { libc::malloc(len.max(1)) };
    if new.is_null() {
        return Err(NoMemory);
    }
    // SAFETY: the caller vouches for `len` bytes; `new` is fresh and holds them.
    unsafe { copy_nonoverlapping(from.cast::<u8>(), new.cast::<u8>(), len) };
    Ok(new.cast())
}

/// A malloc'ed copy of a C string; NULL stays NULL.
///
/// # Safety
/// `from` is NULL or a C string.
pub(super) unsafe fn string(from: *const c_char) -> Result<*mut c_char, NoMemory> {
    if from.is_null() {
        return Ok(null_mut());
    }
    // SAFETY: a C string; strlen counts up to its NUL, which is copied too.
    unsafe { bytes(from, libc::strlen(from) + 1) }
}

/// # Safety
/// `old` is NULL or came from malloc and is not used again.
pub(super) unsafe fn free<T>(old: *mut T) {
    // SAFETY: NULL or memory from malloc that is not used again.
    unsafe { libc::free(old.cast::<c_void>()) }
}
