//! fid_av.

use super::eq::{self, AvEvents};
use super::{Object, head, status};
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

struct Opened {
    av: Arc<Av>,
    domain: Arc<Domain>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.domain.users.release();
    }
}

/// # Safety
/// A live vector of ours, told by its fid.
pub unsafe fn of<'a>(fid: *const fid) -> &'a Arc<Av> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_av, Opened>::value(fid.cast()).av }
}

/// # Safety
/// As `of`.
pub unsafe fn domain_of<'a>(fid: *const fid) -> &'a Arc<Domain> {
    // SAFETY: by contract.
    unsafe { &Object::<fid_av, Opened>::value(fid.cast()).domain }
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
    // SAFETY: by contract.
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
                domain.users.acquire();
                (*attr).r#type = av.av_type();
                if name.is_some() {
                    (*attr).map_addr = av.map_addr() as *mut c_void;
                }
                let c = fid_av {
                    fid: head(FI_CLASS_AV, context, &AV_OPS),
                    ops: (&raw const OPS).cast_mut(),
                };
                out.write(Object::give(
                    c,
                    Opened {
                        av,
                        domain: domain.clone(),
                    },
                ));
                FI_SUCCESS
            }
            Err(error) => error.code(),
        }
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: only vectors made here have this operation; closing ends their life unless they are in use.
    unsafe { Object::<fid_av, Opened>::close(fid, |_| of(fid).close()) }
}

/// An event queue, for insertions with FI_EVENT.
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
    if addr.is_null() {
        return None;
    }
    let bytes = addr.cast::<u8>();
    // SAFETY: by contract.
    unsafe { Some(slice::from_raw_parts(bytes, extent(av.kind().as_ref(), bytes, count)?)) }
}

/// How many bytes `count` addresses take.
///
/// # Safety
/// As of `array`.
unsafe fn extent(kind: &dyn AddressKind, bytes: *const u8, count: usize) -> Option<usize> {
    // SAFETY: by contract there are as many addresses; with none of them there may be no byte to look at.
    unsafe {
        match kind.layout() {
            _ if count == 0 => Some(0),
            Layout::Strings => Some(strings(bytes, count, kind.longest())),
            Layout::Fixed(each) => count.checked_mul(each),
            Layout::Family => count.checked_mul(sockaddr_len(bytes.cast::<u16>().read_unaligned())?),
        }
    }
}

/// How far the NUL of a string that is too long is looked for.
const MOST_PAST_LONGEST: usize = 64 << 10;

/// The same for strings. One that has no NUL where the longest address has its own is no address, and may lie in a buffer
/// of that length. The next one begins behind its NUL, which is looked for with care; without it the array ends there.
///
/// # Safety
/// As of `array`, but each string may also be `longest` bytes without a NUL.
unsafe fn strings(bytes: *const u8, count: usize, longest: usize) -> usize {
    let mut at = 0;
    for left in (0..count).rev() {
        // SAFETY: by contract; the strings before this one ended with their NUL.
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
    // SAFETY: by contract.
    (!fi_addr.is_null()).then(|| unsafe { slice::from_raw_parts_mut(fi_addr, count) })
}

/// # Safety
/// `fi_addr` and, with FI_SYNC_ERR, `context` hold `count` elements.
unsafe fn request<'a>(fi_addr: *mut fi_addr_t, count: usize, flags: u64, context: *mut c_void) -> Insert<'a> {
    let wants_status = flags & FI_SYNC_ERR != 0 && !context.is_null();
    // SAFETY: by contract.
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
            None => -FI_EINVAL,
        }
    }
}

/// Copies out through a buffer whose length goes in and comes back.
///
/// # Safety
/// `buf` is NULL or holds as many bytes as `len` says.
unsafe fn copy_out(buf: *mut c_void, len: *mut usize, copy: impl FnOnce(&mut [u8]) -> Result<usize>) -> c_int {
    if len.is_null() {
        return -FI_EINVAL;
    }
    // SAFETY: by contract.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::av::socket::SocketAddr;
    use crate::api::av::string::StringAddr;
    use core::ptr::null_mut;

    const PAGE: usize = 65536;

    /// These bytes, and after the last one memory that may not be touched.
    fn guarded(bytes: &[u8]) -> *const u8 {
        let (access, private) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: memory of our own, which stays mapped until the test is over.
        unsafe {
            let base = libc::mmap(null_mut(), 2 * PAGE, access, private, -1, 0).cast::<u8>();
            assert_ne!(base.cast(), libc::MAP_FAILED);
            assert_eq!(libc::mprotect(base.add(PAGE).cast(), PAGE, libc::PROT_NONE), 0);
            let start = base.add(PAGE - bytes.len());
            start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            start
        }
    }

    fn reads(kind: &dyn AddressKind, bytes: &[u8], count: usize) -> Option<usize> {
        // SAFETY: the bytes are there, and one too far is a crash.
        unsafe { extent(kind, guarded(bytes), count) }
    }

    #[test]
    fn nothing_is_read_behind_the_last_address() {
        let (strings, longest) = (&StringAddr, StringAddr.longest());
        let endless = vec![b'x'; longest];
        let rows: [(&[u8], usize, usize); 9] = [
            (b"", 0, 0),
            (b"fi_shm://1\0", 1, 11),
            (b"fi_shm://1\0fi_shm://22\0", 2, 23),
            (b"\0\0", 2, 2),
            // Of three there are two, and one that has no end.
            (&[&b"a\0"[..], b"b\0", &endless].concat(), 3, 4 + longest),
            (&endless, 1, longest),
            (&endless, 5, longest),
            // One that is too long and has an end; the next lies behind it.
            (&[&endless[..], &[b'y'; 700], b"\0b\0"].concat(), 2, longest + 703),
            (&[&endless[..], &[b'y'; 700]].concat(), 2, longest),
        ];
        for (bytes, count, expected) in rows {
            assert_eq!(reads(strings, bytes, count), Some(expected), "{count} in {bytes:?}");
        }
    }

    #[test]
    fn an_array_of_no_socket_addresses_is_not_looked_at() {
        let sockets = SocketAddr::new(FI_SOCKADDR);
        let v4 = [&(libc::AF_INET as u16).to_ne_bytes()[..], &[7; 14]].concat();
        assert_eq!(reads(&sockets, &[], 0), Some(0));
        assert_eq!(reads(&sockets, &v4, 1), Some(16));
        assert_eq!(reads(&sockets, &[&v4[..], &v4].concat(), 2), Some(32));
    }
}
