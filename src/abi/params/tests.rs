//! fi_param_define, fi_param_get, fi_getparams and fi_freeparams as a plug-in calls them, with variables of a test's
//! own in the real environment.

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
    assert_eq!(value, 12);
    assert!(params::core_size("unit_core").is_err(), "not of that kind");
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
