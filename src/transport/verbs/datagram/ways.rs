//! The ways to the addresses that a domain's vectors have. A vector holds a way from the insertion of its address to
//! the removal, and what is sent there meanwhile holds it until it has left.

use super::Address;
use super::address::Sender;
use super::seam::Router;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The way to one address.
pub struct Held<W> {
    pub(super) address: Address,
    pub(super) way: W,
}

type Known<W> = HashMap<Sender, Vec<Weak<Held<W>>>>;

pub struct Ways<R: Router> {
    router: R,
    /// Addresses with the same GID and queue pair differ in how they are reached.
    known: Mutex<Known<R::Way>>,
}

impl<R: Router> Ways<R> {
    pub fn new(router: R) -> Ways<R> {
        Ways {
            router,
            known: Mutex::default(),
        }
    }

    pub fn router(&self) -> &R {
        &self.router
    }

    fn known(&self) -> MutexGuard<'_, Known<R::Way>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to an address, which is known from then on. May wait for an answer of the network.
    pub fn hold(&self, address: &Address) -> io::Result<Arc<Held<R::Way>>> {
        if let Some(there) = self.find(address) {
            return Ok(there);
        }
        let held = self.open(address)?;
        let mut known = self.known();
        let same = known.entry(address.sender()).or_default();
        same.retain(|held| held.strong_count() > 0);
        same.push(Arc::downgrade(&held));
        Ok(held)
    }

    /// A way that nobody else knows.
    pub(super) fn open(&self, address: &Address) -> io::Result<Arc<Held<R::Way>>> {
        Ok(Arc::new(Held {
            address: *address,
            way: self.router.way(address)?,
        }))
    }

    /// Gives back what `hold` gave.
    pub fn let_go(&self, held: Arc<Held<R::Way>>) {
        let sender = held.address.sender();
        drop(held);
        let mut known = self.known();
        if let Some(same) = known.get_mut(&sender) {
            same.retain(|held| held.strong_count() > 0);
            if same.is_empty() {
                known.remove(&sender);
            }
        }
    }

    pub(super) fn find(&self, address: &Address) -> Option<Arc<Held<R::Way>>> {
        let known = self.known();
        let mut same = known.get(&address.sender())?.iter().filter_map(Weak::upgrade);
        same.find(|held| held.address == *address)
    }

    /// The address of a vector's that a datagram came from.
    pub(super) fn sender(&self, sender: &Sender) -> Option<Arc<Held<R::Way>>> {
        self.known().get(sender)?.iter().find_map(Weak::upgrade)
    }

    #[cfg(test)]
    pub(in crate::transport::verbs) fn count(&self) -> usize {
        self.known().len()
    }
}
