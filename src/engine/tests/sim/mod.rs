//! The test bed: engines connected by lanes in memory, with a clock that the test moves and a seeded random generator.
//!
//! `World` holds the lanes, the generator and a log of events; `Node` is an engine with its application. Buffers are
//! overwritten as soon as their operation completes, so that a late access is noticed. `stories` and `rma` use it for
//! one feature at a time, `random` for generated runs that are judged by the log.
//!
//! - `bed`: nodes, and what tests ask of them; over these lanes, or over any transport (`bed::Connected`). `watch`:
//!   what a bed sees of packets, whatever carries them. `recall`: packets taken back from a lane.

mod bed;
mod recall;
mod watch;
mod wire;

pub use bed::*;
pub use watch::Watch;
pub use wire::Wire;
use wire::{Moving, land};

use crate::engine::op::{
    Access, CompletedOp, Completion, CompletionLevel, Context, Error, MessageKind, OperationOf, Peek, Recv, Refused,
    RemotePart, Report, Send, Tell,
};
use crate::engine::port::*;
use crate::engine::wire::{Header, Packet};
use crate::engine::{Config, Engine};
use crate::util::regions::{Lease, Regions, Rights};
use crate::util::user::{Lent, UserIov};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
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
    /// No push finds the memory for a lane.
    pub no_lanes: bool,
    /// Of 16 questions of how a peer gets a message sooner, how many are answered: in packets.
    pub sooner_sent: u64,
    /// Of 16 questions whether a peer is held up, how many are answered: yes.
    pub held_up: u64,
    /// Of 16 waits for credit, in how many the credit had been there for long.
    pub came_late: u64,
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
                eager_if_fetched: 300,
                can_get: true,
                gets_at_once: 0,
                guaranteed_body: 100,
                sync_placement: true,
                max_write: 0,
                max_in_writes: 0,
                max_short_read: usize::MAX,
            },
            depth: 1000,
            delay: 0,
            full: 0,
            late: 0,
            keeps: 0,
            poor: 0,
            no_lanes: false,
            sooner_sent: 0,
            held_up: 0,
            came_late: 0,
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
    /// The same for gets that are done at once, of whose end nobody is told.
    pub lent: HashMap<u64, (PeerId, UserIov)>,
    exposures: u64,
    /// Gets that had no token.
    pub gets_alone: usize,
    /// What `Transport::is_sooner_sent` was told.
    pub around: Vec<Around>,
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
    /// Looks at whether others poll, and how many there are while the kernel copies one operation: 0 is one.
    looks: u64,
    pub looks_per_copy: u64,
    /// Packets of operations that were taken back from a lane, and done.
    pub recalled: usize,
    /// Sends that their application has taken back.
    pub canceled: HashSet<usize>,
    /// Accesses that the engines refused.
    pub refused: Vec<(PeerId, RemotePart, Error)>,
    /// The same of writes that were reported when they were sent, at their initiator.
    pub refused_unheard: Vec<(PeerId, RemotePart, Error)>,
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

    /// What is under way from one to another: headers, and lengths of bodies.
    pub fn under_way(&self, from: PeerId, to: PeerId) -> impl Iterator<Item = (Header, usize)> {
        let lane = self.lanes.get(&(from, to)).into_iter().flatten();
        lane.map(|flight| (flight.header, flight.body.len()))
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
