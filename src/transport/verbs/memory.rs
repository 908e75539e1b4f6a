//! The memory that a domain has registered with its device: by which key work requests name which bytes.

use super::ranges::{Found, Ranges, has_all};
use super::seam::{Nic, Registration};
use crate::engine::op::Refused;
use crate::sys::rdma::{Access, Piece};
use crate::util::user::{IOV_LIMIT, UserBuf, UserIov};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the device does with the memory of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing: its bytes travel within the request.
    Within,
    Reads,
    Writes,
}

struct Known {
    access: Access,
    registration: Arc<dyn Registration>,
}

type Table = Ranges<Known>;

pub struct Registrations {
    nic: Box<dyn Nic>,
    table: Mutex<Table>,
    /// Counts what was ended: an endpoint that remembers a key asks again after that.
    ended: AtomicU64,
}

/// A key that an endpoint remembers, with the memory it is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    memory: Range<usize>,
    key: u32,
    writable: bool,
    ended: u64,
}

impl Known {
    /// Whether the device may write there for its owner.
    fn writable(&self) -> bool {
        self.access.local_write || self.access.remote_write
    }
}

/// One of the registrations that have all of `piece`: of those that are meant for such a use the nearest and newest.
/// Where none is, the device judges.
fn fitting<'a>(table: &'a Table, piece: &UserBuf, writes: bool) -> Option<Found<&'a Known>> {
    let meant = |found: &Found<&Known>| !writes || found.value.writable();
    let all = || table.with_all(piece.range());
    all().find(meant).or_else(|| all().next())
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
        let known = Known {
            access,
            registration: registration.into(),
        };
        let number = self.table().insert(memory.range(), known);
        Ok((number, key))
    }

    pub fn deregister(&self, number: usize) {
        let mut table = self.table();
        let Some(ended) = table.remove(number) else {
            return;
        };
        self.ended.fetch_add(1, Ordering::Release);
        drop(table);
        // The device takes its time for this.
        drop(ended);
    }

    /// Whether the memory at `addr` is that of this number.
    pub fn has(&self, addr: usize, number: usize) -> bool {
        let memory = self.table().memory(number);
        memory.is_some_and(|memory| (memory.start..=memory.end).contains(&addr))
    }

    /// The key of registered memory that has all of `piece`, which the device reads or writes.
    pub(super) fn key(&self, piece: &UserBuf, writes: bool, last: &mut Remembered) -> Option<u32> {
        let ended = self.ended.load(Ordering::Acquire);
        if last.ended == ended && has_all(&last.memory, &piece.range()) && (last.writable || !writes) {
            return Some(last.key);
        }
        let table = self.table();
        let found = fitting(&table, piece, writes)?;
        *last = Remembered {
            memory: found.memory,
            key: found.value.registration.local_key(),
            writable: found.value.writable(),
            ended,
        };
        Some(last.key)
    }

    /// The registration of memory that has all of `piece`, which stays the device's until nobody holds it, also when
    /// the program ends it meanwhile: without descriptors a program does not say that it needs it.
    pub(super) fn hold(&self, piece: &UserBuf, writes: bool) -> Option<Arc<dyn Registration>> {
        let table = self.table();
        fitting(&table, piece, writes).map(|found| found.value.registration.clone())
    }

    /// The pieces of a buffer with their keys. Bytes that travel in the request need none.
    pub(super) fn pieces(
        &self,
        body: &UserIov,
        most: u32,
        purpose: Use,
        last: &mut Remembered,
        warn: fn(&str),
    ) -> Result<([Piece; IOV_LIMIT], usize), Refused> {
        let parts = body.parts();
        if parts.len() > most as usize {
            return Err(Refused::Invalid);
        }
        let mut pieces = [Piece::default(); IOV_LIMIT];
        for (piece, part) in pieces.iter_mut().zip(parts) {
            let key = match purpose == Use::Within || part.is_empty() {
                true => Some(0),
                false => self.key(part, purpose == Use::Writes, last),
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
