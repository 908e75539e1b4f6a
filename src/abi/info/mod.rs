//! struct fi_info between C and `api::info::model`: reading, writing, deep copies, freeing.
//!
//! Every struct that leaves the library has the size of the newest ABI and comes from malloc; every struct that comes in is
//! read by the layout its owner was compiled with. Called by `entry`, `compat`, `plugin` and `tostr`.

#[cfg(test)]
mod tests;

use super::layout::{ABI_1_10, CURRENT, Layout, prefix};
use super::memory::{self, NoMemory};
use super::text;
use super::types::*;
use super::{info_read, nic};
use crate::api::info::model::{AuthKey, DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr};
use core::ffi::{c_char, c_void};
use core::ptr::{null, null_mut};
use std::ffi::CString;

pub(super) use info_read::read;

/// An fi_info with all its parts and nothing in them.
pub(super) fn allocate() -> Result<*mut fi_info, NoMemory> {
    // SAFETY: all of these are numbers and pointers, for which zero is a value.
    unsafe {
        let mut tx: fi_tx_attr = core::mem::zeroed();
        let mut rx: fi_rx_attr = core::mem::zeroed();
        let mut ep: fi_ep_attr = core::mem::zeroed();
        let mut domain: fi_domain_attr = core::mem::zeroed();
        let mut fabric: fi_fabric_attr = core::mem::zeroed();
        let whole = fi_info {
            tx_attr: &mut tx,
            rx_attr: &mut rx,
            ep_attr: &mut ep,
            domain_attr: &mut domain,
            fabric_attr: &mut fabric,
            ..core::mem::zeroed()
        };
        dup(&whole, &CURRENT)
    }
}

/// A deep copy of one fi_info, without its successor.
///
/// # Safety
/// `from` is an fi_info of that layout, and so are its parts.
pub(super) unsafe fn dup(from: *const fi_info, layout: &Layout) -> Result<*mut fi_info, NoMemory> {
    // SAFETY: an fi_info of that layout. The copy is given its parts one by one, so that it can be freed at any step.
    unsafe {
        let old = prefix(from, layout.info);
        let new = memory::boxed(fi_info {
            next: null_mut(),
            src_addr: null_mut(),
            dest_addr: null_mut(),
            tx_attr: null_mut(),
            rx_attr: null_mut(),
            ep_attr: null_mut(),
            domain_attr: null_mut(),
            fabric_attr: null_mut(),
            nic: null_mut(),
            ..old
        })?;
        fill(new, &old, layout).inspect_err(|_| free(new, &CURRENT))?;
        Ok(new)
    }
}

/// # Safety
/// As `dup`; `new` is a whole fi_info without parts.
unsafe fn fill(new: *mut fi_info, old: &fi_info, layout: &Layout) -> Result<(), NoMemory> {
    // SAFETY: `old` and its parts are of that layout; parts are put in place before what hangs on them is copied.
    unsafe {
        (*new).src_addr = memory::bytes(old.src_addr, old.src_addrlen)?;
        (*new).dest_addr = memory::bytes(old.dest_addr, old.dest_addrlen)?;
        if !old.tx_attr.is_null() {
            (*new).tx_attr = memory::boxed(prefix(old.tx_attr, layout.tx))?;
        }
        if !old.rx_attr.is_null() {
            (*new).rx_attr = memory::boxed(prefix(old.rx_attr, layout.rx))?;
        }
        if !old.ep_attr.is_null() {
            let part = prefix(old.ep_attr, layout.ep);
            let bare = fi_ep_attr {
                auth_key: null_mut(),
                ..part
            };
            (*new).ep_attr = memory::boxed_in(bare, ABI_1_10.ep)?;
            (*(*new).ep_attr).auth_key = auth_key(part.auth_key, part.auth_key_size)?;
        }
        if !old.domain_attr.is_null() {
            let part = prefix(old.domain_attr, layout.domain);
            let bare = fi_domain_attr {
                name: null_mut(),
                auth_key: null_mut(),
                ..part
            };
            (*new).domain_attr = memory::boxed_in(bare, ABI_1_10.domain)?;
            (*(*new).domain_attr).name = memory::string(part.name)?;
            (*(*new).domain_attr).auth_key = auth_key(part.auth_key, part.auth_key_size)?;
        }
        if !old.fabric_attr.is_null() {
            let part = prefix(old.fabric_attr, layout.fabric);
            (*new).fabric_attr = memory::boxed(fi_fabric_attr {
                name: null_mut(),
                prov_name: null_mut(),
                ..part
            })?;
            (*(*new).fabric_attr).name = memory::string(part.name)?;
            (*(*new).fabric_attr).prov_name = memory::string(part.prov_name)?;
        }
        (*new).nic = nic::dup(old.nic)?;
    }
    Ok(())
}

/// A copy of a key. FI_AV_AUTH_KEY in place of a size means that there is no key.
///
/// # Safety
/// `key` is NULL or points to `size` bytes.
unsafe fn auth_key(key: *const u8, size: usize) -> Result<*mut u8, NoMemory> {
    let key = if size == FI_AV_AUTH_KEY { null() } else { key };
    // SAFETY: the key has as many bytes as its size says, unless the size was a mark.
    unsafe { memory::bytes(key, size) }
}

/// Frees a list of fi_info.
///
/// # Safety
/// `info` is NULL or a list of that layout whose memory came from malloc; it is not used again.
pub(super) unsafe fn free(mut info: *mut fi_info, layout: &Layout) {
    // SAFETY: a list of that layout, whose memory came from malloc and is not used again.
    unsafe {
        while !info.is_null() {
            let old = prefix(info, layout.info);
            memory::free(old.src_addr);
            memory::free(old.dest_addr);
            memory::free(old.tx_attr);
            memory::free(old.rx_attr);
            if !old.ep_attr.is_null() {
                memory::free(prefix(old.ep_attr, layout.ep).auth_key);
                memory::free(old.ep_attr);
            }
            if !old.domain_attr.is_null() {
                let part = prefix(old.domain_attr, layout.domain);
                memory::free(part.auth_key);
                memory::free(part.name);
                memory::free(old.domain_attr);
            }
            if !old.fabric_attr.is_null() {
                memory::free((*old.fabric_attr).name);
                memory::free((*old.fabric_attr).prov_name);
                memory::free(old.fabric_attr);
            }
            nic::free(old.nic);
            memory::free(info);
            info = old.next;
        }
    }
}

/// Keeps Rust-owned text alive while a C struct points to it.
#[derive(Default)]
pub(super) struct Borrowed(Vec<CString>);

impl Borrowed {
    pub(super) fn string(&mut self, text: &Option<String>) -> *mut c_char {
        let Some(text) = text else { return null_mut() };
        let owned = text::owned(text);
        // A CString's bytes stay where they are when the vector of CStrings grows.
        let place = owned.as_ptr().cast_mut();
        self.0.push(owned);
        place
    }
}

pub(super) fn tx(attr: &TxAttr) -> fi_tx_attr {
    fi_tx_attr {
        caps: attr.caps,
        mode: attr.mode,
        op_flags: attr.op_flags,
        msg_order: attr.msg_order,
        comp_order: attr.comp_order,
        inject_size: attr.inject_size,
        size: attr.size,
        iov_limit: attr.iov_limit,
        rma_iov_limit: attr.rma_iov_limit,
        tclass: attr.tclass,
    }
}

pub(super) fn rx(attr: &RxAttr) -> fi_rx_attr {
    fi_rx_attr {
        caps: attr.caps,
        mode: attr.mode,
        op_flags: attr.op_flags,
        msg_order: attr.msg_order,
        comp_order: attr.comp_order,
        total_buffered_recv: attr.total_buffered_recv,
        size: attr.size,
        iov_limit: attr.iov_limit,
    }
}

fn ep(ep: &EpAttr) -> fi_ep_attr {
    fi_ep_attr {
        r#type: ep.ep_type,
        protocol: ep.protocol,
        protocol_version: ep.protocol_version,
        max_msg_size: ep.max_msg_size,
        msg_prefix_size: ep.msg_prefix_size,
        max_order_raw_size: ep.max_order_raw_size,
        max_order_war_size: ep.max_order_war_size,
        max_order_waw_size: ep.max_order_waw_size,
        mem_tag_format: ep.mem_tag_format,
        tx_ctx_cnt: ep.tx_ctx_cnt,
        rx_ctx_cnt: ep.rx_ctx_cnt,
        auth_key_size: ep.auth_key.size.in_c(),
        auth_key: key_place(&ep.auth_key),
    }
}

fn domain(domain: &DomainAttr, keep: &mut Borrowed) -> fi_domain_attr {
    fi_domain_attr {
        domain: domain.domain.0 as *mut fid_domain,
        name: keep.string(&domain.name),
        threading: domain.threading,
        control_progress: domain.control_progress,
        anonymous: fi_domain_attr_anonymous {
            progress: domain.progress,
        },
        resource_mgmt: domain.resource_mgmt,
        av_type: domain.av_type,
        mr_mode: domain.mr_mode,
        mr_key_size: domain.mr_key_size,
        cq_data_size: domain.cq_data_size,
        cq_cnt: domain.cq_cnt,
        ep_cnt: domain.ep_cnt,
        tx_ctx_cnt: domain.tx_ctx_cnt,
        rx_ctx_cnt: domain.rx_ctx_cnt,
        max_ep_tx_ctx: domain.max_ep_tx_ctx,
        max_ep_rx_ctx: domain.max_ep_rx_ctx,
        max_ep_stx_ctx: domain.max_ep_stx_ctx,
        max_ep_srx_ctx: domain.max_ep_srx_ctx,
        cntr_cnt: domain.cntr_cnt,
        mr_iov_limit: domain.mr_iov_limit,
        caps: domain.caps,
        mode: domain.mode,
        auth_key: key_place(&domain.auth_key),
        auth_key_size: domain.auth_key.size.in_c(),
        max_err_data: domain.max_err_data,
        mr_cnt: domain.mr_cnt,
        tclass: domain.tclass,
        max_ep_auth_key: domain.max_ep_auth_key,
        max_group_id: domain.max_group_id,
        max_cntr_value: domain.max_cntr_value,
        max_err_cntr_value: domain.max_err_cntr_value,
    }
}

fn fabric(fabric: &FabricAttr, keep: &mut Borrowed) -> fi_fabric_attr {
    fi_fabric_attr {
        fabric: fabric.fabric.0 as *mut fid_fabric,
        name: keep.string(&fabric.name),
        prov_name: keep.string(&fabric.prov_name),
        prov_version: fabric.prov_version,
        api_version: fabric.api_version,
    }
}

/// A C fi_info with the content of a safe one.
pub(super) fn write(info: &Info) -> Result<*mut fi_info, NoMemory> {
    let mut keep = Borrowed::default();
    let mut tx = info.tx.as_ref().map(tx);
    let mut rx = info.rx.as_ref().map(rx);
    let mut ep = info.ep.as_ref().map(ep);
    let mut domain = info.domain.as_ref().map(|attr| domain(attr, &mut keep));
    let mut fabric = info.fabric.as_ref().map(|attr| fabric(attr, &mut keep));
    let borrowed = fi_info {
        next: null_mut(),
        caps: info.caps,
        mode: info.mode,
        addr_format: info.addr_format,
        src_addrlen: info.src_addr.as_ref().map_or(0, Vec::len),
        dest_addrlen: info.dest_addr.as_ref().map_or(0, Vec::len),
        src_addr: bytes_place(&info.src_addr),
        dest_addr: bytes_place(&info.dest_addr),
        handle: info.handle.0 as fid_t,
        tx_attr: tx.as_mut().map_or(null_mut(), |part| part),
        rx_attr: rx.as_mut().map_or(null_mut(), |part| part),
        ep_attr: ep.as_mut().map_or(null_mut(), |part| part),
        domain_attr: domain.as_mut().map_or(null_mut(), |part| part),
        fabric_attr: fabric.as_mut().map_or(null_mut(), |part| part),
        nic: null_mut(),
    };
    // SAFETY: every part lives in this function or in `info` until the copy is made.
    let new = unsafe { dup(&borrowed, &CURRENT)? };
    if let Some(nic) = &info.nic {
        // SAFETY: `new` is ours, whole, and not yet anyone's.
        unsafe { (*new).nic = nic::write(nic).inspect_err(|_| free(new, &CURRENT))? };
    }
    Ok(new)
}

fn bytes_place(bytes: &Option<Vec<u8>>) -> *mut c_void {
    bytes
        .as_ref()
        .map_or(null_mut(), |bytes| bytes.as_ptr().cast_mut().cast())
}

fn key_place(key: &AuthKey) -> *mut u8 {
    key.bytes.as_ref().map_or(null_mut(), |bytes| bytes.as_ptr().cast_mut())
}
