//! Sets of flags, each as the list of its names. Order in a table is order in the text.
//!
//! The same bit has other names in other sets, so every set has a table of its own. A bit without a line is not shown.

use super::Text;
use crate::abi::types::*;

/// The names of one set, in the order they are shown.
pub type FlagNames = &'static [(u64, &'static str)];

macro_rules! names {
    ($($name:ident),+ $(,)?) => { &[$(($name as u64, stringify!($name))),+] };
}

/// Writes the names of the bits that are set.
pub fn add(text: &mut Text, names: FlagNames, bits: u64) {
    text.add_list(names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name));
}

/// A line with the list in brackets.
pub fn line(text: &mut Text, depth: usize, label: &str, names: FlagNames, bits: u64) {
    text.label(depth, label);
    write!(text, "[ ");
    add(text, names, bits);
    write!(text, " ]");
    text.end_line();
}

pub const CAPS: FlagNames = names![
    FI_MSG,
    FI_RMA,
    FI_TAGGED,
    FI_ATOMIC,
    FI_MULTICAST,
    FI_COLLECTIVE,
    FI_READ,
    FI_WRITE,
    FI_RECV,
    FI_SEND,
    FI_REMOTE_READ,
    FI_REMOTE_WRITE,
    FI_MULTI_RECV,
    FI_REMOTE_CQ_DATA,
    FI_TRIGGER,
    FI_FENCE,
    FI_RMA_PMEM,
    FI_SOURCE_ERR,
    FI_LOCAL_COMM,
    FI_REMOTE_COMM,
    FI_SHARED_AV,
    FI_RMA_EVENT,
    FI_SOURCE,
    FI_NAMED_RX_CTX,
    FI_DIRECTED_RECV,
    FI_AV_USER_ID,
    FI_PEER,
    FI_HMEM,
];

pub const MODE: FlagNames = names![
    FI_CONTEXT,
    FI_MSG_PREFIX,
    FI_ASYNC_IOV,
    FI_RX_CQ_DATA,
    FI_LOCAL_MR,
    FI_CONTEXT2
];

pub const OP_FLAGS: FlagNames = names![
    FI_MULTICAST,
    FI_MULTI_RECV,
    FI_REMOTE_CQ_DATA,
    FI_MORE,
    FI_PEEK,
    FI_TRIGGER,
    FI_FENCE,
    FI_COMPLETION,
    FI_INJECT,
    FI_INJECT_COMPLETE,
    FI_TRANSMIT_COMPLETE,
    FI_DELIVERY_COMPLETE,
    FI_MATCH_COMPLETE,
    FI_AFFINITY,
    FI_CLAIM,
    FI_DISCARD,
];

pub const MSG_ORDER: FlagNames = names![
    FI_ORDER_RAR,
    FI_ORDER_RAW,
    FI_ORDER_RAS,
    FI_ORDER_WAR,
    FI_ORDER_WAW,
    FI_ORDER_WAS,
    FI_ORDER_SAR,
    FI_ORDER_SAW,
    FI_ORDER_SAS,
    FI_ORDER_RMA_RAR,
    FI_ORDER_RMA_RAW,
    FI_ORDER_RMA_WAR,
    FI_ORDER_RMA_WAW,
    FI_ORDER_ATOMIC_RAR,
    FI_ORDER_ATOMIC_RAW,
    FI_ORDER_ATOMIC_WAR,
    FI_ORDER_ATOMIC_WAW,
];

pub const MR_MODE: FlagNames = names![
    FI_MR_BASIC,
    FI_MR_SCALABLE,
    FI_MR_LOCAL,
    FI_MR_RAW,
    FI_MR_VIRT_ADDR,
    FI_MR_ALLOCATED,
    FI_MR_PROV_KEY,
    FI_MR_MMU_NOTIFY,
    FI_MR_RMA_EVENT,
    FI_MR_ENDPOINT,
    FI_MR_HMEM,
    FI_MR_COLLECTIVE,
];

pub const MR_ACCESS: FlagNames = names![
    FI_RECV,
    FI_SEND,
    FI_READ,
    FI_WRITE,
    FI_REMOTE_READ,
    FI_REMOTE_WRITE,
    FI_COLLECTIVE
];

pub const CQ_EVENT: FlagNames = names![
    FI_SEND,
    FI_RECV,
    FI_RMA,
    FI_ATOMIC,
    FI_MSG,
    FI_TAGGED,
    FI_READ,
    FI_WRITE,
    FI_REMOTE_READ,
    FI_REMOTE_WRITE,
    FI_REMOTE_CQ_DATA,
    FI_MULTI_RECV,
    FI_MORE,
    FI_CLAIM,
];

pub const AV_FLAGS: FlagNames = names![FI_EVENT, FI_READ, FI_SYMMETRIC];

pub const CQ_FLAGS: FlagNames = names![FI_AFFINITY];

#[cfg(test)]
mod tests {
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
}
