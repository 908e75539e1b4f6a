//! What a join must be told of its two ways: their addresses, and when to look at the far one.
//!
//! Implemented by `provider`. Used by the rest of the join.

use crate::engine::port::{PeerId, Transport};
use crate::sys::clock;

/// How the addresses of a join are made of those of its two ways. A context of a scalable endpoint has an address, too.
pub trait Naming {
    type Near: Transport;
    type Far: Transport;

    /// The near transport may answer a push that it cannot reach a peer after `connect` had hope.
    const NEAR_MAY_FAIL: bool = false;
    /// Polls of the near way that find nothing, in a row, between two looks at a far way that is not in use: some
    /// microseconds. Many times what a near peer takes to answer, so that a program with near peers only hardly ever
    /// pays for a look.
    const LOOK_EVERY: u32 = 256;

    /// The time in milliseconds, by a clock that is quick to read.
    fn now() -> u64 {
        clock::coarse_ms()
    }

    /// A peer's address on the near way. None: it cannot be near.
    fn near(&self, address: &[u8]) -> Option<Vec<u8>>;
    /// A peer's address on the far way. None: it has none.
    fn far(&self, address: &[u8]) -> Option<Vec<u8>>;
    /// The address of a peer that was met on the near way.
    fn met_near(&self, near: &Self::Near, peer: PeerId) -> Option<Vec<u8>>;
    /// The address of a peer that was met on the far way.
    fn met_far(&self, far: &Self::Far, peer: PeerId) -> Option<Vec<u8>>;
    /// The address of the scalable endpoint of which this is a context; any other as it is.
    fn base<'a>(&self, address: &'a [u8]) -> &'a [u8];

    /// The way to a peer was chosen: for the log.
    fn chosen(&self, _address: &[u8], _near: bool) {}
    /// The near way was chosen to a peer and does not lead there: for the log.
    fn left(&self, _address: &[u8]) {}
    /// The join is closed, and so many peers were reached either way: for the log.
    fn ended(&self, _near: usize, _far: usize) {}
}
