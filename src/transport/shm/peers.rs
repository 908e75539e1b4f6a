//! The peers of an endpoint: their numbers, what connects us to each, and how a peer ends.
//!
//! A peer ends once: `end` marks it, what it sent before is still delivered, then the engine is told (`forget`). Until
//! then nothing is sent to its address; after that the address may come to life again, with a new instance.
//!
//! An earlier life may have sent something that we had not seen when we connected to the one after it. It gets a number
//! of its own (`former`), so that what it left is delivered and its end concerns nobody else.

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
pub struct Peer {
    pub address: Box<[u8]>,
    /// Which life of the address we know; 0 for none yet.
    pub instance: u64,
    pub out: Option<Outbound>,
    /// Its ring in our file.
    pub ring: Option<usize>,
    /// Dead: the engine is told when its ring is empty.
    pub ending: bool,
    /// The number of earlier lives of this address, one at a time.
    pub former: Option<PeerId>,
    /// This is the number of earlier lives: nothing is ever sent to it.
    is_former: bool,
    /// It stands for the contexts of its name, which are peers of their own.
    is_base: bool,
    /// In the list of those whose ring was full.
    pub starved: bool,
    /// The number of the last message that was fetched together (`dual_copy`).
    pub last_dual_copy: u32,
}

/// So many peers are no crowd.
const CROWD: usize = 256;

#[derive(Default)]
pub struct Peers {
    table: Vec<Peer>,
    numbers: HashMap<Box<[u8]>, PeerId>,
    /// Dead peers with nothing left to deliver: the engine is to be told.
    pub ended: Vec<PeerId>,
    /// The next peer whose life is looked at.
    checked_to: usize,
    /// Numbers that are nobody's.
    free: Vec<PeerId>,
    /// How many peers there were after the last `reuse`.
    left_by_reuse: usize,
}

impl Peers {
    /// The number of an address; None for what cannot be one.
    pub fn number(&mut self, address: &[u8]) -> Option<PeerId> {
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
            ring: None,
            ending: is_former,
            former: None,
            is_former,
            is_base: false,
            starved: false,
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

    /// Whether there are twice as many as were left by the last `reuse`: so that it costs little for each.
    pub fn is_crowded(&self) -> bool {
        self.table.len() - self.free.len() >= (2 * self.left_by_reuse).max(CROWD)
    }

    /// Numbers of addresses that we have nothing to do with become free, but for those that are held.
    pub fn reuse(&mut self, held: &dyn Fn(PeerId) -> bool) -> Vec<PeerId> {
        let over: HashSet<PeerId> = self.ended.iter().copied().collect();
        let idle = |peer: &Peer| {
            let away = peer.instance == 0 && peer.out.is_none() && peer.ring.is_none() && !peer.starved;
            away && !peer.is_base && !peer.address.is_empty()
        };
        let mut reused = Vec::new();
        for number in 0..self.table.len() as PeerId {
            if over.contains(&number) || held(number) || !self.get(number).is_some_and(idle) {
                continue;
            }
            reused.push(number);
        }
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

    /// The number of a life that ended before the one we are connected to began, to deliver what it sent.
    pub fn former(&mut self, of: PeerId) -> Option<PeerId> {
        let entry = self.get(of)?;
        if entry.former.is_some() {
            return entry.former;
        }
        let address = entry.address.clone();
        let former = self.add(address, true)?;
        self.get_mut(of)?.former = Some(former);
        Some(former)
    }

    /// Whether what an earlier life sent is still being delivered.
    pub fn has_former(&self, of: PeerId) -> bool {
        let former = self.get(of).and_then(|peer| self.get(peer.former?));
        former.is_some_and(|former| former.instance != 0)
    }

    /// The number of the name that a peer's address is a context of.
    pub fn source(&mut self, peer: PeerId) -> PeerId {
        let base = self.get(peer).map(|peer| name::base(&peer.address).to_vec());
        let source = base.and_then(|base| self.number(&base)).unwrap_or(peer);
        if let Some(source) = self.get_mut(source).filter(|_| source != peer) {
            source.is_base = true;
        }
        source
    }

    #[inline]
    pub fn get(&self, peer: PeerId) -> Option<&Peer> {
        self.table.get(peer as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.table.get_mut(peer as usize)
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// A peer claimed a ring of ours.
    pub fn met(&mut self, peer: PeerId, instance: u64, ring: usize) {
        if let Some(entry) = self.table.get_mut(peer as usize) {
            entry.instance = instance;
            entry.ring = Some(ring);
        }
    }

    /// A peer is dead, or as good as dead.
    pub fn end(&mut self, peer: PeerId, inbox: &mut Inbox) {
        let Some(entry) = self.table.get_mut(peer as usize) else {
            return;
        };
        if entry.ending {
            return;
        }
        entry.ending = true;
        entry.out = None;
        match entry.ring.and_then(|ring| inbox.get_mut(ring)) {
            Some(ring) => ring.ending = true,
            None => self.ended.push(peer),
        }
    }

    /// A peer's ring was taken away: it is over.
    pub fn ring_gone(&mut self, peer: PeerId, ring: usize) {
        let Some(entry) = self.table.get_mut(peer as usize) else {
            return;
        };
        if entry.ring == Some(ring) {
            entry.ring = None;
            entry.out = None;
            entry.ending = true;
            self.ended.push(peer);
        }
    }

    /// The engine is told; what comes from the address now is somebody new.
    pub fn reset(&mut self, peer: PeerId) {
        if let Some(entry) = self.table.get_mut(peer as usize) {
            entry.instance = 0;
            entry.ending = entry.is_former;
            entry.out = None;
            entry.ring = None;
            entry.last_dual_copy = 0;
        }
    }

    /// The next peers to look at, of those we have to do with.
    pub fn next_to_check(&mut self, count: usize) -> Vec<PeerId> {
        let from = if self.checked_to < self.table.len() {
            self.checked_to
        } else {
            0
        };
        let to = self.table.len().min(from + count);
        self.checked_to = to;
        let busy = |peer: &&Peer| peer.instance != 0 && !peer.ending;
        let known = self.table.get(from..to).unwrap_or_default().iter().zip(from..to);
        known
            .filter(|(peer, _)| busy(peer))
            .map(|(_, number)| number as PeerId)
            .collect()
    }
}

/// Whether the owner of an address is still in the life we know. Opens its file each time: a descriptor kept for each
/// of a thousand peers would be more than a process is given.
pub fn is_alive(dir: &Path, address: &[u8], instance: u64) -> bool {
    let path = name::endpoint_file(dir, address);
    let fd = match shared::open_own(&path) {
        Ok((fd, _)) => fd,
        // Out of descriptors, say: that tells nothing about the peer.
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    if layout::instance_in(fd.as_fd()) != Some(instance) {
        return false;
    }
    if shared::is_locked(fd.as_fd(), layout::LOCK_LIFE).unwrap_or(true) {
        return true;
    }
    drop(fd);
    endpoint_file::remove_if_dead(&path);
    false
}
