//! Error codes as values, and their texts.
//!
//! Owns the wording of fi_strerror. Knows nothing of the calls that fail. Called by everyone above `sys`.

use crate::abi::types::{FI_EOTHER, FI_ERRNO_MAX, FI_ERRNO_OFFSET};
use core::ffi::{CStr, c_int};
use std::sync::OnceLock;

/// A positive fabric errno, FI_E*. C callers get it negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// The value a C function returns for this error.
    pub fn code(self) -> c_int {
        -self.0
    }
}

pub type Result<T, E = Errno> = core::result::Result<T, E>;

/// The text of an error code, of either sign. What is no code at all is an unspecified error.
pub fn text(errnum: c_int) -> &'static CStr {
    let code = errnum.unsigned_abs();
    match code.checked_sub(FI_ERRNO_OFFSET as u32) {
        None => system_text(code),
        Some(_) if code >= FI_ERRNO_MAX => fabric_text(FI_EOTHER),
        Some(_) => fabric_text(code),
    }
}

/// The wording is the C library's to the letter: programs and their tests compare it.
fn fabric_text(code: u32) -> &'static CStr {
    use crate::abi::types::*;
    match code {
        FI_ETOOSMALL => c"Provided buffer is too small",
        FI_EOPBADSTATE => c"Operation not permitted in current state",
        FI_EAVAIL => c"Error available",
        FI_EBADFLAGS => c"Flags not supported",
        FI_ENOEQ => c"Missing or unavailable event queue",
        FI_EDOMAIN => c"Invalid resource domain",
        FI_ENOCQ => c"Missing or unavailable completion queue",
        FI_ECRC => c"CRC error",
        FI_ETRUNC => c"Truncation error",
        FI_ENOKEY => c"Required key not available",
        FI_ENOAV => c"Missing or unavailable address vector",
        FI_EOVERRUN => c"Queue has been overrun",
        FI_ENORX => c"Receiver not ready, no receive buffers available",
        FI_ENOMR => c"Memory registration limit exceeded",
        FI_EFIREWALLADDR => c"Host unreacheable due to firewall",
        _ => c"Unspecified error",
    }
}

/// Room for one text of the system, its ending NUL included. The longest English one has 50 letters; translated ones
/// may be longer in bytes.
const SYSTEM_TEXT: usize = 128;

/// Every text of the system that was ever asked for. Kept in place, not on the heap, so that a pointer into it stays
/// good and unloading the library leaves nothing behind.
static SYSTEM_TEXTS: [OnceLock<[u8; SYSTEM_TEXT]>; FI_ERRNO_OFFSET as usize] =
    [const { OnceLock::new() }; FI_ERRNO_OFFSET as usize];

fn system_text(code: u32) -> &'static CStr {
    let line = SYSTEM_TEXTS
        .get(code as usize)
        .map(|slot| slot.get_or_init(|| ask_system(code)));
    line.and_then(|line| CStr::from_bytes_until_nul(line).ok())
        .unwrap_or(c"Unspecified error")
}

fn ask_system(code: u32) -> [u8; SYSTEM_TEXT] {
    let told = std::io::Error::from_raw_os_error(code as c_int).to_string();
    let text = told.strip_suffix(&format!(" (os error {code})")).unwrap_or(&told);
    let mut line = [0; SYSTEM_TEXT];
    let mut end = text.len().min(SYSTEM_TEXT - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].copy_from_slice(&text.as_bytes()[..end]);
    line
}

#[cfg(test)]
mod tests;
