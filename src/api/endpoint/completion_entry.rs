//! What an entry of a completion queue says of an operation: its flags, and the fabric errno of a failure.
//!
//! Pure functions of the engine's `Completion`. Called by `bindings` and by `state`.

use crate::abi::types::*;
use crate::api::cq::ErrorEntry;
use crate::engine::op::{Access, CompletedOp, Completion, Error, Form, MessageKind, Unreached};

/// The flags of a completion entry.
#[inline(always)]
pub(super) fn flags(end: &Completion) -> u64 {
    let message = match end.kind {
        MessageKind::Untagged => FI_MSG,
        MessageKind::Tagged => FI_TAGGED,
        MessageKind::Collective => FI_COLLECTIVE,
    };
    let what = match end.op {
        CompletedOp::Send => message | FI_SEND,
        CompletedOp::Recv => message | FI_RECV,
        CompletedOp::Rma(access) => FI_RMA | direction(access),
        CompletedOp::Atomic(Form::Base) => FI_ATOMIC | FI_WRITE,
        CompletedOp::Atomic(Form::Fetch | Form::Compare) => FI_ATOMIC | FI_READ,
        CompletedOp::Target { access, atomic, .. } => {
            let family = if atomic { FI_ATOMIC } else { FI_RMA };
            let direction = match access {
                Access::Read => FI_REMOTE_READ,
                Access::Write => FI_REMOTE_WRITE,
            };
            family | direction
        }
    };
    let data = if end.data.is_some() { FI_REMOTE_CQ_DATA } else { 0 };
    let released = if end.released { FI_MULTI_RECV } else { 0 };
    what | data | released
}

pub(super) fn direction(access: Access) -> u64 {
    match access {
        Access::Read => FI_READ,
        Access::Write => FI_WRITE,
    }
}

pub(super) fn error_entry(end: &Completion, err: i32, source: fi_addr_t) -> ErrorEntry {
    ErrorEntry {
        context: end.context,
        flags: flags(end),
        len: end.len,
        buf: end.buf,
        data: end.data.unwrap_or(0),
        tag: end.tag,
        err,
        prov_errno: err,
        src_addr: source,
        ..ErrorEntry::default()
    }
}

/// The fabric errno of a peer that there is no way to.
fn unreached(why: Unreached) -> i32 {
    match why {
        Unreached::Nobody => FI_EHOSTUNREACH,
        Unreached::NoNetwork => FI_ENETUNREACH,
        Unreached::Refused => FI_ECONNREFUSED,
        Unreached::TimedOut => FI_ETIMEDOUT,
        Unreached::Reset => FI_ECONNRESET,
        Unreached::Denied => FI_EACCES,
    }
}

/// The fabric errno of a failed operation.
pub fn errno(error: Error) -> i32 {
    match error {
        Error::Truncated => FI_ETRUNC as i32,
        Error::Canceled => FI_ECANCELED,
        Error::NoMessage => FI_ENOMSG,
        Error::PeerGone => FI_EIO,
        Error::Broken => FI_ECONNRESET,
        Error::NoMemory => FI_ENOMEM,
        Error::Silent => FI_ETIMEDOUT,
        Error::Unreachable(why) => unreached(why),
        Error::Protocol => FI_EPROTO,
        Error::NoKey => FI_EKEYREJECTED,
        Error::NoRights => FI_EACCES,
        Error::OutOfRange => FI_EINVAL,
        Error::NoSuchAtomic => FI_EOPNOTSUPP,
        Error::NotRegistered => FI_EFAULT,
    }
}
