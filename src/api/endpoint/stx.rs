//! Shared transmit contexts (fi_stx_context).
//!
//! Our endpoints have their own way to each peer, with no queue worth sharing. So the object only counts its users.

use crate::api::domain::{Domain, unused};
use crate::api::errno::Result;
use crate::api::refs::Refs;
use std::sync::Arc;

pub struct Stx {
    pub domain: Arc<Domain>,
    /// Endpoints bound to it.
    pub users: Refs,
}

impl Stx {
    pub fn open(domain: &Arc<Domain>) -> Arc<Stx> {
        domain.users.acquire();
        Arc::new(Stx {
            domain: domain.clone(),
            users: Refs::default(),
        })
    }

    /// -FI_EBUSY while an endpoint is bound.
    pub fn close(&self) -> Result<()> {
        unused(&self.users)
    }
}

impl Drop for Stx {
    fn drop(&mut self) {
        self.domain.users.release();
    }
}
