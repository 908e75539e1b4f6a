//! fid_eq, and the way of an address vector's events into one.

use super::{Object, cq, head, wait, wait_set};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::av::Events;
use crate::api::domain::Fabric;
use crate::api::eq::event::ErrorEvent;
use crate::api::eq::{Eq, EqAttr};
use crate::api::errno::{Errno, Result};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::copy_nonoverlapping;
use libc::ssize_t;
use std::sync::Arc;

static OPS: fi_ops_eq = fi_ops_eq {
    size: size_of::<fi_ops_eq>(),
    read: Some(read),
    readerr: Some(readerr),
    write: Some(write),
    sread: Some(sread),
    strerror: Some(strerror),
};

static EQ_OPS: fi_ops = fi_ops {
    close: Some(close),
    control: Some(control),
    ..lacking::FID
};

struct Opened {
    eq: Arc<Eq>,
    fabric: Arc<Fabric>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.fabric.users.release();
    }
}

/// # Safety
/// A live queue of ours.
unsafe fn opened<'a>(fid: *const fid) -> &'a Opened {
    // SAFETY: by contract.
    unsafe { Object::<fid_eq, Opened>::value(fid.cast()) }
}

/// # Safety
/// As `opened`.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Eq> {
    // SAFETY: by contract.
    unsafe { &opened(fid).eq }
}

/// # Safety
/// The arguments are as fi_eq_open of fi_eq(3) asks.
pub unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    out: *mut *mut fid_eq,
    context: *mut c_void,
) -> c_int {
    if attr.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live fabric of ours and its arguments, by the manual page.
    unsafe {
        let fabric = super::fabric::opened(fabric);
        let wait_set = match wait_set::named((*attr).wait_obj, (*attr).wait_set) {
            Ok(set) => set,
            Err(error) => return error.code(),
        };
        let attr = EqAttr {
            size: (*attr).size,
            flags: (*attr).flags,
            wait_obj: (*attr).wait_obj,
            wait_set,
        };
        match Eq::open(&attr) {
            Ok(eq) => {
                fabric.users.acquire();
                let c = fid_eq {
                    fid: head(FI_CLASS_EQ, context, &EQ_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(
                    c,
                    Opened {
                        eq,
                        fabric: fabric.clone(),
                    },
                ));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only queues made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_eq, Opened>::close(fid, |opened| opened.eq.close()) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live queue of ours; the command says what its argument is.
    unsafe {
        let eq = of(fid);
        wait::control(command, arg, || eq.handle(), || eq.wait_obj()).unwrap_or(-FI_ENOSYS)
    }
}

fn size_of_answer(result: Result<usize>) -> ssize_t {
    match result {
        Ok(size) => size as ssize_t,
        Err(error) => error.code() as ssize_t,
    }
}

/// Writes an event where the caller wants it.
///
/// # Safety
/// `number` is NULL or a place for a number, `buf` holds the bytes.
unsafe fn give(number: *mut u32, buf: *mut c_void, event: u32, bytes: &[u8]) {
    // SAFETY: by contract.
    unsafe {
        if !number.is_null() {
            number.write(event);
        }
        copy_nonoverlapping(bytes.as_ptr(), buf.cast::<u8>(), bytes.len());
    }
}

unsafe extern "C" fn read(eq: *mut fid_eq, event: *mut u32, buf: *mut c_void, len: usize, flags: u64) -> ssize_t {
    // SAFETY: a live queue of ours; the buffer holds `len` bytes.
    unsafe {
        let room = (!buf.is_null()).then_some(len);
        size_of_answer(of(eq.cast()).read(flags, room, |number, bytes| give(event, buf, number, bytes)))
    }
}

unsafe extern "C" fn sread(
    eq: *mut fid_eq,
    event: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> ssize_t {
    // SAFETY: as in `read`.
    unsafe {
        let room = (!buf.is_null()).then_some(len);
        size_of_answer(of(eq.cast()).sread(flags, room, timeout, |number, bytes| give(event, buf, number, bytes)))
    }
}

unsafe extern "C" fn readerr(eq: *mut fid_eq, buf: *mut fi_eq_err_entry, flags: u64) -> ssize_t {
    if buf.is_null() {
        return -FI_EINVAL as ssize_t;
    }
    // SAFETY: a live queue of ours and a whole entry, which never grew.
    unsafe {
        let opened = opened(eq.cast());
        let (err_data, err_data_size) = ((*buf).err_data, (*buf).err_data_size);
        let answer = |error: &ErrorEvent| {
            let answer = error.answer(opened.fabric.api_version, err_data, err_data_size);
            copy_nonoverlapping(error.err_data.as_ptr(), err_data.cast::<u8>(), answer.copy);
            buf.write(answer.entry);
        };
        size_of_answer(opened.eq.read_error(flags, answer))
    }
}

unsafe extern "C" fn write(eq: *mut fid_eq, event: u32, buf: *const c_void, len: usize, _flags: u64) -> ssize_t {
    // SAFETY: a live queue of ours; the buffer holds `len` bytes.
    unsafe {
        let bytes = if buf.is_null() {
            &[][..]
        } else {
            core::slice::from_raw_parts(buf.cast::<u8>(), len)
        };
        size_of_answer(of(eq.cast()).write(event, bytes))
    }
}

unsafe extern "C" fn strerror(
    eq: *mut fid_eq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: a live queue of ours; `buf` is NULL or holds `len` bytes.
    unsafe { cq::text(of(eq.cast()).strerror(prov_errno), buf, len) }
}

/// What an address vector tells, as events about its fid.
pub struct AvEvents {
    pub eq: Arc<Eq>,
    pub av: usize,
}

impl Events for AvEvents {
    fn complete(&self, context: usize, count: u64) {
        let _ = self.eq.post_entry(FI_AV_COMPLETE, self.av, context, count);
    }

    fn error(&self, context: usize, index: u64, Errno(err): Errno) {
        let event = ErrorEvent {
            fid: self.av,
            context,
            data: index,
            err,
            prov_errno: err,
            ..ErrorEvent::default()
        };
        let _ = self.eq.post_error(event);
    }

    fn attached(&self) {
        self.eq.refs().acquire();
    }

    fn detached(&self) {
        self.eq.refs().release();
    }
}
