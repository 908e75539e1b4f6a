//! The parameter calls as C has them: fi_param_define, fi_param_get, fi_getparams, fi_freeparams.
//!
//! Owns the strings handed out to C. What a parameter is and what it holds is `api::params`' business. Called by
//! `entry` and, for the C-variadic call, by `cbits/variadic.c`.

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

/// The pointer for this value. None for a text with a zero byte, which neither source can have, and without memory.
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null, null_mut};

    unsafe extern "C" {
        // In cbits/variadic.c.
        fn fi_param_define(
            provider: *const fi_provider,
            name: *const c_char,
            kind: fi_param_type,
            help: *const c_char,
            ...
        ) -> c_int;
    }

    fn provider(name: &'static CStr) -> fi_provider {
        fi_provider {
            version: 1,
            fi_version: 1,
            context: fi_context {
                internal: [null_mut(); 4],
            },
            name: name.as_ptr(),
            getinfo: None,
            fabric: None,
            cleanup: None,
        }
    }

    /// The rows of fi_getparams as C sees them, up to the row of zeros.
    fn listed() -> Vec<(String, fi_param_type, String, Option<String>)> {
        let (mut array, mut count) = (null_mut(), -1);
        let mut rows = Vec::new();
        // SAFETY: writable variables; the array is read up to its end and freed once.
        unsafe {
            assert_eq!(getparams(&mut array, &mut count), FI_SUCCESS);
            for index in 0.. {
                let row = &*array.add(index);
                if row.name.is_null() {
                    break;
                }
                let value = (!row.value.is_null()).then(|| text(row.value).into_owned());
                rows.push((
                    text(row.name).into_owned(),
                    row.r#type,
                    text(row.help_string).into_owned(),
                    value,
                ));
            }
            freeparams(array);
        }
        assert_eq!(count as usize, rows.len());
        rows
    }

    /// Calls fi_param_get with `start` in the variable, and gives back what is there afterwards.
    fn get<T>(prov: &mut fi_provider, name: &CStr, start: T) -> (c_int, T) {
        let mut value = start;
        // SAFETY: a provider, a C string, and room for the parameter's type, which the tests name right.
        let code = unsafe { param_get(prov, name.as_ptr(), (&raw mut value).cast()) };
        (code, value)
    }

    fn define(prov: &fi_provider, name: &CStr, kind: fi_param_type) -> c_int {
        // SAFETY: a provider, C strings, and an argument for the format.
        unsafe { fi_param_define(prov, name.as_ptr(), kind, c"help %d".as_ptr(), 7) }
    }

    fn set(variable: &str, text: &str) {
        // SAFETY: the library and its tests read the environment through std only, which orders it.
        unsafe { std::env::set_var(variable, text) };
    }

    #[test]
    fn values_come_back_by_kind() {
        let mut prov = provider(c"unit-a");
        for (name, kind) in [(c"t", 0), (c"i", 1), (c"b", 2), (c"s", 3)] {
            assert_eq!(define(&prov, name, kind), FI_SUCCESS);
        }
        assert_eq!(get(&mut prov, c"i", 5), (-FI_ENODATA, 5), "not set: left alone");
        assert_eq!(get(&mut prov, c"x", 5), (-FI_ENOENT, 5));
        for (name, text) in [("T", "a text"), ("I", "-3"), ("B", "on"), ("S", "0x100000000")] {
            set(&format!("FI_UNIT-A_{name}"), text);
        }
        assert_eq!(get(&mut prov, c"i", 5), (FI_SUCCESS, -3));
        assert_eq!(get(&mut prov, c"b", 5), (FI_SUCCESS, 1));
        assert_eq!(get(&mut prov, c"s", 5usize), (FI_SUCCESS, 0x1_0000_0000));
        let (code, first) = get::<*mut c_char>(&mut prov, c"t", null_mut());
        // SAFETY: a C string when the code says so.
        assert_eq!((code, unsafe { text(first) }.as_ref()), (FI_SUCCESS, "a text"));
        for (name, text) in [("I", "3 apples"), ("B", "maybe"), ("S", "-1")] {
            set(&format!("FI_UNIT-A_{name}"), text);
        }
        assert_eq!(get(&mut prov, c"i", 5), (-FI_EINVAL, 5));
        assert_eq!(get(&mut prov, c"b", 5), (-FI_EINVAL, 5));
        assert_eq!(get(&mut prov, c"s", 5usize), (-FI_EINVAL, 5));
    }

    #[test]
    fn a_string_stays_where_it_is() {
        let mut prov = provider(c"unit-b");
        assert_eq!(define(&prov, c"t", FI_PARAM_STRING), FI_SUCCESS);
        set("FI_UNIT-B_T", "one");
        let (_, one) = get::<*mut c_char>(&mut prov, c"t", null_mut());
        set("FI_UNIT-B_T", "two");
        let (_, two) = get::<*mut c_char>(&mut prov, c"t", null_mut());
        set("FI_UNIT-B_T", "one");
        let (_, again) = get::<*mut c_char>(&mut prov, c"t", null_mut());
        assert_eq!(one, again, "asking again takes no more memory");
        // SAFETY: strings that the library gave.
        unsafe {
            assert_eq!((text(one).as_ref(), text(two).as_ref()), ("one", "two"));
            // A caller that takes the string apart in place, as strtok(3) does, harms nobody.
            *one = 0;
        }
        assert_eq!(get::<*mut c_char>(&mut prov, c"t", null_mut()), (FI_SUCCESS, one));
    }

    #[test]
    fn the_list_has_every_parameter_once() {
        let prov = provider(c"unit-c");
        assert_eq!(define(&prov, c"n", FI_PARAM_STRING), FI_SUCCESS);
        assert_eq!(define(&prov, c"n", FI_PARAM_SIZE_T), FI_SUCCESS);
        set("FI_UNIT-C_N", "8");
        let rows: Vec<_> = listed().into_iter().filter(|row| row.0 == "FI_UNIT-C_N").collect();
        let want = (
            "FI_UNIT-C_N".into(),
            FI_PARAM_SIZE_T,
            "unit-c: help 7".into(),
            Some("8".into()),
        );
        assert_eq!(rows, [want]);
        params::undefine(owner(&prov));
        assert!(!listed().iter().any(|row| row.0 == "FI_UNIT-C_N"));
    }

    #[test]
    fn bad_arguments_are_refused() {
        let mut prov = provider(c"unit-d");
        let (mut array, mut count, mut value) = (null_mut(), 0, 0);
        // SAFETY: every pointer is null, a constant or a variable of this test.
        unsafe {
            assert_eq!(
                fi_param_define(&prov, null(), FI_PARAM_INT, c"help".as_ptr()),
                -FI_EINVAL
            );
            assert_eq!(fi_param_define(&prov, c"n".as_ptr(), FI_PARAM_INT, null()), -FI_EINVAL);
            assert_eq!(
                fi_param_define(&prov, c"n".as_ptr(), FI_PARAM_INT, c"".as_ptr()),
                -FI_EINVAL
            );
            assert_eq!(fi_param_define(&prov, c"n".as_ptr(), 4, c"help".as_ptr()), -FI_EINVAL);
            assert_eq!(param_get(&mut prov, null(), (&raw mut value).cast()), -FI_EINVAL);
            assert_eq!(param_get(&mut prov, c"n".as_ptr(), null_mut()), -FI_EINVAL);
            assert_eq!(getparams(null_mut(), &mut count), -FI_EINVAL);
            assert_eq!(getparams(&mut array, null_mut()), -FI_EINVAL);
            freeparams(null_mut());
        }
        assert!(array.is_null());
    }

    #[test]
    fn null_means_the_core() {
        let name = c"unit_core";
        let mut value = 0;
        set("FI_UNIT_CORE", "12");
        // SAFETY: NULL is the core; C strings; room for an int.
        unsafe {
            assert_eq!(
                fi_param_define(null(), name.as_ptr(), FI_PARAM_INT, c"%s".as_ptr(), c"x".as_ptr()),
                0
            );
            assert_eq!(
                param_get(null_mut(), name.as_ptr(), (&raw mut value).cast()),
                FI_SUCCESS
            );
        }
        assert_eq!((value, params::core_int("unit_core")), (12, Ok(12)));
        assert!(params::core_bool("unit_core").is_err(), "not of that kind");
    }

    #[test]
    fn a_help_text_of_any_length_is_whole() {
        let prov = provider(c"unit-e");
        let long = "h".repeat(3000);
        let c_long = log::c_text(&long);
        // SAFETY: a provider and C strings.
        let code = unsafe { fi_param_define(&prov, c"n".as_ptr(), FI_PARAM_INT, c"%s".as_ptr(), c_long.as_ptr()) };
        assert_eq!(code, FI_SUCCESS);
        let help = listed().into_iter().find(|row| row.0 == "FI_UNIT-E_N").map(|row| row.2);
        assert_eq!(help, Some(format!("unit-e: {long}")));
    }
}
