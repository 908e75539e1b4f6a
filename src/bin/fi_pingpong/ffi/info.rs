//! fi_getinfo: hints made from plain values, and an info that belongs to us.

use crate::abi::types::*;
use crate::common::library::{InfoList, name_for_info, tostr};
use crate::say::{self, Fail};
use core::ffi::{CStr, c_void};
use core::ptr;
use std::net::SocketAddr;

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
    list: InfoList,
    pub facts: Facts,
}

impl Info {
    /// Asks fi_getinfo.
    pub fn get(hints: &Hints) -> Result<Info, Fail> {
        let hints = c_hints(hints).ok_or_else(|| say::failed("fi_allocinfo", -FI_ENOMEM))?;
        let found = InfoList::ask(None, None, 0, Some(&hints)).map_err(|error| say::failed("fi_getinfo", error))?;
        Info::new(found).ok_or_else(|| say::failed("fi_getinfo", -FI_ENODATA))
    }

    /// Takes over an info that came with an event.
    ///
    /// # Safety
    /// `raw` is NULL, or an info of the library that the caller has to free.
    pub(super) unsafe fn own(raw: *mut fi_info) -> Option<Info> {
        // SAFETY: as the caller promises.
        Info::new(unsafe { InfoList::own(raw) })
    }

    /// Makes an info receive from anyone unless that was asked otherwise (it never is). None where there is none, or it
    /// lacks a part.
    fn new(list: InfoList) -> Option<Info> {
        // SAFETY: NULL or an info that nobody else has; its parts are NULL or whole.
        let facts = unsafe {
            let info = list.head().as_mut()?;
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
            Facts {
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
            }
        };
        Some(Info { list, facts })
    }

    pub(super) fn raw(&self) -> *mut fi_info {
        self.list.head()
    }

    pub(super) fn fabric_attr(&self) -> *mut fi_fabric_attr {
        // SAFETY: an `Info` is made of a list that has a first, which lives as long as the list.
        unsafe { (*self.raw()).fabric_attr }
    }

    /// The whole info as the library writes it.
    pub fn text(&self) -> String {
        // SAFETY: FI_TYPE_INFO reads an info.
        let text = unsafe { tostr(self.raw().cast_const().cast(), FI_TYPE_INFO) };
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The hints as a C struct; None when memory is out.
fn c_hints(from: &Hints) -> Option<InfoList> {
    let hints = InfoList::hints()?;
    // SAFETY: just made, nobody else has it; parts that are not NULL are whole. What it points to comes from malloc,
    // for fi_freeinfo frees it.
    unsafe {
        let info = hints.head().as_mut()?;
        let (ep, domain) = (info.ep_attr.as_mut()?, info.domain_attr.as_mut()?);
        let fabric = info.fabric_attr.as_mut()?;
        info.caps = from.caps;
        info.mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX;
        ep.r#type = from.ep_type;
        ep.max_msg_size = from.max_msg_size;
        domain.mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
        domain.name = name_for_info(from.domain);
        fabric.name = name_for_info(from.fabric);
        fabric.prov_name = name_for_info(from.provider);
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
