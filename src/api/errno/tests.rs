//! Texts of codes: those of the C library, one for each, and where they stay.

use super::*;

#[test]
fn codes_have_the_known_texts() {
    let table: [(c_int, &CStr); 14] = [
        (0, c"Success"),
        (1, c"Operation not permitted"),
        (11, c"Resource temporarily unavailable"),
        (-22, c"Invalid argument"),
        (61, c"No data available"),
        (84, c"Invalid or incomplete multibyte or wide character"),
        (200, c"Unknown error 200"),
        (255, c"Unknown error 255"),
        (256, c"Unspecified error"),
        (-257, c"Provided buffer is too small"),
        (271, c"Host unreacheable due to firewall"),
        (272, c"Unspecified error"),
        (c_int::MAX, c"Unspecified error"),
        (c_int::MIN, c"Unspecified error"),
    ];
    for (code, expected) in table {
        assert_eq!(text(code), expected, "code {code}");
    }
}

#[test]
fn every_fabric_code_has_a_text_of_its_own() {
    let mut seen = std::collections::HashSet::new();
    for code in FI_ERRNO_OFFSET..FI_ERRNO_MAX as c_int {
        assert!(seen.insert(text(code)), "code {code} repeats a text");
    }
    assert_eq!(seen.len(), 16);
}

#[test]
fn a_text_stays_where_it_is() {
    let first: Vec<usize> = (0..256).map(|code| text(code).as_ptr() as usize).collect();
    let other = std::thread::spawn(|| (0..256).map(|code| text(-code).as_ptr() as usize).collect::<Vec<_>>());
    assert_eq!(other.join().ok(), Some(first));
}
