//! A provider whose card must know memory, over the stand-in for queue pairs. `tests` goes through the C ABI.

use super::types::*;
use crate::api::av::AddressKind;
use crate::api::av::string::{StringAddr, name, text};
use crate::api::endpoint::{EndpointTransport, Renamed};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::Info;
use crate::api::info::query::Query;
use crate::api::mr::registrar::{Registered, Registrar};
use crate::engine::port::{Limits, PeerId};
use crate::mem::atomic::AtomicOp;
use crate::provider::on_engine::{OnEngine, Rdm};
use crate::transport::tests::queue_pair::{AMOS, Fabric, LIMITS, LocalKeys, Manner, QueuePair};
use crate::util::regions::Rights;
use crate::util::user::UserIov;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

mod tests;

static FABRIC: LazyLock<Fabric> = LazyLock::new(|| {
    Fabric::new(
        1,
        Manner {
            local_keys: true,
            ..Manner::default()
        },
    )
});

/// More than the card can register at once.
const TOO_LONG: usize = 1 << 20;

pub struct StandIn;

/// A domain's memory, as its card knows it.
pub struct Table(LocalKeys);

impl Registrar for Table {
    fn register(&self, memory: &UserIov, _: u64, rights: Rights) -> Result<Registered> {
        if memory.len() > TOO_LONG {
            return Err(Errno(FI_ENOMEM));
        }
        let desc = self.0.register(memory);
        // A card's keys are short.
        let key = (rights != Rights::default()).then_some(desc as u64 & 0xffff_ffff);
        Ok(Registered { desc, key })
    }

    fn deregister(&self, registered: &Registered) {
        self.0.deregister(registered.desc);
    }

    fn lend(&self, addr: usize, desc: usize) -> bool {
        self.0.lend(addr, desc)
    }
}

impl OnEngine for StandIn {
    type Transport = QueuePair;
    type Shared = Table;

    const NAME: &'static str = "stand_in";
    const VERSION: u32 = 1 << 16;

    fn start() -> StandIn {
        StandIn
    }

    fn offers(&self) -> Vec<Info> {
        let rdm = Rdm {
            fabric: "stand_in".into(),
            domain: "stand_in".into(),
            version: Self::VERSION,
            addr_format: FI_ADDR_STR,
            protocol: FI_PROTO_UNSPEC,
            protocol_version: 1,
            reach: FI_LOCAL_COMM,
            tx_size: 64,
            rx_size: 64,
            inject_size: 64,
            limits: LIMITS,
        };
        let mut info = rdm.offer();
        // Its card does not count, and needs memory registered.
        let not = !FI_RMA_EVENT;
        info.caps &= not;
        info.rx.as_mut().unwrap().caps &= not;
        let domain = info.domain.as_mut().unwrap();
        domain.caps &= not;
        domain.mr_mode = MR_MODE;
        vec![info]
    }

    fn address(&self, answer: &mut Info, _: &Query) -> Result<()> {
        answer.src_addr = Some(raw(b""));
        Ok(())
    }

    fn address_kind(_: u32) -> Arc<dyn AddressKind> {
        Arc::new(StringAddr::of("fi_stand_in"))
    }

    fn limits() -> Limits {
        LIMITS
    }

    fn amos(_: &Arc<Table>) -> &'static [AtomicOp] {
        &AMOS
    }

    fn share(_: &Info) -> Result<Table> {
        Ok(Table(LocalKeys::default()))
    }

    fn registrar(table: &Arc<Table>) -> Option<Arc<dyn Registrar>> {
        Some(table.clone())
    }

    fn open(table: &Arc<Table>, _: &Info) -> Result<QueuePair> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self::open_context(table, NEXT.fetch_add(1, Ordering::Relaxed).to_string().as_bytes())
    }

    fn open_context(table: &Arc<Table>, address: &[u8]) -> Result<QueuePair> {
        let mut transport = FABRIC.open(address);
        transport.attach(&table.0);
        Ok(transport)
    }
}

const MR_MODE: i32 = FI_MR_LOCAL | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;

fn raw(name: &[u8]) -> Vec<u8> {
    [b"fi_stand_in://", name, &[0]].concat()
}

impl EndpointTransport for QueuePair {
    const DESCRIPTORS: bool = true;

    fn local_address(&self) -> Vec<u8> {
        raw(&self.address())
    }

    fn renamed(&self, address: &[u8]) -> Result<Renamed<QueuePair>> {
        Ok(Renamed {
            transport: Some(FABRIC.open(name(address))),
            address: Some(raw(name(text(address)))),
        })
    }

    fn address_of(&self, _: PeerId) -> Option<&[u8]> {
        None
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        [name(address), format!("#{index}").as_bytes()].concat()
    }

    fn base_address(address: &[u8]) -> &[u8] {
        address
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        raw(address)
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    fn wake(&self) {}
}
