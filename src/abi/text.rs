//! C strings, in and out.
//!
//! Called by every file of `abi` that takes or gives text.

use core::ffi::{CStr, c_char};
use std::borrow::Cow;
use std::ffi::CString;

/// The text of a C string; bytes that are not UTF-8 show as replacement characters.
///
/// # Safety
/// `from` is NULL or a C string that outlives the answer.
pub(super) unsafe fn borrow<'a>(from: *const c_char) -> Option<Cow<'a, str>> {
    if from.is_null() {
        return None;
    }
    // SAFETY: a C string that outlives the answer.
    Some(unsafe { CStr::from_ptr(from) }.to_string_lossy())
}

/// # Safety
/// `from` is NULL or a C string.
pub(super) unsafe fn read(from: *const c_char) -> Option<String> {
    // SAFETY: NULL or a C string; the copy does not outlive it.
    unsafe { borrow(from) }.map(Cow::into_owned)
}

/// A C string of some text, which ends where a NUL in it would end it in C.
pub(super) fn owned(text: &str) -> CString {
    let end = text.bytes().position(|byte| byte == 0).unwrap_or(text.len());
    CString::new(&text.as_bytes()[..end]).unwrap_or_default()
}
