//! Capability bits: which must be asked for, which come for free, and what a reply may claim.

use crate::abi::types::*;

const MSG_DIRECTIONS: u64 = FI_SEND | FI_RECV;
const RMA_DIRECTIONS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

/// Given only to programs that ask for them.
pub const PRIMARY: u64 = FI_MSG
    | FI_RMA
    | FI_TAGGED
    | FI_ATOMIC
    | FI_MULTICAST
    | FI_NAMED_RX_CTX
    | FI_DIRECTED_RECV
    | FI_TAGGED_DIRECTED_RECV
    | FI_EXACT_DIRECTED_RECV
    | FI_COLLECTIVE
    | FI_HMEM
    | FI_AV_USER_ID
    | FI_PEER
    | MSG_DIRECTIONS
    | RMA_DIRECTIONS;

/// May be reported to programs that did not ask for them.
pub const SECONDARY: u64 = FI_MULTI_RECV
    | FI_TAGGED_MULTI_RECV
    | FI_SOURCE
    | FI_SOURCE_ERR
    | FI_RMA_EVENT
    | FI_TRIGGER
    | FI_FENCE
    | FI_RMA_PMEM
    | FI_SHARED_AV
    | FI_LOCAL_COMM
    | FI_REMOTE_COMM;

/// Secondary, but not given away: naming the source of each message costs time; operations that start by themselves,
/// and regions' counters, which drive all endpoints, cost locks at threading levels that need none otherwise.
const NOT_FREE: u64 = FI_SOURCE | FI_TRIGGER | FI_RMA_EVENT;

/// Not even given to those who name no capability at all: they change what calls mean (an exact endpoint refuses
/// receives from anyone), or are younger than programs that check each bit, or cost time. MPICH opens a scalable
/// endpoint where it sees FI_NAMED_RX_CTX, and so polls two contexts, with a connection each, where one endpoint would
/// do.
pub const ON_REQUEST: u64 =
    FI_SOURCE_ERR | FI_TAGGED_MULTI_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV | FI_NAMED_RX_CTX;

/// Receive bits that programs leave in tx_attr.caps; they mean nothing there.
pub const NOT_FOR_TX: u64 = FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_RECV
    | FI_DIRECTED_RECV
    | FI_TAGGED_DIRECTED_RECV
    | FI_EXACT_DIRECTED_RECV
    | FI_MULTI_RECV
    | FI_TAGGED_MULTI_RECV
    | FI_SOURCE
    | FI_SOURCE_ERR
    | FI_RMA_EVENT;

/// Transmit bits that programs leave in rx_attr.caps.
pub const NOT_FOR_RX: u64 = FI_READ | FI_WRITE | FI_SEND | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX;

/// The caps of a reply. `whole` is what the info as a whole can do (for fi_info.caps: without asking by name), `own`
/// what this part of it can: less for the domain and the two contexts.
pub fn reply(whole: u64, hinted: u64, own: u64) -> u64 {
    let caps = if hinted == 0 {
        (whole & own & PRIMARY | own & SECONDARY) & !(ON_REQUEST & !whole)
    } else {
        let free = SECONDARY & !NOT_FREE & !ON_REQUEST;
        hinted & own & (PRIMARY | SECONDARY) | own & free
    };
    with_directions(caps, own)
}

/// Caps without a direction mean all directions.
fn with_directions(mut caps: u64, own: u64) -> u64 {
    if caps & (FI_MSG | FI_TAGGED) != 0 && caps & MSG_DIRECTIONS == 0 {
        caps |= own & MSG_DIRECTIONS;
    }
    if caps & (FI_RMA | FI_ATOMIC) != 0 && caps & RMA_DIRECTIONS == 0 {
        caps |= own & RMA_DIRECTIONS;
    }
    caps
}

/// Whether a peer may read or write our memory under these caps.
pub fn is_rma_target(caps: u64) -> bool {
    let remote = caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0;
    let initiates = caps & (FI_READ | FI_WRITE) != 0;
    caps & (FI_RMA | FI_ATOMIC) != 0 && (remote || !initiates)
}

#[cfg(test)]
mod tests;
