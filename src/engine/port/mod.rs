//! What the engine asks of a transport, and what a transport may ask of the engine.
//!
//! A transport carries packets, each a fixed header and a body, between endpoints that it numbers. Packets of one peer
//! arrive once, whole and in order. It knows nothing of messages, tags or completions. The engine owns the transport
//! and calls it from one thread at a time; no call blocks.
//!
//! Transports differ most in how they receive, so that takes two steps. `Sink::place` gets the header and answers where
//! the body goes; the transport moves it there, at once (shared memory) or as it comes (a stream), and then calls
//! `Sink::placed`. The engine cannot push while the transport delivers, so its answers are queued until `poll` returns.
//!
//! Sending is one step where the transport copies or sends at once. One that sends as there is room may keep the
//! application's memory (`Push::Later`) and says when it is done with it (`Sink::sent`).
//!
//! A transport touches memory of the application only within a call of the engine, and no longer than it may: until it
//! says `placed`, `sent` or `finished`; until `gone` or `abandon`; and a region only while its `Lease` holds. The
//! engine reports no completion before that.
//!
//! - here: what the engine asks, in the words of `push` and `access`; `limits`: the sizes that a transport sets; `sink`:
//!   what a transport may ask; `tap`: the same for one of several.

mod access;
mod limits;
mod push;
mod sink;
pub mod tap;

use super::op::RemotePart;
use super::wire::Header;
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
use std::sync::Arc;

pub use access::{Amo, CopyOp, Exposed, ExposedName, Get, Local, NotDone, OneSided, PollMark, Recall, Remote};
pub use limits::Limits;
pub use push::{Around, Body, Notice, Push, When};
pub use sink::{Placement, Sink};

/// The transport's number for a peer of one endpoint. Small and dense; reused for another address only after `forget`.
pub type PeerId = u32;

/// The engine's name for a body from `place` to `placed`, for a `get`, `copy` or `amo` until `finished`, or for an
/// operation whose packets are pushed, until each is `sent`.
pub type Token = u64;

/// How far the connection with a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    Made,
    /// A connection is being made, which may stand any moment.
    Soon,
    /// The same, but the peer has not answered for so long that it may take any time.
    Late,
    /// It cannot be made now: a push would say why.
    NoWay,
}

/// How a peer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The peer has ended. Later packets from its address are a new peer's.
    Died,
    /// The same of one context of a scalable endpoint, which lives, as far as is known: receives from it stay. If it
    /// ends, the transport says `gone` of `whole`, whether or not anything was ever sent there.
    OneContext { whole: PeerId },
    /// The connection ended, and the peer may live: another connection may follow, under the same number. What was in
    /// flight either way may be lost, so a transport must see to it that
    /// - the other end is told of the same loss, whenever it next hears of this peer;
    /// - each end is told before it is given a packet of the next connection, and before it pushes one there;
    /// - of the broken connection nothing is delivered after `gone`, and what was pushed to it is sent on no other.
    Broken,
    /// The same, because nothing was heard of the peer's machine.
    Silent,
    /// As if it had died, because the endpoint that it talked to is closed, of several that share receives: what it
    /// sent is for nobody, though it had come whole.
    Closed,
}

pub trait Transport {
    /// Whether `one_sided` may say anything. Known to the compiler, so that the calls of other transports do not ask.
    const ONE_SIDED: bool = false;
    /// Whether `push` is ever `Later`. Known to the compiler, so that a transport that copies pays nothing for it.
    const PUSHES_LATER: bool = false;

    fn limits(&self) -> Limits;

    /// Whether some peers are reached another way, which bears more. Known to the compiler, as the others.
    const TWO_WAYS: bool = false;

    /// The limits of that way: none is below that of `limits`, but for gets. Asked once.
    fn far_limits(&self) -> Limits {
        self.limits()
    }

    /// Whether this peer is reached that way. Asked for each operation that is not short; it may become so, as long as
    /// nothing has come from the peer or gone to it.
    fn is_far(&mut self, _to: PeerId) -> bool {
        false
    }

    /// What this end does in its peers' memory by itself. Asked once, as `limits`.
    fn one_sided(&self) -> OneSided {
        OneSided::NONE
    }

    /// The number of the peer at an address, which need not exist yet. One address always has one number.
    fn peer(&mut self, address: &[u8]) -> Option<PeerId>;

    /// Whether the engine should call `forget`, because many numbers are in use.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Frees the numbers of peers that are gone and that `held` denies, and returns them: other addresses may get them.
    fn forget(&mut self, _held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        Vec::new()
    }

    /// Sends one packet. A notice is offered only where `PUSHES_LATER`, and where the memory may be kept. Without one
    /// the body is copied by what cannot be sent at once: it is a copy already, memory of FI_INJECT, or of a region.
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push;

    /// Whether this peer gets a message of this length, up to `Limits::eager`, sooner in packets than by `get`.
    fn is_sooner_sent(&mut self, _to: PeerId, _len: usize, _around: Around) -> bool {
        false
    }

    /// Whether packets to this peer that found no room wait for so long that it had better fetch messages by itself.
    /// Asked before they are tried again.
    fn is_held_up(&mut self, _to: PeerId) -> bool {
        false
    }

    /// From now on a message to this peer waits for credit. `came_late` follows.
    fn awaits_credit(&mut self, _to: PeerId) {}

    /// That credit has come. Whether the message waited for long though the peer has read all that was sent: the credit
    /// was there, and we did not look.
    fn came_late(&mut self, _to: PeerId) -> bool {
        false
    }

    /// Whether this peer is the endpoint itself, as far as is known when something is offered to it. The engine copies
    /// that, without `get`.
    fn is_itself(&self, _peer: PeerId) -> bool {
        false
    }

    /// What the engine pushes from here on, without a notice, may be gathered until `flush`, which follows. So it may
    /// after `poll`.
    #[inline(always)]
    fn gather(&mut self) {}

    /// What the engine pushed since `gather` or `poll`, without a notice, may have been gathered until here. It has
    /// nothing more to push now, has answered all that came (`Sink::is_to_answer`), and may not be called again soon.
    #[inline(always)]
    fn flush(&mut self) {}

    /// After a flush: whether something that was pushed to this peer could not leave for want of room.
    fn holds_back(&mut self, _to: PeerId) -> bool {
        false
    }

    /// Whether anything that was pushed, and reported as `Done`, leaves only when `poll` is called. Asked seldom.
    fn has_unsent(&self) -> bool {
        false
    }

    /// The engine treats this peer as dead, because it violated the protocol. True: the transport touches none of the
    /// application's memory on its account any more, and will name no token of its packets, bodies and gets; a
    /// connection ends with that, which `gone` tells in time. False: it is not so yet, and the engine asks again.
    fn abandon(&mut self, _peer: PeerId) -> bool {
        true
    }

    /// Delivers about `budget` packets at most. Returns how many.
    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize;

    /// The next poll finds whatever has come, from whomever. A poll may leave that to one of the next, as programs poll
    /// in a loop; but one that has found something, another way, may poll only once more.
    fn look_everywhere(&mut self) {}

    /// Begins to connect to this peer, if need be, and says how far that is.
    fn connect(&mut self, _to: PeerId) -> Contact {
        Contact::Made
    }

    /// Lets a peer fetch from our memory with `get`. If the peer asks for help with the copy, the transport asks the
    /// engine for the memory by this name (`Sink::exposed_memory`). None: it cannot, so the bytes are sent. Memory
    /// without a `Sent` name is a region's, which may be closed before `unexpose`: a transport whose peers would still
    /// reach it then must not expose it.
    fn expose(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed>;

    /// The peer has fetched that, or will not any more, because the operation was cancelled or the peer is gone. Called
    /// once for each `expose` that gave a name, before the operation's memory is used for anything else; but not when
    /// the transport is dropped, which ends all.
    fn unexpose(&mut self, _to: PeerId, _id: u64) {}

    /// Copies `len` bytes from offset `at` of a peer's memory to offset `at` of ours. Without a token, our memory must
    /// not be touched after this returns (a region may then be closed), so `Later` is not allowed.
    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get;

    // ---- direct access to a peer's registered memory ----
    //
    // Two ways. Without `one_sided`, `reach` and `copy` are offered short cuts: the operation is complete when the call
    // returns, unless a copy is `Later`. The transport takes one only when the peer has taken all packets pushed to it
    // before, and never in a region whose accesses are counted. In every other case, also when access would be denied,
    // it does nothing and the engine sends a packet: only the peer refuses. With `one_sided`, `copy` and `amo` are the
    // way: they get every operation, in order, and answer `Unsupported` for a peer that did not publish its regions,
    // which is asked with packets from then on.

    /// From now on reads of peers' memory need not keep their order.
    fn let_reads_pass(&mut self) {}

    /// Lets peers access these regions directly, through the endpoint of this number, where `Region::shown_at` allows.
    fn publish_regions(&mut self, _regions: &Arc<Regions>, _endpoint: u64) {}

    /// Peers are to ask for each access from now on, whatever was published before.
    fn hide_regions(&mut self) {}

    /// Calls `work` with a piece of a peer's memory, if it is mapped here.
    fn reach<R>(
        &mut self,
        _to: PeerId,
        _part: &RemotePart,
        _wanted: Rights,
        _work: impl FnOnce(UserBuf) -> R,
    ) -> Option<R> {
        None
    }

    /// As `reach`, for several pieces: all of them or none.
    fn reach_all<R>(
        &mut self,
        _to: PeerId,
        _parts: &[RemotePart],
        _wanted: Rights,
        _work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        None
    }

    /// Copies between a peer's memory and ours. Complete, with `Done` or `Sink::finished`, when the bytes are at their
    /// place on the side that is written. As a short cut it is offered one remote piece and no data; on any answer but
    /// `Done` or `Later` the peer is asked to do it, and what fits one packet is never `Later`, so that short
    /// operations keep their order.
    fn copy(&mut self, _to: PeerId, _copy: &CopyOp<'_>, _token: Token) -> Get {
        Get::Unsupported
    }

    /// Executes one of `OneSided::atomics`.
    fn amo(&mut self, _to: PeerId, _amo: &Amo<'_>, _token: Token) -> Get {
        Get::Unsupported
    }

    /// Whether a peer is seen to have registered this memory for writes. Asked before a write that goes in several
    /// packets.
    fn takes_writes(&mut self, _to: PeerId, _part: &RemotePart) -> bool {
        false
    }

    /// A look at whether the peer polls its transport.
    fn poll_mark(&self, _to: PeerId) -> PollMark {
        PollMark::default()
    }

    /// Takes back packets that the peer has not begun to read and performs their operations directly, in order, as far
    /// as possible; the rest stay as they were pushed. Calls `judge` with the header and body length of each, oldest
    /// first, also of those that are left: the engine counts them. Returns how many were performed, which are the first
    /// of those judged `Write` or `Read`; None if none can be taken back now.
    fn recall(&mut self, _to: PeerId, _judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        None
    }
}
