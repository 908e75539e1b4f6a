//! A stand-in for queue pairs: what a network card with reliable connections does to a transport.
//!
//! Packets arrive in the few buffers that the receiver has posted, and a sender finds no room if none is left. A buffer
//! is posted again when its body has been moved, which later polls do, in any order. Reads, writes, fetch-add and
//! compare-and-swap are the card's work, and need a key that the owner of the memory gave out; they complete late, in
//! any order between peers, and in error when the connection breaks.
//!
//! - `card`: the hardware. `tests`: the suite on it, and what only cards do. `story`: generated runs with errors.

mod card;
mod story;
mod tests;

use crate::engine::op::{Access, Error};
use crate::engine::port::*;
use crate::engine::wire::Header;
use crate::mem::atomic::{AtomicOp, Datatype, Form, Op};
use crate::util::regions::{Lease, Regions};
use crate::util::user::UserIov;
use card::{Arrival, Card, Hardware, KeyTable, Ours, Request};
pub use card::{LocalKeys, Manner};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

pub const LIMITS: Limits = Limits {
    max_body: 256,
    eager: 500,
    eager_if_fetched: 500,
    can_get: true,
    gets_at_once: 0,
    guaranteed_body: 256,
    sync_placement: false,
    max_write: 0,
    max_in_writes: 0,
    max_short_read: usize::MAX,
};

/// What the card does on 8 bytes.
pub static AMOS: LazyLock<Vec<AtomicOp>> = LazyLock::new(|| {
    let both = |form, op| [Datatype::Int64, Datatype::Uint64].map(|of| AtomicOp::new(form, op, of));
    let all = [
        both(Form::Base, Op::Sum),
        both(Form::Fetch, Op::Sum),
        both(Form::Compare, Op::Cswap),
    ];
    all.into_iter().flatten().flatten().collect()
});

/// What cards that reach each other have in common.
#[derive(Clone, Default)]
pub struct Fabric(Arc<Mutex<Hardware>>);

impl Fabric {
    pub fn new(seed: u64, manner: Manner) -> Fabric {
        let fabric = Fabric::default();
        fabric.hardware().manner = manner;
        fabric.hardware().seed(seed);
        fabric
    }

    fn hardware(&self) -> MutexGuard<'_, Hardware> {
        self.0.lock().unwrap()
    }

    /// An endpoint at this address; others find it by that, and number it by when it was opened.
    pub fn open(&self, address: &[u8]) -> QueuePair {
        let mut hardware = self.hardware();
        hardware.cards.push(Card {
            address: address.to_vec(),
            ..Card::default()
        });
        QueuePair {
            fabric: self.clone(),
            me: hardware.cards.len() - 1,
            moving: Vec::new(),
            tables: Vec::new(),
            told: Vec::new(),
        }
    }

    /// The connection between two endpoints fails.
    pub fn break_pair(&self, a: PeerId, b: PeerId) {
        self.hardware().break_pair(a as usize, b as usize);
    }
}

/// A body that is being moved from a buffer to its place.
enum Moving {
    Into(UserIov, usize, Vec<u8>),
    Leased(Lease, Vec<u8>),
    Keep(Vec<u8>, Vec<u8>),
}

pub struct QueuePair {
    fabric: Fabric,
    me: usize,
    moving: Vec<(usize, Token, Moving)>,
    /// Kept, as domains have them only as long as somebody else has.
    tables: Vec<Arc<KeyTable>>,
    /// Peers of which the engine knows that they are gone.
    told: Vec<usize>,
}

impl QueuePair {
    pub fn address(&self) -> Vec<u8> {
        self.fabric.hardware().cards[self.me].address.clone()
    }

    /// It is one of a domain that has this memory.
    pub fn attach(&mut self, local: &LocalKeys) {
        self.fabric.hardware().cards[self.me].local = local.clone();
    }

    /// Asks the card for something that touches memory.
    fn request(&mut self, to: PeerId, token: Token, request: Request) -> Get {
        let mut hardware = self.fabric.hardware();
        let to = to as usize;
        if hardware.cards[to].closed {
            return Get::Gone;
        }
        if !hardware.has_room(self.me, to, &request) {
            return Get::Full;
        }
        if hardware.refuses(&request) {
            return Get::Failed(Error::NoMemory);
        }
        hardware.request(self.me, to, Some(token), request);
        Get::Later
    }

    /// How much memory peers may fetch from.
    pub fn exposed(&self) -> usize {
        self.fabric.hardware().cards[self.me].exposed.len()
    }

    /// Nothing is under way here that goes on by itself.
    pub fn is_quiet(&self) -> bool {
        let mut hardware = self.fabric.hardware();
        let mut others = (0..hardware.cards.len()).filter(|peer| !self.told.contains(peer));
        self.moving.is_empty() && others.all(|peer| hardware.is_quiet(self.me, peer))
    }

    /// The endpoint ends as if its process had died.
    pub fn die(&mut self) {
        self.fabric.hardware().close(self.me);
    }

    /// The connection to a peer breaks.
    pub fn break_off(&mut self, peer: PeerId) {
        self.fabric.hardware().break_pair(self.me, peer as usize);
    }

    /// Whether a peer's card may be asked: it has opened its regions, or is gone and says so. For one that has not, the
    /// engine asks the peer.
    fn is_open(&self, peer: PeerId) -> bool {
        let card = &self.fabric.hardware().cards[peer as usize];
        card.closed || card.regions.is_some()
    }

    /// Tells the engine of some of the requests that have completed.
    fn complete<S: Sink>(&mut self, sink: &mut S, peer: usize, all: bool) {
        loop {
            let mut hardware = self.fabric.hardware();
            let waits = !all && hardware.roll(3) == 0;
            let completed = &mut hardware.pair(self.me, peer).completed;
            let Some((token, outcome)) = (if waits { None } else { completed.pop_front() }) else {
                return;
            };
            drop(hardware);
            sink.finished(token, outcome);
        }
    }

    /// Moves some bodies to their places, out of order.
    fn move_bodies<S: Sink>(&mut self, sink: &mut S) {
        for _ in 0..self.moving.len() {
            let at = self.fabric.hardware().roll(2 * self.moving.len() as u64) as usize;
            if at >= self.moving.len() {
                continue;
            }
            let (from, token, moving) = self.moving.swap_remove(at);
            self.post(from);
            match moving {
                Moving::Into(iov, at, bytes) => {
                    iov.write(at, &bytes);
                    sink.placed(token, None);
                }
                Moving::Leased(lease, bytes) => match lease.write(0, &bytes) {
                    true => sink.placed(token, None),
                    false => sink.cut(token),
                },
                Moving::Keep(mut buffer, bytes) => {
                    buffer.copy_from_slice(&bytes);
                    sink.placed(token, Some(buffer));
                }
            }
        }
    }

    /// Posts a buffer again.
    fn post(&self, from: usize) {
        self.fabric.hardware().pair(from, self.me).taken -= 1;
    }

    /// Delivers one arrival. False: there is none, or the engine refused it.
    fn deliver<S: Sink>(&mut self, sink: &mut S, from: usize) -> bool {
        let arrival = self.fabric.hardware().pair(from, self.me).arrived.pop_front();
        let (header, bytes) = match arrival {
            None => return false,
            Some(Arrival::Written(len, data)) => {
                self.post(from);
                sink.written(from as PeerId, len, data);
                return true;
            }
            Some(Arrival::Packet(header, bytes)) => (header, bytes),
        };
        match sink.place(from as PeerId, &header, bytes.len()) {
            Placement::Into { iov, at, token } => self.moving.push((from, token, Moving::Into(iov, at, bytes))),
            Placement::Leased { lease, token } => self.moving.push((from, token, Moving::Leased(lease, bytes))),
            Placement::Keep { buffer, token } => self.moving.push((from, token, Moving::Keep(buffer, bytes))),
            Placement::Drop => self.post(from),
            Placement::Refuse => {
                let again = Arrival::Packet(header, bytes);
                self.fabric.hardware().pair(from, self.me).arrived.push_front(again);
                return false;
            }
        }
        true
    }

    /// Reports a peer that is gone, after everything that came from it.
    fn mourn<S: Sink>(&mut self, sink: &mut S, peer: usize) {
        let mut hardware = self.fabric.hardware();
        let died = hardware.cards[peer].closed;
        let knows = self.told.contains(&peer) || hardware.pair(self.me, peer).told;
        let over = hardware.is_broken(self.me, peer) && !knows;
        let rest = self.moving.iter().any(|(from, ..)| *from == peer);
        let rest = rest || !hardware.pair(peer, self.me).arrived.is_empty();
        drop(hardware);
        if !over || rest {
            return;
        }
        self.complete(sink, peer, true);
        if died {
            self.told.push(peer);
        }
        self.fabric.hardware().told(self.me, peer);
        sink.gone(peer as PeerId, if died { Loss::Died } else { Loss::Broken });
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.die();
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

impl Transport for QueuePair {
    const ONE_SIDED: bool = true;

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn one_sided(&self) -> OneSided {
        let Manner {
            no_atomics,
            loose_writes,
            ..
        } = self.fabric.hardware().manner;
        OneSided {
            copies: true,
            atomics: if no_atomics { &[] } else { &AMOS },
            ordered_after_write: !loose_writes,
            ordered_after_read: false,
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        let hardware = self.fabric.hardware();
        let found = hardware.cards.iter().rposition(|card| card.address == address);
        found.map(|number| number as PeerId)
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, .. } => drop(iov.read(at, &mut bytes)),
        }
        let (mut hardware, to) = (self.fabric.hardware(), to as usize);
        let request = Request::Packet(*header, bytes);
        if hardware.cards[to].closed {
            return Push::Gone;
        }
        if !hardware.has_room(self.me, to, &request) {
            return Push::Full;
        }
        hardware.request(self.me, to, None, request);
        Push::Done
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        self.break_off(peer);
        self.moving.retain(|(from, ..)| *from != peer as usize);
        self.fabric.hardware().pair(self.me, peer as usize).completed.clear();
        true
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        let mut hardware = self.fabric.hardware();
        hardware.advance();
        let peers = hardware.cards.len();
        let first = hardware.roll(peers as u64) as usize;
        drop(hardware);
        self.move_bodies(sink);
        let mut done = 0;
        for peer in (0..peers).map(|peer| (peer + first) % peers) {
            if self.told.contains(&peer) {
                continue;
            }
            self.complete(sink, peer, false);
            while done < budget && self.deliver(sink, peer) {
                done += 1;
            }
            self.mourn(sink, peer);
        }
        done
    }

    fn publish_regions(&mut self, regions: &Arc<Regions>, endpoint: u64) {
        self.fabric.hardware().cards[self.me].regions = Some(Default::default());
        let table = Arc::new(KeyTable {
            hardware: self.fabric.0.clone(),
            card: self.me,
            endpoint,
        });
        regions.reflect(&table);
        self.tables.push(table);
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        if !self.is_open(to) {
            return Get::Unsupported;
        }
        let parts = copy.parts.to_vec();
        let request = match (copy.access, copy.local) {
            (Access::Write, Local::User(iov)) => Request::Write(Ours::User(*iov), parts, copy.data),
            (Access::Write, Local::Bytes(bytes)) => Request::Write(Ours::Taken(bytes.to_vec()), parts, copy.data),
            (Access::Read, Local::User(iov)) => Request::Read(*iov, parts),
            (Access::Read, Local::Bytes(_)) => return Get::Failed(Error::OutOfRange),
        };
        self.request(to, token, request)
    }

    fn amo(&mut self, to: PeerId, amo: &Amo<'_>, token: Token) -> Get {
        if !self.is_open(to) {
            return Get::Unsupported;
        }
        let (operand, compare) = (word(amo.operand), word(amo.compare));
        self.request(to, token, Request::Amo(amo.op, amo.part, operand, compare, *amo.result))
    }

    fn expose(&mut self, _: PeerId, iov: &UserIov, name: ExposedName) -> Option<Exposed> {
        // A key of its own would outlive the region.
        if !matches!(name, ExposedName::Sent(_)) {
            return None;
        }
        let id = self.fabric.hardware().expose(self.me, iov)?;
        let remote = [id.to_le_bytes(), (iov.len() as u64).to_le_bytes()].concat();
        Some(Exposed {
            remote: Remote::new(&remote)?,
            id: Some(id),
        })
    }

    fn unexpose(&mut self, _: PeerId, id: u64) {
        let was = self.fabric.hardware().cards[self.me].exposed.remove(&id);
        assert!(was.is_some(), "exposed, and ended once");
    }

    fn get(
        &mut self,
        from: PeerId,
        remote: &Remote,
        local: &UserIov,
        at: usize,
        len: usize,
        token: Option<Token>,
    ) -> Get {
        let Some(token) = token else {
            return Get::Unsupported; // a get completes later
        };
        let Some(id) = remote.bytes().first_chunk().map(|id| u64::from_le_bytes(*id)) else {
            return Get::Unsupported;
        };
        self.request(from, token, Request::Fetch(*local, id, at, len))
    }
}
