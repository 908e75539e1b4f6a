//! The fi_collective op table of every endpoint, and fi_query_collective: eleven C calls, which make one request.
//!
//! Opens buffers and message structs, nothing more: what a call may ask for is checked by `api::collective`. `op_table`
//! says how a row reads.

use super::descriptors::{Given, note};
use super::endpoint::{OpTables, of};
use super::op_table::{c_type, op_table};
use super::posting::{NULL, Post, counted};
use super::size_status;
use crate::abi::types::*;
use crate::api::collective::CollectiveCall;
use crate::api::collective::request::{Asked, query as look_up};
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::util::user::{UserBuf, UserIov};
use core::ffi::{c_int, c_void};
use libc::ssize_t;

impl<V: EndpointOps> OpTables<V> {
    pub const COLLECTIVE: fi_ops_collective = op_table! { fi_ops_collective {
        broadcast (into, count, desc, coll_addr, root_addr, datatype, flags, context)
            = call(rooted(FI_BROADCAST, datatype, root_addr), coll_addr, flags, context).on(count, NULL, into);
        alltoall (buf, count, desc, result, result_desc, coll_addr, datatype, flags, context)
            = call(moving(FI_ALLTOALL, datatype), coll_addr, flags, context).on(count, buf, result);
        allreduce (buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context)
            = call(Asked { op, ..moving(FI_ALLREDUCE, datatype) }, coll_addr, flags, context).on(count, buf, result);
        allgather (buf, count, desc, result, result_desc, coll_addr, datatype, flags, context)
            = call(moving(FI_ALLGATHER, datatype), coll_addr, flags, context).on(count, buf, result);
        reduce_scatter (buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context)
            = call(Asked { op, ..moving(FI_REDUCE_SCATTER, datatype) }, coll_addr, flags, context)
                .on(count, buf, result);
        reduce (buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, op, flags, context)
            = call(Asked { op, ..rooted(FI_REDUCE, datatype, root_addr) }, coll_addr, flags, context)
                .on(count, buf, result);
        scatter (buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags, context)
            = call(rooted(FI_SCATTER, datatype, root_addr), coll_addr, flags, context).on(count, buf, result);
        gather (buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags, context)
            = call(rooted(FI_GATHER, datatype, root_addr), coll_addr, flags, context).on(count, buf, result);
        msg (msg_collective, result_ioc, result_descs, result_count, flags)
            = message(msg_collective, result_ioc, result_count, flags);
        barrier2 (coll_addr, flags, context)
            = call(Asked::barrier(), coll_addr, flags, context);
    } {
        barrier: Some(barrier::<V>),
    }};
}

/// The endpoint's own flags hold, as fi_barrier has none.
unsafe extern "C" fn barrier<V: EndpointOps>(ep: *mut fid_ep, coll_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
    // SAFETY: the manual page asks for a live endpoint.
    unsafe {
        let (flags, _) = of::<V>(ep.cast()).both_flags();
        call(Asked::barrier(), coll_addr, flags, context).post::<V>(ep)
    }
}

impl Post for CollectiveCall {
    unsafe fn post<V: EndpointOps>(self, ep: *mut fid_ep) -> ssize_t {
        // SAFETY: the caller passes a live endpoint of this kind.
        let endpoint = unsafe { of::<V>(ep.cast()) }.collectives();
        let endpoint = endpoint.ok_or(Errno(FI_ENOSYS));
        size_status(endpoint.and_then(|endpoint| endpoint.collective(&self)))
    }
}

// ---- the words of the rows ----

fn moving(coll: fi_collective_op, datatype: fi_datatype) -> Asked {
    Asked {
        coll,
        datatype,
        ..Asked::barrier()
    }
}

fn rooted(coll: fi_collective_op, datatype: fi_datatype, root_addr: fi_addr_t) -> Asked {
    Asked {
        root_addr,
        ..moving(coll, datatype)
    }
}

/// A call without data.
fn call(asked: Asked, coll_addr: fi_addr_t, flags: u64, context: *mut c_void) -> CollectiveCall {
    CollectiveCall {
        asked,
        coll_addr,
        count: Some(0),
        input: UserIov::default(),
        result: UserIov::default(),
        flags,
        context: context as usize,
    }
}

impl CollectiveCall {
    /// With its input and its result, of so many elements.
    ///
    /// # Safety
    /// For both buffers as `unmeasured`.
    unsafe fn on(self, count: usize, input: *const c_void, result: *mut c_void) -> CollectiveCall {
        // SAFETY: the caller lends both buffers to the operation.
        let (input, result) = unsafe { (unmeasured(input), unmeasured(result)) };
        CollectiveCall {
            count: Some(count),
            input,
            result,
            ..self
        }
    }
}

/// A buffer whose length the group's size says: cut to what is needed before it is used.
///
/// # Safety
/// As long as the operation needs, and the operation's until it ends.
unsafe fn unmeasured(buf: *const c_void) -> UserIov {
    // SAFETY: the caller lends the buffer, and nothing past what the operation needs is touched.
    UserIov::one(unsafe { UserBuf::new(buf.cast_mut().cast(), isize::MAX as usize) })
}

/// Any of them, its buffers in pieces, which say how many elements there are.
///
/// # Safety
/// `msg` is NULL or a message; for its array and the result's as `counted`.
unsafe fn message(
    msg: *const fi_msg_collective,
    result_ioc: *mut fi_ioc,
    result_count: usize,
    flags: u64,
) -> Result<CollectiveCall> {
    // SAFETY: the caller passes NULL or a message.
    let msg = unsafe { msg.as_ref() }.ok_or(Errno(FI_EINVAL))?;
    let asked = Asked {
        coll: msg.coll,
        datatype: msg.datatype,
        op: msg.op,
        root_addr: msg.root_addr,
    };
    let element = asked.kind()?.element;
    let bytes = |count: usize| count.checked_mul(element).ok_or(Errno(FI_EMSGSIZE));
    // SAFETY: the caller's arrays have as many pieces as they say.
    let (own, result) = unsafe {
        (
            counted(msg.msg_iov, msg.iov_count, bytes)?,
            counted(result_ioc, result_count, bytes)?,
        )
    };
    let broadcast = msg.coll == FI_BROADCAST;
    Ok(CollectiveCall {
        count: None,
        input: own,
        result: if broadcast { own } else { result },
        ..call(asked, msg.coll_addr, flags, msg.context)
    })
}

/// fi_query_collective: every domain of this library answers the same.
///
/// # Safety
/// As the manual page says of fi_query_collective.
pub unsafe extern "C" fn query(
    _domain: *mut fid_domain,
    coll: fi_collective_op,
    attr: *mut fi_collective_attr,
    _flags: u64,
) -> c_int {
    // SAFETY: NULL or an fi_collective_attr.
    let Some(attr) = (unsafe { attr.as_mut() }).filter(|attr| attr.mode == 0) else {
        return -FI_EINVAL;
    };
    let asked = Asked {
        op: attr.op,
        ..moving(coll, attr.datatype)
    };
    match look_up(&asked) {
        Ok(limits) => {
            attr.datatype_attr = fi_atomic_attr {
                count: limits.count,
                size: limits.size,
            };
            attr.max_members = limits.max_members;
            FI_SUCCESS
        }
        Err(error) => error.code(),
    }
}
