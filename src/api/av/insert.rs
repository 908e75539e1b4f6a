//! The insertion calls: fi_av_insert, fi_av_insertsvc, fi_av_insertsym.
//!
//! Names are resolved first, without the lock; then all addresses of a call go in under one lock; then the event queue
//! is told, without the lock again: one error per address that failed, in order, and one completion.

use super::kind::{Layout, Split};
use super::names::NO_KEY;
use super::sequence::Sequence;
use super::string::is_text;
use super::table::Scope;
use super::{Av, Events, State, bump};
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use core::ffi::c_int;
use std::sync::Arc;

/// What an insertion call has beside its addresses.
#[derive(Default)]
pub struct Insert<'a> {
    /// One per address, or none at all. In: user identifiers (FI_AV_USER_ID) or key handles (FI_AUTH_KEY).
    pub fi_addr: Option<&'a mut [fi_addr_t]>,
    pub flags: u64,
    /// Handed on to the event queue.
    pub context: usize,
    /// With FI_SYNC_ERR, the array of integers to which the caller's context points, one per address.
    pub status: Option<&'a mut [c_int]>,
}

/// Known flags. FI_MORE is a hint that has no use here; FI_FIREWALL_ADDR is for transports.
const FLAGS: u64 = FI_MORE | FI_SYNC_ERR | FI_FIREWALL_ADDR | FI_AV_USER_ID | FI_AUTH_KEY;

impl Av {
    /// Inserts `count` addresses that lie in `array` as `AddressKind::layout` says. The number inserted, or 0 for a
    /// vector with FI_EVENT.
    pub fn insert(&self, array: &[u8], count: usize, request: Insert) -> Result<usize> {
        let mut split = Split::new(self.kind.layout(), array);
        self.insert_each(count, request, |_| Ok(split.next().ok_or(Errno(FI_EINVAL))?.into()))
    }

    pub fn insertsvc(&self, node: Option<&str>, service: Option<&str>, request: Insert) -> Result<usize> {
        let one = Sequence {
            node,
            nodecnt: 1,
            service,
            svccnt: 1,
        };
        self.insertsym(&one, request)
    }

    pub fn insertsym(&self, names: &Sequence, request: Insert) -> Result<usize> {
        let count = names.count()?;
        self.check_request(&request, &self.state.lock())?;
        let resolve = |at| {
            let (node, service) = names.name(at)?;
            self.kind.resolve(node.as_deref(), service.as_deref())
        };
        let mut found = (0..count).map(resolve).collect::<Vec<_>>().into_iter();
        self.insert_each(count, request, |_| Ok(found.next().ok_or(Errno(FI_EINVAL))??.into()))
    }

    /// Refuses a call as a whole; after this only single addresses fail.
    fn check_request(&self, request: &Insert, state: &State) -> Result<()> {
        let has = |flag| request.flags & flag != 0;
        if request.flags & !FLAGS != 0 {
            log!(by self.provider; Warn, Av, "unknown flags {:#x} for an insertion", request.flags);
            return Err(Errno(FI_EBADFLAGS as c_int));
        }
        if self.is_async() && has(FI_SYNC_ERR) {
            return Err(Errno(FI_EBADFLAGS as c_int));
        }
        if self.is_async() && state.events.is_none() {
            return Err(Errno(FI_ENOEQ as c_int));
        }
        let ids = has(FI_AV_USER_ID);
        let keys = has(FI_AUTH_KEY);
        let no_input = request.fi_addr.is_none() && (ids || keys);
        let no_ids = ids && (state.users.at_open() || state.keys.allowed());
        let no_keys = keys && !state.keys.allowed();
        if no_input || no_ids || no_keys || (has(FI_SYNC_ERR) && request.status.is_none()) {
            return Err(Errno(FI_EINVAL));
        }
        Ok(())
    }

    fn is_async(&self) -> bool {
        self.flags & FI_EVENT != 0
    }

    fn insert_each<'b>(
        &self,
        count: usize,
        mut request: Insert,
        mut next: impl FnMut(usize) -> Result<std::borrow::Cow<'b, [u8]>>,
    ) -> Result<usize> {
        let mut failed = Vec::new();
        let mut state = self.state.lock();
        self.check_request(&request, &state)?;
        let events = if self.is_async() { state.events.clone() } else { None };
        state.store.begin()?;
        let mut inserted = 0;
        for at in 0..count {
            let input = request.fi_addr.as_deref().and_then(|all| all.get(at)).copied();
            let done = next(at).and_then(|address| self.insert_one(&mut state, &address, request.flags, input));
            match done {
                Ok(_) => inserted += 1,
                Err(errno) => {
                    log!(by self.provider; Warn, Av, "address {at} of {count} not inserted: error {}", errno.0);
                    if events.is_some() {
                        failed.push((at as u64, errno));
                    }
                }
            }
            if let Some(place) = request.fi_addr.as_deref_mut().and_then(|all| all.get_mut(at)) {
                *place = done.unwrap_or(FI_ADDR_NOTAVAIL);
            }
            if let Some(place) = request.status.as_deref_mut().and_then(|all| all.get_mut(at)) {
                *place = done.map_or_else(|errno| errno.0, |_| 0);
            }
        }
        state.store.end();
        drop(state);
        match events {
            Some(events) => {
                tell(&events, request.context, &failed, inserted);
                Ok(0)
            }
            None => Ok(inserted),
        }
    }

    fn insert_one(&self, state: &mut State, address: &[u8], flags: u64, input: Option<fi_addr_t>) -> Result<fi_addr_t> {
        let scope = self.scope(state, flags, input)?;
        self.check_text(address)?;
        self.kind.check(address)?;
        let kept = self.kind.kept(address);
        let done = state.store.insert(scope, &kept)?;
        if done.new {
            if let Err(error) = self.kind.inserted(&kept) {
                state.store.remove(done.index)?;
                return Err(error);
            }
            state.keys.note(done.index, scope);
            bump(&self.additions);
        }
        if let (Some(id), true) = (input, flags & FI_AV_USER_ID != 0) {
            state.users.set(done.index, id);
            if !done.new {
                bump(&self.removals);
            }
        }
        Ok(done.index.into())
    }

    /// fi_av(3) speaks of an array of pointers to strings; who passes one is told how strings lie.
    fn check_text(&self, address: &[u8]) -> Result<()> {
        if self.kind.layout() == Layout::Strings && !is_text(address) {
            let how = "strings lie one after the other, each with its NUL, not as an array of pointers";
            log!(by self.provider; Warn, Av, "an address that is no text: {how}");
            return Err(Errno(FI_EINVAL));
        }
        Ok(())
    }

    fn scope(&self, state: &mut State, flags: u64, input: Option<fi_addr_t>) -> Result<Scope> {
        if flags & FI_AUTH_KEY == 0 {
            return Ok(NO_KEY);
        }
        let slot = self.key_slot(input.ok_or(Errno(FI_EINVAL))?)?;
        state.keys.scope(slot)
    }
}

fn tell(events: &Arc<dyn Events>, context: usize, failed: &[(u64, Errno)], inserted: usize) {
    for (index, errno) in failed {
        events.error(context, *index, *errno);
    }
    events.complete(context, inserted as u64);
}
