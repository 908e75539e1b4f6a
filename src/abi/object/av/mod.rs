//! fid_av: an address vector. Opened of a domain of any transport, which says how its addresses are written.
//!
//! Opens arrays of addresses, of which only the vector's format knows the length; what a vector does is in `api::av`.
//! Called by C and by the transport's domain.

#[cfg(test)]
mod tests;

use super::eq::{self, AvEvents};
use super::{Child, Object, head, status};
use crate::abi::lacking;
use crate::abi::text;
use crate::abi::types::*;
use crate::api::av::kind::{AddressKind, Layout, sockaddr_len};
use crate::api::av::sequence::Sequence;
use crate::api::av::{Av, AvAttr, Insert};
use crate::api::domain::Domain;
use crate::api::errno::Result;
use crate::sys::process_vm::distance_to_zero;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null;
use core::slice;
use std::sync::Arc;

static OPS: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert: Some(insert),
    insertsvc: Some(insertsvc),
    insertsym: Some(insertsym),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(straddr),
    av_set: Some(super::av_set::open),
    insert_auth_key: Some(insert_auth_key),
    lookup_auth_key: Some(lookup_auth_key),
    set_user_id: Some(set_user_id),
};

static AV_OPS: fi_ops = fi_ops {
    close: Some(close),
    bind: Some(bind),
    ..lacking::FID
};

type OpenAv = Child<Arc<Av>, Domain>;

/// # Safety
/// A live vector of ours, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Av> {
    // SAFETY: a live vector of ours has this behind its fid.
    unsafe { &Object::<fid_av, OpenAv>::value(fid.cast()).value }
}

/// # Safety
/// As `of`.
pub unsafe fn domain_of<'a>(fid: *const fid) -> &'a Arc<Domain> {
    // SAFETY: a live vector of ours has this behind its fid.
    unsafe { &Object::<fid_av, OpenAv>::value(fid.cast()).parent }
}

/// # Safety
/// As of a call of fi_av_open on a domain of ours.
pub unsafe fn open(
    domain: &Arc<Domain>,
    kind: Arc<dyn AddressKind>,
    attr: *mut fi_av_attr,
    out: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    if attr.is_null() || out.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: fi_av_open's caller passes attributes, with a C string or NULL for a name, and a place for a pointer.
    unsafe {
        let name = text::borrow((*attr).name);
        let wanted = AvAttr {
            av_type: (*attr).r#type,
            rx_ctx_bits: (*attr).rx_ctx_bits,
            count: (*attr).count,
            ep_per_node: (*attr).ep_per_node,
            name: name.as_deref(),
            map_addr: (*attr).map_addr as usize,
            flags: (*attr).flags,
        };
        match Av::open(&wanted, kind, &domain.av) {
            Ok(av) => {
                (*attr).r#type = av.av_type();
                if name.is_some() {
                    (*attr).map_addr = av.map_addr() as *mut c_void;
                }
                let c = fid_av {
                    fid: head(FI_CLASS_AV, context, &AV_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(c, Child::new(av, domain)));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only vectors made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_av, OpenAv>::close(fid, |_| of(fid).close()) }
}

/// fi_av_bind: an event queue, to which insertions with FI_EVENT are reported.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    // SAFETY: a live vector of ours, and an object that tells its class.
    unsafe {
        if other.is_null() || (*other).fclass != FI_CLASS_EQ as usize {
            return -FI_EINVAL;
        }
        let events = AvEvents {
            eq: eq::of(other).clone(),
            av: fid as usize,
        };
        status(of(fid).bind_eq(Arc::new(events), flags))
    }
}

/// The bytes of an array of `count` addresses.
///
/// # Safety
/// The array is as the format of the vector says.
unsafe fn array<'a>(av: &Av, addr: *const c_void, count: usize) -> Option<&'a [u8]> {
    if count == 0 {
        return Some(&[]); // as of an empty list, whose pointer may be NULL
    }
    if addr.is_null() {
        return None;
    }
    let bytes = addr.cast::<u8>();
    // SAFETY: fi_av_insert's caller passes `count` addresses of the vector's format.
    unsafe { Some(slice::from_raw_parts(bytes, extent(av.kind().as_ref(), bytes, count)?)) }
}

/// The bytes of one address, as fi_connect gets it.
///
/// # Safety
/// NULL, or an address of this kind.
pub unsafe fn one_address<'a>(kind: &dyn AddressKind, addr: *const c_void) -> Option<&'a [u8]> {
    let bytes = addr.cast::<u8>();
    // SAFETY: fi_connect's caller passes an address of the format.
    (!addr.is_null()).then(|| unsafe { Some(slice::from_raw_parts(bytes, extent(kind, bytes, 1)?)) })?
}

/// How many bytes `count` addresses take.
///
/// # Safety
/// As of `array`.
unsafe fn extent(kind: &dyn AddressKind, bytes: *const u8, count: usize) -> Option<usize> {
    // SAFETY: there are `count` addresses of this format; with none of them there may be no byte to look at.
    unsafe {
        match kind.layout() {
            _ if count == 0 => Some(0),
            Layout::Strings => Some(strings(bytes, count, kind.longest())),
            Layout::Fixed(each) => count.checked_mul(each),
            Layout::Family => count.checked_mul(sockaddr_len(bytes.cast::<u16>().read_unaligned())?),
        }
    }
}

/// How far behind the longest address the NUL of a string is looked for.
const MOST_PAST_LONGEST: usize = 64 << 10;

/// How many bytes `count` strings take. A string without a NUL within the longest address is no address, and its buffer
/// may end there, so its NUL is looked for with care (`distance_to_zero`). The next string begins behind that NUL;
/// without one the array ends here.
///
/// # Safety
/// As of `array`, but each string may also be `longest` bytes without a NUL.
unsafe fn strings(bytes: *const u8, count: usize, longest: usize) -> usize {
    let mut at = 0;
    for left in (0..count).rev() {
        // SAFETY: the array goes on here, for the strings before this one ended with their NUL.
        let len = unsafe { libc::strnlen(bytes.add(at).cast(), longest) };
        let more = match len {
            _ if len < longest => Some(0),
            _ if left == 0 => None,
            // SAFETY: within the array, or its end.
            _ => distance_to_zero(unsafe { bytes.add(at + len) } as usize, MOST_PAST_LONGEST),
        };
        let Some(more) = more else { return at + len };
        at += len + more + 1;
    }
    at
}

/// The out-array of a call, one element per address.
///
/// # Safety
/// `fi_addr` is NULL or holds `count` elements.
unsafe fn places<'a>(fi_addr: *mut fi_addr_t, count: usize) -> Option<&'a mut [fi_addr_t]> {
    // SAFETY: the caller's array holds `count` addresses.
    (!fi_addr.is_null()).then(|| unsafe { slice::from_raw_parts_mut(fi_addr, count) })
}

/// # Safety
/// `fi_addr` and, with FI_SYNC_ERR, `context` hold `count` elements.
unsafe fn request<'a>(fi_addr: *mut fi_addr_t, count: usize, flags: u64, context: *mut c_void) -> Insert<'a> {
    let wants_status = flags & FI_SYNC_ERR != 0 && !context.is_null();
    // SAFETY: fi_av_insert's caller passes arrays of `count` elements.
    unsafe {
        Insert {
            fi_addr: places(fi_addr, count),
            flags,
            context: context as usize,
            status: wants_status.then(|| slice::from_raw_parts_mut(context.cast::<c_int>(), count)),
        }
    }
}

fn count_of(result: Result<usize>) -> c_int {
    match result {
        Ok(count) => c_int::try_from(count).unwrap_or(c_int::MAX),
        Err(error) => error.code(),
    }
}

unsafe extern "C" fn insert(
    av: *mut fid_av,
    addr: *const c_void,
    count: usize,
    fi_addr: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a live vector of ours and the arrays of the manual page.
    unsafe {
        let av = of(av.cast());
        match array(av, addr, count) {
            Some(bytes) => count_of(av.insert(bytes, count, request(fi_addr, count, flags, context))),
            None => -FI_EINVAL,
        }
    }
}

unsafe extern "C" fn insertsvc(
    av: *mut fid_av,
    node: *const c_char,
    service: *const c_char,
    fi_addr: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `insert`.
    unsafe {
        let (node, service) = (text::borrow(node), text::borrow(service));
        let request = request(fi_addr, 1, flags, context);
        count_of(of(av.cast()).insertsvc(node.as_deref(), service.as_deref(), request))
    }
}

unsafe extern "C" fn insertsym(
    av: *mut fid_av,
    node: *const c_char,
    nodecnt: usize,
    service: *const c_char,
    svccnt: usize,
    fi_addr: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `insert`; the arrays hold one element for each pair.
    unsafe {
        let (node, service) = (text::borrow(node), text::borrow(service));
        let names = Sequence {
            node: node.as_deref(),
            nodecnt,
            service: service.as_deref(),
            svccnt,
        };
        match names.count() {
            Ok(count) => count_of(of(av.cast()).insertsym(&names, request(fi_addr, count, flags, context))),
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn remove(av: *mut fid_av, fi_addr: *mut fi_addr_t, count: usize, flags: u64) -> c_int {
    // SAFETY: as in `insert`.
    unsafe {
        match places(fi_addr, count) {
            Some(addrs) => status(of(av.cast()).remove(addrs, flags)),
            None if count == 0 => status(of(av.cast()).remove(&[], flags)),
            None => -FI_EINVAL,
        }
    }
}

/// Copies into the caller's buffer: `len` says how much room there is, and afterwards how much was needed.
///
/// # Safety
/// `buf` is NULL or holds as many bytes as `len` says.
unsafe fn copy_out(buf: *mut c_void, len: *mut usize, copy: impl FnOnce(&mut [u8]) -> Result<usize>) -> c_int {
    if len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: the buffer holds as many bytes as `len` says.
    unsafe {
        let room: &mut [u8] = if buf.is_null() {
            &mut []
        } else {
            slice::from_raw_parts_mut(buf.cast(), *len)
        };
        match copy(room) {
            Ok(whole) => {
                *len = whole;
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn lookup(av: *mut fid_av, fi_addr: fi_addr_t, addr: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: a live vector of ours; the buffer is as long as it says.
    unsafe { copy_out(addr, len, |room| of(av.cast()).lookup(fi_addr, room)) }
}

unsafe extern "C" fn straddr(av: *mut fid_av, addr: *const c_void, buf: *mut c_char, len: *mut usize) -> *const c_char {
    // SAFETY: a live vector of ours, an address of its format, a buffer as long as it says.
    unsafe {
        let av = of(av.cast());
        let Some(address) = array(av, addr, 1).filter(|_| !len.is_null()) else {
            return null();
        };
        let room: &mut [u8] = if buf.is_null() {
            &mut []
        } else {
            slice::from_raw_parts_mut(buf.cast(), *len)
        };
        match av.straddr(address, room) {
            Some(whole) => {
                *len = whole;
                buf
            }
            None => null(),
        }
    }
}

unsafe extern "C" fn insert_auth_key(
    av: *mut fid_av,
    key: *const c_void,
    size: usize,
    fi_addr: *mut fi_addr_t,
    flags: u64,
) -> c_int {
    if key.is_null() || fi_addr.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: a live vector of ours; the key has `size` bytes.
    unsafe {
        let key = slice::from_raw_parts(key.cast::<u8>(), size);
        status(
            of(av.cast())
                .insert_auth_key(key, flags)
                .map(|handle| fi_addr.write(handle)),
        )
    }
}

unsafe extern "C" fn lookup_auth_key(av: *mut fid_av, fi_addr: fi_addr_t, key: *mut c_void, size: *mut usize) -> c_int {
    // SAFETY: as in `lookup`.
    unsafe { copy_out(key, size, |room| of(av.cast()).lookup_auth_key(fi_addr, room)) }
}

unsafe extern "C" fn set_user_id(av: *mut fid_av, fi_addr: fi_addr_t, user_id: fi_addr_t, flags: u64) -> c_int {
    // SAFETY: a live vector of ours.
    status(unsafe { of(av.cast()) }.set_user_id(fi_addr, user_id, flags))
}
