//! The fi_rma op table of any endpoint that is `Rma`: nine C calls folded into one request.
//!
//! Opens iovecs and message structs, nothing more.

use super::posting::{Opened, elements, many, one, post, try_post};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::one_sided::RmaCall;
use crate::engine::op::{Access, RemoteIov, RemotePart};
use crate::util::user::UserIov;
use core::ffi::c_void;
use core::marker::PhantomData;
use libc::{iovec, ssize_t};

/// The table of one kind of endpoint.
pub struct Table<O>(PhantomData<O>);

impl<O: Opened> Table<O> {
    pub const RMA: fi_ops_rma = fi_ops_rma {
        size: size_of::<fi_ops_rma>(),
        read: Some(read::<O>),
        readv: Some(readv::<O>),
        readmsg: Some(readmsg::<O>),
        write: Some(write::<O>),
        writev: Some(writev::<O>),
        writemsg: Some(writemsg::<O>),
        inject: Some(inject::<O>),
        writedata: Some(writedata::<O>),
        injectdata: Some(injectdata::<O>),
    };
}

/// Where at the target, for the calls that name one piece: as long as the local side.
#[derive(Clone, Copy)]
struct At {
    addr: u64,
    key: u64,
}

/// An operation with what the calls have in common filled in.
#[inline(always)]
fn plain(access: Access, dest: u64, local: UserIov, at: At, context: *mut c_void) -> RmaCall {
    RmaCall {
        access,
        dest,
        local,
        remote: RemoteIov::one(RemotePart {
            addr: at.addr,
            len: local.len(),
            key: at.key,
        }),
        data: None,
        flags: Flags::Endpoint,
        context: context as usize,
    }
}

/// # Safety
/// `iov` has `count` pieces.
unsafe fn remote(iov: *const fi_rma_iov, count: usize) -> Result<RemoteIov> {
    // SAFETY: by contract.
    let parts = unsafe { elements(iov, count)? }.iter().map(|piece| RemotePart {
        addr: piece.addr,
        len: piece.len,
        key: piece.key,
    });
    RemoteIov::new(parts).ok_or(Errno(FI_EINVAL))
}

/// # Safety
/// As the manual page asks for.
pub(super) unsafe fn by_msg(access: Access, msg: *const fi_msg_rma, flags: u64) -> Result<RmaCall> {
    // SAFETY: by contract.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let remote = remote(msg.rma_iov, msg.rma_iov_count)?;
        // Of an operation on nothing the local side need not be filled in.
        let local = if remote.is_empty() && msg.rma_iov_count > 0 {
            UserIov::default()
        } else {
            many(msg.msg_iov, msg.iov_count)?
        };
        Ok(RmaCall {
            access,
            dest: msg.addr,
            local,
            remote,
            data: (access == Access::Write && flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data),
            flags: Flags::Call(flags),
            context: msg.context as usize,
        })
    }
}

// SAFETY of every shim below: C calls it with a live endpoint and with buffers that are the operation's until it ends;
// that is what the manual pages ask of a program.

unsafe extern "C" fn read<O: Opened>(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    src: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, plain(Access::Read, src, one(buf, len), At { addr, key }, context)) }
}

unsafe extern "C" fn readv<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    src: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        try_post::<O>(
            ep,
            many(iov, count).map(|local| plain(Access::Read, src, local, At { addr, key }, context)),
        )
    }
}

unsafe extern "C" fn readmsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, by_msg(Access::Read, msg, flags)) }
}

unsafe extern "C" fn write<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, plain(Access::Write, dest, one(buf, len), At { addr, key }, context)) }
}

unsafe extern "C" fn writev<O: Opened>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        try_post::<O>(
            ep,
            many(iov, count).map(|local| plain(Access::Write, dest, local, At { addr, key }, context)),
        )
    }
}

unsafe extern "C" fn writemsg<O: Opened>(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> ssize_t {
    // SAFETY: see above.
    unsafe { try_post::<O>(ep, by_msg(Access::Write, msg, flags)) }
}

/// The inject forms, whose context nobody sees.
///
/// # Safety
/// See above.
#[inline(always)]
unsafe fn injected(buf: *const c_void, len: usize, data: Option<u64>, dest: fi_addr_t, at: At) -> RmaCall {
    // SAFETY: by contract.
    let local = unsafe { one(buf, len) };
    RmaCall {
        data,
        flags: Flags::Inject,
        ..plain(Access::Write, dest, local, at, core::ptr::null_mut())
    }
}

unsafe extern "C" fn inject<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, injected(buf, len, None, dest, At { addr, key })) }
}

unsafe extern "C" fn writedata<O: Opened>(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    dest: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let call = plain(Access::Write, dest, one(buf, len), At { addr, key }, context);
        post::<O>(
            ep,
            RmaCall {
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
    addr: u64,
    key: u64,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { post::<O>(ep, injected(buf, len, Some(data), dest, At { addr, key })) }
}
