//! Address vectors (fi_av): addresses at small numbers, for every provider.
//!
//! Owns the rules of the page: what may be inserted when, what is returned, what is told to an event queue. Knows
//! nothing of endpoints: they ask for addresses, hold the vector while they use it, and keep what they learned as long
//! as `generation` stays the same. Called by `abi` and by `api::endpoint`.
//!
//! - `kind`: what an address format means; `string`, `socket` and `uri`, which is both, are those that there are;
//! - `table`: the addresses, `index`: found by their bytes; `shared`: the same for a named vector;
//! - `names`: user identifiers and authorization keys; `sequence`: the names of fi_av_insertsym;
//! - `events`: the event queue as seen from here; `insert`: the insertion calls.

pub mod events;
mod index;
mod insert;
pub mod kind;
mod names;
pub mod sequence;
mod shared;
pub mod socket;
pub mod string;
mod table;
pub mod uri;

pub use events::Events;
pub use insert::Insert;
pub use kind::{AddressKind, Layout};
pub use socket::SocketAddr;
pub use string::StringAddr;
pub use uri::SocketUri;

use crate::abi::types::*;
use crate::api::errno::{Errno, Result};
use crate::api::log::Speaker;
use crate::util::lock::OptLock;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kind::Shape;
use names::{Keys, UserIds};
use shared::{Shared, SharedStore};
use std::borrow::Cow;
use std::sync::Arc;
use table::{Store, Table};

/// struct fi_av_attr on safe values.
#[derive(Clone, Debug, Default)]
pub struct AvAttr<'a> {
    pub av_type: fi_av_type,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: Option<&'a str>,
    pub map_addr: usize,
    pub flags: u64,
}

/// What all vectors of a domain have in common.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The provider's name, for the log.
    pub provider: Speaker,
    /// Named vectors are found within the domain of this name only.
    pub name: String,
    /// FI_AV_UNSPEC: a vector may be of either type.
    pub av_type: fi_av_type,
    /// Some for a domain with FI_AV_AUTH_KEY: how long a key is, 0 for any length.
    pub auth_key_size: Option<usize>,
    /// The domain has FI_AV_USER_ID, without which no vector does.
    pub user_ids: bool,
    /// Several threads may call at once.
    pub locked: bool,
}

/// Flags of fi_av_open. FI_SYMMETRIC is a hint that a table like ours has no use for.
const OPEN_FLAGS: u64 = FI_EVENT | FI_READ | FI_SYMMETRIC | FI_AV_USER_ID | FI_PEER;

/// An address vector.
pub struct Av {
    provider: Speaker,
    kind: Arc<dyn AddressKind>,
    av_type: fi_av_type,
    shape: Shape,
    count: usize,
    map_addr: usize,
    flags: u64,
    state: OptLock<State>,
    shared: Option<Arc<Shared>>,
    /// Changed under the lock only, so that a plain load and store do.
    removals: AtomicU64,
    additions: AtomicU64,
    holders: AtomicUsize,
}

struct State {
    store: Box<dyn Store>,
    users: UserIds,
    keys: Keys,
    events: Option<Arc<dyn Events>>,
}

impl Av {
    pub fn open(attr: &AvAttr, kind: Arc<dyn AddressKind>, domain: &Domain) -> Result<Arc<Av>> {
        let invalid = |why: &str| {
            log!(by domain.provider; Warn, Av, "cannot open address vector: {why}");
            Errno(FI_EINVAL)
        };
        let av_type = type_of(attr.av_type, domain.av_type).ok_or_else(|| invalid("not the domain's type"))?;
        let shape = Shape::new(attr.rx_ctx_bits).ok_or_else(|| invalid("rx_ctx_bits too large"))?;
        if attr.flags & !OPEN_FLAGS != 0 {
            return Err(invalid("unknown flags"));
        }
        if attr.flags & FI_READ != 0 && attr.name.is_none() {
            return Err(invalid("FI_READ without a name"));
        }
        if attr.flags & FI_AV_USER_ID != 0 && !domain.user_ids {
            return Err(invalid("the domain was not opened with FI_AV_USER_ID"));
        }
        let (store, shared) = open_store(attr, av_type, &kind, domain)?;
        let own_map = shared.as_ref().map_or(0, |shared| shared.map_addr());
        Ok(Arc::new(Av {
            provider: domain.provider,
            av_type,
            shape,
            count: attr.count,
            map_addr: if attr.map_addr == 0 { own_map } else { attr.map_addr },
            flags: attr.flags,
            state: OptLock::new(
                State {
                    store,
                    users: UserIds::new(attr.flags & FI_AV_USER_ID != 0),
                    keys: Keys::new(domain.auth_key_size),
                    events: None,
                },
                domain.locked,
            ),
            shared,
            kind,
            removals: AtomicU64::new(0),
            additions: AtomicU64::new(0),
            holders: AtomicUsize::new(0),
        }))
    }

    /// The type, which fi_av_open returns to a caller that left the choice.
    pub fn av_type(&self) -> fi_av_type {
        self.av_type
    }

    /// How many addresses the application expected.
    pub fn count(&self) -> usize {
        self.count
    }

    /// For a named vector, what fi_av_open returns in map_addr: the address of an array with the fi_addr_t values of
    /// the vector in order, unless the caller asked for some base of its own. Values do not depend on it.
    pub fn map_addr(&self) -> usize {
        self.map_addr
    }

    pub fn kind(&self) -> &Arc<dyn AddressKind> {
        &self.kind
    }

    /// fi_av_bind with an event queue.
    pub fn bind_eq(&self, events: Arc<dyn Events>, flags: u64) -> Result<()> {
        let mut state = self.state.lock();
        if flags != 0 || state.events.is_some() {
            return Err(Errno(FI_EINVAL));
        }
        state.events = Some(events.clone());
        drop(state);
        events.attached();
        Ok(())
    }

    /// fi_av_remove. All that can be removed are; the first thing wrong is the answer.
    pub fn remove(&self, fi_addrs: &[fi_addr_t], flags: u64) -> Result<()> {
        if flags & !FI_AUTH_KEY != 0 {
            log!(by self.provider; Warn, Av, "unknown flags {flags:#x} for fi_av_remove");
            return Err(Errno(FI_EINVAL));
        }
        let mut state = self.state.lock();
        let mut answer = Ok(());
        if flags & FI_AUTH_KEY == 0 {
            state.store.begin()?;
        }
        // From the end, because the lowest free place is used first: it keeps a table that is emptied in order.
        for fi_addr in fi_addrs.iter().rev() {
            let removed = match flags {
                0 => self.remove_one(&mut state, *fi_addr),
                _ => self.key_slot(*fi_addr).and_then(|slot| state.keys.remove(slot)),
            };
            if removed.is_err() {
                log!(by self.provider; Warn, Av, "cannot remove fi_addr {fi_addr:#x}");
                answer = removed;
            }
        }
        if flags & FI_AUTH_KEY == 0 {
            state.store.end();
        }
        answer
    }

    fn remove_one(&self, state: &mut State, fi_addr: fi_addr_t) -> Result<()> {
        let index = self.shape.index(fi_addr).ok_or(Errno(FI_EINVAL))?;
        let kept = state.store.address(index).map(Cow::into_owned);
        if state.store.remove(index)? {
            state.users.clear(index);
            state.keys.note(index, names::NO_KEY);
            bump(&self.removals);
            if let Some(kept) = kept {
                self.kind.removed(&kept);
            }
        }
        Ok(())
    }

    /// fi_av_lookup: as much of the address as fits, and how long it is.
    pub fn lookup(&self, fi_addr: fi_addr_t, buffer: &mut [u8]) -> Result<usize> {
        let state = self.state.lock();
        let index = self.shape.index(fi_addr);
        let address = index
            .and_then(|index| state.store.address(index))
            .ok_or(Errno(FI_EINVAL))?;
        let address = self.kind.told(&address);
        let fits = copy(&address, buffer);
        if fits < address.len() && self.kind.layout() == Layout::Strings {
            // A string ends in NUL even when it is cut off.
            end_with_nul(buffer);
        }
        Ok(address.len())
    }

    /// The bytes of an address, for an endpoint that resolves it. Kept as long as `generation` stays the same.
    pub fn address(&self, fi_addr: fi_addr_t) -> Option<Vec<u8>> {
        let index = self.shape.index(fi_addr)?;
        Some(self.state.lock().store.address(index)?.into_owned())
    }

    /// The fi_addr of a message's sender, if it was inserted. A None stays true as long as `additions` stays the same.
    ///
    /// A message does not say under which key it was sent: an address inserted with keys only is found by its first
    /// key.
    pub fn find(&self, address: &[u8]) -> Option<fi_addr_t> {
        let mut state = self.state.lock();
        let State { store, keys, .. } = &mut *state;
        let mut scopes = core::iter::once(names::NO_KEY).chain(keys.scopes());
        scopes.find_map(|scope| store.find(scope, address)).map(fi_addr_t::from)
    }

    /// What a completion reports as the source: the identifier that the application gave the address, else its fi_addr.
    pub fn reported(&self, fi_addr: fi_addr_t) -> fi_addr_t {
        let index = self.shape.index(fi_addr);
        index.map_or(FI_ADDR_NOTAVAIL, |index| self.state.lock().users.get(index))
    }

    /// fi_av_set_user_id.
    pub fn set_user_id(&self, fi_addr: fi_addr_t, user_id: fi_addr_t, flags: u64) -> Result<()> {
        let mut state = self.state.lock();
        if flags & !FI_AUTH_KEY != 0 || !state.users.at_open() {
            return Err(Errno(FI_EINVAL));
        }
        if flags & FI_AUTH_KEY != 0 {
            return state.keys.set_user_id(self.key_slot(fi_addr)?, user_id);
        }
        let index = self.shape.index(fi_addr).ok_or(Errno(FI_EINVAL))?;
        state.store.address(index).ok_or(Errno(FI_EINVAL))?;
        state.users.set(index, user_id);
        bump(&self.removals);
        Ok(())
    }

    /// The provider's name, for the log.
    pub fn provider(&self) -> Speaker {
        self.provider
    }

    /// fi_av_insert_auth_key: the handle of the key.
    pub fn insert_auth_key(&self, key: &[u8], flags: u64) -> Result<fi_addr_t> {
        if flags != 0 {
            return Err(Errno(FI_EINVAL));
        }
        let slot = self.state.lock().keys.insert(key)?;
        Ok(self.shape.key_handle(slot))
    }

    /// fi_av_lookup_auth_key, of a key's handle or of an address inserted with one: as much as fits, and how long it
    /// is.
    pub fn lookup_auth_key(&self, fi_addr: fi_addr_t, buffer: &mut [u8]) -> Result<usize> {
        let state = self.state.lock();
        let key = match self.shape.key_slot(fi_addr) {
            Some(slot) => state.keys.bytes(slot),
            None => self.shape.index(fi_addr).and_then(|index| state.keys.of_address(index)),
        };
        let key = key.ok_or(Errno(FI_EINVAL))?;
        copy(key, buffer);
        Ok(key.len())
    }

    fn key_slot(&self, handle: fi_addr_t) -> Result<u32> {
        self.shape.key_slot(handle).ok_or(Errno(FI_EINVAL))
    }

    /// fi_av_straddr: as much of the text as fits, always ended by NUL, and the room the whole needs. The address need
    /// not be in the vector. None if it has no text.
    pub fn straddr(&self, address: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let mut text = self.kind.text(address)?;
        text.push(0);
        if copy(&text, buffer) < text.len() {
            end_with_nul(buffer);
        }
        Some(text.len())
    }

    /// Undoes fi_rx_addr: the fi_addr of the endpoint, and which of its receive contexts.
    pub fn split(&self, fi_addr: fi_addr_t) -> (fi_addr_t, usize) {
        self.shape.split(fi_addr)
    }

    /// Whether an address was inserted and not removed.
    pub fn contains(&self, fi_addr: fi_addr_t) -> bool {
        let index = self.shape.index(fi_addr);
        index.is_some_and(|index| self.state.lock().store.address(index).is_some())
    }

    /// The fi_addr values in use from `first` to `last`, in order.
    pub fn members(&self, first: fi_addr_t, last: fi_addr_t, stride: u64) -> Vec<fi_addr_t> {
        let state = self.state.lock();
        let end = u64::from(state.store.span()).min(last.saturating_add(1));
        let stride = usize::try_from(stride).unwrap_or(usize::MAX).max(1);
        let there = |at: &u64| u32::try_from(*at).is_ok_and(|at| state.store.address(at).is_some());
        (first..end).step_by(stride).filter(there).collect()
    }

    /// Changes when an fi_addr may mean something else: a cached address or identifier is then stale.
    #[inline]
    pub fn generation(&self) -> u64 {
        let others = self.shared.as_ref().map_or(0, |shared| shared.removals());
        self.removals.load(Ordering::Acquire).wrapping_add(others)
    }

    /// Changes when an address may have been added: a peer that `find` did not know may now have an fi_addr.
    #[inline]
    pub fn additions(&self) -> u64 {
        let others = self.shared.as_ref().map_or(0, |shared| shared.additions());
        self.additions.load(Ordering::Acquire).wrapping_add(others)
    }

    /// Keeps the vector from being closed, while an endpoint or set uses it.
    pub fn hold(self: &Arc<Self>) -> Hold {
        // SYNC POINT: none; the count orders nothing but itself.
        self.holders.fetch_add(1, Ordering::Relaxed);
        Hold { av: self.clone() }
    }

    /// The authorization keys of this moment, for an endpoint that is being enabled. They stay until it drops them.
    pub fn hold_keys(self: &Arc<Self>) -> KeyHold {
        let slots = self.state.lock().keys.pin();
        KeyHold {
            slots,
            hold: self.hold(),
        }
    }

    /// Whether closing the vector is -FI_EBUSY.
    pub fn in_use(&self) -> bool {
        self.holders.load(Ordering::Relaxed) > 0
    }

    /// fi_close. After it the vector must not be used again; its memory goes with the last `Arc`.
    pub fn close(&self) -> Result<()> {
        if self.in_use() {
            log!(by self.provider; Warn, Av, "address vector is busy");
            return Err(Errno(FI_EBUSY));
        }
        let events = self.state.lock().events.take();
        if let Some(events) = events {
            events.detached();
        }
        Ok(())
    }
}

/// A vector in use.
pub struct Hold {
    av: Arc<Av>,
}

impl Hold {
    pub fn av(&self) -> &Arc<Av> {
        &self.av
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.av.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Authorization keys in use by an enabled endpoint.
pub struct KeyHold {
    slots: Vec<u32>,
    hold: Hold,
}

impl KeyHold {
    /// What an error entry reports for the first of the keys: its handle or, where the application gives identifiers,
    /// that. FI_ADDR_NOTAVAIL if there is no key, or it has no identifier yet.
    pub fn reported(&self) -> fi_addr_t {
        let av = &self.hold.av;
        let state = av.state.lock();
        let reported = self.slots.first().and_then(|slot| match state.users.at_open() {
            true => state.keys.user_id(*slot),
            false => Some(av.shape.key_handle(*slot)),
        });
        reported.unwrap_or(FI_ADDR_NOTAVAIL)
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        self.hold.av.state.lock().keys.unpin(&self.slots);
    }
}

/// A type the caller leaves open is the domain's, or a table.
fn type_of(asked: fi_av_type, domain: fi_av_type) -> Option<fi_av_type> {
    match (asked, domain) {
        (FI_AV_UNSPEC, FI_AV_UNSPEC) => Some(FI_AV_TABLE),
        (FI_AV_UNSPEC, domain) => Some(domain),
        (FI_AV_MAP | FI_AV_TABLE, domain) => (domain == FI_AV_UNSPEC || domain == asked).then_some(asked),
        _ => None,
    }
}

type Stores = (Box<dyn Store>, Option<Arc<Shared>>);

fn open_store(attr: &AvAttr, av_type: fi_av_type, kind: &Arc<dyn AddressKind>, domain: &Domain) -> Result<Stores> {
    let Some(name) = attr.name else {
        return Ok((Box::new(Table::new(kind.clone(), attr.count)), None));
    };
    if domain.auth_key_size.is_some() {
        log!(by domain.provider; Warn, Av, "a shared address vector has no authorization keys");
        return Err(Errno(FI_ENOSYS));
    }
    let name = shared::Name {
        provider: domain.provider,
        domain: &domain.name,
        name,
        av_type,
        count: attr.count,
        read_only: attr.flags & FI_READ != 0,
    };
    let store = SharedStore::open(&name, kind.clone())?;
    let shared = store.shared();
    Ok((Box::new(store), Some(shared)))
}

/// Increments a count that only the holder of the lock changes.
fn bump(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
}

/// Copies what fits, and says how much that is.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let fits = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..fits), to.get_mut(..fits)) {
        to.copy_from_slice(from);
    }
    fits
}

fn end_with_nul(buffer: &mut [u8]) {
    if let Some(last) = buffer.last_mut() {
        *last = 0;
    }
}

#[cfg(test)]
mod tests;
