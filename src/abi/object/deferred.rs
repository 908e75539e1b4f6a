//! FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK and FI_TRIGGER: C's descriptions of deferred work become that of `api`.
//!
//! All that a description says is copied; its address remains the name that FI_CANCEL_WORK takes. Called by `domain`
//! and `posting`.

use super::atomic::{self, vector};
use super::descriptors::{Buffers, Given, note};
use super::posting::Request;
use super::{cntr, endpoint, messaging, rma, size_status, status};
use crate::abi::types::*;
use crate::api::cntr::Cntr;
use crate::api::deferred::work::{Call, Change};
use crate::api::deferred::{self, Terms};
use crate::api::domain::Domain;
use crate::api::endpoint::EndpointOps;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::NotBegun;
use crate::engine::op::{Access, Form};
use core::ffi::{c_int, c_void};
use libc::ssize_t;
use std::sync::Arc;

// ---- the domain's side ----

/// # Safety
/// The argument is that of the command.
pub unsafe fn control(domain: &Arc<Domain>, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: fi_control's caller passes the argument that the command has.
    unsafe {
        match command as u32 {
            FI_FLUSH_WORK => status(flush(domain, arg.cast())),
            _ if arg.is_null() => -FI_EINVAL,
            FI_CANCEL_WORK => status(domain.deferred.cancel(arg.addr())),
            _ => queue(domain, arg.cast()),
        }
    }
}

/// FI_FLUSH_WORK: drops all work, or what waits for the counter whose fid is given.
///
/// # Safety
/// NULL or a live object.
unsafe fn flush(domain: &Arc<Domain>, of: *const fid) -> Result<()> {
    // SAFETY: the caller passes a live object, which `counter` looks at.
    let cntr = unsafe {
        if of.is_null() {
            None
        } else {
            Some(counter(domain, of.cast())?)
        }
    };
    domain.deferred.flush(cntr);
    Ok(())
}

/// The counter that C names, if it is one of this domain.
///
/// # Safety
/// NULL or a live object.
unsafe fn counter<'a>(domain: &Arc<Domain>, named: *const fid_cntr) -> Result<&'a Arc<Cntr>> {
    // SAFETY: NULL or a live object, which tells its class by its fid.
    unsafe {
        if named.is_null() || (*named).fid.fclass != FI_CLASS_CNTR as usize {
            return Err(Errno(FI_EINVAL));
        }
        let theirs = cntr::domain_of(named.cast());
        if !Arc::ptr_eq(theirs, domain) {
            log!(by domain.provider; Warn, Domain, "deferred work: a counter is of another domain");
            return Err(Errno(FI_EINVAL));
        }
        Ok(cntr::of(named.cast()))
    }
}

/// # Safety
/// A description of work, and what it names is alive.
unsafe fn terms<'a>(domain: &Arc<Domain>, work: &fi_deferred_work) -> Result<Terms<'a>> {
    // SAFETY: FI_QUEUE_WORK's caller passes a description whose counters are alive.
    unsafe {
        Ok(Terms {
            trigger: counter(domain, work.triggering_cntr)?,
            threshold: work.threshold,
            completion: match work.completion_cntr.is_null() {
                true => None,
                false => Some(counter(domain, work.completion_cntr)?),
            },
            name: (&raw const *work).addr(),
        })
    }
}

/// # Safety
/// As `terms`.
unsafe fn queue(domain: &Arc<Domain>, work: *const fi_deferred_work) -> c_int {
    // SAFETY: FI_QUEUE_WORK's caller passes a description; whatever its type, the description of an operation is a
    // pointer.
    unsafe {
        let change = match (*work).op_type {
            FI_OP_CNTR_SET => Change::Set,
            FI_OP_CNTR_ADD => Change::Add,
            FI_OP_RECV..=FI_OP_COMPARE_ATOMIC => return ask_endpoint(domain, work),
            _ => return -FI_ENOSYS,
        };
        let Some(op) = (*work).op.cntr.as_ref() else {
            return -FI_EINVAL;
        };
        status(terms(domain, &*work).and_then(|terms| {
            let cntr = counter(domain, op.cntr)?;
            deferred::queue_count(domain, cntr, change(op.value), &terms)
        }))
    }
}

/// # Safety
/// As `terms`.
unsafe fn ask_endpoint(domain: &Arc<Domain>, work: *const fi_deferred_work) -> c_int {
    // SAFETY: all descriptions of operations begin with the endpoint, which is alive and tells its class by its fid.
    unsafe {
        let Some(op) = (*work).op.msg.as_ref() else {
            return -FI_EINVAL;
        };
        if op.ep.is_null() {
            return -FI_EINVAL;
        }
        let fid = &raw const (*op.ep).fid;
        let class = (*fid).fclass as u32;
        if !matches!(
            class,
            FI_CLASS_EP | FI_CLASS_TX_CTX | FI_CLASS_RX_CTX | FI_CLASS_SRX_CTX
        ) {
            return -FI_EINVAL;
        }
        // The endpoint checks counters against its own domain; this makes sure that it is the domain called.
        if let Err(error) = counter(domain, (*work).triggering_cntr) {
            return error.code();
        }
        queue_on(endpoint::any(fid), fid, &*work)
    }
}

// ---- the endpoint's side ----

/// # Safety
/// As `terms`; `fid` is that of the endpoint.
unsafe fn queue_on(endpoint: &dyn EndpointOps, fid: *const fid, work: &fi_deferred_work) -> c_int {
    // SAFETY: FI_QUEUE_WORK's caller passes a description, and what it names is alive.
    unsafe {
        let result = operation(work, fid).and_then(|call| {
            let terms = terms(endpoint.domain(), work)?;
            // Now, as the arrays of descriptors are the program's again when this returns.
            if endpoint.shows_descriptors() {
                given(work).lend(endpoint.domain())?;
            }
            deferred::queue_operation(endpoint, call, &terms)
        });
        status(result)
    }
}

/// The operation that a description is of.
///
/// # Safety
/// As `terms`; `fid` is that of the endpoint.
unsafe fn operation(work: &fi_deferred_work, fid: *const fid) -> Result<Call> {
    // SAFETY: the type says which description it is, and all of them begin with the endpoint.
    unsafe {
        match work.op.msg.as_ref() {
            Some(op) if core::ptr::eq(op.ep.cast(), fid) => {}
            _ => return Err(Errno(FI_EINVAL)),
        }
        let op = &work.op;
        match work.op_type {
            FI_OP_SEND => {
                messaging::send_by_msg(&(*op.msg).msg, (*op.msg).flags).map(|(call, body)| Call::Send(call, body))
            }
            FI_OP_RECV => {
                messaging::recv_by_msg(&(*op.msg).msg, (*op.msg).flags).map(|(call, body)| Call::Recv(call, body))
            }
            FI_OP_TSEND => messaging::tsend_by_msg(&(*op.tagged).msg, (*op.tagged).flags)
                .map(|(call, body)| Call::Send(call, body)),
            FI_OP_TRECV => messaging::trecv_by_msg(&(*op.tagged).msg, (*op.tagged).flags)
                .map(|(call, body)| Call::Recv(call, body)),
            FI_OP_READ => rma::by_msg(Access::Read, &(*op.rma).msg, (*op.rma).flags).map(Call::Rma),
            FI_OP_WRITE => rma::by_msg(Access::Write, &(*op.rma).msg, (*op.rma).flags).map(Call::Rma),
            FI_OP_ATOMIC => atomic_call(Form::Base, &(*op.atomic).msg, None, None, (*op.atomic).flags),
            FI_OP_FETCH_ATOMIC => {
                let op = &*op.fetch_atomic;
                atomic_call(Form::Fetch, &op.msg, None, Some(&op.fetch), op.flags)
            }
            FI_OP_COMPARE_ATOMIC => {
                let op = &*op.compare_atomic;
                atomic_call(Form::Compare, &op.msg, Some(&op.compare), Some(&op.fetch), op.flags)
            }
            _ => Err(Errno(FI_ENOSYS)),
        }
    }
}

/// The buffers and descriptors of an operation.
///
/// # Safety
/// As `terms`; `operation` has found the description to be good.
unsafe fn given(work: &fi_deferred_work) -> Given {
    let (mut given, op) = (Given::NONE, &work.op);
    // SAFETY: the type says which description it is.
    unsafe {
        match work.op_type {
            FI_OP_SEND | FI_OP_RECV => note!(of_msg, given, (&raw const (*op.msg).msg)),
            FI_OP_TSEND | FI_OP_TRECV => note!(of_msg, given, (&raw const (*op.tagged).msg)),
            FI_OP_READ | FI_OP_WRITE => note!(of_msg, given, (&raw const (*op.rma).msg)),
            FI_OP_ATOMIC => note!(of_msg, given, (&raw const (*op.atomic).msg)),
            FI_OP_FETCH_ATOMIC => {
                note!(of_msg, given, (&raw const (*op.fetch_atomic).msg));
                given.result = result_of(&(*op.fetch_atomic).fetch);
            }
            FI_OP_COMPARE_ATOMIC => {
                let op = &*op.compare_atomic;
                note!(of_msg, given, (&raw const op.msg));
                given.result = result_of(&op.fetch);
                given.compare = Buffers {
                    array: op.compare.msg_iov.cast(),
                    count: op.compare.iov_count,
                    descs: op.compare.desc,
                    ..Buffers::NONE
                };
            }
            _ => {}
        }
    }
    given
}

fn result_of(fetch: &fi_msg_fetch) -> Buffers {
    Buffers {
        array: fetch.msg_iov.cast_const().cast(),
        count: fetch.iov_count,
        descs: fetch.desc,
        ..Buffers::NONE
    }
}

/// # Safety
/// As `terms`.
unsafe fn atomic_call(
    form: Form,
    msg: *const fi_msg_atomic,
    compare: Option<&fi_msg_compare>,
    fetch: Option<&fi_msg_fetch>,
    flags: u64,
) -> Result<Call> {
    let compare = compare.map_or(atomic::NONE, |found| vector(found.msg_iov, found.iov_count));
    let result = fetch.map_or(atomic::NONE, |found| vector(found.msg_iov, found.iov_count));
    // SAFETY: the description's message and arrays have as many pieces as they say.
    let call = unsafe { atomic::by_msg(form, msg, compare, result, flags) };
    call.map(|call| Call::Atomic(Box::new(call)))
}

// ---- operations with FI_TRIGGER ----

/// What C is told of an operation that was not begun. One with FI_TRIGGER is queued until its counter has come so far.
///
/// # Safety
/// With FI_TRIGGER the operation's context is NULL or a struct fi_triggered_context.
#[cold]
pub unsafe fn not_begun(endpoint: &dyn EndpointOps, why: NotBegun, request: &mut Option<impl Request>) -> ssize_t {
    if let NotBegun::Refused(error) = why {
        return error.code() as ssize_t;
    }
    // Taken out of an Option, so that the request is put into memory on this path only (see `util::apart`).
    let queued = request.take().map(|request| {
        // SAFETY: the same contract.
        unsafe { queue_triggered(endpoint, &request.keep()) }
    });
    size_status(queued.unwrap_or(Ok(())))
}

/// # Safety
/// As `not_begun`.
unsafe fn queue_triggered(endpoint: &dyn EndpointOps, call: &Call) -> Result<()> {
    let context = call.context() as *const fi_triggered_context;
    // SAFETY: a context of FI_TRIGGER; the larger fi_triggered_context2 begins alike, and the type of event says what
    // follows.
    unsafe {
        if context.is_null() {
            return Err(Errno(FI_EINVAL));
        }
        let threshold = match (*context).event_type {
            FI_TRIGGER_THRESHOLD => (*context).trigger.threshold,
            FI_TRIGGER_XPU => return Err(Errno(FI_ENOSYS)),
            _ => return Err(Errno(FI_EINVAL)),
        };
        let cntr = counter(endpoint.domain(), threshold.cntr)?;
        deferred::trigger(endpoint, call, cntr, threshold.threshold as u64)
    }
}
