//! fid_av_set: an ordered choice of a vector's addresses, which a collective group is made of.
//!
//! What a set does is in `api::av_set`. Called by C, and by `mc` when an endpoint joins.

use super::{Object, av, head, not_if, status};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::av_set::{AvSet, AvSetAttr};
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::slice;
use std::sync::Arc;

static OPS: fi_ops_av_set = fi_ops_av_set {
    size: size_of::<fi_ops_av_set>(),
    set_union: Some(union),
    intersect: Some(intersect),
    diff: Some(diff),
    insert: Some(insert),
    remove: Some(remove),
    addr: Some(addr),
};

static SET_OPS: fi_ops = fi_ops {
    close: Some(close),
    ..lacking::FID
};

/// # Safety
/// NULL or a live set of ours.
pub unsafe fn of<'a>(set: *const fid_av_set) -> Result<&'a Arc<AvSet>> {
    if set.is_null() {
        return Err(Errno(FI_EINVAL));
    }
    // SAFETY: a live set of ours has this behind its fid.
    Ok(unsafe { Object::value(set) })
}

/// # Safety
/// `attr` is NULL or an fi_av_set_attr.
unsafe fn wanted<'a>(attr: *const fi_av_set_attr) -> Result<AvSetAttr<'a>> {
    // SAFETY: fi_av_set's caller passes NULL or attributes; the key has as many bytes as they say.
    unsafe {
        let attr = attr.as_ref().ok_or(Errno(FI_EINVAL))?;
        let comm_key = match attr.comm_key_size {
            0 => &[],
            _ if attr.comm_key.is_null() => return Err(Errno(FI_EINVAL)),
            size => slice::from_raw_parts(attr.comm_key, size),
        };
        Ok(AvSetAttr {
            count: attr.count,
            start_addr: attr.start_addr,
            end_addr: attr.end_addr,
            stride: attr.stride,
            comm_key,
            flags: attr.flags,
        })
    }
}

/// # Safety
/// The arguments are as fi_av_set(3) asks.
pub unsafe extern "C" fn open(
    vector: *mut fid_av,
    attr: *mut fi_av_set_attr,
    out: *mut *mut fid_av_set,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live vector of ours and its arguments, by the manual page.
    unsafe {
        let locked = av::domain_of(vector.cast()).locked;
        match wanted(attr).and_then(|attr| AvSet::open(av::of(vector.cast()), &attr, locked)) {
            Ok(set) => {
                let c = fid_av_set {
                    fid: head(FI_CLASS_AV_SET, context, &SET_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(c, set));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only sets made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_av_set, Arc<AvSet>>::close(fid, |set| not_if(set.in_use())) }
}

/// # Safety
/// Both are NULL or live sets of ours.
unsafe fn both(dst: *mut fid_av_set, src: *const fid_av_set, work: impl FnOnce(&AvSet, &AvSet) -> Result<()>) -> c_int {
    // SAFETY: fi_av_set_union and its like are passed NULL or live sets of ours.
    unsafe { status(of(dst).and_then(|dst| work(dst, of(src)?))) }
}

// SAFETY of the calls below: C makes them with live sets of ours.

unsafe extern "C" fn union(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
    // SAFETY: see above.
    unsafe { both(dst, src, AvSet::union) }
}

unsafe extern "C" fn intersect(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
    // SAFETY: see above.
    unsafe { both(dst, src, AvSet::intersect) }
}

unsafe extern "C" fn diff(dst: *mut fid_av_set, src: *const fid_av_set) -> c_int {
    // SAFETY: see above.
    unsafe { both(dst, src, AvSet::diff) }
}

unsafe extern "C" fn insert(set: *mut fid_av_set, addr: fi_addr_t) -> c_int {
    // SAFETY: see above.
    unsafe { status(of(set).and_then(|set| set.insert(addr))) }
}

unsafe extern "C" fn remove(set: *mut fid_av_set, addr: fi_addr_t) -> c_int {
    // SAFETY: see above.
    unsafe { status(of(set).and_then(|set| set.remove(addr))) }
}

unsafe extern "C" fn addr(set: *mut fid_av_set, coll_addr: *mut fi_addr_t) -> c_int {
    if coll_addr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: see above; a place for an address.
    unsafe { status(of(set).map(|set| coll_addr.write(set.addr()))) }
}
