//! What every kind of endpoint can do besides moving messages: be bound, enabled, asked for options, closed.
//!
//! An endpoint, a context of a scalable endpoint, one that shares its receives: they differ in `side` and `driver`, the
//! rest is here once. Called by `abi::object`.

use super::Wire;
use super::pool::Pool;
use super::side::Side;
use super::stx::Stx;
use crate::abi::types::*;
use crate::api::av::Av;
use crate::api::cntr::Cntr;
use crate::api::cq::Cq;
use crate::api::errno::{Errno, Result};
use crate::api::messaging::Messaging;
use crate::api::progress::Progress;
use crate::engine::op::Context;
use std::sync::Arc;

/// An endpoint of any kind, as whoever holds it manages it.
pub trait Managed: Messaging + 'static {
    type Wire: Wire + 'static;

    /// Uses its application's side, under its lock.
    fn side<R>(&self, use_it: impl FnOnce(&mut Side) -> R) -> R;

    /// What queues and counters drive.
    fn driver(&self) -> Arc<dyn Progress>;

    fn local_address(&self) -> Vec<u8>;

    /// fi_cancel.
    fn cancel(&self, context: Context) -> Result<()>;

    fn bind_av(&self, av: &Arc<Av>) -> Result<()> {
        self.side(|side| {
            side.not_enabled()?;
            side.peers.bind(av.hold());
            Ok(())
        })
    }

    /// `flags`: FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION.
    fn bind_cq(&self, cq: &Arc<Cq>, flags: u64) -> Result<()> {
        self.side(|side| {
            side.not_enabled()?;
            side.bindings.bind_cq(cq, flags)
        })
    }

    /// `flags`: the operations it counts.
    fn bind_cntr(&self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        self.side(|side| {
            side.not_enabled()?;
            side.bindings.bind_cntr(cntr, flags)
        })
    }

    fn bind_stx(&self, stx: &Arc<Stx>) -> Result<()> {
        self.side(|side| side.bind_stx(stx))
    }

    /// Only endpoints that share their receives can.
    fn bind_srx(&self, _: &Arc<Pool<Self::Wire>>) -> Result<()> {
        Err(Errno(FI_EINVAL))
    }

    /// fi_enable: an endpoint without what it needs is told what is missing.
    fn enable(&self) -> Result<()> {
        let driver = self.driver();
        self.side(|side| {
            if !side.enabled {
                side.check()?;
                side.enabled = true;
                side.bindings.attach(driver);
            }
            Ok(())
        })
    }

    /// To be called before the endpoint is let go: queues must not drive it any more. -FI_EBUSY if others use it.
    fn close(&self) -> Result<()> {
        let (bindings, stx) = self.side(|side| (core::mem::take(&mut side.bindings), side.stx.take()));
        bindings.detach(&self.driver());
        if let Some(stx) = stx {
            stx.users.give();
        }
        Ok(())
    }

    /// FI_OPT_MIN_MULTI_RECV.
    fn min_multi_recv(&self) -> usize {
        self.side(|side| side.settings.min_multi_recv)
    }

    fn set_min_multi_recv(&self, size: usize) {
        self.side(|side| side.settings.min_multi_recv = size);
    }

    /// FI_GETOPSFLAG: `flags` says of which direction.
    fn op_flags(&self, direction: u64) -> Result<u64> {
        self.side(|side| match direction & (FI_TRANSMIT | FI_RECV) {
            FI_TRANSMIT => Ok(side.settings.tx_flags),
            FI_RECV => Ok(side.settings.rx_flags),
            _ => Err(Errno(FI_EINVAL)),
        })
    }

    /// FI_SETOPSFLAG.
    fn set_op_flags(&self, flags: u64) -> Result<()> {
        let wanted = flags & !(FI_TRANSMIT | FI_RECV);
        self.side(|side| {
            match flags & (FI_TRANSMIT | FI_RECV) {
                FI_TRANSMIT => side.settings.tx_flags = wanted,
                FI_RECV => side.settings.rx_flags = wanted,
                _ => return Err(Errno(FI_EINVAL)),
            }
            Ok(())
        })
    }
}
