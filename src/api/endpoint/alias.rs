//! Aliases of an endpoint (fi_ep_alias): the same endpoint with default flags of its own.
//!
//! Calls go to the endpoint with the alias's flags in place of the endpoint's. Called by `abi::object`.

use super::{Endpoint, Wire, is_transmit};
use crate::api::errno::Result;
use crate::api::messaging::{Flags, Messaging, RecvCall, SendCall};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

pub struct Alias<T: Wire> {
    pub endpoint: Arc<Endpoint<T>>,
    tx_flags: AtomicU64,
    rx_flags: AtomicU64,
}

impl<T: Wire + 'static> Alias<T> {
    /// An alias of an endpoint whose flags are `tx` and `rx`. `flags` replaces those of the direction it names.
    pub fn open(endpoint: &Arc<Endpoint<T>>, (tx, rx): (u64, u64), flags: u64) -> Result<Alias<T>> {
        is_transmit(flags)?;
        endpoint.aliases.take();
        let alias = Alias {
            endpoint: endpoint.clone(),
            tx_flags: AtomicU64::new(tx),
            rx_flags: AtomicU64::new(rx),
        };
        alias.set_op_flags(flags)?;
        Ok(alias)
    }

    /// The flags of both directions, for an alias of this alias.
    pub fn both_flags(&self) -> (u64, u64) {
        (
            self.tx_flags.load(Ordering::Relaxed),
            self.rx_flags.load(Ordering::Relaxed),
        )
    }

    /// FI_GETOPSFLAG.
    pub fn op_flags(&self, direction: u64) -> Result<u64> {
        Ok(self.of(direction)?.load(Ordering::Relaxed))
    }

    /// FI_SETOPSFLAG.
    pub fn set_op_flags(&self, flags: u64) -> Result<()> {
        self.of(flags)?.store(super::wanted(flags), Ordering::Relaxed);
        Ok(())
    }

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
            other => other,
        }
    }
}

impl<T: Wire> Drop for Alias<T> {
    fn drop(&mut self) {
        self.endpoint.aliases.give();
    }
}

impl<T: Wire + 'static> Messaging for Alias<T> {
    #[inline]
    fn send(&self, call: SendCall) -> Result<()> {
        let flags = Self::own(call.flags, &self.tx_flags);
        self.endpoint.send(SendCall { flags, ..call })
    }

    #[inline]
    fn recv(&self, call: RecvCall) -> Result<()> {
        let flags = Self::own(call.flags, &self.rx_flags);
        self.endpoint.recv(RecvCall { flags, ..call })
    }
}
