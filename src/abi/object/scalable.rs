//! fid_ep of a scalable endpoint, which has no data calls of its own, and the calls that open its contexts.
//!
//! A context is an endpoint like any other (`endpoint`). What a scalable endpoint does is in `api::endpoint::scalable`.
//! Called by C.

use super::{Object, av, endpoint, eq, head, mr, status};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::abi::{info, info_read};
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::scalable::Scalable;
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

struct ScalableOpTables<T>(PhantomData<T>);

impl<T: EndpointTransport + 'static> ScalableOpTables<T> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<T>),
        bind: Some(bind::<T>),
        control: Some(control),
        ..lacking::FID
    };
    const EP: fi_ops_ep = fi_ops_ep {
        tx_ctx: Some(tx_ctx::<T>),
        rx_ctx: Some(rx_ctx::<T>),
        ..lacking::EP
    };
    const CM: fi_ops_cm = fi_ops_cm {
        getname: Some(getname::<T>),
        ..lacking::CM
    };
}

/// Gives a scalable endpoint to C.
pub fn give<T: EndpointTransport + 'static>(whole: Arc<Scalable<T>>, context: *mut c_void) -> *mut fid_ep {
    let c = fid_ep {
        fid: head(FI_CLASS_SEP, context, const { &ScalableOpTables::<T>::FID }),
        ops: (&raw const *const { &ScalableOpTables::<T>::EP }).cast_mut(),
        cm: (&raw const *const { &ScalableOpTables::<T>::CM }).cast_mut(),
        msg: (&raw const lacking::MSG).cast_mut(),
        rma: (&raw const lacking::RMA).cast_mut(),
        tagged: (&raw const lacking::TAGGED).cast_mut(),
        atomic: (&raw const lacking::ATOMIC).cast_mut(),
        collective: (&raw const lacking::COLLECTIVE).cast_mut(),
    };
    Object::give(c, whole)
}

/// # Safety
/// A live scalable endpoint of this transport.
unsafe fn of<'a, T: EndpointTransport + 'static>(fid: *const fid) -> &'a Arc<Scalable<T>> {
    // SAFETY: a live scalable endpoint of this transport has this behind its fid.
    unsafe { Object::<fid_ep, Arc<Scalable<T>>>::value(fid.cast()) }
}

unsafe extern "C" fn close<T: EndpointTransport + 'static>(fid: *mut fid) -> c_int {
    // SAFETY: only endpoints made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_ep, Arc<Scalable<T>>>::close(fid, |whole| whole.close()) }
}

unsafe extern "C" fn bind<T: EndpointTransport + 'static>(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours, and an object that tells its class and is of our making too.
    unsafe {
        let whole = of::<T>(fid);
        let checked = endpoint::check_bind(whole.domain(), other, flags);
        status(checked.and_then(|()| match (*other).fclass as u32 {
            FI_CLASS_AV => whole.bind_av(av::of(other)),
            FI_CLASS_MR => mr::bind_endpoint(other, whole.domain(), whole.number(), flags),
            FI_CLASS_EQ => {
                whole.bind_eq(eq::of(other));
                Ok(())
            }
            _ => Err(Errno(FI_EINVAL)),
        }))
    }
}

/// Contexts are enabled one by one, but programs enable the scalable endpoint too.
unsafe extern "C" fn control(_: *mut fid, command: c_int, _arg: *mut c_void) -> c_int {
    if command as u32 == FI_ENABLE {
        FI_SUCCESS
    } else {
        -FI_ENOSYS
    }
}

unsafe extern "C" fn getname<T: EndpointTransport + 'static>(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the rest as the manual page says.
    unsafe {
        let whole = of::<T>(fid);
        let format = whole.domain().addr_format;
        endpoint::tell_name(&T::told_address(whole.local_address(), format), addr, len)
    }
}

fn index_of(index: c_int) -> Result<usize> {
    usize::try_from(index).map_err(|_| Errno(FI_EINVAL))
}

unsafe extern "C" fn tx_ctx<T: EndpointTransport + 'static>(
    whole: *mut fid_ep,
    index: c_int,
    attr: *mut fi_tx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours and a place for a pointer; the attributes may be left out.
    unsafe {
        let asked = attr.as_ref().map(info_read::tx).unwrap_or_default();
        let opened = index_of(index).and_then(|index| of::<T>(whole.cast()).tx_context(index, &asked));
        status(opened.map(|(opened, assigned)| {
            if !attr.is_null() {
                attr.write(info::tx(&assigned));
            }
            out.write(endpoint::give(opened, FI_CLASS_TX_CTX, context));
        }))
    }
}

unsafe extern "C" fn rx_ctx<T: EndpointTransport + 'static>(
    whole: *mut fid_ep,
    index: c_int,
    attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: as above.
    unsafe {
        let asked = attr.as_ref().map(info_read::rx).unwrap_or_default();
        let opened = index_of(index).and_then(|index| of::<T>(whole.cast()).rx_context(index, &asked));
        status(opened.map(|(opened, assigned)| {
            if !attr.is_null() {
                attr.write(info::rx(&assigned));
            }
            out.write(endpoint::give(opened, FI_CLASS_RX_CTX, context));
        }))
    }
}
