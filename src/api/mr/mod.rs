//! Registered memory: what stands behind a fid_mr.
//!
//! A region is a record for remote access: where, how much, which rights. The records are `util::regions`'; here is
//! what the application may do with one. A provider whose card must know memory has a `registrar` besides. Called by
//! `abi::object`.
//!
//! - `memory`: all regions of a domain, and the endpoints and counters that have to do with them.
//! - `registrar`: what a provider does when memory is registered.

use super::cntr::Cntr;
use super::domain::{Domain, unused};
use super::errno::{Errno, Result, text};
use super::refs::Refs;
use crate::abi::types::*;
use crate::sys::locked_memory;
use crate::util::regions::{Region, Rights};
use crate::util::user::{UserBuf, UserIov};
use registrar::Registered;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub mod memory;
pub mod registrar;

/// A registration: what fi_mr_reg, fi_mr_regv and fi_mr_regattr have in common.
pub struct Request {
    pub memory: UserIov,
    pub access: u64,
    pub offset: u64,
    pub key: u64,
    pub flags: u64,
    /// The region that this one is a part of (a sub-region).
    pub whole: Option<Arc<Mr>>,
}

pub struct Mr {
    domain: Arc<Domain>,
    region: Region,
    /// None: the registration gives peers no access.
    key: Option<u64>,
    /// What the domain's registrar made of it; None: there is none.
    registered: Option<Registered>,
    state: Mutex<MrState>,
    whole: Option<Arc<Mr>>,
    /// Open sub-regions.
    parts: Refs,
}

#[derive(Default)]
struct MrState {
    /// fi_mr_enable was called: nothing more may be bound.
    settled: bool,
    endpoint: Option<u64>,
    counters: Vec<(Arc<Cntr>, Rights)>,
}

/// Known flags of registrations. There is no device memory.
const FLAGS: u64 = FI_RMA_EVENT | FI_RMA_PMEM | FI_MR_SINGLE_USE | FI_HMEM_HOST_ALLOC;

/// Has the domain's registrar register the memory, if there is one.
fn register(domain: &Domain, region: &Region, request: &Request) -> Result<Option<Registered>> {
    let Some(registrar) = &domain.registrar else {
        return Ok(None);
    };
    // What peers do is counted: they must not do it without this process.
    let counted = request.flags & (FI_RMA_EVENT | FI_MR_SINGLE_USE) != 0;
    let rights = if counted { Rights::default() } else { region.rights };
    let registered = registrar.register(&region.memory, request.access, rights);
    registered.map(Some).inspect_err(|error| {
        log!(
            by domain.provider;
            Warn,
            Mr,
            "fi_mr_reg: {} bytes could not be registered: {}{}",
            region.memory.len(),
            text(error.0).to_string_lossy(),
            locked_memory::advice(error.0)
        );
    })
}

fn deregister(domain: &Domain, registered: Option<Registered>) {
    if let (Some(registrar), Some(registered)) = (&domain.registrar, registered) {
        registrar.deregister(&registered);
    }
}

impl Mr {
    pub fn register(domain: &Arc<Domain>, request: Request) -> Result<Arc<Mr>> {
        if request.flags & !FLAGS != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        let covered = |whole: &Arc<Mr>| Arc::ptr_eq(&whole.domain, domain) && whole.covers(&request.memory);
        if request.offset != 0 || !request.whole.as_ref().is_none_or(covered) {
            return Err(Errno(FI_EINVAL));
        }
        let memory = &domain.memory;
        let region = memory.mode.region(request.memory, request.access, request.flags);
        let registered = register(domain, &region, &request)?;
        let key = if region.rights == Rights::default() {
            None
        } else {
            let key = memory.add(
                region.clone(),
                request.key,
                registered.and_then(|registered| registered.key),
            );
            // The program's key may be taken.
            key.map(Some).inspect_err(|_| deregister(domain, registered))?
        };
        if let Some(key) = key.filter(|_| request.flags & FI_MR_SINGLE_USE != 0) {
            memory.end_with_first_use(key);
        }
        if let Some(whole) = &request.whole {
            whole.parts.acquire();
        }
        domain.users.acquire();
        Ok(Arc::new(Mr {
            domain: domain.clone(),
            region,
            key,
            registered,
            state: Mutex::default(),
            whole: request.whole,
            parts: Refs::default(),
        }))
    }

    /// fi_close. After it no peer touches the memory. -FI_EBUSY while sub-regions are open, or while a peer that was
    /// stopped in the middle of an operation is at the memory; then the region stays as it was.
    pub fn close(&self) -> Result<()> {
        unused(&self.parts)?;
        if let Some(key) = self.key {
            self.domain.memory.remove(key)?;
        }
        deregister(&self.domain, self.registered);
        for (cntr, _) in core::mem::take(&mut self.state().counters) {
            if self.key.is_some() {
                self.domain.memory.release(&cntr);
            }
            cntr.refs().release();
        }
        Ok(())
    }

    /// fi_mr_key. With FI_MR_RAW the program must use fi_mr_raw_attr instead.
    pub fn key(&self) -> u64 {
        if self.domain.memory.mode.raw {
            FI_KEY_NOTAVAIL
        } else {
            self.raw_key()
        }
    }

    /// What fi_mr_desc gives, if the provider has a say in it.
    pub fn desc(&self) -> Option<usize> {
        self.registered.map(|registered| registered.desc)
    }

    pub fn raw_key(&self) -> u64 {
        self.key.unwrap_or(FI_KEY_NOTAVAIL)
    }

    /// The remote address of the region's first byte.
    pub fn base(&self) -> u64 {
        self.region.base
    }

    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// For binding: not after fi_mr_enable, if the domain has regions enabled.
    fn state_to_bind(&self) -> Result<MutexGuard<'_, MrState>> {
        let state = self.state();
        if state.settled {
            return Err(Errno(FI_EOPBADSTATE as i32));
        }
        Ok(state)
    }

    fn state(&self) -> MutexGuard<'_, MrState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds an endpoint, by its number. That limits the region to it with FI_MR_ENDPOINT; else regions are the
    /// domain's.
    pub fn bind_endpoint(&self, number: u64) -> Result<()> {
        let mut state = self.state_to_bind()?;
        if !self.domain.memory.mode.by_endpoint {
            return Ok(());
        }
        if state.endpoint.is_some_and(|bound| bound != number) {
            return Err(Errno(FI_EINVAL));
        }
        state.endpoint = Some(number);
        Ok(())
    }

    /// Binds a counter of what peers do: FI_REMOTE_WRITE, and FI_REMOTE_READ too.
    pub fn bind_counter(&self, cntr: &Arc<Cntr>, flags: u64) -> Result<()> {
        if flags & !(FI_REMOTE_WRITE | FI_REMOTE_READ) != 0 {
            return Err(Errno(FI_EBADFLAGS as i32));
        }
        let events = Rights {
            read: flags & FI_REMOTE_READ != 0,
            write: flags & FI_REMOTE_WRITE != 0,
        };
        if self.registered.is_some_and(|registered| registered.key.is_some()) {
            log!(
                by self.domain.provider;
                Warn,
                Mr,
                "fi_mr_bind: a card tells nobody what peers do with its keys; register with FI_RMA_EVENT to have it counted"
            );
            return Err(Errno(FI_EOPNOTSUPP));
        }
        let mut state = self.state_to_bind()?;
        let taken = |(_, bound): &(Arc<Cntr>, Rights)| bound.read && events.read || bound.write && events.write;
        if events == Rights::default() || state.counters.iter().any(taken) {
            return Err(Errno(FI_EINVAL));
        }
        cntr.refs().acquire();
        state.counters.push((cntr.clone(), events));
        if let Some(key) = self.key {
            self.domain.memory.count_accesses(key, cntr, events);
        }
        Ok(())
    }

    /// fi_mr_enable. With FI_MR_ENDPOINT an endpoint must be bound before.
    pub fn enable(&self) -> Result<()> {
        let mut state = self.state();
        let mode = &self.domain.memory.mode;
        if mode.by_endpoint && state.endpoint.is_none() {
            return Err(Errno(FI_EINVAL));
        }
        state.settled = mode.by_endpoint || mode.by_event;
        if let Some(key) = self.key {
            let only = state.endpoint;
            self.domain.memory.regions.change(key, |region| {
                region.enabled = true;
                region.endpoint = only;
            });
        }
        Ok(())
    }

    /// fi_mr_refresh: pages are not cached, so there is nothing to do for pages of the region.
    pub fn refresh(&self, pages: &UserIov) -> Result<()> {
        if self.covers(pages) {
            Ok(())
        } else {
            Err(Errno(FI_EINVAL))
        }
    }

    /// Whether the region has all of that memory.
    fn covers(&self, memory: &UserIov) -> bool {
        let within = |inner: &UserBuf, outer: &UserBuf| {
            inner.addr().checked_sub(outer.addr()).is_some_and(|at| {
                let left = outer.len().checked_sub(at);
                left.is_some_and(|left| inner.len() <= left)
            })
        };
        let parts = self.region.memory.parts();
        memory
            .parts()
            .iter()
            .all(|inner| parts.iter().any(|outer| within(inner, outer)))
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            whole.parts.release();
        }
        self.domain.users.release();
    }
}

#[cfg(test)]
mod tests;
