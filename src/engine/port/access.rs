//! A peer's memory: how it is named, and what a transport can do there by itself. The words of `Transport`'s calls on it.

use super::super::op::{Access, AtomicOp, Error, RemotePart};
use crate::util::user::UserIov;

/// What a peer passes to `get` to fetch from this endpoint's memory. Opaque bytes made by `expose`, sent as a body, and
/// no more of them than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    bytes: [u8; Remote::MAX],
    len: u8,
}

impl Remote {
    pub const MAX: usize = 96;

    /// None if there are no bytes, or too many.
    pub fn new(bytes: &[u8]) -> Option<Remote> {
        let mut all = [0; Remote::MAX];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let len = u8::try_from(bytes.len()).ok().filter(|len| *len > 0)?;
        Some(Remote { bytes: all, len })
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl From<[u8; Remote::MAX]> for Remote {
    fn from(bytes: [u8; Remote::MAX]) -> Remote {
        let len = Remote::MAX as u8;
        Remote { bytes, len }
    }
}

/// Memory that a peer may fetch with `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposed {
    pub remote: Remote,
    /// The transport's name for it, if it is to be told with `unexpose` when no peer needs it any more.
    pub id: Option<u64>,
}

/// Which memory a `Remote` exposes. A peer may send it back to have this side do part of the copying. It is a name to
/// look up and never an address, so a peer that forges one reaches no memory that it was not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposedName {
    /// Not to be looked up: the peer copies alone.
    Nothing,
    /// A message or write to this peer that is in flight, by the engine's number.
    Sent(u64),
    /// Part of a registered region.
    Region(RemotePart),
}

/// How a `get`, `copy` or `amo` began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Get {
    Done,
    /// `Sink::finished` will say.
    Later,
    Full,
    /// Not possible with this peer: the engine asks the peer to do it.
    Unsupported,
    /// As `Push::Gone`.
    Gone,
    /// The operation ends with this error. (A message whose `get` fails so is sent instead.)
    Failed(Error),
}

/// Why a `get`, `copy` or `amo` that was `Later` has come to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// As `Get::Unsupported`.
    AskPeer,
    /// As `Get::Failed`.
    Failed(Error),
}

/// Our side of a copy.
#[derive(Clone, Copy, Debug)]
pub enum Local<'a> {
    /// The application's memory, which is the transport's until the copy is over.
    User(&'a UserIov),
    /// Bytes to be written (FI_INJECT). The transport has taken them when the call returns.
    Bytes(&'a [u8]),
}

/// A read or write of a peer's registered memory. Both sides have the same length, which may be 0.
#[derive(Clone, Copy, Debug)]
pub struct CopyOp<'a> {
    pub access: Access,
    pub parts: &'a [RemotePart],
    pub local: Local<'a>,
    /// Remote CQ data of a write: the peer's transport says `Sink::written` when the bytes are there.
    pub data: Option<u64>,
}

/// An atomic operation on one element of a peer's registered memory.
#[derive(Clone, Copy, Debug)]
pub struct Amo<'a> {
    pub op: AtomicOp,
    pub part: RemotePart,
    pub operand: &'a [u8],
    /// Empty, unless the operation compares.
    pub compare: &'a [u8],
    /// Where the old value goes. No memory, if nobody wants it.
    pub result: &'a UserIov,
}

/// What a transport does in its peers' memory without their processor, as a card does: every read and write, and either
/// all atomics or none. A card's atomics and a processor's do not see each other, so it is settled for the whole life
/// of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneSided {
    /// `copy` does all reads and writes.
    pub copies: bool,
    /// All that `amo` does, each on a single element. None: atomics are executed by the target's engine.
    pub atomics: &'static [AtomicOp],
    /// What is begun to a peer after a write, packets included, takes effect there after it. Otherwise the engine holds
    /// messages and atomics until the write has completed. Copies among themselves are never held, but for FI_FENCE.
    pub ordered_after_write: bool,
    /// The same after a read or an `amo`.
    pub ordered_after_read: bool,
}

impl OneSided {
    pub const NONE: OneSided = OneSided {
        copies: false,
        atomics: &[],
        ordered_after_write: false,
        ordered_after_read: false,
    };
}

/// What a look at a peer shows, and when that was.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollMark {
    /// A number that changes now and then while the peer polls its transport.
    pub changes: u64,
    /// Nanoseconds since any beginning. They may stand still where nothing can be taken back.
    pub nanos: u64,
}

/// What to do with a packet that its peer has not begun to read: see `Transport::recall`.
#[derive(Clone, Copy, Debug)]
pub enum Recall {
    /// It stays; those behind it may be performed before it.
    Leave,
    /// It stays, with all that are behind it.
    Stop,
    /// Write its body to this piece of the peer's memory.
    Write(RemotePart),
    /// Read this piece of the peer's memory into ours.
    Read(RemotePart, UserIov),
}
