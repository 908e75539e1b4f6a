//! Aliases of an endpoint (fi_ep_alias): the same endpoint with default flags of its own.
//!
//! Calls go to the endpoint with the alias's flags in place of the endpoint's. Called by `abi::object`.

use super::ops::{EndpointOps, OnConnection, TransportFacts, can_be_default, is_transmit, wanted};
use super::state::StateGuard;
use crate::api::collective::Collectives;
use crate::api::domain::Domain;
use crate::api::errno::Result;
use crate::api::messaging::{Flags, Messaging, NotBegun, RecvCall, SendCall};
use crate::api::one_sided::{AtomicCall, Atomics, Rma, RmaCall};
use crate::api::progress::Progress;
use crate::api::refs::Refs;
use crate::engine::op::OperationOf;
use crate::util::user::UserIov;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// An alias of an endpoint of any kind, which is no alias itself.
pub struct Alias {
    endpoint: Arc<dyn EndpointOps>,
    /// The endpoint's count of open aliases.
    among: Arc<Refs>,
    tx_flags: AtomicU64,
    rx_flags: AtomicU64,
}

impl Alias {
    /// Opens an alias of an endpoint, or of another alias. `flags` replaces the defaults of the direction it names.
    pub fn open(of: &dyn EndpointOps, flags: u64) -> Result<Alias> {
        can_be_default(flags)?;
        let endpoint = of.base();
        let among = endpoint.lock_state().aliases.clone();
        among.acquire();
        let (tx, rx) = of.both_flags();
        let alias = Alias {
            endpoint,
            among,
            tx_flags: AtomicU64::new(tx),
            rx_flags: AtomicU64::new(rx),
        };
        alias.set_op_flags(flags)?;
        Ok(alias)
    }
}

impl Alias {
    fn of(&self, direction: u64) -> Result<&AtomicU64> {
        Ok(if is_transmit(direction)? {
            &self.tx_flags
        } else {
            &self.rx_flags
        })
    }

    #[inline]
    fn own(flags: Flags, own: &AtomicU64) -> Flags {
        match flags {
            Flags::Endpoint => Flags::Alias(own.load(Ordering::Relaxed)),
            Flags::Inject => Flags::AliasInject(own.load(Ordering::Relaxed)),
            other => other,
        }
    }
}

impl Drop for Alias {
    fn drop(&mut self) {
        self.among.release();
    }
}

impl EndpointOps for Alias {
    fn base(&self) -> Arc<dyn EndpointOps> {
        self.endpoint.clone()
    }

    fn domain(&self) -> &Arc<Domain> {
        self.endpoint.domain()
    }

    fn lock_state(&self) -> StateGuard<'_> {
        self.endpoint.lock_state()
    }

    fn transport(&self) -> TransportFacts {
        self.endpoint.transport()
    }

    fn as_progress(&self) -> Arc<dyn Progress> {
        self.endpoint.as_progress()
    }

    fn by_thread(&self) -> Arc<dyn Progress> {
        self.endpoint.by_thread()
    }

    fn number(&self) -> u64 {
        self.endpoint.number()
    }

    fn local_address(&self) -> Vec<u8> {
        self.endpoint.local_address()
    }

    fn collectives(&self) -> Option<Arc<dyn Collectives>> {
        self.endpoint.collectives()
    }

    fn set_address(&self, address: &[u8]) -> Result<()> {
        self.endpoint.set_address(address)
    }

    fn cancel(&self, operation: OperationOf) -> Result<()> {
        self.endpoint.cancel(operation)
    }

    fn unfinished(&self) -> (usize, usize) {
        self.endpoint.unfinished()
    }

    fn bind_srx(&self, context: &(dyn Any + Send + Sync)) -> Result<()> {
        self.endpoint.bind_srx(context)
    }

    fn with_connection(&self, use_it: &mut OnConnection) -> Result<()> {
        self.endpoint.with_connection(use_it)
    }

    fn enable(&self) -> Result<()> {
        self.endpoint.enable()
    }

    /// The endpoint stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn both_flags(&self) -> (u64, u64) {
        (
            self.tx_flags.load(Ordering::Relaxed),
            self.rx_flags.load(Ordering::Relaxed),
        )
    }

    fn set_op_flags(&self, flags: u64) -> Result<()> {
        can_be_default(flags)?;
        self.of(flags)?.store(wanted(flags), Ordering::Relaxed);
        Ok(())
    }
}

impl Messaging for Alias {
    #[inline]
    fn send(&self, call: &SendCall, body: &UserIov) -> Result<(), NotBegun> {
        let flags = Self::own(call.flags, &self.tx_flags);
        self.endpoint.send(&SendCall { flags, ..*call }, body)
    }

    #[inline]
    fn recv(&self, call: &RecvCall, body: &UserIov) -> Result<(), NotBegun> {
        let flags = Self::own(call.flags, &self.rx_flags);
        self.endpoint.recv(&RecvCall { flags, ..*call }, body)
    }
}

impl Rma for Alias {
    fn rma(&self, call: &RmaCall) -> Result<(), NotBegun> {
        let flags = Self::own(call.flags, &self.tx_flags);
        self.endpoint.rma(&RmaCall { flags, ..*call })
    }
}

impl Atomics for Alias {
    fn atomic(&self, call: &AtomicCall) -> Result<(), NotBegun> {
        let flags = Self::own(call.flags, &self.tx_flags);
        self.endpoint.atomic(&AtomicCall { flags, ..*call })
    }
}
