//! Fabrics and domains: what the objects opened from them have in common, and how many there are.
//!
//! Provider-independent. fi_close of a fabric or domain with open objects is -FI_EBUSY; `users` counts them. Called by
//! `abi::object`.

use super::av;
use super::deferred::Deferred;
use super::driver::Driver;
use super::eq::Eq;
use super::errno::{Errno, Result};
use super::info::model::{Info, KeySize};
use super::log::Speaker;
use super::mr::memory::Memory;
use super::mr::registrar::Registrar;
use super::refs::Refs;
use crate::abi::types::*;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An opened fabric.
pub struct Fabric {
    pub users: Refs,
    /// The API version that the program asked for with fi_getinfo.
    pub api_version: u32,
    /// Whose objects these are, for the log.
    pub provider: Speaker,
}

impl Fabric {
    pub fn new(provider: Speaker, api_version: u32) -> Arc<Fabric> {
        Arc::new(Fabric {
            users: Refs::default(),
            provider,
            api_version,
        })
    }
}

/// The event queue of a domain.
struct BoundEq {
    eq: Arc<Eq>,
    /// FI_REG_MR: registrations are reported there.
    hears_regions: bool,
}

/// What a provider's endpoints share: `OnEngine::Shared`.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// What a provider opens with a domain.
pub struct Opened {
    pub shared: Shared,
    /// Who must know of the domain's registered memory.
    pub registrar: Option<Arc<dyn Registrar>>,
}

impl Default for Opened {
    /// Nothing.
    fn default() -> Opened {
        Opened {
            shared: Arc::new(()),
            registrar: None,
        }
    }
}

/// An opened domain.
pub struct Domain {
    pub fabric: Arc<Fabric>,
    /// Whose objects these are, for the log.
    pub provider: Speaker,
    pub users: Refs,
    /// Whether several threads may call into one object at once.
    pub locked: bool,
    /// Whether several threads may call into different objects at once, which matters where those share something.
    pub crossed: bool,
    pub api_version: u32,
    /// The registered memory.
    pub memory: Arc<Memory>,
    /// What the provider has to do with it; None: nothing.
    pub registrar: Option<Arc<dyn Registrar>>,
    /// Operations that wait for counters.
    pub deferred: Arc<Deferred>,
    /// What its endpoints were said to be for when it was opened.
    pub caps: u64,
    /// FI_TRIGGER was asked for.
    pub triggers: bool,
    /// How addresses are written, as fi_getinfo answered.
    pub addr_format: u32,
    /// What its address vectors have in common.
    pub av: av::Domain,
    /// The thread of FI_PROGRESS_AUTO.
    pub driver: Option<Driver>,
    /// What the provider's endpoints share, until the domain is closed.
    shared: Mutex<Option<Shared>>,
    closed: AtomicBool,
    eq: Mutex<Option<BoundEq>>,
}

impl Domain {
    /// Without anything that endpoints share.
    pub fn open(fabric: &Arc<Fabric>, info: &Info) -> Result<Arc<Domain>> {
        Domain::sharing(fabric, info, |_| Ok(Opened::default()))
    }

    /// `share` is called when nothing else can fail.
    pub fn sharing(
        fabric: &Arc<Fabric>,
        info: &Info,
        share: impl FnOnce(&Info) -> Result<Opened>,
    ) -> Result<Arc<Domain>> {
        let attr = info.domain.as_ref().ok_or(Errno(FI_EINVAL))?;
        let auto = attr.progress == FI_PROGRESS_AUTO;
        // Event queues belong to no domain, so any thread may read them at every threading level, and that drives these
        // endpoints.
        let driven_by_eq = info.ep_type() == FI_EP_MSG || info.caps & FI_COLLECTIVE != 0;
        // The progress thread is one more caller.
        let crossed = auto || driven_by_eq || attr.threading != FI_THREAD_DOMAIN;
        // Any thread may start deferred work on any endpoint, and a region's counter drives all endpoints.
        let triggers = info.caps & FI_TRIGGER != 0;
        let drives_all = triggers || info.caps & FI_RMA_EVENT != 0;
        let locked = auto || driven_by_eq || is_shared(attr.threading) || drives_all && crossed;
        let memory = Arc::new(Memory::new(attr.mr_mode, attr.mr_key_size, crossed));
        let Opened { shared, registrar } = share(info)?;
        fabric.users.acquire();
        Ok(Arc::new(Domain {
            shared: Mutex::new(Some(shared)),
            fabric: fabric.clone(),
            provider: fabric.provider,
            users: Refs::default(),
            locked,
            crossed,
            api_version: fabric.api_version,
            deferred: Deferred::new(fabric.provider, &memory, crossed),
            caps: info.caps,
            triggers,
            memory,
            registrar,
            addr_format: info.addr_format,
            av: av::Domain {
                provider: fabric.provider,
                name: attr.name.clone().unwrap_or_default(),
                av_type: attr.av_type,
                // Keys are kept and compared, never interpreted, so they may have any length.
                auth_key_size: (attr.auth_key.size == KeySize::Is(FI_AV_AUTH_KEY)).then_some(0),
                user_ids: attr.caps & FI_AV_USER_ID != 0,
                // With FI_THREAD_COMPLETION endpoints of several threads may share an address vector.
                locked: crossed,
            },
            driver: auto.then(Driver::default),
            closed: AtomicBool::new(false),
            eq: Mutex::default(),
        }))
    }
}

impl Domain {
    /// fi_domain_bind with an event queue; replaces the one bound before.
    pub fn bind_eq(&self, eq: &Arc<Eq>, hears_regions: bool) {
        eq.refs().acquire();
        let bound = BoundEq {
            eq: eq.clone(),
            hears_regions,
        };
        let before = self.bound_eq().replace(bound);
        if let Some(before) = before {
            before.eq.refs().release();
        }
    }

    /// Reports a registration, if the program asked for that. The region can be used before the event is read.
    pub fn registered(&self, fid: usize, context: usize) {
        if let Some(bound) = self.bound_eq().as_ref().filter(|bound| bound.hears_regions) {
            // An overrun queue reports that itself.
            let _ = bound.eq.post_entry(FI_MR_COMPLETE, fid, context, 0);
        }
    }

    /// fi_close. -FI_EBUSY while somebody uses it. A thread that drove one of its endpoints may still have a reference,
    /// so what the domain uses is given back here and not with the last of them.
    pub fn close(&self) -> Result<()> {
        unused(&self.users)?;
        self.let_go();
        Ok(())
    }

    fn let_go(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(driver) = &self.driver {
            driver.end();
        }
        drop(self.lock_shared().take());
        if let Some(bound) = self.bound_eq().take() {
            bound.eq.refs().release();
        }
        self.fabric.users.release();
    }

    /// What its endpoints share. -FI_EINVAL: the domain is another provider's, or closed.
    pub fn shared<S: Send + Sync + 'static>(&self) -> Result<Arc<S>> {
        let shared = self.lock_shared().clone();
        shared.and_then(|shared| shared.downcast().ok()).ok_or(Errno(FI_EINVAL))
    }

    fn lock_shared(&self) -> MutexGuard<'_, Option<Shared>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bound_eq(&self) -> MutexGuard<'_, Option<BoundEq>> {
        self.eq.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Whether two calls may meet in one object at this threading level. With FI_THREAD_FID and FI_THREAD_ENDPOINT one
/// thread may read a queue, which drives its endpoints, while another sends on one of them.
fn is_shared(threading: u32) -> bool {
    !matches!(threading, FI_THREAD_DOMAIN | FI_THREAD_COMPLETION)
}

/// -FI_EBUSY while other objects use this one.
pub fn unused(users: &Refs) -> Result<()> {
    if users.count() == 0 {
        Ok(())
    } else {
        Err(Errno(FI_EBUSY))
    }
}

#[cfg(test)]
mod tests;
