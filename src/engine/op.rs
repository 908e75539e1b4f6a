//! Operations that an endpoint starts, and their completions: one type for each family of API calls.
//!
//! `abi` and `api` fold each family (send, sendv, sendmsg, inject, senddata ...) into one of these; `api::endpoint`
//! turns a `Completion` into completion-queue entries and counter updates.

use super::port::PeerId;
pub use crate::mem::atomic::{AtomicOp, Form};
use crate::util::small_array::SmallArray;
use crate::util::user::UserIov;

/// The application's context pointer, returned in the completion.
pub type Context = usize;

/// Which matcher a message goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Untagged,
    Tagged,
    /// Messages that this library sends to carry out collectives. They have tags, and their own matcher.
    Collective,
}

impl MessageKind {
    pub const ALL: [MessageKind; 3] = [MessageKind::Untagged, MessageKind::Tagged, MessageKind::Collective];
}

/// Who gets the completion of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The counter of its direction; a failure also goes to the queue.
    Counters,
    /// Queue and counter.
    Queue,
    /// Of a shared context's receive: as `Counters` where the queue takes only what asks for it, else as `Queue`. Which
    /// queue it is shows when a message is there.
    ByQueue,
    /// Neither: the part of this library that started the operation, which knows it by its context.
    Own,
}

impl Tell {
    /// The same with a queue entry, unless the completion is internal (`Own`).
    pub fn aloud(self) -> Tell {
        match self {
            Tell::Own => Tell::Own,
            Tell::Counters | Tell::Queue | Tell::ByQueue => Tell::Queue,
        }
    }
}

/// Names an operation that is to be taken back, by its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationOf {
    Program(Context),
    /// The part of this library that asked for it by `Tell::Own`.
    Library(Context),
}

/// When a send completes (fi_cq: completion levels).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionLevel {
    /// When the buffer may be reused.
    #[default]
    Inject,
    /// When it is on its way, whatever becomes of the sender: where the transport copies at once, as early as `Inject`.
    Transmit,
    /// When the target has acknowledged that it lies in the target's application memory.
    Delivery,
}

/// A send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub kind: MessageKind,
    pub to: PeerId,
    pub tag: u64,
    /// Remote CQ data.
    pub data: Option<u64>,
    pub body: UserIov,
    /// FI_INJECT: the body may be used again as soon as the call returns.
    pub inject: bool,
    pub level: CompletionLevel,
    /// FI_FENCE: starts only after all earlier operations to the same peer have completed.
    pub fence: bool,
    pub context: Context,
    /// Who gets the completion if it succeeds.
    pub tell: Tell,
}

/// What a caller says of an operation besides what it does, for transports that give operations straight to a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostHint {
    /// FI_MORE: another call follows at once, and what can wait for it may.
    pub more: bool,
    /// Nobody hears of its success: no queue, no counter, no part of this library.
    pub silent: bool,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
pub struct Recv {
    pub kind: MessageKind,
    /// FI_DIRECTED_RECV; None: from anyone.
    pub from: Option<PeerId>,
    pub tag: u64,
    pub ignore: u64,
    pub body: UserIov,
    /// FI_MULTI_RECV: the buffer takes messages until fewer than this many bytes are free.
    pub multi: Option<usize>,
    pub context: Context,
    pub tell: Tell,
}

/// A receive call with FI_PEEK, FI_CLAIM or FI_DISCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// FI_PEEK alone: reports the message and leaves it.
    Only,
    /// FI_PEEK | FI_CLAIM: reserves the message for a receive with FI_CLAIM and the same context.
    Claim,
    /// FI_PEEK | FI_DISCARD: drops the message found.
    Discard,
    /// FI_CLAIM: receives the message reserved with this context.
    ReceiveClaimed,
    /// FI_CLAIM | FI_DISCARD: drops the message reserved with this context.
    DiscardClaimed,
    /// No flag, but no more will come: receives a message that has come, and is not posted if there is none.
    Arrived,
}

/// A piece of a peer's registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemotePart {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

/// The remote side of one operation: up to `IOV_LIMIT` pieces that count as one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteIov {
    parts: SmallArray<RemotePart>,
    len: usize,
}

impl RemoteIov {
    #[inline(always)]
    pub fn one(part: RemotePart) -> RemoteIov {
        RemoteIov {
            parts: SmallArray::One(part),
            len: part.len,
        }
    }

    /// None if there are too many pieces, or their lengths overflow.
    pub fn new(parts: impl IntoIterator<Item = RemotePart>) -> Option<RemoteIov> {
        let parts = SmallArray::new(parts)?;
        let len = parts
            .all()
            .iter()
            .try_fold(0usize, |len, part| len.checked_add(part.len))?;
        Some(RemoteIov { parts, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The piece, if there is exactly one.
    #[inline(always)]
    pub fn only(&self) -> Option<RemotePart> {
        self.parts.only()
    }

    pub fn parts(&self) -> &[RemotePart] {
        self.parts.all()
    }
}

/// The direction of an RMA operation, as the initiator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A read or write of a peer's memory. Local and remote side have the same length.
#[derive(Clone, Copy, Debug)]
pub struct Rma {
    pub access: Access,
    pub to: PeerId,
    pub local: UserIov,
    pub remote: RemoteIov,
    /// Remote CQ data, for writes.
    pub data: Option<u64>,
    pub inject: bool,
    /// Of a write. `Inject` is served where the target has taken writes to this memory before; all else as `Delivery`.
    pub level: CompletionLevel,
    pub fence: bool,
    pub context: Context,
    pub tell: Tell,
}

/// Whether an operation is injected and its caller told nothing of its end: then it may never call again.
pub fn untold(inject: bool, tell: Tell) -> bool {
    inject && tell == Tell::Counters
}

/// What an atomic operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicTarget {
    Memory(RemoteIov),
    /// FI_TAGGED: the buffer of the receive that matches this tag, from offset `at` on.
    Tagged {
        tag: u64,
        at: u64,
    },
}

/// An atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    pub op: AtomicOp,
    pub to: PeerId,
    pub target: AtomicTarget,
    /// Bytes worked on at the target: the number of elements times their size.
    pub len: usize,
    /// `len` bytes, or none for FI_ATOMIC_READ.
    pub operand: UserIov,
    /// `len` bytes with `Compare`.
    pub compare: UserIov,
    /// `len` bytes with `Fetch` and `Compare`.
    pub result: UserIov,
    /// Remote CQ data, with `Base`.
    pub data: Option<u64>,
    pub inject: bool,
    pub fence: bool,
    pub context: Context,
    pub tell: Tell,
}

/// Which kind of operation a completion is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletedOp {
    Send,
    Recv,
    Rma(Access),
    Atomic(Form),
    /// A peer has finished an operation on a region of ours. Reported if it carried remote CQ data, or if accesses to
    /// the region or endpoint are counted. `len` is its bytes; `tell` is `Queue` if it carried data.
    Target {
        access: Access,
        key: u64,
        atomic: bool,
    },
}

/// The completion of an operation, successful or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub op: CompletedOp,
    pub kind: MessageKind,
    pub context: Context,
    /// As the operation asked. Failures go to the queue whatever it says, unless it is `Own`.
    pub tell: Tell,
    /// Bytes received, or sent; 0 on failure, but the bytes placed if the message was truncated.
    pub len: usize,
    /// The address of the message, for a multi-receive; else 0.
    pub buf: usize,
    pub tag: u64,
    pub data: Option<u64>,
    /// The peer: the sender of a received message, else the target.
    pub source: Option<PeerId>,
    /// The entry has FI_MULTI_RECV: the application owns the multi-receive buffer again.
    pub released: bool,
    /// The entry answers a FI_PEEK.
    pub peeked: bool,
    pub failure: Option<Failure>,
}

/// Why an operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub error: Error,
    /// Bytes of the message that did not fit: FI_ETRUNC's olen.
    pub overflow: usize,
}

/// Why an operation failed. `api` maps these to fi_errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// FI_ETRUNC: the message was longer than the buffer, which has its beginning.
    Truncated,
    /// FI_ECANCELED
    Canceled,
    /// FI_ENOMSG: FI_PEEK found no message.
    NoMessage,
    /// FI_EIO: the peer has ended.
    PeerGone,
    /// FI_ECONNRESET: the connection to the peer was lost. What begins after this goes over a new one.
    Broken,
    /// FI_ETIMEDOUT: as `Broken`, because nothing was heard of the peer's machine.
    Silent,
    /// FI_ENOMEM
    NoMemory,
    Unreachable(Unreached),
    /// FI_EPROTO: the peer violated the protocol.
    Protocol,
    /// FI_EKEYREJECTED: the peer has no region with this key.
    NoKey,
    /// FI_EACCES: the peer's region does not allow this access.
    NoRights,
    /// FI_EINVAL: outside the peer's region.
    OutOfRange,
    /// FI_EOPNOTSUPP: the peer cannot do this operation on this type.
    NoSuchAtomic,
    /// FI_EFAULT: our own memory is not registered, or not for this.
    NotRegistered,
}

impl Error {
    /// The connection was lost, and the peer may live.
    pub fn is_break(self) -> bool {
        matches!(self, Error::Broken | Error::Silent)
    }
}

/// Why there is no way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// FI_EHOSTUNREACH: there is nobody at that address, or the network says that the host cannot be reached.
    Nobody,
    /// FI_ENETUNREACH
    NoNetwork,
    /// FI_ECONNREFUSED: the host answers, and nobody listens there.
    Refused,
    /// FI_ETIMEDOUT: nothing was heard.
    TimedOut,
    /// FI_ECONNRESET: the connection ended before both sides had agreed on it.
    Reset,
    /// FI_EACCES: one side does not prove the secret of the other. Trying again does not help.
    Denied,
}

/// Why an operation was not accepted: it has no effect and no completion follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// -FI_EAGAIN: too many operations are in flight; retry after progress.
    Again,
    /// -FI_EMSGSIZE
    TooLong,
    /// -FI_EINVAL
    Invalid,
    /// -FI_EOPNOTSUPP
    Unsupported,
    Unreachable(Unreached),
    /// -FI_ENOTCONN
    NotConnected,
    NoMemory,
}

/// Receives completions. The endpoint implements it over its completion queues and counters.
pub trait Report {
    fn report(&mut self, completion: Completion);

    /// Whether the program has something to read, so that what else has come can wait for its next call.
    fn has_told(&self) -> bool {
        true
    }

    /// A new peer has connected; the caller may want to check whether peer numbers run out.
    fn met(&mut self) {}

    /// A peer was denied access to our memory. The peer is told by the engine; this is for the log.
    fn refused(&mut self, _from: PeerId, _part: &RemotePart, _error: Error) {}

    /// A peer has refused a write of ours that was reported when it was sent. No completion tells, so the log does.
    fn refused_unheard(&mut self, _by: PeerId, _part: &RemotePart, _error: Error) {}
}

impl Report for Vec<Completion> {
    fn report(&mut self, completion: Completion) {
        self.push(completion);
    }
}
