//! struct fi_info and its attributes as text.
//!
//! An info is written in two halves, because the texts of its handle and its nic are made by the objects themselves,
//! and only `abi` can ask them: `head`, handle, `parts`, nic.

use super::enums::{self, name};
use super::flags;
use super::{Pointer, Text, address, or_null};
use crate::abi::types::FI_SHARED_CONTEXT;
use crate::api::info::model::{DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr};

/// What the C struct says of an address beside its bytes.
#[derive(Clone, Copy)]
pub struct AddressField {
    pub at: usize,
    pub len: usize,
}

/// The lines of an info before its handle.
pub fn head(text: &mut Text, info: &Info, src: AddressField, dest: AddressField) {
    let depth = text.open(0, "fi_info");
    flags::line(text, depth, "caps", flags::CAPS, info.caps);
    flags::line(text, depth, "mode", flags::MODE, info.mode);
    text.line(depth, "addr_format", name(enums::ADDR_FORMAT, info.addr_format));
    text.line(depth, "src_addrlen", src.len);
    text.line(depth, "dest_addrlen", dest.len);
    text.label(depth, "src_addr");
    address::add(text, info.addr_format, Pointer(src.at), info.src_addr.as_deref());
    text.end_line();
    text.label(depth, "dest_addr");
    address::add(text, info.addr_format, Pointer(dest.at), info.dest_addr.as_deref());
    text.end_line();
}

/// The lines of an info between its handle and its nic.
pub fn parts(text: &mut Text, info: &Info) {
    tx_attr(text, 1, info.tx.as_ref());
    rx_attr(text, 1, info.rx.as_ref());
    ep_attr(text, 1, info.ep.as_ref());
    domain_attr(text, 1, info.domain.as_ref());
    fabric_attr(text, 1, info.fabric.as_ref());
}

pub fn tx_attr(text: &mut Text, depth: usize, attr: Option<&TxAttr>) {
    let Some(attr) = attr else {
        return text.line(depth, "fi_tx_attr", "(null)");
    };
    let depth = text.open(depth, "fi_tx_attr");
    flags::line(text, depth, "caps", flags::CAPS, attr.caps);
    flags::line(text, depth, "mode", flags::MODE, attr.mode);
    flags::line(text, depth, "op_flags", flags::OP_FLAGS, attr.op_flags);
    flags::line(text, depth, "msg_order", flags::MSG_ORDER, attr.msg_order);
    text.line(depth, "inject_size", attr.inject_size);
    text.line(depth, "size", attr.size);
    text.line(depth, "iov_limit", attr.iov_limit);
    text.line(depth, "rma_iov_limit", attr.rma_iov_limit);
    text.line(depth, "tclass", format_args!("0x{:x}", attr.tclass));
}

pub fn rx_attr(text: &mut Text, depth: usize, attr: Option<&RxAttr>) {
    let Some(attr) = attr else {
        return text.line(depth, "fi_rx_attr", "(null)");
    };
    let depth = text.open(depth, "fi_rx_attr");
    flags::line(text, depth, "caps", flags::CAPS, attr.caps);
    flags::line(text, depth, "mode", flags::MODE, attr.mode);
    flags::line(text, depth, "op_flags", flags::OP_FLAGS, attr.op_flags);
    flags::line(text, depth, "msg_order", flags::MSG_ORDER, attr.msg_order);
    text.line(depth, "size", attr.size);
    text.line(depth, "iov_limit", attr.iov_limit);
}

pub fn ep_attr(text: &mut Text, depth: usize, attr: Option<&EpAttr>) {
    let Some(attr) = attr else {
        return text.line(depth, "fi_ep_attr", "(null)");
    };
    let depth = text.open(depth, "fi_ep_attr");
    text.line(depth, "type", name(enums::EP_TYPE, attr.ep_type));
    text.line(depth, "protocol", name(enums::PROTOCOL, attr.protocol));
    text.line(depth, "protocol_version", attr.protocol_version as i32);
    text.line(depth, "max_msg_size", attr.max_msg_size);
    text.line(depth, "msg_prefix_size", attr.msg_prefix_size);
    text.line(depth, "max_order_raw_size", attr.max_order_raw_size);
    text.line(depth, "max_order_war_size", attr.max_order_war_size);
    text.line(depth, "max_order_waw_size", attr.max_order_waw_size);
    text.line(depth, "mem_tag_format", format_args!("0x{:016x}", attr.mem_tag_format));
    context_line(text, depth, "tx_ctx_cnt", attr.tx_ctx_cnt);
    context_line(text, depth, "rx_ctx_cnt", attr.rx_ctx_cnt);
    text.line(depth, "auth_key_size", attr.auth_key.size.in_c());
}

pub fn domain_attr(text: &mut Text, depth: usize, attr: Option<&DomainAttr>) {
    let Some(attr) = attr else {
        return text.line(depth, "fi_domain_attr", "(null)");
    };
    let depth = text.open(depth, "fi_domain_attr");
    text.line(depth, "domain", Pointer(attr.domain.0));
    text.line(depth, "name", or_null(&attr.name));
    text.line(depth, "threading", name(enums::THREADING, attr.threading));
    text.line(depth, "progress", name(enums::PROGRESS, attr.progress));
    text.line(depth, "resource_mgmt", name(enums::RESOURCE_MGMT, attr.resource_mgmt));
    text.line(depth, "av_type", name(enums::AV_TYPE, attr.av_type));
    flags::line(text, depth, "mr_mode", flags::MR_MODE, attr.mr_mode as u32 as u64);
    text.line(depth, "mr_key_size", attr.mr_key_size);
    text.line(depth, "cq_data_size", attr.cq_data_size);
    domain_counts(text, depth, attr);
    flags::line(text, depth, "caps", flags::CAPS, attr.caps);
    flags::line(text, depth, "mode", flags::MODE, attr.mode);
    text.line(depth, "auth_key_size", attr.auth_key.size.in_c());
    text.line(depth, "max_err_data", attr.max_err_data);
    text.line(depth, "mr_cnt", attr.mr_cnt);
    text.line(depth, "tclass", format_args!("0x{:x}", attr.tclass));
    text.line(depth, "max_ep_auth_key", attr.max_ep_auth_key);
    text.line(depth, "max_group_id", attr.max_group_id);
    text.line(depth, "max_cntr_value", attr.max_cntr_value);
    text.line(depth, "max_err_cntr_value", attr.max_err_cntr_value);
}

fn domain_counts(text: &mut Text, depth: usize, attr: &DomainAttr) {
    let counts = [
        ("cq_cnt", attr.cq_cnt),
        ("ep_cnt", attr.ep_cnt),
        ("tx_ctx_cnt", attr.tx_ctx_cnt),
        ("rx_ctx_cnt", attr.rx_ctx_cnt),
        ("max_ep_tx_ctx", attr.max_ep_tx_ctx),
        ("max_ep_rx_ctx", attr.max_ep_rx_ctx),
        ("max_ep_stx_ctx", attr.max_ep_stx_ctx),
        ("max_ep_srx_ctx", attr.max_ep_srx_ctx),
        ("cntr_cnt", attr.cntr_cnt),
        ("mr_iov_limit", attr.mr_iov_limit),
    ];
    for (label, count) in counts {
        text.line(depth, label, count);
    }
}

pub fn fabric_attr(text: &mut Text, depth: usize, attr: Option<&FabricAttr>) {
    let Some(attr) = attr else {
        return text.line(depth, "fi_fabric_attr", "(null)");
    };
    let depth = text.open(depth, "fi_fabric_attr");
    text.line(depth, "name", or_null(&attr.name));
    text.line(depth, "prov_name", or_null(&attr.prov_name));
    text.line(
        depth,
        "prov_version",
        format_args!("{}.{}", attr.prov_version >> 16, attr.prov_version & 0xffff),
    );
    text.line(
        depth,
        "api_version",
        format_args!("{}.{}", attr.api_version >> 16, attr.api_version & 0xffff),
    );
}

fn context_line(text: &mut Text, depth: usize, label: &str, count: usize) {
    match count {
        FI_SHARED_CONTEXT => text.line(depth, label, "FI_SHARED_CONTEXT"),
        _ => text.line(depth, label, count),
    }
}
