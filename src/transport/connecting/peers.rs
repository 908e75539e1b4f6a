//! The peers of an endpoint: their numbers, what connects us to each, and what is under way to connect.
//!
//! Only the table. What a link is, and the steps of a try (`A`), are the transport's.

use super::{History, address};
use crate::engine::port::{Contact, PeerId, Push};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// Up to this many peers, unused numbers are not looked for.
const CROWD: usize = 256;

/// What is under way to connect with a peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Way<A> {
    None,
    Begun(A),
    /// Until then nobody is dialed: the last try failed, or the peer connects to us.
    Resting {
        until: u64,
    },
}

pub struct Peer<L, A> {
    /// As `address::normal` has it. Empty: the number is nobody's.
    pub address: Box<[u8]>,
    /// Boxed, as there are many peers that were only heard of.
    pub link: Option<Box<L>>,
    pub way: Way<A>,
    pub history: History,
    /// The endpoint itself.
    pub is_self: bool,
    /// In the list of those with something under way.
    in_ways: bool,
}

impl<L, A> Peer<L, A> {
    fn new(address: &[u8]) -> Peer<L, A> {
        Peer {
            address: address.into(),
            link: None,
            way: Way::None,
            history: History::default(),
            is_self: false,
            in_ways: false,
        }
    }

    pub fn place(&self) -> Option<SocketAddr> {
        address::place(&self.address)
    }

    /// What is under way from now on. Gives back what was.
    pub fn set_way(&mut self, way: Way<A>) -> Option<A> {
        match core::mem::replace(&mut self.way, way) {
            Way::Begun(before) => Some(before),
            Way::None | Way::Resting { .. } => None,
        }
    }

    /// A pause is over. True: it is to be dialed though nobody may push to it, as receives may wait for it.
    pub fn ends_rest(&mut self, now: u64) -> bool {
        let is_over = matches!(self.way, Way::Resting { until } if until <= now);
        if is_over {
            self.way = Way::None;
        }
        is_over && self.history.was_connected() && self.link.is_none()
    }

    /// Nothing is kept for it, or under way.
    fn is_unused(&self) -> bool {
        let at_rest = matches!(self.way, Way::None | Way::Resting { .. });
        let is_kept = self.history.has_died() || self.in_ways || self.is_self;
        self.link.is_none() && at_rest && !is_kept
    }
}

pub struct Peers<L, A> {
    table: Vec<Peer<L, A>>,
    numbers: HashMap<Box<[u8]>, PeerId>,
    /// Numbers of no peer.
    free: Vec<PeerId>,
    left_by_reuse: usize,
    /// Peers with something under way.
    ways: Vec<PeerId>,
    /// Peers of which the engine must be told something in the next poll.
    pub ended: Vec<PeerId>,
}

impl<L, A> Default for Peers<L, A> {
    fn default() -> Peers<L, A> {
        Peers {
            table: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            left_by_reuse: 0,
            ways: Vec::new(),
            ended: Vec::new(),
        }
    }
}

impl<L, A> Peers<L, A> {
    /// The number of an address; None for what cannot be one.
    pub fn number(&mut self, address: &[u8]) -> Option<PeerId> {
        let address = address::normal(address)?;
        if let Some(number) = self.numbers.get(address) {
            return Some(*number);
        }
        let peer = Peer::new(address);
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
    pub fn source(&mut self, peer: PeerId) -> PeerId {
        let base = self.get(peer).map(|peer| address::base(&peer.address).to_vec());
        base.and_then(|base| self.number(&base)).unwrap_or(peer)
    }

    #[inline]
    pub fn get(&self, peer: PeerId) -> Option<&Peer<L, A>> {
        self.table.get(peer as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut Peer<L, A>> {
        self.table.get_mut(peer as usize)
    }

    #[inline]
    pub fn link(&mut self, peer: PeerId) -> Option<&mut L> {
        self.get_mut(peer)?.link.as_deref_mut()
    }

    /// How many have a number, connected or not.
    pub fn count(&self) -> usize {
        self.table.len() - self.free.len()
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Peer<L, A>> {
        self.table.iter_mut()
    }

    pub fn links(&mut self) -> impl Iterator<Item = &mut L> {
        self.table.iter_mut().filter_map(|peer| peer.link.as_deref_mut())
    }

    pub fn any_link(&self, is_so: impl FnMut(&L) -> bool) -> bool {
        let mut links = self.table.iter().filter_map(|peer| peer.link.as_deref());
        links.any(is_so)
    }

    pub fn numbered_links(&mut self) -> impl Iterator<Item = (PeerId, &mut L)> {
        let all = (0..).zip(&mut self.table);
        all.filter_map(|(number, peer)| Some((number, peer.link.as_deref_mut()?)))
    }

    /// Whether the next push to this peer would have to connect first.
    pub fn wants_link(&self, peer: PeerId) -> bool {
        let peer = self.get(peer);
        peer.is_some_and(|peer| peer.link.is_none() && !peer.is_self && !peer.history.has_answer())
    }

    pub fn contact(&self, peer: PeerId, now: u64) -> Contact {
        match self.get(peer).filter(|_| self.wants_link(peer)) {
            None => Contact::Made,
            Some(peer) if peer.history.is_hopeful(now) => Contact::Soon,
            Some(_) => Contact::Late,
        }
    }

    /// Whether nothing is under way to connect with it, nor a pause.
    pub fn is_idle(&self, peer: PeerId, now: u64) -> bool {
        self.get(peer).is_some_and(|peer| match peer.way {
            Way::None => true,
            Way::Resting { until } => until <= now,
            Way::Begun(_) => false,
        })
    }

    /// Those with something under way, or a pause.
    pub fn ways(&self) -> &[PeerId] {
        &self.ways
    }

    /// How many connections are being made.
    pub fn begun(&self) -> usize {
        let way_to = |number: &&PeerId| self.get(**number).map(|peer| &peer.way);
        let is_begun = |number: &&PeerId| matches!(way_to(number), Some(Way::Begun(_)));
        self.ways.iter().filter(is_begun).count()
    }

    /// Puts a peer among them.
    pub fn note_way(&mut self, peer: PeerId) {
        let begun = self.get_mut(peer).filter(|peer| !matches!(peer.way, Way::None));
        if let Some(new) = begun.filter(|peer| !peer.in_ways) {
            new.in_ways = true;
            self.ways.push(peer);
        }
    }

    /// Takes all of them, to be looked at; `note_way` puts back whose way has not come to its end.
    pub fn take_ways(&mut self) -> Vec<PeerId> {
        let all = core::mem::take(&mut self.ways);
        for number in &all {
            if let Some(peer) = self.get_mut(*number) {
                peer.in_ways = false;
            }
        }
        all
    }

    /// The engine must be told something of a peer.
    pub fn note_end(&mut self, peer: PeerId) {
        if !self.ended.contains(&peer) {
            self.ended.push(peer);
        }
    }

    /// Connecting has failed for good: the next push to the peer is answered so, or the engine is told that it is dead.
    pub fn give_up(&mut self, peer: PeerId, failure: Push) {
        let Some(given_up) = self.get_mut(peer) else { return };
        given_up.way = Way::None;
        if given_up.history.give_up(failure) {
            self.note_end(peer);
        }
    }

    /// Whether there are twice as many peers as the last `reuse` left, which makes its cost for each peer small.
    pub fn is_crowded(&self) -> bool {
        self.table.len() - self.free.len() >= (2 * self.left_by_reuse).max(CROWD)
    }

    /// Frees the numbers of peers that nothing is known of, unless the engine holds them. Returns which.
    pub fn reuse(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let stays =
            |number: PeerId, peer: &Peer<L, A>| !peer.is_unused() || held(number) || self.ended.contains(&number);
        let numbered = || (0..).zip(&self.table).filter(|(_, peer)| !peer.address.is_empty());
        let kept = numbered().filter(|(number, peer)| stays(*number, peer));
        // A scalable endpoint is the source of what its contexts send.
        let sources = kept.filter_map(|(_, peer)| self.numbers.get(address::base(&peer.address)));
        let sources: HashSet<PeerId> = sources.copied().collect();
        let unused = numbered().filter(|(number, peer)| !stays(*number, peer) && !sources.contains(number));
        let reused: Vec<PeerId> = unused.map(|(number, _)| number).collect();
        for number in &reused {
            if let Some(peer) = self.table.get_mut(*number as usize) {
                self.numbers.remove(&peer.address);
                *peer = Peer::new(&[]);
            }
        }
        self.free.extend(&reused);
        self.left_by_reuse = self.table.len() - self.free.len();
        reused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::op::Unreached;

    type Table = Peers<(), ()>;

    fn address(number: usize) -> Vec<u8> {
        let [high, low] = (number as u16).to_be_bytes();
        address::of(&SocketAddr::from(([10, 0, high, low], 7)))
    }

    #[test]
    fn an_address_keeps_its_number_in_every_form() {
        let mut peers = Table::default();
        for number in 0..3 {
            assert_eq!(peers.number(&address(number)), Some(number as PeerId));
            assert_eq!(peers.number(&address::raw(&address(number))), Some(number as PeerId));
        }
        assert_eq!(
            (peers.number(&[]), peers.get(2).unwrap().place().is_some()),
            (None, true)
        );
        let context = peers.number(&address::context(&address(1), 4)).unwrap();
        assert_eq!((context, peers.source(context), peers.source(1)), (3, 1, 1));
    }

    #[test]
    fn numbers_are_used_again_when_nothing_is_known_of_a_peer() {
        let mut peers = Table::default();
        for number in 0..CROWD {
            assert!(!peers.is_crowded());
            peers.number(&address(number));
        }
        assert!(peers.is_crowded());
        peers.get_mut(0).unwrap().link = Some(Box::new(()));
        peers.get_mut(1).unwrap().way = Way::Begun(());
        peers.get_mut(2).unwrap().way = Way::Resting { until: 9 };
        peers.note_way(2);
        peers.get_mut(3).unwrap().is_self = true;
        peers.get_mut(4).unwrap().history.dies();
        peers.note_end(5);
        let context = peers.number(&address::context(&address(6), 1)).unwrap();
        assert_eq!(peers.source(context), 6);
        let held = |number| number == 7 || number == context;
        let reused = peers.reuse(&held);
        assert!(reused.iter().copied().eq(8..CROWD as PeerId));
        assert!(!peers.is_crowded() && peers.reuse(&held).is_empty());
        // Those that are left have the numbers that they had, and others get the free ones.
        assert_eq!(peers.number(&address(7)), Some(7));
        assert!(reused.contains(&peers.number(&address(8)).unwrap()));
        let all: std::collections::HashSet<_> = (0..CROWD).map(|at| peers.number(&address(at))).collect();
        assert_eq!(all.len(), CROWD);
    }

    #[test]
    fn a_scalable_endpoint_is_known_as_long_as_one_of_its_contexts() {
        let mut peers = Table::default();
        let contexts = [1, 2].map(|index| peers.number(&address::context(&address(0), index)).unwrap());
        let base = contexts.map(|context| peers.source(context))[1];
        assert_eq!(peers.reuse(&|number| number == contexts[1]), [contexts[0]]);
        assert_eq!(peers.source(contexts[1]), base);
        assert_eq!(peers.reuse(&|_| false), [contexts[1], base]);
    }

    #[test]
    fn ways_are_listed_once_until_they_end() {
        let mut peers = Table::default();
        let number = peers.number(&address(0)).unwrap();
        peers.note_way(number);
        assert!(peers.ways().is_empty(), "nothing is under way");
        assert_eq!(peers.get_mut(number).unwrap().set_way(Way::Begun(())), None);
        peers.note_way(number);
        peers.note_way(number);
        assert_eq!(peers.take_ways(), [number]);
        peers.note_way(number);
        assert_eq!(peers.ways(), [number]);
        peers.give_up(number, Push::Unreachable(Unreached::Refused));
        peers.take_ways();
        peers.note_way(number);
        assert!(peers.ways().is_empty() && peers.ended.is_empty());
    }

    #[test]
    fn after_a_pause_only_those_are_dialed_that_were_connected() {
        let mut peers = Table::default();
        let number = peers.number(&address(0)).unwrap();
        let peer = peers.get_mut(number).unwrap();
        let rest = |peer: &mut Peer<(), ()>, now| {
            peer.set_way(Way::Resting { until: 9 });
            (peer.ends_rest(now), matches!(peer.way, Way::None))
        };
        assert_eq!((rest(peer, 8), rest(peer, 9)), ((false, false), (false, true)));
        peer.history.stands(1);
        assert_eq!((rest(peer, 8), rest(peer, 9)), ((false, false), (true, true)));
        peer.link = Some(Box::new(()));
        assert_eq!(rest(peer, 9), (false, true));
        peer.link = None;
        peers.give_up(number, Push::NoMemory);
        assert_eq!(
            (&peers.ended[..], peers.get(number).unwrap().history.has_died()),
            (&[number][..], true)
        );
    }
}
