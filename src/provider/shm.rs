//! Provider `shm`: what fi_getinfo offers for endpoints in shared memory, and the names of their addresses.
//!
//! Only tables and rules; the transport behind it is `transport::shm`. Registered by `abi::start`.

use super::{Kind, Provider};
use crate::abi::types::*;
use crate::api::av::string::{SHM_PREFIX, name};
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::scalable::CONTEXTS;
use crate::api::errno::{Errno, Result};
use crate::api::info::address::check_request;
use crate::api::info::check::judge_all;
use crate::api::info::model::*;
use crate::api::info::query::{Answer, LIBRARY_VERSION, Query};
use crate::engine::port::{Limits, PeerId};
use crate::sys::{self, home};
use crate::transport::shm::{self, Config, OpenError, ShmTransport};
use crate::util::user::IOV_LIMIT;
use std::os::fd::RawFd;

mod settings;
use settings::Settings;

pub const NAME: &str = "shm";

/// As the C library counts the versions of its providers: 100 * major + minor, then revision.
pub const VERSION: u32 = 206 << 16;

/// The longest address, its ending zero included.
pub const ADDRESS_MAX: usize = 256;

/// Sends up to this size can be injected.
pub const INJECT_SIZE: usize = 4096;

pub struct Shm;

impl Shm {
    /// The provider, with what the user set.
    pub fn start() -> Shm {
        settings::init();
        Shm
    }
}

impl Provider for Shm {
    fn name(&self) -> &str {
        NAME
    }
    fn version(&self) -> u32 {
        VERSION
    }
    fn fi_version(&self) -> u32 {
        LIBRARY_VERSION
    }
    fn kind(&self) -> Kind {
        Kind::Core
    }

    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        check_request(query)?;
        let mut infos = judge_all(NAME, &[template(&settings::get())], query);
        for info in &mut infos {
            let (source, dest) = addresses(query);
            info.src_addr = Some(source);
            info.dest_addr = dest;
            info.addr_format = FI_ADDR_STR;
            no_flags_unasked(info, query.hints);
            manual_unless_asked(info, query);
        }
        let answers: Vec<Answer> = infos.into_iter().map(|info| Answer { info, own: None }).collect();
        if answers.is_empty() {
            Err(Errno(FI_ENODATA))
        } else {
            Ok(answers)
        }
    }
}

/// Without a wish the caller drives: automatic progress costs a thread.
fn manual_unless_asked(info: &mut Info, query: &Query) {
    let asked = query
        .hints
        .and_then(|hints| hints.domain.as_ref())
        .map(|hints| hints.progress);
    match &mut info.domain {
        Some(domain) if matches!(asked, None | Some(FI_PROGRESS_UNSPEC)) => domain.progress = FI_PROGRESS_MANUAL,
        _ => {}
    }
}

/// The template's op_flags are what may be asked for. As defaults they would make every receive a multi-receive.
fn no_flags_unasked(info: &mut Info, hints: Option<&Info>) {
    if let Some(tx) = info
        .tx
        .as_mut()
        .filter(|_| hints.is_none_or(|hints| hints.tx.is_none()))
    {
        tx.op_flags = 0;
    }
    if let Some(rx) = info
        .rx
        .as_mut()
        .filter(|_| hints.is_none_or(|hints| hints.rx.is_none()))
    {
        rx.op_flags = 0;
    }
}

/// What a peer sends is carried out in the order it was sent in, whatever it is.
const ORDER: u64 = FI_ORDER_SAS
    | FI_ORDER_SAR
    | FI_ORDER_SAW
    | FI_ORDER_RAS
    | FI_ORDER_WAS
    | FI_ORDER_RAR
    | FI_ORDER_RAW
    | FI_ORDER_WAR
    | FI_ORDER_WAW
    | FI_ORDER_RMA_RAR
    | FI_ORDER_RMA_RAW
    | FI_ORDER_RMA_WAR
    | FI_ORDER_RMA_WAW
    | FI_ORDER_ATOMIC_RAR
    | FI_ORDER_ATOMIC_RAW
    | FI_ORDER_ATOMIC_WAR
    | FI_ORDER_ATOMIC_WAW;

/// Up to this size, reads and writes of a peer's memory are carried out in order: those that are one packet, which has
/// room for naming several pieces besides. Longer ones are fetched when their turn comes; messages wait for them.
fn order_size() -> usize {
    const PIECES: usize = 256;
    let limits = limits();
    limits.max_body.min(limits.eager).saturating_sub(PIECES)
}

/// What every endpoint of this provider can do.
fn template(settings: &Settings) -> Info {
    const FAMILIES: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE;
    const SEND: u64 = FAMILIES | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX | FI_TRIGGER;
    const RECV: u64 = FAMILIES | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | MANY | DIRECTED | SOURCES;
    const MANY: u64 = FI_MULTI_RECV | FI_TAGGED_MULTI_RECV;
    const DIRECTED: u64 = FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV;
    const SOURCES: u64 = FI_SOURCE | FI_SOURCE_ERR | FI_TRIGGER;
    const REPORTS: u64 = FI_COMPLETION | LEVELS;
    const LEVELS: u64 = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
    Info {
        caps: SEND | RECV | DOMAIN_CAPS,
        addr_format: FI_ADDR_STR,
        tx: Some(TxAttr {
            caps: SEND,
            op_flags: REPORTS | FI_INJECT | FI_TRIGGER,
            msg_order: ORDER,
            inject_size: INJECT_SIZE,
            size: settings.tx_size,
            iov_limit: IOV_LIMIT,
            rma_iov_limit: IOV_LIMIT,
            ..TxAttr::default()
        }),
        rx: Some(RxAttr {
            caps: RECV,
            op_flags: FI_COMPLETION | FI_MULTI_RECV | FI_TRIGGER,
            msg_order: ORDER,
            size: settings.rx_size,
            iov_limit: IOV_LIMIT,
            ..RxAttr::default()
        }),
        ep: Some(EpAttr {
            ep_type: FI_EP_RDM,
            protocol: FI_PROTO_SHM,
            protocol_version: 1,
            max_msg_size: isize::MAX as usize,
            max_order_raw_size: order_size(),
            max_order_war_size: order_size(),
            max_order_waw_size: order_size(),
            mem_tag_format: 0xaaaa_aaaa_aaaa_aaaa,
            // What an endpoint may ask for; one that asks for nothing has one of each.
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }),
        domain: Some(domain()),
        fabric: Some(FabricAttr {
            name: Some(NAME.into()),
            prov_version: VERSION,
            ..FabricAttr::default()
        }),
        ..Info::default()
    }
}

const DOMAIN_CAPS: u64 = FI_LOCAL_COMM | FI_SHARED_AV | FI_AV_USER_ID;

fn domain() -> DomainAttr {
    DomainAttr {
        name: Some(NAME.into()),
        threading: FI_THREAD_SAFE,
        control_progress: FI_PROGRESS_AUTO,
        progress: FI_PROGRESS_AUTO,
        resource_mgmt: FI_RM_ENABLED,
        av_type: FI_AV_UNSPEC,
        // No registration is needed for local memory, whatever mode the application thinks in.
        mr_mode: FI_MR_BASIC | FI_MR_SCALABLE,
        mr_key_size: size_of::<u64>(),
        cq_data_size: size_of::<u64>(),
        cq_cnt: 1024,
        ep_cnt: 1024,
        tx_ctx_cnt: 1024,
        rx_ctx_cnt: 1024,
        max_ep_tx_ctx: CONTEXTS,
        max_ep_rx_ctx: CONTEXTS,
        max_ep_stx_ctx: 1024,
        max_ep_srx_ctx: 1024,
        cntr_cnt: 1024,
        mr_iov_limit: IOV_LIMIT,
        caps: DOMAIN_CAPS,
        max_ep_auth_key: 1024,
        mr_cnt: 1 << 20,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        ..DomainAttr::default()
    }
}

/// Source and destination of an answer. Node and service name the one or the other, as FI_SOURCE says; the hints fill
/// in; an endpoint that nobody named is called after a number that its process drew.
fn addresses(query: &Query) -> (Vec<u8>, Option<Vec<u8>>) {
    let named = (query.node.is_some() || query.service.is_some()).then(|| address_for(query.node, query.service));
    let hinted = |pick: fn(&Info) -> &Option<Vec<u8>>| query.hints.and_then(|hints| pick(hints).clone());
    let own = || c_string(&format!("{SHM_PREFIX}{}", own_name()));
    if query.has_flag(FI_SOURCE) {
        (named.unwrap_or_else(own), hinted(|hints| &hints.dest_addr))
    } else {
        let dest = named.or_else(|| hinted(|hints| &hints.dest_addr));
        (hinted(|hints| &hints.src_addr).unwrap_or_else(own), dest)
    }
}

/// A node that is a name of ours already is taken as it is.
fn address_for(node: Option<&str>, service: Option<&str>) -> Vec<u8> {
    let text = match (node, service) {
        (Some(node), _) if node.contains("://") => node.to_owned(),
        (Some(node), Some(service)) => format!("fi_ns://{node}:{service}"),
        (Some(node), None) => format!("fi_shm://{node}"),
        (None, Some(service)) => format!("fi_ns://{service}"),
        (None, None) => format!("{SHM_PREFIX}{}", own_name()),
    };
    c_string(&text)
}

/// Addresses are C strings: their length counts the zero.
fn c_string(text: &str) -> Vec<u8> {
    let fits = text.bytes().take_while(|byte| *byte != 0).take(ADDRESS_MAX - 1);
    fits.chain([0]).collect()
}

/// The transport of an endpoint. One that is not named by itself, or by fi_getinfo, gets a name of its own: what
/// fi_getinfo said, and a number that others do not have. Those of all processes have one length, as MPICH expects.
pub fn open_transport(info: &Info) -> Result<ShmTransport> {
    let asked = info.src_addr.as_deref().unwrap_or_default();
    let mut stem = String::from_utf8_lossy(name(asked)).into_owned();
    if stem.is_empty() {
        stem = own_name();
    }
    if asked.is_empty() || asked.starts_with(SHM_PREFIX.as_bytes()) {
        open_numbered(&stem)
    } else {
        open(&stem)
    }
}

/// The transport of an endpoint with this very name, which was made of another's.
pub fn open_named(name: &[u8]) -> Result<ShmTransport> {
    open(&String::from_utf8_lossy(name))
}

/// What all names begin with that this process's endpoints get. Process numbers would not do: containers that share
/// /dev/shm have the same ones.
fn own_name() -> String {
    format!("{:016x}", sys::identity::random_of_process().unwrap_or(0))
}

fn open_numbered(stem: &str) -> Result<ShmTransport> {
    const TRIES: u32 = 16;
    for _ in 1..TRIES {
        let number = sys::shared::random().unwrap_or(0) as u32;
        let name = format!("{stem}:{number:08x}");
        match try_open(&name) {
            Err(OpenError::InUse) => {}
            opened => return opened.map_err(|error| refused(&name, &error)),
        }
    }
    open(stem)
}

/// A transport of exactly this name.
fn open(name: &str) -> Result<ShmTransport> {
    try_open(name).map_err(|error| refused(name, &error))
}

fn try_open(name: &str) -> core::result::Result<ShmTransport, OpenError> {
    let config = config();
    home::enter(&config.dir, |home| {
        let dir = home.to_owned();
        ShmTransport::open(name, &Config { dir, ..config.clone() })
    })
}

fn refused(name: &str, error: &OpenError) -> Errno {
    log!(by NAME; Warn, EpCtrl, "fi_endpoint: {name}: {error}");
    Errno(match error {
        OpenError::Address => FI_EINVAL,
        OpenError::InUse => FI_EADDRINUSE,
        OpenError::NoSpace { .. } => FI_ENOSPC,
        OpenError::System(..) => FI_EIO,
    })
}

/// What all our transports have, known before there is one.
pub fn limits() -> Limits {
    config().limits()
}

fn config() -> Config {
    let Settings {
        fetch, eager, together, ..
    } = settings::get();
    Config {
        warn: |text| log!(by NAME; Warn, EpCtrl, "{text}"),
        debug: |text| log!(by NAME; Debug, Mr, "{text}"),
        fetch,
        eager,
        together,
        ..Config::default()
    }
}

impl EndpointTransport for ShmTransport {
    fn local_address(&self) -> Vec<u8> {
        c_string(&format!("{SHM_PREFIX}{}", ShmTransport::local_address(self)))
    }

    fn renamed(&self, address: &[u8]) -> Result<Option<ShmTransport>> {
        let wanted = String::from_utf8_lossy(name(address)).into_owned();
        if wanted == ShmTransport::local_address(self) {
            return Ok(None);
        }
        open(&wanted).map(Some)
    }

    fn address_of(&self, peer: PeerId) -> Option<&[u8]> {
        self.address(peer)
    }

    fn context_address(address: &[u8], index: usize) -> Vec<u8> {
        shm::context(name(address), index)
    }

    fn base_address(address: &[u8]) -> &[u8] {
        shm::base(address)
    }

    fn raw_address(address: &[u8]) -> Vec<u8> {
        [SHM_PREFIX.as_bytes(), address, &[0]].concat()
    }

    fn arm(&mut self) -> bool {
        self.arm_among_others()
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(ShmTransport::wake_fd(self))
    }

    fn wake(&self) {
        ShmTransport::wake(self);
    }
}

#[cfg(test)]
mod closing;
#[cfg(test)]
mod contexts;
#[cfg(test)]
mod remote;

#[cfg(test)]
mod tests;
