//! fid_fabric of a provider of ours.

use super::{Object, head, status};
use crate::abi::info_read;
use crate::abi::layout::CURRENT;
use crate::abi::text;
use crate::abi::types::*;
use crate::abi::{built_in, lacking};
use crate::api::domain::{Fabric, unused};
use crate::api::errno::Errno;
use crate::api::instances;
use crate::api::log::Speaker;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

pub static OPS: fi_ops_fabric = fi_ops_fabric {
    domain: Some(domain),
    domain2: Some(domain2),
    eq_open: Some(super::eq::open),
    passive_ep: Some(passive_ep),
    wait_open: Some(super::wait_set::open),
    trywait: Some(trywait),
    ..lacking::FABRIC
};

static FABRIC_OPS: fi_ops = fi_ops {
    close: Some(close),
    ..lacking::FID
};

/// # Safety
/// `attr` is an fi_fabric_attr, `fabric` a place for a pointer.
pub unsafe fn open(
    speaker: Speaker,
    attr: *const fi_fabric_attr,
    fabric: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller passes an fi_fabric_attr, whose names are NULL or C strings, and a place for a pointer.
    unsafe {
        let api_version = (*attr).api_version;
        let (provider, name) = (text::borrow((*attr).prov_name), text::borrow((*attr).name));
        let c = fid_fabric {
            fid: head(FI_CLASS_FABRIC, context, &FABRIC_OPS),
            ops: (&raw const OPS).cast_mut(),
            api_version,
        };
        let given = Object::give(c, Fabric::new(speaker, api_version));
        instances::fabric_opened(given as usize, &provider.unwrap_or_default(), &name.unwrap_or_default());
        fabric.write(given);
    }
    FI_SUCCESS
}

/// # Safety
/// A live fabric of ours.
pub unsafe fn opened<'a>(fabric: *const fid_fabric) -> &'a Arc<Fabric> {
    // SAFETY: the caller's fid is of a live fabric of ours.
    unsafe { Object::value(fabric) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only fabrics made here have this operation; closing ends their life unless they are in use.
    unsafe {
        Object::<fid_fabric, Arc<Fabric>>::close(fid, |fabric| {
            unused(&fabric.users)?;
            instances::closed(fid as usize);
            Ok(())
        })
    }
}

unsafe extern "C" fn domain(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    out: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a program hands in an info of fi_getinfo's, which has today's size.
    unsafe { super::domain::open(fabric, &info_read::read(info, &CURRENT), out, context) }
}

unsafe extern "C" fn domain2(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    out: *mut *mut fid_domain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    // SAFETY: as above.
    unsafe { domain(fabric, info, out, context) }
}

unsafe extern "C" fn passive_ep(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    out: *mut *mut fid_pep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live fabric of ours.
    let provider = unsafe { opened(fabric) }.provider;
    match built_in::find(provider).and_then(|built_in| built_in.passive_ep) {
        // SAFETY: the fabric is this provider's; the rest as the manual page says.
        Some(open) => unsafe { open(fabric, info, out, context) },
        None => -FI_ENOSYS,
    }
}

unsafe extern "C" fn trywait(_: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    let Ok(count) = usize::try_from(count) else {
        return -FI_EINVAL;
    };
    if fids.is_null() && count > 0 {
        return -FI_EINVAL;
    }
    // SAFETY: `count` live objects of ours, by the manual page.
    let each = |index| unsafe {
        let fid = *fids.add(index);
        match (*fid).fclass as u32 {
            FI_CLASS_CQ => super::cq::of(fid).trywait(),
            FI_CLASS_CNTR => super::cntr::of(fid).trywait(),
            FI_CLASS_EQ => super::eq::of(fid).trywait(),
            FI_CLASS_WAIT => super::wait_set::of(fid).trywait(),
            _ => Err(Errno(FI_EINVAL)),
        }
    };
    status((0..count).try_for_each(each))
}
