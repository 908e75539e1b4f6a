//! `Bed`: all nodes of a test, the calls that a test makes on them, and what completed.

use super::*;

/// The application of a node: logs every completion, and overwrites memory that it was given back.
pub(in crate::engine) struct Reporter {
    world: Rc<RefCell<World>>,
    node: PeerId,
}

impl Report for Reporter {
    fn report(&mut self, completion: Completion) {
        let mut world = self.world.borrow_mut();
        world.log.push(Event::CompletedOp(self.node, completion));
        let watched = world.watched.get(self.node as usize);
        if let Some(memory) = watched.filter(|_| completion.op == CompletedOp::Recv) {
            let seen = memory.bytes();
            world.shots.push((self.node, completion, seen));
        }
        let canaries = world.canaries;
        match completion.op {
            CompletedOp::Send => scribble(&world.sent[completion.context].memory),
            CompletedOp::Recv if completion.context < PEEK => {
                let received = &mut world.received[completion.context];
                let iov = received.memory.iov();
                let at = (0..=iov.len()).find(|at| completion.buf != 0 && iov.address(*at) == completion.buf);
                let mut bytes = vec![0; completion.len];
                let whole = iov.read(at.unwrap_or(0), &mut bytes) == completion.len;
                assert!(whole || completion.peeked, "more bytes than the buffer has");
                received.found.push((completion, bytes));
                if canaries && received.recv.multi.is_none() && !completion.peeked {
                    scribble(&received.memory);
                }
            }
            CompletedOp::Recv | CompletedOp::Target { .. } => {}
            CompletedOp::Rma(_) | CompletedOp::Atomic(_) => {
                world.done.push((self.node, completion));
                if let Some(memory) = world.locals.get(&completion.context).copied() {
                    world.results.insert(completion.context, memory.bytes());
                    scribble(&memory);
                }
            }
        }
    }

    fn refused(&mut self, _: PeerId, part: &RemotePart, error: Error) {
        self.world.borrow_mut().refused.push((self.node, *part, error));
    }

    fn refused_unheard(&mut self, _: PeerId, part: &RemotePart, error: Error) {
        self.world.borrow_mut().refused_unheard.push((self.node, *part, error));
    }
}

pub fn scribble(memory: &Lent) {
    memory.set(&vec![0xee; memory.iov().len()]);
}

/// Whether it is as `scribble` left it.
pub fn is_untouched(memory: &Lent) -> bool {
    memory.bytes().iter().all(|byte| *byte == 0xee)
}

/// Contexts of peeks start here, so that they are nobody's receive.
pub const PEEK: usize = 1 << 32;

pub struct Node<T: Connected = Wire> {
    pub engine: Engine<Watch<T>>,
    pub(in crate::engine) reporter: Reporter,
    pub regions: Arc<Regions>,
}

/// A transport for a bed: endpoints in one process that know each other by their places.
pub trait Connected: Transport + Sized {
    /// Whether connections break (`break_off`).
    const BREAKS: bool = false;
    /// Whether a peer whose connection broke may be given up, as it is tried for no time.
    const GIVES_UP: bool = false;

    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Self>;

    /// It has nothing under way that goes on by itself.
    fn is_quiet(&self) -> bool;

    /// How much memory its peers may still fetch from.
    fn exposed(&self) -> usize {
        0
    }

    /// This endpoint is killed. It is not polled any more.
    fn die(&mut self);

    /// The connection to a peer breaks.
    fn break_off(&mut self, _peer: PeerId) {}
}

/// All nodes, what connects them, and what became of it all.
pub struct Bed<T: Connected = Wire> {
    pub world: Rc<RefCell<World>>,
    pub nodes: Vec<Node<T>>,
}

/// What `Bed::send` sends, in short.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    pub from: PeerId,
    pub to: PeerId,
    pub kind: MessageKind,
    pub tag: u64,
    pub len: usize,
    pub data: Option<u64>,
    pub inject: bool,
    pub level: CompletionLevel,
    pub fence: bool,
}

pub fn letter(from: PeerId, to: PeerId, tag: u64, len: usize) -> Letter {
    Letter {
        from,
        to,
        kind: MessageKind::Tagged,
        tag,
        len,
        data: None,
        inject: false,
        level: CompletionLevel::Transmit,
        fence: false,
    }
}

/// Byte `at` of send number `number`.
fn byte(number: usize, at: usize) -> u8 {
    let mixed =
        (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32) as u8
}

impl Connected for Wire {
    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<Wire> {
        let wire = |me| Wire {
            world: world.clone(),
            me,
            peers: nodes,
            moving: Vec::new(),
            owed: Vec::new(),
            told: Vec::new(),
            passed: Vec::new(),
        };
        (0..nodes).map(wire).collect()
    }

    fn is_quiet(&self) -> bool {
        self.moving.is_empty() && self.owed.is_empty() && self.world.borrow().quiet()
    }

    fn exposed(&self) -> usize {
        let exposed = &self.world.borrow().exposed;
        exposed.values().filter(|(owner, _)| *owner == self.me).count()
    }

    /// Of what it sent, the last is lost.
    fn die(&mut self) {
        let world = &mut *self.world.borrow_mut();
        for peer in 0..self.peers {
            world.lanes.remove(&(peer, self.me));
            let sent = world.lanes.get(&(self.me, peer)).map_or(0, VecDeque::len);
            let kept = world.roll(sent as u64 + 1) as usize;
            if let Some(lane) = world.lanes.get_mut(&(self.me, peer)) {
                lane.truncate(kept);
                // Nor is what it had not read yet.
                let read = lane.iter().take_while(|flight| flight.kept.is_none()).count();
                lane.truncate(read);
            }
        }
    }
}

impl Bed {
    pub fn new(nodes: PeerId, seed: u64, manner: Manner, config: Config) -> Bed {
        Bed::over(nodes, seed, manner, config)
    }
}

impl<T: Connected> Bed<T> {
    /// `manner` is that of lanes in memory; other transports have their own.
    pub fn over(nodes: PeerId, seed: u64, manner: Manner, config: Config) -> Bed<T> {
        let world = Rc::new(RefCell::new(World {
            die: seed,
            manner,
            ..World::default()
        }));
        let node = |(me, inner): (usize, T)| Node {
            engine: Engine::with(Watch::new(inner, me as PeerId, &world), config),
            reporter: Reporter {
                world: world.clone(),
                node: me as PeerId,
            },
            regions: Arc::new(Regions::new(false, false)),
        };
        let ends = T::connected(nodes, &world).into_iter().enumerate();
        let mut nodes: Vec<Node<T>> = ends.map(node).collect();
        for node in &mut nodes {
            node.engine.expose_regions(node.regions.clone(), 0, false);
            world.borrow_mut().regions.push(node.regions.clone());
        }
        Bed { world, nodes }
    }

    pub fn node(&mut self, node: PeerId) -> &mut Node<T> {
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
        let Node { engine, reporter, .. } = self.node(from);
        let taken = engine.send(&send, reporter);
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
        let Node { engine, reporter, .. } = self.node(node);
        engine.recv(&recv, reporter).expect("receives are never refused");
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

    pub fn peek(&mut self, node: PeerId, peek: Peek, recv: Recv) -> Result<(), Refused> {
        let mut world = self.world.borrow_mut();
        let number = world.peeks.len();
        world.peeks.push((node, peek, recv));
        drop(world);
        let Node { engine, reporter, .. } = self.node(node);
        let result = engine.peek(peek, &recv, reporter);
        // After it, since it finds what has come meanwhile.
        if result.is_ok() {
            self.world.borrow_mut().log.push(Event::Peek { peek: number });
        }
        result
    }

    /// FI_CLAIM with a buffer: the receive gets the context of the claim.
    pub fn take(&mut self, node: PeerId, len: usize, recv: Recv) -> Lent {
        let memory = Lent::new(&[len], 0);
        let body = memory.iov();
        self.peek(node, Peek::ReceiveClaimed, Recv { body, ..recv })
            .expect("it was claimed");
        memory
    }

    pub fn cancel(&mut self, node: PeerId, context: Context) -> bool {
        self.world.borrow_mut().log.push(Event::Cancel { node, context });
        self.take_back(node, OperationOf::Program(context))
    }

    pub fn take_back(&mut self, node: PeerId, operation: OperationOf) -> bool {
        let Node { engine, reporter, .. } = self.node(node);
        engine.cancel_receive(operation, reporter)
    }

    /// Takes back a send; contexts of sends are their numbers.
    pub fn cancel_send(&mut self, node: PeerId, number: usize) -> bool {
        let Node { engine, reporter, .. } = self.node(node);
        let canceled = engine.cancel_queued(OperationOf::Program(number), reporter);
        if canceled {
            self.world.borrow_mut().canceled.insert(number);
        }
        canceled
    }

    pub fn progress(&mut self, node: PeerId) -> usize {
        if self.world.borrow().dead.contains(&node) {
            return 0;
        }
        let Node { engine, reporter, .. } = self.node(node);
        engine.progress(reporter)
    }

    /// Time passes until nothing moves any more. Panics if that never comes.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            self.world.borrow_mut().now += 1;
            // A join does not poll its far way each time, and what waits there can't be seen from outside.
            if quiet > 0 {
                self.nodes
                    .iter_mut()
                    .for_each(|node| node.engine.transport_mut().inner.look_everywhere());
            }
            let came: usize = (0..self.nodes.len()).map(|node| self.progress(node as PeerId)).sum();
            let dead = self.world.borrow().dead.clone();
            let mut live = self.nodes.iter().filter(|node| !dead.contains(&node.reporter.node));
            let busy = live
                .any(|node| node.engine.busy() || node.engine.has_work() || !node.engine.transport().inner.is_quiet());
            // A node may have been sent something after its turn.
            quiet = if came > 0 || busy { 0 } else { quiet + 1 };
            if quiet == 2 {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// A node is killed.
    pub fn kill(&mut self, node: PeerId) {
        self.world.borrow_mut().dead.push(node);
        self.node(node).engine.transport_mut().inner.die();
    }

    /// The connection of two nodes breaks.
    pub fn break_off(&mut self, node: PeerId, peer: PeerId) {
        self.world.borrow_mut().broken.push((node, peer));
        self.node(node).engine.transport_mut().inner.break_off(peer);
    }

    /// A node sends another what no engine sends.
    pub fn talk_nonsense(&mut self, node: PeerId, to: PeerId) {
        let mut world = self.world.borrow_mut();
        world.nonsense.push((node, to));
        world.broken.push((node, to));
        drop(world);
        let header = Header::new(Packet::Segment, u32::MAX);
        let transport = &mut self.node(node).engine.transport_mut().inner;
        let _ = transport.push(to, &header, Body::Empty, None);
    }

    /// Whether operations of a node with another may fail, and how.
    pub fn torn(&self, a: PeerId, b: PeerId) -> [Option<Error>; 3] {
        let world = self.world.borrow();
        let dead = [a, b].iter().any(|node| world.dead.contains(node));
        let broken = world.broken.iter().any(|pair| *pair == (a, b) || *pair == (b, a));
        let nonsense = world.nonsense.iter().any(|pair| *pair == (a, b) || *pair == (b, a));
        [
            (dead || broken && T::GIVES_UP).then_some(Error::PeerGone),
            broken.then_some(Error::Broken),
            nonsense.then_some(Error::Protocol),
        ]
    }

    /// Nothing that a living node was given back was written since.
    pub fn check_canaries(&self) {
        let world = self.world.borrow();
        for (number, received) in world.received.iter().enumerate() {
            let over = received.recv.multi.is_none() && received.found.iter().any(|(end, _)| !end.peeked);
            assert!(!over || is_untouched(&received.memory), "receive {number}");
        }
        for (context, memory) in world
            .locals
            .iter()
            .filter(|(context, _)| world.results.contains_key(*context))
        {
            assert!(is_untouched(memory), "operation {context}");
        }
        assert!(world.closed.iter().all(is_untouched), "a region that was closed");
    }

    pub fn ends(&self, node: PeerId) -> Vec<Completion> {
        let world = self.world.borrow();
        let of = |event: &Event| match event {
            Event::CompletedOp(by, completion) if *by == node => Some(*completion),
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
        kind: MessageKind::Tagged,
        from: None,
        tag,
        ignore: 0,
        body: UserIov::NONE,
        multi: None,
        context: 0,
        tell: Tell::Queue,
    }
}
