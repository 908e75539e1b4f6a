//! fid_ep of a shared receive context: receives are posted to it as to an endpoint.

use super::{Object, endpoint};
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::cq::Cq;
use crate::api::domain::Domain;
use crate::api::endpoint::shared_rx::SharedRx;
use crate::api::endpoint::{EndpointOps, EndpointState, EndpointTransport};
use crate::api::errno::Result;
use crate::api::messaging::{Messaging, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::engine::op::Context;
use crate::util::user::UserIov;
use core::any::Any;
use core::ffi::c_void;
use std::sync::Arc;

/// The context behind the fid. Whoever binds it cannot tell of which transport it is, so it says so itself.
#[repr(C)]
struct Opened<T: EndpointTransport> {
    any: Arc<dyn Any + Send + Sync>,
    pool: Arc<SharedRx<T>>,
}

/// Gives a shared receive context to C.
pub fn give<T: EndpointTransport + 'static>(pool: Arc<SharedRx<T>>, context: *mut c_void) -> *mut fid_ep {
    let any = Arc::new(pool.clone());
    endpoint::give(Opened { any, pool }, FI_CLASS_SRX_CTX, context)
}

/// The context, if it is of this transport.
/// # Safety
/// A live shared receive context of ours.
pub unsafe fn of<'a, T: EndpointTransport + 'static>(fid: *const fid) -> Option<&'a Arc<SharedRx<T>>> {
    // SAFETY: by contract; what stands behind the fid begins with this, whatever its transport.
    unsafe { Object::<fid_ep, Arc<dyn Any + Send + Sync>>::value(fid.cast()) }.downcast_ref()
}

impl<T: EndpointTransport + 'static> EndpointOps for Opened<T> {
    type Transport = T;
    type Base = Arc<SharedRx<T>>;

    fn base(&self) -> &Arc<SharedRx<T>> {
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
    fn cancel(&self, context: Context) -> Result<()> {
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

impl<T: EndpointTransport + 'static> Messaging for Opened<T> {
    #[inline(always)]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<()> {
        self.pool.send(call, body)
    }

    #[inline(always)]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<()> {
        self.pool.recv(call, body)
    }
}

impl<T: EndpointTransport + 'static> Rma for Opened<T> {
    fn rma(&self, call: &RmaCall) -> Result<()> {
        self.pool.rma(call)
    }
}

impl<T: EndpointTransport + 'static> Atomics for Opened<T> {
    fn atomic(&self, call: &AtomicCall) -> Result<()> {
        self.pool.atomic(call)
    }
}
