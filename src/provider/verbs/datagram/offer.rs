//! What fi_getinfo answers for endpoints of datagrams: one info for each device that sends any, by the names that the C
//! library's provider gives them.

use super::super::devices::{self, ORDER, REACH, Told, least_with_inline};
use super::super::{NAME, settings};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::*;
use crate::api::info::query::Query;
use crate::sys::rdma::{DatagramPair, Device, Transport};
use crate::transport::verbs::datagram::{Address, PREFIX};

/// What the name of a device's domain of datagrams ends with.
pub(in super::super) const SUFFIX: &str = "-dgram";

const SEND: u64 = FI_MSG | FI_SEND;
const RECV: u64 = FI_MSG | FI_RECV | FI_SOURCE;

/// Bytes that a datagram's request carries within itself; none: the device sends no datagrams.
pub(in super::super) fn inline(device: &Device, port: u8) -> Option<usize> {
    if device.transport() != Transport::InfiniBand {
        return None;
    }
    let pd = device.protection_domain().ok()?;
    let wanted = settings::get().inline;
    let given = least_with_inline(wanted)
        .with_less_inline(|sizes| DatagramPair::inline(&pd, port, sizes))
        .inspect_err(|error| log!(Info, Core, "skipped {NAME} ({}{SUFFIX}): {error}", device.name()))
        .ok()?;
    Some((given as usize).min(wanted))
}

pub(in super::super) fn offer(told: &Told) -> Option<Info> {
    let inject_size = told.datagram_inline?;
    let (settings, most) = (settings::get(), &told.attributes);
    let longest = told.port.mtu.min(told.port.max_message);
    Some(Info {
        caps: SEND | RECV | REACH,
        mode: FI_MSG_PREFIX,
        addr_format: FI_ADDR_IB_UD,
        tx: Some(TxAttr {
            caps: SEND,
            op_flags: FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
            msg_order: ORDER,
            inject_size,
            size: settings.tx_size.min(most.requests),
            iov_limit: settings.tx_pieces.min(most.pieces),
            rma_iov_limit: 1,
            ..TxAttr::default()
        }),
        rx: Some(RxAttr {
            caps: RECV,
            mode: FI_MSG_PREFIX,
            op_flags: FI_COMPLETION,
            msg_order: ORDER,
            size: settings.rx_size.min(most.requests),
            iov_limit: settings.rx_pieces.min(most.pieces),
            ..RxAttr::default()
        }),
        ep: Some(EpAttr {
            ep_type: FI_EP_DGRAM,
            protocol: FI_PROTO_IB_UD,
            protocol_version: 1,
            max_msg_size: longest,
            msg_prefix_size: PREFIX,
            max_order_raw_size: longest,
            max_order_waw_size: longest,
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }),
        domain: Some(DomainAttr {
            name: Some(format!("{}{SUFFIX}", told.name)),
            // Each queue pair has its own receives.
            max_ep_srx_ctx: 0,
            ..devices::domain(told, false)
        }),
        fabric: Some(devices::fabric(told, false)),
        nic: Some(devices::nic(told)),
        ..Info::default()
    })
}

/// Source and destination of an answer. Nodes are named by the text of their address: there is no server of names.
pub(in super::super) fn address(info: &mut Info, query: &Query) -> Result<()> {
    let nothing = Errno(FI_ENODATA);
    let hinted = query
        .hints
        .filter(|hints| matches!(hints.addr_format, FI_FORMAT_UNSPEC | FI_ADDR_IB_UD));
    let whole = |bytes: &Option<Vec<u8>>| bytes.clone().filter(|bytes| bytes.len() == Address::SIZE);
    info.src_addr = hinted.and_then(|hints| whole(&hints.src_addr));
    info.dest_addr = hinted.and_then(|hints| whole(&hints.dest_addr));
    let named = query.node.and_then(Address::from_text);
    if query.has_flag(FI_SOURCE) {
        let service = query.service.map(str::parse::<u16>).transpose().map_err(|_| nothing)?;
        let mut source = named.unwrap_or_default();
        source.service = service.unwrap_or(source.service);
        info.src_addr = Some(source.to_bytes().to_vec());
    } else if query.node.is_some() {
        let Some(named) = named else {
            log!(
                Info,
                Core,
                "skipped {NAME} of datagrams: a node is named by its address, fi_addr_ib_ud://..."
            );
            return Err(nothing);
        };
        info.dest_addr = Some(named.to_bytes().to_vec());
    }
    // As the C library's provider: an address that says nothing.
    info.src_addr.get_or_insert_with(|| vec![0; Address::SIZE]);
    Ok(())
}
