//! What an endpoint can be asked to do with messages: the one trait behind the fi_msg and fi_tagged op tables.
//!
//! The C calls are variations of three requests; the shims in `abi::object` fold them, an endpoint implements them.

use crate::api::errno::{Errno, Result};
use crate::engine::op::{Context, MessageKind};
use crate::util::user::UserIov;

/// Where the flags of a call come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// The call has none: those of the endpoint hold (op_flags).
    Endpoint,
    /// The same through an alias, whose own hold.
    Alias(u64),
    /// The `msg` form of a call names its own.
    Call(u64),
    /// The call is deferred work's: the same, and its end is told to whoever gave it its context.
    Own(u64),
    /// The inject forms: the buffer is the caller's again at once, and success is not reported.
    Inject,
}

/// A send but for its body, which the call that has it in its hands lends: so nothing of either is copied before it is
/// known to be kept.
#[derive(Clone, Copy, Debug)]
pub struct SendCall {
    pub kind: MessageKind,
    /// fi_addr_t of the target.
    pub dest: u64,
    pub tag: u64,
    pub data: Option<u64>,
    pub flags: Flags,
    pub context: Context,
}

/// As `SendCall`.
#[derive(Clone, Copy, Debug)]
pub struct RecvCall {
    pub kind: MessageKind,
    /// fi_addr_t of the only source wanted, or FI_ADDR_UNSPEC.
    pub source: u64,
    pub tag: u64,
    pub ignore: u64,
    pub flags: Flags,
    pub context: Context,
}

/// Why an endpoint has not begun an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// The call fails with this error.
    Refused(Errno),
    /// The operation has FI_TRIGGER and waits for a counter. Whoever can read the operation's context, which names it,
    /// hands the operation to `deferred::trigger`.
    Triggered,
}

impl From<Errno> for NotBegun {
    #[inline]
    fn from(error: Errno) -> NotBegun {
        NotBegun::Refused(error)
    }
}

pub trait Messaging {
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun>;
    /// Receives, and with FI_PEEK, FI_CLAIM or FI_DISCARD among the flags looks.
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun>;
}

impl<M: Messaging> Messaging for std::sync::Arc<M> {
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        (**self).send(call, body)
    }

    #[inline(always)]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        (**self).recv(call, body)
    }
}
