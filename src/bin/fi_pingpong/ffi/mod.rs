//! The calls to `libfabric.so.1`, and all `unsafe` of this program. What C programs do through inline functions is done
//! here the same way: through the op table of the object. An object is closed once, and keeps open what it needs.
//!
//! `object` has fabric, domain and address vector, `endpoint`, `queue` and `info` the rest, `buffers` the memory of
//! messages, `socket` a system call. Knows the C types; decides nothing. Called by every module that needs the library.

mod buffers;
mod endpoint;
mod info;
mod object;
mod queue;
mod socket;

pub use buffers::Buffers;
pub use endpoint::{Endpoint, Interface, Passive};
pub use info::{Facts, Hints, Info};
pub use object::{Domain, Fabric, Vector};
pub use queue::{Event, Events, Queue};
pub use socket::connect_from;

use crate::abi::types::{FI_EAVAIL, FI_EOTHER, FI_ETOOSMALL};
use crate::common::library;
use crate::common::object::op;
use core::ffi::{c_char, c_int};

// The errors of fabrics alone are an enum in C, and as such unsigned here.
pub const EAVAIL: c_int = FI_EAVAIL as c_int;
pub const EOTHER: c_int = FI_EOTHER as c_int;
pub const ETOOSMALL: c_int = FI_ETOOSMALL as c_int;

/// The library's text for an error, given as a positive number.
pub fn strerror(code: c_int) -> String {
    String::from_utf8_lossy(&library::strerror(code)).into_owned()
}

/// A copy of a C string; NULL is an empty one.
///
/// # Safety
/// `text` is NULL or points to a string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: as the caller promises; it is copied at once.
    String::from_utf8_lossy(unsafe { library::bytes(text) }.unwrap_or_default()).into_owned()
}
