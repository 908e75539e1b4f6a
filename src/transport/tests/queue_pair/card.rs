//! The hardware behind `QueuePair`: cards that carry out requests for each other, each pair of them in its own time.
//!
//! Requests of one card to another are carried out from the front of their queue: packets and writes at once, reads and
//! atomics a while later, among themselves in order, so that what was requested after them may overtake them. A packet,
//! or a write with data, takes one of few buffers that the receiver has for this sender. Memory is looked up by key at
//! the moment when it is touched. Nothing happens but in `Hardware::advance`, which every poll of any card calls.

use crate::engine::op::{Error, RemotePart};
use crate::engine::port::{NotDone, Token};
use crate::engine::wire::Header;
use crate::mem::atomic::{AtomicOp, Form};
use crate::util::regions::{Mirror, Region, Rights};
use crate::util::user::{UserBuf, UserIov};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Buffers that a card has for the packets of each other card.
pub const BUFFERS: usize = 4;
/// Reads and atomics that a card has in flight to each other card.
pub const READS: usize = 2;
/// How much memory a card may have exposed.
const EXPOSED: usize = 5;

pub type Outcome = Result<(), NotDone>;

/// How cards behave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Of 16 requests that touch memory, how many fail, with `Error::NoMemory`.
    pub failing: u64,
    /// Of 16 such requests, how many are refused at once, with the same error.
    pub refusing: u64,
    /// Of 16 requests, how many find no room.
    pub full: u64,
    /// Requests on memory of ours fail unless it is registered with our card (FI_MR_LOCAL).
    pub local_keys: bool,
    /// The cards have no atomics: those are left to processors.
    pub no_atomics: bool,
    /// What was requested after a write may overtake it, as it may overtake a read.
    pub loose_writes: bool,
}

/// Our side of a request.
pub enum Ours {
    User(UserIov),
    Taken(Vec<u8>),
}

impl Ours {
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Ours::User(iov) => {
                let mut bytes = vec![0; iov.len()];
                iov.read(0, &mut bytes);
                bytes
            }
            Ours::Taken(bytes) => bytes.clone(),
        }
    }
}

pub enum Request {
    Packet(Header, Vec<u8>),
    Write(Ours, Vec<RemotePart>, Option<u64>),
    Read(UserIov, Vec<RemotePart>),
    /// Memory that was exposed under this name: offset, and length.
    Fetch(UserIov, u64, usize, usize),
    /// Operand and compare operand; where the old value goes.
    Amo(AtomicOp, RemotePart, u64, u64, UserIov),
}

impl Request {
    fn answers_later(&self) -> bool {
        matches!(self, Request::Read(..) | Request::Fetch(..) | Request::Amo(..))
    }

    fn touches_memory(&self) -> bool {
        !matches!(self, Request::Packet(..))
    }

    /// Whether it takes a buffer of the receiver.
    fn arrives(&self) -> bool {
        matches!(self, Request::Packet(..) | Request::Write(_, _, Some(_)))
    }

    /// Our memory that it works on.
    fn ours(&self) -> Option<&UserIov> {
        match self {
            Request::Write(Ours::User(iov), ..) | Request::Read(iov, _) => Some(iov),
            Request::Fetch(iov, ..) | Request::Amo(.., iov) => Some(iov),
            Request::Packet(..) | Request::Write(Ours::Taken(_), ..) => None,
        }
    }
}

pub enum Arrival {
    Packet(Header, Vec<u8>),
    Written(usize, u64),
}

/// What one card has to do for another, the target.
#[derive(Default)]
pub struct Pair {
    queue: VecDeque<(Option<Token>, Request)>,
    answering: VecDeque<(Option<Token>, Request)>,
    /// Buffers of the target in use: requested, filled, or with a body that is still to be moved.
    pub taken: usize,
    pub arrived: VecDeque<Arrival>,
    /// What has completed, in order, and the initiator has not been told.
    pub completed: VecDeque<(Token, Outcome)>,
    pub broken: bool,
    /// The initiator knows that it is broken.
    pub told: bool,
}

#[derive(Default)]
pub struct Card {
    pub address: Vec<u8>,
    pub closed: bool,
    /// Memory that other cards may work on; None: it has not been opened to them.
    pub regions: Option<BTreeMap<u64, Region>>,
    /// Memory that may be named in requests of this card, if that is asked for.
    pub local: LocalKeys,
    pub exposed: HashMap<u64, UserIov>,
    pub exposures: u64,
}

#[derive(Default)]
pub struct Hardware {
    pub cards: Vec<Card>,
    /// By initiator and target.
    pairs: HashMap<(usize, usize), Pair>,
    die: u64,
    pub manner: Manner,
}

/// The memory that the cards of one domain know, and what programs have said of memory that they named.
#[derive(Clone, Default)]
pub struct LocalKeys(Arc<Mutex<KeyedMemory>>);

#[derive(Default)]
struct KeyedMemory {
    made: usize,
    /// By descriptor.
    registered: HashMap<usize, UserIov>,
    /// By address, the descriptor that came with it last.
    lent: HashMap<usize, usize>,
}

/// Whether a registration has `len` bytes at an address.
fn covers(whole: &UserIov, addr: usize, len: usize) -> bool {
    whole.parts().iter().any(|whole| {
        let at = addr.checked_sub(whole.addr());
        at.is_some_and(|at| at <= whole.len() && len <= whole.len() - at)
    })
}

impl LocalKeys {
    pub fn register(&self, memory: &UserIov) -> usize {
        let mut keyed = self.0.lock().unwrap();
        keyed.made += 1;
        // No address, so nobody takes it for one.
        let desc = keyed.made | 0xca4d << 16;
        keyed.registered.insert(desc, *memory);
        desc
    }

    pub fn deregister(&self, desc: usize) {
        let mut keyed = self.0.lock().unwrap();
        assert!(keyed.registered.remove(&desc).is_some(), "registered, and once");
    }

    /// A program names memory with this descriptor. False: it is not of that memory.
    pub fn lend(&self, addr: usize, desc: usize) -> bool {
        let mut keyed = self.0.lock().unwrap();
        let good = keyed.registered.get(&desc).is_some_and(|whole| covers(whole, addr, 0));
        if good {
            keyed.lent.insert(addr, desc);
        }
        good
    }

    fn knows(&self, part: &UserBuf) -> bool {
        let keyed = self.0.lock().unwrap();
        let whole = keyed.lent.get(&part.addr()).and_then(|desc| keyed.registered.get(desc));
        whole.is_some_and(|whole| covers(whole, part.addr(), part.len()))
    }
}

/// A card's table of regions, as the domain keeps it.
pub struct KeyTable {
    pub hardware: Arc<Mutex<Hardware>>,
    pub card: usize,
    pub endpoint: u64,
}

impl KeyTable {
    fn table<R>(&self, change: impl FnOnce(&mut BTreeMap<u64, Region>) -> R) -> R {
        let mut hardware = self.hardware.lock().unwrap();
        change(hardware.cards[self.card].regions.get_or_insert_default())
    }
}

impl Mirror for KeyTable {
    fn show(&self, key: u64, region: &Region) {
        let here = region.endpoint.is_none_or(|only| only == self.endpoint);
        let open = region.enabled && !region.counted && here;
        self.table(|table| match open {
            true => drop(table.insert(key, region.clone())),
            false => drop(table.remove(&key)),
        });
    }

    fn hide(&self, key: u64) {
        self.table(|table| table.remove(&key));
    }

    fn settle(&self, _: u64) -> bool {
        true // memory is touched under the lock, after the key was looked up
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl Hardware {
    /// A number below `below`.
    pub fn roll(&mut self, below: u64) -> u64 {
        self.die = self
            .die
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.die >> 33) % below.max(1)
    }

    pub fn seed(&mut self, seed: u64) {
        self.die = seed;
    }

    pub fn pair(&mut self, from: usize, to: usize) -> &mut Pair {
        self.pairs.entry((from, to)).or_default()
    }

    pub fn is_broken(&mut self, from: usize, to: usize) -> bool {
        self.cards[to].closed || self.pair(from, to).broken
    }

    /// Whether nothing is under way from one card to another, nor what it has to hear of it.
    pub fn is_quiet(&mut self, me: usize, peer: usize) -> bool {
        let untold = self.is_broken(me, peer) && !self.pair(me, peer).told;
        let sent = self.pair(me, peer);
        let idle = sent.queue.is_empty() && sent.answering.is_empty() && sent.completed.is_empty();
        idle && !untold && self.pair(peer, me).arrived.is_empty()
    }

    /// An end knows that its connection to another is broken. When both do, they are connected again.
    pub fn told(&mut self, from: usize, to: usize) {
        self.pair(from, to).told = true;
        if self.pair(to, from).told && !self.cards[to].closed {
            self.pairs.remove(&(from, to));
            self.pairs.remove(&(to, from));
        }
    }

    /// Whether the card refuses a request at once.
    pub fn refuses(&mut self, request: &Request) -> bool {
        let refusing = self.manner.refusing;
        request.touches_memory() && self.roll(16) < refusing
    }

    /// Whether there is room for a request, now. There is none from a break until both ends know of it.
    pub fn has_room(&mut self, from: usize, to: usize, request: &Request) -> bool {
        if self.pair(from, to).broken {
            return false;
        }
        let full = self.manner.full;
        let pair = self.pair(from, to);
        let reads = pair.queue.iter().filter(|(_, request)| request.answers_later()).count() + pair.answering.len();
        let room = (!request.arrives() || pair.taken < BUFFERS) && (!request.answers_later() || reads < READS);
        room && self.roll(16) >= full
    }

    pub fn request(&mut self, from: usize, to: usize, token: Option<Token>, request: Request) {
        let pair = self.pair(from, to);
        pair.taken += usize::from(request.arrives());
        pair.queue.push_back((token, request));
    }

    /// None: there is no room.
    pub fn expose(&mut self, card: usize, iov: &UserIov) -> Option<u64> {
        let card = &mut self.cards[card];
        if card.exposed.len() == EXPOSED {
            return None;
        }
        card.exposures += 1;
        card.exposed.insert(card.exposures, *iov);
        Some(card.exposures)
    }

    /// The connection between two cards fails: what is under way ends in error, at both.
    pub fn break_pair(&mut self, a: usize, b: usize) {
        for (from, to) in [(a, b), (b, a)] {
            self.pair(from, to).broken = true;
            self.flush(from, to);
        }
    }

    fn flush(&mut self, from: usize, to: usize) {
        let why = match self.cards[to].closed {
            true => Error::PeerGone,
            false => Error::Broken,
        };
        let pair = self.pair(from, to);
        let ended = pair.answering.drain(..).chain(pair.queue.drain(..));
        let ended = ended.filter_map(|(token, _)| Some((token?, Err(NotDone::Failed(why)))));
        let ended: Vec<_> = ended.collect();
        self.pair(from, to).completed.extend(ended);
    }

    /// A card is closed: what it was asked to do is done before, or fails.
    pub fn close(&mut self, card: usize) {
        for to in 0..self.cards.len() {
            while self.step(card, to, true) {}
        }
        self.cards[card].closed = true;
        self.cards[card].regions = None;
        self.cards[card].exposed.clear();
    }

    /// Carries out some of what there is to do, in any order among pairs.
    pub fn advance(&mut self) {
        let mut pairs: Vec<_> = self.pairs.keys().copied().collect();
        pairs.sort_unstable();
        for (from, to) in pairs {
            if self.is_broken(from, to) {
                self.pair(from, to).broken = true;
                self.flush(from, to);
            }
            for _ in 0..self.roll(5) {
                let answer = self.roll(8) == 0;
                self.step(from, to, answer);
            }
        }
    }

    /// The next thing that one card does for another. False: there is none. `answer`: reads are due.
    fn step(&mut self, from: usize, to: usize, answer: bool) -> bool {
        let loose = self.manner.loose_writes;
        let pair = self.pair(from, to);
        if pair.broken {
            return false;
        }
        if answer && let Some((token, request)) = pair.answering.pop_front() {
            self.carry_out(from, to, token, request);
            return true;
        }
        let Some((token, request)) = pair.queue.pop_front() else {
            return false;
        };
        if request.answers_later() || loose && matches!(request, Request::Write(..)) {
            pair.answering.push_back((token, request));
        } else {
            self.carry_out(from, to, token, request);
        }
        true
    }

    fn carry_out(&mut self, from: usize, to: usize, token: Option<Token>, request: Request) {
        let outcome = self.try_request(from, to, &request);
        let failed = outcome.is_err();
        let pair = self.pair(from, to);
        if let Some(token) = token {
            pair.completed.push_back((token, outcome));
        }
        match request {
            Request::Packet(header, body) => pair.arrived.push_back(Arrival::Packet(header, body)),
            Request::Write(_, _, Some(_)) if failed => pair.taken -= 1,
            Request::Write(ours, _, Some(data)) => {
                pair.arrived.push_back(Arrival::Written(ours.bytes().len(), data));
            }
            Request::Write(..) | Request::Read(..) | Request::Fetch(..) | Request::Amo(..) => {}
        }
    }

    fn try_request(&mut self, from: usize, to: usize, request: &Request) -> Outcome {
        let failing = self.manner.failing;
        if request.touches_memory() && self.roll(16) < failing {
            return Err(NotDone::Failed(Error::NoMemory));
        }
        if let Some(ours) = request.ours().filter(|_| self.manner.local_keys) {
            self.check_local(from, ours)?;
        }
        match request {
            Request::Packet(..) => {}
            Request::Write(ours, parts, _) => {
                let theirs = self.find(to, parts, Rights::WRITE)?;
                let mut bytes = &ours.bytes()[..];
                for part in theirs {
                    let (now, rest) = bytes.split_at(part.len());
                    part.write(0, now);
                    bytes = rest;
                }
            }
            Request::Read(into, parts) => {
                let mut bytes = Vec::new();
                for part in self.find(to, parts, Rights::READ)? {
                    let at = bytes.len();
                    bytes.resize(at + part.len(), 0);
                    part.read(0, &mut bytes[at..]);
                }
                into.write(0, &bytes);
            }
            Request::Fetch(into, id, at, len) => {
                let theirs = self.cards[to].exposed.get(id).copied();
                let theirs = theirs.ok_or(NotDone::Failed(Error::NoKey))?;
                let mut bytes = vec![0; *len];
                if theirs.read(*at, &mut bytes) < *len {
                    return Err(NotDone::Failed(Error::OutOfRange));
                }
                into.write(*at, &bytes);
            }
            Request::Amo(op, part, operand, compare, into) => {
                let theirs = self.find(to, &[*part], Rights::BOTH)?;
                let mut old = [0; 8];
                theirs[0].read(0, &mut old);
                into.write(0, &old);
                let old = u64::from_le_bytes(old);
                let new = match op.form() {
                    Form::Compare if old == *compare => *operand,
                    Form::Compare => old,
                    Form::Base | Form::Fetch => old.wrapping_add(*operand),
                };
                theirs[0].write(0, &new.to_le_bytes());
            }
        }
        Ok(())
    }

    fn find(&self, card: usize, parts: &[RemotePart], wanted: Rights) -> Result<Vec<UserIov>, NotDone> {
        let regions = self.cards[card].regions.as_ref();
        let find = |part: &RemotePart| {
            let region = regions.and_then(|regions| regions.get(&part.key)).ok_or(Error::NoKey)?;
            if !region.rights.allow(wanted) {
                return Err(Error::NoRights);
            }
            let at = part.addr.checked_sub(region.base).ok_or(Error::OutOfRange)? as usize;
            let size = region.memory.len();
            if at > size || part.len > size - at {
                return Err(Error::OutOfRange);
            }
            Ok(region.memory.part(at, part.len))
        };
        parts
            .iter()
            .map(find)
            .collect::<Result<_, _>>()
            .map_err(NotDone::Failed)
    }

    fn check_local(&self, card: usize, ours: &UserIov) -> Outcome {
        let local = &self.cards[card].local;
        let mut parts = ours.parts().iter().filter(|part| !part.is_empty());
        match parts.all(|part| local.knows(part)) {
            true => Ok(()),
            false => Err(NotDone::Failed(Error::NotRegistered)),
        }
    }
}
