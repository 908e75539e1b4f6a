//! The test bed: engines connected by lanes in memory, with a clock that the test moves and a seeded random generator.
//!
//! `World` holds the lanes, the generator and a log of events; `Node` is an engine with its application. Buffers are
//! overwritten as soon as their operation completes, so that a late access is noticed. `stories` and `rma` use it for
//! one feature at a time, `random` for generated runs that are judged by the log.
//!
//! - `bed`: nodes, and what tests ask of them; over these lanes, or over any transport (`bed::Connected`). `watch`: what
//!   a bed sees of packets, whatever carries them. `recall`: packets taken back from a lane.

mod bed;
mod recall;
mod watch;

pub use bed::*;
pub use watch::Watch;

use crate::engine::op::{
    Access, CompletedOp, Completion, CompletionLevel, Context, Error, MessageKind, Peek, Recv, Refused, RemotePart,
    Report, Send, Tell,
};
use crate::engine::port::*;
use crate::engine::wire::{Header, Packet};
use crate::engine::{Config, Engine};
use crate::util::regions::{Lease, Regions, Rights};
use crate::util::user::{Lent, UserIov};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// How the lanes behave.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub limits: Limits,
    /// Packets a lane holds.
    pub depth: usize,
    /// Ticks a packet may take.
    pub delay: u64,
    /// Of 16 pushes or gets, how many find no room.
    pub full: u64,
    /// Of 16 bodies, how many land later than they were given a place.
    pub late: u64,
    /// Of 16 pushes that may, how many are `Later`.
    pub keeps: u64,
    /// Of 16 packets that are longer than `Limits::guaranteed_body`, how many find no memory.
    pub poor: u64,
    /// Of 16 gets: how many are unsupported, how many fail, how many are done at once; the rest end later.
    pub gets: [u64; 3],
    /// Of 16 copies from or to a peer's region: how many are done at once, end later, fail later; the rest are refused.
    /// What fits one packet is done at once or refused.
    pub copies: [u64; 3],
    /// Of 16 recalls, how many come to something; of 16 packets then taken back, how many are done.
    pub recalls: [u64; 2],
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            limits: Limits {
                max_body: 100,
                eager: 300,
                can_get: true,
                guaranteed_body: 100,
                sync_placement: true,
            },
            depth: 1000,
            delay: 0,
            full: 0,
            late: 0,
            keeps: 0,
            poor: 0,
            gets: [0, 0, 16],
            copies: [0; 3],
            recalls: [0; 2],
        }
    }
}

/// An entry of the log.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A message's first packet was taken by `to`.
    Arrive {
        from: PeerId,
        to: PeerId,
        header: Header,
    },
    Post {
        recv: usize,
    },
    Cancel {
        node: PeerId,
        context: Context,
    },
    Peek {
        peek: usize,
    },
    CompletedOp(PeerId, Completion),
}

pub struct Sent {
    pub send: Send,
    pub from: PeerId,
    pub bytes: Vec<u8>,
    pub memory: Lent,
}

pub struct Received {
    pub recv: Recv,
    pub node: PeerId,
    pub memory: Lent,
    /// What each completion left in the buffer, and where.
    pub found: Vec<(Completion, Vec<u8>)>,
}

struct Flight {
    due: u64,
    header: Header,
    body: Vec<u8>,
    /// The sender has yet to read this memory.
    kept: Option<Kept>,
}

/// What a push that was `Later` still needs.
#[derive(Clone, Copy)]
struct Kept {
    body: Option<(UserIov, usize, usize)>,
    token: Token,
}

#[derive(Default)]
pub struct World {
    pub now: u64,
    pub manner: Manner,
    die: u64,
    lanes: HashMap<(PeerId, PeerId), VecDeque<Flight>>,
    /// By name: whose memory it is, and which.
    pub exposed: HashMap<u64, (PeerId, UserIov)>,
    exposures: u64,
    pub dead: Vec<PeerId>,
    /// Connections that broke.
    pub broken: Vec<(PeerId, PeerId)>,
    /// Who said something that no engine says to whom.
    pub nonsense: Vec<(PeerId, PeerId)>,
    pub log: Vec<Event>,
    pub sent: Vec<Sent>,
    pub received: Vec<Received>,
    pub peeks: Vec<(PeerId, Peek, Recv)>,
    /// By node: what it registered.
    regions: Vec<Arc<Regions>>,
    /// Ends of operations on memory.
    pub done: Vec<(PeerId, Completion)>,
    /// By node: memory to be looked at whenever it receives a message, and what was seen.
    pub watched: Vec<Lent>,
    pub shots: Vec<(PeerId, Completion, Vec<u8>)>,
    /// Whether receives are overwritten when they complete.
    pub canaries: bool,
    /// Local memory of operations on remote memory, to be overwritten; and what they left there.
    pub locals: HashMap<Context, Lent>,
    pub results: HashMap<Context, Vec<u8>>,
    /// Regions that were closed, and overwritten.
    pub closed: Vec<Lent>,
    /// What was seen there when the first packet of a message was offered to its receiver.
    pub offered: Vec<(Header, Vec<u8>)>,
    /// By node: polls, of which its peers see some.
    polls: HashMap<PeerId, u64>,
    /// Operations that were taken back and done.
    pub recalled: usize,
    /// Accesses that the engines refused.
    pub refused: Vec<(PeerId, RemotePart, Error)>,
    /// Pushes to the dead.
    pub knocks: usize,
    /// Replaces `Header::code` of the atomics that are pushed.
    pub forged_code: Option<u16>,
    /// Placements that were cut, and pushes that ended later.
    pub cuts: usize,
    pub sent_later: usize,
    /// Packets pushed, by kind.
    pub packets: HashMap<u8, usize>,
}

impl World {
    /// A number below `below`.
    pub fn roll(&mut self, below: u64) -> u64 {
        self.die = self
            .die
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.die >> 33) % below.max(1)
    }

    pub fn count(&self, packet: Packet) -> usize {
        self.packets.get(&(packet as u8)).copied().unwrap_or(0)
    }

    pub fn put(&mut self, from: PeerId, to: PeerId, header: Header, body: &[u8]) {
        self.put_later(from, to, header, body, None);
    }

    fn put_later(&mut self, from: PeerId, to: PeerId, header: Header, body: &[u8], kept: Option<Kept>) {
        let due = self.now + self.roll(self.manner.delay + 1);
        let lane = self.lanes.entry((from, to)).or_default();
        let due = lane.back().map_or(due, |last| last.due.max(due));
        let body = body.to_vec();
        lane.push_back(Flight {
            due,
            header,
            body,
            kept,
        });
    }

    fn quiet(&self) -> bool {
        self.lanes.values().all(VecDeque::is_empty)
    }
}

/// A body on the way to its place, or a get or copy in flight.
enum Moving {
    Into(UserIov, usize, Vec<u8>),
    Leased(Lease, Vec<u8>),
    Keep(Vec<u8>),
    Get(UserIov, UserIov, usize, usize),
    /// A copy of so many bytes from or to a peer's region, which may be closed meanwhile.
    Copy(Lease, UserIov, Access, usize),
}

/// One end of all lanes.
pub struct Wire {
    world: Rc<RefCell<World>>,
    me: PeerId,
    peers: PeerId,
    moving: Vec<(PeerId, Token, Moving)>,
    /// Pushes that have ended and are to be told.
    owed: Vec<(PeerId, Token)>,
    told: Vec<PeerId>,
    /// Nothing was pushed to these since their lanes were recalled: copies may overtake what stayed there.
    passed: Vec<PeerId>,
}

impl Transport for Wire {
    const PUSHES_LATER: bool = true;

    fn limits(&self) -> Limits {
        let manner = self.world.borrow().manner;
        let at_once = manner.late == 0;
        Limits {
            sync_placement: at_once && manner.limits.sync_placement,
            ..manner.limits
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        Some(PeerId::from_le_bytes(address.try_into().ok()?))
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>, notice: Option<Notice>) -> Push {
        let mut world = self.world.borrow_mut();
        if to >= self.peers {
            return Push::Unreachable;
        }
        if world.dead.contains(&to) {
            world.knocks += 1;
            return Push::Gone;
        }
        let (depth, full) = (world.manner.depth, world.manner.full);
        if world.lanes.get(&(self.me, to)).is_some_and(|lane| lane.len() >= depth) || world.roll(16) < full {
            return Push::Full;
        }
        assert!(body.len() <= world.manner.limits.max_body);
        // An atomic must be one packet.
        let whole = matches!(
            header.packet,
            Packet::Atomic | Packet::FetchAtomic | Packet::CompareAtomic
        );
        let (guaranteed, poor) = (world.manner.limits.guaranteed_body, world.manner.poor);
        if body.len() > guaranteed && !whole && world.roll(16) < poor {
            return Push::TooLong;
        }
        let keeps = world.manner.keeps;
        let kept = notice
            .filter(|_| keeps > 0 && world.roll(16) < keeps)
            .map(|notice| Kept {
                body: match body {
                    Body::User { iov, at, len } => Some((*iov, at, len)),
                    Body::Empty | Body::Bytes(_) => None,
                },
                token: notice.token,
            });
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, len } => assert_eq!(iov.read(at, &mut bytes), len),
        }
        let mut header = Header::decode(&header.encode()).expect("what was encoded can be decoded");
        if let Some(code) = world.forged_code.filter(|_| whole) {
            header.code = code;
        }
        *world.packets.entry(header.packet as u8).or_default() += 1;
        self.passed.retain(|peer| *peer != to);
        world.put_later(self.me, to, header, &bytes, kept);
        if kept.is_some() { Push::Later } else { Push::Done }
    }

    fn abandon(&mut self, peer: PeerId) -> bool {
        self.moving.retain(|(from, ..)| *from != peer);
        self.owed.retain(|(to, _)| *to != peer);
        let mut world = self.world.borrow_mut();
        let lane = world.lanes.get_mut(&(self.me, peer)).into_iter().flatten();
        lane.for_each(|flight| flight.kept = None);
        true
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        *self.world.borrow_mut().polls.entry(self.me).or_default() += 1;
        self.land(sink);
        self.send_kept(sink);
        let peers = self.peers;
        let first = self.world.borrow_mut().roll(u64::from(peers)) as PeerId;
        let mut left = budget;
        for from in (0..peers).map(|n| (n + first) % peers) {
            while left > 0 && self.take(from, sink) {
                left -= 1;
            }
            self.mourn(from, sink);
        }
        budget - left
    }

    fn expose(&mut self, _: PeerId, iov: &UserIov, _: ExposedName) -> Option<Exposed> {
        let mut world = self.world.borrow_mut();
        let unwilling = world.manner.gets[0];
        if world.roll(32) < unwilling {
            return None;
        }
        world.exposures += 1;
        let id = world.exposures;
        world.exposed.insert(id, (self.me, *iov));
        Some(Exposed {
            remote: Remote::new(&id.to_le_bytes())?,
            id: Some(id),
        })
    }

    fn unexpose(&mut self, _: PeerId, id: u64) {
        let (owner, _) = self.world.borrow_mut().exposed.remove(&id).expect("exposed, and once");
        assert_eq!(owner, self.me);
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
        let mut world = self.world.borrow_mut();
        let [unsupported, failing, at_once] = world.manner.gets;
        let (full, roll) = (world.manner.full, world.roll(16));
        if world.dead.contains(&from) {
            return Get::Gone;
        }
        if world.roll(16) < full {
            return Get::Full;
        }
        let id = u64::from_le_bytes(remote.bytes().try_into().unwrap());
        let (owner, theirs) = world.exposed[&id];
        assert_eq!(owner, from);
        if roll < unsupported {
            return Get::Unsupported;
        }
        // A failing get may have copied nothing.
        let len = if roll < unsupported + failing { 0 } else { len };
        let get = Moving::Get(theirs, *local, at, len);
        if roll >= unsupported + failing && roll < unsupported + failing + at_once {
            drop(world);
            land(get);
            return Get::Done;
        }
        // Like a network card: a get that would end later cannot be done without a token.
        let Some(token) = token else {
            return Get::Unsupported;
        };
        drop(world);
        self.moving.push((from, token, get));
        Get::Later
    }

    fn copy(&mut self, to: PeerId, copy: &CopyOp<'_>, token: Token) -> Get {
        let (&CopyOp { access, data: None, .. }, [part], Local::User(local)) = (copy, copy.parts, copy.local) else {
            return Get::Unsupported;
        };
        let mut world = self.world.borrow_mut();
        let [at_once, later, failing] = world.manner.copies;
        let roll = world.roll(16);
        let empty = world.lanes.get(&(self.me, to)).is_none_or(VecDeque::is_empty);
        let seen = world.manner.late == 0 && (empty || self.passed.contains(&to));
        let short = part.len <= world.manner.limits.eager.min(world.manner.limits.max_body);
        let rights = match access {
            Access::Read => Rights::READ,
            Access::Write => Rights::WRITE,
        };
        let found = world.regions[to as usize].find(0, part.key, part.addr, part.len, rights);
        let Some(theirs) = found
            .ok()
            .filter(|found| seen && !found.watched && !world.dead.contains(&to))
        else {
            return Get::Unsupported;
        };
        drop(world);
        let (from, into) = match access {
            Access::Read => (theirs.memory, *local),
            Access::Write => (*local, theirs.memory),
        };
        let at_once = if short { at_once + later } else { at_once };
        if roll < at_once {
            land(Moving::Get(from, into, 0, part.len));
            return Get::Done;
        }
        if short || roll >= at_once + later + failing {
            return Get::Unsupported;
        }
        let len = if roll < at_once + later { part.len } else { 0 };
        let regions = self.world.borrow().regions[to as usize].clone();
        let Ok((lease, _)) = regions.lease(0, part.key, part.addr, part.len, rights) else {
            return Get::Unsupported;
        };
        self.moving.push((to, token, Moving::Copy(lease, *local, access, len)));
        Get::Later
    }

    fn poll_mark(&self, to: PeerId) -> u64 {
        let world = self.world.borrow();
        world.polls.get(&to).map_or(0, |polls| polls / 4)
    }

    fn recall(&mut self, to: PeerId, judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        self.take_back(to, judge)
    }
}

/// Moves the bytes and tells the engine.
fn tell<S: Sink>(sink: &mut S, token: Token, moving: Moving) {
    let (get, leased) = (
        matches!(moving, Moving::Get(..) | Moving::Copy(..)),
        matches!(moving, Moving::Leased(..)),
    );
    match (get, land(moving)) {
        (true, (true, _)) => sink.finished(token, Ok(())),
        (true, (false, _)) => sink.finished(token, Err(NotDone::AskPeer)),
        (false, (false, _)) if leased => sink.cut(token),
        (false, (_, buffer)) => sink.placed(token, buffer),
    }
}

/// Moves the bytes; says whether it worked, and gives back a buffer that was lent.
fn land(moving: Moving) -> (bool, Option<Vec<u8>>) {
    match moving {
        Moving::Into(iov, at, bytes) => (iov.write(at, &bytes) <= bytes.len(), None),
        Moving::Leased(lease, bytes) => (lease.write(0, &bytes), None),
        Moving::Keep(bytes) => (true, Some(bytes)),
        Moving::Get(from, into, at, len) => {
            let mut bytes = vec![0; len];
            assert_eq!(from.read(at, &mut bytes), len);
            assert_eq!(into.write(at, &bytes), len);
            (len > 0, None)
        }
        Moving::Copy(lease, local, access, len) => {
            let copied = lease.with(|theirs| match access {
                Access::Read => theirs.part(0, len).copy_to(&local),
                Access::Write => local.part(0, len).copy_to(theirs),
            });
            (copied.is_some_and(|copied| copied > 0), None)
        }
    }
}

impl Wire {
    /// Takes the next packet from a peer, if one is due and wanted.
    fn take<S: Sink>(&mut self, from: PeerId, sink: &mut S) -> bool {
        let mut world = self.world.borrow_mut();
        let (now, late) = (world.now, world.manner.late);
        let Some(lane) = world.lanes.get_mut(&(from, self.me)) else {
            return false;
        };
        let Some(flight) = due(lane, now) else {
            return false;
        };
        let later = world.roll(16) < late;
        let (to, header) = (self.me, flight.header);
        let at_once = !later && world.roll(2) == 0;
        drop(world);
        if at_once && sink.take(from, &header, &flight.body) {
            return true;
        }
        let (token, moving) = match sink.place(from, &header, flight.body.len()) {
            Placement::Into { iov, at, token } => (token, Moving::Into(iov, at, flight.body)),
            Placement::Leased { lease, token } => {
                assert_eq!(lease.len(), flight.body.len());
                (token, Moving::Leased(lease, flight.body))
            }
            Placement::Keep { buffer, token } => {
                assert_eq!(buffer.len(), flight.body.len());
                (token, Moving::Keep(flight.body))
            }
            Placement::Drop => return true,
            Placement::Refuse => {
                // An engine refuses an honest peer's packet only while an earlier one is still landing.
                let lands = self.moving.iter().any(|(of, ..)| *of == from);
                assert!(lands, "an honest peer is refused");
                let mut world = self.world.borrow_mut();
                let lane = world.lanes.entry((from, to)).or_default();
                lane.push_front(Flight { due: now, ..flight });
                return false;
            }
        };
        if later {
            self.moving.push((from, token, moving));
        } else {
            tell(sink, token, moving);
        }
        true
    }

    /// Reads some of the memory that pushes have kept, and says so.
    fn send_kept<S: Sink>(&mut self, sink: &mut S) {
        let (mut sent, mut still) = (Vec::new(), Vec::new());
        let mut world = self.world.borrow_mut();
        for to in 0..self.peers {
            if world.dead.contains(&to) || world.roll(2) == 0 {
                continue;
            }
            let lane = world.lanes.get_mut(&(self.me, to)).into_iter().flatten();
            for flight in lane.take(2) {
                let Some(kept) = flight.kept.take() else { continue };
                if let Some((iov, at, len)) = kept.body {
                    assert_eq!((iov.read(at, &mut flight.body), flight.body.len()), (len, len));
                }
                self.owed.push((to, kept.token));
            }
        }
        // The packet may be there, and answered, before it is told.
        for (to, token) in self.owed.drain(..) {
            if world.roll(2) == 0 {
                sent.push(token);
            } else {
                still.push((to, token));
            }
        }
        drop(world);
        self.owed = still;
        sent.into_iter().for_each(|token| sink.sent(token, Ok(())));
    }

    /// Lets some of what is moving arrive, in any order.
    fn land<S: Sink>(&mut self, sink: &mut S) {
        for _ in 0..self.moving.len() {
            let roll = self.world.borrow_mut().roll(2 * self.moving.len() as u64) as usize;
            if roll < self.moving.len() {
                let (_, token, moving) = self.moving.swap_remove(roll);
                tell(sink, token, moving);
            }
        }
    }

    /// Reports a dead peer, once all that it sent was delivered.
    fn mourn<S: Sink>(&mut self, peer: PeerId, sink: &mut S) {
        let world = self.world.borrow();
        let lane = world.lanes.get(&(peer, self.me));
        let over = world.dead.contains(&peer) && lane.is_none_or(VecDeque::is_empty);
        drop(world);
        if over && !self.told.contains(&peer) {
            self.told.push(peer);
            self.moving.retain(|(from, ..)| *from != peer);
            self.owed.retain(|(to, _)| *to != peer);
            sink.gone(peer, Loss::Died);
        }
    }
}

fn due(lane: &mut VecDeque<Flight>, now: u64) -> Option<Flight> {
    let next = lane.front()?;
    if next.due > now || next.kept.is_some() {
        return None;
    }
    lane.pop_front()
}
