//! Between fi_addr_t, which the application knows a peer by, and PeerId, which the transport does.
//!
//! Both directions are kept in tables, and forgotten when the address vector says that something changed.

use super::Wire;
use crate::abi::types::{FI_ADDR_NOTAVAIL, fi_addr_t};
use crate::api::av::Hold;
use crate::engine::port::PeerId;

/// fi_addrs beyond this are looked up each time: a table of them would be mostly empty.
const MOST_KEPT: usize = 1 << 20;

#[derive(Default)]
pub struct Peers {
    av: Option<Hold>,
    removals: u64,
    additions: u64,
    /// By fi_addr: the peer's number and one more, 0 for unknown.
    to_peer: Vec<u32>,
    /// By peer: what to report as its source; None for not looked up.
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

    /// The peer behind an fi_addr.
    #[inline]
    pub fn peer<T: Wire>(&mut self, fi_addr: fi_addr_t, transport: &mut T) -> Option<PeerId> {
        let removals = self.av.as_ref()?.av().generation();
        if removals == self.removals
            && let Some(known @ 1..) = self.to_peer.get(fi_addr as usize)
        {
            return Some(known - 1);
        }
        self.look_up(fi_addr, removals, transport)
    }

    #[cold]
    fn look_up<T: Wire>(&mut self, fi_addr: fi_addr_t, removals: u64, transport: &mut T) -> Option<PeerId> {
        if removals != self.removals {
            self.forget(removals);
        }
        let av = self.av.as_ref()?.av();
        let address = av.address(fi_addr)?;
        let peer = transport.peer(av.kind().key(&address))?;
        let place = usize::try_from(fi_addr).ok().filter(|place| *place < MOST_KEPT);
        if let Some(place) = place {
            if self.to_peer.len() <= place {
                self.to_peer.resize(place + 1, 0);
            }
            if let Some(kept) = self.to_peer.get_mut(place) {
                *kept = peer + 1;
            }
        }
        Some(peer)
    }

    fn forget(&mut self, removals: u64) {
        self.removals = removals;
        self.to_peer.clear();
        self.to_source.clear();
    }

    /// What a completion says of where its message came from.
    #[inline]
    pub fn source<T: Wire>(&mut self, peer: PeerId, transport: &T) -> fi_addr_t {
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
            _ => self.look_up_source(peer, transport),
        }
    }

    #[cold]
    fn look_up_source<T: Wire>(&mut self, peer: PeerId, transport: &T) -> fi_addr_t {
        let Some(av) = self.av.as_ref().map(Hold::av) else {
            return FI_ADDR_NOTAVAIL;
        };
        let address = transport.address_of(peer).unwrap_or_default();
        let source = av
            .find(address)
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
