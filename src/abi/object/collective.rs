//! The fi_collective op table of any endpoint, and fi_query_collective: a dozen C calls folded into one request.
//!
//! Opens buffers and message structs, nothing more.

use super::endpoint::{Over, of};
use super::posting::counted;
use super::size_status;
use crate::abi::types::*;
use crate::api::collective::CollectiveCall;
use crate::api::collective::request::{Asked, query as look_up};
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::util::user::{UserBuf, UserIov};
use core::ffi::{c_int, c_void};
use libc::ssize_t;

impl<V: EndpointOps> Over<V> {
    pub const COLLECTIVE: fi_ops_collective = fi_ops_collective {
        size: size_of::<fi_ops_collective>(),
        barrier: Some(barrier::<V>),
        broadcast: Some(broadcast::<V>),
        alltoall: Some(alltoall::<V>),
        allreduce: Some(allreduce::<V>),
        allgather: Some(allgather::<V>),
        reduce_scatter: Some(reduce_scatter::<V>),
        reduce: Some(reduce::<V>),
        scatter: Some(scatter::<V>),
        gather: Some(gather::<V>),
        msg: Some(msg::<V>),
        barrier2: Some(barrier2::<V>),
    };
}

/// A buffer whose length the group's size says: cut to what is needed before it is used.
///
/// # Safety
/// As long as the operation needs, and the operation's until it ends.
unsafe fn plain(buf: *const c_void) -> UserIov {
    // SAFETY: by contract.
    UserIov::one(unsafe { UserBuf::new(buf.cast_mut().cast(), isize::MAX as usize) })
}

/// # Safety
/// A live endpoint of this kind.
unsafe fn ask<V: EndpointOps>(ep: *mut fid_ep, call: &CollectiveCall) -> ssize_t {
    // SAFETY: by contract.
    let endpoint = unsafe { of::<V>(ep.cast()) }.collectives();
    let endpoint = endpoint.ok_or(Errno(FI_ENOSYS));
    size_status(endpoint.and_then(|endpoint| endpoint.collective(call)))
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

/// A call with its input and its result, of so many elements.
///
/// # Safety
/// A live endpoint of this kind, and buffers as for `plain`.
unsafe fn run<V: EndpointOps>(
    ep: *mut fid_ep,
    asked: Asked,
    (input, result): (*const c_void, *mut c_void),
    count: usize,
    coll_addr: fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: by contract.
    unsafe {
        let call = CollectiveCall {
            count: Some(count),
            input: plain(input),
            result: plain(result),
            ..call(asked, coll_addr, flags, context)
        };
        ask::<V>(ep, &call)
    }
}

fn moving(coll: fi_collective_op, datatype: fi_datatype) -> Asked {
    Asked {
        coll,
        datatype,
        ..Asked::barrier()
    }
}

// SAFETY of every shim below: C calls it with a live endpoint and with buffers that are the operation's until it ends and
// as long as it needs; that is what the manual page asks of a program.

unsafe extern "C" fn barrier<V: EndpointOps>(ep: *mut fid_ep, coll_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let (flags, _) = of::<V>(ep.cast()).both_flags();
        ask::<V>(ep, &call(Asked::barrier(), coll_addr, flags, context))
    }
}

unsafe extern "C" fn barrier2<V: EndpointOps>(
    ep: *mut fid_ep,
    coll_addr: fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &call(Asked::barrier(), coll_addr, flags, context)) }
}

unsafe extern "C" fn broadcast<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *mut c_void,
    count: usize,
    _desc: *mut c_void,
    coll_addr: fi_addr_t,
    root_addr: fi_addr_t,
    datatype: fi_datatype,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        root_addr,
        ..moving(FI_BROADCAST, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (core::ptr::null(), buf), count, coll_addr, flags, context) }
}

unsafe extern "C" fn alltoall<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    datatype: fi_datatype,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = moving(FI_ALLTOALL, datatype);
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn allreduce<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    datatype: fi_datatype,
    op: fi_op,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        op,
        ..moving(FI_ALLREDUCE, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn allgather<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    datatype: fi_datatype,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = moving(FI_ALLGATHER, datatype);
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn reduce_scatter<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    datatype: fi_datatype,
    op: fi_op,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        op,
        ..moving(FI_REDUCE_SCATTER, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn reduce<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    root_addr: fi_addr_t,
    datatype: fi_datatype,
    op: fi_op,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        op,
        root_addr,
        ..moving(FI_REDUCE, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn scatter<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    root_addr: fi_addr_t,
    datatype: fi_datatype,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        root_addr,
        ..moving(FI_SCATTER, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

unsafe extern "C" fn gather<V: EndpointOps>(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    coll_addr: fi_addr_t,
    root_addr: fi_addr_t,
    datatype: fi_datatype,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    let asked = Asked {
        root_addr,
        ..moving(FI_GATHER, datatype)
    };
    // SAFETY: see above.
    unsafe { run::<V>(ep, asked, (buf, result), count, coll_addr, flags, context) }
}

/// Any of them, its buffers in pieces, which say how many elements there are.
unsafe extern "C" fn msg<V: EndpointOps>(
    ep: *mut fid_ep,
    msg: *const fi_msg_collective,
    resultv: *mut fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let Some(msg) = msg.as_ref() else {
            return size_status(Err(Errno(FI_EINVAL)));
        };
        match message(msg, resultv, result_count, flags) {
            Ok(call) => ask::<V>(ep, &call),
            Err(error) => size_status(Err(error)),
        }
    }
}

/// # Safety
/// As `counted`, for both arrays.
unsafe fn message(
    msg: &fi_msg_collective,
    resultv: *mut fi_ioc,
    result_count: usize,
    flags: u64,
) -> Result<CollectiveCall> {
    let asked = Asked {
        coll: msg.coll,
        datatype: msg.datatype,
        op: msg.op,
        root_addr: msg.root_addr,
    };
    let element = asked.kind()?.element;
    let bytes = |count: usize| count.checked_mul(element).ok_or(Errno(FI_EMSGSIZE));
    // SAFETY: by contract.
    let (own, result) = unsafe {
        (
            counted(msg.msg_iov, msg.iov_count, bytes)?,
            counted(resultv, result_count, bytes)?,
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

/// What a domain of any provider of ours offers.
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
