//! The fi_collective op table of any endpoint, and fi_query_collective: a dozen C calls folded into one request.
//!
//! Opens buffers and message structs, nothing more.

use super::endpoint::{Over, of};
use super::size_status;
use crate::abi::types::*;
use crate::api::collective::CollectiveCall;
use crate::api::collective::request::{Asked, query as look_up};
use crate::api::endpoint::Managed;
use crate::api::errno::{Errno, Result};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::ffi::{c_int, c_void};
use libc::ssize_t;

impl<V: Managed> Over<V> {
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

/// Pieces of so many elements.
///
/// # Safety
/// NULL or `count` pieces that are the operation's until it ends.
unsafe fn pieces(ioc: *const fi_ioc, count: usize, element: usize) -> Result<UserIov> {
    if count > IOV_LIMIT || (count > 0 && ioc.is_null()) {
        return Err(Errno(FI_EINVAL));
    }
    let mut parts = [UserBuf::default(); IOV_LIMIT];
    for (index, part) in parts.iter_mut().enumerate().take(count) {
        // SAFETY: by contract.
        unsafe {
            let piece = *ioc.add(index);
            let len = piece.count.checked_mul(element).ok_or(Errno(FI_EMSGSIZE))?;
            *part = UserBuf::new(piece.addr.cast(), len);
        }
    }
    UserIov::new(parts.into_iter().take(count)).ok_or(Errno(FI_EMSGSIZE))
}

/// # Safety
/// A live endpoint of this kind.
unsafe fn ask<V: Managed>(ep: *mut fid_ep, call: &CollectiveCall) -> ssize_t {
    // SAFETY: by contract.
    let endpoint = unsafe { of::<V>(ep.cast()) }.collectives();
    let endpoint = endpoint.ok_or(Errno(FI_ENOSYS));
    size_status(endpoint.and_then(|endpoint| endpoint.collective(call)))
}

/// A call with what most have filled in.
fn call(coll: fi_collective_op, coll_addr: fi_addr_t, flags: u64, context: *mut c_void) -> CollectiveCall {
    CollectiveCall {
        asked: Asked {
            coll,
            ..Asked::barrier()
        },
        coll_addr,
        count: Some(0),
        input: UserIov::default(),
        result: UserIov::default(),
        flags,
        context: context as usize,
    }
}

/// The data of a call.
///
/// # Safety
/// As `plain`.
unsafe fn with_data(
    call: CollectiveCall,
    (input, result): (*const c_void, *mut c_void),
    count: usize,
    asked: Asked,
) -> CollectiveCall {
    // SAFETY: by contract.
    unsafe {
        CollectiveCall {
            asked,
            count: Some(count),
            input: plain(input),
            result: plain(result),
            ..call
        }
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

unsafe extern "C" fn barrier<V: Managed>(ep: *mut fid_ep, coll_addr: fi_addr_t, context: *mut c_void) -> ssize_t {
    // SAFETY: see above.
    unsafe {
        let (flags, _) = of::<V>(ep.cast()).both_flags();
        ask::<V>(ep, &call(FI_BARRIER, coll_addr, flags, context))
    }
}

unsafe extern "C" fn barrier2<V: Managed>(
    ep: *mut fid_ep,
    coll_addr: fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> ssize_t {
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &call(FI_BARRIER, coll_addr, flags, context)) }
}

unsafe extern "C" fn broadcast<V: Managed>(
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
    let call = call(FI_BROADCAST, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (core::ptr::null(), buf), count, asked)) }
}

unsafe extern "C" fn alltoall<V: Managed>(
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
    let call = call(FI_ALLTOALL, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn allreduce<V: Managed>(
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
    let call = call(FI_ALLREDUCE, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn allgather<V: Managed>(
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
    let call = call(FI_ALLGATHER, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn reduce_scatter<V: Managed>(
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
    let call = call(FI_REDUCE_SCATTER, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn reduce<V: Managed>(
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
    let call = call(FI_REDUCE, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn scatter<V: Managed>(
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
    let call = call(FI_SCATTER, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

unsafe extern "C" fn gather<V: Managed>(
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
    let call = call(FI_GATHER, coll_addr, flags, context);
    // SAFETY: see above.
    unsafe { ask::<V>(ep, &with_data(call, (buf, result), count, asked)) }
}

/// Any of them, its buffers in pieces, which say how many elements there are.
unsafe extern "C" fn msg<V: Managed>(
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
/// As `pieces`.
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
    // SAFETY: by contract.
    let (own, result) = unsafe {
        (
            pieces(msg.msg_iov, msg.iov_count, element)?,
            pieces(resultv, result_count, element)?,
        )
    };
    let broadcast = asked.coll == FI_BROADCAST;
    Ok(CollectiveCall {
        asked,
        count: None,
        input: own,
        result: if broadcast { own } else { result },
        ..call(msg.coll, msg.coll_addr, flags, msg.context)
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
