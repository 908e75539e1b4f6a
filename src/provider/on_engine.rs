//! The providers of this library: their endpoints run on the engine, over a transport of the provider's.
//!
//! Owns what they have in common towards fi_getinfo: what the engine can do for any transport, and how an offer is
//! fitted to what a program asked for. Knows no provider by name. Implemented by `shm`, `tcp`, `verbs` and `auto`;
//! `abi::built_in` makes C objects of it.

use super::{Kind, Provider};
use crate::abi::types::*;
use crate::api::av::AddressKind;
use crate::api::endpoint::EndpointTransport;
use crate::api::endpoint::scalable::CONTEXTS;
use crate::api::errno::{Errno, Result};
use crate::api::info::READS_IN_ORDER;
use crate::api::info::address::check_request;
use crate::api::info::check::judge_all;
use crate::api::info::model::*;
use crate::api::info::query::{Answer, LIBRARY_VERSION, Query};
use crate::api::mr::registrar::Registrar;
use crate::engine::op::AtomicOp;
use crate::engine::port::Limits;
use crate::util::user::IOV_LIMIT;
use std::sync::Arc;

/// A provider of this library, as one value: what it is called, what it offers, how its addresses look, and how an
/// endpoint gets its transport. The engine and the objects of `api` do all else.
pub trait OnEngine: Send + Sync + 'static {
    type Transport: EndpointTransport + 'static;

    /// What the endpoints of a domain share: a device, a secret, receive buffers. `()`: nothing.
    type Shared: Send + Sync + 'static;

    const NAME: &'static str;

    /// Behind the name of what it stands on, for one that passes for a layer over another provider.
    const WHOLE_NAME: &'static str = Self::NAME;

    /// As the C library counts the versions of its providers: 100 * major + minor, then revision.
    const VERSION: u32;

    /// It answers only those who name it, in hints or by FI_PROVIDER.
    const ONLY_BY_NAME: bool = false;

    /// The progress of endpoints whose program says nothing of it. Automatic progress costs a thread.
    const PROGRESS: u32 = FI_PROGRESS_MANUAL;

    /// Reads what the user set. Called once, when the library is used first.
    fn start() -> Self
    where
        Self: Sized;

    /// What fi_getinfo may answer, best first, before anything is asked: all that an endpoint could be made to do.
    fn offers(&self) -> Vec<Info>;

    /// The offers that suit a query, with what its hints say worked in.
    fn fitting(&self, query: &Query) -> Vec<Info> {
        judge_all(Self::NAME, &self.offers(), query)
    }

    /// Puts source, destination and their format into an answer that was made of an offer. An error: the offer is none
    /// for the addresses that are asked for.
    fn address(&self, answer: &mut Info, query: &Query) -> Result<()>;

    /// How the addresses of a domain's vectors look that was opened for an answer with this format.
    fn address_kind(format: u32) -> Arc<dyn AddressKind>;

    /// What all transports of the provider have, known before there is one. Not asked for endpoints without an engine.
    fn limits() -> Limits {
        Limits::default()
    }

    /// The same for far peers: see `Transport::is_far`.
    fn far_limits() -> Limits {
        Self::limits()
    }

    /// fi_domain: opens what its endpoints share. It is dropped in fi_close of the domain, after them.
    fn share(info: &Info) -> Result<Self::Shared>;

    /// Who must know of a domain's registered memory. None: nobody.
    fn registrar(_: &Arc<Self::Shared>) -> Option<Arc<dyn Registrar>> {
        None
    }

    /// The atomics that cards do on the memory of a domain; then there are no others. None: the engine does all.
    fn amos(_: &Arc<Self::Shared>) -> &'static [AtomicOp] {
        &[]
    }

    /// The transport of an endpoint that is opened for this info, and that is no connected one. -FI_ENOSYS: all are, or
    /// none has an engine.
    fn open(_: &Arc<Self::Shared>, _: &Info) -> Result<Self::Transport> {
        Err(Errno(FI_ENOSYS))
    }

    /// The transport of a scalable endpoint's context, with an address made by `EndpointTransport::context_address`.
    fn open_context(_: &Arc<Self::Shared>, _: &[u8]) -> Result<Self::Transport> {
        Err(Errno(FI_ENOSYS))
    }
}

impl<P: OnEngine> Provider for P {
    fn name(&self) -> &str {
        P::NAME
    }

    fn whole_name(&self) -> &str {
        P::WHOLE_NAME
    }

    fn version(&self) -> u32 {
        P::VERSION
    }

    fn fi_version(&self) -> u32 {
        LIBRARY_VERSION
    }

    fn kind(&self) -> Kind {
        Kind::of(P::NAME, true)
    }

    fn is_only_by_name(&self) -> bool {
        P::ONLY_BY_NAME
    }

    fn getinfo(&self, query: &Query) -> Result<Vec<Answer>> {
        check_request(query)?;
        let fitted = self.fitting(query).into_iter().filter_map(|mut info| {
            self.address(&mut info, query).ok()?;
            // A passive endpoint, whose address an active one is to have: fi_endpoint looks it up.
            info.handle = query.hints.map_or(info.handle, |hints| hints.handle);
            no_flags_unasked(&mut info, query.hints);
            progress_unless_asked(&mut info, query, P::PROGRESS);
            Some(Answer { info, own: None })
        });
        let answers: Vec<Answer> = fitted.collect();
        if answers.is_empty() {
            Err(Errno(FI_ENODATA))
        } else {
            Ok(answers)
        }
    }
}

fn progress_unless_asked(info: &mut Info, query: &Query, usual: u32) {
    let asked = query
        .hints
        .and_then(|hints| hints.domain.as_ref())
        .map(|hints| hints.progress);
    match &mut info.domain {
        Some(domain) if matches!(asked, None | Some(FI_PROGRESS_UNSPEC)) => domain.progress = usual,
        _ => {}
    }
}

/// An offer's op_flags are what may be asked for. As defaults they would make every receive a multi-receive.
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

/// What the engine leaves to a provider to say of a reliable datagram endpoint.
#[derive(Clone, Debug)]
pub struct Rdm {
    pub fabric: String,
    pub domain: String,
    pub version: u32,
    pub addr_format: u32,
    pub protocol: u32,
    pub protocol_version: u32,
    /// Capabilities of the domain beyond those that every one has: which peers can be reached.
    pub reach: u64,
    pub tx_size: usize,
    pub rx_size: usize,
    /// Sends up to this size can be injected.
    pub inject_size: usize,
    pub limits: Limits,
}

impl Rdm {
    /// What such an endpoint can do.
    pub fn offer(self) -> Info {
        let caps = self.reach | FI_SHARED_AV | FI_AV_USER_ID;
        Info {
            caps: SEND | RECV | caps,
            addr_format: self.addr_format,
            tx: Some(TxAttr {
                caps: SEND,
                op_flags: REPORTS | FI_INJECT | FI_TRIGGER,
                msg_order: ORDER,
                inject_size: self.inject_size,
                size: self.tx_size,
                iov_limit: IOV_LIMIT,
                rma_iov_limit: IOV_LIMIT,
                ..TxAttr::default()
            }),
            rx: Some(RxAttr {
                caps: RECV,
                op_flags: FI_COMPLETION | FI_MULTI_RECV | FI_TRIGGER,
                msg_order: ORDER,
                size: self.rx_size,
                iov_limit: IOV_LIMIT,
                ..RxAttr::default()
            }),
            ep: Some(self.endpoint()),
            fabric: Some(FabricAttr {
                name: Some(self.fabric),
                prov_version: self.version,
                ..FabricAttr::default()
            }),
            domain: Some(domain(self.domain, caps)),
            ..Info::default()
        }
    }

    /// What a connected endpoint can do: the same with one peer, so nothing that tells several apart.
    pub fn connected_offer(self) -> Info {
        const ALONE: u64 =
            FI_SHARED_AV | FI_AV_USER_ID | FI_COLLECTIVE | FI_NAMED_RX_CTX | DIRECTED | FI_SOURCE | FI_SOURCE_ERR;
        let mut info = self.offer();
        info.caps &= !ALONE;
        if let Some(tx) = &mut info.tx {
            tx.caps &= !ALONE;
        }
        if let Some(rx) = &mut info.rx {
            rx.caps &= !ALONE;
        }
        if let Some(ep) = &mut info.ep {
            ep.ep_type = FI_EP_MSG;
        }
        if let Some(domain) = &mut info.domain {
            domain.caps &= !ALONE;
            (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
        }
        info
    }

    fn endpoint(&self) -> EpAttr {
        let ordered = in_one_packet(self.limits.small());
        EpAttr {
            ep_type: FI_EP_RDM,
            protocol: self.protocol,
            protocol_version: self.protocol_version,
            // No limit, as the C library says it: programs ask for what they were told there.
            max_msg_size: usize::MAX,
            max_order_raw_size: ordered,
            max_order_war_size: in_one_packet(self.limits.short_read().min(self.limits.small())),
            max_order_waw_size: ordered,
            mem_tag_format: 0xaaaa_aaaa_aaaa_aaaa,
            // What an endpoint may ask for; one that asks for nothing has one of each.
            tx_ctx_cnt: 1,
            rx_ctx_cnt: 1,
            ..EpAttr::default()
        }
    }
}

const FAMILIES: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE;
const SEND: u64 = FAMILIES | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_NAMED_RX_CTX | FI_TRIGGER;
const RECV: u64 = FAMILIES | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT | MANY | DIRECTED | SOURCES;
const MANY: u64 = FI_MULTI_RECV | FI_TAGGED_MULTI_RECV;
const DIRECTED: u64 = FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV;
const SOURCES: u64 = FI_SOURCE | FI_SOURCE_ERR | FI_TRIGGER;
const REPORTS: u64 = FI_COMPLETION | LEVELS;
const LEVELS: u64 = FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

/// The engine carries out what a peer sends in the order it was sent in, whatever it is.
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

/// Reads that keep their order wait for each other where the kernel could do some of them sooner, so they do only for
/// those who ask for it. For providers whose transports heed `Transport::let_reads_pass`.
pub(super) fn drop_unasked_order(answer: &mut Info, query: &Query) {
    let asked_tx = query
        .hints
        .and_then(|hints| hints.tx.as_ref())
        .map_or(0, |tx| tx.msg_order);
    let asked_rx = query
        .hints
        .and_then(|hints| hints.rx.as_ref())
        .map_or(0, |rx| rx.msg_order);
    if let Some(tx) = &mut answer.tx {
        tx.msg_order &= asked_tx | !READS_IN_ORDER;
    }
    if let Some(rx) = &mut answer.rx {
        rx.msg_order &= asked_rx | !READS_IN_ORDER;
    }
}

/// Up to this size, reads and writes of a peer's memory are carried out in order: those that are one packet, which has
/// room for naming several pieces besides. Longer ones are fetched when their turn comes; messages wait for them.
fn in_one_packet(longest: usize) -> usize {
    const PIECES: usize = 256;
    longest.saturating_sub(PIECES)
}

fn domain(name: String, caps: u64) -> DomainAttr {
    DomainAttr {
        name: Some(name),
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
        caps,
        max_ep_auth_key: 1024,
        mr_cnt: 1 << 20,
        max_cntr_value: u64::MAX,
        max_err_cntr_value: u64::MAX,
        ..DomainAttr::default()
    }
}
