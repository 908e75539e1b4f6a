//! fid_mr: a region of registered memory, and the registration calls of a domain.
//!
//! Opens iovecs and attributes as the program's API version has them; what a region does is in `api::mr`. Called by C,
//! and by endpoints that are bound to a region.

use super::{Object, av, cntr, domain, head, raw_key, status};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::api::mr::{Mr, Request};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use libc::iovec;
use std::sync::Arc;

/// The API version since which fi_mr_attr has an authorization key.
const FIRST_WITH_KEYS: u32 = 1 << 16 | 5;

pub static OPS: fi_ops_mr = fi_ops_mr {
    size: size_of::<fi_ops_mr>(),
    reg: Some(reg),
    regv: Some(regv),
    regattr: Some(regattr),
};

static MR_OPS: fi_ops = fi_ops {
    close: Some(close),
    bind: Some(bind),
    control: Some(control),
    ..lacking::FID
};

/// # Safety
/// A live region of ours.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Mr> {
    // SAFETY: a live region of ours has this behind its fid.
    unsafe { Object::<fid_mr, _>::value(fid.cast()) }
}

/// # Safety
/// `fid` is a live domain of ours, `mr` NULL or a place for a pointer.
unsafe fn register(fid: *mut fid, request: Result<Request>, mr: *mut *mut fid_mr, context: *mut c_void) -> c_int {
    if mr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: fi_mr_reg's caller passes a live domain of ours.
    let domain = unsafe { domain::opened(fid) };
    match request.and_then(|request| Mr::register(domain, request)) {
        Ok(region) => {
            let c = fid_mr {
                fid: head(FI_CLASS_MR, context, &MR_OPS),
                mem_desc: null_mut(),
                key: region.key(),
            };
            let desc = region.desc();
            let given = Object::give(c, region);
            // SAFETY: the object just made, and fi_mr_reg's caller passes a place for a pointer.
            unsafe {
                // Where nobody looks at descriptors it may be anything but NULL, which a program may take for "none".
                (*given).mem_desc = desc.map_or(given.cast(), |desc| desc as *mut c_void);
                mr.write(given);
            }
            domain.registered(given as usize, context as usize);
            FI_SUCCESS
        }
        Err(error) => error.code(),
    }
}

/// The request of fi_mr_reg and fi_mr_regv, which fi_mr_regattr adds to.
fn plain(memory: UserIov, access: u64, offset: u64, key: u64, flags: u64) -> Request {
    Request {
        memory,
        access,
        offset,
        key,
        flags,
        whole: None,
    }
}

unsafe extern "C" fn reg(
    fid: *mut fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the program promises the memory until it closes the region.
    unsafe {
        if wants_key(fid) {
            return -FI_EOPNOTSUPP;
        }
        let memory = UserIov::one(UserBuf::new(buf.cast_mut().cast(), len));
        register(fid, Ok(plain(memory, access, offset, key, flags)), mr, context)
    }
}

unsafe extern "C" fn regv(
    fid: *mut fid,
    iov: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `reg`.
    unsafe {
        if wants_key(fid) {
            return -FI_EOPNOTSUPP;
        }
        let memory = pieces(iov, count);
        let request = memory.map(|memory| plain(memory, access, offset, key, flags));
        register(fid, request, mr, context)
    }
}

unsafe extern "C" fn regattr(fid: *mut fid, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int {
    if attr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: as in `reg`.
    unsafe {
        if flags & FI_MR_DMABUF != 0 {
            log!(
                by domain::opened(fid).provider;
                Warn,
                Mr,
                "FI_MR_DMABUF: there is no device memory here, register the host's"
            );
            return -FI_EOPNOTSUPP;
        }
        let domain = domain::opened(fid);
        let request = check_key(attr, domain).and_then(|()| request(attr, flags, domain.api_version));
        register(fid, request, mr, (*attr).context)
    }
}

/// Whether the attributes have an authorization key if and only if the domain uses them, and then one of an address
/// vector of this domain. Elsewhere a key is an error, as no peer would be kept away by it.
///
/// # Safety
/// Attributes as in the domain's version of the API.
unsafe fn check_key(attr: *const fi_mr_attr, domain: &Arc<Domain>) -> Result<()> {
    // SAFETY: fi_mr_regattr's caller passes attributes of its API version, whose key names a live vector.
    let good = unsafe {
        let (size, key) = match domain.api_version {
            ..FIRST_WITH_KEYS => (0, null()),
            _ => (
                (*attr).auth_key_size,
                (*attr).auth_key.cast_const().cast::<fi_mr_auth_key>(),
            ),
        };
        if domain.av.auth_key_size.is_none() {
            size == 0
        } else if size != size_of::<fi_mr_auth_key>() || key.is_null() {
            false
        } else {
            let fi_mr_auth_key { av, src_addr } = key.read_unaligned();
            let vector = av.cast::<fid>();
            !vector.is_null()
                && (*vector).fclass as u32 == FI_CLASS_AV
                && Arc::ptr_eq(av::domain_of(vector), domain)
                && av::of(vector).lookup_auth_key(src_addr, &mut []).is_ok()
        }
    };
    if good { Ok(()) } else { Err(Errno(FI_EINVAL)) }
}

/// Whether the domain uses authorization keys: then fi_mr_reg and fi_mr_regv fail, as they cannot pass one.
///
/// # Safety
/// A live domain of ours.
unsafe fn wants_key(fid: *mut fid) -> bool {
    // SAFETY: the caller passes a live domain of ours.
    unsafe { domain::opened(fid) }.av.auth_key_size.is_some()
}

/// Reads no field that the program's API version does not have, for it may be uninitialized. Interface and device are
/// not read, as no provider here offers FI_HMEM, and neither is the page size, which makes no difference.
///
/// # Safety
/// Attributes as in that version, and memory that the program promises until it closes the region.
unsafe fn request(attr: *const fi_mr_attr, flags: u64, version: u32) -> Result<Request> {
    let since = |major: u32, minor: u32| version >= (major << 16 | minor);
    // SAFETY: fi_mr_regattr's caller passes attributes of its API version; memory and base region stay until the region
    // is closed.
    unsafe {
        let memory = pieces((*attr).anonymous.mr_iov, (*attr).iov_count)?;
        let whole = if since(2, 0) { (*attr).base_mr } else { null() };
        Ok(Request {
            whole: (!whole.is_null()).then(|| of(whole.cast()).clone()),
            ..plain(memory, (*attr).access, (*attr).offset, (*attr).requested_key, flags)
        })
    }
}

/// # Safety
/// `iov` has `count` pieces that stay until the region is closed.
unsafe fn pieces(iov: *const iovec, count: usize) -> Result<UserIov> {
    if iov.is_null() || count == 0 || count > IOV_LIMIT {
        return Err(Errno(FI_EINVAL));
    }
    // SAFETY: the array has `count` pieces, whose memory stays until the region is closed.
    let piece = |index| unsafe {
        let piece = *iov.add(index);
        UserBuf::new(piece.iov_base.cast(), piece.iov_len)
    };
    UserIov::new((0..count).map(piece)).ok_or(Errno(FI_EINVAL))
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only regions made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_mr, Arc<Mr>>::close(fid, |mr| mr.close()) }
}

unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live region of ours, and an object that tells its class and is of our making too.
    unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_CNTR if !Arc::ptr_eq(cntr::domain_of(other), of(fid).domain()) => -FI_EINVAL,
            FI_CLASS_CNTR => status(of(fid).bind_counter(cntr::of(other), flags)),
            // The endpoint's own op table knows its type, so its bind does the work, with `bind_endpoint`.
            FI_CLASS_EP | FI_CLASS_SEP | FI_CLASS_RX_CTX => match (*other).ops.as_ref().and_then(|ops| ops.bind) {
                Some(bind) => bind(other, fid, flags),
                None => -FI_EINVAL,
            },
            _ => -FI_EINVAL,
        }
    }
}

/// The endpoint's half of `bind`: its domain, and the number that the region knows it by.
///
/// # Safety
/// A live region of ours.
pub unsafe fn bind_endpoint(
    region: *const fid,
    domain: &Arc<crate::api::domain::Domain>,
    number: u64,
    flags: u64,
) -> Result<()> {
    // SAFETY: the caller passes a live region of ours.
    let region = unsafe { of(region) };
    if flags != 0 {
        return Err(Errno(FI_EBADFLAGS as c_int));
    }
    if !Arc::ptr_eq(domain, region.domain()) {
        return Err(Errno(FI_EINVAL));
    }
    region.bind_endpoint(number)
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live region of ours; the command says what its argument is.
    unsafe {
        match command as u32 {
            FI_ENABLE => status(of(fid).enable()),
            FI_REFRESH if arg.is_null() => status(of(fid).refresh(&UserIov::default())),
            FI_REFRESH => status(refresh(of(fid), arg.cast())),
            FI_GET_RAW_MR => raw_key::get(of(fid).raw_key(), of(fid).base(), arg),
            _ => -FI_ENOSYS,
        }
    }
}

/// # Safety
/// As fi_mr_refresh passes it: only flags and pieces are set.
unsafe fn refresh(mr: &Mr, modify: *const fi_mr_modify) -> Result<()> {
    // SAFETY: fi_mr_refresh passes flags and pieces, and nothing else is looked at.
    unsafe {
        if (*modify).flags != 0 {
            return Err(Errno(FI_EBADFLAGS as c_int));
        }
        let (iov, count) = ((*modify).attr.anonymous.mr_iov, (*modify).attr.iov_count);
        if count == 0 {
            return Ok(());
        }
        mr.refresh(&pieces(iov, count)?)
    }
}
