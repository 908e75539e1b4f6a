//! Shared transmit contexts: an object that endpoints name as where their sends are queued.
//!
//! Every endpoint of ours has its own lanes to its peers, and there is no queue worth sharing between them; so the
//! object holds nothing but who uses it.

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
