//! What stands beside the addresses of a table: user identifiers (FI_AV_USER_ID) and authorization keys.

use super::table::Scope;
use crate::abi::types::*;
use crate::api::errno::{Errno, Result};

/// The identifiers reported in place of indices. Costs nothing as long as nobody sets one.
pub(super) struct UserIds {
    /// Opened with FI_AV_USER_ID: an address without an identifier is reported as FI_ADDR_NOTAVAIL.
    at_open: bool,
    ids: Vec<fi_addr_t>,
}

impl UserIds {
    pub(super) fn new(at_open: bool) -> UserIds {
        UserIds {
            at_open,
            ids: Vec::new(),
        }
    }

    pub(super) fn at_open(&self) -> bool {
        self.at_open
    }

    fn without(&self, index: u32) -> fi_addr_t {
        if self.at_open { FI_ADDR_NOTAVAIL } else { index.into() }
    }

    pub(super) fn get(&self, index: u32) -> fi_addr_t {
        let known = self.ids.get(index as usize).copied();
        known.unwrap_or_else(|| self.without(index))
    }

    pub(super) fn set(&mut self, index: u32, id: fi_addr_t) {
        while self.ids.len() <= index as usize {
            let fresh = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
            self.ids.push(self.without(fresh));
        }
        if let Some(known) = self.ids.get_mut(index as usize) {
            *known = id;
        }
    }

    /// Removes the identifier of an address, so that the next one at its index begins without.
    pub(super) fn clear(&mut self, index: u32) {
        let without = self.without(index);
        if let Some(known) = self.ids.get_mut(index as usize) {
            *known = without;
        }
    }
}

struct Key {
    bytes: Box<[u8]>,
    /// How often the key was inserted. 0: removed, but addresses inserted under it still know its bytes.
    uses: u32,
    /// Endpoints enabled with it.
    pins: u32,
    user_id: fi_addr_t,
}

/// The authorization keys of a vector, in slots that are not used again: there are few.
pub(super) struct Keys {
    /// None: the domain has no FI_AV_AUTH_KEY. Some(0): keys may have any length.
    size: Option<usize>,
    keys: Vec<Key>,
    /// The scope of each address; empty while all have none.
    scopes: Vec<Scope>,
}

/// The scope of an address that was inserted without a key.
pub(super) const NO_KEY: Scope = 0;

impl Keys {
    pub(super) fn new(size: Option<usize>) -> Keys {
        Keys {
            size,
            keys: Vec::new(),
            scopes: Vec::new(),
        }
    }

    pub(super) fn allowed(&self) -> bool {
        self.size.is_some()
    }

    /// A key that is inserted again keeps its slot.
    pub(super) fn insert(&mut self, bytes: &[u8]) -> Result<u32> {
        let size = self.size.ok_or(Errno(FI_EINVAL))?;
        if bytes.is_empty() || (size != 0 && bytes.len() != size) {
            return Err(Errno(FI_EINVAL));
        }
        let same = self
            .keys
            .iter_mut()
            .enumerate()
            .find(|(_, key)| key.uses > 0 && *key.bytes == *bytes);
        let slot = match same {
            Some((slot, key)) => {
                key.uses = key.uses.checked_add(1).ok_or(Errno(FI_ENOMEM))?;
                slot
            }
            None => {
                self.keys.push(Key {
                    bytes: bytes.into(),
                    uses: 1,
                    pins: 0,
                    user_id: FI_ADDR_NOTAVAIL,
                });
                self.keys.len() - 1
            }
        };
        u32::try_from(slot).map_err(|_| Errno(FI_ENOMEM))
    }

    fn live(&mut self, slot: u32) -> Result<&mut Key> {
        let key = self.keys.get_mut(slot as usize).filter(|key| key.uses > 0);
        key.ok_or(Errno(FI_EINVAL))
    }

    pub(super) fn remove(&mut self, slot: u32) -> Result<()> {
        let key = self.live(slot)?;
        if key.pins > 0 {
            return Err(Errno(FI_EBUSY));
        }
        key.uses -= 1;
        Ok(())
    }

    pub(super) fn set_user_id(&mut self, slot: u32, id: fi_addr_t) -> Result<()> {
        self.live(slot)?.user_id = id;
        Ok(())
    }

    pub(super) fn user_id(&self, slot: u32) -> Option<fi_addr_t> {
        self.keys.get(slot as usize).map(|key| key.user_id)
    }

    /// The scope for addresses inserted under a key.
    pub(super) fn scope(&mut self, slot: u32) -> Result<Scope> {
        self.live(slot)?;
        slot.checked_add(1).ok_or(Errno(FI_EINVAL))
    }

    /// All scopes that addresses may be in, besides that of those without a key.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Scope> + use<> {
        1..=Scope::try_from(self.keys.len()).unwrap_or(Scope::MAX)
    }

    /// The bytes of a key that was not removed.
    pub(super) fn bytes(&self, slot: u32) -> Option<&[u8]> {
        self.keys
            .get(slot as usize)
            .filter(|key| key.uses > 0)
            .map(|key| &*key.bytes)
    }

    /// The key an address was inserted under, even if it was removed since.
    pub(super) fn of_address(&self, index: u32) -> Option<&[u8]> {
        let scope = self.scopes.get(index as usize)?;
        let key = self.keys.get(scope.checked_sub(1)? as usize)?;
        Some(&key.bytes)
    }

    pub(super) fn note(&mut self, index: u32, scope: Scope) {
        let at = index as usize;
        if scope != NO_KEY && self.scopes.len() <= at {
            self.scopes.resize(at + 1, NO_KEY);
        }
        if let Some(known) = self.scopes.get_mut(at) {
            *known = scope;
        }
    }

    /// All keys of this moment; counts one more endpoint that uses them.
    pub(super) fn pin(&mut self) -> Vec<u32> {
        let live = self.keys.iter_mut().enumerate().filter(|(_, key)| key.uses > 0);
        live.map(|(slot, key)| {
            key.pins += 1;
            slot as u32
        })
        .collect()
    }

    pub(super) fn unpin(&mut self, slots: &[u32]) {
        for slot in slots {
            if let Some(key) = self.keys.get_mut(*slot as usize) {
                key.pins = key.pins.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_stand_in_for_indices() {
        let mut at_open = UserIds::new(true);
        let mut per_insert = UserIds::new(false);
        assert_eq!((at_open.get(3), per_insert.get(3)), (FI_ADDR_NOTAVAIL, 3));
        for ids in [&mut at_open, &mut per_insert] {
            ids.set(3, 77);
            assert_eq!(ids.get(3), 77);
        }
        assert_eq!((at_open.get(2), per_insert.get(2)), (FI_ADDR_NOTAVAIL, 2));
        at_open.clear(3);
        per_insert.clear(3);
        assert_eq!((at_open.get(3), per_insert.get(3)), (FI_ADDR_NOTAVAIL, 3));
    }

    #[test]
    fn keys_have_the_size_of_the_provider() {
        let rows = [
            // (size, key length, allowed)
            (None, 4, false),
            (Some(0), 4, true),
            (Some(0), 0, false),
            (Some(4), 4, true),
            (Some(4), 3, false),
        ];
        for (size, len, allowed) in rows {
            let made = Keys::new(size).insert(&vec![1; len]);
            assert_eq!(
                made,
                if allowed { Ok(0) } else { Err(Errno(FI_EINVAL)) },
                "{size:?} {len}"
            );
        }
    }

    #[test]
    fn a_key_in_use_stays() {
        let mut keys = Keys::new(Some(0));
        assert_eq!(
            (keys.insert(b"a"), keys.insert(b"b"), keys.insert(b"a")),
            (Ok(0), Ok(1), Ok(0))
        );
        let pins = keys.pin();
        assert_eq!(pins, [0, 1]);
        assert_eq!(keys.insert(b"c"), Ok(2));
        // Inserted after the endpoint was enabled, so not in use by it.
        assert_eq!(keys.remove(2), Ok(()));
        assert_eq!(keys.remove(2), Err(Errno(FI_EINVAL)));
        assert_eq!(keys.remove(0), Err(Errno(FI_EBUSY)));
        keys.unpin(&pins);
        assert_eq!((keys.remove(0), keys.remove(0)), (Ok(()), Ok(())));
        assert_eq!((keys.remove(0), keys.bytes(0)), (Err(Errno(FI_EINVAL)), None));
        // A new life of the same key is a new handle.
        assert_eq!(keys.insert(b"a"), Ok(3));
    }
}
