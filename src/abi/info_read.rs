//! Reads a C fi_info, and its parts alone, into `api::info::model`; the other direction is in `info`.
//!
//! Called by `info`, `tostr` and `object::scalable`.

use super::layout::{Layout, prefix};
use super::types::*;
use super::{nic, text};
use crate::api::info::model::*;
use core::ffi::c_void;

/// # Safety
/// `from` is an fi_info of that layout, and so are its parts.
pub(super) unsafe fn read(from: *const fi_info, layout: &Layout) -> Info {
    // SAFETY: an fi_info of that layout; a part that is NULL stays absent.
    unsafe {
        let info = prefix(from, layout.info);
        Info {
            caps: info.caps,
            mode: info.mode,
            addr_format: info.addr_format,
            src_addr: bytes(info.src_addr, info.src_addrlen),
            dest_addr: bytes(info.dest_addr, info.dest_addrlen),
            handle: Opaque(info.handle as usize),
            tx: part(info.tx_attr, layout.tx).map(|attr| tx(&attr)),
            rx: part(info.rx_attr, layout.rx).map(|attr| rx(&attr)),
            ep: part(info.ep_attr, layout.ep).map(|attr| ep(&attr)),
            domain: part(info.domain_attr, layout.domain).map(|attr| domain(&attr)),
            fabric: part(info.fabric_attr, layout.fabric).map(|attr| fabric(&attr)),
            nic: info.nic.as_ref().map(|own| nic::read(own)),
        }
    }
}

/// # Safety
/// `from` is NULL or a struct of which `known` bytes are readable; zeros are a valid `T`.
unsafe fn part<T: Copy>(from: *const T, known: usize) -> Option<T> {
    // SAFETY: the caller vouches for `known` bytes.
    (!from.is_null()).then(|| unsafe { prefix(from, known) })
}

/// # Safety
/// `from` is NULL or points to `len` bytes.
unsafe fn bytes(from: *const c_void, len: usize) -> Option<Vec<u8>> {
    // SAFETY: the caller vouches for `len` bytes; a length that no object can have is a mistake and read as "no
    // address".
    (!from.is_null() && isize::try_from(len).is_ok())
        .then(|| unsafe { core::slice::from_raw_parts(from.cast::<u8>(), len) }.to_vec())
}

/// # Safety
/// `key` is NULL or points to `size` bytes, unless the size is FI_AV_AUTH_KEY.
unsafe fn auth_key(key: *const u8, size: usize) -> AuthKey {
    let known = if size == FI_AV_AUTH_KEY { 0 } else { size };
    // SAFETY: the key has as many bytes as its size says, unless the size was a mark.
    let bytes = unsafe { bytes(key.cast(), known) }.filter(|bytes| !bytes.is_empty());
    let size = KeySize::Is(size);
    AuthKey { size, bytes }
}

pub(super) fn tx(attr: &fi_tx_attr) -> TxAttr {
    TxAttr {
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

pub(super) fn rx(attr: &fi_rx_attr) -> RxAttr {
    RxAttr {
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

/// # Safety
/// The key of the attributes, if any, is readable.
pub(super) unsafe fn ep(attr: &fi_ep_attr) -> EpAttr {
    EpAttr {
        ep_type: attr.r#type,
        protocol: attr.protocol,
        protocol_version: attr.protocol_version,
        max_msg_size: attr.max_msg_size,
        msg_prefix_size: attr.msg_prefix_size,
        max_order_raw_size: attr.max_order_raw_size,
        max_order_war_size: attr.max_order_war_size,
        max_order_waw_size: attr.max_order_waw_size,
        mem_tag_format: attr.mem_tag_format,
        tx_ctx_cnt: attr.tx_ctx_cnt,
        rx_ctx_cnt: attr.rx_ctx_cnt,
        // SAFETY: the caller vouches for the key.
        auth_key: unsafe { auth_key(attr.auth_key, attr.auth_key_size) },
    }
}

/// # Safety
/// Name and key of the attributes, if any, are readable.
pub(super) unsafe fn domain(attr: &fi_domain_attr) -> DomainAttr {
    DomainAttr {
        domain: Opaque(attr.domain as usize),
        // SAFETY: the caller vouches for the name.
        name: unsafe { text::read(attr.name) },
        threading: attr.threading,
        control_progress: attr.control_progress,
        // SAFETY: both members of the union are the same integer.
        progress: unsafe { attr.anonymous.progress },
        resource_mgmt: attr.resource_mgmt,
        av_type: attr.av_type,
        mr_mode: attr.mr_mode,
        mr_key_size: attr.mr_key_size,
        cq_data_size: attr.cq_data_size,
        cq_cnt: attr.cq_cnt,
        ep_cnt: attr.ep_cnt,
        tx_ctx_cnt: attr.tx_ctx_cnt,
        rx_ctx_cnt: attr.rx_ctx_cnt,
        max_ep_tx_ctx: attr.max_ep_tx_ctx,
        max_ep_rx_ctx: attr.max_ep_rx_ctx,
        max_ep_stx_ctx: attr.max_ep_stx_ctx,
        max_ep_srx_ctx: attr.max_ep_srx_ctx,
        cntr_cnt: attr.cntr_cnt,
        mr_iov_limit: attr.mr_iov_limit,
        caps: attr.caps,
        mode: attr.mode,
        // SAFETY: the caller vouches for the key.
        auth_key: unsafe { auth_key(attr.auth_key, attr.auth_key_size) },
        max_err_data: attr.max_err_data,
        mr_cnt: attr.mr_cnt,
        tclass: attr.tclass,
        max_ep_auth_key: attr.max_ep_auth_key,
        max_group_id: attr.max_group_id,
        max_cntr_value: attr.max_cntr_value,
        max_err_cntr_value: attr.max_err_cntr_value,
    }
}

/// # Safety
/// The names in the attributes, if any, are readable.
pub(super) unsafe fn fabric(attr: &fi_fabric_attr) -> FabricAttr {
    FabricAttr {
        fabric: Opaque(attr.fabric as usize),
        // SAFETY: the caller vouches for the name.
        name: unsafe { text::read(attr.name) },
        // SAFETY: the caller vouches for the name.
        prov_name: unsafe { text::read(attr.prov_name) },
        prov_version: attr.prov_version,
        api_version: attr.api_version,
    }
}
