//! The peers of an endpoint: their numbers, what connects us to each, and what is under way to connect.
//!
//! Only the table; what is done with it stands in `dialing` (we connect), `arrivals` (they do) and `mod`.

use super::address;
use super::introduction::Dialogue;
use super::link::Link;
use crate::engine::port::{PeerId, Push};
use crate::sys::forks::ParentFd;
use std::collections::HashMap;

/// Up to this many peers, unused numbers are not looked for.
const CROWD: usize = 256;

/// What is under way to connect with a peer.
#[derive(Default)]
pub(super) enum Way {
    #[default]
    None,
    /// Our own connection.
    Dialing {
        socket: ParentFd,
        /// None: the kernel has not connected yet, so nothing was said.
        said: Option<Box<Said>>,
    },
    /// Until then nobody is dialed: the last try failed, or the peer connects to us.
    Resting { until: u64 },
    /// The peer's, which we welcomed and it has not confirmed.
    Welcomed {
        socket: ParentFd,
        instance: u64,
        until: u64,
        word: [u8; 4],
        got: usize,
    },
    /// Agreed on; it becomes the link when the one before it has come to its end.
    Agreed { socket: ParentFd, instance: u64 },
}

pub(super) struct Said {
    /// The address that our hello said.
    pub from: Vec<u8>,
    pub dialogue: Dialogue,
}

#[derive(Default)]
pub(super) struct Peer {
    pub address: Box<[u8]>,
    /// The number that the endpoint at this address drew; 0: none is known.
    pub instance: u64,
    /// Boxed, as there are many peers that were only heard of.
    pub link: Option<Box<Link>>,
    pub way: Way,
    /// When it was first tried to connect, of tries that all failed.
    pub trying_since: Option<u64>,
    /// When the last of them began.
    pub tried_at: u64,
    /// How many there were.
    pub tries: u32,
    /// The connection broke: if the peer refuses now, it is dead.
    pub was_connected: bool,
    /// It is dead, and the engine is to be told in the next poll.
    pub died: bool,
    /// The answer to the next push.
    pub failure: Option<Push>,
    /// The endpoint itself.
    pub is_self: bool,
    /// The address of a scalable endpoint, of which each context is a peer of its own.
    is_base: bool,
    /// In the list of those with something under way.
    pub in_ways: bool,
}

impl Peer {
    /// Nothing is kept for it, or under way.
    fn is_idle(&self) -> bool {
        let at_rest = matches!(self.way, Way::None | Way::Resting { .. });
        self.link.is_none() && at_rest && !self.died && !self.in_ways && !self.is_self && !self.is_base
    }
}

#[derive(Default)]
pub(super) struct Peers {
    table: Vec<Peer>,
    numbers: HashMap<Box<[u8]>, PeerId>,
    /// Numbers of no peer.
    free: Vec<PeerId>,
    left_by_reuse: usize,
}

impl Peers {
    /// The number of an address; None for what cannot be one.
    pub(super) fn number(&mut self, address: &[u8]) -> Option<PeerId> {
        let address = address::normal(address)?;
        if let Some(number) = self.numbers.get(address) {
            return Some(*number);
        }
        let peer = Peer {
            address: address.into(),
            ..Peer::default()
        };
        let number = match self.free.pop() {
            Some(number) => {
                *self.get_mut(number)? = peer;
                number
            }
            None => {
                let number = PeerId::try_from(self.table.len()).ok()?;
                self.table.push(peer);
                number
            }
        };
        self.numbers.insert(address.into(), number);
        Some(number)
    }

    /// The number of the scalable endpoint that a peer is a context of; else the peer's own.
    pub(super) fn source(&mut self, peer: PeerId) -> PeerId {
        let base = self.get(peer).map(|peer| address::base(&peer.address).to_vec());
        let source = base.and_then(|base| self.number(&base)).unwrap_or(peer);
        if let Some(source) = self.get_mut(source).filter(|_| source != peer) {
            source.is_base = true;
        }
        source
    }

    #[inline]
    pub(super) fn get(&self, peer: PeerId) -> Option<&Peer> {
        self.table.get(peer as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.table.get_mut(peer as usize)
    }

    #[inline]
    pub(super) fn link(&mut self, peer: PeerId) -> Option<&mut Link> {
        self.get_mut(peer)?.link.as_deref_mut()
    }

    pub(super) fn links(&mut self) -> impl Iterator<Item = &mut Link> {
        self.table.iter_mut().filter_map(|peer| peer.link.as_deref_mut())
    }

    pub(super) fn any_link(&self, is_so: impl FnMut(&Link) -> bool) -> bool {
        let mut links = self.table.iter().filter_map(|peer| peer.link.as_deref());
        links.any(is_so)
    }

    pub(super) fn numbered_links(&mut self) -> impl Iterator<Item = (PeerId, &mut Link)> {
        let all = (0..).zip(&mut self.table);
        all.filter_map(|(number, peer)| Some((number, peer.link.as_deref_mut()?)))
    }

    /// Whether there are twice as many peers as the last `reuse` left, which makes its cost for each peer small.
    pub(super) fn is_crowded(&self) -> bool {
        self.table.len() - self.free.len() >= (2 * self.left_by_reuse).max(CROWD)
    }

    /// Frees the numbers of peers that nothing is known of, unless the engine holds them. Returns which.
    pub(super) fn reuse(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let mut reused = Vec::new();
        for (number, peer) in (0..).zip(&mut self.table) {
            if peer.address.is_empty() || !peer.is_idle() || held(number) {
                continue;
            }
            self.numbers.remove(&peer.address);
            *peer = Peer::default();
            reused.push(number);
        }
        self.free.extend(&reused);
        self.left_by_reuse = self.table.len() - self.free.len();
        reused
    }
}
