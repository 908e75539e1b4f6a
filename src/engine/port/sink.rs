//! The engine, as a transport sees it while it delivers.
//!
//! Only what a transport says and is answered; `engine::deliver` is behind it. Called by every transport.

use super::{ExposedName, Loss, NotDone, PeerId, Token};
use crate::engine::op::{Access, Error};
use crate::engine::wire::Header;
use crate::util::regions::Lease;
use crate::util::user::UserIov;

/// Where the body of an arriving packet goes.
pub enum Placement {
    /// Into the application's memory at offset `at`; bytes past its end are dropped. Never written after `Sink::gone`.
    Into { iov: UserIov, at: usize, token: Token },
    /// Into part of a region that is as long as the body, as `Into` but only through `Lease::with`. If that refuses,
    /// the region was closed: the rest of the body is dropped, and `Sink::cut` follows in place of `placed`. Only
    /// without `Limits::sync_placement`.
    Leased { lease: Lease, token: Token },
    /// Into a buffer of the engine as long as the body; the transport hands it back with `placed`.
    Keep { buffer: Vec<u8>, token: Token },
    /// Nowhere: the header was enough, or the body is unwanted.
    Drop,
    /// Not now: the packet stays in the transport, which delivers nothing more of this peer in this poll.
    Refuse,
}

/// The engine, as a transport sees it while it delivers.
pub trait Sink {
    /// Messages of this peer match as if `source` had sent them, because it is one transmit context of a scalable
    /// endpoint. Called before its first packet, and again after `gone`. Without this call a peer is its own source.
    fn met(&mut self, _peer: PeerId, _source: PeerId) {}

    /// The fast path: a whole packet has come and the engine can read its body where it lies. True: the engine has
    /// consumed it. False: nothing happened, and the transport calls `place`. For transports that would move the body
    /// at once; one with `ONE_SIDED` goes by `place`, which refuses atomics where only the card may execute them.
    #[inline]
    fn take(&mut self, _from: PeerId, _header: &Header, _body: &[u8]) -> bool {
        false
    }

    /// What `take` does for messages, and nothing for other packets: the code that the compiler puts into a transport's
    /// loop over short packets is so small that what the loop holds stays in registers. False: the transport calls
    /// `take`.
    #[inline]
    fn take_message(&mut self, _from: PeerId, _header: &Header, _body: &[u8]) -> bool {
        false
    }

    /// Whether what this peer sent last is done only when the poll is over, at the latest when the transport is
    /// flushed. Until then a peer that works on our memory directly must not take it for done. Asked after `take`.
    fn is_to_answer(&self, _peer: PeerId) -> bool {
        false
    }

    /// A packet with a body of `len` bytes has come.
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement;

    /// The body is where `place` said; `buffer` is the one of `Keep`. Not called for `Drop` and `Refuse`.
    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>);

    /// The whole body of a `Placement::Leased` has come, but its region was closed before all was in place.
    fn cut(&mut self, _token: Token) {}

    /// What the `Notice` of a push that was `Later` asked for is so: once for each such push. With an error, the packet
    /// may not arrive, and `gone` follows. Not called from `push`, nor after `gone`.
    fn sent(&mut self, _token: Token, _result: Result<(), Error>) {}

    /// Our memory behind a name that the peer sent back, if this access is allowed now. The transport must not use it
    /// after it has returned to the engine.
    fn exposed_memory(&mut self, _peer: PeerId, _name: &ExposedName, _access: Access) -> Option<UserIov> {
        None
    }

    /// A `get`, `copy` or `amo` that was `Later` is over.
    fn finished(&mut self, token: Token, result: Result<(), NotDone>);

    /// A peer's `copy` with remote CQ data has written `len` bytes to our memory, after all that it sent before.
    fn written(&mut self, _from: PeerId, _len: usize, _data: u64) {}

    /// A peer is lost: operations that wait for it fail. From now on the transport touches no memory of the peer's
    /// placements, gets, copies, amos and pushes, and says nothing more of them; nothing that was pushed to it before
    /// is sent.
    fn gone(&mut self, peer: PeerId, loss: Loss);
}
