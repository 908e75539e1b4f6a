//! What fuzz targets with a whole engine have in common: the application's side, as the bytes of an input say.
//!
//! Memory of the application's lies between guards, which must be as they were; what was registered for reading too.

use crate::engine::Engine;
use crate::engine::op::{
    Access, Atomic, AtomicOp, AtomicTarget, CompletedOp, Completion, CompletionLevel, Form, MessageKind, OperationOf,
    Recv, RemoteIov, RemotePart, Rma, Send, Tell,
};
use crate::engine::port::{PeerId, Remote, Transport};
use crate::engine::wire::Header;
use crate::mem::atomic::{Datatype, Op};
use crate::util::regions::{Region, Regions, Rights};
use crate::util::user::{Lent, UserIov};
use std::sync::Arc;

pub(super) const PEERS: PeerId = 2;
const GUARD: usize = 64;
const LONG: usize = 10_000;
const SHORT: usize = 64;
pub(super) const MAX_BODY: usize = 1024;
/// Of one input.
pub(super) const STEPS: usize = 200;

/// The next bytes of an input; zeros behind its end.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub(super) fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A number that may mean something, or any.
    pub(super) fn number(&mut self) -> u64 {
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

/// The application's memory, each piece between guards. One for all inputs, as it is never given back.
pub(super) struct Memory {
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

    pub(super) fn iov(&self, at: usize) -> UserIov {
        self.pieces
            .get(at)
            .map_or(UserIov::default(), |(all, len)| all.iov().part(GUARD, *len))
    }

    /// What was sent or may be read only is as it was; around all the rest nothing has changed.
    pub(super) fn judge(&self) {
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
pub(super) const SENT: usize = 2;
pub(super) const READ_ONLY: usize = 3;
pub(super) const OPEN: usize = 4;
const FETCHED: usize = 5;

thread_local! {
    pub(super) static MEMORY: Memory = Memory::new();
}

fn regions(memory: &Memory) -> Arc<Regions> {
    let regions = Arc::new(Regions::new(false, false));
    let rows = [
        (1, OPEN, Rights::BOTH, 0, true, false),
        (2, READ_ONLY, Rights::READ, 0x1000, true, false),
        (3, OPEN, Rights::WRITE, u64::MAX - 100, true, true),
        (4, SENT, Rights::BOTH, 0, false, false),
    ];
    for (key, at, rights, base, enabled, counted) in rows {
        let region = Region {
            memory: memory.iov(at),
            rights,
            base,
            enabled,
            endpoint: None,
            counted,
        };
        assert_eq!(regions.add(region, key), Some(key));
    }
    regions
}

/// An endpoint, and an input that says what is done with it.
pub(super) struct Scene<'a, T: Transport> {
    pub input: Reader<'a>,
    pub memory: &'a Memory,
    pub engine: Engine<T>,
    pub told: Vec<Completion>,
}

impl<'a, T: Transport> Scene<'a, T> {
    pub(super) fn new(data: &'a [u8], memory: &'a Memory, transport: T) -> Scene<'a, T> {
        let mut engine = Engine::new(transport);
        engine.expose_regions(regions(memory), 1, false);
        Scene {
            input: Reader(data),
            memory,
            engine,
            told: Vec::new(),
        }
    }

    /// A packet of a peer, if it has a header that says anything.
    pub(super) fn packet(&mut self) -> (PeerId, Option<Header>, Vec<u8>) {
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
        (from, Header::from_words([first, tag, data, total]), body)
    }

    pub(super) fn part(&mut self) -> RemotePart {
        RemotePart {
            addr: self.input.number(),
            len: self.input.number() as usize,
            key: u64::from(self.input.byte() % 6),
        }
    }

    pub(super) fn tell(&mut self) -> Tell {
        [Tell::Queue, Tell::Counters][usize::from(self.input.byte() % 2)]
    }

    pub(super) fn receive(&mut self) {
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

    pub(super) fn send(&mut self) {
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

    pub(super) fn rma(&mut self) {
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
            level: CompletionLevel::Inject,
            context: 2,
            tell: self.tell(),
        };
        let _ = self.engine.rma(&rma, &mut self.told);
    }

    pub(super) fn atomic(&mut self) {
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

    pub(super) fn cancel(&mut self) {
        let context = usize::from(self.input.byte());
        let operation = OperationOf::Program(context);
        let _ = self.engine.cancel_receive(operation, &mut self.told)
            || self.engine.cancel_queued(operation, &mut self.told);
    }

    /// Polls, and looks at what has ended.
    pub(super) fn progress(&mut self) {
        self.engine.progress(&mut self.told);
        for end in self.told.drain(..) {
            assert!(end.failure.is_some() || end.len <= LONG || matches!(end.op, CompletedOp::Target { .. }));
        }
    }
}
