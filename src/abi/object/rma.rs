//! The fi_rma op table of every endpoint: nine C calls, which make one request.
//!
//! Opens iovecs and message structs, nothing more: what a call may ask for is checked by `api::endpoint`. `op_table`
//! says how a row reads. Deferred work opens its message structs here too.

use super::descriptors::{Given, note};
use super::endpoint::OpTables;
use super::op_table::{c_type, op_table};
use super::posting::{NULL, Post, elements, many, one};
use crate::abi::types::*;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Flags;
use crate::api::one_sided::RmaCall;
use crate::engine::op::{Access, RemoteIov, RemotePart};
use crate::util::user::UserIov;
use core::ffi::c_void;
use libc::ssize_t;

impl<V: EndpointOps> OpTables<V> {
    pub const RMA: fi_ops_rma = op_table! { fi_ops_rma {
        read       (into, len, desc, source, addr, key, context)
            = at(addr, key).read(source, one(into, len), context);
        readv      (iov, descs, count, source, addr, key, context)
            = many(iov, count).map(|local| at(addr, key).read(source, local, context));
        readmsg    (msg_rma, flags)
            = by_msg(Access::Read, msg_rma, flags);
        write      (buf, len, desc, dest, addr, key, context)
            = at(addr, key).write(dest, one(buf, len), context);
        writev     (iov, descs, count, dest, addr, key, context)
            = many(iov, count).map(|local| at(addr, key).write(dest, local, context));
        writemsg   (msg_rma, flags)
            = by_msg(Access::Write, msg_rma, flags);
        inject     (buf, len, dest, addr, key)
            = at(addr, key).write(dest, one(buf, len), NULL).inject();
        writedata  (buf, len, desc, data, dest, addr, key, context)
            = at(addr, key).write(dest, one(buf, len), context).data(data);
        injectdata (buf, len, data, dest, addr, key)
            = at(addr, key).write(dest, one(buf, len), NULL).data(data).inject();
    }};
}

// ---- the words of the rows ----

/// Where at the target, for the calls that name one piece: as long as the local side.
#[derive(Clone, Copy)]
struct At {
    addr: u64,
    key: u64,
}

#[inline(always)]
fn at(addr: u64, key: u64) -> At {
    At { addr, key }
}

impl At {
    #[inline(always)]
    fn read(self, source: fi_addr_t, local: UserIov, context: *mut c_void) -> RmaCall {
        self.call(Access::Read, source, local, context)
    }

    #[inline(always)]
    fn write(self, dest: fi_addr_t, local: UserIov, context: *mut c_void) -> RmaCall {
        self.call(Access::Write, dest, local, context)
    }

    #[inline(always)]
    fn call(self, access: Access, dest: fi_addr_t, local: UserIov, context: *mut c_void) -> RmaCall {
        RmaCall {
            access,
            dest,
            local,
            remote: RemoteIov::one(RemotePart {
                addr: self.addr,
                len: local.len(),
                key: self.key,
            }),
            data: None,
            flags: Flags::Endpoint,
            context: context as usize,
        }
    }
}

impl RmaCall {
    #[inline(always)]
    fn data(self, data: u64) -> RmaCall {
        RmaCall {
            data: Some(data),
            ..self
        }
    }

    #[inline(always)]
    fn inject(self) -> RmaCall {
        RmaCall {
            flags: Flags::Inject,
            ..self
        }
    }
}

// ---- the calls by message structs, which deferred work has too ----

/// # Safety
/// `iov` has `count` pieces.
unsafe fn remote(iov: *const fi_rma_iov, count: usize) -> Result<RemoteIov> {
    // SAFETY: the caller's array has as many pieces as it says.
    let parts = unsafe { elements(iov, count)? }.iter().map(|piece| RemotePart {
        addr: piece.addr,
        len: piece.len,
        key: piece.key,
    });
    RemoteIov::new(parts).ok_or(Errno(FI_EINVAL))
}

/// # Safety
/// `msg` is NULL or a message, whose buffers are the operation's until it has ended.
pub(super) unsafe fn by_msg(access: Access, msg: *const fi_msg_rma, flags: u64) -> Result<RmaCall> {
    // SAFETY: the caller passes NULL or a message, whose pieces on both sides are as many as it says.
    unsafe {
        let msg = msg.as_ref().ok_or(Errno(FI_EINVAL))?;
        let remote = remote(msg.rma_iov, msg.rma_iov_count)?;
        // An operation on no bytes: a program need not fill in the local side, so it is not looked at.
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
