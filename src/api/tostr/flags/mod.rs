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
mod tests;
