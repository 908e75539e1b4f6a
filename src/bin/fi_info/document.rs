//! The same answers as JSON documents: infos, providers, variables, refusals.
//!
//! Field names are those of the C structs. A set of bits is an array of names, an enum is a name, and what the library
//! has no name for is its value in hex, so nothing is lost. Keys that protect a job are left out. Called by `main`.

use crate::abi::types::*;
use crate::ffi::{self, Device, Info, Infos, Link, Narrow, Nic, Param, Wide};
use crate::json::Json::{self, Array, Null, Number, Object, Text};
use crate::names::{CAPABILITY, MODE};
use crate::print::{param_kind, version, wanted};
use crate::why::Refusal;

pub fn infos(infos: &Infos, contains: Option<&[u8]>) -> Json {
    let texts = infos
        .iter()
        .map(|info| (info, info.text()))
        .filter(|(_, text)| wanted(text, contains));
    Array(texts.map(|(info, text)| one_info(info, &text)).collect())
}

pub fn providers(infos: &Infos) -> Json {
    let one = |info: Info| {
        let number = info.fabric().map_or(0, |fabric| fabric.prov_version);
        Object(vec![
            ("name", Json::text_or_null(info.provider())),
            ("version", Text(version(number))),
        ])
    };
    Array(infos.iter().map(one).collect())
}

pub fn variables(params: &[Param], contains: Option<&[u8]>) -> Json {
    let one = |param: &Param| {
        Object(vec![
            ("name", Json::text(&param.name)),
            (
                "type",
                Text(param_kind(param.kind).split(' ').next().unwrap_or_default().to_string()),
            ),
            ("help", Json::text_or_null(param.help.as_deref())),
            ("value", Json::text_or_null(param.value.as_deref())),
        ])
    };
    Array(params.iter().filter(|p| wanted(&p.name, contains)).map(one).collect())
}

/// What `--why` puts around the answer.
pub fn explained(refusals: &[Refusal], accepted: Json) -> Json {
    let one = |refusal: &Refusal| {
        Object(vec![
            ("provider", Text(refusal.provider.clone())),
            ("candidate", refusal.candidate.clone().map_or(Null, Text)),
            ("reason", Text(refusal.reason.clone())),
        ])
    };
    Object(vec![
        ("refused", Array(refusals.iter().map(one).collect())),
        ("accepted", accepted),
    ])
}

fn one_info(info: Info, text: &[u8]) -> Json {
    let raw = info.raw();
    Object(vec![
        ("caps", bits(raw.caps, Wide::Caps)),
        ("mode", bits(raw.mode, Wide::Mode)),
        ("addr_format", name(raw.addr_format, Narrow::AddrFormat)),
        ("src_addrlen", size(raw.src_addrlen)),
        ("dest_addrlen", size(raw.dest_addrlen)),
        ("src_addr", address(text, b"    src_addr: ", raw.src_addr.is_null())),
        ("dest_addr", address(text, b"    dest_addr: ", raw.dest_addr.is_null())),
        ("handle", pointer(raw.handle.addr())),
        ("tx_attr", info.tx().map_or(Null, tx_attr)),
        ("rx_attr", info.rx().map_or(Null, rx_attr)),
        ("ep_attr", info.ep().map_or(Null, ep_attr)),
        (
            "domain_attr",
            info.domain().map_or(Null, |attr| domain_attr(info, attr)),
        ),
        (
            "fabric_attr",
            info.fabric().map_or(Null, |attr| fabric_attr(info, attr)),
        ),
        ("nic", info.nic().map_or(Null, nic)),
    ])
}

fn tx_attr(attr: &fi_tx_attr) -> Json {
    Object(vec![
        ("caps", bits(attr.caps, Wide::Caps)),
        ("mode", bits(attr.mode, Wide::Mode)),
        ("op_flags", bits(attr.op_flags, Wide::OpFlags)),
        ("msg_order", bits(attr.msg_order, Wide::MsgOrder)),
        ("comp_order", bits(attr.comp_order, Wide::MsgOrder)),
        ("inject_size", size(attr.inject_size)),
        ("size", size(attr.size)),
        ("iov_limit", size(attr.iov_limit)),
        ("rma_iov_limit", size(attr.rma_iov_limit)),
        ("tclass", Number(attr.tclass.into())),
    ])
}

fn rx_attr(attr: &fi_rx_attr) -> Json {
    Object(vec![
        ("caps", bits(attr.caps, Wide::Caps)),
        ("mode", bits(attr.mode, Wide::Mode)),
        ("op_flags", bits(attr.op_flags, Wide::OpFlags)),
        ("msg_order", bits(attr.msg_order, Wide::MsgOrder)),
        ("comp_order", bits(attr.comp_order, Wide::MsgOrder)),
        ("total_buffered_recv", size(attr.total_buffered_recv)),
        ("size", size(attr.size)),
        ("iov_limit", size(attr.iov_limit)),
    ])
}

fn ep_attr(attr: &fi_ep_attr) -> Json {
    Object(vec![
        ("type", name(attr.r#type, Narrow::EpType)),
        ("protocol", name(attr.protocol, Narrow::Protocol)),
        ("protocol_version", Number(attr.protocol_version.into())),
        ("max_msg_size", size(attr.max_msg_size)),
        ("msg_prefix_size", size(attr.msg_prefix_size)),
        ("max_order_raw_size", size(attr.max_order_raw_size)),
        ("max_order_war_size", size(attr.max_order_war_size)),
        ("max_order_waw_size", size(attr.max_order_waw_size)),
        ("mem_tag_format", Text(format!("{:#018x}", attr.mem_tag_format))),
        ("tx_ctx_cnt", size(attr.tx_ctx_cnt)),
        ("rx_ctx_cnt", size(attr.rx_ctx_cnt)),
        ("auth_key_size", size(attr.auth_key_size)),
    ])
}

fn domain_attr(info: Info, attr: &fi_domain_attr) -> Json {
    Object(vec![
        ("domain", pointer(attr.domain.addr())),
        ("name", Json::text_or_null(info.domain_name())),
        ("threading", name(attr.threading, Narrow::Threading)),
        ("control_progress", name(attr.control_progress, Narrow::Progress)),
        (
            "data_progress",
            info.data_progress().map_or(Null, |p| name(p, Narrow::Progress)),
        ),
        ("resource_mgmt", resource_mgmt(attr.resource_mgmt)),
        ("av_type", name(attr.av_type, Narrow::AvType)),
        ("mr_mode", mr_mode(attr.mr_mode)),
        ("mr_key_size", size(attr.mr_key_size)),
        ("cq_data_size", size(attr.cq_data_size)),
        ("cq_cnt", size(attr.cq_cnt)),
        ("ep_cnt", size(attr.ep_cnt)),
        ("tx_ctx_cnt", size(attr.tx_ctx_cnt)),
        ("rx_ctx_cnt", size(attr.rx_ctx_cnt)),
        ("max_ep_tx_ctx", size(attr.max_ep_tx_ctx)),
        ("max_ep_rx_ctx", size(attr.max_ep_rx_ctx)),
        ("max_ep_stx_ctx", size(attr.max_ep_stx_ctx)),
        ("max_ep_srx_ctx", size(attr.max_ep_srx_ctx)),
        ("cntr_cnt", size(attr.cntr_cnt)),
        ("mr_iov_limit", size(attr.mr_iov_limit)),
        ("caps", bits(attr.caps, Wide::Caps)),
        ("mode", bits(attr.mode, Wide::Mode)),
        ("auth_key_size", size(attr.auth_key_size)),
        ("max_err_data", size(attr.max_err_data)),
        ("mr_cnt", size(attr.mr_cnt)),
        ("tclass", Number(attr.tclass.into())),
        ("max_ep_auth_key", size(attr.max_ep_auth_key)),
        ("max_group_id", Number(attr.max_group_id.into())),
        ("max_cntr_value", Number(attr.max_cntr_value)),
        ("max_err_cntr_value", Number(attr.max_err_cntr_value)),
    ])
}

fn fabric_attr(info: Info, attr: &fi_fabric_attr) -> Json {
    Object(vec![
        ("fabric", pointer(attr.fabric.addr())),
        ("name", Json::text_or_null(info.fabric_name())),
        ("prov_name", Json::text_or_null(info.provider())),
        ("prov_version", Text(version(attr.prov_version))),
        ("api_version", Text(version(attr.api_version))),
    ])
}

fn nic(nic: Nic) -> Json {
    Object(vec![
        ("device_attr", nic.device.map_or(Null, device)),
        ("bus_attr", nic.bus_type.map_or(Null, |kind| bus(kind, nic.pci))),
        ("link_attr", nic.link.map_or(Null, link)),
    ])
}

fn device(device: Device) -> Json {
    Object(vec![
        ("name", Json::text_or_null(device.name)),
        ("device_id", Json::text_or_null(device.device_id)),
        ("device_version", Json::text_or_null(device.device_version)),
        ("vendor_id", Json::text_or_null(device.vendor_id)),
        ("driver", Json::text_or_null(device.driver)),
        ("firmware", Json::text_or_null(device.firmware)),
    ])
}

fn bus(kind: fi_bus_type, pci: Option<fi_pci_attr>) -> Json {
    let kind = match kind {
        FI_BUS_UNKNOWN => Text("FI_BUS_UNKNOWN".to_string()),
        FI_BUS_PCI => Text("FI_BUS_PCI".to_string()),
        other => hex(other.into()),
    };
    let pci = pci.map_or(Null, |pci| {
        Object(vec![
            ("domain_id", Number(pci.domain_id.into())),
            ("bus_id", Number(pci.bus_id.into())),
            ("device_id", Number(pci.device_id.into())),
            ("function_id", Number(pci.function_id.into())),
        ])
    });
    Object(vec![("bus_type", kind), ("pci", pci)])
}

fn link(link: Link) -> Json {
    let state = match link.state {
        FI_LINK_UNKNOWN => Text("FI_LINK_UNKNOWN".to_string()),
        FI_LINK_DOWN => Text("FI_LINK_DOWN".to_string()),
        FI_LINK_UP => Text("FI_LINK_UP".to_string()),
        other => hex(other.into()),
    };
    Object(vec![
        ("address", Json::text_or_null(link.address)),
        ("mtu", size(link.mtu)),
        ("speed", size(link.speed)),
        ("state", state),
        ("network_type", Json::text_or_null(link.network_type)),
    ])
}

fn size(value: usize) -> Json {
    Number(value as u64)
}

fn hex(value: u64) -> Json {
    Text(format!("{value:#x}"))
}

/// An address in this process; null for none.
fn pointer(address: usize) -> Json {
    if address == 0 { Null } else { hex(address as u64) }
}

fn name(value: u32, kind: Narrow) -> Json {
    match ffi::name_of_u32(value, kind).as_slice() {
        b"" | b"Unknown" => hex(value.into()),
        name => Json::text(name),
    }
}

/// Resource management by name; fi_tostr has no datatype for it.
fn resource_mgmt(value: fi_resource_mgmt) -> Json {
    match value {
        FI_RM_UNSPEC => Text("FI_RM_UNSPEC".to_string()),
        FI_RM_DISABLED => Text("FI_RM_DISABLED".to_string()),
        FI_RM_ENABLED => Text("FI_RM_ENABLED".to_string()),
        other => hex(other.into()),
    }
}

/// The names of the bits, lowest first. Each bit is asked for alone, so that one without a name is not left out.
fn bits(value: u64, kind: Wide) -> Json {
    named_bits(value, |bit| match ffi::name_of_u64(bit, kind) {
        name if name.is_empty() => own_name(bit, kind).unwrap_or_default().as_bytes().to_vec(),
        name => name,
    })
}

/// Names of bits that fi_tostr does not know.
fn own_name(bit: u64, kind: Wide) -> Option<&'static str> {
    match (kind, bit) {
        (Wide::OpFlags, FI_COMMIT_COMPLETE) => Some("FI_COMMIT_COMPLETE"),
        (Wide::MsgOrder, FI_ORDER_DATA) => Some("FI_ORDER_DATA"),
        (Wide::Caps, _) => CAPABILITY.of(bit),
        (Wide::Mode, _) => MODE.of(bit),
        (Wide::OpFlags | Wide::MsgOrder, _) => None,
    }
}

fn mr_mode(value: i32) -> Json {
    named_bits(u64::from(value as u32), |bit| {
        ffi::name_of_u32(bit as u32, Narrow::MrMode)
    })
}

fn named_bits(value: u64, name: impl Fn(u64) -> Vec<u8>) -> Json {
    let set = (0..u64::BITS).map(|at| 1u64 << at).filter(|bit| value & bit != 0);
    let one = |bit| match name(bit).as_slice() {
        b"" => hex(bit),
        name => Json::text(name),
    };
    Array(set.map(one).collect())
}

/// The source address of an info as the library writes it.
pub fn address_of(info: Info) -> Option<Vec<u8>> {
    let there = !info.raw().src_addr.is_null();
    address_in(&info.text(), b"    src_addr: ")
        .filter(|_| there)
        .map(<[u8]>::to_vec)
}

/// An address as the library writes it, taken from its text of the whole info, the only one that has it.
fn address(text: &[u8], label: &[u8], absent: bool) -> Json {
    Json::text_or_null(address_in(text, label).filter(|_| !absent))
}

fn address_in<'a>(text: &'a [u8], label: &[u8]) -> Option<&'a [u8]> {
    text.split(|c| *c == b'\n').find_map(|line| line.strip_prefix(label))
}
