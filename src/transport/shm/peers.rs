//! The peers of an endpoint: their numbers, what connects us to each, and how a peer ends.
//!
//! A peer ends once: `end` marks it, what it had sent is still delivered, then the engine is told (`Sink::gone`) and
//! the entry is `reset`. Until then nothing is sent to its address. After that the address may belong to a new
//! endpoint, with a new instance and the same number.
//!
//! An address may have had an earlier endpoint that sent us something, closed, and was replaced before we read it,
//! while we have connected to its successor already. The earlier one gets a number of its own (`former`), so that what
//! it sent is delivered and its end does not end its successor.
//!
//! Called by `ShmTransport`, `housekeeping` and `sleeping`.

use super::endpoint_file;
use super::inbound::Inbox;
use super::layout;
use super::name;
use super::outbound::Outbound;
use crate::engine::port::PeerId;
use crate::sys::shared;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;

#[derive(Debug)]
pub(super) struct Peer {
    pub address: Box<[u8]>,
    /// The instance of the endpoint that we know by this address; 0 for none yet.
    pub instance: u64,
    pub out: Option<Outbound>,
    /// The peer's lane in our file.
    pub lane: Option<usize>,
    /// The peer is dead; the engine is told when its lane is empty.
    pub ending: bool,
    /// The number for earlier endpoints of this address, one at a time.
    pub former: Option<PeerId>,
    /// This entry is for earlier endpoints of an address: nothing is ever sent to it.
    is_former: bool,
    /// In the transport's list of peers whose ring was full.
    pub starved: bool,
    /// The number of the last dual copy that we asked the peer for.
    pub last_dual_copy: u32,
    /// When a lane in its file was last not to be had; answers are tried again and again.
    pub no_lane_ms: Option<u64>,
}

/// Up to this many peers, unused numbers are not looked for.
const CROWD: usize = 256;

#[derive(Default)]
pub(super) struct Peers {
    table: Vec<Peer>,
    numbers: HashMap<Box<[u8]>, PeerId>,
    /// Dead peers of which all was delivered: the engine must be told.
    pub ended: Vec<PeerId>,
    /// Those of them of which it could not be told yet what has ended with them.
    pub put_off: Vec<PeerId>,
    /// Where the next check of who is alive begins.
    checked_to: usize,
    /// Numbers of no peer.
    free: Vec<PeerId>,
    /// How many peers the last `reuse` left.
    left_by_reuse: usize,
}

impl Peers {
    /// The number of an address; None for what cannot be one.
    pub(super) fn number(&mut self, address: &[u8]) -> Option<PeerId> {
        let address = name::normal(address)?;
        if let Some(number) = self.numbers.get(address) {
            return Some(*number);
        }
        let number = self.add(address.into(), false)?;
        self.numbers.insert(address.into(), number);
        Some(number)
    }

    fn add(&mut self, address: Box<[u8]>, is_former: bool) -> Option<PeerId> {
        let peer = Peer {
            address,
            instance: 0,
            out: None,
            lane: None,
            ending: is_former,
            former: None,
            is_former,
            starved: false,
            no_lane_ms: None,
            last_dual_copy: 0,
        };
        if let Some(number) = self.free.pop() {
            *self.get_mut(number)? = peer;
            return Some(number);
        }
        let number = PeerId::try_from(self.table.len()).ok()?;
        self.table.push(peer);
        Some(number)
    }

    /// Whether there are twice as many peers as the last `reuse` left, which makes its cost for each peer small.
    pub(super) fn is_crowded(&self) -> bool {
        self.table.len() - self.free.len() >= (2 * self.left_by_reuse).max(CROWD)
    }

    /// Frees the numbers of peers that are not connected either way, unless the engine holds them. Returns which.
    pub(super) fn reuse(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let over: HashSet<PeerId> = self.ended.iter().copied().collect();
        let is_idle = |peer: &Peer| peer.instance == 0 && peer.out.is_none() && peer.lane.is_none() && !peer.starved;
        let stays = |number: PeerId, peer: &Peer| over.contains(&number) || held(number) || !is_idle(peer);
        let numbered = || (0..).zip(&self.table).filter(|(_, peer)| !peer.address.is_empty());
        let kept = numbered().filter(|(number, peer)| stays(*number, peer));
        // A scalable endpoint is the source of what its contexts send.
        let sources = kept.filter_map(|(_, peer)| self.numbers.get(name::base(&peer.address)));
        let sources: HashSet<PeerId> = sources.copied().collect();
        let unused = numbered().filter(|(number, peer)| !stays(*number, peer) && !sources.contains(number));
        let reused: Vec<PeerId> = unused.map(|(number, _)| number).collect();
        for number in &reused {
            let Some(peer) = self.table.get_mut(*number as usize) else {
                continue;
            };
            let address = core::mem::take(&mut peer.address);
            peer.former = None;
            if self.numbers.get(&address) == Some(number) {
                self.numbers.remove(&address);
            }
        }
        let gone: HashSet<PeerId> = reused.iter().copied().collect();
        for peer in &mut self.table {
            peer.former = peer.former.filter(|former| !gone.contains(former));
        }
        self.free.extend(&reused);
        self.left_by_reuse = self.table.len() - self.free.len();
        reused
    }

    /// The number for an endpoint that had this address before the one that we are connected to.
    pub(super) fn former(&mut self, of: PeerId) -> Option<PeerId> {
        let entry = self.get(of)?;
        if entry.former.is_some() {
            return entry.former;
        }
        let address = entry.address.clone();
        let former = self.add(address, true)?;
        self.get_mut(of)?.former = Some(former);
        Some(former)
    }

    /// Whether what an earlier endpoint of this address sent is still being delivered.
    pub(super) fn has_former(&self, of: PeerId) -> bool {
        let former = self.get(of).and_then(|peer| self.get(peer.former?));
        former.is_some_and(|former| former.instance != 0)
    }

    /// The number of the scalable endpoint that a peer is a context of; else the peer's own.
    pub(super) fn source(&mut self, peer: PeerId) -> PeerId {
        let base = self.get(peer).map(|peer| name::base(&peer.address).to_vec());
        base.and_then(|base| self.number(&base)).unwrap_or(peer)
    }

    #[inline]
    pub(super) fn get(&self, peer: PeerId) -> Option<&Peer> {
        self.table.get(peer as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.table.get_mut(peer as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// A peer claimed a lane of ours.
    pub(super) fn met(&mut self, peer: PeerId, instance: u64, lane: usize) {
        if let Some(entry) = self.table.get_mut(peer as usize) {
            entry.instance = instance;
            entry.lane = Some(lane);
        }
    }

    /// A peer is dead, has closed, or broke the protocol.
    pub(super) fn end(&mut self, peer: PeerId, inbox: &mut Inbox) {
        let Some(entry) = self.table.get_mut(peer as usize) else {
            return;
        };
        if entry.ending {
            return;
        }
        entry.ending = true;
        entry.out = None;
        match entry.lane.and_then(|lane| inbox.get_mut(lane)) {
            Some(lane) => lane.ending = true,
            None => self.ended.push(peer),
        }
    }

    /// A peer's lane was freed, so the peer has ended.
    pub(super) fn lane_gone(&mut self, peer: PeerId, lane: usize) {
        let Some(entry) = self.table.get_mut(peer as usize) else {
            return;
        };
        if entry.lane == Some(lane) {
            entry.lane = None;
            entry.out = None;
            entry.ending = true;
            self.ended.push(peer);
        }
    }

    /// After the engine was told: whoever comes from this address from now on is a new peer.
    pub(super) fn reset(&mut self, peer: PeerId) {
        if let Some(entry) = self.table.get_mut(peer as usize) {
            entry.instance = 0;
            entry.ending = entry.is_former;
            entry.out = None;
            entry.lane = None;
            entry.last_dual_copy = 0;
        }
    }

    /// Of the next `count` entries, the connected peers, to be checked for being alive.
    pub(super) fn next_to_check(&mut self, count: usize) -> Vec<PeerId> {
        let len = self.table.len();
        // Round within one step, too: otherwise, while the table grows, only its end would be looked at.
        let numbers = (self.checked_to..)
            .map(|number| number % len.max(1))
            .take(count.min(len));
        let is_connected = |number: &usize| {
            self.table
                .get(*number)
                .is_some_and(|peer| peer.instance != 0 && !peer.ending)
        };
        let connected = numbers.filter(is_connected).map(|number| number as PeerId).collect();
        self.checked_to = (self.checked_to + count.min(len)) % len.max(1);
        connected
    }
}

/// Whether an address still belongs to the endpoint of this instance, and that is alive. Opens its file each time: a
/// thousand descriptors kept open would be more than a process is given.
pub(super) fn is_alive(dir: &Path, address: &[u8], instance: u64) -> bool {
    living_at(dir, address).is_none_or(|living| living == instance)
}

/// The instance of the endpoint that has an address now; 0: there is none. None: an error such as EMFILE tells nothing
/// about it.
pub(super) fn living_at(dir: &Path, address: &[u8]) -> Option<u64> {
    let path = name::endpoint_file(dir, address);
    let fd = match shared::open_own(&path) {
        Ok((fd, _)) => fd,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(0),
        Err(_) => return None,
    };
    if shared::is_locked(fd.as_fd(), layout::LOCK_LIFE).unwrap_or(true) {
        return Some(layout::instance_in(fd.as_fd()).unwrap_or(0));
    }
    drop(fd);
    endpoint_file::remove_if_dead(&path);
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalable_endpoint_is_known_as_long_as_one_of_its_contexts() {
        let mut peers = Peers::default();
        let contexts = [1, 2].map(|index| peers.number(&name::context(b"server", index)).unwrap());
        let base = contexts.map(|context| peers.source(context))[1];
        assert_eq!(peers.reuse(&|number| number == contexts[1]), [contexts[0]]);
        assert_eq!(peers.source(contexts[1]), base);
        assert_eq!(peers.reuse(&|_| false), [contexts[1], base]);
    }
}
