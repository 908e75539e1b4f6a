//! Between fi_addr_t, by which the application knows a peer, and PeerId, by which the transport does.
//!
//! Both directions are kept in tables, and forgotten when the address vector says that something changed. Called by
//! `state` and by collectives.

use super::EndpointTransport;
use crate::abi::types::{FI_ADDR_NOTAVAIL, fi_addr_t};
use crate::api::av::{Av, Hold, KeyHold};
use crate::engine::port::PeerId;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Larger fi_addr_t are looked up each time: a table of them would be mostly empty.
const MOST_KEPT: usize = 1 << 20;

#[derive(Default)]
pub struct Peers {
    av: Option<Hold>,
    /// The one peer of a connected endpoint, while the connection stands. Such an endpoint has no vector here.
    only: Option<PeerId>,
    /// The authorization keys that the vector had when the endpoint was enabled.
    keys: Option<KeyHold>,
    removals: u64,
    additions: u64,
    /// By fi_addr_t: the peer's number plus one; 0: not looked up.
    to_peer: Vec<u32>,
    /// The same for fi_addr_t that name a receive context, which are large numbers.
    to_context: HashMap<fi_addr_t, PeerId>,
    /// By peer: the fi_addr_t to report as its source; None: not looked up.
    to_source: Vec<Option<fi_addr_t>>,
}

impl Peers {
    pub fn bind(&mut self, av: Hold) {
        *self = Peers {
            av: Some(av),
            ..Peers::default()
        };
    }

    pub fn is_bound(&self) -> bool {
        self.av.is_some()
    }

    /// The connection stands, or no longer does.
    pub fn connect(&mut self, only: Option<PeerId>) {
        self.only = only;
    }

    /// fi_enable: keeps the authorization keys that the vector has at this moment.
    pub fn hold_keys(&mut self) {
        self.keys = self.av.as_ref().map(|hold| hold.av().hold_keys());
    }

    pub fn av(&self) -> Option<Arc<Av>> {
        self.av.as_ref().map(|hold| hold.av().clone())
    }

    /// The peer behind an fi_addr_t. `find` is the transport's: it numbers a peer by address.
    #[inline]
    pub fn peer<T: EndpointTransport>(
        &mut self,
        fi_addr: fi_addr_t,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Option<PeerId> {
        let Some(hold) = &self.av else { return self.only };
        let removals = hold.av().generation();
        if removals == self.removals
            && let Some(known @ 1..) = self.to_peer.get(fi_addr as usize)
        {
            return Some(known - 1);
        }
        self.look_up::<T>(fi_addr, removals, find)
    }

    /// The peer that a directed receive names: any context of it may be the sender.
    pub fn sender<T: EndpointTransport>(
        &mut self,
        fi_addr: fi_addr_t,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Option<PeerId> {
        let (index, _) = self.av.as_ref()?.av().split(fi_addr);
        self.peer::<T>(index, find)
    }

    #[cold]
    fn look_up<T: EndpointTransport>(
        &mut self,
        fi_addr: fi_addr_t,
        removals: u64,
        find: impl FnOnce(&[u8]) -> Option<PeerId>,
    ) -> Option<PeerId> {
        if removals != self.removals {
            self.forget(removals);
        }
        if let Some(known) = self.to_context.get(&fi_addr) {
            return Some(*known);
        }
        let av = self.av.as_ref()?.av();
        let address = av.address(fi_addr)?;
        let key = av.kind().key(&address);
        match av.split(fi_addr).1 {
            0 => {
                let peer = find(key)?;
                self.keep(fi_addr, peer);
                Some(peer)
            }
            context => {
                let peer = find(&T::context_address(key, context))?;
                self.to_context.insert(fi_addr, peer);
                Some(peer)
            }
        }
    }

    fn keep(&mut self, fi_addr: fi_addr_t, peer: PeerId) {
        let place = usize::try_from(fi_addr).ok().filter(|place| *place < MOST_KEPT);
        if let Some(place) = place {
            if self.to_peer.len() <= place {
                self.to_peer.resize(place + 1, 0);
            }
            if let Some(kept) = self.to_peer.get_mut(place) {
                *kept = peer + 1;
            }
        }
    }

    fn forget(&mut self, removals: u64) {
        self.removals = removals;
        self.to_peer.clear();
        self.to_context.clear();
        self.to_source.clear();
    }

    /// An address that is not in the vector, in the form that it takes.
    pub fn told(&self, raw: Vec<u8>) -> Vec<u8> {
        match &self.av {
            Some(hold) => hold.av().kind().told(&raw).into_owned(),
            None => raw,
        }
    }

    /// What the message of such an address is reported under: the first key that the endpoint was enabled with, as no
    /// message says which. FI_ADDR_NOTAVAIL where there are no keys.
    pub fn key_of_strangers(&self) -> fi_addr_t {
        self.keys.as_ref().map_or(FI_ADDR_NOTAVAIL, KeyHold::reported)
    }

    /// The peers that fi_addr_t of the vector stand for.
    pub fn held(&mut self) -> HashSet<PeerId> {
        let removals = self.av.as_ref().map_or(self.removals, |hold| hold.av().generation());
        if removals != self.removals {
            self.forget(removals);
        }
        let known = self.to_peer.iter().filter_map(|known| known.checked_sub(1));
        known.chain(self.to_context.values().copied()).collect()
    }

    /// These numbers will be given to other peers.
    pub fn reuse(&mut self, peers: &[PeerId]) {
        for peer in peers {
            if let Some(source) = self.to_source.get_mut(*peer as usize) {
                *source = None;
            }
        }
    }

    /// The fi_addr_t to report as the source of a message.
    #[inline]
    pub fn source<'a, T: EndpointTransport>(
        &mut self,
        peer: PeerId,
        address: impl FnOnce() -> Option<&'a [u8]>,
    ) -> fi_addr_t {
        let Some(av) = self.av.as_ref().map(Hold::av) else {
            return FI_ADDR_NOTAVAIL;
        };
        let (removals, additions) = (av.generation(), av.additions());
        if removals != self.removals {
            self.forget(removals);
        }
        if additions != self.additions {
            self.additions = additions;
            self.to_source.clear();
        }
        match self.to_source.get(peer as usize) {
            Some(Some(source)) => *source,
            _ => self.look_up_source::<T>(peer, address().unwrap_or_default()),
        }
    }

    /// The same from the table alone; None: it must be looked up.
    #[inline]
    pub fn known_source(&self, peer: PeerId) -> Option<fi_addr_t> {
        let av = self.av.as_ref()?.av();
        let current = av.generation() == self.removals && av.additions() == self.additions;
        *self.to_source.get(peer as usize).filter(|_| current)?
    }

    #[cold]
    fn look_up_source<T: EndpointTransport>(&mut self, peer: PeerId, address: &[u8]) -> fi_addr_t {
        let Some(av) = self.av.as_ref().map(Hold::av) else {
            return FI_ADDR_NOTAVAIL;
        };
        let source = av
            .find(T::base_address(address))
            .map_or(FI_ADDR_NOTAVAIL, |fi_addr| av.reported(fi_addr));
        let place = peer as usize;
        if self.to_source.len() <= place {
            self.to_source.resize(place + 1, None);
        }
        if let Some(kept) = self.to_source.get_mut(place) {
            *kept = Some(source);
        }
        source
    }
}
