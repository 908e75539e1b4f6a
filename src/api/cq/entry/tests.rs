//! The bytes of entries in each format, at the offsets of the C structs, and of errors for each age of the API.

use super::*;
use crate::abi::types::*;
use crate::util::user_array::kept;

const ENTRY: Entry = Entry {
    context: 1,
    flags: 2,
    len: 3,
    buf: 4,
    data: 5,
    tag: 6,
    src: 7,
};

#[test]
fn formats_are_as_long_as_in_c_and_hold_their_fields() {
    let table = [
        (FI_CQ_FORMAT_UNSPEC, Some(size_of::<fi_cq_entry>())),
        (FI_CQ_FORMAT_CONTEXT, Some(size_of::<fi_cq_entry>())),
        (FI_CQ_FORMAT_MSG, Some(size_of::<fi_cq_msg_entry>())),
        (FI_CQ_FORMAT_DATA, Some(size_of::<fi_cq_data_entry>())),
        (FI_CQ_FORMAT_TAGGED, Some(size_of::<fi_cq_tagged_entry>())),
        (5, None),
    ];
    for (format, size) in table {
        assert_eq!(Format::of(format).map(|format| 8 * format.words()), size, "{format}");
    }
    let (mut array, mut read) = kept(1);
    assert!(ENTRY.put(&mut array) && !ENTRY.put(&mut array));
    let (fields, src) = read.next().unwrap();
    let field = |offset: usize| fields[offset / 8];
    type Tagged = fi_cq_tagged_entry;
    let tagged = [
        offset_of!(Tagged, op_context),
        offset_of!(Tagged, flags),
        offset_of!(Tagged, len),
        offset_of!(Tagged, buf),
        offset_of!(Tagged, data),
        offset_of!(Tagged, tag),
    ];
    assert_eq!((tagged.map(field), src), ([1, 2, 3, 4, 5, 6], 7));
    type Data = fi_cq_data_entry;
    let data = [
        offset_of!(Data, op_context),
        offset_of!(Data, flags),
        offset_of!(Data, len),
        offset_of!(Data, buf),
        offset_of!(Data, data),
    ];
    assert_eq!(data.map(field), [1, 2, 3, 4, 5]);
    type Msg = fi_cq_msg_entry;
    let msg = [
        offset_of!(Msg, op_context),
        offset_of!(Msg, flags),
        offset_of!(Msg, len),
    ];
    assert_eq!(msg.map(field), [1, 2, 3]);
    assert_eq!(offset_of!(fi_cq_entry, op_context), 0);
}

#[test]
fn error_data_goes_where_the_api_version_says() {
    let error = ErrorEntry {
        err: 5,
        err_data: vec![1, 2, 3, 4],
        src_addr: 9,
        ..ErrorEntry::default()
    };
    let own = error.err_data.as_ptr() as usize;
    let (v1_0, v1_4, v1_5, v1_19, v1_20, v2_6) = (0x10000, 0x10004, 0x10005, 0x10013, 0x10014, 0x20006);
    // API version, size of the program's buffer -> bytes written, address and size told, bytes copied.
    let table = [
        (v1_0, 100, (72, own, 4, 0)),
        (v1_4, 0, (72, own, 4, 0)),
        (v1_5, 0, (80, own, 4, 0)),
        (v1_5, 100, (80, 0x1000, 4, 4)),
        (v1_19, 3, (80, 0x1000, 3, 3)),
        (v1_20, 0, (88, own, 4, 0)),
        (v2_6, 2, (88, 0x1000, 2, 2)),
    ];
    for (api, room, expected) in table {
        let answer = error.answer(api, core::ptr::without_provenance_mut(0x1000), room);
        let told = (
            answer.size,
            answer.entry.err_data as usize,
            answer.entry.err_data_size,
            answer.copy,
        );
        assert_eq!(told, expected, "{api:x} {room}");
        assert_eq!((answer.entry.err, answer.entry.src_addr), (5, 9));
    }
}

#[test]
fn an_error_without_data_tells_of_none() {
    let error = ErrorEntry::default();
    for (room, expected) in [(0, (0, 0, 0)), (8, (0x1000, 0, 0))] {
        let answer = error.answer(0x20000, core::ptr::without_provenance_mut(0x1000), room);
        assert_eq!(
            (answer.entry.err_data as usize, answer.entry.err_data_size, answer.copy),
            expected
        );
    }
    let with_data = ErrorEntry {
        err_data: vec![1],
        ..ErrorEntry::default()
    };
    assert_eq!(with_data.answer(0x20000, core::ptr::null_mut(), 8).copy, 0);
}
