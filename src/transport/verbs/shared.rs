//! Receives that several connections share: whichever a message comes by takes the next one, and tells of it.

use super::endpoint::Posted;
use super::memory::{Registrations, Remembered, Use};
use super::seam::Receives;
use crate::engine::op::{self, CompletedOp, MessageKind, Refused};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct SharedPool<R> {
    receives: Arc<R>,
    memory: Arc<Registrations>,
    /// How many there may be, and of how many pieces each.
    room: usize,
    pieces: u32,
    warn: fn(&str),
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    posted: HashMap<u64, Posted>,
    last: u64,
    remembered: Remembered,
}

impl<R: Receives> SharedPool<R> {
    pub fn new(receives: R, memory: Arc<Registrations>, room: usize, pieces: u32, warn: fn(&str)) -> SharedPool<R> {
        SharedPool {
            receives: Arc::new(receives),
            memory,
            room,
            pieces,
            warn,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn receives(&self) -> &Arc<R> {
        &self.receives
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// How many wait for a message.
    pub fn posted(&self) -> usize {
        self.table().posted.len()
    }

    pub fn recv(&self, recv: &op::Recv) -> Result<(), Refused> {
        if recv.kind != MessageKind::Untagged || recv.multi.is_some() {
            return Err(Refused::Unsupported);
        }
        // Held until the device has it: its completion may be found by another thread before this call returns.
        let mut table = self.table();
        if table.posted.len() >= self.room {
            return Err(Refused::Again);
        }
        let (body, last) = (&recv.body, &mut table.remembered);
        let (pieces, count) = self.memory.pieces(body, self.pieces, Use::Writes, last, self.warn)?;
        table.last += 1;
        let id = table.last << 1 | 1; // odd, as all receives
        // SAFETY: a receive's memory stays the application's until its completion, as whoever made the `UserIov`
        // promised, or until the context is closed, by which its endpoints are.
        let posted = unsafe { self.receives.post(id, &pieces[..count]) };
        if let Err(error) = posted {
            if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EAGAIN)) {
                return Err(Refused::Again);
            }
            (self.warn)(&format!("the device takes no shared receive: {error}"));
            return Err(Refused::Invalid);
        }
        let posted = Posted {
            id,
            op: CompletedOp::Recv,
            context: recv.context,
            tell: recv.tell,
            len: recv.body.len(),
        };
        table.posted.insert(id, posted);
        Ok(())
    }

    /// The receive that a completion names, once.
    pub(super) fn take(&self, id: u64) -> Option<Posted> {
        self.table().posted.remove(&id)
    }
}
