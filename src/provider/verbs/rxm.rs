//! Provider `verbs;ofi_rxm`: reliable endpoints on RDMA devices, by the name and protocol of the C library's layer over
//! its connected ones.
//!
//! The engine over `transport::verbs::reliable`. Devices, addresses and names are those of `verbs`.
//!
//! Each device is offered twice. A program that takes the device's keys and addresses (FI_MR_PROV_KEY, FI_MR_VIRT_ADDR,
//! FI_MR_ALLOCATED) and wants no report of what peers do (FI_RMA_EVENT) gets a domain in which devices do all reads and
//! writes; every other program one in which the engine does them. Atomics are the engine's, unless the user chooses the
//! device's for the former (FI_OFI_RXM_DEVICE_ATOMICS).

use super::devices;
use super::endpoint::{Registry, failed};
use super::{NAME, kept, rxm_settings, settings};
use crate::abi::types::*;
use crate::api::av::{AddressKind, SocketAddr as SocketKind};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::address::of_interface;
use crate::api::info::check::judge_all;
use crate::api::info::model::{FabricAttr, Info};
use crate::api::info::query::Query;
use crate::api::mr::registrar::Registrar;
use crate::engine::op::AtomicOp;
use crate::engine::port::{Limits, PeerId};
use crate::provider::on_engine::{OnEngine, Rdm};
use crate::sys::rdma::Pd;
use crate::sys::resolve::from_bytes;
use crate::transport::connecting::address;
use crate::transport::verbs::reliable::{Card, Config, DomainMemory, Reliable};
use crate::transport::verbs::{Nic, Registrations, amos};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Sends up to this size can be injected.
const INJECT_SIZE: usize = 16 << 10;

pub struct VerbsRxm;

/// What the endpoints of a domain share.
pub struct RxmDomain {
    pd: Arc<Pd>,
    memory: DomainMemory,
}

impl OnEngine for VerbsRxm {
    type Transport = Reliable<Card>;
    type Shared = RxmDomain;

    const NAME: &'static str = "ofi_rxm";
    const WHOLE_NAME: &'static str = "verbs;ofi_rxm";

    /// Below that of every plug-in, which stands on other providers too and goes first.
    const VERSION: u32 = 100 << 16;

    fn start() -> VerbsRxm {
        settings::init();
        rxm_settings::init();
        VerbsRxm
    }

    fn offers(&self) -> Vec<Info> {
        all(false)
    }

    fn fitting(&self, query: &Query) -> Vec<Info> {
        let mut fitting = judge_all(Self::WHOLE_NAME, &all(query.has_flag(FI_RESCAN)), query);
        // To a program that sets no mr_mode a domain with the device's keys is offered without FI_REMOTE_*, as nobody
        // could reach its memory there. The other one, which has them, comes first then.
        fitting.sort_by_key(|info| info.caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) == 0);
        fitting
    }

    fn address(&self, info: &mut Info, query: &Query) -> Result<()> {
        of_interface(info, query)
    }

    fn address_kind(format: u32) -> Arc<dyn AddressKind> {
        Arc::new(SocketKind::new(format))
    }

    fn limits() -> Limits {
        rxm_settings::get().config.limits()
    }

    fn share(info: &Info) -> Result<RxmDomain> {
        let pd = devices::open(info)?;
        let mr_mode = info.domain.as_ref().map_or(0, |domain| domain.mr_mode);
        let one_sided = mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC) != 0;
        let cache = kept::open(&pd);
        // What is kept gives way to what programs register.
        let nic: Box<dyn Nic> = match &cache {
            Some(cache) => Box::new(cache.direct().clone()),
            None => Box::new(pd.clone()),
        };
        let regions = one_sided.then(|| Arc::new(Registrations::new(nic)));
        let memory = DomainMemory {
            atomics: regions.is_some() && has_device_atomics(&pd)?,
            regions,
            cache,
        };
        Ok(RxmDomain { pd, memory })
    }

    fn amos(domain: &Arc<RxmDomain>) -> &'static [AtomicOp] {
        amos(domain.memory.atomics)
    }

    fn registrar(domain: &Arc<RxmDomain>) -> Option<Arc<dyn Registrar>> {
        let memory = domain.memory.regions.clone()?;
        Some(Arc::new(Registry { memory, for_all: true }))
    }

    fn open(domain: &Arc<RxmDomain>, info: &Info) -> Result<Reliable<Card>> {
        let at = info.src_addr.as_deref().and_then(from_bytes).ok_or(Errno(FI_EINVAL))?;
        let shares = info.ep.as_ref().is_some_and(|ep| ep.rx_ctx_cnt == FI_SHARED_CONTEXT);
        if shares && domain.memory.atomics {
            log!(by NAME; Warn, EpCtrl, "fi_endpoint: with FI_OFI_RXM_DEVICE_ATOMICS, in a domain with the device's keys, there are no shared receive contexts");
            return Err(Errno(FI_EINVAL));
        }
        open("fi_endpoint", &domain.pd, &domain.memory, &at)
    }
}

/// Whether the device is to do the atomics of a domain in which it does reads and writes.
fn has_device_atomics(pd: &Pd) -> Result<bool> {
    if !rxm_settings::get().device_atomics {
        return Ok(false);
    }
    let most = pd.device().attributes();
    let has = most.map_err(|error| failed(format_args!("fi_domain"), &error))?.atomics;
    if !has {
        log!(by NAME; Warn, Domain, "fi_domain: FI_OFI_RXM_DEVICE_ATOMICS is set, and the device has no atomics: the library executes them");
    }
    Ok(has)
}

fn all(again: bool) -> Vec<Info> {
    let connected = devices::offers(again).into_iter();
    connected
        .flat_map(|connected| offers(connected).into_iter().flatten())
        .collect()
}

/// The offers of a reliable endpoint, from that of a connected one: with the device's reads and writes, and without.
fn offers(connected: Info) -> Option<[Info; 2]> {
    let devices_own = connected.domain.clone()?;
    let has_atomics = connected.caps & FI_ATOMIC != 0 && rxm_settings::get().device_atomics;
    let mut plain = offer(connected)?;
    let mut one_sided = plain.clone();
    let parts = [&mut one_sided, &mut plain].map(|info| info.domain.as_mut());
    if let [Some(domain), Some(engines_own)] = parts {
        domain.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_BASIC;
        domain.mr_key_size = devices_own.mr_key_size;
        domain.mr_iov_limit = devices_own.mr_iov_limit;
        domain.mr_cnt = devices_own.mr_cnt;
        domain.caps &= !FI_RMA_EVENT;
        // FI_MR_BASIC is the old name of the other.
        engines_own.mr_mode = FI_MR_SCALABLE;
    }
    one_sided.caps &= !FI_RMA_EVENT;
    if let Some(rx) = &mut one_sided.rx {
        rx.caps &= !FI_RMA_EVENT;
    }
    if let Some(tx) = &mut one_sided.tx {
        // Bytes to be written are copied to a buffer for packets.
        tx.inject_size = tx.inject_size.min(rxm_settings::get().config.buffer);
    }
    if let Some(domain) = one_sided.domain.as_mut().filter(|_| has_atomics) {
        // Receives that endpoints share are the engine's, and so would be their atomics.
        domain.max_ep_srx_ctx = 0;
    }
    if let Some(ep) = &mut one_sided.ep {
        // A queue pair keeps the order of reads and writes of any length.
        let any = ep.max_msg_size;
        (ep.max_order_raw_size, ep.max_order_war_size, ep.max_order_waw_size) = (any, any, any);
    }
    Some([one_sided, plain])
}

fn offer(connected: Info) -> Option<Info> {
    let (fabric, domain) = (connected.fabric?, connected.domain?);
    if domain.max_ep_srx_ctx == 0 {
        log!(by NAME; Info, Core, "skipped {}: the device's connections cannot share receives", VerbsRxm::WHOLE_NAME);
        return None;
    }
    let settings = rxm_settings::get();
    let rdm = Rdm {
        fabric: fabric.name.clone()?,
        domain: domain.name.clone()?,
        version: VerbsRxm::VERSION,
        addr_format: connected.addr_format,
        protocol: FI_PROTO_RXM,
        // That of the C library's, which some programs compare.
        protocol_version: 1,
        reach: FI_LOCAL_COMM | FI_REMOTE_COMM,
        tx_size: settings.tx_size,
        rx_size: settings.rx_size,
        inject_size: INJECT_SIZE,
        limits: VerbsRxm::limits(),
    };
    let mut info = without_contexts(rdm.offer());
    info.src_addr = connected.src_addr;
    info.nic = connected.nic;
    // An endpoint is known by this name only as what stands on the other provider.
    info.fabric = Some(FabricAttr {
        prov_name: Some(NAME.into()),
        prov_version: VerbsRxm::VERSION,
        name: fabric.name,
        ..FabricAttr::default()
    });
    Some(info)
}

/// An endpoint has one address of its own, and no contexts with addresses of theirs.
pub(super) fn without_contexts(mut info: Info) -> Info {
    info.caps &= !FI_NAMED_RX_CTX;
    if let Some(tx) = &mut info.tx {
        tx.caps &= !FI_NAMED_RX_CTX;
    }
    if let Some(domain) = &mut info.domain {
        (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
    }
    info
}

pub(super) fn config() -> Config {
    Config {
        inline: settings::get().inline,
        warn: |text| log!(by NAME; Warn, EpCtrl, "{text}"),
        info: |text| log!(by NAME; Info, EpCtrl, "{text}"),
        ..rxm_settings::get().config
    }
}

fn open(call: &str, pd: &Arc<Pd>, memory: &DomainMemory, at: &SocketAddr) -> Result<Reliable<Card>> {
    if at.ip().is_unspecified() {
        log!(by NAME; Warn, EpCtrl, "{call}: {at}: peers find an endpoint by the address of one device");
        return Err(Errno(FI_EINVAL));
    }
    let mut opened = Reliable::open(pd, at, &config()).map_err(|error| failed(format_args!("{call}: {at}"), &error))?;
    log!(by NAME; Info, EpCtrl, "{call}: {}", opened.place());
    opened.set_memory(memory.clone());
    Ok(opened)
}

impl EndpointTransport for Reliable<Card> {
    fn local_address(&self) -> Vec<u8> {
        Reliable::local_address(self)
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<Self>> {
        let wanted = from_bytes(address).ok_or(Errno(FI_EINVAL))?;
        if wanted == self.place() {
            return Ok(Renamed::default());
        }
        Ok(Renamed {
            transport: Some(open("fi_setname", self.pd(), self.memory(), &wanted)?),
            address: None,
        })
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], _: usize) -> Vec<u8> {
        address.to_vec()
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        address::raw(address)
    }

    fn arm(&mut self) -> bool {
        Reliable::arm(self)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(Reliable::wake_fd(self))
    }

    fn wake(&self) {
        Reliable::wake(self);
    }
}
