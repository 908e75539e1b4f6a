//! fid_ep: an endpoint of any transport, a context of a scalable one, a shared receive context, and aliases of all.
//!
//! What differs is behind `EndpointOps`. Here are the op tables for binding, control, options and names, which are the
//! same for all kinds, as `any` finds the endpoint whatever it is. The data calls (`messaging`, `rma`, `atomic`,
//! `collective`) are compiled for each kind. Called by C, and by whoever opens an endpoint.

use super::{Object, av, cntr, cq, eq, head, mc, mr, size_status, status, stx};
use crate::abi::lacking;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::EndpointOps;
use crate::api::endpoint::alias::Alias;
use crate::api::endpoint::connection;
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::copy_nonoverlapping;
use libc::ssize_t;
use std::sync::Arc;

/// The longest address that fi_setname takes, in every format of ours.
pub const ADDRESS_MAX: usize = 256;

/// The op tables of a kind of endpoint: what is not here is in `messaging`, `rma`, `atomic` and `collective`.
pub struct OpTables<V>(PhantomData<V>);

impl<V: EndpointOps> OpTables<V> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<V>),
        bind: Some(bind),
        control: Some(control),
        ..lacking::FID
    };
}

static EP: fi_ops_ep = fi_ops_ep {
    cancel: Some(cancel),
    getopt: Some(getopt),
    setopt: Some(setopt),
    rx_size_left: Some(rx_size_left),
    tx_size_left: Some(tx_size_left),
    ..lacking::EP
};
static CM: fi_ops_cm = fi_ops_cm {
    setname: Some(setname),
    getname: Some(getname),
    getpeer: Some(getpeer),
    connect: Some(connect),
    accept: Some(accept),
    shutdown: Some(shutdown),
    join: Some(mc::join),
    ..lacking::CM
};

/// What is behind the fid of an endpoint. Whatever its kind, this begins alike.
#[repr(C)]
struct Open<V> {
    /// The endpoint behind this very fid, with its kind.
    known: fn(*const fid) -> *const dyn EndpointOps,
    endpoint: V,
}

/// Gives an endpoint to C, under the class it has there.
pub fn give<V: EndpointOps>(endpoint: V, class: u32, context: *mut c_void) -> *mut fid_ep {
    let c = fid_ep {
        fid: head(class, context, const { &OpTables::<V>::FID }),
        ops: (&raw const EP).cast_mut(),
        cm: (&raw const CM).cast_mut(),
        msg: (&raw const *const { &OpTables::<V>::MSG }).cast_mut(),
        rma: (&raw const *const { &OpTables::<V>::RMA }).cast_mut(),
        tagged: (&raw const *const { &OpTables::<V>::TAGGED }).cast_mut(),
        atomic: (&raw const *const { &OpTables::<V>::ATOMIC }).cast_mut(),
        collective: (&raw const *const { &OpTables::<V>::COLLECTIVE }).cast_mut(),
    };
    // The struct begins at the same place for all kinds.
    const { assert!(align_of::<Open<V>>() == align_of::<Open<()>>()) };
    // SAFETY: it is asked with a fid behind which it stands itself.
    let known = |fid: *const fid| -> *const dyn EndpointOps { unsafe { of::<V>(fid) } };
    Object::give(c, Open { known, endpoint })
}

/// # Safety
/// A live endpoint of this kind.
#[inline(always)]
pub unsafe fn of<'a, V: EndpointOps>(fid: *const fid) -> &'a V {
    // SAFETY: a live endpoint of this kind has this behind its fid.
    unsafe { &Object::<fid_ep, Open<V>>::value(fid.cast()).endpoint }
}

/// An endpoint of any kind.
///
/// # Safety
/// A live endpoint.
pub unsafe fn any<'a>(fid: *const fid) -> &'a dyn EndpointOps {
    // SAFETY: `Open` begins alike for all kinds (`give`), and `known` is asked with the fid behind which it stands.
    unsafe { &*(Object::<fid_ep, Open<()>>::value(fid.cast()).known)(fid) }
}

unsafe extern "C" fn close<V: EndpointOps>(fid: *mut fid) -> c_int {
    // SAFETY: only objects made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_ep, Open<V>>::close(fid, |open| open.endpoint.close()) }
}

/// FI_ALIAS: an alias may have aliases of its own.
///
/// # Safety
/// A live endpoint and the argument of FI_ALIAS.
unsafe fn open_alias(fid: *mut fid, arg: *const fi_alias) -> c_int {
    // SAFETY: FI_ALIAS has an fi_alias as its argument, which names a place for a pointer.
    unsafe {
        if arg.is_null() || (*arg).fid.is_null() {
            return -FI_EINVAL;
        }
        // A shared receive context has none.
        if (*fid).fclass == FI_CLASS_SRX_CTX as usize {
            return -FI_EOPNOTSUPP;
        }
        match Alias::open(any(fid), (*arg).flags) {
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

/// Whether an object can be bound with these flags to an endpoint of this domain.
///
/// # Safety
/// A live object of ours.
pub unsafe fn check_bind(domain: &Arc<Domain>, other: *const fid, flags: u64) -> Result<()> {
    // SAFETY: fi_ep_bind's caller passes a live object of ours, which tells its class by its fid.
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

unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours, and an object that tells its class and is of our making too.
    unsafe {
        let endpoint = any(fid);
        if (*other).fclass as u32 == FI_CLASS_MR {
            return status(mr::bind_endpoint(other, endpoint.domain(), endpoint.number(), flags));
        }
        let result = check_bind(endpoint.domain(), other, flags);
        let result = result.and_then(|()| match (*other).fclass as u32 {
            FI_CLASS_AV => endpoint.bind_av(av::of(other)),
            FI_CLASS_CQ => endpoint.bind_cq(cq::of(other), flags),
            FI_CLASS_CNTR => endpoint.bind_cntr(cntr::of(other), flags),
            FI_CLASS_STX_CTX => endpoint.bind_stx(stx::of(other)),
            FI_CLASS_SRX_CTX => any(other)
                .as_shared_rx()
                .map_or(Err(Errno(FI_EINVAL)), |srx| endpoint.bind_srx(srx)),
            FI_CLASS_EQ => {
                endpoint.bind_eq(eq::of(other));
                Ok(())
            }
            _ => Err(Errno(FI_EINVAL)),
        });
        status(result)
    }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live endpoint of ours; the command says what its argument is.
    unsafe {
        match command as u32 {
            FI_ENABLE => status(any(fid).enable()),
            FI_GETOPSFLAG | FI_SETOPSFLAG if arg.is_null() => -FI_EINVAL,
            FI_GETOPSFLAG => {
                let flags = arg.cast::<u64>();
                status(any(fid).op_flags(*flags).map(|found| flags.write(found)))
            }
            FI_SETOPSFLAG => status(any(fid).set_op_flags(*arg.cast::<u64>())),
            FI_ALIAS => open_alias(fid, arg.cast()),
            _ => -FI_ENOSYS,
        }
    }
}

unsafe extern "C" fn cancel(fid: fid_t, context: *mut c_void) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    let endpoint = unsafe { any(fid) };
    let context = context as usize;
    size_status(crate::api::deferred::cancel(endpoint, context))
}

unsafe extern "C" fn getname(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the rest as the manual page says.
    unsafe {
        let endpoint = any(fid);
        tell_name(&endpoint.told_address(endpoint.local_address()), addr, len)
    }
}

/// # Safety
/// `addr` is NULL or holds as many bytes as `len` says.
pub unsafe fn tell_name(name: &[u8], addr: *mut c_void, len: *mut usize) -> c_int {
    if len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: fi_getname's caller passes a buffer of as many bytes as `len` says.
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

unsafe extern "C" fn setname(fid: fid_t, addr: *mut c_void, len: usize) -> c_int {
    if addr.is_null() || len > ADDRESS_MAX {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; `addr` holds `len` bytes, by the manual page.
    unsafe { status(any(fid).set_address(bytes(addr, len))) }
}

/// # Safety
/// `at` is NULL or holds `len` bytes, for as long as the answer is used.
pub unsafe fn bytes<'a>(at: *const c_void, len: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(at.cast::<u8>(), len) }
}

unsafe extern "C" fn getpeer(ep: *mut fid_ep, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the rest as the manual page says.
    unsafe {
        let endpoint = any(ep.cast());
        match connection::peer_address(endpoint) {
            Ok(name) => tell_name(&endpoint.told_address(name), addr, len),
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn connect(ep: *mut fid_ep, addr: *const c_void, param: *const c_void, paramlen: usize) -> c_int {
    // SAFETY: a live endpoint of ours, a whole address of its format, and `paramlen` bytes, by the manual page.
    unsafe {
        let endpoint = any(ep.cast());
        let kind = match connection::address_kind(endpoint) {
            Ok(kind) => kind,
            Err(error) => return error.code(),
        };
        match av::one_address(kind.as_ref(), addr) {
            Some(address) => {
                let address = kind.kept(address);
                status(connection::connect(endpoint, &address, bytes(param, paramlen)))
            }
            None => -FI_EINVAL,
        }
    }
}

unsafe extern "C" fn accept(ep: *mut fid_ep, param: *const c_void, paramlen: usize) -> c_int {
    // SAFETY: a live endpoint of ours, and `paramlen` bytes, by the manual page.
    unsafe { status(connection::accept(any(ep.cast()), bytes(param, paramlen))) }
}

unsafe extern "C" fn shutdown(ep: *mut fid_ep, flags: u64) -> c_int {
    // SAFETY: a live endpoint of ours.
    let endpoint = unsafe { any(ep.cast()) };
    match connection::data_size(endpoint) {
        Err(error) => error.code(),
        Ok(_) if flags != 0 => -(FI_EBADFLAGS as c_int),
        Ok(_) => status(connection::shutdown(endpoint)),
    }
}

fn size_left(left: Result<usize>) -> ssize_t {
    match left {
        Ok(left) => ssize_t::try_from(left).unwrap_or(ssize_t::MAX),
        Err(error) => error.code() as ssize_t,
    }
}

unsafe extern "C" fn rx_size_left(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { any(ep.cast()) }.rx_size_left())
}

unsafe extern "C" fn tx_size_left(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { any(ep.cast()) }.tx_size_left())
}

/// An option, as fi_getopt tells it; all have the type size_t.
fn option(endpoint: &dyn EndpointOps, level: c_int, name: c_int) -> Result<usize> {
    match (level as u32, name as u32) {
        (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) => Ok(endpoint.min_multi_recv()),
        (FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE) => connection::data_size(endpoint).map_err(|_| Errno(FI_ENOPROTOOPT)),
        _ => Err(Errno(FI_ENOPROTOOPT)),
    }
}

/// # Safety
/// `value` is NULL or holds as many bytes as `len` says.
pub unsafe fn tell_size(size: usize, value: *mut c_void, len: *mut usize) -> c_int {
    if value.is_null() || len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if *len < size_of::<usize>() {
            return -(FI_ETOOSMALL as c_int);
        }
        value.cast::<usize>().write_unaligned(size);
        *len = size_of::<usize>();
    }
    FI_SUCCESS
}

unsafe extern "C" fn getopt(fid: fid_t, level: c_int, name: c_int, value: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live endpoint of ours; the value holds as many bytes as `len` says.
    unsafe {
        match option(any(fid), level, name) {
            Ok(size) => tell_size(size, value, len),
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn setopt(fid: fid_t, level: c_int, name: c_int, value: *const c_void, len: usize) -> c_int {
    // SAFETY: a live endpoint of ours.
    if let Err(error) = option(unsafe { any(fid) }, level, name) {
        return error.code();
    }
    // FI_OPT_CM_DATA_SIZE is read only.
    if value.is_null() || len != size_of::<usize>() || name as u32 != FI_OPT_MIN_MULTI_RECV {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; the value is a size_t.
    unsafe { any(fid).set_min_multi_recv(value.cast::<usize>().read_unaligned()) };
    FI_SUCCESS
}
