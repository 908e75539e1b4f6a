//! fid_ep of a scalable endpoint, which itself moves nothing, and of its contexts, which are endpoints like others.

use super::{Object, av, endpoint, head, lacking, mr, status};
use crate::abi::no_ops::NO_OPS;
use crate::abi::types::*;
use crate::api::endpoint::Wire;
use crate::api::endpoint::scalable::{Direction, Scalable};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::Arc;

struct Over<T>(PhantomData<T>);

impl<T: Wire + 'static> Over<T> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<T>),
        bind: Some(bind::<T>),
        control: Some(control),
        ..NO_OPS
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
pub fn give<T: Wire + 'static>(whole: Arc<Scalable<T>>, context: *mut c_void) -> *mut fid_ep {
    let c = fid_ep {
        fid: head(FI_CLASS_SEP, context, const { &Over::<T>::FID }),
        ops: (&raw const *const { &Over::<T>::EP }).cast_mut(),
        cm: (&raw const *const { &Over::<T>::CM }).cast_mut(),
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
unsafe fn of<'a, T: Wire + 'static>(fid: *const fid) -> &'a Arc<Scalable<T>> {
    // SAFETY: by contract.
    unsafe { Object::<fid_ep, Arc<Scalable<T>>>::value(fid.cast()) }
}

unsafe extern "C" fn close<T: Wire + 'static>(fid: *mut fid) -> c_int {
    // SAFETY: only endpoints made here have this operation; closing ends their life unless they are in use.
    unsafe {
        let result = of::<T>(fid).close();
        if result.is_ok() {
            drop(Object::<fid_ep, Arc<Scalable<T>>>::take(fid.cast()));
        }
        status(result)
    }
}

unsafe extern "C" fn bind<T: Wire + 'static>(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours, and an object that tells its class and is of our making too.
    unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_AV => status(of::<T>(fid).bind_av(av::of(other))),
            FI_CLASS_MR => {
                let whole = of::<T>(fid);
                status(mr::bind_endpoint(other, whole.domain(), whole.number(), flags))
            }
            // Nothing is told to it, but programs bind one.
            FI_CLASS_EQ => FI_SUCCESS,
            _ => -FI_EINVAL,
        }
    }
}

/// Contexts are enabled one by one; programs enable the whole too.
unsafe extern "C" fn control(_: *mut fid, command: c_int, _arg: *mut c_void) -> c_int {
    if command as u32 == FI_ENABLE {
        FI_SUCCESS
    } else {
        -FI_ENOSYS
    }
}

unsafe extern "C" fn getname<T: Wire + 'static>(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the rest as the manual page says.
    unsafe { endpoint::tell_name(&of::<T>(fid).local_address(), addr, len) }
}

/// # Safety
/// A live scalable endpoint of this transport; `out` is a place for a pointer or NULL.
unsafe fn open_context<T: Wire + 'static>(
    whole: *mut fid_ep,
    direction: Direction,
    index: c_int,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    let (Ok(index), false) = (usize::try_from(index), out.is_null()) else {
        return -FI_EINVAL;
    };
    let class = match direction {
        Direction::Transmit => FI_CLASS_TX_CTX,
        Direction::Receive => FI_CLASS_RX_CTX,
    };
    // SAFETY: by contract.
    unsafe {
        let opened = of::<T>(whole.cast()).context(direction, index);
        status(opened.map(|opened| out.write(endpoint::give(opened, class, context))))
    }
}

/// A context has the attributes of the whole.
unsafe extern "C" fn tx_ctx<T: Wire + 'static>(
    whole: *mut fid_ep,
    index: c_int,
    _attr: *mut fi_tx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live endpoint of ours.
    unsafe { open_context::<T>(whole, Direction::Transmit, index, out, context) }
}

unsafe extern "C" fn rx_ctx<T: Wire + 'static>(
    whole: *mut fid_ep,
    index: c_int,
    _attr: *mut fi_rx_attr,
    out: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live endpoint of ours.
    unsafe { open_context::<T>(whole, Direction::Receive, index, out, context) }
}
