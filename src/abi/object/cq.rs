//! fid_cq.

use super::{Object, head, status, wait, wait_set};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::cq::{Cq, CqAttr, Entry, Format, Layout, error_size};
use crate::api::domain::Domain;
use crate::api::errno::Result;
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

struct Opened {
    cq: Arc<Cq>,
    domain: Arc<Domain>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.domain.users.release();
    }
}

/// # Safety
/// A live queue of ours.
unsafe fn opened<'a>(cq: *const fid_cq) -> &'a Opened {
    // SAFETY: by contract.
    unsafe { Object::value(cq) }
}

/// # Safety
/// As `opened`, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Cq> {
    // SAFETY: by contract.
    unsafe { &opened(fid.cast()).cq }
}

/// # Safety
/// As `of`.
pub unsafe fn domain_of<'a>(fid: *const fid) -> &'a Arc<Domain> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_cq, Opened>::value(fid.cast()).domain }
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
                domain.users.acquire();
                let c = fid_cq {
                    fid: head(FI_CLASS_CQ, context, &CQ_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(
                    c,
                    Opened {
                        cq,
                        domain: domain.clone(),
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
    unsafe { Object::<fid_cq, Opened>::close(fid, |opened| opened.cq.close()) }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live queue of ours; the command says what its argument is.
    unsafe {
        let cq = of(fid);
        wait::control(command, arg, || cq.handle(), || cq.wait_obj()).unwrap_or(-FI_ENOSYS)
    }
}

/// Where entries go, and where their sources do.
struct Places {
    entry: *mut c_void,
    source: *mut fi_addr_t,
}

impl Places {
    /// # Safety
    /// There is room for one entry of the format, and for one source unless that place is NULL.
    #[inline]
    unsafe fn put(&mut self, format: Format, entry: &Entry) {
        let entry = &by_words(entry);
        // SAFETY: by contract.
        unsafe {
            match format {
                Format::Context => self.put_one::<fi_cq_entry>(entry),
                Format::Msg => self.put_one::<fi_cq_msg_entry>(entry),
                Format::Data => self.put_one::<fi_cq_data_entry>(entry),
                Format::Tagged => self.put_one::<fi_cq_tagged_entry>(entry),
            }
            if !self.source.is_null() {
                self.source.write(entry.src);
                self.source = self.source.add(1);
            }
        }
    }

    /// # Safety
    /// As `put`.
    #[inline]
    unsafe fn put_one<L: Layout>(&mut self, entry: &Entry) {
        // SAFETY: by contract.
        unsafe {
            let place = self.entry.cast::<L>();
            place.write(L::of(entry));
            self.entry = place.add(1).cast();
        }
    }
}

/// A copy, read word by word. That is how it was written, mostly a moment ago; a processor that is to read two words at
/// once would have to wait until both had left for the cache.
#[inline(always)]
fn by_words(entry: &Entry) -> Entry {
    // SAFETY: the fields of a live entry.
    unsafe {
        Entry {
            context: (&raw const entry.context).read_volatile(),
            flags: (&raw const entry.flags).read_volatile(),
            len: (&raw const entry.len).read_volatile(),
            buf: (&raw const entry.buf).read_volatile(),
            data: (&raw const entry.data).read_volatile(),
            tag: (&raw const entry.tag).read_volatile(),
            src: (&raw const entry.src).read_volatile(),
        }
    }
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
        let cq = &opened(cq).cq;
        if buf.is_null() && count > 0 {
            return -FI_EINVAL as ssize_t;
        }
        let (format, mut places) = (cq.format(), Places { entry: buf, source });
        count_of(cq.read(count, |entry| places.put(format, entry)))
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
        let cq = &opened(cq).cq;
        if buf.is_null() && count > 0 {
            return -FI_EINVAL as ssize_t;
        }
        let (format, mut places) = (cq.format(), Places { entry: buf, source });
        count_of(cq.sread(count, cond as usize, timeout, |entry| places.put(format, entry)))
    }
}

unsafe extern "C" fn readerr(cq: *mut fid_cq, buf: *mut fi_cq_err_entry, _flags: u64) -> ssize_t {
    if buf.is_null() {
        return -FI_EINVAL as ssize_t;
    }
    // SAFETY: a live queue of ours; the entry is as large as the program's API version says, and no more is touched.
    unsafe {
        let opened = opened(cq);
        let api = opened.domain.api_version;
        let theirs = crate::abi::layout::prefix(buf, error_size(api));
        let result = opened.cq.read_error(|error| {
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
    status(unsafe { opened(cq) }.cq.signal())
}

unsafe extern "C" fn strerror(
    cq: *mut fid_cq,
    prov_errno: c_int,
    _err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: a live queue of ours; `buf` is NULL or holds `len` bytes.
    unsafe { text(opened(cq).cq.strerror(prov_errno), buf, len) }
}

/// A text that stays, and a copy of it where the caller wants one.
///
/// # Safety
/// `buf` is NULL or holds `len` bytes.
pub unsafe fn text(text: &'static core::ffi::CStr, buf: *mut c_char, len: usize) -> *const c_char {
    if !buf.is_null() && len > 0 {
        let fits = text.count_bytes().min(len - 1);
        // SAFETY: by contract.
        unsafe {
            copy_nonoverlapping(text.as_ptr(), buf, fits);
            *buf.add(fits) = 0;
        }
    }
    if text.is_empty() { null() } else { text.as_ptr() }
}
