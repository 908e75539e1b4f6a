//! Error codes as values, and their texts.

use core::ffi::c_int;

/// A positive fabric errno, FI_E*. C callers get it negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// The value a C function returns for this error.
    pub fn code(self) -> c_int {
        -self.0
    }
}

pub type Result<T> = core::result::Result<T, Errno>;
