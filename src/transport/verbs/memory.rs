//! The memory that a domain has registered with its device: by which key work requests name which bytes.

use super::seam::{Nic, Registration};
use crate::engine::op::Refused;
use crate::sys::rdma::{Access, Piece};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct Registrations {
    nic: Box<dyn Nic>,
    table: Mutex<Table>,
    /// Counts what was ended: an endpoint that remembers a key asks again after that.
    ended: AtomicU64,
}

#[derive(Default)]
struct Table {
    /// By first address and number.
    regions: BTreeMap<(usize, usize), Region>,
    first_addresses: BTreeMap<usize, usize>,
    /// The longest region there ever was: none that begins further before an address reaches it.
    longest: usize,
    last: usize,
}

struct Region {
    len: usize,
    registration: Arc<dyn Registration>,
}

/// A key that an endpoint remembers, with the memory it is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembered {
    first: usize,
    len: usize,
    key: u32,
    ended: u64,
}

/// Whether memory has all of `piece`.
fn has_all(first: usize, len: usize, piece: &UserBuf) -> bool {
    let at = piece.addr().checked_sub(first);
    at.and_then(|at| len.checked_sub(at))
        .is_some_and(|left| piece.len() <= left)
}

impl Table {
    /// A region that has all of `piece`, and its first address.
    fn find(&self, piece: &UserBuf) -> Option<(usize, &Region)> {
        let lowest = piece.addr().saturating_sub(self.longest);
        let before = self.regions.range((lowest, 0)..=(piece.addr(), usize::MAX)).rev();
        before
            .map(|((first, _), region)| (*first, region))
            .find(|(first, region)| has_all(*first, region.len, piece))
    }
}

impl Registrations {
    pub fn new(nic: Box<dyn Nic>) -> Registrations {
        Registrations {
            nic,
            table: Mutex::default(),
            ended: AtomicU64::new(1),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that is not 0, and the key for peers.
    pub fn register(&self, memory: &UserBuf, access: Access) -> io::Result<(usize, u32)> {
        let registration = self.nic.register(memory, access)?;
        let key = registration.remote_key();
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.longest = table.longest.max(memory.len());
        table.first_addresses.insert(number, memory.addr());
        let len = memory.len();
        table.regions.insert(
            (memory.addr(), number),
            Region {
                len,
                registration: registration.into(),
            },
        );
        Ok((number, key))
    }

    pub fn deregister(&self, number: usize) {
        let mut table = self.table();
        let Some(first) = table.first_addresses.remove(&number) else {
            return;
        };
        let region = table.regions.remove(&(first, number));
        self.ended.fetch_add(1, Ordering::Release);
        drop(table);
        // The device takes its time for this.
        drop(region);
    }

    /// Whether the memory at `addr` is that of this number.
    pub fn has(&self, addr: usize, number: usize) -> bool {
        let table = self.table();
        let first = table.first_addresses.get(&number).copied();
        let region = first.and_then(|first| Some((first, table.regions.get(&(first, number))?)));
        region.is_some_and(|(first, region)| addr.checked_sub(first).is_some_and(|at| at <= region.len))
    }

    /// The key of registered memory that has all of `piece`.
    pub(super) fn key(&self, piece: &UserBuf, last: &mut Remembered) -> Option<u32> {
        let ended = self.ended.load(Ordering::Acquire);
        if last.ended == ended && has_all(last.first, last.len, piece) {
            return Some(last.key);
        }
        let table = self.table();
        let (first, region) = table.find(piece)?;
        *last = Remembered {
            first,
            len: region.len,
            key: region.registration.local_key(),
            ended,
        };
        Some(last.key)
    }

    /// The registration of memory that has all of `piece`, which stays the device's until nobody holds it, also when the
    /// program ends it meanwhile: without descriptors a program does not say that it needs it.
    pub(super) fn hold(&self, piece: &UserBuf) -> Option<Arc<dyn Registration>> {
        let table = self.table();
        table.find(piece).map(|(_, region)| region.registration.clone())
    }

    /// The pieces of a buffer with their keys. Bytes that travel in the request need none.
    pub(super) fn pieces(
        &self,
        body: &UserIov,
        most: u32,
        inline: bool,
        last: &mut Remembered,
        warn: fn(&str),
    ) -> Result<([Piece; IOV_LIMIT], usize), Refused> {
        let parts = body.parts();
        if parts.len() > most as usize {
            return Err(Refused::Invalid);
        }
        let mut pieces = [Piece::default(); IOV_LIMIT];
        for (piece, part) in pieces.iter_mut().zip(parts) {
            let key = match inline || part.is_empty() {
                true => Some(0),
                false => self.key(part, last),
            };
            let Some(key) = key else {
                warn(&format!(
                    "{} bytes at {:#x} are not registered: register them with fi_mr_reg, as FI_MR_LOCAL says",
                    part.len(),
                    part.addr()
                ));
                return Err(Refused::Invalid);
            };
            *piece = Piece {
                addr: part.addr() as u64,
                len: u32::try_from(part.len()).map_err(|_| Refused::TooLong)?,
                key,
            };
        }
        Ok((pieces, parts.len()))
    }
}
