//! What the attributes of an endpoint come down to: capabilities, sizes, and default flags.
//!
//! Knows nothing of what is bound to the endpoint. Made with an `EndpointState`; the options of fi_setopt and
//! FI_SETOPSFLAG change it.

use crate::abi::types::*;
use crate::api::info::READS_IN_ORDER;
use crate::api::info::caps::is_rma_target;
use crate::api::info::model::Info;
use crate::engine::Config;
use crate::engine::op::{CompletionLevel, MessageKind};

/// An endpoint's capabilities and sizes, and the options that calls may change.
#[derive(Clone, Debug)]
pub struct Settings {
    pub tx_flags: TxFlags,
    pub rx_flags: u64,
    pub tx_size: usize,
    pub rx_size: usize,
    pub inject_size: usize,
    pub max_msg_size: usize,
    /// FI_OPT_MIN_MULTI_RECV.
    pub min_multi_recv: usize,
    /// FI_TAGGED_MULTI_RECV.
    pub tagged_multi: bool,
    pub directed: Directed,
    pub sourced: bool,
    /// FI_SOURCE_ERR: messages from an address that the vector does not have are reported with the address itself.
    pub names_strangers: bool,
    pub can_send: bool,
    pub can_recv: bool,
    pub can_read: bool,
    pub can_write: bool,
    pub can_atomic: bool,
    /// FI_TRIGGER: its operations may wait for counters.
    pub can_trigger: bool,
    /// FI_REMOTE_READ or FI_REMOTE_WRITE: peers may access registered memory through this endpoint.
    pub is_target: bool,
    /// FI_COLLECTIVE is among its capabilities.
    pub collective: bool,
    /// ep_attr.tx_ctx_cnt is FI_SHARED_CONTEXT.
    pub shares_tx: bool,
    /// It is a shared receive context, so receives are told of as the endpoint has it whose message they get.
    pub shared_receives: bool,
}

const DEFAULT_MIN_MULTI_RECV: usize = 64;

/// Flags of a transmitting operation, and the completion level that they ask for.
#[derive(Clone, Copy, Debug)]
pub struct TxFlags {
    pub bits: u64,
    pub level: CompletionLevel,
}

impl TxFlags {
    /// FI_MATCH_COMPLETE is served as delivery: both complete when a receive has the message or a peer discards it.
    #[inline]
    pub fn of(bits: u64) -> TxFlags {
        let level = if bits & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE) != 0 {
            CompletionLevel::Delivery
        } else if bits & FI_TRANSMIT_COMPLETE != 0 {
            CompletionLevel::Transmit
        } else {
            CompletionLevel::Inject
        };
        TxFlags { bits, level }
    }

    /// Those of an injected operation, which begins at once.
    #[inline]
    pub fn injected(self) -> TxFlags {
        TxFlags {
            bits: self.bits & !FI_TRIGGER | FI_INJECT,
            ..self
        }
    }
}

/// Which receives may name their source (FI_DIRECTED_RECV, FI_TAGGED_DIRECTED_RECV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directed {
    messages: bool,
    tagged: bool,
    /// FI_EXACT_DIRECTED_RECV: they must name it.
    pub(super) exact: bool,
    /// All are directed to the one peer of a connected endpoint, and end with it.
    pub(super) only: bool,
}

impl Directed {
    fn of(caps: u64) -> Directed {
        let exact = caps & FI_EXACT_DIRECTED_RECV != 0;
        let all = caps & FI_DIRECTED_RECV != 0 || exact && caps & FI_TAGGED_DIRECTED_RECV == 0;
        Directed {
            messages: all,
            tagged: all || caps & FI_TAGGED_DIRECTED_RECV != 0,
            exact,
            only: false,
        }
    }

    pub(super) const ONLY: Directed = Directed {
        messages: true,
        tagged: true,
        exact: false,
        only: true,
    };

    #[inline]
    pub(super) fn is(self, kind: MessageKind) -> bool {
        match kind {
            MessageKind::Untagged => self.messages,
            MessageKind::Tagged => self.tagged,
            MessageKind::Collective => true,
        }
    }
}

impl Settings {
    pub fn of(info: &Info) -> Settings {
        let tx = info.tx.clone().unwrap_or_default();
        let rx = info.rx.clone().unwrap_or_default();
        let has = |caps: u64| info.caps & caps != 0;
        let (rma, atomic) = (has(FI_RMA), has(FI_ATOMIC));
        // Caps that name neither FI_SEND nor FI_RECV mean both, but none for an endpoint of RMA and atomics alone.
        let either = !has(FI_SEND | FI_RECV) && (has(FI_MSG | FI_TAGGED) || !(rma || atomic));
        let directions = has(FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
        let moves = |direction: u64| !directions || has(direction);
        Settings {
            tx_flags: TxFlags::of(tx.op_flags),
            rx_flags: rx.op_flags,
            tx_size: tx.size,
            rx_size: rx.size,
            inject_size: if tx.inject_size == 0 {
                usize::MAX
            } else {
                tx.inject_size
            },
            // Whatever is allowed, nothing in memory is longer.
            max_msg_size: info
                .ep
                .as_ref()
                .map_or(usize::MAX, |ep| ep.max_msg_size)
                .clamp(1, isize::MAX as usize),
            min_multi_recv: DEFAULT_MIN_MULTI_RECV,
            tagged_multi: has(FI_TAGGED_MULTI_RECV),
            directed: Directed::of(info.caps),
            sourced: info.caps & FI_SOURCE != 0,
            names_strangers: has(FI_SOURCE) && has(FI_SOURCE_ERR),
            can_send: either || has(FI_SEND),
            can_recv: either || has(FI_RECV),
            can_read: rma && moves(FI_READ),
            can_write: rma && moves(FI_WRITE),
            can_atomic: atomic && moves(FI_READ | FI_WRITE),
            can_trigger: has(FI_TRIGGER),
            is_target: is_rma_target(info.caps),
            collective: has(FI_COLLECTIVE),
            shares_tx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == FI_SHARED_CONTEXT),
            shared_receives: false,
        }
    }
}

/// The engine's configuration: room for tx_attr.size sends, so that none of those returns -FI_EAGAIN.
pub(crate) fn engine_config(info: &Info) -> Config {
    let default = Config::default();
    let sends = info.tx.as_ref().map_or(0, |tx| tx.size);
    Config {
        in_flight: default.in_flight.max(sends),
        one_sided: info.caps & FI_RMA_EVENT == 0,
        reads_pass: info.tx.as_ref().is_some_and(|tx| tx.msg_order & READS_IN_ORDER == 0),
        ..default
    }
}
