//! fid_mr and the registration calls of a domain.

use super::{Object, head, status};
use crate::abi::no_ops::NO_OPS;
use crate::abi::types::*;
use crate::api::cntr::Cntr;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::api::mr::Region;
use crate::util::user::UserBuf;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use libc::iovec;
use std::sync::{Arc, Mutex, PoisonError};

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
    ..NO_OPS
};

/// What stands behind a fid_mr.
struct Registered {
    domain: Arc<Domain>,
    key: u64,
    /// What remote addresses count from.
    base: u64,
    /// Counters bound to it.
    counters: Mutex<Vec<Arc<Cntr>>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let counters = self.counters.get_mut().unwrap_or_else(PoisonError::into_inner);
        counters.iter().for_each(|cntr| cntr.refs().give());
        self.domain.regions.remove(self.key);
        self.domain.users.give();
    }
}

/// A registration as every form of the call has it.
struct Request {
    parts: Vec<UserBuf>,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    context: *mut c_void,
}

/// # Safety
/// `fid` is a live domain of ours, `mr` NULL or a place for a pointer.
unsafe fn register(fid: *mut fid, request: Result<Request>, mr: *mut *mut fid_mr) -> c_int {
    let Ok(request) = request else { return -FI_EINVAL };
    if mr.is_null() || request.flags & !(FI_RMA_EVENT | FI_RMA_PMEM | FI_MR_SINGLE_USE) != 0 {
        return if mr.is_null() {
            -FI_EINVAL
        } else {
            -(FI_EBADFLAGS as c_int)
        };
    }
    // SAFETY: by contract.
    let domain = unsafe { super::domain::opened(fid) };
    let first = request.parts.first().map_or(0, UserBuf::addr);
    let region = Region {
        parts: request.parts,
        access: request.access,
        base: request.offset,
    };
    match domain.regions.add(region, request.key) {
        Ok(key) => {
            domain.users.take();
            let c = fid_mr {
                fid: head(FI_CLASS_MR, request.context, &MR_OPS),
                mem_desc: null_mut(),
                key,
            };
            let registered = Registered {
                domain: domain.clone(),
                key,
                base: if domain.virtual_addresses { first as u64 } else { 0 },
                counters: Mutex::default(),
            };
            let given = Object::give(c, registered);
            // SAFETY: a place for a pointer, by contract.
            unsafe { mr.write(given) };
            domain.registered(given as usize, request.context as usize);
            FI_SUCCESS
        }
        Err(error) => error.code(),
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
        let parts = vec![UserBuf::new(buf.cast_mut().cast(), len)];
        register(
            fid,
            Ok(Request {
                parts,
                access,
                offset,
                key,
                flags,
                context,
            }),
            mr,
        )
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
        let parts = pieces(iov, count);
        register(
            fid,
            parts.map(|parts| Request {
                parts,
                access,
                offset,
                key,
                flags,
                context,
            }),
            mr,
        )
    }
}

unsafe extern "C" fn regattr(fid: *mut fid, attr: *const fi_mr_attr, flags: u64, mr: *mut *mut fid_mr) -> c_int {
    // SAFETY: as in `reg`; the fields read here are in every version of the attributes.
    unsafe {
        if attr.is_null() {
            return -FI_EINVAL;
        }
        if flags & FI_MR_DMABUF != 0 {
            log!(
                Warn,
                Mr,
                "FI_MR_DMABUF: there is no device memory here, register the host's"
            );
            return -FI_EOPNOTSUPP;
        }
        let parts = pieces((*attr).anonymous.mr_iov, (*attr).iov_count);
        let request = parts.map(|parts| Request {
            parts,
            access: (*attr).access,
            offset: (*attr).offset,
            key: (*attr).requested_key,
            flags,
            context: (*attr).context,
        });
        register(fid, request, mr)
    }
}

/// # Safety
/// `iov` has `count` pieces that stay until the region is closed.
unsafe fn pieces(iov: *const iovec, count: usize) -> Result<Vec<UserBuf>> {
    if iov.is_null() || count == 0 || count > crate::util::user::IOV_LIMIT {
        return Err(Errno(FI_EINVAL));
    }
    // SAFETY: by contract.
    let piece = |index| unsafe {
        let piece = *iov.add(index);
        UserBuf::new(piece.iov_base.cast(), piece.iov_len)
    };
    Ok((0..count).map(piece).collect())
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only regions made here have this operation; closing ends their life.
    drop(unsafe { Object::<fid_mr, Registered>::take(fid.cast()) });
    FI_SUCCESS
}

/// # Safety
/// A live region of ours.
unsafe fn of<'a>(fid: *const fid) -> &'a Registered {
    // SAFETY: by contract.
    unsafe { Object::<fid_mr, Registered>::value(fid.cast()) }
}

/// Counters and endpoints may be bound; without remote access there is nothing to tell them.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() || flags & !FI_REMOTE_WRITE != 0 {
        return -FI_EINVAL;
    }
    // SAFETY: a live region of ours, and an object that tells its class.
    unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_CNTR => {
                let cntr = super::cntr::of(other);
                cntr.refs().take();
                let mut counters = of(fid).counters.lock().unwrap_or_else(PoisonError::into_inner);
                counters.push(cntr.clone());
                FI_SUCCESS
            }
            FI_CLASS_EP => FI_SUCCESS,
            _ => -FI_EINVAL,
        }
    }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    match command as u32 {
        FI_ENABLE | FI_REFRESH => status(Ok(())),
        FI_GET_RAW_MR => {
            // SAFETY: a live region of ours; the command says what its argument is.
            unsafe {
                let region = of(fid);
                super::raw_key::get(region.key, region.base, arg)
            }
        }
        _ => -FI_ENOSYS,
    }
}
