//! The words a user may give for capabilities, modes, endpoint types and address formats.
//!
//! Every name the original program takes, and the newer ones of the API beside them. Called by `options`.

use crate::abi::types::*;

type Table = [(&'static str, u64)];

const CAPS: &Table = &[
    ("FI_MSG", FI_MSG),
    ("FI_RMA", FI_RMA),
    ("FI_TAGGED", FI_TAGGED),
    ("FI_ATOMIC", FI_ATOMIC),
    ("FI_MULTICAST", FI_MULTICAST),
    ("FI_COLLECTIVE", FI_COLLECTIVE),
    ("FI_READ", FI_READ),
    ("FI_WRITE", FI_WRITE),
    ("FI_RECV", FI_RECV),
    ("FI_SEND", FI_SEND),
    ("FI_REMOTE_READ", FI_REMOTE_READ),
    ("FI_REMOTE_WRITE", FI_REMOTE_WRITE),
    ("FI_MULTI_RECV", FI_MULTI_RECV),
    ("FI_REMOTE_CQ_DATA", FI_REMOTE_CQ_DATA),
    ("FI_MORE", FI_MORE),
    ("FI_PEEK", FI_PEEK),
    ("FI_TRIGGER", FI_TRIGGER),
    ("FI_FENCE", FI_FENCE),
    ("FI_SOURCE_ERR", FI_SOURCE_ERR),
    ("FI_LOCAL_COMM", FI_LOCAL_COMM),
    ("FI_REMOTE_COMM", FI_REMOTE_COMM),
    ("FI_SHARED_AV", FI_SHARED_AV),
    ("FI_RMA_EVENT", FI_RMA_EVENT),
    ("FI_RMA_PMEM", FI_RMA_PMEM),
    ("FI_SOURCE", FI_SOURCE),
    ("FI_NAMED_RX_CTX", FI_NAMED_RX_CTX),
    ("FI_DIRECTED_RECV", FI_DIRECTED_RECV),
    ("FI_TAGGED_DIRECTED_RECV", FI_TAGGED_DIRECTED_RECV),
    ("FI_EXACT_DIRECTED_RECV", FI_EXACT_DIRECTED_RECV),
    ("FI_TAGGED_MULTI_RECV", FI_TAGGED_MULTI_RECV),
    ("FI_HMEM", FI_HMEM),
    ("FI_AV_USER_ID", FI_AV_USER_ID),
    ("FI_PEER", FI_PEER),
];

/// The API has no FI_NOTIFY_FLAGS_ONLY and FI_RESTRICTED_COMP any more (value 0), but scripts may name them.
const MODES: &Table = &[
    ("FI_CONTEXT", FI_CONTEXT),
    ("FI_CONTEXT2", FI_CONTEXT2),
    ("FI_MSG_PREFIX", FI_MSG_PREFIX),
    ("FI_ASYNC_IOV", FI_ASYNC_IOV),
    ("FI_RX_CQ_DATA", FI_RX_CQ_DATA),
    ("FI_LOCAL_MR", FI_LOCAL_MR),
    ("FI_NOTIFY_FLAGS_ONLY", FI_NOTIFY_FLAGS_ONLY),
    ("FI_RESTRICTED_COMP", FI_RESTRICTED_COMP),
];

/// The API has no SOCK types any more. With the values that they had, the answer is right: no provider offers them.
const EP_TYPES: &Table = &[
    ("FI_EP_UNSPEC", FI_EP_UNSPEC as u64),
    ("FI_EP_MSG", FI_EP_MSG as u64),
    ("FI_EP_DGRAM", FI_EP_DGRAM as u64),
    ("FI_EP_RDM", FI_EP_RDM as u64),
    ("FI_EP_SOCK_STREAM", 4),
    ("FI_EP_SOCK_DGRAM", 5),
];

const ADDR_FORMATS: &Table = &[
    ("FI_FORMAT_UNSPEC", FI_FORMAT_UNSPEC as u64),
    ("FI_SOCKADDR", FI_SOCKADDR as u64),
    ("FI_SOCKADDR_IP", FI_SOCKADDR_IP as u64),
    ("FI_SOCKADDR_IN", FI_SOCKADDR_IN as u64),
    ("FI_SOCKADDR_IN6", FI_SOCKADDR_IN6 as u64),
    ("FI_SOCKADDR_IB", FI_SOCKADDR_IB as u64),
    ("FI_ADDR_PSMX", FI_ADDR_PSMX as u64),
    ("FI_ADDR_PSMX2", FI_ADDR_PSMX2 as u64),
    ("FI_ADDR_PSMX3", FI_ADDR_PSMX3 as u64),
    ("FI_ADDR_GNI", FI_ADDR_GNI as u64),
    ("FI_ADDR_BGQ", FI_ADDR_BGQ as u64),
    ("FI_ADDR_MLX", FI_ADDR_MLX as u64),
    ("FI_ADDR_UCX", FI_ADDR_UCX as u64),
    ("FI_ADDR_STR", FI_ADDR_STR as u64),
    ("FI_ADDR_IB_UD", FI_ADDR_IB_UD as u64),
    ("FI_ADDR_EFA", FI_ADDR_EFA as u64),
    ("FI_ADDR_OPX", FI_ADDR_OPX as u64),
    ("FI_ADDR_CXI", FI_ADDR_CXI as u64),
];

/// A kind of word; says what was wanted when a word is not one.
pub struct Words {
    pub what: &'static str,
    table: &'static Table,
}

pub const CAPABILITY: Words = Words {
    what: "capability",
    table: CAPS,
};
pub const MODE: Words = Words {
    what: "mode",
    table: MODES,
};
pub const EP_TYPE: Words = Words {
    what: "endpoint type",
    table: EP_TYPES,
};
pub const ADDR_FORMAT: Words = Words {
    what: "address format",
    table: ADDR_FORMATS,
};

impl Words {
    /// The value of one word, in any case; `Err` has the line to print.
    pub fn one(&self, word: &[u8]) -> Result<u64, Vec<u8>> {
        match self
            .table
            .iter()
            .find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word))
        {
            Some((_, value)) => Ok(*value),
            None => Err([format!("error: Unrecognized {}: ", self.what).as_bytes(), word].concat()),
        }
    }

    /// The word for a value.
    pub fn of(&self, value: u64) -> Option<&'static str> {
        self.table.iter().find(|(_, v)| *v == value).map(|(name, _)| *name)
    }

    /// The union of words with `|` between them; empty ones do not count.
    pub fn many(&self, words: &[u8]) -> Result<u64, Vec<u8>> {
        let words = words.split(|c| *c == b'|').filter(|w| !w.is_empty());
        words
            .map(|word| self.one(word))
            .try_fold(0, |all, value| Ok(all | value?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_values() {
        assert_eq!(CAPABILITY.many(b"fi_msg||FI_Tagged|"), Ok(FI_MSG | FI_TAGGED));
        assert_eq!(CAPABILITY.many(b""), Ok(0));
        assert_eq!(
            CAPABILITY.many(b"FI_MSG|bad"),
            Err(b"error: Unrecognized capability: bad".to_vec())
        );
        assert_eq!(
            CAPABILITY.many(b"FI_MSG |FI_RMA"),
            Err(b"error: Unrecognized capability: FI_MSG ".to_vec())
        );
        assert_eq!(EP_TYPE.one(b"FI_EP_RDM"), Ok(FI_EP_RDM as u64));
        assert!(EP_TYPE.one(b"FI_EP_RDM|FI_EP_MSG").is_err());
        assert_eq!(MODE.many(b"FI_CONTEXT|FI_CONTEXT2"), Ok(FI_CONTEXT | FI_CONTEXT2));
        assert_eq!(ADDR_FORMAT.one(b"FI_ADDR_STR"), Ok(FI_ADDR_STR as u64));
        assert_eq!(CAPABILITY.of(FI_PEER), Some("FI_PEER"));
        assert_eq!(CAPABILITY.of(FI_PEER | FI_MSG), None);
    }

    #[test]
    fn no_capability_shares_a_bit_with_another() {
        let union = CAPS.iter().fold(0u64, |all, (_, bit)| all | bit);
        assert_eq!(union.count_ones() as usize, CAPS.len());
    }
}
