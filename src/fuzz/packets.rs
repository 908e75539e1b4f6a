//! What a peer may send, through a whole engine: records, requests for help, ends of copies, in any order and with any
//! contents, while the endpoint sends, receives and works on memory of the peer's.
//!
//! An input is a list of steps, a byte each with what the step needs behind it. Memory of the application's lies
//! between guards, which must be as they were; what was registered for reading too.

use crate::engine::Engine;
use crate::engine::op::{
    Access, Atomic, AtomicOp, AtomicTarget, Completion, CompletionLevel, Form, MessageKind, Recv, RemoteIov,
    RemotePart, Rma, Send, Tell,
};
use crate::engine::port::{
    Body, Exposed, ExposedName, Get, Limits, Loss, NotDone, Notice, PeerId, Placement, Push, Remote, Sink, Token,
    Transport,
};
use crate::engine::wire::Header;
use crate::mem::atomic::{Datatype, Op};
use crate::util::regions::{Region, Regions, Rights};
use crate::util::user::{Lent, UserIov};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

const PEERS: PeerId = 2;
const GUARD: usize = 64;
const LONG: usize = 10_000;
const SHORT: usize = 64;
const MAX_BODY: usize = 1024;
const STEPS: usize = 200;

/// The next bytes of an input; zeros behind its end.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A number that may mean something, or any.
    fn number(&mut self) -> u64 {
        let kind = self.byte();
        let small = u64::from(self.byte());
        match kind % 8 {
            0 => self.word(),
            1 => u64::MAX - small,
            2 => LONG as u64 - 128 + small,
            3 => small << 8 | u64::from(self.byte()),
            4 => (1 << 63) + small,
            5 => small << 20,
            _ => small,
        }
    }
}

/// What is on its way to the endpoint.
enum Coming {
    Record(PeerId, Header, Vec<u8>),
    ExposedName(PeerId, ExposedName, Access),
    Finished(bool),
    Gone(PeerId),
}

#[derive(Default)]
struct Wire {
    coming: VecDeque<Coming>,
    /// Gets that are to end.
    later: Vec<(Token, UserIov)>,
    /// Memory that may be named.
    mine: Vec<UserIov>,
    pushed: usize,
    moods: u8,
}

/// A transport that is told what comes.
struct Feed(Rc<RefCell<Wire>>);

impl Feed {
    fn deliver<S: Sink>(&self, sink: &mut S, coming: Coming) -> Option<Coming> {
        match coming {
            Coming::Record(from, header, body) => {
                if sink.take(from, &header, &body) {
                    return None;
                }
                match sink.place(from, &header, body.len()) {
                    Placement::Into { iov, at, token } => {
                        iov.write(at, &body);
                        sink.placed(token, None);
                    }
                    Placement::Keep { mut buffer, token } => {
                        assert_eq!(buffer.len(), body.len());
                        buffer.copy_from_slice(&body);
                        sink.placed(token, Some(buffer));
                    }
                    Placement::Leased { lease, token } => {
                        if lease.write(0, &body) {
                            sink.placed(token, None);
                        } else {
                            sink.cut(token);
                        }
                    }
                    Placement::Drop => {}
                    Placement::Refuse => return Some(Coming::Record(from, header, body)),
                }
            }
            Coming::ExposedName(from, name, access) => {
                if let Some(found) = sink.exposed_memory(from, &name, access) {
                    let wire = self.0.borrow();
                    let inside = |part: &crate::util::user::UserBuf| {
                        let within = |whole: &UserIov| {
                            let at = part.addr().wrapping_sub(whole.address(0));
                            at <= whole.len() && part.len() <= whole.len() - at
                        };
                        part.is_empty() || wire.mine.iter().any(within)
                    };
                    assert!(
                        found.parts().iter().all(inside),
                        "{name:?} is memory that was never shown"
                    );
                }
            }
            Coming::Finished(ok) => {
                let ended = self.0.borrow_mut().later.pop();
                if let Some((token, _)) = ended {
                    sink.finished(token, if ok { Ok(()) } else { Err(NotDone::AskPeer) });
                }
            }
            Coming::Gone(peer) => {
                self.0.borrow_mut().later.clear();
                sink.gone(peer, Loss::Died);
            }
        }
        None
    }
}

impl Transport for Feed {
    fn limits(&self) -> Limits {
        Limits {
            max_body: MAX_BODY,
            eager: 4096,
            can_get: true,
            sync_placement: true,
            guaranteed_body: MAX_BODY,
        }
    }

    fn peer(&mut self, address: &[u8]) -> Option<PeerId> {
        address.first().map(|byte| PeerId::from(*byte) % PEERS)
    }

    fn push(&mut self, _: PeerId, _: &Header, body: Body<'_>, _: Option<Notice>) -> Push {
        assert!(body.len() <= MAX_BODY);
        let mut wire = self.0.borrow_mut();
        wire.pushed += 1;
        if wire.moods & 1 != 0 && wire.pushed % 3 == 0 {
            return Push::Full;
        }
        Push::Done
    }

    fn poll<S: Sink>(&mut self, sink: &mut S, budget: usize) -> usize {
        for done in 0..budget {
            let Some(coming) = self.0.borrow_mut().coming.pop_front() else {
                return done;
            };
            if let Some(refused) = self.deliver(sink, coming) {
                self.0.borrow_mut().coming.push_front(refused);
                return done;
            }
        }
        budget
    }

    fn expose(&mut self, _: PeerId, _: &UserIov, _: ExposedName) -> Option<Exposed> {
        let remote = Remote::from([0; Remote::MAX]);
        Some(Exposed { remote, id: Some(7) })
    }

    fn get(&mut self, _: PeerId, _: &Remote, local: &UserIov, at: usize, len: usize, token: Option<Token>) -> Get {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= local.len()),
            "{len} bytes into {}",
            local.len()
        );
        let mut wire = self.0.borrow_mut();
        match (wire.moods >> 1 & 3, token) {
            (0, Some(token)) => {
                wire.later.push((token, *local));
                Get::Later
            }
            (1, _) => Get::Unsupported,
            _ => {
                local.write(at, &[0x77; 16]);
                Get::Done
            }
        }
    }
}

/// The application's memory, each piece between guards. One for all inputs, as it is never given back.
struct Memory {
    pieces: [(Lent, usize); 6],
}

const FILL: u8 = 0xc3;

impl Memory {
    fn new() -> Memory {
        let piece = |len| (Lent::new(&[len + 2 * GUARD], FILL), len);
        Memory {
            pieces: [LONG, SHORT, LONG, SHORT, LONG, LONG].map(piece),
        }
    }

    fn iov(&self, at: usize) -> UserIov {
        self.pieces
            .get(at)
            .map_or(UserIov::default(), |(all, len)| all.iov().part(GUARD, *len))
    }

    /// What was sent or may be read only is as it was; around all the rest nothing has changed.
    fn judge(&self) {
        for (at, (all, len)) in self.pieces.iter().enumerate() {
            let bytes = all.bytes();
            let is_only_read = at == SENT || at == READ_ONLY;
            let (before, rest) = bytes.split_at(GUARD);
            let (inside, behind) = rest.split_at(*len);
            let is_whole = |bytes: &[u8]| bytes.iter().all(|byte| *byte == FILL);
            let holds = is_whole(before) && is_whole(behind) && (!is_only_read || is_whole(inside));
            assert!(holds, "memory {at} of {len} bytes");
            if !is_only_read {
                all.set(&vec![FILL; len + 2 * GUARD]);
            }
        }
    }
}

// Which memory is for what.
const RECEIVED: usize = 0;
const RECEIVED_SHORT: usize = 1;
const SENT: usize = 2;
const READ_ONLY: usize = 3;
const OPEN: usize = 4;
const FETCHED: usize = 5;

thread_local! {
    static MEMORY: Memory = Memory::new();
}

fn regions(memory: &Memory) -> Arc<Regions> {
    let regions = Arc::new(Regions::new(false, false));
    let rows = [
        (1, OPEN, Rights::BOTH, 0, true, false),
        (2, READ_ONLY, Rights::READ, 0x1000, true, false),
        (3, OPEN, Rights::WRITE, u64::MAX - 100, true, true),
        (4, SENT, Rights::BOTH, 0, false, false),
    ];
    for (key, at, rights, base, enabled, watched) in rows {
        let region = Region {
            memory: memory.iov(at),
            rights,
            base,
            enabled,
            endpoint: None,
            watched,
        };
        assert_eq!(regions.add(region, key), Some(key));
    }
    regions
}

struct Scene<'a> {
    input: Reader<'a>,
    memory: &'a Memory,
    wire: Rc<RefCell<Wire>>,
    engine: Engine<Feed>,
    told: Vec<Completion>,
}

impl Scene<'_> {
    fn record(&mut self) -> Option<Coming> {
        let from = PeerId::from(self.input.byte()) % PEERS;
        let [kind, flags] = [self.input.byte() % 20, self.input.byte()];
        let code = u64::from(self.input.byte() % 24) | u64::from(self.input.byte() % 20) << 8;
        let id = self.input.number() & 0xffff_ffff;
        let first = u64::from(kind) | u64::from(flags) << 8 | code << 16 | id << 32;
        let (tag, data, mut total) = (self.input.number(), self.input.number(), self.input.number());
        let len = match self.input.byte() {
            len @ 0..=127 => usize::from(len),
            192 => Remote::MAX,
            255 => MAX_BODY,
            len => usize::from(len - 128) * 8,
        };
        if self.input.byte() % 2 == 0 {
            total = len as u64;
        }
        let body: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
        let header = Header::from_words([first, tag, data, total])?;
        Some(Coming::Record(from, header, body))
    }

    fn part(&mut self) -> RemotePart {
        RemotePart {
            addr: self.input.number(),
            len: self.input.number() as usize,
            key: u64::from(self.input.byte() % 6),
        }
    }

    fn named(&mut self) -> Coming {
        let from = PeerId::from(self.input.byte()) % PEERS;
        let access = [Access::Read, Access::Write][usize::from(self.input.byte() % 2)];
        let name = match self.input.byte() % 3 {
            0 => ExposedName::Sent(self.input.number() << 32 | self.input.number()),
            1 => ExposedName::Region(self.part()),
            _ => ExposedName::Nothing,
        };
        Coming::ExposedName(from, name, access)
    }

    fn tell(&mut self) -> Tell {
        [Tell::Queue, Tell::Counters][usize::from(self.input.byte() % 2)]
    }

    fn receive(&mut self) {
        let byte = self.input.byte();
        let kind = MessageKind::ALL[usize::from(byte) % 3];
        let recv = Recv {
            kind,
            from: (byte & 8 != 0).then_some(PeerId::from(byte) % PEERS),
            tag: self.input.number(),
            ignore: if byte & 16 != 0 { u64::MAX } else { 0 },
            body: self.memory.iov([RECEIVED, RECEIVED_SHORT][usize::from(byte >> 5 & 1)]),
            multi: (byte & 64 != 0 && kind != MessageKind::Collective).then_some(1000),
            context: usize::from(byte),
            tell: self.tell(),
        };
        let _ = self.engine.recv(&recv, &mut self.told);
    }

    fn send(&mut self) {
        let byte = self.input.byte();
        let len = [0, 8, SHORT, 1025, 5000, LONG][usize::from(byte) % 6];
        let send = Send {
            kind: MessageKind::ALL[usize::from(byte >> 3) % 3],
            to: PeerId::from(byte >> 5) % PEERS,
            tag: self.input.number(),
            data: (byte & 64 != 0).then_some(5),
            body: self.memory.iov(SENT).part(0, len),
            inject: byte & 128 != 0,
            level: [CompletionLevel::Inject, CompletionLevel::Delivery][usize::from(byte & 1)],
            fence: byte == 255,
            context: 1,
            tell: self.tell(),
        };
        let _ = self.engine.send(&send, &mut self.told);
    }

    fn rma(&mut self) {
        let byte = self.input.byte();
        let access = [Access::Read, Access::Write][usize::from(byte & 1)];
        let len = [0, 8, SHORT, 1024, 5000, LONG][usize::from(byte >> 1) % 6];
        let local = self.memory.iov(if access == Access::Read { FETCHED } else { SENT });
        let parts = [RemotePart { len, ..self.part() }];
        let Some(remote) = RemoteIov::new(parts) else { return };
        let rma = Rma {
            access,
            to: PeerId::from(byte >> 5) % PEERS,
            local: local.part(0, len),
            remote,
            data: None,
            inject: false,
            fence: byte & 16 != 0,
            context: 2,
            tell: self.tell(),
        };
        let _ = self.engine.rma(&rma, &mut self.told);
    }

    fn atomic(&mut self) {
        let byte = self.input.byte();
        let form = [Form::Base, Form::Fetch, Form::Compare][usize::from(byte) % 3];
        let (len, addr, key) = (SHORT, self.input.number(), 1);
        let target = match byte & 16 {
            0 => AtomicTarget::Memory(RemoteIov::one(RemotePart { addr, len, key })),
            _ => AtomicTarget::Tagged { tag: addr, at: 0 },
        };
        let (operand, result) = (
            self.memory.iov(SENT).part(0, len),
            self.memory.iov(FETCHED).part(0, len),
        );
        let (op, datatype) = (self.input.byte() % 20, self.input.byte() % 16);
        let plain = if form == Form::Compare { Op::Cswap } else { Op::Sum };
        let op = AtomicOp::from_raw(form, op.into(), datatype.into())
            .or(AtomicOp::new(form, plain, Datatype::Uint64))
            .expect("fi_atomic(3) allows FI_SUM and FI_CSWAP");
        let atomic = Atomic {
            op,
            to: PeerId::from(byte >> 5) % PEERS,
            target,
            len,
            operand,
            compare: operand,
            result,
            data: None,
            inject: false,
            fence: false,
            context: 3,
            tell: self.tell(),
        };
        let _ = self.engine.atomic(&atomic, &mut self.told);
    }

    fn step(&mut self) {
        let coming = match self.input.byte() % 24 {
            0..=9 => self.record(),
            10 | 11 => Some(self.named()),
            12 => Some(Coming::Finished(self.input.byte() % 2 == 0)),
            13 => Some(Coming::Gone(PeerId::from(self.input.byte()) % PEERS)),
            14..=16 => {
                self.receive();
                None
            }
            17 | 18 => {
                self.send();
                None
            }
            19 => {
                self.rma();
                None
            }
            20 => {
                self.atomic();
                None
            }
            21 => {
                let context = usize::from(self.input.byte());
                self.engine.cancel(context, &mut self.told);
                None
            }
            _ => {
                self.wire.borrow_mut().moods = self.input.byte();
                None
            }
        };
        self.wire.borrow_mut().coming.extend(coming);
        self.engine.progress(&mut self.told);
        for end in self.told.drain(..) {
            assert!(
                end.failure.is_some()
                    || end.len <= LONG
                    || matches!(end.op, crate::engine::op::CompletedOp::Target { .. })
            );
        }
    }
}

/// Whatever comes, memory stays what it is and an end is an end.
pub fn packets(data: &[u8]) {
    MEMORY.with(|memory| {
        let wire = Rc::new(RefCell::new(Wire::default()));
        wire.borrow_mut().mine = [OPEN, READ_ONLY, SENT].map(|at| memory.iov(at)).to_vec();
        let mut engine = Engine::new(Feed(wire.clone()));
        engine.expose_regions(regions(memory), 1, false);
        let mut scene = Scene {
            input: Reader(data),
            memory,
            wire,
            engine,
            told: Vec::new(),
        };
        for _ in 0..STEPS {
            if scene.input.0.is_empty() {
                break;
            }
            scene.step();
        }
        let ends = (0..PEERS).map(Coming::Gone);
        scene.wire.borrow_mut().coming.extend(ends);
        scene.wire.borrow_mut().moods = 0;
        for _ in 0..20 {
            scene.engine.progress(&mut scene.told);
        }
        assert_eq!(scene.engine.sending(), 0, "something waits for peers that are gone");
        memory.judge();
    });
}
