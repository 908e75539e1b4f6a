//! The fi_msg and fi_tagged op tables of any endpoint that is `Messaging`: nineteen C calls folded into two requests.
//!
//! Opens iovecs and message structs, nothing more.

use super::posting::{Opened, many, one, post, try_post};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::{Flags, RecvCall, SendCall};
use crate::engine::op::Kind;
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

/// A send of a single buffer, with what the calls have in common filled in.
#[inline(always)]
fn plain(kind: Kind, dest: u64, body: UserIov, context: *mut c_void) -> SendCall {
    SendCall {
        kind,
        dest,
        tag: 0,
        data: None,
        body,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

#[inline(always)]
fn wanted(kind: Kind, source: u64, body: UserIov, context: *mut c_void) -> RecvCall {
    RecvCall {
        kind,
        source,
        tag: 0,
        ignore: 0,
        body,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

// ---- the calls by message structs, which deferred work has too ----

/// # Safety
/// NULL or a message, whose buffers are the operation's until it has ended.
#[inline]
pub(super) unsafe fn send_by_msg(msg: *const fi_msg, flags: u64) -> Result<SendCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        Ok(SendCall {
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..plain(Kind::Message, msg.addr, body, msg.context)
        })
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn recv_by_msg(msg: *const fi_msg, flags: u64) -> Result<RecvCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        Ok(RecvCall {
            flags: Flags::Call(flags),
            ..wanted(Kind::Message, msg.addr, body, msg.context)
        })
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn tsend_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<SendCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        Ok(SendCall {
            tag: msg.tag,
            data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            ..plain(Kind::Tagged, msg.addr, body, msg.context)
        })
    }
}

/// # Safety
/// As `send_by_msg`.
#[inline]
pub(super) unsafe fn trecv_by_msg(msg: *const fi_msg_tagged, flags: u64) -> Result<RecvCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let body = many(msg.msg_iov, msg.iov_count)?;
        Ok(RecvCall {
            tag: msg.tag,
            ignore: msg.ignore,
            flags: Flags::Call(flags),
            ..wanted(Kind::Tagged, msg.addr, body, msg.context)
        })
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
    unsafe { post::<O>(ep, plain(Kind::Message, dest, one(buf, len), context)) }
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
        try_post::<O>(
            ep,
            many(iov, count).map(|body| plain(Kind::Message, dest, body, context)),
        )
    }
}

unsafe extern "C" fn sendmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, send_by_msg(msg, flags)) }
}

unsafe extern "C" fn inject<O: Opened>(ep: *mut fid_ep, buf: *const c_void, len: usize, dest: fi_addr_t) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(Kind::Message, dest, one(buf, len), core::ptr::null_mut());
        post::<O>(
            ep,
            SendCall {
                flags: Flags::Inject,
                ..call
            },
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
        let call = plain(Kind::Message, dest, one(buf, len), context);
        post::<O>(
            ep,
            SendCall {
                data: Some(data),
                ..call
            },
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
        let call = plain(Kind::Message, dest, one(buf, len), core::ptr::null_mut());
        post::<O>(
            ep,
            SendCall {
                data: Some(data),
                flags: Flags::Inject,
                ..call
            },
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
    unsafe { post::<O>(ep, wanted(Kind::Message, source, one(buf, len), context)) }
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
        try_post::<O>(
            ep,
            many(iov, count).map(|body| wanted(Kind::Message, source, body, context)),
        )
    }
}

unsafe extern "C" fn recvmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, recv_by_msg(msg, flags)) }
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
            SendCall {
                tag,
                ..plain(Kind::Tagged, dest, one(buf, len), context)
            },
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
        try_post::<O>(
            ep,
            many(iov, count).map(|body| SendCall {
                tag,
                ..plain(Kind::Tagged, dest, body, context)
            }),
        )
    }
}

unsafe extern "C" fn tsendmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, tsend_by_msg(msg, flags)) }
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
        let call = plain(Kind::Tagged, dest, one(buf, len), core::ptr::null_mut());
        post::<O>(
            ep,
            SendCall {
                tag,
                flags: Flags::Inject,
                ..call
            },
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
        let call = plain(Kind::Tagged, dest, one(buf, len), context);
        post::<O>(
            ep,
            SendCall {
                tag,
                data: Some(data),
                ..call
            },
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
        let call = plain(Kind::Tagged, dest, one(buf, len), core::ptr::null_mut());
        post::<O>(
            ep,
            SendCall {
                tag,
                data: Some(data),
                flags: Flags::Inject,
                ..call
            },
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
            RecvCall {
                tag,
                ignore,
                ..wanted(Kind::Tagged, source, one(buf, len), context)
            },
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
        try_post::<O>(
            ep,
            many(iov, count).map(|body| RecvCall {
                tag,
                ignore,
                ..wanted(Kind::Tagged, source, body, context)
            }),
        )
    }
}

unsafe extern "C" fn trecvmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_tagged, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, trecv_by_msg(msg, flags)) }
}
