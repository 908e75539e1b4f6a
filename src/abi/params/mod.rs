//! The parameter calls as C has them: fi_param_define, fi_param_get, fi_getparams, fi_freeparams.
//!
//! Owns the strings handed out to C. What a parameter is and what it holds is `api::params`' business. Called by
//! `entry` and, for the C-variadic call, by `cbits/variadic.c`.

#[cfg(test)]
mod tests;

use super::log::{self, Line, provider_name, text};
use super::types::*;
use crate::api::log::{Level, Subsys};
use crate::api::params::{self, Listed, Owner, ParamType, Value};
use crate::sys::lock::{Held, Lock};
use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::BTreeMap;
use std::ffi::CString;

/// A string that C was given a pointer to. Callers may change it in place, so nothing here reads it again.
struct HandedOut(*mut c_char);

// SAFETY: the pointer is only handed on, and freed once by `close`.
unsafe impl Send for HandedOut {}

/// Every string that fi_param_get has handed out, by parameter and content: the same answer is the same pointer, which
/// stays good for as long as the library is loaded, however often a program asks.
static HANDED_OUT: Lock<BTreeMap<(Owner, CString, CString), HandedOut>> = Lock::new(BTreeMap::new());

/// For the list of locks that fork waits for.
pub(super) static LOCK: &dyn Held = &HANDED_OUT;

fn owner(provider: *const fi_provider) -> Owner {
    if log::is_core(provider) {
        Owner::CORE
    } else {
        Owner(provider.addr())
    }
}

/// A C enum value, which may be any number.
fn type_from_c(value: fi_param_type) -> Option<ParamType> {
    match value {
        FI_PARAM_STRING => Some(ParamType::String),
        FI_PARAM_INT => Some(ParamType::Int),
        FI_PARAM_BOOL => Some(ParamType::Bool),
        FI_PARAM_SIZE_T => Some(ParamType::Size),
        _ => None,
    }
}

fn type_to_c(kind: ParamType) -> fi_param_type {
    match kind {
        ParamType::String => FI_PARAM_STRING,
        ParamType::Int => FI_PARAM_INT,
        ParamType::Bool => FI_PARAM_BOOL,
        ParamType::Size => FI_PARAM_SIZE_T,
    }
}

/// fi_param_define, with the help text put together.
///
/// # Safety
/// `provider` is null or a provider; `name` and `help` are null or C strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn rs_fi_param_define(
    provider: *const fi_provider,
    name: *const c_char,
    kind: fi_param_type,
    help: *const c_char,
) -> c_int {
    super::process::at_fork();
    let Some(kind) = type_from_c(kind) else {
        return -FI_EINVAL;
    };
    if name.is_null() || help.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: not null, so C strings, says the caller; the texts are copied.
    let (name, help) = unsafe { (text(name), text(help)) };
    let prefix = match log::is_core(provider) {
        true => "".into(),
        // SAFETY: as the caller says.
        false => unsafe { provider_name(provider) },
    };
    match params::define(owner(provider), &prefix, &name, kind, &help) {
        Ok(()) => FI_SUCCESS,
        Err(errno) => errno.code(),
    }
}

/// fi_param_get: the value goes to `value`, whose type follows the parameter's.
///
/// # Safety
/// `provider` is null or a provider, `name` null or a C string, and `value` null or room for the parameter's type.
pub unsafe fn param_get(provider: *mut fi_provider, name: *const c_char, value: *mut c_void) -> c_int {
    if name.is_null() || value.is_null() {
        return -FI_EINVAL;
    }
    super::process::at_fork();
    // SAFETY: not null, so a C string.
    let c_name = unsafe { CStr::from_ptr(name) };
    let name = c_name.to_string_lossy();
    let found = params::get(owner(provider), &name);
    let (level, words) = params::report(&name, &found);
    // SAFETY: as the caller says of `provider`.
    unsafe { say(provider, level, &words) };
    match found {
        // SAFETY: as the caller says of `value`.
        Ok(found) => unsafe { store(owner(provider), c_name, found, value) },
        Err(miss) => miss.errno().code(),
    }
}

/// # Safety
/// As for `param_get`.
unsafe fn store(owner: Owner, name: &CStr, found: Value, value: *mut c_void) -> c_int {
    // SAFETY: `value` has room for the type that the parameter was defined with. Aligned or not is left open.
    unsafe {
        match found {
            Value::Int(number) => value.cast::<c_int>().write_unaligned(number),
            Value::Bool(yes) => value.cast::<c_int>().write_unaligned(c_int::from(yes)),
            Value::Size(size) => value.cast::<usize>().write_unaligned(size),
            Value::Text(text) => match hand_out(owner, name, text) {
                Some(text) => value.cast::<*mut c_char>().write_unaligned(text),
                None => return -FI_EINVAL,
            },
        }
    }
    FI_SUCCESS
}

/// The pointer for this value. None when memory is out, or for a text with a zero byte, which no variable can have.
fn hand_out(owner: Owner, name: &CStr, text: Vec<u8>) -> Option<*mut c_char> {
    let key = (owner, name.to_owned(), CString::new(text).ok()?);
    let mut handed_out = HANDED_OUT.lock();
    if let Some(known) = handed_out.get(&key) {
        return Some(known.0);
    }
    let copy = duplicate(key.2.as_bytes())?.cast_mut();
    handed_out.insert(key, HandedOut(copy));
    Some(copy)
}

/// # Safety
/// `provider` is null or a provider.
unsafe fn say(provider: *const fi_provider, level: Level, words: &str) {
    let line = Line {
        provider,
        level,
        subsys: Subsys::Core,
        func: c"fi_param_get",
        number: line!(),
    };
    // SAFETY: as the caller says.
    unsafe { log::say(&line, words) };
}

/// fi_getparams: an array with an all-zero row at its end, for `freeparams`.
///
/// # Safety
/// `params` and `count` are null or writable.
pub unsafe fn getparams(params: *mut *mut fi_param, count: *mut c_int) -> c_int {
    if params.is_null() || count.is_null() {
        return -FI_EINVAL;
    }
    super::process::at_fork();
    let rows = params::list();
    let Ok(number) = c_int::try_from(rows.len()) else {
        return -FI_ENOMEM;
    };
    // SAFETY: calloc checks the product; one row more than is filled stays zero and ends the array.
    let array: *mut fi_param = unsafe { libc::calloc(rows.len() + 1, size_of::<fi_param>()) }.cast();
    if array.is_null() {
        return -FI_ENOMEM;
    }
    for (index, row) in rows.iter().enumerate() {
        // SAFETY: index < rows.len(), and the array has one more.
        if unsafe { fill(&mut *array.add(index), row) }.is_none() {
            // SAFETY: zeros follow the rows filled so far, so this is an array for freeparams.
            unsafe { freeparams(array) };
            return -FI_ENOMEM;
        }
    }
    // SAFETY: not null, so writable, says the caller.
    unsafe {
        *count = number;
        *params = array;
    }
    FI_SUCCESS
}

/// Fills a zeroed row. None when memory ran out; the row is then fit for freeparams.
fn fill(row: &mut fi_param, from: &Listed) -> Option<()> {
    row.name = duplicate(from.variable.as_bytes())?;
    row.r#type = type_to_c(from.kind);
    row.help_string = duplicate(from.help.as_bytes())?;
    if let Some(value) = &from.value {
        row.value = duplicate(value)?;
    }
    Some(())
}

/// A copy that C frees with free(3). A zero byte inside ends it.
fn duplicate(text: &[u8]) -> Option<*const c_char> {
    // SAFETY: strndup reads at most text.len() bytes, all of them readable.
    let copy = unsafe { libc::strndup(text.as_ptr().cast(), text.len()) };
    (!copy.is_null()).then_some(copy.cast_const())
}

/// fi_freeparams.
///
/// # Safety
/// `params` is null or what `getparams` gave, and not freed yet.
pub unsafe fn freeparams(params: *mut fi_param) {
    if params.is_null() {
        return;
    }
    let mut row = params;
    // SAFETY: an all-zero row ends the array; each string is from strndup, and free(3) takes null.
    unsafe {
        while !(*row).name.is_null() {
            for text in [(*row).name, (*row).help_string, (*row).value] {
                libc::free(text.cast_mut().cast());
            }
            row = row.add(1);
        }
        libc::free(params.cast());
    }
}

/// Frees the strings handed out, for the unloading of the library.
pub(crate) fn close() {
    let strings = core::mem::take(&mut *HANDED_OUT.lock());
    for HandedOut(text) in strings.into_values() {
        // SAFETY: from strndup, and forgotten by the table.
        unsafe { libc::free(text.cast()) };
    }
}
