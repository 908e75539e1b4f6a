//! fi_getinfo for callers of every ABI: reads the hints, asks `provider::getinfo`, and writes the answers as one C
//! list.
//!
//! Called by `entry` and `compat`.

use super::layout::{CURRENT, Layout};
use super::memory::NoMemory;
use super::plugin::{OwnInfo, RawCall};
use super::types::*;
use super::{info, start, text};
use crate::api::errno::{Errno, Result};
use crate::api::info::address::Found;
use crate::api::info::model::Info;
use crate::api::info::query::{Answer, Query};
use crate::provider::getinfo;
use crate::sys::errno;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;

/// # Safety
/// As fi_getinfo, with hints of the given layout.
pub(super) unsafe fn getinfo(
    layout: &Layout,
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const fi_info,
    out: *mut *mut fi_info,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // What providers look for and do not find is no error, and some programs read errno after the call.
    let _errno = errno::keep();
    // SAFETY: `out` is the caller's place for a pointer. A failed call leaves NULL there too, which can be freed.
    unsafe { out.write(null_mut()) };
    // SAFETY: fi_getinfo's caller passes NULL or hints of that layout.
    let hints = match unsafe { Hints::new(hints, layout) } {
        Ok(hints) => hints,
        Err(NoMemory) => return -FI_ENOMEM,
    };
    let call = RawCall {
        version,
        node,
        service,
        flags,
        hints: hints.0,
    };
    // SAFETY: fi_getinfo's caller vouches for the texts; the hints are of today's layout by now.
    match unsafe { ask(&call) }.and_then(hand_out) {
        Ok(list) => {
            // SAFETY: as above.
            unsafe { out.write(list) };
            FI_SUCCESS
        }
        Err(error) => error.code(),
    }
}

/// The caller's hints in today's layout, freed with this when they had to be copied.
struct Hints(*const fi_info, bool);

impl Hints {
    /// # Safety
    /// `hints` is NULL or an fi_info of that layout.
    unsafe fn new(hints: *const fi_info, layout: &Layout) -> core::result::Result<Hints, NoMemory> {
        if hints.is_null() || *layout == CURRENT {
            return Ok(Hints(hints, false));
        }
        // SAFETY: the caller passes hints of that layout.
        unsafe { info::dup(hints, layout) }.map(|copy| Hints(copy.cast_const(), true))
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        if self.1 {
            // SAFETY: a copy of ours, in today's layout.
            unsafe { info::free(self.0.cast_mut(), &CURRENT) };
        }
    }
}

/// # Safety
/// The pointers of the call are NULL or good, the hints of today's layout.
unsafe fn ask(call: &RawCall) -> Result<Vec<Answer>> {
    // SAFETY: the call's pointers are NULL or good, and the texts are used during this call only.
    let (node, service, hints) = unsafe {
        let hints = call.hints.as_ref().map(|hints| unnamed(info::read(hints, &CURRENT)));
        (text::borrow(call.node), text::borrow(call.service), hints)
    };
    let found = Found::default();
    let query = Query {
        version: call.version,
        node: node.as_deref(),
        service: service.as_deref(),
        flags: call.flags,
        hints: hints.as_ref(),
        found: Some(&found),
        raw: Some(call),
    };
    let core = start::core().ok_or(Errno(FI_ENODATA))?;
    getinfo::getinfo(&core, &query)
}

/// An empty name of a provider is none.
fn unnamed(mut hints: Info) -> Info {
    if let Some(fabric) = &mut hints.fabric {
        fabric.prov_name.take_if(|name| name.is_empty());
    }
    hints
}

/// One C list of all answers, in their order.
fn hand_out(answers: Vec<Answer>) -> Result<*mut fi_info> {
    let mut list = null_mut();
    for answer in answers.into_iter().rev() {
        match to_c(answer) {
            Ok(new) => {
                // SAFETY: a whole fi_info of ours.
                unsafe { (*new).next = list };
                list = new;
            }
            Err(NoMemory) => {
                // SAFETY: what was made so far is a list of ours.
                unsafe { info::free(list, &CURRENT) };
                return Err(Errno(FI_ENOMEM));
            }
        }
    }
    Ok(list)
}

/// A plug-in's own struct, with provider name and versions as the core wants them, or a new struct.
fn to_c(answer: Answer) -> core::result::Result<*mut fi_info, NoMemory> {
    match answer.own.and_then(|own| own.downcast::<OwnInfo>().ok()) {
        Some(own) => own.signed(answer.info.fabric.as_ref()),
        None => info::write(&answer.info),
    }
}
