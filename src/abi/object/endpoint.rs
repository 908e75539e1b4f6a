//! fid_ep of an endpoint of ours, whatever its transport, and of its aliases.
//!
//! Both have the same operations: what they do not share is behind `Kind`.

use super::messaging::{Opened, Tables};
use super::{Object, av, cntr, cq, eq, head, lacking, size_status, status};
use crate::abi::no_ops::NO_OPS;
use crate::abi::types::*;
use crate::api::domain::Domain;
use crate::api::endpoint::alias::Alias;
use crate::api::endpoint::{Endpoint, Wire};
use crate::api::errno::{Errno, Result};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use core::ptr::copy_nonoverlapping;
use libc::ssize_t;
use std::sync::Arc;

/// The longest address that may be given, as in every format of ours.
const ADDRESS_MAX: usize = 256;

/// The kind of endpoint over a transport.
pub struct Over<T>(PhantomData<T>);

impl<T: Wire + 'static> Opened for Over<T> {
    type Value = Endpoint<T>;
    #[inline(always)]
    unsafe fn open<'a>(ep: *mut fid_ep) -> &'a Endpoint<T> {
        // SAFETY: by contract.
        unsafe { Object::<fid_ep, Arc<Endpoint<T>>>::value(ep) }
    }
}

/// The kind of an alias of such an endpoint.
pub struct AliasOver<T>(PhantomData<T>);

impl<T: Wire + 'static> Opened for AliasOver<T> {
    type Value = Alias<T>;
    #[inline(always)]
    unsafe fn open<'a>(ep: *mut fid_ep) -> &'a Alias<T> {
        // SAFETY: by contract.
        unsafe { Object::<fid_ep, Alias<T>>::value(ep) }
    }
}

/// What an endpoint and an alias of it have each its own. All functions ask for a live object of this kind.
trait Kind: Opened {
    type Wire: Wire + 'static;
    /// # Safety
    /// As said above.
    unsafe fn endpoint<'a>(fid: *const fid) -> &'a Arc<Endpoint<Self::Wire>>;
    /// Ends its life, unless it is in use.
    ///
    /// # Safety
    /// As said above.
    unsafe fn close(fid: *mut fid) -> Result<()>;
    /// # Safety
    /// As said above.
    unsafe fn both_flags(fid: *const fid) -> (u64, u64);
    /// # Safety
    /// As said above.
    unsafe fn op_flags(fid: *const fid, direction: u64) -> Result<u64>;
    /// # Safety
    /// As said above.
    unsafe fn set_op_flags(fid: *const fid, flags: u64) -> Result<()>;
}

impl<T: Wire + 'static> Kind for Over<T> {
    type Wire = T;
    unsafe fn endpoint<'a>(fid: *const fid) -> &'a Arc<Endpoint<T>> {
        // SAFETY: by contract.
        unsafe { Object::<fid_ep, Arc<Endpoint<T>>>::value(fid.cast()) }
    }
    unsafe fn close(fid: *mut fid) -> Result<()> {
        // SAFETY: by contract.
        unsafe {
            Self::endpoint(fid).unused()?;
            Object::<fid_ep, Arc<Endpoint<T>>>::take(fid.cast()).close();
        }
        Ok(())
    }
    unsafe fn both_flags(fid: *const fid) -> (u64, u64) {
        // SAFETY: by contract.
        unsafe { Self::endpoint(fid) }.both_flags()
    }
    unsafe fn op_flags(fid: *const fid, direction: u64) -> Result<u64> {
        // SAFETY: by contract.
        unsafe { Self::endpoint(fid) }.op_flags(direction)
    }
    unsafe fn set_op_flags(fid: *const fid, flags: u64) -> Result<()> {
        // SAFETY: by contract.
        unsafe { Self::endpoint(fid) }.set_op_flags(flags)
    }
}

impl<T: Wire + 'static> AliasOver<T> {
    /// # Safety
    /// A live alias of this kind.
    unsafe fn alias<'a>(fid: *const fid) -> &'a Alias<T> {
        // SAFETY: by contract.
        unsafe { Object::<fid_ep, Alias<T>>::value(fid.cast()) }
    }
}

impl<T: Wire + 'static> Kind for AliasOver<T> {
    type Wire = T;
    unsafe fn endpoint<'a>(fid: *const fid) -> &'a Arc<Endpoint<T>> {
        // SAFETY: by contract.
        unsafe { &Self::alias(fid).endpoint }
    }
    unsafe fn close(fid: *mut fid) -> Result<()> {
        // SAFETY: by contract.
        drop(unsafe { Object::<fid_ep, Alias<T>>::take(fid.cast()) });
        Ok(())
    }
    unsafe fn both_flags(fid: *const fid) -> (u64, u64) {
        // SAFETY: by contract.
        unsafe { Self::alias(fid) }.both_flags()
    }
    unsafe fn op_flags(fid: *const fid, direction: u64) -> Result<u64> {
        // SAFETY: by contract.
        unsafe { Self::alias(fid) }.op_flags(direction)
    }
    unsafe fn set_op_flags(fid: *const fid, flags: u64) -> Result<()> {
        // SAFETY: by contract.
        unsafe { Self::alias(fid) }.set_op_flags(flags)
    }
}

/// The tables of one kind.
struct Ops<K>(PhantomData<K>);

impl<K: Kind> Ops<K> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<K>),
        bind: Some(bind::<K>),
        control: Some(control::<K>),
        ..NO_OPS
    };
    const EP: fi_ops_ep = fi_ops_ep {
        cancel: Some(cancel::<K>),
        getopt: Some(getopt::<K>),
        setopt: Some(setopt::<K>),
        rx_size_left: Some(rx_size_left::<K>),
        tx_size_left: Some(tx_size_left::<K>),
        ..lacking::EP
    };
    const CM: fi_ops_cm = fi_ops_cm {
        setname: Some(setname::<K>),
        getname: Some(getname::<K>),
        ..lacking::CM
    };
}

/// The C form of an object of one kind.
fn c_form<K: Kind>(context: *mut c_void) -> fid_ep {
    fid_ep {
        fid: head(FI_CLASS_EP, context, const { &Ops::<K>::FID }),
        ops: (&raw const *const { &Ops::<K>::EP }).cast_mut(),
        cm: (&raw const *const { &Ops::<K>::CM }).cast_mut(),
        msg: (&raw const *const { &Tables::<K>::MSG }).cast_mut(),
        rma: (&raw const lacking::RMA).cast_mut(),
        tagged: (&raw const *const { &Tables::<K>::TAGGED }).cast_mut(),
        atomic: (&raw const lacking::ATOMIC).cast_mut(),
        collective: (&raw const lacking::COLLECTIVE).cast_mut(),
    }
}

/// Gives an endpoint to C.
pub fn give<T: Wire + 'static>(endpoint: Arc<Endpoint<T>>, context: *mut c_void) -> *mut fid_ep {
    Object::give(c_form::<Over<T>>(context), endpoint)
}

unsafe extern "C" fn close<K: Kind>(fid: *mut fid) -> c_int {
    // SAFETY: only objects made here have this operation.
    status(unsafe { K::close(fid) })
}

/// FI_ALIAS: an alias may have aliases of its own.
///
/// # Safety
/// A live object of this kind and its argument.
unsafe fn open_alias<K: Kind>(fid: *mut fid, arg: *const fi_alias) -> c_int {
    // SAFETY: by contract.
    unsafe {
        if arg.is_null() || (*arg).fid.is_null() {
            return -FI_EINVAL;
        }
        match Alias::open(K::endpoint(fid), K::both_flags(fid), (*arg).flags) {
            Ok(alias) => {
                let c = c_form::<AliasOver<K::Wire>>((*fid).context);
                (*arg).fid.write(Object::give(c, alias).cast());
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

/// # Safety
/// A live object of ours.
unsafe fn check_bind(domain: &Arc<Domain>, other: *const fid, flags: u64) -> Result<()> {
    // SAFETY: by contract; a fid tells its class.
    let (theirs, may_have_flags) = unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_AV => (Some(av::domain_of(other)), false),
            FI_CLASS_CQ => (Some(cq::domain_of(other)), true),
            FI_CLASS_CNTR => (Some(cntr::domain_of(other)), true),
            _ => (None, false),
        }
    };
    if flags != 0 && !may_have_flags {
        return Err(Errno(FI_EBADFLAGS as c_int));
    }
    if theirs.is_some_and(|theirs| !Arc::ptr_eq(theirs, domain)) {
        log!(Warn, EpCtrl, "fi_ep_bind: the object is of another domain");
        return Err(Errno(FI_EINVAL));
    }
    Ok(())
}

unsafe extern "C" fn bind<K: Kind>(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours, and an object that tells its class and is of our making too.
    unsafe {
        let endpoint = K::endpoint(fid);
        let result = check_bind(&endpoint.domain, other, flags);
        let result = result.and_then(|()| match (*other).fclass as u32 {
            FI_CLASS_AV => endpoint.bind_av(av::of(other)),
            FI_CLASS_CQ => endpoint.bind_cq(cq::of(other), flags),
            FI_CLASS_CNTR => endpoint.bind_cntr(cntr::of(other), flags),
            FI_CLASS_EQ => {
                endpoint.bind_eq(eq::of(other));
                Ok(())
            }
            _ => Err(Errno(FI_EINVAL)),
        });
        status(result)
    }
}

unsafe extern "C" fn control<K: Kind>(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: a live endpoint of ours; the command says what its argument is.
    unsafe {
        match command as u32 {
            FI_ENABLE => status(K::endpoint(fid).enable()),
            FI_GETOPSFLAG | FI_SETOPSFLAG if arg.is_null() => -FI_EINVAL,
            FI_GETOPSFLAG => {
                let flags = arg.cast::<u64>();
                status(K::op_flags(fid, *flags).map(|found| flags.write(found)))
            }
            FI_SETOPSFLAG => status(K::set_op_flags(fid, *arg.cast::<u64>())),
            FI_ALIAS => open_alias::<K>(fid, arg.cast()),
            _ => -FI_ENOSYS,
        }
    }
}

unsafe extern "C" fn cancel<K: Kind>(fid: fid_t, context: *mut c_void) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_status(unsafe { K::endpoint(fid) }.cancel(context as usize))
}

unsafe extern "C" fn getname<K: Kind>(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    if len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; `addr` is NULL or holds as many bytes as `len` says.
    unsafe {
        let name = K::endpoint(fid).local_address();
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

unsafe extern "C" fn setname<K: Kind>(fid: fid_t, addr: *mut c_void, len: usize) -> c_int {
    if addr.is_null() || len > ADDRESS_MAX {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; `addr` holds `len` bytes, and the address ends at a zero if there is one.
    unsafe {
        let bytes = core::slice::from_raw_parts(addr.cast::<u8>(), len);
        let address = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        status(K::endpoint(fid).set_address(address))
    }
}

fn size_left(left: Result<usize>) -> ssize_t {
    match left {
        Ok(left) => ssize_t::try_from(left).unwrap_or(ssize_t::MAX),
        Err(error) => error.code() as ssize_t,
    }
}

unsafe extern "C" fn rx_size_left<K: Kind>(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { K::endpoint(ep.cast()) }.rx_size_left())
}

unsafe extern "C" fn tx_size_left<K: Kind>(ep: *mut fid_ep) -> ssize_t {
    // SAFETY: a live endpoint of ours.
    size_left(unsafe { K::endpoint(ep.cast()) }.tx_size_left())
}

/// The options there are, all of type size_t.
fn known(level: c_int, name: c_int) -> Result<()> {
    if level as u32 == FI_OPT_ENDPOINT && name as u32 == FI_OPT_MIN_MULTI_RECV {
        Ok(())
    } else {
        Err(Errno(FI_ENOPROTOOPT))
    }
}

unsafe extern "C" fn getopt<K: Kind>(
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
        value.cast::<usize>().write_unaligned(K::endpoint(fid).min_multi_recv());
        *len = size_of::<usize>();
    }
    FI_SUCCESS
}

unsafe extern "C" fn setopt<K: Kind>(fid: fid_t, level: c_int, name: c_int, value: *const c_void, len: usize) -> c_int {
    if let Err(error) = known(level, name) {
        return error.code();
    }
    if value.is_null() || len != size_of::<usize>() {
        return -FI_EINVAL;
    }
    // SAFETY: a live endpoint of ours; the value is a size_t.
    unsafe { K::endpoint(fid).set_min_multi_recv(value.cast::<usize>().read_unaligned()) };
    FI_SUCCESS
}
