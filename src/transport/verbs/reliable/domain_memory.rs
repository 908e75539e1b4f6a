//! What the endpoints of a domain know of registered memory: the program's regions, and the cache. Called by the rest
//! of `reliable`; made by `provider`, which keeps one for each domain.

use super::seam::Device;
use crate::transport::verbs::cache::Cache;
use crate::transport::verbs::memory::Registrations;
use crate::transport::verbs::seam::Nic;
use std::sync::Arc;

#[derive(Clone, Default)]
pub struct DomainMemory {
    /// What the program has registered with the device, in a domain where that is how peers reach it.
    pub regions: Option<Arc<Registrations>>,
    /// The devices do all atomics on those regions, and processors none. Only with regions.
    pub atomics: bool,
    /// Registrations of other memory, for transfers from and to it.
    pub cache: Option<Arc<Cache>>,
}

impl DomainMemory {
    /// What registers memory for as long as the endpoint lives, or a connection.
    pub(super) fn lasting<'a>(&'a self, device: &'a impl Device) -> &'a dyn Nic {
        match &self.cache {
            Some(cache) => cache.direct(),
            None => device.nic(),
        }
    }

    /// What registers memory for a transfer.
    pub(super) fn passing<'a>(&'a self, device: &'a impl Device) -> &'a dyn Nic {
        match &self.cache {
            Some(cache) => &**cache,
            None => device.nic(),
        }
    }
}
