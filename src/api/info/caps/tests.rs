//! What a reply claims of what was hinted, for the whole and for each side, and who is a target of RMA by its bits.

use super::*;

#[test]
fn primary_and_secondary_do_not_overlap() {
    assert_eq!(PRIMARY & SECONDARY, 0);
}

#[test]
fn reply_caps() {
    const ALL: u64 = FI_MSG | FI_TAGGED | FI_RMA | MSG_DIRECTIONS | RMA_DIRECTIONS | FI_SOURCE | FI_MULTI_RECV;
    const TX: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_READ | FI_WRITE;
    const RX: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV;
    let rows = [
        // (whole, hinted, own, expected)
        (ALL, 0, ALL, ALL),
        (ALL, 0, ALL | ON_REQUEST, ALL),
        (ALL | ON_REQUEST, 0, ALL | ON_REQUEST, ALL | ON_REQUEST),
        (
            ALL | ON_REQUEST,
            FI_MSG,
            ALL | ON_REQUEST,
            FI_MSG | MSG_DIRECTIONS | FI_MULTI_RECV,
        ),
        (
            ALL | ON_REQUEST,
            FI_MSG | ON_REQUEST,
            ALL | ON_REQUEST,
            FI_MSG | MSG_DIRECTIONS | FI_MULTI_RECV | ON_REQUEST,
        ),
        (ALL, FI_MSG, ALL, FI_MSG | MSG_DIRECTIONS | FI_MULTI_RECV),
        (ALL, FI_TAGGED, ALL, FI_TAGGED | MSG_DIRECTIONS | FI_MULTI_RECV),
        (ALL, FI_MSG | FI_SEND, ALL, FI_MSG | FI_SEND | FI_MULTI_RECV),
        (ALL, FI_MSG | FI_RECV, ALL, FI_MSG | FI_RECV | FI_MULTI_RECV),
        (ALL, FI_RMA, ALL, FI_RMA | RMA_DIRECTIONS | FI_MULTI_RECV),
        (ALL, FI_RMA | FI_READ, ALL, FI_RMA | FI_READ | FI_MULTI_RECV),
        (
            ALL,
            FI_MSG | FI_SOURCE,
            ALL,
            FI_MSG | MSG_DIRECTIONS | FI_SOURCE | FI_MULTI_RECV,
        ),
        (
            ALL,
            FI_RMA,
            ALL | FI_TRIGGER | FI_RMA_EVENT,
            FI_RMA | RMA_DIRECTIONS | FI_MULTI_RECV,
        ),
        (ALL, 0, ALL | FI_SOURCE_ERR, ALL),
        (
            ALL | FI_SOURCE_ERR,
            FI_SOURCE,
            ALL | FI_SOURCE_ERR,
            FI_SOURCE | FI_MULTI_RECV,
        ),
        (
            ALL | FI_SOURCE_ERR,
            FI_SOURCE | FI_SOURCE_ERR,
            ALL | FI_SOURCE_ERR,
            FI_SOURCE | FI_SOURCE_ERR | FI_MULTI_RECV,
        ),
        (ALL, FI_MULTI_RECV, ALL, FI_MULTI_RECV),
        (ALL, FI_SOURCE, ALL, FI_SOURCE | FI_MULTI_RECV),
        (FI_MSG | MSG_DIRECTIONS, 0, TX, FI_MSG | FI_SEND),
        (FI_MSG | MSG_DIRECTIONS, 0, RX, FI_MSG | FI_RECV | FI_MULTI_RECV),
        (ALL, FI_MSG, TX, FI_MSG | FI_SEND),
        (ALL, FI_MSG | FI_SEND | FI_RECV, TX, FI_MSG | FI_SEND),
        (ALL, FI_MSG | FI_SOURCE, TX, FI_MSG | FI_SEND),
        (
            FI_LOCAL_COMM,
            0,
            FI_LOCAL_COMM | FI_REMOTE_COMM,
            FI_LOCAL_COMM | FI_REMOTE_COMM,
        ),
    ];
    for (row, (whole, hinted, own, expected)) in rows.into_iter().enumerate() {
        assert_eq!(reply(whole, hinted, own), expected, "row {row}");
    }
}

#[test]
fn rma_targets() {
    let rows = [
        (FI_MSG | FI_TAGGED, false),
        (FI_REMOTE_READ, false),
        (FI_RMA, true),
        (FI_ATOMIC, true),
        (FI_RMA | FI_READ, false),
        (FI_RMA | FI_WRITE, false),
        (FI_ATOMIC | FI_READ | FI_WRITE, false),
        (FI_RMA | FI_READ | FI_REMOTE_WRITE, true),
        (FI_RMA | FI_REMOTE_READ, true),
    ];
    for (caps, expected) in rows {
        assert_eq!(is_rma_target(caps), expected, "{caps:#x}");
    }
}
