//! The fi_msg and fi_tagged op tables of any endpoint that is `Messaging`: nineteen C calls folded into two requests.
//!
//! Opens iovecs and message structs, nothing more.

use super::posting::{Opened, Request, many, one, post};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::engine::op::MessageKind;
use crate::util::user::UserIov;
use core::ffi::c_void;
use core::marker::PhantomData;
use libc::{iovec, ssize_t};

/// The two tables of one kind of endpoint.
pub struct Tables<O>(PhantomData<O>);

impl<O: Opened> Tables<O> {
    pub const MSG: fi_ops_msg = fi_ops_msg {
        size: size_of::<fi_ops_msg>(),
        recv: Some(recv::<O>),
        recvv: Some(recvv::<O>),
        recvmsg: Some(recvmsg::<O>),
        send: Some(send::<O>),
        sendv: Some(sendv::<O>),
        sendmsg: Some(sendmsg::<O>),
        inject: Some(inject::<O>),
        senddata: Some(senddata::<O>),
        injectdata: Some(injectdata::<O>),
    };

    pub const TAGGED: fi_ops_tagged = fi_ops_tagged {
        size: size_of::<fi_ops_tagged>(),
        recv: Some(trecv::<O>),
        recvv: Some(trecvv::<O>),
        recvmsg: Some(trecvmsg::<O>),
        send: Some(tsend::<O>),
        sendv: Some(tsendv::<O>),
        sendmsg: Some(tsendmsg::<O>),
        inject: Some(tinject::<O>),
        senddata: Some(tsenddata::<O>),
        injectdata: Some(tinjectdata::<O>),
    };
}

/// A send, with what the calls have in common filled in.
#[inline(always)]
fn plain(kind: MessageKind, dest: u64, context: *mut c_void) -> SendCall {
    SendCall {
        kind,
        dest,
        tag: 0,
        data: None,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

#[inline(always)]
fn wanted(kind: MessageKind, source: u64, context: *mut c_void) -> RecvCall {
    RecvCall {
        kind,
        source,
        tag: 0,
        ignore: 0,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

// ---- the calls by message structs, which deferred work has too ----

/// # Safety
/// NULL or a message, whose buffers are the operation's until it has ended.
#[inline]
pub(super) unsafe fn send_by_msg(msg: *const fi_msg, flags: u64) -> Result<(SendCall, UserIov)> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = SendCall {
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..plain(MessageKind::Untagged, msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn recv_by_msg(msg: *const fi_msg, flags: u64) -> Result<(RecvCall, UserIov)> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = RecvCall {
            flags: Flags::Call(flags),
            ..wanted(MessageKind::Untagged, msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn tsend_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<(SendCall, UserIov)> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = SendCall {
            tag: msg.tag,
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..plain(MessageKind::Tagged, msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn trecv_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<(RecvCall, UserIov)> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        let call = RecvCall {
            tag: msg.tag,
            ignore: msg.ignore,
            flags: Flags::Call(flags),
            ..wanted(MessageKind::Tagged, msg.addr, msg.context)
        };
        Ok((call, body))
    }
}

/// Posts what was made of arrays, unless they made nothing.
///
/// # Safety
/// As `post`.
#[inline(always)]
unsafe fn post_made<O: Opened, C>(ep: *mut fid_ep, made: Result<(C, UserIov)>) -> ssize_t
where
    (C, UserIov): Request,
{
    match made {
        // SAFETY: by contract.
        Ok((call, body)) => unsafe { post::<O>(ep, (call, body)) },
        Err(error) => error.code() as ssize_t,
    }
}

// SAFETY of every shim below: C calls it with a live endpoint and with buffers that are the operation's until it ends;
// that is what the manual pages ask of a program.

unsafe extern "C" fn send<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    dest: fi_addr_t,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, (plain(MessageKind::Untagged, dest, context), one(buf, len))) }
}

unsafe extern "C" fn sendv<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    dest: fi_addr_t,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        post_made::<O, _>(
            ep,
            many(iov, count).map(|body| (plain(MessageKind::Untagged, dest, context), body)),
        )
    }
}

unsafe extern "C" fn sendmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { post_made::<O, _>(ep, send_by_msg(msg, flags)) }
}

unsafe extern "C" fn inject<O: Opened>(ep: *mut fid_ep, buf: *const c_void, len: usize, dest: fi_addr_t) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Untagged, dest, core::ptr::null_mut());
        post::<O>(
            ep,
            (
                SendCall {
                    flags: Flags::Inject,
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn senddata<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    dest: fi_addr_t,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Untagged, dest, context);
        post::<O>(
            ep,
            (
                SendCall {
                    data: Some(data),
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn injectdata<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    dest: fi_addr_t,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Untagged, dest, core::ptr::null_mut());
        post::<O>(
            ep,
            (
                SendCall {
                    data: Some(data),
                    flags: Flags::Inject,
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn recv<O: Opened>(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    source: fi_addr_t,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, (wanted(MessageKind::Untagged, source, context), one(buf, len))) }
}

unsafe extern "C" fn recvv<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: fi_addr_t,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        post_made::<O, _>(
            ep,
            many(iov, count).map(|body| (wanted(MessageKind::Untagged, source, context), body)),
        )
    }
}

unsafe extern "C" fn recvmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { post_made::<O, _>(ep, recv_by_msg(msg, flags)) }
}

unsafe extern "C" fn tsend<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    dest: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        post::<O>(
            ep,
            (
                SendCall {
                    tag,
                    ..plain(MessageKind::Tagged, dest, context)
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn tsendv<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    dest: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = SendCall {
            tag,
            ..plain(MessageKind::Tagged, dest, context)
        };
        post_made::<O, _>(ep, many(iov, count).map(|body| (call, body)))
    }
}

unsafe extern "C" fn tsendmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { post_made::<O, _>(ep, tsend_by_msg(msg, flags)) }
}

unsafe extern "C" fn tinject<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    dest: fi_addr_t,
    tag: u64,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Tagged, dest, core::ptr::null_mut());
        post::<O>(
            ep,
            (
                SendCall {
                    tag,
                    flags: Flags::Inject,
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn tsenddata<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    dest: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Tagged, dest, context);
        post::<O>(
            ep,
            (
                SendCall {
                    tag,
                    data: Some(data),
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn tinjectdata<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    dest: fi_addr_t,
    tag: u64,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(MessageKind::Tagged, dest, core::ptr::null_mut());
        post::<O>(
            ep,
            (
                SendCall {
                    tag,
                    data: Some(data),
                    flags: Flags::Inject,
                    ..call
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn trecv<O: Opened>(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    source: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        post::<O>(
            ep,
            (
                RecvCall {
                    tag,
                    ignore,
                    ..wanted(MessageKind::Tagged, source, context)
                },
                one(buf, len),
            ),
        )
    }
}

unsafe extern "C" fn trecvv<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = RecvCall {
            tag,
            ignore,
            ..wanted(MessageKind::Tagged, source, context)
        };
        post_made::<O, _>(ep, many(iov, count).map(|body| (call, body)))
    }
}

unsafe extern "C" fn trecvmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { post_made::<O, _>(ep, trecv_by_msg(msg, flags)) }
}
