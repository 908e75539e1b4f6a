//! The fi_msg and fi_tagged op tables of every endpoint: eighteen C calls, which make two requests.
//!
//! Opens iovecs and message structs, nothing more: what a call may ask for is checked by `api::endpoint`. `op_table`
//! says how a row reads. Deferred work opens its message structs here too.

use super::descriptors::{Given, note};
use super::endpoint::OpTables;
use super::op_table::{c_type, op_table};
use super::posting::{NULL, Post, many, one};
use crate::abi::types::*;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::engine::op::MessageKind;
use crate::util::user::UserIov;
use core::ffi::c_void;
use libc::{iovec, ssize_t};

impl<V: EndpointOps> OpTables<V> {
    pub const MSG: fi_ops_msg = op_table! { fi_ops_msg {
        recv       (into, len, desc, source, context)   = buffer(recv_from(source, context), into, len);
        recvv      (iov, descs, count, source, context) = buffers(recv_from(source, context), iov, count);
        recvmsg    (msg, flags)                          = recv_by_msg(msg, flags);
        send       (buf, len, desc, dest, context)      = buffer(send_to(dest, context), buf, len);
        sendv      (iov, descs, count, dest, context)   = buffers(send_to(dest, context), iov, count);
        sendmsg    (msg, flags)                          = send_by_msg(msg, flags);
        inject     (buf, len, dest)                      = buffer(send_to(dest, NULL).inject(), buf, len);
        senddata   (buf, len, desc, data, dest, context) = buffer(send_to(dest, context).data(data), buf, len);
        injectdata (buf, len, data, dest)                = buffer(send_to(dest, NULL).data(data).inject(), buf, len);
    }};

    pub const TAGGED: fi_ops_tagged = op_table! { fi_ops_tagged {
        recv       (into, len, desc, source, tag, ignore, context)
            = buffer(trecv_from(source, tag, ignore, context), into, len);
        recvv      (iov, descs, count, source, tag, ignore, context)
            = buffers(trecv_from(source, tag, ignore, context), iov, count);
        recvmsg    (msg_tagged, flags)
            = trecv_by_msg(msg_tagged, flags);
        send       (buf, len, desc, dest, tag, context)
            = buffer(tsend_to(dest, tag, context), buf, len);
        sendv      (iov, descs, count, dest, tag, context)
            = buffers(tsend_to(dest, tag, context), iov, count);
        sendmsg    (msg_tagged, flags)
            = tsend_by_msg(msg_tagged, flags);
        inject     (buf, len, dest, tag)
            = buffer(tsend_to(dest, tag, NULL).inject(), buf, len);
        senddata   (buf, len, desc, data, dest, tag, context)
            = buffer(tsend_to(dest, tag, context).data(data), buf, len);
        injectdata (buf, len, data, dest, tag)
            = buffer(tsend_to(dest, tag, NULL).data(data).inject(), buf, len);
    }};
}

// ---- the words of the rows ----

#[inline(always)]
fn send_to(dest: fi_addr_t, context: *mut c_void) -> SendCall {
    SendCall {
        kind: MessageKind::Untagged,
        dest,
        tag: 0,
        data: None,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

#[inline(always)]
fn tsend_to(dest: fi_addr_t, tag: u64, context: *mut c_void) -> SendCall {
    SendCall {
        kind: MessageKind::Tagged,
        tag,
        ..send_to(dest, context)
    }
}

impl SendCall {
    #[inline(always)]
    fn data(self, data: u64) -> SendCall {
        SendCall {
            data: Some(data),
            ..self
        }
    }

    #[inline(always)]
    fn inject(self) -> SendCall {
        SendCall {
            flags: Flags::Inject,
            ..self
        }
    }
}

#[inline(always)]
fn recv_from(source: fi_addr_t, context: *mut c_void) -> RecvCall {
    RecvCall {
        kind: MessageKind::Untagged,
        source,
        tag: 0,
        ignore: 0,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

#[inline(always)]
fn trecv_from(source: fi_addr_t, tag: u64, ignore: u64, context: *mut c_void) -> RecvCall {
    RecvCall {
        kind: MessageKind::Tagged,
        tag,
        ignore,
        ..recv_from(source, context)
    }
}

/// # Safety
/// As `one`.
#[inline(always)]
unsafe fn buffer<C>(call: C, buf: *const c_void, len: usize) -> (C, UserIov) {
    // SAFETY: the same contract.
    (call, unsafe { one(buf, len) })
}

/// # Safety
/// As `many`.
#[inline(always)]
unsafe fn buffers<C>(call: C, iov: *const iovec, count: usize) -> Result<(C, UserIov)> {
    // SAFETY: the same contract.
    unsafe { many(iov, count) }.map(|body| (call, body))
}

// ---- the calls by message structs, which deferred work has too ----

/// # Safety
/// `msg` is NULL or a message, whose buffers are the operation's until it has ended.
#[inline]
pub(super) unsafe fn send_by_msg(msg: *const fi_msg, flags: u64) -> Result<(SendCall, UserIov)> {
    // SAFETY: the caller passes NULL or a message, whose pieces are as many as it says.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = SendCall {
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..send_to(msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn recv_by_msg(msg: *const fi_msg, flags: u64) -> Result<(RecvCall, UserIov)> {
    // SAFETY: the caller passes NULL or a message, whose pieces are as many as it says.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = RecvCall {
            flags: Flags::Call(flags),
            ..recv_from(msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn tsend_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<(SendCall, UserIov)> {
    // SAFETY: the caller passes NULL or a message, whose pieces are as many as it says.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = SendCall {
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..tsend_to(msg.addr, msg.tag, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn trecv_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<(RecvCall, UserIov)> {
    // SAFETY: the caller passes NULL or a message, whose pieces are as many as it says.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = RecvCall {
            flags: Flags::Call(flags),
            ..trecv_from(msg.addr, msg.tag, msg.ignore, msg.context)
        };
        Ok((call, body))
    }
}
