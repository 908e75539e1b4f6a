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
            }
            CompletedOp::Recv | CompletedOp::Target { .. } => {}
            // As for sends: nobody looks at operands any more.
            CompletedOp::Rma(_) | CompletedOp::Atomic(_) => world.done.push((self.node, completion)),
        }
    }

    fn refused(&mut self, _: PeerId, part: &RemotePart, error: Error) {
        self.world.borrow_mut().refused.push((self.node, *part, error));
    }
}

pub(in crate::engine) fn scribble(memory: &Lent) {
    memory.set(&vec![0xee; memory.iov().len()]);
}

/// Contexts of peeks start here, so that they are nobody's receive.
pub const PEEK: usize = 1 << 32;

pub struct Node {
    pub engine: Engine<Wire>,
    pub(in crate::engine) reporter: Reporter,
    pub regions: Arc<Regions>,
}

/// All nodes and the lanes between them.
pub struct Bed {
    pub world: Rc<RefCell<World>>,
    pub nodes: Vec<Node>,
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
                    passed: Vec::new(),
                },
                config,
            ),
            reporter: Reporter {
                world: world.clone(),
                node: me,
            },
            regions: Arc::new(Regions::new(false, false)),
        };
        let mut nodes: Vec<Node> = (0..nodes).map(node).collect();
        for node in &mut nodes {
            node.engine.expose_regions(node.regions.clone(), 0, false);
            world.borrow_mut().regions.push(node.regions.clone());
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
        // Before it, since what comes meanwhile is for the next peek.
        let place = world.log.len();
        world.log.push(Event::Peek { peek: number });
        drop(world);
        let Node { engine, reporter, .. } = self.node(node);
        let result = engine.peek(peek, &recv, reporter);
        if result.is_err() {
            self.world.borrow_mut().log[place] = Event::Peek { peek: usize::MAX };
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
        let Node { engine, reporter, .. } = self.node(node);
        engine.cancel(context, reporter)
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
        for _ in 0..10_000 {
            self.world.borrow_mut().now += 1;
            let came: usize = (0..self.nodes.len()).map(|node| self.progress(node as PeerId)).sum();
            let dead = self.world.borrow().dead.clone();
            let live = self.nodes.iter().filter(|node| !dead.contains(&node.reporter.node));
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
