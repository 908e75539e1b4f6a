//! Calls of `libfabric.so.1` and the lists of infos that it gives. What comes back is copied, or lent by its owner.
//!
//! Knows the C types; decides nothing. Called by the programs' own `ffi`.

use crate::abi::types::*;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_getinfo(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int;
    fn fi_freeinfo(info: *mut fi_info);
    fn fi_dupinfo(info: *const fi_info) -> *mut fi_info;
    fn fi_tostr_r(buf: *mut c_char, len: usize, data: *const c_void, kind: fi_type) -> *mut c_char;
    fn fi_strerror(errnum: c_int) -> *const c_char;
    fn fi_version() -> u32;
}

/// The API these programs are written for, or the library's if that is older: a newer one would be refused.
pub fn api_version() -> u32 {
    let ours = (FI_MAJOR_VERSION as u32) << 16 | FI_MINOR_VERSION as u32;
    // SAFETY: takes nothing and only answers.
    ours.min(unsafe { fi_version() })
}

/// A C string as bytes; NULL as None.
///
/// # Safety
/// `text` is NULL or points to a string that lives and does not change for `'a`.
pub unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: not NULL here, and the caller promises a string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The library's text for an error, given as a positive number.
pub fn strerror(code: c_int) -> Vec<u8> {
    // SAFETY: the library answers any number with a string of its own.
    unsafe { bytes(fi_strerror(code)) }.unwrap_or_default().to_vec()
}

/// Longer than any info is.
const TEXT_MAX: usize = 64 * 1024;

/// A value as fi_tostr writes it.
///
/// # Safety
/// `data` points to a value of the type that `kind` stands for.
pub unsafe fn tostr(data: *const c_void, kind: fi_type) -> Vec<u8> {
    let mut buf = vec![0u8; TEXT_MAX];
    // SAFETY: the buffer has the length that is told; `data` fits as the caller promises.
    unsafe { fi_tostr_r(buf.as_mut_ptr().cast(), buf.len(), data, kind) };
    let len = buf.iter().position(|c| *c == 0).unwrap_or(buf.len());
    buf.truncate(len);
    buf
}

/// Memory as fi_freeinfo frees it, for a name in an info: NULL for none.
pub fn name_for_info(name: Option<&CStr>) -> *mut c_char {
    // SAFETY: a string.
    name.map_or(ptr::null_mut(), |name| unsafe { libc::strdup(name.as_ptr()) })
}

/// A list of infos that belongs to us.
pub struct InfoList {
    head: *mut fi_info,
}

impl Drop for InfoList {
    fn drop(&mut self) {
        // SAFETY: a list from fi_getinfo or fi_dupinfo, freed once.
        unsafe { fi_freeinfo(self.head) }
    }
}

impl InfoList {
    /// An empty info with all its parts; None when memory is out.
    pub fn hints() -> Option<InfoList> {
        // SAFETY: a copy of nothing is just that.
        let head = unsafe { fi_dupinfo(ptr::null()) };
        (!head.is_null()).then_some(InfoList { head })
    }

    /// Takes a list over.
    ///
    /// # Safety
    /// `head` is NULL, or an info of the library that the caller has to free.
    pub unsafe fn own(head: *mut fi_info) -> InfoList {
        InfoList { head }
    }

    /// Asks fi_getinfo; an error is the negative number it returned.
    pub fn ask(
        node: Option<&CStr>,
        service: Option<&CStr>,
        flags: u64,
        hints: Option<&InfoList>,
    ) -> Result<InfoList, c_int> {
        let text = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
        let hints = hints.map_or(ptr::null(), |hints| hints.head.cast_const());
        let mut found = InfoList { head: ptr::null_mut() };
        // SAFETY: strings and hints are NULL or live until the call is over; `found` takes what comes back.
        match unsafe { fi_getinfo(api_version(), text(node), text(service), flags, hints, &mut found.head) } {
            0 => Ok(found),
            error => Err(error),
        }
    }

    /// The first of them, NULL for an empty list.
    pub fn head(&self) -> *mut fi_info {
        self.head
    }
}
