//! fid_ep of a shared receive context: receives are posted to it as to an endpoint.
//!
//! What a context does is in `api::endpoint::shared_rx`, or `direct::shared`; here every call is passed on to it. Called by
//! `endpoint`'s shims.

use super::{Object, endpoint};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::cq::Cq;
use crate::api::domain::Domain;
use crate::api::endpoint::{EndpointOps, EndpointState};
use crate::api::errno::Result;
use crate::api::messaging::{Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::engine::op;
use crate::util::user::UserIov;
use core::any::Any;
use core::ffi::c_void;
use std::sync::Arc;

/// The context behind the fid. An endpoint that binds it cannot tell its kind from the fid, so `any` tells it.
#[repr(C)]
struct OpenSharedRx<S> {
    any: Arc<dyn Any + Send + Sync>,
    pool: S,
}

/// A kind of shared receive context.
pub trait Context: EndpointOps<Base = Self> + Clone + Send + Sync {}

impl<S: EndpointOps<Base = S> + Clone + Send + Sync> Context for S {}

/// Gives a shared receive context to C.
pub fn give<S: Context>(pool: S, context: *mut c_void) -> *mut fid_ep {
    let any = Arc::new(pool.clone());
    endpoint::give(OpenSharedRx { any, pool }, FI_CLASS_SRX_CTX, context)
}

/// The context, of whichever kind.
///
/// # Safety
/// A live shared receive context of ours.
pub unsafe fn of<'a>(fid: *const fid) -> &'a (dyn Any + Send + Sync) {
    // SAFETY: what is behind the fid of a shared receive context begins with this, whatever its kind.
    &**unsafe { Object::<fid_ep, Arc<dyn Any + Send + Sync>>::value(fid.cast()) }
}

impl<S: Context> EndpointOps for OpenSharedRx<S> {
    type Transport = S::Transport;
    type Base = S;

    fn base(&self) -> &S {
        &self.pool
    }
    fn domain(&self) -> &Arc<Domain> {
        self.pool.domain()
    }
    fn with_state<R>(&self, use_it: impl FnOnce(&mut EndpointState) -> R) -> R {
        self.pool.with_state(use_it)
    }
    fn as_progress(&self) -> Arc<dyn Progress> {
        self.pool.as_progress()
    }
    fn by_thread(&self) -> Arc<dyn Progress> {
        self.pool.by_thread()
    }
    fn unfinished(&self) -> (usize, usize) {
        self.pool.unfinished()
    }
    fn local_address(&self) -> Vec<u8> {
        self.pool.local_address()
    }
    fn cancel(&self, context: op::Context) -> Result<()> {
        self.pool.cancel(context)
    }
    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.pool.bind_av(av)
    }
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.pool.bind_cq(cq, flags)
    }
    fn enable(&self) -> Result<()> {
        self.pool.enable()
    }
    fn close(&self) -> Result<()> {
        self.pool.close()
    }
}

impl<S: Context> Messaging for OpenSharedRx<S> {
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        self.pool.send(call, body)
    }

    #[inline(always)]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        self.pool.recv(call, body)
    }
}

impl<S: Context> Rma for OpenSharedRx<S> {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        self.pool.rma(call)
    }
}

impl<S: Context> Atomics for OpenSharedRx<S> {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        self.pool.atomic(call)
    }
}
