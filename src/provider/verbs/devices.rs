//! The devices of this machine as offers of fi_getinfo: one for each address that leads to a device.
//!
//! Names are those of the C library's provider, as programs and scripts have them: the domain is the device, the fabric
//! the subnet of its first port. Looked for once, and again with FI_RESCAN. Called by `mod`.

use super::endpoint::failed;
use super::{NAME, datagram, settings};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::format_of;
use crate::api::info::model::*;
use crate::api::info::query::Query;
use crate::sys::interfaces;
use crate::sys::rdma::{self, Attributes, Device, Id, LinkLayer, Pd, Port, Queues, Sizes, Transport};
use crate::sys::resolve::to_bytes;
use crate::transport::verbs::MARK_ROOM;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// What was found the last time.
static FOUND: Mutex<Vec<Info>> = Mutex::new(Vec::new());

/// All offers of connected endpoints and of datagrams. Nothing is kept of a search that found nothing: devices may
/// come. Who finds another thread at it looks for himself, as that thread may have stayed behind at a fork.
pub(super) fn offers(again: bool) -> Vec<Info> {
    let Ok(mut found) = FOUND.try_lock() else {
        return look();
    };
    if again || found.is_empty() {
        *found = look();
    }
    found.clone()
}

/// The name of a domain's device.
pub(super) fn device_of(domain: &str) -> &str {
    domain.strip_suffix(datagram::SUFFIX).unwrap_or(domain)
}

/// The device of this name.
pub(super) fn find(name: &str) -> Option<Device> {
    rdma::devices().ok()?.into_iter().find(|device| device.name() == name)
}

/// The protection domain of a domain's device.
pub(super) fn open(info: &Info) -> Result<Arc<Pd>> {
    let wanted = info.domain_name().unwrap_or_default();
    let device = find(device_of(wanted)).ok_or(Errno(FI_ENODEV))?;
    let pd = device.protection_domain();
    pd.map_err(|error| failed(format_args!("fi_domain: {wanted}"), &error))
}

fn look() -> Vec<Info> {
    let devices = match rdma::devices() {
        Ok(devices) => devices,
        Err(why) => {
            log!(Info, Core, "skipped {NAME}: {why}");
            return Vec::new();
        }
    };
    let wanted = settings::get().devices;
    let addresses = addresses();
    let mut offers = Vec::new();
    for device in devices {
        let name = device.name();
        if !begins_with_one(&name, &wanted) {
            log!(Info, Core, "skipped {NAME} ({name}): FI_VERBS_DEVICE_NAME names others");
            continue;
        }
        if device.transport() == Transport::Other {
            log!(
                Info,
                Core,
                "skipped {NAME} ({name}): it is neither InfiniBand nor RoCE nor iWARP"
            );
            continue;
        }
        let own = addresses
            .iter()
            .filter(|(of, _)| *of == device)
            .map(|(_, address)| *address);
        match describe(&device) {
            Ok(told) => {
                offers.extend(at_addresses(&told, own));
                offers.extend(datagram::offer(&told));
            }
            Err(why) => log!(Info, Core, "skipped {NAME} ({name}): {why}"),
        }
    }
    offers
}

fn at_addresses(told: &Told, addresses: impl Iterator<Item = SocketAddr>) -> Vec<Info> {
    let offers: Vec<Info> = addresses.map(|address| offer(told, &address)).collect();
    if offers.is_empty() {
        let name = &told.name;
        log!(
            Info,
            Core,
            "skipped {NAME} ({name}): no IP address leads to it; give its network interface one"
        );
    }
    offers
}

/// The addresses of this machine with the devices that they lead to.
fn addresses() -> Vec<(Device, SocketAddr)> {
    let wanted = settings::get().interfaces;
    let interfaces = interfaces::list().unwrap_or_default();
    let names: Vec<String> = interfaces.iter().map(|one| one.name.clone()).collect();
    let usable = interfaces
        .into_iter()
        .filter(|one| !one.loopback && is_wanted(&one.name, &wanted, &names));
    usable
        .filter_map(|one| Some((device_at(&one.address)?, one.address)))
        .collect()
}

/// Whether a device's name begins with one of these, in capitals or not; with none of them all are meant.
fn begins_with_one(name: &str, wanted: &[String]) -> bool {
    let begins = |wanted: &String| {
        name.get(..wanted.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(wanted))
    };
    wanted.is_empty() || wanted.iter().any(begins)
}

/// Whether one of these names an interface. It does by its whole name, or by its beginning where no interface has that
/// for its whole name.
fn is_wanted(name: &str, wanted: &[String], all: &[String]) -> bool {
    let names = |wanted: &String| match all.contains(wanted) {
        true => name == wanted,
        false => name.starts_with(wanted.as_str()),
    };
    wanted.is_empty() || wanted.iter().any(names)
}

fn device_at(address: &SocketAddr) -> Option<Device> {
    let mut id = Id::open().ok()?;
    id.bind(address).ok()?;
    id.device()
}

/// What is told of a device, apart from addresses.
pub(super) struct Told {
    pub name: String,
    pub transport: Transport,
    pub attributes: Attributes,
    /// The first that is up.
    pub port: Port,
    /// Of the first port's GID.
    subnet: u64,
    /// Bytes that a request can carry within itself.
    inline: usize,
    /// The same of a datagram, if the device sends any.
    pub datagram_inline: Option<usize>,
}

/// The first port of a device that is up, and its number.
pub(super) fn port_of(device: &Device, ports: u8) -> io::Result<(u8, Port)> {
    first_up((1..=ports).filter_map(|number| Some((number, device.port(number).ok()?))))
}

fn first_up(mut ports: impl Iterator<Item = (u8, Port)>) -> io::Result<(u8, Port)> {
    let up = ports.find(|(_, port)| port.up == Some(true));
    up.ok_or_else(|| io::Error::other("no port of it is up"))
}

fn describe(device: &Device) -> io::Result<Told> {
    let settings = settings::get();
    let attributes = device.attributes()?;
    let (number, port) = port_of(device, attributes.ports)?;
    let gid = device.gid(1, settings.gid)?;
    let subnet = gid.first_chunk().map_or(0, |prefix| u64::from_be_bytes(*prefix));
    Ok(Told {
        name: device.name(),
        transport: device.transport(),
        datagram_inline: datagram::inline(device, number),
        inline: inline(device, settings.inline)?,
        attributes,
        port,
        subnet,
    })
}

/// How many bytes a request of the device's carries within itself, of so many that are wanted.
fn inline(device: &Device, wanted: usize) -> io::Result<usize> {
    let pd = device.protection_domain()?;
    let queues = Queues::open(&pd, 1)?;
    let given = least_with_inline(wanted).with_less_inline(|sizes| queues.try_pair(sizes))?;
    Ok((given as usize).min(wanted))
}

/// Of a queue pair that only tells how many bytes its requests carry.
pub(super) fn least_with_inline(inline: usize) -> Sizes {
    Sizes {
        sends: 1,
        receives: 1,
        send_pieces: 1,
        receive_pieces: 1,
        inline: inline as u32,
    }
}

const SEND: u64 = FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
const RECV: u64 = FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
pub(super) const REACH: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;

/// A reliable connection carries out requests in order; reads may be overtaken by what comes after them.
pub(super) const ORDER: u64 = FI_ORDER_RAR
    | FI_ORDER_RAW
    | FI_ORDER_RAS
    | FI_ORDER_WAW
    | FI_ORDER_WAS
    | FI_ORDER_SAW
    | FI_ORDER_SAS
    | FI_ORDER_RMA_RAR
    | FI_ORDER_RMA_RAW
    | FI_ORDER_RMA_WAW
    | FI_ORDER_ATOMIC_RAR
    | FI_ORDER_ATOMIC_RAW
    | FI_ORDER_ATOMIC_WAW;

/// What is offered to a program that asks for no sizes.
fn offer(told: &Told, address: &SocketAddr) -> Info {
    let (settings, most) = (settings::get(), &told.attributes);
    let iwarp = told.transport == Transport::Iwarp;
    let atomics = if most.atomics { FI_ATOMIC } else { 0 };
    let levels = if iwarp {
        FI_INJECT_COMPLETE
    } else {
        FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE
    };
    Info {
        caps: SEND | RECV | REACH | atomics,
        mode: FI_RX_CQ_DATA,
        addr_format: format_of(address),
        src_addr: Some(to_bytes(address)),
        tx: Some(TxAttr {
            caps: SEND | atomics,
            op_flags: FI_COMPLETION | FI_INJECT | levels,
            msg_order: ORDER,
            inject_size: told.inline,
            size: settings.tx_size.min(sends(most)),
            iov_limit: settings.tx_pieces.min(most.pieces),
            rma_iov_limit: 1,
            ..TxAttr::default()
        }),
        rx: Some(RxAttr {
            caps: RECV | atomics,
            mode: FI_RX_CQ_DATA,
            op_flags: FI_COMPLETION,
            msg_order: ORDER,
            size: settings.rx_size.min(most.requests),
            iov_limit: settings.rx_pieces.min(most.pieces),
            ..RxAttr::default()
        }),
        ep: Some(EpAttr {
            ep_type: FI_EP_MSG,
            protocol: if iwarp { FI_PROTO_IWARP } else { FI_PROTO_RDMA_CM_IB_RC },
            protocol_version: 1,
            max_msg_size: told.port.max_message,
            max_order_raw_size: told.port.max_message,
            max_order_waw_size: told.port.max_message,
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }),
        domain: Some(domain(told, iwarp)),
        fabric: Some(fabric(told, iwarp)),
        nic: Some(nic(told)),
        ..Info::default()
    }
}

pub(super) fn fabric(told: &Told, iwarp: bool) -> FabricAttr {
    FabricAttr {
        name: Some(if iwarp {
            "Ethernet-iWARP".into()
        } else {
            format!("IB-0x{:x}", told.subnet)
        }),
        prov_version: <super::Verbs as super::OnEngine>::VERSION,
        ..FabricAttr::default()
    }
}

pub(super) fn domain(told: &Told, iwarp: bool) -> DomainAttr {
    let most = &told.attributes;
    DomainAttr {
        name: Some(told.name.clone()),
        threading: FI_THREAD_SAFE,
        control_progress: FI_PROGRESS_AUTO,
        progress: FI_PROGRESS_AUTO,
        resource_mgmt: FI_RM_ENABLED,
        av_type: FI_AV_UNSPEC,
        mr_mode: FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_BASIC,
        mr_key_size: size_of::<u32>(),
        cq_data_size: if iwarp { 0 } else { size_of::<u32>() },
        cq_cnt: most.completion_queues,
        ep_cnt: most.queue_pairs,
        tx_ctx_cnt: most.queue_pairs.min(1024),
        rx_ctx_cnt: most.queue_pairs.min(1024),
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_srx_ctx: most.shared_queues,
        cntr_cnt: 1024,
        mr_iov_limit: 1,
        caps: REACH,
        mr_cnt: most.regions,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        ..DomainAttr::default()
    }
}

/// What may be asked for.
pub(super) fn most(offer: &Info) -> Info {
    let mut most = offer.clone();
    let device = offer
        .domain_name()
        .map(device_of)
        .and_then(find)
        .and_then(|device| device.attributes().ok());
    let Some(device) = device else { return most };
    if let Some(tx) = &mut most.tx {
        (tx.size, tx.iov_limit) = (sends(&device), device.pieces.min(crate::util::user::IOV_LIMIT));
    }
    if let Some(rx) = &mut most.rx {
        (rx.size, rx.iov_limit) = (device.requests, device.pieces.min(crate::util::user::IOV_LIMIT));
    }
    most
}

/// How many sends a queue has room for.
fn sends(device: &Attributes) -> usize {
    device.requests.saturating_sub(MARK_ROOM as usize)
}

/// Only who wants remote CQ data must know that a write with it takes a receive (FI_RX_CQ_DATA). Others are told that
/// there is none, so that an answer can be the hints of the next query.
pub(super) fn drop_unasked_mode(offer: &mut Info, query: &Query) {
    let Some(hints) = query.hints else { return };
    if offer.ep_type() != FI_EP_MSG {
        return;
    }
    let data = hints.domain.as_ref().is_some_and(|domain| domain.cq_data_size != 0);
    let rx = hints.rx.as_ref().map_or(0, |rx| rx.mode);
    if data || (hints.mode | rx) & FI_RX_CQ_DATA != 0 {
        return;
    }
    offer.mode &= !FI_RX_CQ_DATA;
    if let Some(domain) = &mut offer.domain {
        domain.cq_data_size = 0;
    }
    if let Some(rx) = &mut offer.rx {
        rx.mode &= !FI_RX_CQ_DATA;
    }
}

pub(super) fn nic(told: &Told) -> NicAttr {
    let (device, port) = (&told.attributes, &told.port);
    NicAttr {
        device: Some(DeviceAttr {
            name: Some(told.name.clone()),
            device_id: Some(format!("0x{:04x}", device.part_id)),
            device_version: Some(device.version.to_string()),
            vendor_id: Some(format!("0x{:04x}", device.vendor_id)),
            driver: None,
            firmware: Some(device.firmware.clone()),
        }),
        bus: Some(bus(&told.name)),
        link: Some(LinkAttr {
            address: None,
            mtu: port.mtu,
            speed: port.speed as usize,
            state: match port.up {
                Some(true) => FI_LINK_UP,
                Some(false) => FI_LINK_DOWN,
                None => FI_LINK_UNKNOWN,
            },
            network_type: Some(
                match port.link {
                    LinkLayer::InfiniBand => "InfiniBand",
                    LinkLayer::Ethernet => "Ethernet",
                    LinkLayer::Unknown => "Unknown",
                }
                .into(),
            ),
        }),
    }
}

/// Where on the bus the device is, by the name of its folder in /sys; devices in software are nowhere.
fn bus(name: &str) -> BusAttr {
    let place = std::fs::canonicalize(format!("/sys/class/infiniband/{name}/device")).ok();
    let folder = place.as_deref().and_then(|place| place.file_name()?.to_str());
    folder.and_then(pci).map_or(BusAttr::default(), |pci| BusAttr {
        bus_type: FI_BUS_PCI,
        pci,
    })
}

/// Of `0000:5e:00.1`.
fn pci(text: &str) -> Option<PciAttr> {
    let (rest, function) = text.split_once('.')?;
    let mut parts = rest.split(':').map(|part| u16::from_str_radix(part, 16).ok());
    let (domain_id, bus, device) = (parts.next()??, parts.next()??, parts.next()??);
    Some(PciAttr {
        domain_id,
        bus_id: u8::try_from(bus).ok()?,
        device_id: u8::try_from(device).ok()?,
        function_id: u8::from_str_radix(function, 16).ok()?,
    })
}

#[cfg(test)]
pub(super) mod tests;
