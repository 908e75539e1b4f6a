//! The suite on cards, and what only cards do.

use super::*;
use crate::engine::Config;
use crate::engine::op::CompletedOp;
use crate::engine::tests::rma::{access, register, remote};
use crate::engine::tests::sim::{Bed, Connected, Manner as Lanes, World};
use crate::transport::tests::suite::{Ends, Pair};
use crate::util::regions::Rights;
use crate::util::user::Lent;
use std::cell::RefCell;
use std::rc::Rc;

impl Pair for QueuePair {
    fn pair() -> Ends<QueuePair> {
        let fabric = Fabric::default();
        let (mut a, mut b) = (fabric.open(b"a"), fabric.open(b"b"));
        let (b_of_a, a_of_b) = (a.peer(b"b").unwrap(), b.peer(b"a").unwrap());
        Ends {
            a,
            b,
            b_of_a,
            a_of_b,
            keep: Box::new(()),
        }
    }
}

impl Connected for QueuePair {
    const BREAKS: bool = true;

    fn connected(nodes: PeerId, world: &Rc<RefCell<World>>) -> Vec<QueuePair> {
        let mut world = world.borrow_mut();
        let manner = Manner {
            full: world.roll(8),
            no_atomics: world.roll(2) == 0,
            loose_writes: world.roll(2) == 0,
            ..Manner::default()
        };
        let fabric = Fabric::new(world.roll(u64::MAX), manner);
        (0..nodes).map(|node| fabric.open(&node.to_le_bytes())).collect()
    }

    fn is_quiet(&self) -> bool {
        QueuePair::is_quiet(self)
    }

    fn exposed(&self) -> usize {
        QueuePair::exposed(self)
    }

    fn die(&mut self) {
        QueuePair::die(self);
    }

    fn break_off(&mut self, peer: PeerId) {
        QueuePair::break_off(self, peer);
    }
}

/// A card writes what it was asked for before anybody notices that its owner talks nonsense; but its data is not told.
#[test]
fn data_of_a_peer_that_talks_nonsense_is_not_told() {
    for nonsense in [false, true] {
        let mut bed: Bed<QueuePair> = Bed::over(2, 5, Lanes::default(), Config::default());
        let memory = Lent::new(&[8], 0);
        register(&bed, 0, 1, &memory, Rights::BOTH);
        if nonsense {
            bed.talk_nonsense(1, 0);
        }
        let mut write = access(Access::Write, 0, &Lent::new(&[8], 3), remote(&[(0, 8, 1)]));
        write.data = Some(9);
        bed.rma(1, &write).unwrap();
        let arrives = 1 + usize::from(nonsense);
        let fabric = bed.nodes[0].engine.transport().inner.fabric.clone();
        let arrived = || fabric.hardware().pair(1, 0).arrived.len();
        for _ in 0..1000 {
            if arrived() == arrives {
                break;
            }
            fabric.hardware().advance();
        }
        assert_eq!((arrived(), memory.bytes()), (arrives, vec![3; 8]));
        bed.settle();
        let told = bed
            .ends(0)
            .iter()
            .any(|end| matches!(end.op, CompletedOp::Target { .. }));
        assert_eq!(told, !nonsense);
        assert_eq!(bed.nodes[0].engine.malformed(), u64::from(nonsense));
    }
}

crate::transport::tests::suite::tests!(QueuePair);
crate::engine::tests::random::over!(QueuePair);
