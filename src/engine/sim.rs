//! The test bed: engines joined by lanes in memory, with a clock that the test moves and a die that it seeded.
//!
//! `World` holds the lanes, the die and a log of what happened in which order; `Node` is an engine and its
//! application's side. Buffers are scribbled over as soon as the engine says it is done with them, so that a late
//! look or write is seen. `script` uses it for plain stories, `chance` for random ones that it judges by the log.

use super::op::{Completion, Context, Ended, Error, Kind, Level, Look, Recv, Refused, RemotePart, Report, Send, Tell};
use super::port::*;
use super::wire::{Header, Packet};
use super::{Config, Engine};
use crate::util::regions::Regions;
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
    /// Of 16 gets: how many are unsupported, how many fail, how many are done at once; the rest end later.
    pub gets: [u64; 3],
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            limits: Limits {
                max_body: 100,
                piece: 100,
                eager: 300,
                can_get: true,
                at_once: true,
            },
            depth: 1000,
            delay: 0,
            full: 0,
            late: 0,
            gets: [0, 0, 16],
        }
    }
}

/// What happened, for whoever judges.
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
    Look {
        look: usize,
    },
    Ended(PeerId, Completion),
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
}

#[derive(Default)]
pub struct World {
    pub now: u64,
    pub manner: Manner,
    die: u64,
    lanes: HashMap<(PeerId, PeerId), VecDeque<Flight>>,
    exposed: Vec<UserIov>,
    pub dead: Vec<PeerId>,
    pub log: Vec<Event>,
    pub sent: Vec<Sent>,
    pub received: Vec<Received>,
    pub looks: Vec<(PeerId, Look, Recv)>,
    /// Ends of operations on memory.
    pub done: Vec<(PeerId, Completion)>,
    /// By node: memory to be looked at whenever it receives a message, and what was seen.
    pub watched: Vec<Lent>,
    pub shots: Vec<(PeerId, Completion, Vec<u8>)>,
    /// Accesses that the engines refused.
    pub refused: Vec<(PeerId, RemotePart, Error)>,
    /// Pushes to the dead.
    pub knocks: usize,
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
        let due = self.now + self.roll(self.manner.delay + 1);
        let lane = self.lanes.entry((from, to)).or_default();
        let due = lane.back().map_or(due, |last| last.due.max(due));
        let body = body.to_vec();
        lane.push_back(Flight { due, header, body });
    }

    fn quiet(&self) -> bool {
        self.lanes.values().all(VecDeque::is_empty)
    }
}

/// A body that has its place but is not there yet; or a get.
enum Moving {
    Into(UserIov, usize, Vec<u8>),
    Keep(Vec<u8>),
    Get(UserIov, UserIov, usize, usize),
}

/// One end of all lanes.
pub struct Wire {
    world: Rc<RefCell<World>>,
    me: PeerId,
    peers: PeerId,
    moving: Vec<(PeerId, Token, Moving)>,
    told: Vec<PeerId>,
}

impl Transport for Wire {
    fn limits(&self) -> Limits {
        let manner = self.world.borrow().manner;
        let at_once = manner.late == 0;
        Limits {
            at_once: at_once && manner.limits.at_once,
            ..manner.limits
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        Some(PeerId::from_le_bytes(address.try_into().ok()?))
    }

    fn push(&mut self, to: PeerId, header: &Header, body: Body<'_>) -> Push {
        let mut world = self.world.borrow_mut();
        if to >= self.peers {
            return Push::Unreachable;
        }
        if world.dead.contains(&to) {
            // As promised, nothing more comes from it.
            world.knocks += 1;
            world.lanes.remove(&(to, self.me));
            self.moving.retain(|(from, ..)| *from != to);
            return Push::Gone;
        }
        let (depth, full) = (world.manner.depth, world.manner.full);
        if world.lanes.get(&(self.me, to)).is_some_and(|lane| lane.len() >= depth) || world.roll(16) < full {
            return Push::Full;
        }
        assert!(body.len() <= world.manner.limits.max_body);
        let mut bytes = vec![0; body.len()];
        match body {
            Body::Empty => {}
            Body::Bytes(of) => bytes.copy_from_slice(of),
            Body::User { iov, at, len } => assert_eq!(iov.read(at, &mut bytes), len),
        }
        let header = Header::decode(&header.encode()).expect("what was encoded can be decoded");
        *world.packets.entry(header.packet as u8).or_default() += 1;
        world.put(self.me, to, header, &bytes);
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        self.land(sink);
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

    fn expose(&self, _: PeerId, iov: &UserIov) -> Remote {
        let mut world = self.world.borrow_mut();
        world.exposed.push(*iov);
        let mut bytes = [0; Remote::SIZE];
        bytes[..8].copy_from_slice(&world.exposed.len().to_le_bytes());
        Remote { bytes }
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
            world.lanes.remove(&(from, self.me));
            self.moving.retain(|(of, ..)| *of != from);
            return Get::Gone;
        }
        if world.roll(16) < full {
            return Get::Full;
        }
        let number = usize::from_le_bytes(remote.bytes[..8].try_into().unwrap());
        let theirs = world.exposed[number - 1];
        if roll < unsupported {
            return Get::Unsupported;
        }
        // A failing get copies nothing, as it may in life.
        let len = if roll < unsupported + failing { 0 } else { len };
        let get = Moving::Get(theirs, *local, at, len);
        if roll >= unsupported + failing && roll < unsupported + failing + at_once {
            drop(world);
            land(get);
            return Get::Done;
        }
        // Like a card: what is later for one is too late for the other.
        let Some(token) = token else {
            return Get::Unsupported;
        };
        drop(world);
        self.moving.push((from, token, get));
        Get::Later
    }
}

/// Moves the bytes; says whether it worked, and gives back a buffer that was lent.
fn land(moving: Moving) -> (bool, Option<Vec<u8>>) {
    match moving {
        Moving::Into(iov, at, bytes) => (iov.write(at, &bytes) <= bytes.len(), None),
        Moving::Keep(bytes) => (true, Some(bytes)),
        Moving::Get(theirs, local, at, len) => {
            let mut bytes = vec![0; len];
            assert_eq!(theirs.read(at, &mut bytes), len);
            assert_eq!(local.write(at, &bytes), len);
            (len > 0, None)
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
        let begins = matches!(flight.header.packet, Packet::Eager | Packet::First | Packet::Rendezvous);
        let (to, header) = (self.me, flight.header);
        if begins {
            world.log.push(Event::Arrive { from, to, header });
        }
        let at_once = !later && world.roll(2) == 0;
        drop(world);
        if at_once && sink.take(from, &header, &flight.body) {
            return true;
        }
        let (token, moving) = match sink.place(from, &header, flight.body.len()) {
            Place::Into { iov, at, token } => (token, Moving::Into(iov, at, flight.body)),
            Place::Keep { buffer, token } => {
                assert_eq!(buffer.len(), flight.body.len());
                (token, Moving::Keep(flight.body))
            }
            Place::Drop => return true,
            Place::Refuse => {
                // Only while something before it is still landing: the engine takes what honest peers send.
                let lands = self.moving.iter().any(|(of, ..)| *of == from);
                assert!(lands, "an honest peer is refused");
                let mut world = self.world.borrow_mut();
                if begins {
                    world.log.pop();
                }
                let (due, body) = (now, flight.body);
                let lane = world.lanes.entry((from, to)).or_default();
                lane.push_front(Flight { due, header, body });
                return false;
            }
        };
        if later {
            self.moving.push((from, token, moving));
        } else {
            let (_, buffer) = land(moving);
            sink.placed(token, buffer);
        }
        true
    }

    /// Lets some of what is moving arrive, in any order.
    fn land<S: Sink>(&mut self, sink: &mut S) {
        for _ in 0..self.moving.len() {
            let roll = self.world.borrow_mut().roll(2 * self.moving.len() as u64) as usize;
            if roll < self.moving.len() {
                let (_, token, moving) = self.moving.swap_remove(roll);
                let get = matches!(moving, Moving::Get(..));
                let (ok, buffer) = land(moving);
                if get {
                    sink.finished(token, ok);
                } else {
                    sink.placed(token, buffer);
                }
            }
        }
    }

    /// Tells of a dead peer, once all that it sent is here.
    fn mourn<S: Sink>(&mut self, peer: PeerId, sink: &mut S) {
        let world = self.world.borrow();
        let lane = world.lanes.get(&(peer, self.me));
        let over = world.dead.contains(&peer) && lane.is_none_or(VecDeque::is_empty);
        drop(world);
        if over && !self.told.contains(&peer) {
            self.told.push(peer);
            self.moving.retain(|(from, ..)| *from != peer);
            sink.gone(peer);
        }
    }
}

/// The application's side of a node: notes every end, and plays with the memory that it was given back.
pub(super) struct Teller {
    world: Rc<RefCell<World>>,
    node: PeerId,
}

impl Report for Teller {
    fn report(&mut self, completion: Completion) {
        let mut world = self.world.borrow_mut();
        world.log.push(Event::Ended(self.node, completion));
        let watched = world.watched.get(self.node as usize);
        if let Some(memory) = watched.filter(|_| completion.ended == Ended::Recv) {
            let seen = memory.bytes();
            world.shots.push((self.node, completion, seen));
        }
        match completion.ended {
            Ended::Send => scribble(&world.sent[completion.context].memory),
            Ended::Recv if completion.context < LOOK => {
                let received = &mut world.received[completion.context];
                let iov = received.memory.iov();
                let at = (0..=iov.len()).find(|at| completion.buf != 0 && iov.address(*at) == completion.buf);
                let mut bytes = vec![0; completion.len];
                let whole = iov.read(at.unwrap_or(0), &mut bytes) == completion.len;
                assert!(whole || completion.peeked, "more bytes than the buffer has");
                received.found.push((completion, bytes));
            }
            Ended::Recv | Ended::Target { .. } => {}
            // As for sends: nobody looks at operands any more.
            Ended::Rma(_) | Ended::Atomic(_) => world.done.push((self.node, completion)),
        }
    }

    fn refused(&mut self, _: PeerId, part: &RemotePart, error: Error) {
        self.world.borrow_mut().refused.push((self.node, *part, error));
    }
}

pub(super) fn scribble(memory: &Lent) {
    memory.set(&vec![0xee; memory.iov().len()]);
}

/// Contexts of looks start here, so that they are nobody's receive.
pub const LOOK: usize = 1 << 32;

pub struct Node {
    pub engine: Engine<Wire>,
    pub(super) teller: Teller,
    pub regions: Arc<Regions>,
}

/// All nodes and what is between them.
pub struct Bed {
    pub world: Rc<RefCell<World>>,
    pub nodes: Vec<Node>,
}

/// What `Bed::send` sends, in short.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    pub from: PeerId,
    pub to: PeerId,
    pub kind: Kind,
    pub tag: u64,
    pub len: usize,
    pub data: Option<u64>,
    pub inject: bool,
    pub level: Level,
    pub fence: bool,
}

pub fn letter(from: PeerId, to: PeerId, tag: u64, len: usize) -> Letter {
    Letter {
        from,
        to,
        kind: Kind::Tagged,
        tag,
        len,
        data: None,
        inject: false,
        level: Level::Transmit,
        fence: false,
    }
}

/// Byte `at` of send number `number`.
fn byte(number: usize, at: usize) -> u8 {
    let mixed =
        (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32) as u8
}

impl Bed {
    pub fn new(nodes: PeerId, seed: u64, manner: Manner, config: Config) -> Bed {
        let world = Rc::new(RefCell::new(World {
            die: seed,
            manner,
            ..World::default()
        }));
        let node = |me| Node {
            engine: Engine::with(
                Wire {
                    world: world.clone(),
                    me,
                    peers: nodes,
                    moving: Vec::new(),
                    told: Vec::new(),
                },
                config,
            ),
            teller: Teller {
                world: world.clone(),
                node: me,
            },
            regions: Arc::new(Regions::new(false, false)),
        };
        let mut nodes: Vec<Node> = (0..nodes).map(node).collect();
        for node in &mut nodes {
            node.engine.open(node.regions.clone(), 0, false);
        }
        Bed { world, nodes }
    }

    pub fn node(&mut self, node: PeerId) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    pub fn send(&mut self, letter: Letter) -> Result<usize, Refused> {
        let number = self.world.borrow().sent.len();
        let bytes: Vec<u8> = (0..letter.len).map(|at| byte(number, at)).collect();
        let memory = Lent::new(&[letter.len / 3, letter.len - letter.len / 3], 0);
        memory.set(&bytes);
        let send = Send {
            kind: letter.kind,
            to: letter.to,
            tag: letter.tag,
            data: letter.data,
            body: memory.iov(),
            inject: letter.inject,
            level: letter.level,
            fence: letter.fence,
            context: number,
            tell: Tell::Queue,
        };
        let from = letter.from;
        self.world.borrow_mut().sent.push(Sent {
            send,
            from,
            bytes,
            memory,
        });
        let Node { engine, teller, .. } = self.node(from);
        let taken = engine.send(&send, teller);
        if taken.is_err() {
            self.world.borrow_mut().sent.pop();
        } else if letter.inject {
            scribble(&memory);
        }
        taken.map(|()| number)
    }

    /// `recv`'s body and context are made here: of these pieces, and the number that is returned.
    pub fn recv(&mut self, node: PeerId, cuts: &[usize], recv: Recv) -> usize {
        let memory = Lent::new(cuts, 0);
        let recv = self.note(node, memory, recv);
        let number = recv.context;
        self.world.borrow_mut().log.push(Event::Post { recv: number });
        let Node { engine, teller, .. } = self.node(node);
        engine.recv(&recv, teller).expect("receives are never refused");
        number
    }

    fn note(&mut self, node: PeerId, memory: Lent, recv: Recv) -> Recv {
        let mut world = self.world.borrow_mut();
        let recv = Recv {
            body: memory.iov(),
            context: world.received.len(),
            ..recv
        };
        world.received.push(Received {
            recv,
            node,
            memory,
            found: Vec::new(),
        });
        recv
    }

    pub fn look(&mut self, node: PeerId, look: Look, recv: Recv) -> Result<(), Refused> {
        let mut world = self.world.borrow_mut();
        let number = world.looks.len();
        world.looks.push((node, look, recv));
        // Before it, since what comes meanwhile is for the next look.
        let place = world.log.len();
        world.log.push(Event::Look { look: number });
        drop(world);
        let Node { engine, teller, .. } = self.node(node);
        let result = engine.look(look, &recv, teller);
        if result.is_err() {
            self.world.borrow_mut().log[place] = Event::Look { look: usize::MAX };
        }
        result
    }

    /// FI_CLAIM with a buffer: the receive gets the context of the claim.
    pub fn take(&mut self, node: PeerId, len: usize, recv: Recv) -> Lent {
        let memory = Lent::new(&[len], 0);
        let body = memory.iov();
        self.look(node, Look::Take, Recv { body, ..recv })
            .expect("it was claimed");
        memory
    }

    pub fn cancel(&mut self, node: PeerId, context: Context) -> bool {
        self.world.borrow_mut().log.push(Event::Cancel { node, context });
        let Node { engine, teller, .. } = self.node(node);
        engine.cancel(context, teller)
    }

    pub fn progress(&mut self, node: PeerId) -> usize {
        if self.world.borrow().dead.contains(&node) {
            return 0;
        }
        let Node { engine, teller, .. } = self.node(node);
        engine.progress(teller)
    }

    /// Time passes until nothing moves any more. Panics if that never comes.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            self.world.borrow_mut().now += 1;
            let came: usize = (0..self.nodes.len()).map(|node| self.progress(node as PeerId)).sum();
            let dead = self.world.borrow().dead.clone();
            let live = self.nodes.iter().filter(|node| !dead.contains(&node.teller.node));
            let mut live = live.map(|node| node.engine.busy() || !node.engine.transport().moving.is_empty());
            if came == 0 && !live.any(|busy| busy) && self.world.borrow().quiet() {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// A node is killed: of what it sent, the last is lost.
    pub fn kill(&mut self, node: PeerId) {
        let mut world = self.world.borrow_mut();
        world.dead.push(node);
        let peers = self.nodes.len() as PeerId;
        for peer in 0..peers {
            world.lanes.remove(&(peer, node));
            let sent = world.lanes.get(&(node, peer)).map_or(0, VecDeque::len);
            let kept = world.roll(sent as u64 + 1) as usize;
            if let Some(lane) = world.lanes.get_mut(&(node, peer)) {
                lane.truncate(kept);
            }
        }
    }

    pub fn ends(&self, node: PeerId) -> Vec<Completion> {
        let world = self.world.borrow();
        let of = |event: &Event| match event {
            Event::Ended(by, completion) if *by == node => Some(*completion),
            _ => None,
        };
        world.log.iter().filter_map(of).collect()
    }

    /// The ends of one receive, and what it found each time.
    pub fn found(&self, recv: usize) -> Vec<(Completion, Vec<u8>)> {
        self.world.borrow().received[recv].found.clone()
    }

    pub fn bytes(&self, sent: usize) -> Vec<u8> {
        self.world.borrow().sent[sent].bytes.clone()
    }
}

/// A tagged receive from anyone.
pub fn tagged(tag: u64) -> Recv {
    Recv {
        kind: Kind::Tagged,
        from: None,
        tag,
        ignore: 0,
        body: UserIov::default(),
        multi: None,
        context: 0,
        tell: Tell::Queue,
    }
}

fn due(lane: &mut VecDeque<Flight>, now: u64) -> Option<Flight> {
    if lane.front()?.due > now {
        return None;
    }
    lane.pop_front()
}
