//! fi_getinfo: hints made from plain values, and an info that belongs to us.

use crate::abi::types::*;
use crate::say::{self, Fail};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use std::net::SocketAddr;

#[link(name = "fabric")]
unsafe extern "C" {
    fn fi_getinfo(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int;
    fn fi_freeinfo(info: *mut fi_info);
    fn fi_dupinfo(info: *const fi_info) -> *mut fi_info;
    fn fi_version() -> u32;
}

/// What is wanted of the fabric.
#[derive(Default)]
pub struct Hints<'a> {
    pub ep_type: fi_ep_type,
    pub caps: u64,
    pub domain: Option<&'a CStr>,
    pub fabric: Option<&'a CStr>,
    pub provider: Option<&'a CStr>,
    pub source: Option<SocketAddr>,
    /// Format and bytes of the address to reach.
    pub dest: Option<(u32, &'a [u8])>,
    pub max_msg_size: usize,
}

/// What an info says, as far as this program asks.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub caps: u64,
    pub domain_caps: u64,
    pub addr_format: u32,
    pub ep_type: fi_ep_type,
    pub max_msg_size: usize,
    pub inject_size: usize,
    pub tx_prefix: usize,
    pub rx_prefix: usize,
    pub tx_queue: usize,
    pub rx_queue: usize,
    pub mr_local: bool,
    pub av_type: fi_av_type,
}

/// An info, or a list of them of which only the first counts.
pub struct Info {
    raw: NonNull<fi_info>,
    pub facts: Facts,
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: came from the library and is freed once.
        unsafe { fi_freeinfo(self.raw.as_ptr()) }
    }
}

impl Info {
    /// Asks fi_getinfo.
    pub fn get(hints: &Hints) -> Result<Info, Fail> {
        // The library's API if it is older than ours: a newer one would be refused.
        let ours = (FI_MAJOR_VERSION as u32) << 16 | FI_MINOR_VERSION as u32;
        let hints = c_hints(hints).ok_or_else(|| say::failed("fi_allocinfo", -FI_ENOMEM))?;
        let mut found = ptr::null_mut();
        // SAFETY: the hints live until the call is over, all else may be NULL, `found` is a place to write to.
        let ret = unsafe {
            fi_getinfo(
                ours.min(fi_version()),
                ptr::null(),
                ptr::null(),
                0,
                hints.raw.as_ptr(),
                &mut found,
            )
        };
        if ret != 0 {
            return Err(say::failed("fi_getinfo", ret));
        }
        // SAFETY: success means an info of ours.
        unsafe { Info::own(found) }.ok_or_else(|| say::failed("fi_getinfo", -FI_ENODATA))
    }

    /// Takes an info over, and makes it receive from anyone unless that was asked otherwise (it never is). None where it
    /// is NULL or lacks a part.
    ///
    /// # Safety
    /// `raw` is NULL, or an info of the library that the caller has to free.
    pub(super) unsafe fn own(raw: *mut fi_info) -> Option<Info> {
        let mut owned = unowned(raw)?;
        // SAFETY: nobody else has it; its parts are NULL or whole.
        unsafe {
            let info = owned.raw.as_mut();
            let tx = *info.tx_attr.as_ref()?;
            let rx = info.rx_attr.as_mut()?;
            let (ep, domain) = (info.ep_attr.as_ref()?, info.domain_attr.as_ref()?);
            info.fabric_attr.as_ref()?;
            info.caps &= !FI_DIRECTED_RECV;
            rx.caps &= !FI_DIRECTED_RECV;
            let prefix = |mode: u64| {
                if mode & FI_MSG_PREFIX != 0 {
                    ep.msg_prefix_size
                } else {
                    0
                }
            };
            owned.facts = Facts {
                caps: info.caps,
                domain_caps: domain.caps,
                addr_format: info.addr_format,
                ep_type: ep.r#type,
                max_msg_size: ep.max_msg_size,
                inject_size: tx.inject_size,
                tx_prefix: prefix(tx.mode),
                rx_prefix: prefix(rx.mode),
                tx_queue: tx.size,
                rx_queue: rx.size,
                mr_local: domain.mr_mode & FI_MR_LOCAL != 0,
                av_type: domain.av_type,
            };
        }
        Some(owned)
    }

    pub(super) fn raw(&self) -> *mut fi_info {
        self.raw.as_ptr()
    }

    pub(super) fn fabric_attr(&self) -> *mut fi_fabric_attr {
        // SAFETY: ours, and open as long as we are.
        unsafe { self.raw.as_ref() }.fabric_attr
    }

    /// The whole info as the library writes it.
    pub fn text(&self) -> String {
        let mut buf = vec![0u8; 64 * 1024];
        // SAFETY: the buffer has the length that is told, and FI_TYPE_INFO reads an info.
        unsafe {
            let info: *const c_void = self.raw.as_ptr().cast_const().cast();
            super::fi_tostr_r(buf.as_mut_ptr().cast(), buf.len(), info, FI_TYPE_INFO)
        };
        let len = buf.iter().position(|c| *c == 0).unwrap_or(buf.len());
        buf.truncate(len);
        String::from_utf8_lossy(&buf).into_owned()
    }
}

/// An owner for an info whose facts are not read yet.
fn unowned(raw: *mut fi_info) -> Option<Info> {
    let facts = Facts {
        caps: 0,
        domain_caps: 0,
        addr_format: 0,
        ep_type: 0,
        max_msg_size: 0,
        inject_size: 0,
        tx_prefix: 0,
        rx_prefix: 0,
        tx_queue: 0,
        rx_queue: 0,
        mr_local: false,
        av_type: 0,
    };
    NonNull::new(raw).map(|raw| Info { raw, facts })
}

/// The hints as a C struct; None when memory is out.
fn c_hints(from: &Hints) -> Option<Info> {
    // SAFETY: a copy of nothing is an empty info with all its parts.
    let mut hints = unowned(unsafe { fi_dupinfo(ptr::null()) })?;
    // SAFETY: just made, nobody else has it; parts that are not NULL are whole. What it points to comes from malloc,
    // for fi_freeinfo frees it.
    unsafe {
        let info = hints.raw.as_mut();
        let (ep, domain) = (info.ep_attr.as_mut()?, info.domain_attr.as_mut()?);
        let fabric = info.fabric_attr.as_mut()?;
        info.caps = from.caps;
        info.mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX;
        ep.r#type = from.ep_type;
        ep.max_msg_size = from.max_msg_size;
        domain.mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
        let name = |name: Option<&CStr>| name.map_or(ptr::null_mut(), |name| libc::strdup(name.as_ptr()));
        domain.name = name(from.domain);
        fabric.name = name(from.fabric);
        fabric.prov_name = name(from.provider);
        if let Some(source) = &from.source {
            let (address, len) = super::socket::c_address(source);
            info.src_addr = copy((&raw const address).cast(), len)?;
            info.src_addrlen = len;
            info.addr_format = if source.is_ipv6() {
                FI_SOCKADDR_IN6
            } else {
                FI_SOCKADDR_IN
            };
        }
        if let Some((format, bytes)) = from.dest {
            info.dest_addr = copy(bytes.as_ptr().cast(), bytes.len())?;
            info.dest_addrlen = bytes.len();
            info.addr_format = format;
        }
    }
    Some(hints)
}

/// # Safety
/// `from` points to `len` bytes.
unsafe fn copy(from: *const c_void, len: usize) -> Option<*mut c_void> {
    // SAFETY: the memory is new and of that length; the caller promises the rest.
    unsafe {
        let to = libc::malloc(len.max(1));
        if to.is_null() {
            return None;
        }
        ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast(), len);
        Some(to)
    }
}
