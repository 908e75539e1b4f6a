//! The part of the suite that has engines on top: messages of all lengths, floods, and the end of a peer.

use super::{Ends, Pair, bytes, until};
use crate::engine::op::{CompletedOp, Completion, CompletionLevel, Error, MessageKind, Recv, Refused, Send, Tell};
use crate::engine::port::*;
use crate::engine::{Config, Engine};
use crate::util::user::Lent;
use std::any::Any;

pub(super) struct Side<T: Transport> {
    pub engine: Engine<T>,
    pub peer: PeerId,
    pub ends: Vec<Completion>,
}

impl<T: Transport> Side<T> {
    pub fn progress(&mut self) {
        self.engine.progress(&mut self.ends);
    }

    pub fn send(&mut self, tag: u64, memory: &Lent, level: CompletionLevel) -> Result<(), Refused> {
        let send = Send {
            kind: MessageKind::Tagged,
            to: self.peer,
            tag,
            data: Some(!tag),
            body: memory.iov(),
            inject: false,
            level,
            fence: false,
            context: tag as usize,
            tell: Tell::Queue,
        };
        self.engine.send(&send, &mut self.ends)
    }

    pub fn recv(&mut self, tag: u64, memory: &Lent) {
        let recv = Recv {
            kind: MessageKind::Tagged,
            from: Some(self.peer),
            tag,
            ignore: 0,
            body: memory.iov(),
            multi: None,
            context: tag as usize,
            tell: Tell::Queue,
        };
        self.engine.recv(&recv, &mut self.ends).unwrap();
    }

    fn ended(&self, ended: CompletedOp) -> usize {
        self.ends.iter().filter(|end| end.op == ended).count()
    }
}

/// An engine on each endpoint, and what must not be dropped before them.
pub(super) fn sides<P: Pair>(config: Config) -> ([Side<P>; 2], Box<dyn Any>) {
    let Ends {
        a,
        b,
        b_of_a,
        a_of_b,
        keep,
    } = P::pair();
    let sides = [(a, b_of_a), (b, a_of_b)].map(|(transport, peer)| Side {
        engine: Engine::with(transport, config),
        peer,
        ends: Vec::new(),
    });
    (sides, keep)
}

/// Messages of many lengths both ways, half of them before their receives.
pub fn engines_exchange_messages<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let Limits { max_body, eager, .. } = sides[0].engine.transport().limits();
    let around = |len: usize| [len - 1, len, len + 1];
    let lens: Vec<usize> = [0, 1, 8, 80]
        .into_iter()
        .chain(around(max_body))
        .chain(around(eager))
        .collect();
    let lens: Vec<usize> = lens.into_iter().chain([3 * eager, 300_000]).collect();
    let number = |side: usize, tag: usize| (side * 100 + tag) as u32;
    let into: Vec<Vec<Lent>> = (0..2)
        .map(|_| lens.iter().map(|len| Lent::new(&[len / 2, len - len / 2], 0)).collect())
        .collect();
    for side in 0..2 {
        for tag in (0..lens.len()).filter(|tag| tag % 2 == 0) {
            sides[side].recv(tag as u64, &into[side][tag]);
        }
    }
    for (tag, len) in lens.iter().enumerate() {
        for (side, end) in sides.iter_mut().enumerate() {
            let memory = Lent::new(&[len / 3, len - len / 3], 0);
            memory.set(&bytes(number(side, tag), *len));
            let level = if tag % 3 == 0 {
                CompletionLevel::Delivery
            } else {
                CompletionLevel::Transmit
            };
            end.send(tag as u64, &memory, level).unwrap();
            end.progress();
        }
    }
    for _ in 0..100 {
        sides.iter_mut().for_each(Side::progress);
    }
    for side in 0..2 {
        for tag in (0..lens.len()).filter(|tag| tag % 2 == 1) {
            sides[side].recv(tag as u64, &into[side][tag]);
        }
    }
    until("all ends", || {
        sides.iter_mut().for_each(Side::progress);
        sides.iter().all(|side| side.ends.len() >= 2 * lens.len())
    });
    for (side, end) in sides.iter().enumerate() {
        assert!(end.ends.iter().all(|end| end.failure.is_none()), "{:?}", end.ends);
        assert_eq!(end.ended(CompletedOp::Recv), lens.len());
        for (tag, len) in lens.iter().enumerate() {
            let got = end
                .ends
                .iter()
                .find(|end| end.op == CompletedOp::Recv && end.context == tag)
                .unwrap();
            assert_eq!(
                (got.len, got.data, got.source),
                (*len, Some(!(tag as u64)), Some(end.peer))
            );
            assert_eq!(
                into[side][tag].bytes(),
                bytes(number(1 - side, tag), *len),
                "length {len}"
            );
        }
    }
}

/// Both send until refused and receive nothing, with little room; then everything arrives, last first.
pub fn engines_stand_a_flood<P: Pair>() {
    let config = Config {
        room: 64 << 10,
        share: 32 << 10,
        in_flight: 100,
        ..Config::default()
    };
    let (mut sides, _keep) = sides::<P>(config);
    let memory = Lent::new(&[500], 5);
    let mut sent = [0, 0];
    let mut idle = 0;
    until("both refused", || {
        let before = sent;
        for (side, end) in sides.iter_mut().enumerate() {
            if end.send(sent[side], &memory, CompletionLevel::Transmit).is_ok() {
                sent[side] += 1;
            }
            end.progress();
        }
        idle = if sent == before { idle + 1 } else { 0 };
        idle > 1000
    });
    let most = (config.share + config.window) / (500 + 256) + config.in_flight + 1000;
    assert!(sent.iter().all(|sent| *sent as usize <= most), "{sent:?} of {most}");
    let into = Lent::new(&[500], 0);
    for (side, end) in sides.iter_mut().enumerate() {
        for tag in (0..sent[1 - side]).rev() {
            end.recv(tag, &into);
            end.progress();
        }
    }
    let all = (sent[0] + sent[1]) as usize;
    until("all ends", || {
        sides.iter_mut().for_each(Side::progress);
        sides.iter().all(|side| side.ends.len() == all)
    });
    assert!(
        sides
            .iter()
            .flat_map(|side| &side.ends)
            .all(|end| end.failure.is_none())
    );
}

pub fn engines_notice_the_end_of_a_peer<P: Pair>() {
    let ([mut a, mut b], _keep) = sides::<P>(Config::default());
    let memory = Lent::new(&[100_000], 5);
    let small = Lent::new(&[10], 5);
    a.send(1, &memory, CompletionLevel::Delivery).unwrap();
    a.send(2, &small, CompletionLevel::Delivery).unwrap();
    a.recv(3, &memory);
    for _ in 0..100 {
        a.progress();
        b.progress();
    }
    drop(b);
    until("all ends", || {
        a.progress();
        a.ends.len() == 3
    });
    let ends: Vec<_> = a
        .ends
        .iter()
        .map(|end| (end.op, end.context, end.failure.map(|f| f.error)))
        .collect();
    let gone = Some(Error::PeerGone);
    assert_eq!(
        ends,
        [
            (CompletedOp::Send, 1, gone),
            (CompletedOp::Send, 2, gone),
            (CompletedOp::Recv, 3, gone)
        ]
    );
}
