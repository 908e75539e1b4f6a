//! The numbers by which an endpoint knows addresses.
//!
//! A number is that of an address as long as somebody holds the way there; then it may become another's.

use super::seam::Router;
use super::ways::{Held, Ways};
use super::{Address, address::Sender};
use crate::engine::port::PeerId;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

struct Peer<W> {
    address: Address,
    bytes: [u8; Address::SIZE],
    held: Weak<Held<W>>,
    /// The way, where no vector of this process holds it: the address came from a vector that others share.
    _own: Option<Arc<Held<W>>>,
}

pub(super) struct Peers<W> {
    peers: Vec<Peer<W>>,
    numbers: HashMap<Address, PeerId>,
    /// Numbers whose addresses are gone.
    free: Vec<PeerId>,
    /// With how many numbers it is looked again which are free.
    look_at: usize,
}

const LOOK_AT_LEAST: usize = 64;

impl<W> Peers<W> {
    pub(super) fn new() -> Peers<W> {
        Peers {
            peers: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            look_at: LOOK_AT_LEAST,
        }
    }

    pub(super) fn get(&self, peer: PeerId) -> Option<Arc<Held<W>>> {
        self.peers.get(peer as usize)?.held.upgrade()
    }

    /// The number of an address. An error: there is no way there.
    pub(super) fn number<R: Router<Way = W>>(&mut self, address: &Address, ways: &Ways<R>) -> io::Result<PeerId> {
        let known = self.numbers.get(address).copied();
        if let Some(known) = known.filter(|known| self.get(*known).is_some()) {
            return Ok(known);
        }
        let (held, own) = match ways.find(address) {
            Some(held) => (held, None),
            None => {
                let own = ways.open(address)?;
                (own.clone(), Some(own))
            }
        };
        Ok(self.put(known, &held, own))
    }

    /// The number of whom a datagram came from, if a vector has the address.
    pub(super) fn sender<R: Router<Way = W>>(&mut self, sender: &Sender, ways: &Ways<R>) -> Option<PeerId> {
        let held = ways.sender(sender)?;
        match self.numbers.get(&held.address).copied() {
            Some(known) if self.get(known).is_some() => Some(known),
            known => Some(self.put(known, &held, None)),
        }
    }

    fn put(&mut self, known: Option<PeerId>, held: &Arc<Held<W>>, own: Option<Arc<Held<W>>>) -> PeerId {
        let peer = Peer {
            address: held.address,
            bytes: held.address.to_bytes(),
            held: Arc::downgrade(held),
            _own: own,
        };
        let number = known.or_else(|| self.free()).unwrap_or(self.peers.len() as PeerId);
        match self.peers.get_mut(number as usize) {
            Some(place) => *place = peer,
            None => self.peers.push(peer),
        }
        self.numbers.insert(held.address, number);
        number
    }

    /// A number whose address is gone.
    fn free(&mut self) -> Option<PeerId> {
        if self.free.is_empty() && self.peers.len() >= self.look_at {
            for (at, peer) in self.peers.iter().enumerate() {
                if peer.held.strong_count() == 0 {
                    self.free.push(at as PeerId);
                }
            }
            let living = self.peers.len() - self.free.len();
            self.look_at = LOOK_AT_LEAST.max(2 * living);
        }
        // Some may have come back since.
        while let Some(free) = self.free.pop() {
            let gone = self
                .peers
                .get(free as usize)
                .filter(|peer| peer.held.strong_count() == 0);
            if let Some(gone) = gone {
                self.numbers.remove(&gone.address);
                return Some(free);
            }
        }
        None
    }

    pub(super) fn address(&self, peer: PeerId) -> Option<&[u8]> {
        Some(&self.peers.get(peer as usize)?.bytes)
    }
}
