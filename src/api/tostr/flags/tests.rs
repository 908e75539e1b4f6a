//! Names of bits, their order and their number in each set, as the C library has them.

use super::*;

fn shown(names: FlagNames, bits: u64) -> String {
    let mut text = Text::new(8192);
    add(&mut text, names, bits);
    String::from_utf8(text.into_bytes()).unwrap_or_default()
}

#[test]
fn one_bit_has_another_name_in_another_set() {
    let table = [
        (CAPS, "FI_DIRECTED_RECV"),
        (OP_FLAGS, "FI_CLAIM"),
        (MODE, "FI_CONTEXT"),
        (CQ_EVENT, "FI_CLAIM"),
        (AV_FLAGS, "FI_SYMMETRIC"),
        (MSG_ORDER, ""),
    ];
    for (names, expected) in table {
        assert_eq!(shown(names, 1 << 59), expected);
    }
}

#[test]
fn lists_keep_the_order_of_the_c_library() {
    let table = [
        (
            CAPS,
            FI_READ | FI_MSG | FI_HMEM | FI_PEER,
            "FI_MSG, FI_READ, FI_PEER, FI_HMEM",
        ),
        (CAPS, 0, ""),
        (CAPS, 1 << 63, ""),
        (CQ_EVENT, FI_MSG | FI_SEND | FI_RMA, "FI_SEND, FI_RMA, FI_MSG"),
        (MODE, FI_CONTEXT2 | FI_LOCAL_MR, "FI_LOCAL_MR, FI_CONTEXT2"),
        (MR_MODE, 3, "FI_MR_BASIC, FI_MR_SCALABLE"),
    ];
    for (names, bits, expected) in table {
        assert_eq!(shown(names, bits), expected);
    }
}

#[test]
fn every_set_names_as_many_bits_as_the_c_library() {
    let table = [
        (CAPS, 28),
        (MODE, 6),
        (OP_FLAGS, 16),
        (MSG_ORDER, 17),
        (MR_MODE, 12),
        (MR_ACCESS, 7),
    ];
    for (names, count) in table {
        assert_eq!(shown(names, u64::MAX).split(", ").count(), count);
    }
}
