use super::*;

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
        (FI_CQ_FORMAT_UNSPEC, Some(8)),
        (FI_CQ_FORMAT_CONTEXT, Some(8)),
        (FI_CQ_FORMAT_MSG, Some(24)),
        (FI_CQ_FORMAT_DATA, Some(40)),
        (FI_CQ_FORMAT_TAGGED, Some(48)),
        (5, None),
    ];
    for (format, size) in table {
        assert_eq!(Format::of(format).map(Format::size), size, "{format}");
    }
    let tagged = fi_cq_tagged_entry::of(&ENTRY);
    let fields = (
        tagged.op_context as usize,
        tagged.flags,
        tagged.len,
        tagged.buf as usize,
        tagged.data,
        tagged.tag,
    );
    assert_eq!(fields, (1, 2, 3, 4, 5, 6));
    let data = fi_cq_data_entry::of(&ENTRY);
    let fields = (
        data.op_context as usize,
        data.flags,
        data.len,
        data.buf as usize,
        data.data,
    );
    assert_eq!(fields, (1, 2, 3, 4, 5));
    let msg = fi_cq_msg_entry::of(&ENTRY);
    assert_eq!((msg.op_context as usize, msg.flags, msg.len), (1, 2, 3));
    assert_eq!(fi_cq_entry::of(&ENTRY).op_context as usize, 1);
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
        let answer = error.answer(api, pointer(0x1000), room);
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
        let answer = error.answer(0x20000, pointer(0x1000), room);
        assert_eq!(
            (answer.entry.err_data as usize, answer.entry.err_data_size, answer.copy),
            expected
        );
    }
    let with_data = ErrorEntry {
        err_data: vec![1],
        ..ErrorEntry::default()
    };
    assert_eq!(with_data.answer(0x20000, pointer(0), 8).copy, 0);
}
