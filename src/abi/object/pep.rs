//! fid_pep: a passive endpoint of any provider that has connected ones.
//!
//! What it does is in `api::passive`; here requests become FI_CONNREQ events, with an fi_info whose handle names them
//! (`request`). Opened of a fabric (`fabric`). Called by C.

use super::endpoint::{ADDRESS_MAX, bytes, tell_name};
use super::{Object, eq, head, request, status};
use crate::abi::layout::CURRENT;
use crate::abi::types::*;
use crate::abi::{info, info_read, lacking};
use crate::api::domain::Fabric;
use crate::api::endpoint::EndpointTransport;
use crate::api::eq::Eq;
use crate::api::eq::event::connection_bytes;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, Opaque};
use crate::api::passive::{Incoming, Listener, Passive, Request, Requests};
use crate::provider::connected::Connected;
use crate::sys::lock::{Guard, Held, Lock};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::{Arc, OnceLock};

type OpenPep<P> = Arc<Passive<<P as Connected>::Listener>>;
pub(super) type RequestOf<P> = <<P as Connected>::Listener as Listener>::Request;

/// The op tables of a provider's passive endpoints.
struct Tables<P>(PhantomData<P>);

impl<P: Connected> Tables<P> {
    const FID: fi_ops = fi_ops {
        close: Some(close::<P>),
        bind: Some(bind::<P>),
        control: Some(control::<P>),
        ..lacking::FID
    };
    const EP: fi_ops_ep = fi_ops_ep {
        getopt: Some(getopt::<P>),
        ..lacking::EP
    };
    const CM: fi_ops_cm = fi_ops_cm {
        setname: Some(setname::<P>),
        getname: Some(getname::<P>),
        listen: Some(listen::<P>),
        reject: Some(reject::<P>),
        ..lacking::CM
    };
}

/// The passive endpoints that are open, with their providers: an active endpoint may get the address of one, and names
/// it by its fid.
static OPEN: Lock<Vec<(usize, &str)>> = Lock::new(Vec::new());

/// For `abi::process`.
pub(crate) static LOCK: &dyn Held = &OPEN;

/// # Safety
/// The arguments are as fi_passive_ep of fi_endpoint(3) asks, with a fabric of this provider.
pub unsafe extern "C" fn open<P: Connected>(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    out: *mut *mut fid_pep,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live fabric of ours, an info of fi_getinfo's, and a place for a pointer.
    unsafe {
        let info = info_read::read(info, &CURRENT);
        if info.ep_type() != FI_EP_MSG {
            return -FI_EINVAL;
        }
        let opened = P::listener(&info);
        status(opened.map(|listener| out.write(give::<P>(super::fabric::opened(fabric), info, listener, context))))
    }
}

fn give<P: Connected>(fabric: &Arc<Fabric>, info: Info, listener: P::Listener, context: *mut c_void) -> *mut fid_pep {
    let c = fid_pep {
        fid: head(FI_CLASS_PEP, context, const { &Tables::<P>::FID }),
        ops: (&raw const *const { &Tables::<P>::EP }).cast_mut(),
        cm: (&raw const *const { &Tables::<P>::CM }).cast_mut(),
    };
    let fid = Arc::new(OnceLock::new());
    let format = info.addr_format;
    let reporter = Reporter::<P> {
        fid: fid.clone(),
        info,
        provider: PhantomData,
    };
    let given = Object::give(c, Passive::new(fabric, listener, format, Box::new(reporter)));
    // It does not listen yet, so nobody has looked.
    let _ = fid.set(given as usize);
    open_list().push((given as usize, P::NAME));
    given
}

fn open_list() -> Guard<'static, Vec<(usize, &'static str)>> {
    OPEN.lock()
}

/// Makes events of requests.
struct Reporter<P> {
    /// The passive endpoint's, from the moment it has one.
    fid: Arc<OnceLock<usize>>,
    /// What the passive endpoint was opened with.
    info: Info,
    provider: PhantomData<fn() -> P>,
}

/// An address of a listener, as programs see it in this format.
fn told<P: Connected>(address: Vec<u8>, format: u32) -> Vec<u8> {
    P::Transport::told_address(address, format)
}

impl<P: Connected> Requests<RequestOf<P>> for Reporter<P> {
    fn arrived(&self, eq: &Eq, incoming: Incoming<RequestOf<P>>) {
        let format = self.info.addr_format;
        let pep = self.fid.get().copied().unwrap_or(0);
        let handle = request::add(pep, incoming.request);
        let answer = Info {
            handle: Opaque(handle),
            src_addr: Some(told::<P>(incoming.local, format)),
            dest_addr: Some(told::<P>(incoming.peer, format)),
            ..self.info.clone()
        };
        let Ok(written) = info::write(&answer) else {
            drop(request::take::<RequestOf<P>>(handle, None));
            return;
        };
        let bytes = connection_bytes(pep, written as usize, &incoming.data);
        if eq.post(FI_CONNREQ, pep, &bytes).is_err() {
            // SAFETY: ours alone, as the queue did not take it.
            unsafe { info::free(written, &CURRENT) };
            drop(request::take::<RequestOf<P>>(handle, None));
        }
    }
}

/// # Safety
/// A live passive endpoint of this provider.
unsafe fn of<'a, P: Connected>(fid: *const fid) -> &'a OpenPep<P> {
    // SAFETY: a live passive endpoint of this provider has this behind its fid.
    unsafe { Object::<fid_pep, OpenPep<P>>::value(fid.cast()) }
}

/// Frees the events that the program has not read, and refuses who waits.
fn forget(fid: usize, eq: Option<Arc<Eq>>) {
    let unread = eq.map(|eq| eq.forget(fid)).unwrap_or_default();
    for event in unread {
        if let Some(info) = event.info() {
            // SAFETY: `arrived` made it, and the program did not get it.
            unsafe { info::free(info as *mut fi_info, &CURRENT) };
        }
    }
    request::drop_all(fid);
}

unsafe extern "C" fn close<P: Connected>(fid: *mut fid) -> c_int {
    // SAFETY: only passive endpoints of this provider have this operation.
    unsafe {
        Object::<fid_pep, OpenPep<P>>::close(fid, |passive| {
            open_list().retain(|(open, _)| *open != fid as usize);
            forget(fid as usize, passive.close());
            Ok(())
        })
    }
}

/// The address of the passive endpoint that an active one is to have. None: the handle is none of this provider's.
///
/// # Safety
/// The program does not close the passive endpoint meanwhile.
pub unsafe fn give_up_address<P: Connected>(handle: usize) -> Option<Result<Vec<u8>>> {
    let open = open_list().contains(&(handle, P::NAME));
    // SAFETY: it is open, and of this provider.
    open.then(|| unsafe {
        let (address, eq) = of::<P>(handle as *const fid).give_up_address()?;
        forget(handle, eq);
        Ok(address)
    })
}

unsafe extern "C" fn bind<P: Connected>(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    if other.is_null() {
        return -FI_EINVAL;
    }
    if flags != 0 {
        return -(FI_EBADFLAGS as c_int);
    }
    // SAFETY: a live passive endpoint; a fid tells its class.
    unsafe {
        match (*other).fclass as u32 {
            FI_CLASS_EQ => status(of::<P>(fid).bind_eq(eq::of(other))),
            _ => -FI_EINVAL,
        }
    }
}

unsafe extern "C" fn control<P: Connected>(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    if command as u32 != FI_BACKLOG {
        return -FI_ENOSYS;
    }
    if arg.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live passive endpoint; FI_BACKLOG has an int as its argument.
    unsafe { status(of::<P>(fid).set_backlog(arg.cast::<c_int>().read_unaligned())) }
}

unsafe extern "C" fn listen<P: Connected>(pep: *mut fid_pep) -> c_int {
    // SAFETY: a live passive endpoint.
    status(unsafe { of::<P>(pep.cast()) }.listen())
}

unsafe extern "C" fn reject<P: Connected>(
    pep: *mut fid_pep,
    handle: fid_t,
    param: *const c_void,
    paramlen: usize,
) -> c_int {
    let request = match request::take::<RequestOf<P>>(handle as usize, Some(pep as usize)) {
        Ok(request) => request,
        Err(error) => return error.code(),
    };
    // SAFETY: `param` holds `paramlen` bytes, by the manual page.
    let data = unsafe { bytes(param, paramlen) };
    request.reject(data.get(..P::DATA_SIZE).unwrap_or(data));
    FI_SUCCESS
}

unsafe extern "C" fn getname<P: Connected>(fid: fid_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live passive endpoint; the rest as the manual page says.
    unsafe {
        let passive = of::<P>(fid);
        match passive.local_address() {
            Ok(name) => tell_name(&told::<P>(name, passive.addr_format), addr, len),
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn setname<P: Connected>(fid: fid_t, addr: *mut c_void, len: usize) -> c_int {
    if addr.is_null() || len > ADDRESS_MAX {
        return -FI_EINVAL;
    }
    // SAFETY: a live passive endpoint; `addr` holds `len` bytes, by the manual page.
    unsafe { status(of::<P>(fid).rename(bytes(addr, len))) }
}

unsafe extern "C" fn getopt<P: Connected>(
    _: fid_t,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    if level as u32 != FI_OPT_ENDPOINT || name as u32 != FI_OPT_CM_DATA_SIZE {
        return Errno(FI_ENOPROTOOPT).code();
    }
    // SAFETY: the value holds as many bytes as `len` says.
    unsafe { super::endpoint::tell_size(P::DATA_SIZE, value, len) }
}
