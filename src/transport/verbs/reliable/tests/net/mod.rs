//! Stand-ins for devices that reach each other: queue pairs, a shared receive queue and a completion queue for each,
//! keys for memory, and connections as librdmacm makes them. What a real device would refuse, or answer by sending
//! again, is an error here, or fails the test.
//!
//! Nothing happens but in `advance`, which every poll of any device calls: some queue pairs, in any order, carry out
//! some of what was posted to them.

mod device;

use crate::sys::rdma::{Access, Done, DoneKind, EventKind, Failure, Opcode, Piece, Sizes, Work};
use crate::transport::verbs::seam::News;
use crate::util::regions::{Region, Rights};
use crate::util::user::{UserBuf, UserIov};
pub use device::NetDevice;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

pub const INLINE: usize = 64;

/// What tests ask of devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Of 16 registrations of an application's memory, how many fail.
    pub failing: u64,
    /// A device has no room for more receives than this; 0: any number.
    pub receives: usize,
    /// A device makes no queue pair whose requests are to carry more than it can, rather than one that carries less.
    pub refuses_inline: bool,
    /// Completion queues cannot be read.
    pub queues_fail: bool,
}

/// What a network has seen, for counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sends: usize,
    pub inline: usize,
    pub reads: usize,
    pub writes: usize,
    pub atomics: usize,
    pub completions: usize,
    pub registrations: usize,
}

#[derive(Default)]
struct Card {
    place: Option<SocketAddr>,
    closed: bool,
    requests: VecDeque<usize>,
    receives: VecDeque<(u64, Piece)>,
    done: VecDeque<Done>,
    /// How many there is room for.
    room: usize,
    news: Vec<u64>,
    troubles: VecDeque<EventKind>,
}

struct Posted {
    work: Work,
    pieces: Vec<Piece>,
    /// Of a request that carries them.
    bytes: Vec<u8>,
    /// Carried out before a read that was posted earlier.
    is_done: bool,
}

#[derive(Default)]
struct Pair {
    card: usize,
    /// The queue pair at the other end, once there is one.
    other: Option<usize>,
    to: Option<SocketAddr>,
    sizes: Option<Sizes>,
    /// For whom the request was, and what it said.
    data: Vec<u8>,
    connected: bool,
    broken: bool,
    gone: bool,
    posted: VecDeque<Posted>,
    news: VecDeque<News>,
    key: Option<u64>,
}

#[derive(Default)]
struct State {
    cards: Vec<Card>,
    pairs: Vec<Pair>,
    memory: HashMap<u32, (UserBuf, Access)>,
    /// What programs have registered, by card and key.
    regions: HashMap<(usize, u32), Region>,
    keys: u32,
    die: u64,
    manner: Manner,
    counts: Counts,
}

#[derive(Clone, Default)]
pub struct Net(Arc<Mutex<State>>);

impl Net {
    pub fn new(seed: u64, manner: Manner) -> Net {
        let net = Net::default();
        (net.state().die, net.state().manner) = (seed, manner);
        net
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn open(&self, place: &str) -> NetDevice {
        self.open_one(place)
    }

    pub fn open_one<const OPEN: bool, const ATOMICS: bool>(&self, place: &str) -> NetDevice<OPEN, ATOMICS> {
        let place: SocketAddr = place.parse().unwrap();
        let mut state = self.state();
        state.cards.push(Card {
            place: Some(place),
            ..Card::default()
        });
        let me = state.cards.len() - 1;
        NetDevice::new(self, me, place)
    }

    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    pub fn set_manner(&self, manner: Manner) {
        self.state().manner = manner;
    }

    /// Registrations that there are.
    pub fn registered(&self) -> usize {
        self.state().memory.len()
    }

    /// A device tells this by itself.
    pub fn trouble(&self, me: usize, kind: EventKind) {
        self.state().cards[me].troubles.push_back(kind);
    }

    /// Whether a packet lies in a device's queue of completions.
    pub fn has_packet(&self, me: usize) -> bool {
        let state = self.state();
        let mut done = state.cards[me].done.iter();
        done.any(|done| done.kind == DoneKind::Received)
    }

    /// Ends of so many sends, of a connection that is over, go before all else in that queue.
    pub fn tell_ends_first(&self, me: usize, count: usize) {
        let end = Done {
            id: 0,
            kind: DoneKind::Other,
            failure: None,
            len: 0,
            data: None,
            pair: u32::MAX,
        };
        let mut state = self.state();
        (0..count).for_each(|_| state.cards[me].done.push_front(end));
    }

    /// Whether somebody asks a device for a connection, which does not know yet.
    pub fn has_request(&self, me: usize) -> bool {
        !self.state().cards[me].requests.is_empty()
    }

    /// The next look of a device tells of no connection that there is news of.
    pub fn overlook_news(&self, me: usize) {
        self.state().cards[me].news.clear();
    }

    /// Connections of two places break.
    pub fn break_off(&self, a: SocketAddr, b: SocketAddr) {
        let mut state = self.state();
        for pair in 0..state.pairs.len() {
            let Pair { other, connected, .. } = state.pairs[pair];
            let Some(other) = other.filter(|_| connected) else {
                continue;
            };
            let ends = [pair, other].map(|pair| state.cards[state.pairs[pair].card].place);
            if ends == [Some(a), Some(b)] || ends == [Some(b), Some(a)] {
                state.disconnect(pair);
            }
        }
    }

    /// Whether nothing goes on by itself for a device.
    pub fn is_quiet(&self, me: usize) -> bool {
        let state = self.state();
        let pairs = state.pairs.iter().filter(|pair| !pair.gone);
        let quiet = |pair: &Pair| pair.posted.is_empty() && pair.news.is_empty();
        let card = &state.cards[me];
        let mine = |pair: &Pair| pair.card == me || pair.other.is_some_and(|other| state.pairs[other].card == me);
        card.done.is_empty() && card.requests.is_empty() && pairs.filter(|pair| mine(pair)).all(quiet)
    }
}

/// What an atomic leaves where this was.
fn after(opcode: Opcode, before: u64) -> u64 {
    match opcode {
        Opcode::FetchAdd(more) => before.wrapping_add(more),
        Opcode::CompareSwap { compare, swap } if before == compare => swap,
        _ => before,
    }
}

impl State {
    fn roll(&mut self, below: u64) -> u64 {
        self.die = self
            .die
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.die >> 33) % below.max(1)
    }

    fn tell(&mut self, pair: usize, kind: EventKind, data: &[u8]) {
        let Pair { news, card, key, .. } = &mut self.pairs[pair];
        let data = data.to_vec();
        news.push_back(News { kind, data });
        let card = &mut self.cards[*card];
        card.news.extend(*key);
    }

    fn complete(&mut self, pair: usize, done: Done) {
        self.counts.completions += 1;
        let card = self.pairs[pair].card;
        let card = &mut self.cards[card];
        card.done.push_back(done);
        assert!(
            card.closed || card.done.len() <= card.room,
            "the completion queue overflows"
        );
    }

    fn disconnect(&mut self, pair: usize) {
        self.flush(pair);
        let connected = core::mem::take(&mut self.pairs[pair].connected);
        if let Some(other) = self.pairs[pair].other.filter(|_| connected) {
            self.pairs[other].connected = false;
            self.tell(pair, EventKind::Disconnected, &[]);
            self.tell(other, EventKind::Disconnected, &[]);
        }
    }

    fn flush(&mut self, pair: usize) {
        self.pairs[pair].broken = true;
        for posted in core::mem::take(&mut self.pairs[pair].posted) {
            self.fail(pair, posted.work.id, Failure::Flushed);
        }
    }

    fn fail(&mut self, pair: usize, id: u64, failure: Failure) {
        let done = Done {
            id,
            kind: DoneKind::Other,
            failure: Some(failure),
            len: 0,
            data: None,
            pair: pair as u32,
        };
        self.complete(pair, done);
    }

    fn advance(&mut self) {
        for _ in 0..self.pairs.len() {
            let pair = self.roll(self.pairs.len() as u64) as usize;
            for _ in 0..self.roll(5) {
                self.step(pair);
            }
        }
    }

    fn step(&mut self, pair: usize) {
        if self.pairs[pair].broken {
            return;
        }
        if self.roll(2) == 0 {
            self.overtake(pair);
        }
        let Some(posted) = self.pairs[pair].posted.pop_front() else {
            return;
        };
        let work = &posted.work;
        let carried = if posted.is_done {
            Ok(())
        } else {
            self.carry_out(pair, &posted)
        };
        match carried {
            Ok(()) if work.signaled => {
                let kind = DoneKind::Other;
                let (id, pair_number) = (work.id, pair as u32);
                self.complete(
                    pair,
                    Done {
                        id,
                        kind,
                        failure: None,
                        len: 0,
                        data: None,
                        pair: pair_number,
                    },
                );
            }
            Ok(()) => {}
            Err(failure) => {
                self.pairs[pair].broken = true;
                self.fail(pair, work.id, failure);
                self.flush(pair);
            }
        }
    }

    /// What was posted behind a read or atomic is carried out before it, as devices may do, but for reads. What fails
    /// so does it in its turn.
    fn overtake(&mut self, pair: usize) {
        let reads = |posted: &Posted| !matches!(posted.work.opcode, Opcode::Send | Opcode::Write);
        let queue = &mut self.pairs[pair].posted;
        let may = |next: &Posted| !(next.work.fence || next.is_done || next.work.opcode == Opcode::Read);
        if !queue.front().is_some_and(reads) || !queue.get(1).is_some_and(may) {
            return;
        }
        let Some(mut next) = queue.remove(1) else { return };
        next.is_done = self.carry_out(pair, &next).is_ok();
        self.pairs[pair].posted.insert(1, next);
    }

    fn carry_out(&mut self, pair: usize, posted: &Posted) -> Result<(), Failure> {
        let Posted {
            work, pieces, bytes, ..
        } = posted;
        let other = self.pairs[pair].other.ok_or(Failure::NoAnswer)?;
        if self.pairs[other].broken || self.pairs[other].gone {
            return Err(Failure::NoAnswer);
        }
        let bytes = match work.opcode {
            Opcode::Read | Opcode::FetchAdd(_) | Opcode::CompareSwap { .. } => Vec::new(),
            _ if work.inline => bytes.clone(),
            _ => self.gather(pieces)?,
        };
        match work.opcode {
            Opcode::Send => {
                let card = self.pairs[other].card;
                let receive = self.cards[card].receives.pop_front();
                let (id, piece) = receive.expect("a receive for what was sent");
                self.scatter(&[piece], &bytes, Failure::TooLong)?;
                let done = Done {
                    id,
                    kind: DoneKind::Received,
                    failure: None,
                    len: bytes.len(),
                    data: None,
                    pair: other as u32,
                };
                self.complete(other, done);
            }
            Opcode::Write => {
                let memory = self.theirs(other, work.remote, bytes.len(), |rights| rights.write)?;
                memory.write(0, &bytes);
            }
            Opcode::Read => {
                let len = pieces.iter().map(|piece| piece.len as usize).sum();
                let memory = self.theirs(other, work.remote, len, |rights| rights.read)?;
                let mut bytes = vec![0; len];
                memory.read(0, &mut bytes);
                self.scatter(pieces, &bytes, Failure::NotRegistered)?;
            }
            Opcode::FetchAdd(_) | Opcode::CompareSwap { .. } => {
                assert_eq!(work.remote.0 % 8, 0, "a device answers nothing to that");
                let memory = self.theirs(other, work.remote, 8, |rights| rights.write)?;
                let mut before = [0; 8];
                memory.read(0, &mut before);
                self.scatter(pieces, &before, Failure::NotRegistered)?;
                memory.write(0, &after(work.opcode, u64::from_ne_bytes(before)).to_ne_bytes());
            }
        }
        Ok(())
    }

    /// Memory that the card of this queue pair lets others work on.
    fn theirs(
        &self,
        pair: usize,
        (addr, key): (u64, u32),
        len: usize,
        may: fn(&Rights) -> bool,
    ) -> Result<UserIov, Failure> {
        let (memory, rights, base) = match self.regions.get(&(self.pairs[pair].card, key)) {
            Some(region) => (region.memory, region.rights, region.base),
            None => {
                let (memory, access) = self.memory.get(&key).ok_or(Failure::NoAccess)?;
                let rights = Rights {
                    read: access.remote_read,
                    write: access.remote_write,
                };
                (UserIov::one(*memory), rights, memory.addr() as u64)
            }
        };
        let at = addr.checked_sub(base).ok_or(Failure::NoAccess)? as usize;
        if !may(&rights) || memory.len().checked_sub(at).is_none_or(|left| len > left) {
            return Err(Failure::NoAccess);
        }
        Ok(memory.part(at, len))
    }

    fn local(&self, piece: &Piece) -> Result<UserBuf, Failure> {
        let (memory, _) = self.memory.get(&piece.key).ok_or(Failure::NotRegistered)?;
        let at = (piece.addr as usize)
            .checked_sub(memory.addr())
            .ok_or(Failure::NotRegistered)?;
        let left = memory.len().checked_sub(at).ok_or(Failure::NotRegistered)?;
        match (piece.len as usize) <= left {
            true => Ok(memory.part(at, piece.len as usize)),
            false => Err(Failure::NotRegistered),
        }
    }

    fn gather(&self, pieces: &[Piece]) -> Result<Vec<u8>, Failure> {
        let mut all = Vec::new();
        for piece in pieces {
            let mut bytes = vec![0; piece.len as usize];
            self.local(piece)?.read(&mut bytes);
            all.extend(bytes);
        }
        Ok(all)
    }

    fn scatter(&self, pieces: &[Piece], bytes: &[u8], too_long: Failure) -> Result<(), Failure> {
        let mut left = bytes;
        for piece in pieces {
            let (now, rest) = left.split_at(left.len().min(piece.len as usize));
            self.local(piece)?.write(now);
            left = rest;
        }
        if left.is_empty() { Ok(()) } else { Err(too_long) }
    }

    fn reject(&mut self, pair: usize, data: &[u8]) {
        self.pairs[pair].gone = true;
        if let Some(asker) = self.pairs[pair].other.filter(|asker| !self.pairs[*asker].gone) {
            let mut data = data.to_vec();
            data.resize(148, 0);
            self.tell(asker, EventKind::Rejected, &data);
        }
    }
}
