//! fid_poll: a poll set of a domain, which queues and counters are put into.

use super::{Object, cntr, cq, head, status};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::{Domain, unused};
use crate::api::errno::{Errno, Result};
use crate::api::poll::PollSet;
use crate::api::wait::Waitable;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::sync::Arc;

static OPS: fi_ops_poll = fi_ops_poll {
    size: size_of::<fi_ops_poll>(),
    poll: Some(poll),
    poll_add: Some(add),
    poll_del: Some(del),
};

static POLL_OPS: fi_ops = fi_ops {
    close: Some(close),
    ..lacking::FID
};

struct Opened {
    set: Arc<PollSet>,
    domain: Arc<Domain>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.domain.users.release();
    }
}

/// # Safety
/// A live poll set of ours.
unsafe fn of<'a>(set: *const fid_poll) -> &'a Arc<PollSet> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_poll, Opened>::value(set).set }
}

/// # Safety
/// The arguments are as fi_poll_open of fi_poll(3) asks.
pub unsafe extern "C" fn open(domain: *mut fid_domain, attr: *mut fi_poll_attr, out: *mut *mut fid_poll) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours and its arguments, by the manual page; no attributes mean no flags.
    unsafe {
        let domain = super::domain::opened(domain.cast());
        match PollSet::open(attr.as_ref().map_or(0, |attr| attr.flags)) {
            Ok(set) => {
                domain.users.acquire();
                let c = fid_poll {
                    fid: head(FI_CLASS_POLL, null_mut(), &POLL_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                let domain = domain.clone();
                out.write(Object::give(c, Opened { set, domain }));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only poll sets made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_poll, Opened>::close(fid, |_| unused(of(fid.cast()).refs())) }
}

/// What can be a member: a queue or counter, and the context it was opened with.
///
/// # Safety
/// `fid` is NULL or a live object of ours.
unsafe fn member(fid: *const fid, flags: u64) -> Result<(Arc<dyn Waitable>, usize)> {
    if fid.is_null() {
        return Err(Errno(FI_EINVAL));
    }
    if flags != 0 {
        return Err(Errno(FI_EBADFLAGS as c_int));
    }
    // SAFETY: by contract; a fid tells its class.
    unsafe {
        let object: Arc<dyn Waitable> = match (*fid).fclass as u32 {
            FI_CLASS_CQ => cq::of(fid).clone(),
            FI_CLASS_CNTR => cntr::of(fid).clone(),
            _ => return Err(Errno(FI_EINVAL)),
        };
        Ok((object, (*fid).context as usize))
    }
}

unsafe extern "C" fn add(set: *mut fid_poll, fid: *mut fid, flags: u64) -> c_int {
    // SAFETY: a live poll set, and an object of ours.
    unsafe { status(member(fid, flags).map(|(object, context)| of(set).add(&object, context))) }
}

unsafe extern "C" fn del(set: *mut fid_poll, fid: *mut fid, flags: u64) -> c_int {
    // SAFETY: as above.
    unsafe { status(member(fid, flags).map(|(object, _)| of(set).remove(&object))) }
}

unsafe extern "C" fn poll(set: *mut fid_poll, contexts: *mut *mut c_void, count: c_int) -> c_int {
    let room = usize::try_from(count).unwrap_or(0);
    if contexts.is_null() && room > 0 {
        return -FI_EINVAL;
    }
    // SAFETY: a live poll set of ours; room for `count` pointers, which are written as the numbers they are.
    unsafe {
        let places = if room == 0 {
            &mut []
        } else {
            core::slice::from_raw_parts_mut(contexts.cast::<usize>(), room)
        };
        c_int::try_from(of(set).poll(places)).unwrap_or(c_int::MAX)
    }
}
