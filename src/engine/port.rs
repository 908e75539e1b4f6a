//! What the engine asks of a transport, and what a transport may ask of the engine.
//!
//! A transport carries packets: a fixed header and a body, between endpoints that it numbers. Packets of one peer
//! arrive once, whole, in order. It knows nothing of messages, tags or completions. The engine owns the transport and
//! calls it from one thread at a time; nothing here blocks.
//!
//! Receiving differs most between transports, so it is done in two steps. `Sink::place` is told the header first, and
//! answers where the body goes; the transport moves it there, at once (shared memory) or as it comes (a stream), and
//! says so with `Sink::placed`. While it delivers, the engine cannot push; what it has to say waits in its outbox until
//! `poll` returns.

use super::op::{Access, RemotePart};
use super::wire::Header;
use crate::util::regions::{Regions, Rights};
use crate::util::user::{UserBuf, UserIov};
use std::sync::Arc;

/// A peer of one endpoint, as its transport numbers it: small, dense, used for another address only after `forget`.
pub type PeerId = u32;

/// Names a `place` until its `placed`, or a `get` until its `finished`. Chosen by the engine.
pub type Token = u64;

/// What a transport is like. Asked once, when the endpoint is enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most body bytes in one packet. Operations on remote memory in several pieces need 256.
    pub max_body: usize,
    /// Messages up to this size go without asking, in one packet or several; above it the receiver is asked first.
    pub eager: usize,
    /// Whether `get` can work at all; it may still answer `Unsupported` for a peer.
    pub can_get: bool,
    /// What `place` said is done, and `placed` called, before the next packet's `place` and before `poll` returns. A
    /// region of memory may be closed between two calls of the engine, so only then the transport may touch one itself.
    pub sync_placement: bool,
    /// Packets with bodies up to this size are never `TooLong`: enough for all that carries no bytes of a program's.
    pub guaranteed_body: usize,
}

/// A packet's bytes.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    Empty,
    /// A few bytes of the engine's own.
    Bytes(&'a [u8]),
    /// Part of an application's memory. The transport must have copied or sent it when `push` returns `Done`.
    User {
        iov: &'a UserIov,
        at: usize,
        len: usize,
    },
}

impl Body<'_> {
    pub fn len(&self) -> usize {
        match self {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len(),
            Body::User { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Push {
    /// On its way; header and body may be used again.
    Done,
    /// No room towards this peer now: try again after a poll.
    Full,
    /// This peer is gone, and nothing more will reach it. What it has sent is still delivered, and then `Sink::gone` says
    /// so, if it has not yet.
    Gone,
    /// There is nobody at this peer's address.
    Unreachable,
    /// There is no memory for a packet as long as this towards this peer, but for one of `Limits::guaranteed_body` bytes.
    TooLong,
    /// There is no memory for a way to this peer.
    NoMemory,
}

/// How a peer can name a piece of this endpoint's memory in `get`. Opaque bytes, made by `expose`, sent as a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub bytes: [u8; Remote::SIZE],
}

impl Remote {
    pub const SIZE: usize = 96;
}

/// What a `Remote` is of. A peer may send it back to have this side do some of the copying. It says where to look the
/// memory up, and never where the memory is: so a peer that makes one up gets no more than it was shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposedName {
    /// The peer copies alone.
    Nothing,
    /// A message or write to this peer that has not ended, as the engine numbers it.
    Sent(u64),
    /// Some of a registered region.
    Region(RemotePart),
}

/// How a `get` began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Get {
    Done,
    /// `Sink::finished` will say.
    Later,
    Full,
    /// Not with this peer: the engine asks the peer to send instead.
    Unsupported,
    /// As for a push.
    Gone,
}

pub trait Transport {
    fn limits(&self) -> Limits;

    /// The number of the peer at an address, which need not exist yet. The same address, the same number.
    fn peer(&mut self, address: &[u8]) -> Option<PeerId>;

    /// Whether so many numbers were given out that it is time to `forget` some.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Numbers that nobody holds, of peers that are not there, may go to other addresses from now on. Says which they are.
    fn forget(&mut self, _held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        Vec::new()
    }

    /// Sends one packet.
    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>) -> Push;

    /// Delivers what has come, about `budget` packets at most. Says how many.
    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize;

    /// Names memory of ours for a peer's `get`. If the peer asks for help with that, the engine is asked for the memory
    /// again, by this name (`Sink::exposed_memory`).
    fn expose(&self, to: PeerId, iov: &UserIov, name: ExposedName) -> Remote;

    /// Copies `len` bytes from byte `at` of a peer's memory into ours, from byte `at` on too. Without a token, our memory
    /// may be touched until this returns and no longer, by anybody: then `Later` is no answer.
    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get;

    // ---- a peer's registered memory, worked on without the peer ----
    //
    // What is done so is done when the call returns, unless a copy is `Later`. It is never done before the peer's engine
    // has looked at all that was pushed to it, and never in a region that somebody watches. Everything else is not done,
    // and the engine asks the peer: refusals too are the peer's to make.

    /// Peers may reach these regions, through the endpoint of this number, as `Region::shown_at` says.
    fn publish_regions(&mut self, _regions: &Arc<Regions>, _endpoint: u64) {}

    /// Hands a piece of a peer's memory to `work`, if it can be touched here.
    fn reach<R>(
        &mut self,
        _to: PeerId,
        _part: &RemotePart,
        _wanted: Rights,
        _work: impl FnOnce(UserBuf) -> R,
    ) -> Option<R> {
        None
    }

    /// The same with several pieces: all of them, or none.
    fn reach_all<R>(
        &mut self,
        _to: PeerId,
        _parts: &[RemotePart],
        _wanted: Rights,
        _work: impl FnOnce(&UserIov) -> R,
    ) -> Option<R> {
        None
    }

    /// Copies between a piece of a peer's memory and as much of ours. What is not `Done` or `Later` is the peer's to do.
    /// Nothing that fits a packet is `Later`: it keeps its place among other short operations.
    fn copy(&mut self, _to: PeerId, _part: &RemotePart, _local: &UserIov, _access: Access, _token: Token) -> Get {
        Get::Unsupported
    }

    /// A number that changes while a peer looks for packets, now and then.
    fn poll_mark(&self, _to: PeerId) -> u64 {
        0
    }

    /// Takes back packets that a peer has not begun to look at, and does without it what they ask for, in their order, as
    /// far as it can: the rest stays as it was pushed. `judge` is told each of them, oldest first, with the length of its
    /// body, and says what it is. Answers how many were done, always the first of those that are a `Write` or `Read`; None:
    /// nothing can be taken back, or not now.
    fn recall(&mut self, _to: PeerId, _judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        None
    }
}

/// What may become of a packet that its peer has not begun to look at: see `Transport::recall`.
#[derive(Clone, Copy, Debug)]
pub enum Recall {
    /// It stays, and what is behind it may pass it.
    Leave,
    /// It stays, and so does all that is behind it.
    Stop,
    /// Its body goes to this piece of the peer's memory.
    Write(RemotePart),
    /// This piece of the peer's memory goes to memory of ours.
    Read(RemotePart, UserIov),
}

/// Where the body of an arriving packet goes.
pub enum Placement {
    /// Into the application's memory, from byte `at` on; bytes past its end are dropped. Not written after `gone`.
    Into { iov: UserIov, at: usize, token: Token },
    /// Into memory of the engine's, as long as the body, which comes back with `placed`.
    Keep { buffer: Vec<u8>, token: Token },
    /// Nowhere: the header said it all, or nobody wants it.
    Drop,
    /// Not now: the packet stays with the transport, and nothing more of this peer is delivered in this poll.
    Refuse,
}

/// The engine, as a transport sees it while it delivers.
pub trait Sink {
    /// Messages of this peer match as if they came from `source`: it is one context of several that one name stands
    /// for. To be said before its first packet, and again after `gone`; a peer never named is its own source.
    fn met(&mut self, _peer: PeerId, _source: PeerId) {}

    /// A packet has come, all of it, and its body lies where the engine can read it now. True: the engine has taken it
    /// and there is nothing more to do. Else it is as if nothing had been said: `place` is next. Worth a try for a
    /// transport that would move the body at once.
    #[inline]
    fn take(&mut self, _from: PeerId, _header: &Header, _body: &[u8]) -> bool {
        false
    }

    /// A packet with a body of `len` bytes has come.
    fn place(&mut self, from: PeerId, header: &Header, len: usize) -> Placement;

    /// The body is where `place` said; `buffer` is the engine's own coming back. Not called for `Drop` and `Refuse`.
    fn placed(&mut self, token: Token, buffer: Option<Vec<u8>>);

    /// Memory of ours that this peer wants copied from or to, if that is the peer's right now. To be used before the
    /// transport returns to the engine, and no longer.
    fn exposed_memory(&mut self, _peer: PeerId, _name: &ExposedName, _access: Access) -> Option<UserIov> {
        None
    }

    /// A `get` or `copy` that was `Later` has ended. If it failed, the engine asks the peer to send instead, or to do it.
    fn finished(&mut self, token: Token, ok: bool);

    /// A peer is gone, or the way to it is broken, which both ends are then told: what waits for it ends in error, and
    /// places and gets of its are as if they had ended: the transport no longer touches that memory. Should something
    /// new come from its address, it is a new peer's.
    fn gone(&mut self, peer: PeerId);
}
