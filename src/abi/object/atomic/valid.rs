//! Which atomics there are: fi_atomicvalid and its siblings of an endpoint, and fi_query_atomic of a domain.

use crate::abi::object::endpoint::any;
use crate::abi::object::{domain, status};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::one_sided::AtomicKind;
use crate::engine::op::{AtomicOp, Form};
use crate::provider::direct::Direct;
use crate::provider::on_engine::OnEngine;
use core::ffi::c_int;

/// # Safety
/// `ep` is a live endpoint, `count` NULL or a place for a number.
unsafe fn tell_most(ep: *mut fid_ep, form: Form, datatype: fi_datatype, op: fi_op, count: *mut usize) -> c_int {
    // SAFETY: a live endpoint.
    let amos = unsafe { any(ep.cast()) }.lock_state().amos;
    let told = AtomicKind::new(form, datatype, op).and_then(|kind| {
        let most = most(&kind, amos)?;
        if !count.is_null() {
            // SAFETY: the caller's count is a place for a number.
            unsafe { count.write(most) };
        }
        Ok(())
    });
    status(told)
}

/// How many elements an operation may have. `amos`: all that a card does; None: the engine does all.
fn most(kind: &AtomicKind, amos: Option<&[AtomicOp]>) -> Result<usize> {
    match amos {
        None => Ok(kind.most()),
        Some(amos) if amos.contains(&kind.op) => Ok(1),
        Some(_) => Err(Errno(FI_EOPNOTSUPP)),
    }
}

pub(super) unsafe extern "C" fn writevalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: the manual page asks for a live endpoint, and NULL or a place for a number.
    unsafe { tell_most(ep, Form::Base, datatype, op, count) }
}

pub(super) unsafe extern "C" fn readwritevalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: as in `writevalid`.
    unsafe { tell_most(ep, Form::Fetch, datatype, op, count) }
}

pub(super) unsafe extern "C" fn compwritevalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: as in `writevalid`.
    unsafe { tell_most(ep, Form::Compare, datatype, op, count) }
}

/// fi_query_atomic: what the engine does, or the card of this domain in its place. Of tagged receives nobody but the
/// engine knows, so their buffers can be the target of any operation.
///
/// # Safety
/// A live domain of this provider; `attr` is NULL or a place for attributes.
pub unsafe extern "C" fn query<P: OnEngine>(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let amos = match unsafe { domain::opened(domain.cast()) }.shared::<P::Shared>() {
        Ok(shared) => P::amos(&shared),
        Err(error) => return error.code(),
    };
    let are_cards = !amos.is_empty() && flags & FI_TAGGED == 0;
    // SAFETY: forwarded.
    unsafe { tell(are_cards.then_some(amos), datatype, op, attr, flags) }
}

/// fi_query_atomic of a domain whose endpoints have no engine: what its card does, which is nothing to tagged receives.
///
/// # Safety
/// A live domain of this provider; `attr` is NULL or a place for attributes.
pub unsafe extern "C" fn query_card<P: Direct>(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    if flags & FI_TAGGED != 0 {
        return -(FI_EOPNOTSUPP as c_int);
    }
    // SAFETY: the caller's promise.
    match unsafe { domain::opened(domain.cast()) }.shared::<P::Shared>() {
        // SAFETY: forwarded.
        Ok(shared) => unsafe { tell(Some(P::amos(&shared)), datatype, op, attr, flags) },
        Err(error) => error.code(),
    }
}

/// # Safety
/// `attr` is NULL or a place for attributes.
unsafe fn tell(
    amos: Option<&[AtomicOp]>,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    const FORMS: u64 = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
    if flags & !(FORMS | FI_TAGGED) != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    let form = match flags & FORMS {
        0 => Form::Base,
        FI_FETCH_ATOMIC => Form::Fetch,
        FI_COMPARE_ATOMIC => Form::Compare,
        _ => return -FI_EINVAL,
    };
    if attr.is_null() {
        return -FI_EINVAL;
    }
    let told = AtomicKind::new(form, datatype, op).and_then(|kind| {
        let found = fi_atomic_attr {
            count: most(&kind, amos)?,
            size: kind.size,
        };
        // SAFETY: a place for attributes, by the manual page.
        unsafe { attr.write(found) };
        Ok(())
    });
    status(told)
}
