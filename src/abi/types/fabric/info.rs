//! What fi_getinfo takes and gives: struct fi_info and its attributes, and the device behind it.

use super::super::*;
use core::ffi::{c_char, c_int, c_uint, c_void};
use libc::size_t;

/// What the transmit side of an endpoint can or shall do.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_tx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
    pub rma_iov_limit: size_t,
    pub tclass: u32,
}

/// What the receive side of an endpoint can or shall do.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_rx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: size_t,
    pub size: size_t,
    pub iov_limit: size_t,
}

/// Endpoint kind, wire protocol and its limits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_ep_attr {
    pub r#type: fi_ep_type,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: size_t,
    pub msg_prefix_size: size_t,
    pub max_order_raw_size: size_t,
    pub max_order_war_size: size_t,
    pub max_order_waw_size: size_t,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub auth_key_size: size_t,
    pub auth_key: *mut u8,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_domain_attr_anonymous {
    pub data_progress: fi_progress,
    pub progress: fi_progress,
}

/// What holds for everything opened on one domain: threading, progress, memory registration, limits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_domain_attr {
    pub domain: *mut fid_domain,
    pub name: *mut c_char,
    pub threading: fi_threading,
    pub control_progress: fi_progress,
    pub anonymous: fi_domain_attr_anonymous,
    pub resource_mgmt: fi_resource_mgmt,
    pub av_type: fi_av_type,
    pub mr_mode: c_int,
    pub mr_key_size: size_t,
    pub cq_data_size: size_t,
    pub cq_cnt: size_t,
    pub ep_cnt: size_t,
    pub tx_ctx_cnt: size_t,
    pub rx_ctx_cnt: size_t,
    pub max_ep_tx_ctx: size_t,
    pub max_ep_rx_ctx: size_t,
    pub max_ep_stx_ctx: size_t,
    pub max_ep_srx_ctx: size_t,
    pub cntr_cnt: size_t,
    pub mr_iov_limit: size_t,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: size_t,
    pub max_err_data: size_t,
    pub mr_cnt: size_t,
    pub tclass: u32,
    pub max_ep_auth_key: size_t,
    pub max_group_id: u32,
    pub max_cntr_value: u64,
    pub max_err_cntr_value: u64,
}

/// Which fabric, by which provider. `api_version` is what the caller asked fi_getinfo for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_fabric_attr {
    pub fabric: *mut fid_fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

/// One way to communicate, as fi_getinfo offers it, or what a caller wants, as a hint.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_info {
    pub next: *mut fi_info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: size_t,
    pub dest_addrlen: size_t,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: fid_t,
    pub tx_attr: *mut fi_tx_attr,
    pub rx_attr: *mut fi_rx_attr,
    pub ep_attr: *mut fi_ep_attr,
    pub domain_attr: *mut fi_domain_attr,
    pub fabric_attr: *mut fi_fabric_attr,
    pub nic: *mut fid_nic,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_device_attr {
    pub name: *mut c_char,
    pub device_id: *mut c_char,
    pub device_version: *mut c_char,
    pub vendor_id: *mut c_char,
    pub driver: *mut c_char,
    pub firmware: *mut c_char,
}

c_enum! {
    pub enum fi_bus_type: c_uint {
        FI_BUS_UNSPEC = 0,
        FI_BUS_UNKNOWN = 0,
        FI_BUS_PCI = 1,
    }
}

/// Place of a device on the PCI bus.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_pci_attr {
    pub domain_id: u16,
    pub bus_id: u8,
    pub device_id: u8,
    pub function_id: u8,
}

/// @inline
#[repr(C)]
#[derive(Clone, Copy)]
pub union fi_bus_attr_attr {
    pub pci: fi_pci_attr,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_bus_attr {
    pub bus_type: fi_bus_type,
    pub attr: fi_bus_attr_attr,
}

c_enum! {
    pub enum fi_link_state: c_uint {
        FI_LINK_UNKNOWN = 0,
        FI_LINK_DOWN = 1,
        FI_LINK_UP = 2,
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_link_attr {
    pub address: *mut c_char,
    pub mtu: size_t,
    pub speed: size_t,
    pub state: fi_link_state,
    pub network_type: *mut c_char,
}
