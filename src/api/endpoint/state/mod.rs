//! What the application made of an endpoint: bindings, options, and whether it is enabled.
//!
//! Knows no transport. Called by the endpoints of this folder.
//!
//! - `calls`: how calls become operations of an engine;
//! - `guard`: the state under its lock; `settings`: what the attributes come down to;
//! - `report`: the way back, from the engine's completions to queues, counters, regions and the log.

mod calls;
mod guard;
mod report;
mod settings;

use super::bindings::Bindings;
use super::connection::Connection;
use super::peers::Peers;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::deferred::Deferred;
use crate::api::deferred::work::Call;
use crate::api::domain::Domain;
use crate::api::errno::{Errno, Result};
use crate::api::info::model::{Info, RxAttr};
use crate::api::log::Speaker;
use crate::api::mr::memory::Memory;
use crate::api::refs::Refs;
use crate::engine::op::{Access, AtomicOp};
use std::sync::Arc;

pub(super) use calls::refused;
pub use guard::StateGuard;
pub(super) use report::PendingCompletions;
use settings::Directed;
pub(super) use settings::{Settings, TxFlags, engine_config};

pub struct EndpointState {
    /// The provider's name, for the log.
    pub provider: Speaker,
    pub peers: Peers,
    pub bindings: Bindings,
    pub settings: Settings,
    pub enabled: bool,
    /// The atomics that the endpoint's card does, and then it does no others; None: the engine does all.
    pub amos: Option<&'static [AtomicOp]>,
    /// The number by which memory regions know the endpoint, once asked for.
    pub number: Option<u64>,
    /// The domain's regions, from fi_enable on: completions at the target may count on a region's counter.
    pub memory: Option<Arc<Memory>>,
    /// The domain's deferred work, from fi_enable on: completions of deferred operations go there.
    pub deferred: Option<Arc<Deferred>>,
    /// The bound shared transmit context.
    pub stx: Option<Arc<Stx>>,
    /// Its number at the domain's thread, while the thread drives it.
    pub driven: Option<u64>,
    /// It carries the collectives of its scalable endpoint's transmit contexts, enabled or not.
    pub collective_carrier: bool,
    /// Open aliases.
    pub aliases: Arc<Refs>,
    /// Of an FI_EP_MSG endpoint.
    pub connection: Option<Box<Connection>>,
}

impl EndpointState {
    pub fn new(provider: Speaker, info: &Info) -> EndpointState {
        EndpointState {
            provider,
            peers: Peers::default(),
            bindings: Bindings::default(),
            settings: Settings::of(info),
            enabled: false,
            amos: None,
            number: None,
            memory: None,
            deferred: None,
            stx: None,
            driven: None,
            collective_carrier: false,
            aliases: Arc::default(),
            connection: None,
        }
    }

    /// The state of a shared receive context, which is enabled from the start.
    pub fn of_shared_rx(domain: &Domain, rx: &RxAttr) -> EndpointState {
        // Attributes without capabilities restrict nothing.
        let caps = if rx.caps == 0 { domain.caps } else { rx.caps };
        let info = Info {
            caps: caps & !FI_SEND | FI_RECV,
            rx: Some(rx.clone()),
            ..Info::default()
        };
        let mut state = EndpointState {
            enabled: true,
            deferred: Some(domain.deferred.clone()),
            ..EndpointState::new(domain.provider, &info)
        };
        state.settings.shared_receives = true;
        state
    }

    /// What a thread gets that comes after fi_close: a state that nobody else sees. The application does not call then.
    pub fn closed(provider: Speaker) -> EndpointState {
        EndpointState::new(provider, &Info::default())
    }

    /// The endpoint is one of FI_EP_MSG.
    pub fn be_connected(&mut self, connection: Connection) {
        self.connection = Some(Box::new(connection));
        self.settings.directed = Directed::ONLY;
        self.bindings.connected();
    }

    pub fn not_enabled(&self) -> Result<()> {
        if self.enabled {
            Err(Errno(FI_EOPBADSTATE as i32))
        } else {
            Ok(())
        }
    }

    /// An endpoint has one address vector.
    pub fn bind_av(&mut self, av: &Arc<Av>) -> Result<()> {
        if let Some(connection) = &mut self.connection {
            return connection.bind_av(av);
        }
        if self.peers.is_bound() {
            return Err(Errno(FI_EINVAL));
        }
        self.peers.bind(av.hold());
        Ok(())
    }

    /// An endpoint that was made with a context of its own keeps that, and nothing of this one, which may be closed
    /// before it: Sandia OpenSHMEM does both, and binds it to an endpoint that is enabled.
    pub fn bind_stx(&mut self, stx: &Arc<Stx>) -> Result<()> {
        if !self.settings.shares_tx {
            return Ok(());
        }
        self.not_enabled()?;
        if self.stx.is_some() {
            return Err(Errno(FI_EINVAL));
        }
        stx.users.acquire();
        self.stx = Some(stx.clone());
        Ok(())
    }

    pub fn must_be_enabled(&self) -> Result<()> {
        if self.enabled {
            Ok(())
        } else {
            Err(Errno(FI_EOPBADSTATE as i32))
        }
    }

    /// Whether the endpoint can do this deferred operation: it must be enabled, have the capability, and FI_TRIGGER.
    pub fn can_wait(&self, call: &Call) -> Result<()> {
        self.must_be_enabled()?;
        let settings = &self.settings;
        let able = match call {
            Call::Send(..) => settings.can_send,
            Call::Recv(..) => settings.can_recv,
            Call::Rma(call) if call.access == Access::Read => settings.can_read,
            Call::Rma(_) => settings.can_write,
            Call::Atomic(_) => settings.can_atomic,
        };
        if able && settings.can_trigger {
            Ok(())
        } else {
            log!(
                by self.provider;
                Warn,
                EpCtrl,
                "the endpoint is not one of FI_TRIGGER and this kind of operation"
            );
            Err(Errno(FI_EOPNOTSUPP))
        }
    }

    /// Whether it may be enabled. The log says what is not bound yet.
    pub fn check(&self) -> Result<()> {
        let settings = &self.settings;
        let initiates = settings.can_read || settings.can_write || settings.can_atomic;
        self.bindings
            .check(settings.can_send || initiates, settings.can_recv)
            .inspect_err(|_| {
                let text = "fi_enable: a completion queue or counter is missing, for sends or for receives";
                log!(by self.provider; Warn, EpCtrl, "{text}");
            })?;
        if !self.peers.is_bound() && self.connection.is_none() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no address vector is bound");
            return Err(Errno(FI_ENOAV as i32));
        }
        if self.settings.shares_tx && self.stx.is_none() {
            log!(by self.provider; Warn, EpCtrl, "fi_enable: no shared transmit context is bound");
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        Ok(())
    }
}
