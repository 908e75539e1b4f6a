//! What an application asks of an endpoint and what it is told in the end, in one shape for all the calls of the API.
//!
//! The C shims fold each family of calls (send, sendv, sendmsg, inject, senddata ...) into one of these; the endpoint
//! turns a `Completion` into queue entries and counter steps.

use super::port::PeerId;
use crate::util::small_array::SmallArray;
use crate::util::user::UserIov;

/// The application's context pointer, carried through.
pub type Context = usize;

/// Which matcher a message goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Message,
    Tagged,
    /// Tagged too, but what a collective operation is made of: never the application's.
    Collective,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Message, Kind::Tagged, Kind::Collective];
}

/// Who is told of an operation's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The counter of the direction; of an error the queue too.
    Counters,
    /// Queue and counter.
    Queue,
    /// Neither: whoever in this library began it, who knows it by its context.
    Own,
}

impl Tell {
    /// With an entry, whatever the operation asked for. What is nobody else's stays so.
    pub fn aloud(self) -> Tell {
        match self {
            Tell::Own => Tell::Own,
            Tell::Counters | Tell::Queue => Tell::Queue,
        }
    }
}

/// How far a send must have come when it is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The buffer may be used again.
    #[default]
    Inject,
    /// It will arrive whatever becomes of the sender's memory; with shared memory and streams, as good as `Inject`.
    Transmit,
    /// The target's application memory has it (the target said so).
    Delivery,
}

/// A send.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub kind: Kind,
    pub to: PeerId,
    pub tag: u64,
    /// Remote CQ data.
    pub data: Option<u64>,
    pub body: UserIov,
    /// FI_INJECT: the body may be used again as soon as the call returns.
    pub inject: bool,
    pub level: Level,
    /// FI_FENCE: starts only after everything before it to the same peer has ended.
    pub fence: bool,
    pub context: Context,
    /// Whether success is worth an entry in the completion queue.
    pub tell: Tell,
}

/// A receive.
#[derive(Clone, Copy, Debug)]
pub struct Recv {
    pub kind: Kind,
    /// FI_DIRECTED_RECV; None: from anyone.
    pub from: Option<PeerId>,
    pub tag: u64,
    pub ignore: u64,
    pub body: UserIov,
    /// FI_MULTI_RECV: the buffer takes messages one after the other until less than this many bytes are free.
    pub multi: Option<usize>,
    pub context: Context,
    pub tell: Tell,
}

/// FI_PEEK, and what may come with it or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Only says what is there.
    Peek,
    /// FI_PEEK | FI_CLAIM: keeps the message for the receive with FI_CLAIM and the same context.
    Claim,
    /// FI_PEEK | FI_DISCARD: drops the message found.
    Discard,
    /// FI_CLAIM: receives the message kept for this context.
    Take,
    /// FI_CLAIM | FI_DISCARD: drops the message kept for this context.
    Drop,
}

/// A piece of a peer's registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemotePart {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

/// The remote side of one operation: up to `IOV_LIMIT` pieces, as if they were one.
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

    /// None when there are too many pieces, or more bytes than an address space has.
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

    /// As that of `UserIov`.
    #[inline(always)]
    pub fn only(&self) -> Option<RemotePart> {
        self.parts.only()
    }

    pub fn parts(&self) -> &[RemotePart] {
        self.parts.all()
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A read or write of a peer's memory. Local and remote side are of one length.
#[derive(Clone, Copy, Debug)]
pub struct Rma {
    pub access: Access,
    pub to: PeerId,
    pub local: UserIov,
    pub remote: RemoteIov,
    /// Remote CQ data, for writes.
    pub data: Option<u64>,
    pub inject: bool,
    pub fence: bool,
    pub context: Context,
    pub tell: Tell,
}

/// What an atomic operation gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing: fi_atomic.
    Base,
    /// The old values: fi_fetch_atomic.
    Fetch,
    /// The old values, and has a second operand: fi_compare_atomic.
    Compare,
}

/// What an atomic operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicTarget {
    Memory(RemoteIov),
    /// FI_TAGGED: the buffer of the receive that this tag meets, from byte `at` on.
    Tagged {
        tag: u64,
        at: u64,
    },
}

/// An atomic operation. The engine carries `op` and `datatype` as fi_op and fi_datatype number them; `mem` knows them,
/// and whoever makes this has asked it whether the pair is valid.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    pub form: Form,
    pub op: u8,
    pub datatype: u8,
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

/// What kind of operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Send,
    Recv,
    Rma(Access),
    Atomic(Form),
    /// A peer has worked on a region of ours: one event for each of its operations, when all of it is done. Told if the
    /// operation had remote CQ data, or if anybody may count it. `len` is its bytes; `tell` is `Queue` with data only.
    Target {
        access: Access,
        key: u64,
        atomic: bool,
    },
}

/// The end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub ended: Ended,
    pub kind: Kind,
    pub context: Context,
    /// As the operation said: of success, while errors belong in the queue unless it is `Own`.
    pub tell: Tell,
    /// Bytes received; for a send, bytes sent.
    pub len: usize,
    /// Where the message lies, for a multi-receive; else 0.
    pub buf: usize,
    pub tag: u64,
    pub data: Option<u64>,
    /// Whom the message came from; for a send, whom it goes to.
    pub source: Option<PeerId>,
    /// FI_MULTI_RECV in the entry: the buffer is given back with this one.
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

/// The ends that are not success. `api` maps them to fi_errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// FI_ETRUNC: the message was longer than the buffer; what fitted is there.
    Truncated,
    /// FI_ECANCELED
    Canceled,
    /// FI_ENOMSG: a look found nothing.
    NoMessage,
    /// FI_EIO and kin: the peer is gone.
    PeerGone,
    /// FI_ENOMEM
    NoMemory,
    /// FI_EHOSTUNREACH: there is nobody at that address.
    Unreachable,
    /// FI_EPROTO: the peer sent something that cannot be.
    Protocol,
    /// FI_EKEYREJECTED: the peer knows no such key.
    NoKey,
    /// FI_EACCES: the peer's region was not registered for this.
    NoRights,
    /// FI_EINVAL: outside the peer's region.
    OutOfRange,
    /// FI_EOPNOTSUPP: the peer cannot do this operation on this type.
    NoSuchAtomic,
}

/// Why an operation was not taken up: nothing has happened, nothing will be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// -FI_EAGAIN: no room now; call progress and try again.
    Again,
    /// -FI_EMSGSIZE
    TooLong,
    /// -FI_EINVAL
    Invalid,
    /// -FI_EOPNOTSUPP
    Unsupported,
    /// -FI_EHOSTUNREACH
    Unreachable,
    NoMemory,
}

/// Who is told of ends. The endpoint's shim implements it over its queues and counters.
pub trait Report {
    fn report(&mut self, completion: Completion);

    /// A peer came that had not been there, or that will not be.
    fn met(&mut self) {}

    /// A peer was refused access to memory of ours. It has been told; this is for the log.
    fn refused(&mut self, _from: PeerId, _part: &RemotePart, _error: Error) {}
}

impl Report for Vec<Completion> {
    fn report(&mut self, completion: Completion) {
        self.push(completion);
    }
}
