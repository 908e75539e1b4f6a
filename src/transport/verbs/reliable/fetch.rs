//! Long messages: their memory is registered, and read by the device of whoever receives them. Part of `Reliable`.

use super::Reliable;
use super::link::Move;
use super::local_keys::{LOCAL_WRITE, register};
use super::seam::Device;
use super::steps::{Theirs, steps};
use crate::engine::port::{Exposed, ExposedName, Get, NotDone, PeerId, Remote, Token};
use crate::sys::rdma::Access;
use crate::transport::verbs::seam::Registration;
use crate::util::user::UserIov;
use std::collections::HashMap;

/// Memory that peers may fetch from.
#[derive(Default)]
pub(super) struct Exposures {
    last: u64,
    open: HashMap<u64, Vec<Box<dyn Registration>>>,
}

impl Exposures {
    fn add(&mut self, registrations: Vec<Box<dyn Registration>>) -> u64 {
        self.last += 1;
        self.open.insert(self.last, registrations);
        self.last
    }

    pub(super) fn end(&mut self, id: u64) {
        self.open.remove(&id);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

impl<D: Device> Reliable<D> {
    pub(super) fn expose_memory(&mut self, to: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        // What a region is made of may be closed while it is read. To oneself there is no connection to read by.
        let is_self = self.peers.get(to).is_some_and(|peer| peer.is_self);
        if is_self || !matches!(name, ExposedName::Sent(_)) {
            return None;
        }
        let access = Access {
            remote_read: true,
            ..Access::default()
        };
        let registrations = match register(self.memory.passing(&*self.device), iov, access) {
            Ok(registrations) => registrations,
            Err(error) => {
                self.tell_memory("a long message, which is sent in packets", &error);
                return None;
            }
        };
        let parts = iov.parts().iter().filter(|part| !part.is_empty());
        let theirs = parts.zip(&registrations).flat_map(|(part, registration)| {
            Theirs {
                addr: part.addr() as u64,
                len: part.len() as u64,
                key: registration.remote_key(),
            }
            .encode()
        });
        let remote = Remote::new(&theirs.collect::<Vec<u8>>())?;
        let id = Some(self.exposures.add(registrations));
        Some(Exposed { remote, id })
    }

    pub(super) fn fetch(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        (at, len): (usize, usize),
        token: Token,
    ) -> Get {
        let Some(peer) = self.peers.get_mut(from) else {
            return Get::Unsupported;
        };
        if peer.history.has_died() {
            return Get::Gone;
        }
        let Some(link) = peer.link.as_deref_mut() else {
            self.dial_if_idle(from);
            return Get::Full;
        };
        let wanted = local.part(at, len);
        let theirs = Theirs::of_remote(remote);
        let Some(steps) = theirs.and_then(|theirs| steps(&theirs, at, &wanted)) else {
            return Get::Unsupported;
        };
        if steps.len() > link.room() {
            return Get::Unsupported;
        }
        if !link.has_room(steps.len()) {
            return Get::Full;
        }
        let Some(ours) = self.keys_of(&wanted, LOCAL_WRITE) else {
            return Get::Unsupported;
        };
        self.post_steps(from, Move::Fetch, &steps, ours, (token, NotDone::AskPeer))
    }
}
