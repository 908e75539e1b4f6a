//! fid_ep of an endpoint of ours, whatever its kind and transport, and of its aliases.
//!
//! All have the same operations: what they do not share is behind `EndpointOps`.

use super::messaging::Tables;
use super::posting::Opened;
use super::{Object, atomic, av, cntr, cq, deferred, eq, head, mc, mr, rma, size_status, srx, status, stx};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::EndpointOps;
use crate::api::endpoint::alias::Alias;
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::copy_nonoverlapping;
use libc::ssize_t;
use std::sync::Arc;

/// The longest address that may be given, as in every format of ours.
const ADDRESS_MAX: usize = 256;

/// The op tables of a kind of endpoint.
pub struct Over<V>(PhantomData<V>);

impl<V: EndpointOps> Opened for Over<V> {
    type Value = V;
    #[inline(always)]
    unsafe fn open<'a>(ep: *mut fid_ep) -> &'a V {
        // SAFETY: by contract.
        unsafe { Object::<fid_ep, V>::value(ep) }
    }
}

impl<V: EndpointOps> Over<V> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<V>),
        bind: Some(bind::<V>),
        control: Some(control::<V>),
        ..lacking::FID
    };
    const EP: fi_ops_ep = fi_ops_ep {
        cancel: Some(cancel::<V>),
        getopt: Some(getopt::<V>),
        setopt: Some(setopt::<V>),
        rx_size_left: Some(rx_size_left::<V>),
        tx_size_left: Some(tx_size_left::<V>),
        ..lacking::EP
    };
    const CM: fi_ops_cm = fi_ops_cm {
        setname: Some(setname::<V>),
        getname: Some(getname::<V>),
        join: Some(mc::join::<V>),
        ..lacking::CM
    };
}

/// Gives an endpoint to C, under the class it has there.
pub fn give<V: EndpointOps>(endpoint: V, class: u32, context: *mut c_void) -> *mut fid_ep {
    let c = fid_ep {
        fid: head(class, context, const { &Over::<V>::FID }),
        ops: (&raw const *const { &Over::<V>::EP }).cast_mut(),
        cm: (&raw const *const { &Over::<V>::CM }).cast_mut(),
        msg: (&raw const *const { &Tables::<Over<V>>::MSG }).cast_mut(),
        rma: (&raw const *const { &rma::Table::<Over<V>>::RMA }).cast_mut(),
        tagged: (&raw const *const { &Tables::<Over<V>>::TAGGED }).cast_mut(),
        atomic: (&raw const *const { &atomic::Table::<Over<V>>::ATOMIC }).cast_mut(),
        collective: (&raw const *const { &Over::<V>::COLLECTIVE }).cast_mut(),
    };
    Object::give(c, endpoint)
}

/// # Safety
/// A live endpoint of this kind.
pub unsafe fn of<'a, V: EndpointOps>(fid: *const fid) -> &'a V {
    // SAFETY: by contract.
    unsafe { Object::<fid_ep, V>::value(fid.cast()) }
}

unsafe extern "C" fn close<V: EndpointOps>(fid: *mut fid) -> c_int {
    // SAFETY: only objects made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_ep, V>::close(fid, V::close) }
}

/// FI_ALIAS: an alias may have aliases of its own.
///
/// # Safety
/// A live object of this kind and its argument.
unsafe fn open_alias<V: EndpointOps>(fid: *mut fid, arg: *const fi_alias) -> c_int {
    // SAFETY: by contract.
    unsafe {
        if arg.is_null() || (*arg).fid.is_null() {
            return -FI_EINVAL;
        }
        // Endpoints are bound to these, and take what they are bound to for the context itself.
        if (*fid).fclass == FI_CLASS_SRX_CTX as usize {
            return -FI_EOPNOTSUPP;
        }
        match Alias::open(of::<V>(fid), (*arg).flags) {
            Ok(alias) => {
                (*arg)
                    .fid
                    .write(give(alias, (*fid).fclass as u32, (*fid).context).cast());
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

/// Whether an object may be bound at all, with these flags, to what belongs to this domain.
///
/// # Safety
/// A live object of ours.
pub unsafe fn check_bind(domain: &Arc<Domain>, other: *const fid, flags: u64) -> Result<()> {
    // SAFETY: by contract; a fid tells its class.
    let (theirs, may_have_flags) = unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_AV => (Some(av::domain_of(other)), false),
            FI_CLASS_CQ => (Some(cq::domain_of(other)), true),
            FI_CLASS_CNTR => (Some(cntr::domain_of(other)), true),
            FI_CLASS_STX_CTX => (Some(&stx::of(other).domain), false),
            _ => (None, false),
        }
    };
    if flags != 0 && !may_have_flags {
        return Err(Errno(FI_EBADFLAGS as c_int));
    }
    if theirs.is_some_and(|theirs| !Arc::ptr_eq(theirs, domain)) {
        log!(by domain.provider; Warn, EpCtrl, "fi_ep_bind: the object is of another domain");
        return Err(Errno(FI_EINVAL));
    }
    Ok(())
}

unsafe extern "C" fn bind<V: EndpointOps>(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours, and an object that tells its class and is of our making too.
    unsafe {
        let endpoint = of::<V>(fid);
        if (*other).fclass as u32 == FI_CLASS_MR {
            return status(mr::bind_endpoint(other, endpoint.domain(), endpoint.number(), flags));
        }
        let result = check_bind(endpoint.domain(), other, flags);
        let result = result.and_then(|()| match (*other).fclass as u32 {
            FI_CLASS_AV => endpoint.bind_av(av::of(other)),
            FI_CLASS_CQ => endpoint.bind_cq(cq::of(other), flags),
            FI_CLASS_CNTR => endpoint.bind_cntr(cntr::of(other), flags),
            FI_CLASS_STX_CTX => endpoint.bind_stx(stx::of(other)),
            FI_CLASS_SRX_CTX => srx::of::<V::Transport>(other)
                .ok_or(Errno(FI_EINVAL))
                .and_then(|srx| endpoint.bind_srx(srx)),
            FI_CLASS_EQ => {
                endpoint.bind_eq(eq::of(other));
                Ok(())
            }
            _ => Err(Errno(FI_EINVAL)),
        });
        status(result)
    }
}

unsafe extern "C" fn control<V: EndpointOps>(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live endpoint of ours; the command says what its argument is.
    unsafe {
        match command as u32 {
            FI_ENABLE => status(of::<V>(fid).enable()),
            FI_GETOPSFLAG | FI_SETOPSFLAG if arg.is_null() => -FI_EINVAL,
            FI_GETOPSFLAG => {
                let flags = arg.cast::<u64>();
                status(of::<V>(fid).op_flags(*flags).map(|found| flags.write(found)))
            }
            FI_SETOPSFLAG => status(of::<V>(fid).set_op_flags(*arg.cast::<u64>())),
            FI_ALIAS => open_alias::<V>(fid, arg.cast()),
            FI_QUEUE_WORK => deferred::queue_on(of::<V>(fid), fid, arg.cast()),
            _ => -FI_ENOSYS,
        }
    }
}

unsafe extern "C" fn cancel<V: EndpointOps>(fid: fid_t, context: *mut c_void) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    let endpoint = unsafe { of::<V>(fid) };
    let context = context as usize;
    let canceled = endpoint.cancel(context);
    size_status(canceled.or_else(|_| crate::api::deferred::cancel(endpoint, context)))
}

unsafe extern "C" fn getname<V: EndpointOps>(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the rest as the manual page says.
    unsafe { tell_name(&of::<V>(fid).local_address(), addr, len) }
}

/// # Safety
/// `addr` is NULL or holds as many bytes as `len` says.
pub unsafe fn tell_name(name: &[u8], addr: *mut c_void, len: *mut usize) -> c_int {
    if len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: by contract.
    unsafe {
        let room = if addr.is_null() { 0 } else { *len };
        copy_nonoverlapping(name.as_ptr(), addr.cast::<u8>(), room.min(name.len()));
        *len = name.len();
        if room < name.len() {
            -(FI_ETOOSMALL as c_int)
        } else {
            FI_SUCCESS
        }
    }
}

unsafe extern "C" fn setname<V: EndpointOps>(fid: fid_t, addr: *mut c_void, len: usize) -> c_int {
    if addr.is_null() || len > ADDRESS_MAX {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; `addr` holds `len` bytes, and the address ends at a zero if there is one.
    unsafe {
        let bytes = core::slice::from_raw_parts(addr.cast::<u8>(), len);
        let address = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        status(of::<V>(fid).set_address(address))
    }
}

fn size_left(left: Result<usize>) -> ssize_t {
    match left {
        Ok(left) => ssize_t::try_from(left).unwrap_or(ssize_t::MAX),
        Err(error) => error.code() as ssize_t,
    }
}

unsafe extern "C" fn rx_size_left<V: EndpointOps>(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { of::<V>(ep.cast()) }.rx_size_left())
}

unsafe extern "C" fn tx_size_left<V: EndpointOps>(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { of::<V>(ep.cast()) }.tx_size_left())
}

/// The options there are, all of type size_t.
fn known(level: c_int, name: c_int) -> Result<()> {
    if level as u32 == FI_OPT_ENDPOINT && name as u32 == FI_OPT_MIN_MULTI_RECV {
        Ok(())
    } else {
        Err(Errno(FI_ENOPROTOOPT))
    }
}

unsafe extern "C" fn getopt<V: EndpointOps>(
    fid: fid_t,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    if let Err(error) = known(level, name) {
        return error.code();
    }
    if value.is_null() || len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; the value holds as many bytes as `len` says.
    unsafe {
        if *len < size_of::<usize>() {
            return -(FI_ETOOSMALL as c_int);
        }
        value.cast::<usize>().write_unaligned(of::<V>(fid).min_multi_recv());
        *len = size_of::<usize>();
    }
    FI_SUCCESS
}

unsafe extern "C" fn setopt<V: EndpointOps>(
    fid: fid_t,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    if let Err(error) = known(level, name) {
        return error.code();
    }
    if value.is_null() || len != size_of::<usize>() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; the value is a size_t.
    unsafe { of::<V>(fid).set_min_multi_recv(value.cast::<usize>().read_unaligned()) };
    FI_SUCCESS
}
