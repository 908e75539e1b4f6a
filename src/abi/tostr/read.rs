//! C structs read into safe values, as far as their texts need them.
//!
//! Follows no more than that: authorization keys, memory lists and wait sets are not looked at, nor fields that older
//! programs do not have. Called by `abi::tostr` only.

use crate::abi::types::*;
use crate::api::info::model::{self, AuthKey, Info, Opaque};
use crate::api::tostr::{address::LONGEST, objects};
use core::ffi::{CStr, c_char, c_void};

/// # Safety
/// `text` is NULL or a C string.
unsafe fn string(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// As much of an address as its text needs.
///
/// # Safety
/// `addr` is NULL or has `len` bytes, or is a string within `len` bytes when the format says so.
unsafe fn address(format: u32, addr: *const c_void, len: usize) -> Option<Vec<u8>> {
    if addr.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let count = match format {
            FI_ADDR_STR => libc::strnlen(addr.cast(), len),
            _ => len.min(LONGEST),
        };
        Some(core::slice::from_raw_parts(addr.cast::<u8>(), count).to_vec())
    }
}

/// The parts of an info that its text shows. The nic is not among them: it speaks for itself.
///
/// # Safety
/// As `add_info`.
pub unsafe fn info(data: *const fi_info) -> Info {
    // SAFETY: the caller's promise.
    unsafe {
        Info {
            caps: (*data).caps,
            mode: (*data).mode,
            addr_format: (*data).addr_format,
            src_addr: address((*data).addr_format, (*data).src_addr, (*data).src_addrlen),
            dest_addr: address((*data).addr_format, (*data).dest_addr, (*data).dest_addrlen),
            handle: Opaque((*data).handle.addr()),
            tx: tx((*data).tx_attr),
            rx: rx((*data).rx_attr),
            ep: ep((*data).ep_attr),
            domain: domain((*data).domain_attr),
            fabric: fabric((*data).fabric_attr),
            nic: None,
        }
    }
}

/// # Safety
/// `attr` is NULL or good; so for the readers below.
pub unsafe fn tx(attr: *const fi_tx_attr) -> Option<model::TxAttr> {
    // SAFETY: the caller's promise.
    let attr = unsafe { attr.as_ref()? };
    Some(model::TxAttr {
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
    })
}

pub unsafe fn rx(attr: *const fi_rx_attr) -> Option<model::RxAttr> {
    // SAFETY: the caller's promise.
    let attr = unsafe { attr.as_ref()? };
    Some(model::RxAttr {
        caps: attr.caps,
        mode: attr.mode,
        op_flags: attr.op_flags,
        msg_order: attr.msg_order,
        comp_order: attr.comp_order,
        total_buffered_recv: attr.total_buffered_recv,
        size: attr.size,
        iov_limit: attr.iov_limit,
    })
}

pub unsafe fn ep(attr: *const fi_ep_attr) -> Option<model::EpAttr> {
    // SAFETY: the caller's promise.
    let attr = unsafe { attr.as_ref()? };
    Some(model::EpAttr {
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
        auth_key: AuthKey {
            size: attr.auth_key_size,
            bytes: None,
        },
    })
}

pub unsafe fn domain(attr: *const fi_domain_attr) -> Option<model::DomainAttr> {
    // SAFETY: the caller's promise; both sides of the union are the same enum.
    unsafe {
        let attr = attr.as_ref()?;
        Some(model::DomainAttr {
            domain: Opaque(attr.domain.addr()),
            name: string(attr.name),
            threading: attr.threading,
            control_progress: attr.control_progress,
            progress: attr.anonymous.progress,
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
            auth_key: AuthKey {
                size: attr.auth_key_size,
                bytes: None,
            },
            max_err_data: attr.max_err_data,
            mr_cnt: attr.mr_cnt,
            tclass: attr.tclass,
            max_ep_auth_key: attr.max_ep_auth_key,
            max_group_id: attr.max_group_id,
            max_cntr_value: attr.max_cntr_value,
            max_err_cntr_value: attr.max_err_cntr_value,
        })
    }
}

pub unsafe fn fabric(attr: *const fi_fabric_attr) -> Option<model::FabricAttr> {
    // SAFETY: the caller's promise.
    unsafe {
        let attr = attr.as_ref()?;
        Some(model::FabricAttr {
            fabric: Opaque(attr.fabric.addr()),
            name: string(attr.name),
            prov_name: string(attr.prov_name),
            prov_version: attr.prov_version,
            api_version: attr.api_version,
        })
    }
}

/// # Safety
/// `object` is good, its parts NULL or good.
pub unsafe fn nic(object: *const fid_nic) -> model::NicAttr {
    // SAFETY: the caller's promise; the bus is read as PCI only where it says so.
    unsafe {
        let device = (*object).device_attr.as_ref().map(|attr| model::DeviceAttr {
            name: string(attr.name),
            device_id: string(attr.device_id),
            device_version: string(attr.device_version),
            vendor_id: string(attr.vendor_id),
            driver: string(attr.driver),
            firmware: string(attr.firmware),
        });
        let bus = (*object).bus_attr.as_ref().map(|attr| model::BusAttr {
            bus_type: attr.bus_type,
            pci: if attr.bus_type == FI_BUS_PCI {
                pci(&attr.attr.pci)
            } else {
                model::PciAttr::default()
            },
        });
        let link = (*object).link_attr.as_ref().map(|attr| model::LinkAttr {
            address: string(attr.address),
            mtu: attr.mtu,
            speed: attr.speed,
            state: attr.state,
            network_type: string(attr.network_type),
        });
        model::NicAttr { device, bus, link }
    }
}

fn pci(attr: &fi_pci_attr) -> model::PciAttr {
    model::PciAttr {
        domain_id: attr.domain_id,
        bus_id: attr.bus_id,
        device_id: attr.device_id,
        function_id: attr.function_id,
    }
}

/// # Safety
/// `attr` is good; so for the readers below, up to the last field they name.
pub unsafe fn av(attr: *const fi_av_attr) -> objects::AvAttr {
    // SAFETY: the caller's promise.
    unsafe {
        objects::AvAttr {
            av_type: (*attr).r#type,
            count: (*attr).count,
            ep_per_node: (*attr).ep_per_node,
            name: string((*attr).name),
            flags: (*attr).flags,
        }
    }
}

pub unsafe fn mr(attr: *const fi_mr_attr) -> objects::MrAttr {
    // SAFETY: the caller's promise; either side of the union is a pointer, which is not followed.
    unsafe {
        objects::MrAttr {
            mr_iov: (*attr).anonymous.mr_iov.addr(),
            iov_count: (*attr).iov_count,
            access: (*attr).access,
            offset: (*attr).offset,
            requested_key: (*attr).requested_key,
            context: (*attr).context.addr(),
            auth_key_size: (*attr).auth_key_size,
            iface: (*attr).iface,
        }
    }
}

pub unsafe fn cq_err_entry(entry: *const fi_cq_err_entry) -> objects::CqErrEntry {
    // SAFETY: the caller's promise.
    unsafe {
        objects::CqErrEntry {
            op_context: (*entry).op_context.addr(),
            flags: (*entry).flags,
            len: (*entry).len,
            buf: (*entry).buf.addr(),
            data: (*entry).data,
            tag: (*entry).tag,
            olen: (*entry).olen,
            err: (*entry).err,
            err_data: (*entry).err_data.addr(),
            err_data_size: (*entry).err_data_size,
        }
    }
}
