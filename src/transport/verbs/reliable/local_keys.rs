//! By which keys the device knows our own memory, and the requests of a transfer that name it. Part of `Reliable`.
//!
//! What the application has registered is found by its address. What it has not is registered for as long as the
//! transfer takes, or found in the cache, so what the device knows is what is mapped at that moment.

use super::Reliable;
use super::link::{Move, Purpose, Transfer};
use super::seam::Device;
use super::steps::Step;
use crate::engine::port::{Get, NotDone, PeerId, Token};
use crate::sys::rdma::{Access, Piece};
use crate::transport::verbs::seam::{Nic, Registration};
use crate::util::user::{UserBuf, UserIov};
use std::io;
use std::sync::Arc;

/// The device reads from memory without any right.
pub(super) const LOCAL_READ: Access = Access {
    local_write: false,
    remote_read: false,
    remote_write: false,
};

pub(super) const LOCAL_WRITE: Access = Access {
    local_write: true,
    ..LOCAL_READ
};

/// The keys of our side of a transfer, a piece each.
#[derive(Default)]
pub(super) struct LocalKeys {
    pub keys: Vec<u32>,
    pub registrations: Vec<Arc<dyn Registration>>,
    /// The buffer that the bytes are in, if not the application's memory.
    pub buffer: Option<u32>,
}

fn pieces(iov: &UserIov) -> impl Iterator<Item = &UserBuf> {
    iov.parts().iter().filter(|part| !part.is_empty())
}

pub(super) fn register(nic: &dyn Nic, iov: &UserIov, access: Access) -> io::Result<Vec<Box<dyn Registration>>> {
    pieces(iov).map(|part| nic.register(part, access)).collect()
}

impl<D: Device> Reliable<D> {
    /// None: the device does not register the memory.
    pub(super) fn keys_of(&mut self, ours: &UserIov, access: Access) -> Option<LocalKeys> {
        let regions = self.memory.regions.as_ref();
        let known = regions.and_then(|regions| {
            pieces(ours)
                .map(|piece| regions.hold(piece, access.local_write))
                .collect()
        });
        let made = match known {
            Some(known) => Ok(known),
            None => register(self.memory.passing(&*self.device), ours, access)
                .map(|made| made.into_iter().map(Arc::from).collect()),
        };
        let registrations: Vec<Arc<dyn Registration>> = made
            .inspect_err(|error| self.tell_memory("a read or write of a peer's memory", error))
            .ok()?;
        Some(LocalKeys {
            keys: registrations
                .iter()
                .map(|registration| registration.local_key())
                .collect(),
            registrations,
            buffer: None,
        })
    }

    /// Posts the requests of a transfer, for which there is room. `token`, and what the engine is told if the peer's
    /// device refuses.
    pub(super) fn post_steps(
        &mut self,
        to: PeerId,
        how: Move,
        steps: &[Step],
        ours: LocalKeys,
        (token, refused): (Token, NotDone),
    ) -> Get {
        let Some(link) = self.peers.link(to) else {
            return Get::Full;
        };
        let LocalKeys {
            keys,
            registrations,
            buffer,
        } = ours;
        let mut end = Some(Transfer {
            token,
            registrations,
            buffer,
            refused,
        });
        for (number, step) in (1..).zip(steps) {
            let purpose = match end.take_if(|_| number == steps.len()) {
                Some(end) => Purpose::Transfer(end),
                None => Purpose::Part,
            };
            let piece = Piece {
                addr: step.ours.addr() as u64,
                len: step.ours.len() as u32,
                key: keys.get(step.piece).copied().unwrap_or(0),
            };
            if !link.transfer(how, step.remote, piece, purpose) {
                // The connection has ended; the engine is told so.
                link.strand(buffer);
                self.note_end(to);
                // Nobody tells the engine that the endpoint itself is lost; of an atomic nothing was posted.
                return match self.is_end_of_itself(to) {
                    true => Get::Full,
                    false => Get::Later,
                };
            }
        }
        match end {
            Some(_) => Get::Done, // no bytes
            None => Get::Later,
        }
    }
}
