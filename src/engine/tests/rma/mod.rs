//! Reads, writes and atomics between two or three endpoints, one feature per test.
//!
//! - `read_write`: lengths, shapes and refusals of reads and writes. `atomic`, `tagged`: atomics on regions and on
//!   tagged receives.
//! - `order`: which operations wait for which, and what fails when a region is closed or a peer dies.
//! - `read_at_hand`: reads that are answered out of the memory.
//! - `parts`: writes in several packets. `unheard`: writes that are reported when they are sent. `recall`: targets that
//!   do not poll. `random`: generated runs, judged by a model of every target's memory.

use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::port::*;
use crate::engine::tests::sim::*;
use crate::engine::wire::{Header, Packet};
use crate::util::regions::{Region, Rights};
use crate::util::user::{Lent, UserIov};

mod atomic;
mod order;
mod parts;
pub(crate) mod random;
mod read_at_hand;
mod read_write;
mod recall;
mod tagged;
mod unheard;

/// Lanes as they are in life: packets that hold lists, and a few ways of moving bytes.
fn manners() -> [Manner; 5] {
    let limits = Limits {
        max_body: 300,
        eager: 250,
        eager_if_fetched: 250,
        can_get: true,
        gets_at_once: 0,
        guaranteed_body: 300,
        sync_placement: true,
        max_write: 0,
        max_in_writes: 0,
        max_short_read: 250,
    };
    let manner = Manner {
        limits,
        ..Manner::default()
    };
    let by_asking = Limits {
        can_get: false,
        gets_at_once: 0,
        ..limits
    };
    [
        manner,
        Manner {
            limits: by_asking,
            ..manner
        },
        Manner {
            limits: by_asking,
            late: 10,
            ..manner
        },
        Manner {
            gets: [4, 8, 4],
            full: 3,
            ..manner
        },
        Manner {
            gets: [3, 3, 5],
            late: 8,
            delay: 3,
            ..manner
        },
    ]
}

fn small() -> Config {
    Config {
        window: 4096,
        room: 40_000,
        share: 2048,
        in_flight: 8,
        ..Config::default()
    }
}

/// Registers memory of a node under a key.
pub(crate) fn register<T: Connected>(bed: &Bed<T>, node: PeerId, key: u64, memory: &Lent, rights: Rights) {
    let region = Region {
        memory: memory.iov(),
        rights,
        base: 0,
        enabled: true,
        endpoint: None,
        counted: false,
    };
    assert_eq!(bed.nodes[node as usize].regions.add(region, key), Some(key));
}

pub(crate) fn remote(parts: &[(u64, usize, u64)]) -> RemoteIov {
    let part = |(addr, len, key)| RemotePart { addr, len, key };
    RemoteIov::new(parts.iter().copied().map(part)).unwrap()
}

pub(crate) fn access(access: Access, to: PeerId, local: &Lent, remote: RemoteIov) -> Rma {
    Rma {
        access,
        to,
        local: local.iov(),
        remote,
        data: None,
        inject: false,
        level: CompletionLevel::Delivery,
        fence: false,
        context: 77,
        tell: Tell::Queue,
    }
}

impl<T: Connected> Bed<T> {
    pub fn rma(&mut self, from: PeerId, rma: &Rma) -> Result<(), Refused> {
        let Node { engine, reporter, .. } = self.node(from);
        engine.rma(rma, reporter)
    }

    fn atomic(&mut self, from: PeerId, atomic: &Atomic) -> Result<(), Refused> {
        let Node { engine, reporter, .. } = self.node(from);
        engine.atomic(atomic, reporter)
    }

    /// What operations of a node have ended since this was last asked.
    pub fn done(&mut self, node: PeerId) -> Vec<Completion> {
        let done = std::mem::take(&mut self.world.borrow_mut().done);
        let (mine, others): (Vec<_>, Vec<_>) = done.into_iter().partition(|(by, _)| *by == node);
        self.world.borrow_mut().done = others;
        mine.into_iter().map(|(_, end)| end).collect()
    }

    fn told(&self, node: PeerId) -> Vec<Completion> {
        let ends = self.ends(node).into_iter();
        ends.filter(|end| matches!(end.op, CompletedOp::Target { .. }))
            .collect()
    }

    fn check_nothing_left(&self) {
        for (node, end) in self.nodes.iter().enumerate() {
            let state = (end.engine.leftovers(), end.engine.malformed());
            assert_eq!(state, ([0; 5], 0), "node {node}");
        }
        assert!(self.world.borrow().exposed.is_empty(), "memory is still exposed");
    }
}

/// The end of an operation, as it should be.
fn end(op: CompletedOp, to: PeerId, len: usize, error: Option<Error>) -> Completion {
    Completion {
        op,
        kind: MessageKind::Untagged,
        context: 77,
        tell: Tell::Queue,
        len: if error.is_none() { len } else { 0 },
        buf: 0,
        tag: 0,
        data: None,
        source: Some(to),
        released: false,
        peeked: false,
        failure: error.map(|error| Failure { error, overflow: 0 }),
    }
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| (at as u8).wrapping_mul(7).wrapping_add(seed))
        .collect()
}
