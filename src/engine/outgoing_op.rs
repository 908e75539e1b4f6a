//! What kind of operation an `Outgoing` is: a message, a read, a write or an atomic, with the state that only this kind
//! has. Used by all files that queue, push or complete operations.

use super::op::{Access, AtomicOp, AtomicTarget, CompletedOp, Form, RemoteIov, RemotePart};
use super::pieces::LIST;
use super::port::Remote;
use super::replies::GotNotice;
use crate::util::user::UserIov;

/// What kind of operation an `Outgoing` is, with the state of that kind.
#[derive(Debug)]
pub(super) enum OutgoingOp {
    Message,
    Write(RemoteSide),
    /// Its bytes go to `Outgoing::local`.
    Read(RemoteSide),
    /// A read whose target lets us fetch the bytes.
    PulledRead(Box<PulledRead>),
    /// An atomic that was not pushed; `Outgoing::local` has its operands.
    Atomic(Box<QueuedAtomic>),
    /// An atomic that was pushed; its result goes to `Outgoing::local`.
    AtomicSent(Form),
}

/// The remote side of a read or write. If it is one piece, its address is `Outgoing::tag` and its length
/// `Outgoing::len`.
#[derive(Debug)]
pub(super) enum RemoteSide {
    One { key: u64 },
    Several(Box<RemoteIov>),
}

#[derive(Debug)]
pub(super) struct PulledRead {
    pub remote_side: RemoteSide,
    pub remote: Remote,
    /// The target counts accesses, so it is to be told with `Got`.
    pub notify: Option<GotNotice>,
}

#[derive(Debug)]
pub(super) struct QueuedAtomic {
    pub op: AtomicOp,
    pub target: AtomicTarget,
    pub result: UserIov,
}

impl RemoteSide {
    pub(super) fn of(remote: &RemoteIov) -> (u64, RemoteSide) {
        match remote.parts() {
            [part] => (part.addr, RemoteSide::One { key: part.key }),
            _ => (0, RemoteSide::Several(Box::new(*remote))),
        }
    }

    /// The bytes of its list in a packet's body.
    pub(super) fn list(&self) -> usize {
        match self {
            RemoteSide::One { .. } => 0,
            RemoteSide::Several(_) => LIST,
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            RemoteSide::One { .. } => 1,
            RemoteSide::Several(remote) => remote.parts().len() as u64,
        }
    }

    pub(super) fn iov(&self, addr: u64, len: usize) -> RemoteIov {
        match self {
            RemoteSide::One { key } => RemoteIov::one(RemotePart { addr, len, key: *key }),
            RemoteSide::Several(remote) => **remote,
        }
    }
}

impl OutgoingOp {
    /// Whether `Outgoing::tag` is a tag, and not an address.
    pub(super) fn has_tag(&self) -> bool {
        matches!(
            self,
            OutgoingOp::Message | OutgoingOp::Atomic(_) | OutgoingOp::AtomicSent(_)
        )
    }

    pub(super) fn completed_op(&self) -> CompletedOp {
        match self {
            OutgoingOp::Message => CompletedOp::Send,
            OutgoingOp::Write(_) => CompletedOp::Rma(Access::Write),
            OutgoingOp::Read(_) | OutgoingOp::PulledRead(_) => CompletedOp::Rma(Access::Read),
            OutgoingOp::Atomic(operation) => CompletedOp::Atomic(operation.op.form()),
            OutgoingOp::AtomicSent(form) => CompletedOp::Atomic(*form),
        }
    }
}
