//! What an endpoint can be asked to do with messages: the trait behind the op tables of fi_msg and fi_tagged.
//!
//! The C calls are variations of two requests; the shims in `abi::object` reduce them to these, endpoints carry them
//! out.

use crate::api::errno::{Errno, Result};
use crate::engine::op::{Context, MessageKind};
use crate::util::user::UserIov;

/// Where the flags of a call come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// The call has none: those of the endpoint hold (op_flags).
    Endpoint,
    /// A call through an alias without flags of its own: the alias's hold.
    Alias(u64),
    /// The `msg` form of a call names its own.
    Call(u64),
    /// A call of deferred work: its own flags, and its completion goes to `api::deferred` by the context.
    Own(u64),
    /// The inject forms: the buffer can be reused at once, and success is not reported.
    Inject,
    /// The same through an alias, whose flags hold besides.
    AliasInject(u64),
}

impl Flags {
    #[inline(always)]
    pub fn is_inject(self) -> bool {
        matches!(self, Flags::Inject | Flags::AliasInject(_))
    }
}

/// A send without its body. The caller lends that separately, so that nothing is copied before it must be kept.
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

/// A receive without its buffers.
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
    /// Posts a receive; with FI_PEEK, FI_CLAIM or FI_DISCARD it looks for an unexpected message.
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
