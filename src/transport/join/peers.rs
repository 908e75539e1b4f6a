//! The peers of a join: their numbers, their addresses, and the way to each.
//!
//! Called by `Join` only.

use super::Naming;
use crate::engine::port::PeerId;
use crate::engine::port::tap::{Known, KnownPeers};
use std::collections::{HashMap, HashSet};

/// How a peer is reached, with its number on that way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Near(PeerId),
    Far(PeerId),
    /// Not chosen yet: it was not near, and a connection with it is being made the far way, under this number.
    Begun(PeerId),
    /// Not chosen yet.
    Open,
}

struct Peer {
    address: Box<[u8]>,
    /// As whose its messages match: the scalable endpoint of which it is a context, or itself.
    source: PeerId,
    /// Its number on each way on which it was met or is reached.
    near: Option<PeerId>,
    far: Option<PeerId>,
    /// The number for endpoints that had this address before, one at a time, which the near transport tells apart.
    former: Option<PeerId>,
    is_former: bool,
    /// The near way was taken to it once.
    was_near: bool,
}

#[derive(Default)]
pub(super) struct Peers {
    /// Of each number; apart from the rest, as every packet looks here.
    ways: Vec<Way>,
    /// None: the number is free.
    table: Vec<Option<Peer>>,
    numbers: HashMap<Box<[u8]>, PeerId>,
    free: Vec<PeerId>,
    near_reached: usize,
    far_reached: usize,
}

impl Peers {
    #[inline(always)]
    pub(super) fn way(&self, peer: PeerId) -> Way {
        self.ways.get(peer as usize).copied().unwrap_or(Way::Open)
    }

    pub(super) fn address(&self, peer: PeerId) -> Option<&[u8]> {
        Some(&self.entry(peer)?.address)
    }

    pub(super) fn reached(&self) -> (usize, usize) {
        (self.near_reached, self.far_reached)
    }

    /// The number of an address. None: nobody could be there.
    pub(super) fn number<N: Naming>(&mut self, names: &N, address: &[u8]) -> Option<PeerId> {
        if let Some(number) = self.numbers.get(address) {
            return Some(*number);
        }
        if names.near(address).is_none() && names.far(address).is_none() {
            return None;
        }
        let source = match names.base(address) {
            base if base.len() == address.len() => None,
            base => Some(self.number(names, base)?),
        };
        let id = self.add(address.into(), source)?;
        self.numbers.insert(address.into(), id);
        Some(id)
    }

    /// Without a source its messages match as its own.
    fn add(&mut self, address: Box<[u8]>, source: Option<PeerId>) -> Option<PeerId> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = PeerId::try_from(self.table.len()).ok()?;
                self.table.push(None);
                self.ways.push(Way::Open);
                id
            }
        };
        *self.table.get_mut(id as usize)? = Some(Peer {
            address,
            source: source.unwrap_or(id),
            near: None,
            far: None,
            former: None,
            is_former: false,
            was_near: false,
        });
        Some(id)
    }

    fn entry(&self, peer: PeerId) -> Option<&Peer> {
        self.table.get(peer as usize)?.as_ref()
    }

    fn entry_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.table.get_mut(peer as usize)?.as_mut()
    }

    /// This is the way to the peer. Returns it.
    pub(super) fn choose<N: Naming>(&mut self, names: &N, peer: PeerId, way: Way, known: &mut KnownPeers) -> Way {
        match way {
            Way::Near(_) => self.near_reached += 1,
            Way::Far(_) => self.far_reached += 1,
            Way::Begun(_) | Way::Open => return way,
        }
        if let Some(address) = self.address(peer) {
            names.chosen(address, matches!(way, Way::Near(_)));
        }
        self.set_way(peer, way);
        self.note(peer, way, known);
        if let Some(entry) = self.entry_mut(peer) {
            entry.was_near |= matches!(way, Way::Near(_));
        }
        way
    }

    /// A connection with this peer is being made the far way.
    pub(super) fn begin(&mut self, peer: PeerId, number: PeerId, known: &mut KnownPeers) -> Way {
        self.set_way(peer, Way::Begun(number));
        self.note(peer, Way::Far(number), known);
        Way::Begun(number)
    }

    /// The far way is not taken to this peer after all, and nothing has gone there. Returns its number there.
    pub(super) fn leave_far(&mut self, peer: PeerId) -> Option<PeerId> {
        self.far_reached -= usize::from(matches!(self.way(peer), Way::Far(_)));
        self.set_way(peer, Way::Open);
        self.entry_mut(peer)?.far.take()
    }

    fn set_way(&mut self, peer: PeerId, way: Way) {
        if let Some(place) = self.ways.get_mut(peer as usize) {
            *place = way;
        }
    }

    /// The transport of this way knows the peer by that number.
    fn note(&mut self, peer: PeerId, way: Way, known: &mut KnownPeers) {
        let Some(entry) = self.entry_mut(peer) else { return };
        let number = match way {
            Way::Near(number) => *entry.near.insert(number),
            Way::Far(number) => *entry.far.insert(number),
            Way::Begun(_) | Way::Open => return,
        };
        let at = number as usize;
        if known.len() <= at {
            known.resize(at + 1, None);
        }
        match known.get_mut(at) {
            Some(Some(known)) if known.id == peer => {}
            Some(place) => {
                *place = Some(Known {
                    id: peer,
                    source: entry.source,
                    met: false,
                });
            }
            None => {}
        }
    }

    /// Something has come this way from the peer at this address. If it is far, that is the way to it, unless another
    /// was chosen. The near way may lead here and not there, which is found out when something is sent.
    pub(super) fn met<N: Naming>(&mut self, names: &N, address: &[u8], way: Way, known: &mut KnownPeers) {
        let Some(peer) = self.number(names, address) else {
            return;
        };
        match (self.way(peer), way) {
            (Way::Open | Way::Begun(_), Way::Far(_)) => {
                self.choose(names, peer, way, known);
            }
            _ => self.note(peer, way, known),
        }
    }

    /// As `met`, of an endpoint that had this address before the one that the near transport connects to now. It has a
    /// number of its own, so that its end is not that of its successor.
    pub(super) fn met_former<N: Naming>(&mut self, names: &N, address: &[u8], number: PeerId, known: &mut KnownPeers) {
        let Some(peer) = self.number(names, address) else {
            return;
        };
        let Some(former) = self.former(peer) else { return };
        self.set_way(former, Way::Near(number));
        self.note(former, Way::Near(number), known);
    }

    fn former(&mut self, of: PeerId) -> Option<PeerId> {
        let entry = self.entry_mut(of)?;
        if entry.former.is_some() {
            return entry.former;
        }
        let (address, source) = (entry.address.clone(), entry.source);
        let former = self.add(address, Some(source))?;
        self.entry_mut(former)?.is_former = true;
        self.entry_mut(of)?.former = Some(former);
        Some(former)
    }

    /// Whether this is an endpoint that had its address before another: it is never sent to but in answer.
    pub(super) fn is_former(&self, peer: PeerId) -> bool {
        self.entry(peer).is_some_and(|entry| entry.is_former)
    }

    /// Whether the near way led to this peer before.
    pub(super) fn was_near(&self, peer: PeerId) -> bool {
        self.entry(peer).is_some_and(|entry| entry.was_near)
    }

    /// Its number on each way, where it has one. On both: only one of us could go the near way.
    pub(super) fn numbers(&self, peer: PeerId) -> (Option<PeerId>, Option<PeerId>) {
        self.entry(peer).map_or((None, None), |entry| (entry.near, entry.far))
    }

    /// It was lost: the way to it is to be chosen anew. Returns the numbers that it had, near and far.
    pub(super) fn reopen(&mut self, peer: PeerId) -> (Option<PeerId>, Option<PeerId>) {
        self.set_way(peer, Way::Open);
        let entry = self.entry_mut(peer);
        entry.map_or((None, None), |entry| (entry.near.take(), entry.far.take()))
    }

    /// The near way was chosen for this peer and does not lead there.
    pub(super) fn leave_near<N: Naming>(&mut self, names: &N, peer: PeerId) {
        self.address(peer).iter().for_each(|address| names.left(address));
        self.near_reached -= usize::from(matches!(self.way(peer), Way::Near(_)));
        self.set_way(peer, Way::Open);
        if let Some(entry) = self.entry_mut(peer) {
            entry.near = None;
        }
    }

    /// Frees the numbers of peers without a way that nobody holds, and returns them.
    pub(super) fn forget(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let stays = |id: PeerId, way: Way| way != Way::Open || self.numbers(id) != (None, None) || held(id);
        let numbered = || (0..).zip(self.ways.iter().copied());
        let kept = numbered().filter(|(id, way)| stays(*id, *way));
        let sources: HashSet<PeerId> = kept.filter_map(|(id, _)| Some(self.entry(id)?.source)).collect();
        let idle =
            numbered().filter(|(id, way)| !stays(*id, *way) && !sources.contains(id) && self.entry(*id).is_some());
        let idle: Vec<PeerId> = idle.map(|(id, _)| id).collect();
        for id in &idle {
            let gone = self.table.get_mut(*id as usize).and_then(Option::take);
            if let Some(gone) = gone.filter(|gone| !gone.is_former) {
                self.numbers.remove(&gone.address);
            }
        }
        let gone: HashSet<PeerId> = idle.iter().copied().collect();
        for peer in self.table.iter_mut().flatten() {
            peer.former = peer.former.filter(|former| !gone.contains(former));
        }
        self.free.extend(&idle);
        idle
    }
}

pub(super) fn known(known: &KnownPeers, number: PeerId) -> Option<Known> {
    known.get(number as usize).copied().flatten()
}

/// The number stands for nobody any more. Returns the engine's number of whom it stood for.
pub(super) fn unknow(known: &mut KnownPeers, number: PeerId) -> Option<PeerId> {
    known.get_mut(number as usize)?.take().map(|known| known.id)
}
