//! The peers of an endpoint: their numbers, what connects us to each, and what is under way to connect.

use super::link::Link;
use crate::engine::port::{PeerId, Push};
use crate::transport::connecting::address;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Up to this many peers, unused numbers are not looked for.
const CROWD: usize = 256;

/// What is under way to connect with a peer.
pub(super) enum Way<W> {
    None,
    /// Our own connection, which has no queue pair yet.
    Resolving(W),
    /// The same, once the peer is to be asked or was asked.
    Asked(Box<Link<W>>),
    /// The peer's, which we accepted and it has not confirmed.
    Accepted(Box<Link<W>>),
    /// The same, confirmed: it waits for the end of the connection before it.
    Agreed(Box<Link<W>>),
    /// Until then nobody is dialed: the last try failed, or the peer connects to us.
    Resting {
        until: u64,
    },
}

impl<W> Way<W> {
    pub(super) fn link(&mut self) -> Option<&mut Link<W>> {
        match self {
            Way::Asked(link) | Way::Accepted(link) | Way::Agreed(link) => Some(link),
            _ => None,
        }
    }
}

pub(super) struct Peer<W> {
    /// Its address, as vectors keep it, and where that is. None: the number is free.
    pub at: Option<(Box<[u8]>, SocketAddr)>,
    /// The number that the endpoint at this address drew; 0: none is known.
    pub instance: u64,
    pub link: Option<Box<Link<W>>>,
    pub way: Way<W>,
    /// When it was first tried to connect, of tries that all failed.
    pub trying_since: Option<u64>,
    /// How many there were.
    pub tries: u32,
    /// There was a connection: if nobody answers there now, the peer is dead.
    pub was_connected: bool,
    /// It is dead, and the engine is to be told in the next poll.
    pub died: bool,
    /// The answer to the next push.
    pub failure: Option<Push>,
    /// The endpoint itself.
    pub is_self: bool,
}

impl<W> Default for Peer<W> {
    fn default() -> Peer<W> {
        Peer {
            at: None,
            instance: 0,
            link: None,
            way: Way::None,
            trying_since: None,
            tries: 0,
            was_connected: false,
            died: false,
            failure: None,
            is_self: false,
        }
    }
}

impl<W> Peer<W> {
    /// Nothing is kept for it, or under way.
    fn is_idle(&self) -> bool {
        let at_rest = matches!(self.way, Way::None | Way::Resting { .. });
        self.link.is_none() && at_rest && !self.died && !self.is_self
    }

    pub(super) fn place(&self) -> Option<SocketAddr> {
        self.at.as_ref().map(|(_, place)| *place)
    }

    /// Its connection, and the one that is being made.
    pub(super) fn links(&mut self) -> impl Iterator<Item = &mut Link<W>> {
        let Peer { link, way, .. } = self;
        link.as_deref_mut().into_iter().chain(way.link())
    }
}

pub(super) struct Peers<W> {
    table: Vec<Peer<W>>,
    numbers: HashMap<SocketAddr, PeerId>,
    free: Vec<PeerId>,
    left_by_reuse: usize,
}

impl<W> Default for Peers<W> {
    fn default() -> Peers<W> {
        Peers {
            table: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            left_by_reuse: 0,
        }
    }
}

impl<W> Peers<W> {
    /// The number of a place where an endpoint listens.
    pub(super) fn number(&mut self, place: SocketAddr) -> Option<PeerId> {
        if let Some(number) = self.numbers.get(&place) {
            return Some(*number);
        }
        let peer = Peer {
            at: Some((address::of(&place).into(), place)),
            ..Peer::default()
        };
        let number = match self.free.pop() {
            Some(number) => {
                *self.get_mut(number)? = peer;
                number
            }
            None => {
                self.table.push(peer);
                PeerId::try_from(self.table.len() - 1).ok()?
            }
        };
        self.numbers.insert(place, number);
        Some(number)
    }

    #[inline]
    pub(super) fn get(&self, peer: PeerId) -> Option<&Peer<W>> {
        self.table.get(peer as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Peer<W>> {
        self.table.get_mut(peer as usize)
    }

    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Peer<W>> {
        self.table.iter_mut()
    }

    /// Whether there are twice as many peers as the last `reuse` left, which makes its cost for each peer small.
    pub(super) fn is_crowded(&self) -> bool {
        self.table.len() - self.free.len() >= (2 * self.left_by_reuse).max(CROWD)
    }

    /// Frees the numbers of peers that nothing is known of, unless the engine holds them. Returns which.
    pub(super) fn reuse(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let mut reused = Vec::new();
        for (number, peer) in (0..).zip(&mut self.table) {
            let Some(place) = peer.place().filter(|_| peer.is_idle() && !held(number)) else {
                continue;
            };
            self.numbers.remove(&place);
            *peer = Peer::default();
            reused.push(number);
        }
        self.free.extend(&reused);
        self.left_by_reuse = self.table.len() - self.free.len();
        reused
    }
}
