//! Shared receive contexts of cards: receives are posted once for several endpoints, and each completes at the endpoint
//! whose message took it.
//!
//! The card matches; here is the object that programs post to, and who uses it. Opened by `abi::object::direct`.

use super::NoEngine;
use crate::abi::types::*;
use crate::api::cq::Cq;
use crate::api::domain::{Domain, unused};
use crate::api::endpoint::ops::{EndpointOps, TransportFacts, stop};
use crate::api::endpoint::state::{EndpointState, StateGuard, refused};
use crate::api::errno::{Errno, Result};
use crate::api::info::model::RxAttr;
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::op::{self, OperationOf, Refused};
use crate::util::lock::{Guard, OptLock};
use crate::util::user::UserIov;
use core::any::Any;
use std::os::fd::RawFd;
use std::sync::Arc;

/// A card's receives for several endpoints.
pub trait DirectReceives: Send + Sync + 'static {
    fn recv(&self, recv: &op::Recv) -> Result<(), Refused>;

    /// How many wait for a message.
    fn posted(&self) -> usize;
}

/// Receives of any card. The transport that shares them knows their type.
#[derive(Clone)]
pub struct CardReceives {
    calls: Arc<dyn DirectReceives>,
    pub any: Arc<dyn Any + Send + Sync>,
}

impl CardReceives {
    pub fn new<R: DirectReceives>(receives: R) -> CardReceives {
        let receives = Arc::new(receives);
        CardReceives {
            calls: receives.clone(),
            any: receives,
        }
    }
}

/// A shared receive context.
pub struct DirectSharedRx {
    domain: Arc<Domain>,
    /// Endpoints bound to it.
    users: Refs,
    state: OptLock<EndpointState>,
    receives: CardReceives,
}

impl DirectSharedRx {
    pub fn new(domain: &Arc<Domain>, rx: &RxAttr, receives: CardReceives) -> Arc<DirectSharedRx> {
        domain.users.acquire();
        let state = EndpointState::of_shared_rx(domain, rx);
        Arc::new(DirectSharedRx {
            domain: domain.clone(),
            users: Refs::default(),
            state: OptLock::new(state, domain.locked),
            receives,
        })
    }

    pub(super) fn receives(&self) -> &CardReceives {
        &self.receives
    }

    /// An endpoint uses it from now on.
    pub(super) fn acquire(&self) {
        self.users.acquire();
    }

    pub(super) fn release(&self) {
        self.users.release();
    }
}

impl EndpointOps for Arc<DirectSharedRx> {
    fn base(&self) -> Arc<dyn EndpointOps> {
        Arc::new(self.clone())
    }

    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn lock_state(&self) -> StateGuard<'_> {
        StateGuard::Open(Guard::map(self.state.lock(), |state| state))
    }

    #[inline(always)]
    fn transport(&self) -> TransportFacts {
        TransportFacts::of::<NoEngine>()
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.clone()
    }

    fn local_address(&self) -> Vec<u8> {
        Vec::new()
    }

    /// A card cannot take a receive back.
    fn cancel(&self, _: OperationOf) -> Result<()> {
        Err(Errno(FI_EOPNOTSUPP))
    }

    fn unfinished(&self) -> (usize, usize) {
        (0, self.receives.calls.posted())
    }

    /// Programs may bind a queue; completions go to those of the endpoints.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.with_state(|state| state.bindings.bind_cq(cq, flags))
    }

    fn as_shared_rx(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(self)
    }

    /// It works from the moment it is opened.
    fn enable(&self) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        unused(&self.users)?;
        self.with_state(|state| unused(&state.aliases))?;
        stop(self, || ());
        self.domain.users.release();
        Ok(())
    }
}

impl Messaging for DirectSharedRx {
    fn send(&self, _: &SendCall, _: &UserIov) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }

    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let (recv, look) = self.state.lock().recv_op::<NoEngine>(call, body, |_| None)?;
        if look.is_some() {
            return Err(Errno(FI_EOPNOTSUPP).into());
        }
        self.receives.calls.recv(&recv).map_err(refused)
    }
}

impl Rma for DirectSharedRx {
    fn rma(&self, _: &RmaCall) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

impl Atomics for DirectSharedRx {
    fn atomic(&self, _: &AtomicCall) -> Result<(), NotBegun> {
        Err(Errno(FI_EOPNOTSUPP).into())
    }
}

/// Its endpoints make the progress.
impl Progress for DirectSharedRx {
    fn progress(&self) {}

    fn arm(&self) -> bool {
        true
    }

    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}
