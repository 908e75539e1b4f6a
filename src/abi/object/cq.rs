//! fid_cq: a completion queue, and its entries in the format that the program chose.
//!
//! Opened of a domain (`domain`). Knows the C entries; what a queue does is in `api::cq`. Called by C.

use super::{Child, Object, head, status, wait, wait_set};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::cq::{Cq, CqAttr, error_size};
use crate::api::domain::Domain;
use crate::api::errno::Result;
use crate::util::user_array::UserArray;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::{copy_nonoverlapping, null};
use libc::ssize_t;
use std::sync::Arc;

static OPS: fi_ops_cq = fi_ops_cq {
    size: size_of::<fi_ops_cq>(),
    read: Some(read),
    readfrom: Some(readfrom),
    readerr: Some(readerr),
    sread: Some(sread),
    sreadfrom: Some(sreadfrom),
    signal: Some(signal),
    strerror: Some(strerror),
};

static CQ_OPS: fi_ops = fi_ops {
    close: Some(close),
    control: Some(control),
    ..lacking::FID
};

type OpenCq = Child<Arc<Cq>, Domain>;

/// # Safety
/// A live queue of ours.
unsafe fn opened<'a>(cq: *const fid_cq) -> &'a OpenCq {
    // SAFETY: a live queue of ours has this behind its fid.
    unsafe { Object::value(cq) }
}

/// # Safety
/// As `opened`, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Cq> {
    // SAFETY: a live queue of ours has this behind its fid.
    unsafe { &opened(fid.cast()).value }
}

/// # Safety
/// As `of`.
pub unsafe fn domain_of<'a>(fid: *const fid) -> &'a Arc<Domain> {
    // SAFETY: a live queue of ours has this behind its fid.
    unsafe { &Object::<fid_cq, OpenCq>::value(fid.cast()).parent }
}

/// # Safety
/// The arguments are as fi_cq_open of fi_cq(3) asks.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    out: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    if attr.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live domain of ours and its arguments, by the manual page.
    unsafe {
        let domain = super::domain::opened(domain.cast());
        let wait_set = match wait_set::named((*attr).wait_obj, (*attr).wait_set) {
            Ok(set) => set,
            Err(error) => return error.code(),
        };
        let opened = Cq::open(&CqAttr {
            size: (*attr).size,
            flags: (*attr).flags,
            format: (*attr).format,
            wait_obj: (*attr).wait_obj,
            wait_cond: (*attr).wait_cond,
            wait_set,
            managed: true,
            locked: domain.locked,
        });
        match opened {
            Ok(cq) => {
                let c = fid_cq {
                    fid: head(FI_CLASS_CQ, context, &CQ_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(c, Child::new(cq, domain)));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only queues made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_cq, OpenCq>::close(fid, |opened| opened.value.close()) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live queue of ours; the command says what its argument is.
    unsafe {
        let cq = of(fid);
        wait::control(command, arg, || cq.handle(), || cq.wait_obj()).unwrap_or(-FI_ENOSYS)
    }
}

/// Where the caller wants its entries, and their sources unless that is NULL; None: nowhere.
///
/// # Safety
/// Until the call returns there is room for `count` of both.
#[inline]
unsafe fn array(cq: &Cq, buf: *mut c_void, count: usize, source: *mut fi_addr_t) -> Option<UserArray> {
    if buf.is_null() && count > 0 {
        return None;
    }
    // SAFETY: forwarded.
    Some(unsafe { UserArray::new(buf.cast(), cq.format().words(), source, count) })
}

fn count_of(result: Result<usize>) -> ssize_t {
    match result {
        Ok(count) => count as ssize_t,
        Err(error) => error.code() as ssize_t,
    }
}

unsafe extern "C" fn read(cq: *mut fid_cq, buf: *mut c_void, count: usize) -> ssize_t {
    // SAFETY: forwarded.
    unsafe { readfrom(cq, buf, count, core::ptr::null_mut()) }
}

#[inline]
unsafe extern "C" fn readfrom(cq: *mut fid_cq, buf: *mut c_void, count: usize, source: *mut fi_addr_t) -> ssize_t {
    // SAFETY: a live queue of ours; the buffers hold `count` entries, by the manual page.
    unsafe {
        let cq = &opened(cq).value;
        match array(cq, buf, count, source) {
            Some(array) => count_of(cq.read(array)),
            None => -FI_EINVAL as ssize_t,
        }
    }
}

unsafe extern "C" fn sread(
    cq: *mut fid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    timeout: c_int,
) -> ssize_t {
    // SAFETY: forwarded.
    unsafe { sreadfrom(cq, buf, count, core::ptr::null_mut(), cond, timeout) }
}

unsafe extern "C" fn sreadfrom(
    cq: *mut fid_cq,
    buf: *mut c_void,
    count: usize,
    source: *mut fi_addr_t,
    cond: *const c_void,
    timeout: c_int,
) -> ssize_t {
    // SAFETY: as in `readfrom`; the condition, if the queue has one, is a pointer used as a number.
    unsafe {
        let cq = &opened(cq).value;
        match array(cq, buf, count, source) {
            Some(array) => count_of(cq.sread(array, cond as usize, timeout)),
            None => -FI_EINVAL as ssize_t,
        }
    }
}

unsafe extern "C" fn readerr(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, _flags: u64) -> ssize_t {
    if buf.is_null() {
        return -FI_EINVAL as ssize_t;
    }
    // SAFETY: a live queue of ours; the entry is as large as the program's API version says, and no more is touched.
    unsafe {
        let opened = opened(cq);
        let api = opened.parent.api_version;
        let theirs = crate::abi::layout::prefix(buf, error_size(api));
        let result = opened.value.read_error(|error| {
            let answer = error.answer(api, theirs.err_data, theirs.err_data_size);
            copy_nonoverlapping(error.err_data.as_ptr(), theirs.err_data.cast::<u8>(), answer.copy);
            copy_nonoverlapping((&raw const answer.entry).cast::<u8>(), buf.cast::<u8>(), answer.size);
            1
        });
        count_of(result)
    }
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    // SAFETY: a live queue of ours.
    status(unsafe { opened(cq) }.value.signal())
}

unsafe extern "C" fn strerror(
    cq: *mut fid_cq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: a live queue of ours; `buf` is NULL or holds `len` bytes.
    unsafe { text(opened(cq).value.strerror(prov_errno), buf, len) }
}

/// The answer of a strerror call: a text that stays, and a copy of it if the caller has room for one.
///
/// # Safety
/// `buf` is NULL or holds `len` bytes.
pub unsafe fn text(text: &'static core::ffi::CStr, buf: *mut c_char, len: usize) -> *const c_char {
    if !buf.is_null() && len > 0 {
        let fits = text.count_bytes().min(len - 1);
        // SAFETY: fi_cq_strerror's caller passes `len` bytes.
        unsafe {
            copy_nonoverlapping(text.as_ptr(), buf, fits);
            *buf.add(fits) = 0;
        }
    }
    if text.is_empty() { null() } else { text.as_ptr() }
}
