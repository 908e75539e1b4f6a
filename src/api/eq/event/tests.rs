//! The bytes of events and errors as C reads them, for each age of the API, and what of them may be cut.

use super::*;
use crate::abi::types::{FI_AV_COMPLETE, FI_NOTIFY};

#[test]
fn an_entry_is_laid_out_as_in_c() {
    let bytes = entry_bytes(1, 2, 3);
    let words: Vec<u64> = bytes
        .chunks(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(words, [1, 2, 3]);
}

#[test]
fn only_a_peers_data_is_cut() {
    let table = [
        (FI_AV_COMPLETE, 24, 24, Some(24)),
        (FI_AV_COMPLETE, 24, 100, Some(24)),
        (FI_AV_COMPLETE, 24, 23, None),
        (FI_NOTIFY, 0, 0, Some(0)),
        (FI_CONNREQ, 40, 15, None),
        (FI_CONNREQ, 40, 16, Some(16)),
        (FI_CONNECTED, 40, 39, Some(39)),
        (FI_SHUTDOWN, 16, 100, Some(16)),
    ];
    for (event, len, room, expected) in table {
        let event = Event {
            event,
            fid: 0,
            bytes: vec![0; len].into(),
        };
        assert_eq!(event.fits(room), expected, "{event:?} {room}");
    }
}

#[test]
fn error_data_goes_where_the_api_version_says() {
    let error = ErrorEvent {
        err_data: vec![1, 2, 3],
        ..ErrorEvent::default()
    };
    let own = error.err_data.as_ptr() as usize;
    let table = [
        (0x10004, 0x1000, 8, (own, 3, 0)),
        (0x10005, 0x1000, 8, (0x1000, 3, 3)),
        (0x20000, 0x1000, 2, (0x1000, 2, 2)),
        (0x20000, 0x1000, 0, (own, 3, 0)),
        (0x20000, 0, 8, (own, 3, 0)),
    ];
    for (api, at, size, expected) in table {
        let answer = error.answer(api, at as *mut c_void, size);
        let told = (answer.entry.err_data as usize, answer.entry.err_data_size, answer.copy);
        assert_eq!(told, expected, "{api:x} {size}");
    }
    let nothing = ErrorEvent::default().answer(0x20000, core::ptr::null_mut(), 0);
    assert_eq!((nothing.entry.err_data as usize, nothing.entry.err_data_size), (0, 0));
}
